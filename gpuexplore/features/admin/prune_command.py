"""`gpuexplore prune --older-than 90d`: erases old runs for good, concurrently with runs, and frees the space."""

import argparse
from dataclasses import asdict

from gpuexplore.cli import EXIT_OK
from gpuexplore.cli.output import print_json, utc_before
from gpuexplore.cli.run_command import OWNER
from gpuexplore.core.units import format_bytes
from gpuexplore.store import open_store
from gpuexplore.store.prune import Pruned, Space, give_back, prunable, prune


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `prune`."""
    parser.add_argument("--older-than", required=True, metavar="AGE", help="since they ended or were deleted: 90d, 12h")
    parser.add_argument("--marked", action="store_true", help="also runs with a tag or a note, which stay otherwise")
    parser.add_argument("--dry-run", action="store_true", help="say what would go; erase nothing")
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def execute(arguments: argparse.Namespace) -> int:
    """Erase what is old, and say what that was and what space came back."""
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
    print(f"{'Would erase' if arguments.dry_run else 'Erased'} {_said(gone)}")
    if space:
        print(_space(space))
    return EXIT_OK


def _said(gone: Pruned) -> str:
    kept = f"; {gone.kept:,} as old stay for their tag or note (--marked)" if gone.kept else ""
    return f"{gone.runs:,} runs with {gone.results:,} results and {gone.audit:,} lines of the audit log{kept}"


def _space(space: Space) -> str:
    size = ""
    if space.before_bytes is not None and space.after_bytes is not None:
        back = format_bytes(space.before_bytes - space.after_bytes)
        size = f"{back} given back to the disk: the database takes {format_bytes(space.after_bytes)}"
    inside = f"{format_bytes(space.free_bytes)} in it are empty, and are filled again" if space.free_bytes else ""
    return ". ".join(filter(None, (size, inside, space.reason if space.free_bytes or not size else "")))
