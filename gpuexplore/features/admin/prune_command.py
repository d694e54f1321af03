"""`gpuexplore prune --older-than 90d`: erases old runs for good, concurrently with runs, and frees the space."""

import argparse
from dataclasses import asdict

from gpuexplore.cli.output import EXIT_OK, declare, print_json, utc_before
from gpuexplore.cli.run_command import OWNER
from gpuexplore.core.units import format_bytes
from gpuexplore.store import open_store
from gpuexplore.store.prune import Space, give_back, prunable, prune


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `prune`."""
    declare(
        parser,
        {
            "--older-than AGE": {"required": True, "help": "time since a run ended or was deleted: 90d, 12h"},
            "--marked": "also erase runs with a tag or a note",
            "--dry-run": "print what would be erased; erase nothing",
            "--json": "print one JSON object",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Erase old runs, and print their number and the disk space that was freed."""
    before_utc = utc_before("age", arguments.older_than)
    with open_store() as store:
        if arguments.dry_run:
            gone = prunable(store, before_utc, marked=arguments.marked)
        else:
            gone = prune(store, before_utc, OWNER, marked=arguments.marked)
        space = None if arguments.dry_run else give_back(store)
    if arguments.json:
        print_json({"dry_run": arguments.dry_run, **asdict(gone), "space": asdict(space) if space else None})
        return EXIT_OK
    kept = f"; {gone.kept:,} more are kept for their tag or note (--marked erases them too)" if gone.kept else ""
    said = f"{gone.runs:,} runs with {gone.results:,} results and {gone.audit:,} entries of the audit log{kept}"
    print(f"{'Would erase' if arguments.dry_run else 'Erased'} {said}")
    if space:
        print(_space(space))
    return EXIT_OK


def _space(space: Space) -> str:
    size = ""
    if space.before_bytes is not None and space.after_bytes is not None:
        back = format_bytes(space.before_bytes - space.after_bytes)
        size = f"{back} of disk space freed: the database now takes {format_bytes(space.after_bytes)}"
    inside = f"{format_bytes(space.free_bytes)} inside it are free, and will be reused" if space.free_bytes else ""
    return ". ".join(filter(None, (size, inside, space.reason if space.free_bytes or not size else "")))
