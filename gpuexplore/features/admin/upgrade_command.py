"""`gpuexplore upgrade`: upgrades the database to the schema of this version, or prints what that needs."""

import argparse
from dataclasses import asdict

from gpuexplore.cli.output import EXIT_OK, declare, print_json
from gpuexplore.core import StoreUnavailable, format_bytes
from gpuexplore.store import Plan, open_store, plan_upgrade


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `upgrade`."""
    declare(
        parser,
        {
            "--dry-run": "print what an upgrade would do, and the disk space it needs",
            "--json": "print one JSON object",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the steps of the upgrade, and unless it is a dry run, take them."""
    plan = plan_upgrade()
    if arguments.json:
        steps = [{"revision": revision, "about": about} for revision, about in plan.steps.items()]
        print_json({"dry_run": arguments.dry_run, **asdict(plan), "steps": steps})
    else:
        print("\n".join(_said(plan)))
    if plan.needed_bytes is not None and plan.free_bytes is not None and plan.free_bytes < plan.needed_bytes:
        raise StoreUnavailable("Not enough disk space for an upgrade: nothing has changed.")
    if not arguments.dry_run and plan.steps:
        open_store().close()
        if not arguments.json:
            print(f"The database has schema {plan.newest} now")
    return EXIT_OK


def _said(plan: Plan) -> list[str]:
    if plan.found is None:
        return [f"There is no database yet: it is created with schema {plan.newest} on first use"]
    if not plan.steps:
        return [f"Schema {plan.found} is up to date"]
    lines = [f"From schema {plan.found} to {plan.newest}:"]
    lines += [f"  {revision}  {about}" for revision, about in plan.steps.items()]
    lines.append(f"The database takes {format_bytes(plan.size_bytes)}")
    if plan.needed_bytes is None:
        return [*lines, "The database is on a server, so no copy is made: use pg_dump first"]
    copied = "a copy is kept, and the new schema is written next to the old one"
    return [
        *lines,
        f"{copied}: at most {format_bytes(plan.needed_bytes)}, and {format_bytes(plan.free_bytes)} are free",
    ]
