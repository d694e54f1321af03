"""`gpuexplore devices pause|drain|reserve|resume`: devices held back from runs, for every supervisor."""

import argparse
from datetime import UTC, datetime
from pathlib import Path

from gpuexplore.cli.output import EXIT_OK, print_json, read_age, say
from gpuexplore.cli.run_command import OWNER
from gpuexplore.core import StoreUnavailable, check_characters, check_known, check_text
from gpuexplore.hardware import discover
from gpuexplore.store import ACCOUNT_PREFIX, Restriction, RestrictionKind, database_url, open_store


def act(arguments: argparse.Namespace) -> int:
    """Hold a device back, or let it measure again."""
    with open_store() as store:
        # Accept a device of this machine, of a supervisor, or one that is held back already
        here = {found.id for found in discover()}
        known = here.union(
            *(each.device_ids for each in store.supervisors()), (each.device for each in store.current_restrictions())
        )
        check_known("device", arguments.device, sorted(known))
        if arguments.action == "resume":
            was_held = store.resume(arguments.device, OWNER)
            message = f"{arguments.device} is available again" if was_held else f"{arguments.device} was not restricted"
        else:
            held = _asked_for(arguments)
            store.restrict(held, OWNER)
            message = str(held)
        if arguments.json:
            print_json(
                [{"device": each.device, "kind": each.kind, "held": str(each)} for each in store.current_restrictions()]
            )
        else:
            print(message)
    return EXIT_OK


def held_back() -> tuple[Restriction, ...]:
    """Return what is held back: nothing where there is no database yet; where it cannot be used, that is said."""
    scheme, _, path = database_url().partition(":///")
    if scheme == "sqlite" and not Path(path).exists():
        return ()
    try:
        with open_store() as store:
            return store.current_restrictions()
    except StoreUnavailable as error:
        say(f"gpuexplore: it is unknown whether devices are restricted: {error}")
        return ()


def _asked_for(arguments: argparse.Namespace) -> Restriction:
    kinds = {"pause": RestrictionKind.PAUSED, "drain": RestrictionKind.DRAINED, "reserve": RestrictionKind.RESERVED}
    kind = kinds[arguments.action]
    check_text("reason", arguments.reason)
    check_characters("reason", arguments.reason)
    reason = arguments.reason.strip()
    if kind is not RestrictionKind.RESERVED:
        return Restriction(arguments.device, kind, reason)
    check_text("account", arguments.account)
    until = datetime.now(UTC) + read_age("until", arguments.until)
    owner = f"{ACCOUNT_PREFIX}{arguments.account.strip().casefold()}"
    return Restriction(arguments.device, kind, reason, owner, until.isoformat(timespec="microseconds"))
