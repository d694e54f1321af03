"""`gpuexplore devices`: what this machine has, with every peak's kind and source."""

import argparse
from contextlib import suppress

from gpuexplore.cli.output import declare, print_json
from gpuexplore.core import Device, ThreadRoofs, encode, format_bytes, format_bytes_per_s, format_flop_per_s
from gpuexplore.hardware import discover, ensure_ceiling


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `devices`."""
    declare(
        parser,
        {
            "--json": "print JSON",
            "--measure": "measure the CPU's peaks now (about three seconds)",
        },
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions on devices, instead of a list")
    for name, about in (
        ("pause", "measure nothing on a device: its current run is stopped and queued again with its results"),
        ("drain", "start nothing new on a device: its current run finishes"),
        ("reserve", "measure only the runs of one account on a device, for a time"),
        ("resume", "make a device available again"),
    ):
        action = actions.add_parser(name, help=about, description=about)
        declare(
            action,
            {
                "device DEVICE": "cpu or cuda:0 on every host, lab1/cuda:0 on one",
                "--json": "print the restricted devices as JSON",
            },
        )
        if name != "resume":
            action.add_argument(
                "--reason", default="", metavar="TEXT", help="shown to users whose runs are queued for the device"
            )
        if name == "reserve":
            declare(
                action,
                {
                    "--for ACCOUNT": {"dest": "account", "required": True, "help": "the account's sign-in name"},
                    "--until AGE": {"required": True, "help": "duration from now: 4h, 2d"},
                },
            )


def execute(arguments: argparse.Namespace) -> int:
    """Print the devices of this machine and the restrictions of the server's devices, or change these."""
    if arguments.action:
        from gpuexplore.cli.held_devices import act

        return act(arguments)
    devices = discover()
    if arguments.measure:
        devices = tuple(ensure_ceiling(device, again=True) for device in devices)
    if arguments.json:
        print_json(encode(devices))
        return 0
    for device in devices:
        cores = "unknown" if device.cores is None else device.cores
        print(f"{device.id}  {device.title}  {cores} cores  {format_bytes(device.memory_bytes)}")
        _print_roofs(device)
        if device.one_thread and device.cores != 1:
            print("  one thread:")
            _print_roofs(device.one_thread)
        for note in device.notes:
            print(f"  {note}")
    with suppress(ImportError):  # a bare machine has no server whose devices could be held back
        from gpuexplore.cli.held_devices import held_back

        for held in held_back():
            print(held)
    return 0


def _print_roofs(roofs: Device | ThreadRoofs) -> None:
    for peak in roofs.peaks:
        rate = format_flop_per_s(peak.flop_per_s)
        print(f"  {peak.dtype:5} {peak.unit:7} {rate:>14}  {peak.kind}: {peak.source}")
    named = [("memory", roofs.bandwidth), ("memory", roofs.ordinary_stores)]
    named += [(f"L{cache.level} cache", cache.bandwidth) for cache in roofs.caches]
    for name, bandwidth in named:
        if bandwidth:
            print(f"  {name:13} {format_bytes_per_s(bandwidth.bytes_per_s):>14}  {bandwidth.kind}: {bandwidth.source}")
