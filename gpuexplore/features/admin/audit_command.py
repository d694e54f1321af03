"""`gpuexplore audit`: the log of runs started, cancelled and deleted, by user and time."""

import argparse

from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json, say, utc_before
from gpuexplore.core.errors import require
from gpuexplore.store import open_store
from gpuexplore.store.database import MOST_LISTED, noted


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `audit`."""
    declare(
        parser,
        {
            "--since AGE": "only entries of the last 7d, 12h, ... (default: all)",
            "--limit N": {"type": int, "default": 1000, "help": "maximum number of entries (default: %(default)s)"},
            "--json": "print JSON",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the log, the newest first."""
    require(1 <= arguments.limit <= MOST_LISTED, "limit", arguments.limit, f"1 to {MOST_LISTED}")
    since = "" if arguments.since is None else utc_before("since", arguments.since)
    with open_store() as store:
        found = noted(store, since, limit=arguments.limit)
    if arguments.json:
        print_json([dict(entry) for entry in found])
    elif found:
        rows = [("when (UTC)", "who", "from", "what", "of")]
        for entry in found:
            when = entry["at_utc"][:19].replace("T", " ")
            rows.append((when, entry["who"], entry["address"] or "", entry["action"], entry["object"]))
        print_columns(rows)
    else:
        say("gpuexplore: no audit entries in that time")
    return EXIT_OK
