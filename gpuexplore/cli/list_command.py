"""`gpuexplore list`: operations, implementations and dtypes, and which go together on this machine."""

import argparse

from gpuexplore.cli.output import print_json
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.hardware import discover
from gpuexplore.measure.candidates.candidate import support_matrix
from gpuexplore.operations import OPERATIONS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `list`."""
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print every operation with its implementations, and what does not go together with the reason."""
    if arguments.json:
        devices = discover()
        operations = [
            {
                "name": operation.name,
                "title": operation.title,
                "formula": operation.formula,
                "axes": operation.axes,
                "default_sizes": operation.default_sizes,
                "dtypes": operation.dtypes,
                "implementations": [
                    {"name": implementation.name, "about": implementation.about}
                    for implementation in operation.implementations
                ],
                "support": [cell for device in devices for cell in support_matrix(operation, device)],
            }
            for operation in OPERATIONS.values()
        ]
        print_json({"operations": operations, "dtypes": {row.name: row.about for row in DTYPES.values()}})
        return 0
    for operation in OPERATIONS.values():
        print(f"{operation.name}: {operation.title}, {operation.formula}")
        for implementation in operation.implementations:
            print(f"  {implementation.name:12} {implementation.about}")
    print("dtypes:")
    for row in DTYPES.values():
        print(f"  {row.name:12} {row.about}")
    return 0
