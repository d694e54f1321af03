"""`gpuexplore import`: runs from files of other machines; nothing of them counts for a device of this one."""

import argparse
from pathlib import Path

from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE, content_of, say
from gpuexplore.cli.run_command import OWNER
from gpuexplore.core.errors import InvalidInput
from gpuexplore.jobs.run_sources import import_runs
from gpuexplore.recorded.files import MOST_BYTES, SUFFIXES
from gpuexplore.store import open_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `import`."""
    parser.add_argument(
        "file",
        nargs="+",
        type=Path,
        metavar="FILE",
        help=f"exported runs, recordings, JSON of pyperf, pytest-benchmark or nvbench: {', '.join(SUFFIXES)}",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Keep the runs of each file, say where they are, and return the exit code; a file that is refused is named."""
    code = EXIT_OK
    with open_store() as store:
        for path in arguments.file:
            try:
                for run in import_runs(store, path.name, content_of(path, MOST_BYTES), OWNER):
                    print(f"{run.id}  {run.title}  ({run.origin})")
            except InvalidInput as error:
                code = EXIT_UNUSABLE
                for line in str(error).splitlines():
                    say(f"gpuexplore: {line}")
    return code
