"""Plants that end `ok` with one guard of a measurement left out, and the wall time of each guard.

    python -m benchmarks.guards [--only GUARD ...] [--cost]

Every plant of `tests/measure/evil/catalogue.py` that has to end `incorrect` is measured with all guards, and with one
of them left out, each in a process of its own. Printed are those that end `ok` then: what no other guard notices. The
cost is the wall time inside a guard, calls of the implementation that it makes included, as a share of 36
products, measured a second time; a guard that calls another one has both. With `--cost` that alone. It asserts nothing.
"""

import argparse
import multiprocessing
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from itertools import repeat
from pkgutil import resolve_name
from typing import Any
from unittest.mock import patch

from gpuexplore.core.pools import shorten_spinning

os.environ.pop("OPENBLAS_CORETYPE", None)
shorten_spinning()  # as in a worker: what follows loads NumPy

from gpuexplore.core.model import Case, Device, Options, Result, Status  # noqa: E402
from gpuexplore.hardware import discover  # noqa: E402
from gpuexplore.measure import prepare_process  # noqa: E402
from gpuexplore.measure.check.group import groups_of  # noqa: E402
from gpuexplore.measure.conditions.isolation import ProgressHooks  # noqa: E402
from gpuexplore.measure.runner import measure_group  # noqa: E402
from gpuexplore.operations import operation_named  # noqa: E402
from tests.measure.evil import lazy, meddling, wrong  # noqa: E402
from tests.measure.evil.catalogue import PLANTS, register  # noqa: E402
from tests.measure.evil.plant import HANGING_S, Plant  # noqa: E402

BUDGET_S = 0.1
SIZES = (128, 256, 512, 1024)
DTYPES = ("fp32", "bf16", "fp16")
IMPLEMENTATIONS = ("numpy", "numba-cpu", "torch")

_MEASURE = "gpuexplore.measure."
_RUNNER, _PREPARE = f"{_MEASURE}runner.", f"{_MEASURE}sample.prepare."
_SPOT, _CANDIDATE = f"{_MEASURE}check.spot_checks.", f"{_MEASURE}candidates.candidate.Candidate."


def _nothing(*_: object, **__: object) -> None:
    """Check nothing."""


GUARDS: Mapping[str, Mapping[str, Any]] = {
    "outputs full of NaN before a checked call": {
        f"{_CANDIDATE}poison": _nothing,
        f"{_CANDIDATE}is_poisoned": lambda _: True,
    },
    "inputs compared after calls": {f"{_SPOT}check_inputs": _nothing, f"{_PREPARE}check_inputs": _nothing},
    "a round on other values": {f"{_RUNNER}on_other_values": lambda *_: nullcontext()},
    "single calls on other values": {f"{_RUNNER}check_single_calls": _nothing},
    "the output of the last samples": {f"{_RUNNER}checked": _nothing},
    "times on values that are new": {f"{_RUNNER}check_reuse": _nothing},
    "values of its own for each slow call": {
        f"{_PREPARE}_references": lambda group: repeat(group.timed_reference),
    },
    "a look at the output as a call returns": {f"{_SPOT}_has_gaps": lambda *_: False},
    "no other thread of Python in that call": {f"{_SPOT}_no_other_thread": nullcontext},
    "names and settings of the process": {f"{_MEASURE}check.process_snapshot._raise_of": _nothing},
    "samples and timers of others": {
        f"{_RUNNER}check_seals": _nothing,
        f"{_MEASURE}sample.timing.check_seals": _nothing,
    },
    "inputs that differ in every run": {f"{_RUNNER}secrets.randbelow": lambda _: 0},
}


