"""How wrong predictions are, against other ways to predict, in one run: every device is left out in turn.

Whatever was measured on a GPU of the table is predicted from what was measured on all others: first without its
device, then without its architecture, since near-twins make a device easy. The recorded results of a CPU, of which
there is one, are predicted from those of other shapes. It asserts nothing.

    python -m benchmarks.prediction [--by operation] [--json]
    python -m benchmarks.prediction --rows FILE.csv     judges measurements kept elsewhere by what ships
    python -m benchmarks.prediction --given 10          the rest of a device's, before and after ten of its own results

With --json the latter prints ``{rows, median, p90, holds, bias, by: [{by, name, ...}], refused}``: errors as shares of
what was measured, the share of intervals that hold, the median of predicted over measured times, and rows left out.
"""

import argparse
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from statistics import median

from benchmarks.prediction_errors import (
    GROUPINGS,
    OURS,
    Guess,
    Trial,
    errors_of,
    grouped,
    summary_of,
    table,
    trial_of,
    ways_of,
)
from benchmarks.prediction_peers import HEURISTICS, heuristics_s, neusight_s, roofline_s
from gpuexplore.analysis.prediction import INTERVAL, Conditions, Prediction, calibrate, predict, predict_each
from gpuexplore.analysis.prediction.calibration import (
    Calibration,
    ObservedEfficiency,
    from_measured,
    from_published,
    from_results,
)
from gpuexplore.analysis.prediction.calibration import calibrate as calibrated_on
from gpuexplore.analysis.prediction.calls import USUAL, conditions_of
from gpuexplore.analysis.prediction.gpu import Fitted, fitted
from gpuexplore.analysis.prediction.gpu import observations as seen_by_others
from gpuexplore.analysis.prediction.gpu.facts import published_call
from gpuexplore.analysis.prediction.request import chosen
from gpuexplore.analysis.utilization.peak_sources import NOTED, PUBLISHED
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Case, Device, Result, Shape
from gpuexplore.hardware import ACCELERATORS, row_of, table_device
from gpuexplore.recorded import recorded_results
from gpuexplore.recorded.published import PublishedMeasurement, published_measurements, read_measurements

WITHOUT_ARCHITECTURE = "architecture left out"
ROOFLINE, ONE_EFFICIENCY, NEUSIGHT = "roofline", "one efficiency", "NeuSight"
GIVEN = "own results"
FEWEST = 30  # measurements of a device
SEARCHED = Conditions(searched=True)
SHOWN = ("operation", "device", "dtype", "decade", "duration", "timing", "architecture")
ROW_GROUPINGS = ("operation", "device", "dtype", "duration", "timing")

Predictor = Callable[..., Prediction]


@dataclass(frozen=True, slots=True, eq=False)
class Claim:
    """A published result on a GPU of the table.

    Attributes:
        origin: `measured`, `published`, `noted` or `recorded`.
        timing: how the time was taken; None where it is unknown.
        conditions: what is known of the call.
        url: where a published measurement comes from.
    """

    origin: str
    case: Case
    device: Device
    took_s: float
    timing: str | None = None
    conditions: Conditions = USUAL
    url: str | None = None

    @property
    def key(self) -> str:
        """The device's row."""
        return self.device.spec_key or ""

    @property
    def trial(self) -> Trial:
        """Its trial, without guesses."""
        return trial_of(self.case, self.device, self.took_s, origin=self.origin, timing=self.timing)


def main() -> None:
    """Print the errors of each way, by each grouping asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--json", action="store_true", help="print JSON: the errors of each group, and every trial")
    parser.add_argument("--by", action="append", choices=list(GROUPINGS), help="a grouping; default: all")
    parser.add_argument("--rows", type=Path, metavar="FILE.csv", help="measurements to judge by what ships")
    parser.add_argument("--given", type=int, metavar="N", help="measurements of a left-out device to predict from")
    arguments = parser.parse_args()
    if arguments.given:
        _print_given(arguments.given)
        return
    if arguments.rows and arguments.json:
        print(json.dumps(judged_rows(arguments.rows)))
        return
    trials = trials_of_rows(arguments.rows) if arguments.rows else [*left_out_trials(claims()), *cpu_trials()]
    if arguments.json:
        print(as_json(trials, arguments.by or list(GROUPINGS)))
        return
    print(
        f"each way: rows, median and 90th percentile of the error, intervals that hold (claim {INTERVAL:.0%}), x ours"
    )
    print(f"\n{table(trials, 'origin')}")
    for by in arguments.by or SHOWN:
        print(f"\n{table(of_gpus(trials), by)}")


def of_gpus(trials: Iterable[Trial]) -> list[Trial]:
    """Return the trials of GPUs: a CPU's are left out by shape, and only their origin is a group of their own."""
    return [trial for trial in trials if trial.architecture]


