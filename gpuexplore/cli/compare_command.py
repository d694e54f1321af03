"""`gpuexplore compare`: a comparison of two runs, for a reader, a pull request or a CI job."""

import argparse

from gpuexplore.analysis.compare import HEADING, as_json, as_markdown, compare_runs, table_row
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE, declare, print_columns, print_json, say
from gpuexplore.jobs.run_sources import side_named
from gpuexplore.store import open_store

FAILS = {"slower": ("slower", "broken"), "different": ("slower", "faster", "broken", "mended")}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `compare`."""
    declare(
        parser,
        {
            "before A": "the id of a run or of a recorded run, or the file of a recording",
            "after B": "the run to compare with it",
            "--fail-if": {
                "choices": FAILS,
                "help": "exit with 1 if a case is slower or no longer measured; or if any case is different",
            },
            "--json": "print one JSON object",
            "--markdown": "print Markdown, for a pull request",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Compare two runs, print what follows and return the exit code."""
    with open_store() as store:
        found = compare_runs(side_named(store, arguments.before), side_named(store, arguments.after))
    if arguments.json:
        print_json(as_json(found))
    elif arguments.markdown:
        print(as_markdown(found), end="")
    else:
        print(f"before: {found.before.title} ({found.before.source})")
        print(f"after:  {found.after.title} ({found.after.source})\n")
        if found.cases:
            print_columns([HEADING, *(table_row(case) for case in found.cases)])
            print()
        print(found.headline)
        for words, cases in (("before", found.only_before), ("after", found.only_after)):
            if cases:
                print(f"Only {words}: {len(cases)} {'case' if len(cases) == 1 else 'cases'}.")
        for each in found.differences:
            print(f"- {each.what}: {each.before} -> {each.after}")
    if not found.cases:
        say("gpuexplore: there is nothing to compare")
        return EXIT_UNUSABLE
    failing = [case for case in found.cases if case.change in FAILS.get(arguments.fail_if, ())]
    return EXIT_FAILED if failing else EXIT_OK