def main() -> None:
    """Print a line for each guard."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="*", choices=GUARDS, metavar="GUARD", help="default: all")
    parser.add_argument("--cost", action="store_true", help="costs only")
    arguments = parser.parse_args()
    register(setattr, dict.__setitem__)  # type: ignore[no-untyped-call]
    prepare_process()
    _measured([_case(PLANTS[0], PLANTS[0].beside[0])])  # what every process below would load and look up again
    chosen = arguments.only or list(GUARDS)
    noticed: dict[str, Sequence[str]] = {}
    if not arguments.cost:
        print(f"of {len(plants())} with all guards, ok: {', '.join(_unnoticed({})) or 'none'}", flush=True)
        for name in chosen:
            noticed[name] = list(_unnoticed(GUARDS[name]))
            print(f"without {name}, ok: {', '.join(noticed[name]) or 'none'}", flush=True)
    wall_s, spent_s = _costs()
    print(f"{len(SIZES) * len(DTYPES) * len(IMPLEMENTATIONS)} cases in {wall_s:.1f} s")
    for name in chosen:
        print(f"{name:42} {spent_s[name] / wall_s:6.1%}  {', '.join(noticed.get(name, ()))}")


def plants() -> list[Plant]:
    """Return those that have to end `incorrect`, and neither hang nor end their process."""
    builders = {id(value) for module in (wrong, lazy, meddling) for value in vars(module).values()}
    return [
        plant
        for plant in PLANTS
        if id(plant.build) in builders and plant.statuses == (Status.INCORRECT,) and plant.most_s < HANGING_S
    ]


def _unnoticed(without: Mapping[str, Any]) -> Iterator[str]:
    """Yield the names of the plants that end `ok` without a guard."""
    for plant in plants():
        if _status(plant, without) == Status.OK:
            yield plant.name


def _status(plant: Plant, without: Mapping[str, Any]) -> str | None:
    """Return how a plant ends in a process of its own; None where the process does."""
    forked = multiprocessing.get_context("fork")  # what is imported is there, and what a plant changes ends with it
    receiver, sender = forked.Pipe(duplex=False)
    process = forked.Process(target=_measure_alone, args=(plant, without, sender))
    process.start()
    sender.close()
    found: str | None = None
    with suppress(EOFError):  # it ended without a result
        found = receiver.recv() if receiver.poll(HANGING_S) else None
    process.kill()
    process.join()
    return found


def _measure_alone(plant: Plant, without: Mapping[str, Any], sender: Any) -> None:
    with _replaced(without):
        results = _measured([_case(plant, name) for name in (*plant.beside, plant.name)])
    sender.send(next((str(each.status) for each in results if each.case.implementation == plant.name), None))


def _case(plant: Plant, name: str) -> Case:
    return Case(plant.operation, plant.shape, plant.dtype, name, "cpu", Options(budget_s=BUDGET_S))


def _costs() -> tuple[float, Mapping[str, float]]:
    """Return the seconds of 36 products, and of those the ones inside each guard."""
    shapes = [operation_named("matmul").shape_of_size(size) for size in SIZES]
    cases = [
        Case("matmul", shape, dtype, name, "cpu", Options())
        for shape in shapes
        for dtype in DTYPES
        for name in IMPLEMENTATIONS
    ]
    _measured(cases)  # compiles
    spent_s = dict.fromkeys(GUARDS, 0.0)
    timed = {
        path: _timed(resolve_name(path), name, spent_s) for name, replaced in GUARDS.items() for path in replaced
    }  # a path belongs to one guard
    with _replaced(timed):
        began_s = time.perf_counter()
        _measured(cases)
        return time.perf_counter() - began_s, spent_s


def _measured(cases: Sequence[Case]) -> list[Result]:
    results: list[Result] = []

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            results.append(event)

    for group in groups_of(cases):
        measure_group(group, _cpu(), progress=ProgressHooks(keep))
    return results


def _cpu() -> Device:
    return next(device for device in discover() if device.id == "cpu")


def _timed(function: Any, name: str, spent_s: dict[str, float]) -> Callable[..., Any]:
    """Return `function`, which adds its seconds, or those between entering and leaving it, to `spent_s[name]`."""

    def run(*arguments: Any, **options: Any) -> Any:
        began_s = time.perf_counter()
        found = function(*arguments, **options)
        if hasattr(found, "__enter__"):
            return _timed_inside(found, name, spent_s)
        spent_s[name] += time.perf_counter() - began_s
        return found

    return run


@contextmanager
def _timed_inside(section: Any, name: str, spent_s: dict[str, float]) -> Iterator[None]:
    began_s = time.perf_counter()
    try:
        with section:
            yield
    finally:
        spent_s[name] += time.perf_counter() - began_s


@contextmanager
def _replaced(replacements: Mapping[str, Any]) -> Iterator[None]:
    with ExitStack() as stack:
        for path, value in replacements.items():
            stack.enter_context(patch(path, value))
        yield


if __name__ == "__main__":
    main()
