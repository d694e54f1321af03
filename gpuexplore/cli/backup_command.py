"""`gpuexplore backup FILE`: what cannot be made again, in one file, while everybody goes on."""

import argparse
from dataclasses import asdict
from pathlib import Path

from gpuexplore.cli import EXIT_OK
from gpuexplore.cli.database_file import database_file
from gpuexplore.cli.output import print_json
from gpuexplore.devices import lessons_directory
from gpuexplore.store.backup import Contents, back_up
from gpuexplore.units import format_bytes

INSTEAD = "pg_dump --format=custom --file={file}"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `backup`."""
    parser.add_argument("file", type=Path, metavar="FILE", help="to write: it must not exist yet")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def execute(arguments: argparse.Namespace) -> int:
    """Copy the database and one's own lessons, and say what is in the copy."""
    database = database_file(INSTEAD.format(file=arguments.file))
    own = sorted(lessons_directory().glob("*.md")) if lessons_directory().is_dir() else ()
    contents = back_up(database, arguments.file, {path.name: path.read_bytes() for path in own})
    if arguments.json:
        print_json({"file": str(arguments.file), **asdict(contents)})
    else:
        print(f"{arguments.file}: {said(contents)}")
    return EXIT_OK


def said(contents: Contents) -> str:
    """Return what is in a copy, in words."""
    counts = [f"{count:,} {table}" for table, count in contents.counts.items()]
    lessons = [f"{len(contents.files)} lessons of your own"] if contents.files else []
    return f"{format_bytes(contents.size_bytes)}, schema {contents.revision}: {', '.join(counts + lessons)}"
