"""`gpuexplore restore FILE`: verifies a backup, and replaces the database with it."""

import argparse
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from gpuexplore.cli.output import EXIT_OK, declare, print_json
from gpuexplore.features.admin.backup_command import database_file, said
from gpuexplore.hardware import lessons_directory
from gpuexplore.jobs.locks import supervisor_lock
from gpuexplore.store.backup import contents_of, files_of, restore
from gpuexplore.store.database import because, database_url


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `restore`."""
    declare(
        parser,
        {
            "file FILE": {"type": Path, "help": "the backup to restore"},
            "--check": "verify the backup and print its contents; change nothing",
            "--json": "print one JSON object",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Check the copy, and unless that was all, replace the database with it; the old file is kept."""
    contents = contents_of(arguments.file) if arguments.check else None
    if contents is None:
        return _restore(arguments)
    if arguments.json:
        print_json({"file": str(arguments.file), **asdict(contents)})
    else:
        print(f"{arguments.file} is intact: {said(contents)}")
    return EXIT_OK


def _restore(arguments: argparse.Namespace) -> int:
    database = database_file(f"pg_restore --clean --if-exists --single-transaction {arguments.file}")
    contents = contents_of(arguments.file)
    files = files_of(arguments.file)
    lock = supervisor_lock(database_url())
    if lock.is_held():
        raise because(f"{lock.holder() or 'a supervisor'} uses the database: stop the web server and the supervisor")
    moment = f"{datetime.now(UTC):%Y%m%dT%H%M%SZ}"
    kept = restore(arguments.file, database, moment)
    for name, content in files.items():
        _put_back(lessons_directory() / Path(name).name, content, moment)
    if arguments.json:
        print_json({"database": str(database), "kept": str(kept) if kept else None, **asdict(contents)})
        return EXIT_OK
    print(f"Restored {database} from {arguments.file}: {said(contents)}")
    if kept:
        print(f"the previous database is kept: {kept}")
    return EXIT_OK


def _put_back(lesson: Path, content: bytes, moment: str) -> None:
    """Write a lesson; another one of its name is kept under another name."""
    lesson.parent.mkdir(parents=True, exist_ok=True)
    if lesson.exists():
        if lesson.read_bytes() == content:
            return
        lesson.rename(lesson.with_name(f"{lesson.name}.before-restore-{moment}"))
    lesson.write_bytes(content)