def claims() -> list[Claim]:
    """Return everything that was measured on a GPU of the table."""
    published = [
        Claim("published", one.case, table_device(one.spec_key), one.time_s, conditions=SEARCHED) for one in PUBLISHED
    ]
    noted = [Claim("noted", one.case, table_device(one.spec_key), one.time_s) for one in NOTED]
    recorded = [
        Claim("recorded", result.case, device, measured.median_s)
        for _, result in recorded_results()
        if (measured := result.measurement) and (device := _device_of(result)) and row_of(device)
    ]
    return [*map(measured_claim, published_measurements()), *published, *noted, *recorded]


def measured_claim(row: PublishedMeasurement) -> Claim:
    """Return a published measurement as a call of the vendor's library."""
    case, device = published_call(row)
    return Claim("measured", case, device, row.time_s, timing=row.timing, conditions=conditions_of(row), url=row.url)


def _device_of(result: Result) -> Device | None:
    return result.environment.device if result.environment else None


@cache
def fitted_without(spec_keys: frozenset[str]) -> "partial[Prediction]":
    """Return the predictor that has seen nothing of these devices: coefficients and corrections are fitted anew.

    How sure it is was learned from what such predictors were off by (`scripts/fit_prediction.py`), all devices' alike.
    """
    fit = import_module("scripts.fit_prediction").fit  # needs SciPy, which is not there to judge rows by what ships
    seen = [each for each in seen_by_others() if each.facts.device not in spec_keys]
    return partial(predict, calibration=leave_out(spec_keys, fit(seen, fitted().intervals)))


def leave_out(spec_keys: frozenset[str], gpus: Fitted) -> Calibration:
    """Return the calibration on what was observed on all devices but these."""
    recorded = from_results((result for _, result in recorded_results()), "recorded", gpus)
    known: tuple[ObservedEfficiency, ...] = (*from_published(), *recorded)
    return calibrated_on((each for each in known if each.device.spec_key not in spec_keys), gpus)


def left_out_trials(known: Sequence[Claim]) -> list[Trial]:
    """Return a trial of each claim, predicted without its device, without its architecture, and in other ways."""
    architectures: dict[str, set[str]] = defaultdict(set)
    for row in ACCELERATORS:
        architectures[row.architecture].add(row.key)
    efficiencies = efficiencies_without(known)
    trials = []
    for claim in known:
        trial = claim.trial
        twins = frozenset(architectures[trial.architecture or ""])
        guesses = {
            OURS: guess(claim, fitted_without(frozenset({claim.key}))),
            WITHOUT_ARCHITECTURE: guess(claim, fitted_without(twins)),
            **peers(claim, efficiencies[claim.key, claim.case.operation]),
        }
        trials.append(replace(trial, guesses={way: said for way, said in guesses.items() if said}))
    return trials


def guess(claim: Claim, predictor: Predictor) -> Guess | None:
    """Return our prediction of a claim; None where there is none."""
    found = predictor(claim.case, claim.device, conditions=claim.conditions)
    return Guess(found.time_s, found.low_s, found.high_s) if found.time_s else None


def peers(claim: Claim, efficiency: float | None) -> dict[str, Guess]:
    """Return what other ways predict; `efficiency` is the share of the roofline that others reach."""
    best = roofline_s(claim.case, claim.device)
    found = {
        ROOFLINE: best,
        ONE_EFFICIENCY: best / efficiency if best and efficiency else None,
        HEURISTICS: heuristics_s(claim.case, claim.device),
        NEUSIGHT: neusight_s(claim.case, claim.device, claim.url),
    }
    return {way: Guess(time_s) for way, time_s in found.items() if time_s}


def efficiencies_without(known: Iterable[Claim]) -> dict[tuple[str, str], float | None]:
    """Return, by device and operation, the median share of the roofline that it reaches on all other devices."""
    shares: dict[str, list[tuple[str, float]]] = defaultdict(list)
    places = set()
    for claim in known:
        places.add((claim.key, claim.case.operation))
        if best := roofline_s(claim.case, claim.device):
            shares[claim.case.operation].append((claim.key, best / claim.took_s))
    others = {place: [share for key, share in shares[place[1]] if key != place[0]] for place in places}
    return {place: median(some) if some else None for place, some in others.items()}


def judged_rows(path: Path) -> dict[str, object]:
    """Return how far our predictions are off the measurements of a CSV file: of all, and by each grouping."""
    rows, refused = rows_of(path)
    trials = by_us(list(map(measured_claim, rows)))
    found = [trial for trial in trials if trial.guesses]
    if not found:
        raise SystemExit("\n".join([f"{path}: no row has a prediction", *refused]))
    groups = [
        {"by": by, "name": name, **summary_of(some)}
        for by in ROW_GROUPINGS
        for name, some in grouped(found, by).items()
    ]
    return {**summary_of(found), "by": groups, "unpredicted": len(trials) - len(found), "refused": refused}


def rows_of(path: Path) -> tuple[tuple[PublishedMeasurement, ...], list[str]]:
    """Return the measurements of a CSV file, and what is wrong with rows that are left out."""
    refused: list[str] = []
    try:
        rows = read_measurements(path.read_text(encoding="utf-8-sig"), refused)
    except (InvalidInput, OSError, UnicodeError) as problem:
        raise SystemExit(f"{path}: {problem}") from None
    return rows, [problem.replace("measurements.csv", path.name) for problem in refused]


