"""`gpuexplore repeatability`: how far the times of one process lie from those of the next, on this machine."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence

from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, declare, print_columns, print_json
from gpuexplore.core import (
    DISTURBED,
    MOST_PROCESSES,
    UNKNOWN,
    Case,
    Device,
    InvalidInput,
    Options,
    Result,
    Status,
    encode,
    format_percent,
    read_whole,
)
from gpuexplore.hardware import device_named, discover
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.measure.conditions.environment import utc_now
from gpuexplore.measure.conditions.repeatability import (
    FEWEST_PROCESSES,
    Repeatability,
    save_repeatability,
    spreads_of,
)
from gpuexplore.operations import OPERATIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `repeatability`."""
    declare(
        parser,
        {
            "--processes N": {"default": "12", "help": "number of fresh processes (default: %(default)s)"},
            "--device ID": {"default": "cpu", "help": "cpu, cuda:0, .. (default: %(default)s)"},
            "--json": "print one JSON object",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Measure the same cases in fresh processes, keep what they say for later runs, and print it."""
    count = read_whole(arguments.processes)
    if count is None or not FEWEST_PROCESSES <= count <= MOST_PROCESSES:
        raise InvalidInput.of("--processes", arguments.processes, f"{FEWEST_PROCESSES} to {MOST_PROCESSES}")
    device, runs = measure(device_named(arguments.device, discover()), count)
    table = Repeatability(utc_now(), count, spreads_of(runs, device))
    if table.spreads:
        save_repeatability(device, table)
    if arguments.json:
        print_json(encode(table))
    else:
        _print(table, device)
    return EXIT_OK if table.spreads else EXIT_FAILED


def measure(device: Device, count: int) -> tuple[Device, Sequence[Mapping[Case, Result]]]:
    """Return the device with its ceilings, and the results of each process that nothing is known to have disturbed."""
    runs: list[dict[Case, Result]] = []
    for number in range(1, count + 1):
        print(f"process {number} of {count}", file=sys.stderr)
        device, found = _in_a_fresh_process(device)
        runs.append(
            {
                case: result
                for case, result in found.items()
                if result.status is Status.OK and DISTURBED.isdisjoint(flag.name for flag in result.flags)
            }
        )
    return device, runs


def _in_a_fresh_process(device: Device) -> tuple[Device, dict[Case, Result]]:
    found: dict[Case, Result] = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            found[event.case] = event

    engine = LocalEngine([device])
    try:
        ready = engine.warm(device)
        for group in _groups(device):
            engine.measure(group, keep, lambda: False)
    finally:
        engine.close()
    return ready, found


def _groups(device: Device) -> Iterator[list[Case]]:
    """Yield the cases of each operation and size: one of many bytes and one of many FLOPs, from L1 to memory."""
    of_operation = {"vector_add": (1_000, 20_000, 200_000, 5_000_000), "matmul": (32, 128, 256, 512, 1024)}
    for name, sizes in of_operation.items():
        operation = OPERATIONS[name]
        usual = [row.name for row in operation.usual if row.runs_on(device)]
        for size in sizes:
            shape = operation.shape_of_size(size)
            yield [Case(name, shape, "fp32", implementation, device.id, Options()) for implementation in usual]


def _print(table: Repeatability, device: Device) -> None:
    rows = [
        (
            spread.size_class,
            spread.threads,
            spread.library,
            f"±{format_percent(spread.deviation)}",
            UNKNOWN if spread.of_ratios is None else f"±{format_percent(spread.of_ratios)}",
        )
        for spread in sorted(table.spreads, key=lambda spread: (spread.size_class, spread.threads, spread.library))
    ]
    if not rows:
        print("No result: the CPU was busy with other work all the time. Try again when nothing else runs.")
        return
    print_columns([("arrays fit in", "threads", "library", "95 % of processes", "95 % of ratios"), *rows])
    print(
        f"\nThe least repeatable case of each row, in {table.processes} processes. Intervals of "
        f"later runs on {device.title} include this variation."
    )
