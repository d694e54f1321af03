"""`gpuexplore devices`: what this machine has, with every peak's kind and source."""

import argparse

from gpuexplore.cli.output import print_json
from gpuexplore.devices import discover, ensure_ceiling
from gpuexplore.model import Device
from gpuexplore.serialization import encode
from gpuexplore.units import format_bytes, format_bytes_per_s, format_flop_per_s


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `devices`."""
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--measure", action="store_true", help="measure the CPU's peaks now (about two seconds)")


def execute(arguments: argparse.Namespace) -> int:
    """Print the devices of this machine."""
    devices = discover()
    if arguments.measure:
        devices = tuple(ensure_ceiling(device, again=True) for device in devices)
    if arguments.json:
        print_json(encode(devices))
        return 0
    for device in devices:
        _print_device(device)
    return 0


def _print_device(device: Device) -> None:
    cores = "unknown" if device.cores is None else device.cores
    print(f"{device.id}  {device.title}  {cores} cores  {format_bytes(device.memory_bytes)}")
    for peak in device.peaks:
        rate = format_flop_per_s(peak.flop_per_s)
        print(f"  {peak.dtype:5} {peak.unit:7} {rate:>14}  {peak.kind}: {peak.source}")
    if device.bandwidth:
        rate = format_bytes_per_s(device.bandwidth.bytes_per_s)
        print(f"  memory        {rate:>14}  {device.bandwidth.kind}: {device.bandwidth.source}")
    for cache in device.caches:
        rate = format_bytes_per_s(cache.bandwidth.bytes_per_s)
        print(f"  L{cache.level} cache      {rate:>14}  {cache.bandwidth.kind}: {cache.bandwidth.source}")
    for note in device.notes:
        print(f"  {note}")
