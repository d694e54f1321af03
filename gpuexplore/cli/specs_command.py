"""`gpuexplore specs`: peaks of one accelerator by its driver name, or the table of all."""

import argparse
from typing import Any

from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, declare, print_columns, print_json, say_readings
from gpuexplore.core.units import format_bytes, format_bytes_per_s, format_flop_per_s
from gpuexplore.hardware import near_names, peaks_json, search


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `specs`."""
    declare(
        parser,
        {
            "name NAME": {"nargs": "?", "help": "h100, a driver name or a key; without it, every accelerator"},
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the peaks; an unknown name is exit code 1."""
    rows = (
        [peaks_json(arguments.name)] if arguments.name else [peaks_json(accelerator.key) for accelerator in search("")]
    )
    if arguments.json:
        print_json(rows[0] if arguments.name else rows)
    elif arguments.name:
        say_readings([arguments.name])
        _print_spec(rows[0])
    else:
        heading = ("key", "fp32", "bf16", "fp16", "memory", "confidence")
        print_columns([heading, *(_columns(row) for row in rows)])
    return EXIT_FAILED if arguments.name and rows[0]["key"] is None else EXIT_OK


def _columns(spec: dict[str, Any]) -> tuple[str, ...]:
    rates = [format_flop_per_s(spec["peaks"].get(name, {}).get("flop_per_s")) for name in ("fp32", "bf16", "fp16")]
    return (spec["key"], *rates, format_bytes_per_s(spec["bandwidth_bytes_per_s"]), spec["confidence"])


def _print_spec(spec: dict[str, Any]) -> None:
    if spec["key"] is None:
        print(f"{spec['query'][:60]!r} is not in the table of accelerators{near_names(spec['query'])}.")
        return
    print(f"{spec['key']}  {format_bytes(spec['memory_bytes'])} memory, confidence {spec['confidence']}")
    for dtype, peak in spec["peaks"].items():
        rate = format_flop_per_s(peak["flop_per_s"])
        print(f"  {dtype:5} {peak['unit']:7} {rate:>14}  {peak['kind']:9}  {peak['source']}")
    if spec["bandwidth_kind"]:
        rate = format_bytes_per_s(spec["bandwidth_bytes_per_s"])
        print(f"  memory        {rate:>14}  {spec['bandwidth_kind']:9}  {spec['bandwidth_source']}")
    if spec["notes"]:
        print(f"  notes: {spec['notes']}")
    if spec["same_driver_name"]:
        print(f"  a driver gives the same name to {', '.join(spec['same_driver_name'])}")
