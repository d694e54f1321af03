"""`gpuexplore backup FILE`: the database and the user's own lessons in one file, while the server runs."""

import argparse
from dataclasses import asdict
from pathlib import Path

from sqlalchemy import URL, make_url
from sqlalchemy.exc import ArgumentError

from gpuexplore.cli.output import EXIT_OK, declare, print_json
from gpuexplore.core import InvalidInput, format_bytes
from gpuexplore.hardware import lessons_directory
from gpuexplore.store.backup import Contents, back_up
from gpuexplore.store.database import URL_VARIABLE, database_url


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `backup`."""
    declare(
        parser,
        {
            "file FILE": {"type": Path, "help": "the backup to write; it must not exist yet"},
            "--json": "print one JSON object",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Copy the database and one's own lessons, and say what is in the copy."""
    database = database_file(f"pg_dump --format=custom --file={arguments.file}")
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


def database_file(instead: str) -> Path:
    """Return the file of SQLite with the database of this home; one of a server has its own programs.

    Args:
        instead: the command for a database of PostgreSQL, without its name; `--dbname` is added.

    Raises:
        InvalidInput: it is another database; says which command does it there.
    """
    try:
        url = make_url(database_url())
    except ArgumentError as error:
        raise InvalidInput.of("database", URL_VARIABLE, "URLs in SQLAlchemy's form") from error
    if url.get_backend_name() == "sqlite":
        return Path(str(url.database))
    # without the password, for which PostgreSQL's programs ask or look
    shown = URL.create("postgresql", url.username, None, url.host, url.port, url.database, url.query)
    raise InvalidInput(f"the database is on a server, so use {instead} --dbname={shown.render_as_string()!r}")