def by_us(claims: Sequence[Claim]) -> list[Trial]:
    """Return a trial of each claim with what ships predicts for it, those of like conditions at once."""
    of_conditions: dict[Conditions, list[int]] = defaultdict(list)
    for at, claim in enumerate(claims):
        of_conditions[claim.conditions].append(at)
    guesses: dict[int, Guess] = {}
    for conditions, places in of_conditions.items():
        asked = [(claims[at].case, claims[at].device) for at in places]
        for at, found in zip(places, predict_each(asked, calibrate(), conditions), strict=True):
            if found.time_s:
                guesses[at] = Guess(found.time_s, found.low_s, found.high_s)
    return [
        replace(claim.trial, guesses={OURS: guesses[at]} if at in guesses else {}) for at, claim in enumerate(claims)
    ]


def trials_of_rows(path: Path) -> list[Trial]:
    """Return a trial of each measurement of a CSV file, predicted by what ships and in other ways."""
    rows, refused = rows_of(path)
    for problem in refused:
        print(f"left out: {problem}", file=sys.stderr)
    judged = list(map(measured_claim, rows))
    efficiencies = efficiencies_without([*claims(), *judged])
    return [
        replace(trial, guesses={**trial.guesses, **peers(claim, efficiencies[claim.key, claim.case.operation])})
        for claim, trial in zip(judged, by_us(judged), strict=True)
    ]


def cpu_trials() -> list[Trial]:
    """Return the recorded results of a CPU, each predicted from those of other shapes."""
    results = [
        one for _, one in recorded_results() if one.measurement and (found := _device_of(one)) and found.kind == "cpu"
    ]
    groups = dict.fromkeys((result.case.operation, result.case.shape) for result in results)
    return [trial for group in groups for trial in _without(group, results)]


def _without(group: tuple[str, Shape], results: Sequence[Result]) -> list[Trial]:
    """Return the results of one shape, predicted from those of all others."""
    others = [result for result in results if (result.case.operation, result.case.shape) != group]
    predictor = partial(predict, calibration=calibrated_on(from_results(others, "recorded")))
    trials = []
    for result in results:
        device, measured = _device_of(result), result.measurement
        if (result.case.operation, result.case.shape) == group and device and measured:
            claim = Claim("recorded on a CPU, shapes left out", result.case, device, measured.median_s)
            said = guess(claim, predictor)
            trials.append(replace(claim.trial, guesses={OURS: said} if said else {}))
    return trials


def given_trials(key: str, count: int) -> list[Trial]:
    """Return what is left of a device's measurements, predicted without the device, and given some of them.

    These are chosen as `gpuexplore calibrate` chooses: of every operation and format, spread over times.
    """
    rows = [row for row in published_measurements() if row.spec_key == key]
    without = fitted_without(frozenset({key}))
    known: Calibration = without.keywords["calibration"]
    sizes = [without(*published_call(row), conditions=conditions_of(row)).time_s or 0.0 for row in rows]
    groups = [(row.operation, row.dtype) for row in rows]
    given = set(chosen(list(zip(groups, sizes, strict=True)), count))
    seen = (each for some in known.observations.values() for each in some)
    own = from_measured([rows[at] for at in sorted(given)], known.gpus)
    ways = {OURS: without, GIVEN: partial(predict, calibration=calibrated_on([*seen, *own], known.gpus))}
    rest = [measured_claim(row) for at, row in enumerate(rows) if at not in given]
    guesses = [{way: said for way, ask in ways.items() if (said := guess(claim, ask))} for claim in rest]
    return [replace(claim.trial, guesses=said) for claim, said in zip(rest, guesses, strict=True)]


def _print_given(count: int) -> None:
    rows = Counter(row.spec_key for row in published_measurements())
    found = {key: given_trials(key, count) for key, number in rows.items() if number >= FEWEST}
    print(f"given {count} measurements of each left-out device: median error and intervals that hold, of the rest")
    ratios = []
    for key, trials in found.items():
        before, after = errors_of(trials, OURS), errors_of(trials, GIVEN)
        if before and after and before.held is not None and after.held is not None:
            ratios.append(after.median / before.median)
            print(
                f"{key:18} {after.count:4} rows  {before.median:6.1%} -> {after.median:6.1%} x {ratios[-1]:.2f}  "
                f"{before.held:4.0%} -> {after.held:4.0%}"
            )
    whole = [trial for trials in found.values() for trial in trials]
    print(f"median over devices: x {median(ratios):.2f}\n{table(whole, 'operation')}")


def as_json(trials: Sequence[Trial], groupings: Sequence[str]) -> str:
    """Return the errors of each way in each group, and every trial, as JSON."""
    errors = {
        by: {
            name: {way: asdict(found) for way in ways_of(some) if (found := errors_of(some, way))}
            for name, some in grouped(trials if by == "origin" else of_gpus(trials), by).items()
        }
        for by in groupings
    }
    return json.dumps({"errors": errors, "trials": [asdict(trial) for trial in trials]})


if __name__ == "__main__":
    main()
