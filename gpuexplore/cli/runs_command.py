"""`gpuexplore runs`: what was measured before, listed, shown, named, deleted and written to files."""

import argparse
from pathlib import Path

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.cli.output import EXIT_OK, check_writable, declare, print_columns, print_json, say
from gpuexplore.cli.run_command import FILE_TYPES, OWNER
from gpuexplore.core import InvalidInput, Run, RunSummary, format_percent, format_si
from gpuexplore.jobs.run_sources import listed_with_summaries, row_of
from gpuexplore.operations import OPERATIONS
from gpuexplore.store import MOST_LISTED, Description, ListedRun, Store, Wanted, open_store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `runs`."""
    declare(
        parser,
        {
            "--search TEXT": {"default": "", "help": "words of title, tags, note, device or id"},
            "--operation NAME": "only runs of this operation",
            "--device NAME": "words of the name of the device it was measured on",
            "--tag TAG": "only runs with this tag",
            "--limit N": {"type": int, "default": 20, "help": "number of runs (default: %(default)s)"},
            "--before NUMBER": {"type": int, "help": "the next page, as given in the last line of a list"},
            "--json": "print JSON",
        },
    )
    actions = parser.add_subparsers(dest="action", metavar="ACTION", title="actions on runs, instead of a list")
    declare(
        actions.add_parser("show", help="print a run's table and conclusions"),
        {
            "run RUN": "",
            "--json": "print one JSON object",
        },
    )
    for name, text, about in (
        ("name", "TITLE", "give a run a title; an empty one restores the default"),
        ("note", "TEXT", "write a note on a run"),
        ("tag", "TAGS", "replace the tags of a run (comma-separated)"),
    ):
        changed = actions.add_parser(name, help=about, description=about)
        declare(
            changed,
            {
                "run RUN": "",
                f"text {text}": "",
            },
        )
        _add_admin(changed)
    for name, about in (
        ("delete", "delete runs; they can be restored for 30 days"),
        ("restore", "restore deleted runs"),
    ):
        several = actions.add_parser(name, help=about, description=about)
        several.add_argument("run", nargs="+", metavar="RUN")
        _add_admin(several)
    declare(
        actions.add_parser("export", help="write a run to a file"),
        {
            "run RUN": "",
            "file FILE": {"type": Path, "help": f"ends in {', '.join(FILE_TYPES)}"},
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """List runs, or do what is asked with them, and return the exit code."""
    if arguments.operation is not None and arguments.operation not in OPERATIONS:
        raise InvalidInput.of("operation", arguments.operation, OPERATIONS)
    actions = {"show": _show, "delete": _delete, "restore": _restore, "export": _export}
    actions |= dict.fromkeys(("name", "note", "tag"), _change)
    with open_store() as store:
        return actions.get(arguments.action, _list)(store, arguments)


def _add_admin(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--admin", action="store_true", help="also change runs that were started in a browser")


def _list(store: Store, arguments: argparse.Namespace) -> int:
    wanted = Wanted(None, arguments.operation, arguments.device, arguments.tag, arguments.search)
    found = listed_with_summaries(store, wanted, before=arguments.before, limit=arguments.limit)
    if arguments.json:
        print_json([row_of(run) for run in found])
        return EXIT_OK
    if not found:
        say("gpuexplore: no run matches")
        return EXIT_OK
    heading = ("run", "title", "device", "when (UTC)", "best rate", "of peak", "quality", "tags")
    print_columns([heading, *(_line(run) for run in found)])
    if len(found) == arguments.limit <= MOST_LISTED:
        say(f"gpuexplore: next page: --before {found[-1].number}")
    return EXIT_OK


def _line(run: ListedRun) -> tuple[str, ...]:
    summary = run.summary or RunSummary()
    how = "imported" if run.origin else summary.quality or run.state.value
    return (
        run.id,
        _cut(run.title),
        _cut(run.device_names or ", ".join(run.devices)),
        run.created_utc[:16].replace("T", " "),
        format_si(summary.rate, summary.unit or ""),
        format_percent(summary.share),
        how,
        " ".join(run.tags),
    )


def _cut(text: str) -> str:
    return text if len(text) <= 44 else f"{text[:42]} …"


def _show(store: Store, arguments: argparse.Namespace) -> int:
    from gpuexplore.cli import run_report

    run, analysis = _loaded(store, arguments.run)
    if not arguments.json:
        print(f"{run.title}  ({run.id}, {(run.created_utc or '')[:16].replace('T', ' ')} UTC)")
        for text in filter(None, (run.note, " ".join(f"#{tag}" for tag in run.tags), run.origin)):
            print(text)
        print()
    run_report.show(run.experiment, analysis, as_json=arguments.json)
    return EXIT_OK


def _loaded(store: Store, run_id: str) -> tuple[Run, RunAnalysis]:
    run = store.load(run_id)
    return run, analyze(run.results, running=run.active)


def _change(store: Store, arguments: argparse.Namespace) -> int:
    field = {"name": "title", "note": "note", "tag": "tags"}[arguments.action]
    run = store.describe(arguments.run, OWNER, Description(**{field: arguments.text}), admin=arguments.admin)
    print(f"{run.id}  {run.title}{''.join(f'  #{tag}' for tag in run.tags)}")
    return EXIT_OK


def _delete(store: Store, arguments: argparse.Namespace) -> int:
    for run_id in arguments.run:
        store.delete_run(run_id, OWNER, admin=arguments.admin)
        print(f"{run_id} is deleted; for 30 days you can restore it with: gpuexplore runs restore {run_id}")
    return EXIT_OK


def _restore(store: Store, arguments: argparse.Namespace) -> int:
    for run_id in arguments.run:
        store.restore_run(run_id, OWNER, admin=arguments.admin)
        print(f"{run_id} is restored: {store.listed_run(run_id).title}")
    return EXIT_OK


def _export(store: Store, arguments: argparse.Namespace) -> int:
    from gpuexplore.charts.exports import EXPORTS, Exported, export, format_of

    suffix = format_of(arguments.file)
    check_writable(arguments.file, EXPORTS)
    run, analysis = _loaded(store, arguments.run)
    arguments.file.write_bytes(export(suffix, Exported(run.experiment, analysis, run)))
    say(f"Written: {arguments.file}")
    return EXIT_OK
