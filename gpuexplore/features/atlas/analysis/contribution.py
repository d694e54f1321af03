"""A stranger's recording: the marks of invented rows, and what it would change in the atlas and in predictions."""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isclose
from pathlib import Path

import gpuexplore
from gpuexplore import recorded
from gpuexplore.analysis.prediction import arithmetic, calibrate, predict, roofs
from gpuexplore.analysis.prediction.request import as_measured, chosen
from gpuexplore.analysis.utilization.best_results import is_ranked
from gpuexplore.core import Case, Device, InvalidInput, Measurement, Result, format_seconds, median
from gpuexplore.hardware import GpuFacts, row_of, table_device
from gpuexplore.hardware.variants import choose
from gpuexplore.operations import operation_named
from gpuexplore.recorded import Recording, validate

FEWEST_SAMPLES = 5  # from which on their spread says something
ROUNDED = 1e-6  # relative difference of two figures that are the same


@dataclass(frozen=True, slots=True)
class _Contribution:
    """A recording that may become part of the package, and what it changes.

    Attributes:
        points: of each operation, on devices of the table.
        error: median left-out error of its results before and after, fractions; None where too few can be predicted.
        width: median ratio of the ends of their intervals, before and after.
        judged: results that were left out.
    """

    recording: Recording
    points: Counter[str]
    error: tuple[float, float] | None
    width: tuple[float, float] | None
    judged: int


def contribution(path: Path) -> _Contribution:
    """Return what the recording in a file changes.

    Raises:
        InvalidInput: it is not valid, or bears marks of invention, a sentence each.
    """
    problems = list(_contradictions(path))
    recording = validate(path) if not problems else None
    problems += _inventions(recording) if recording else []
    if problems or recording is None:
        raise InvalidInput("\n".join(problems))
    known = [result for result in recording.results if is_ranked(result) and result.environment]
    points = Counter(result.case.operation for result in known if (device := _device(result)) and row_of(device))
    groups = [
        ((result.case.operation, result.case.dtype, result.case.implementation), _time_s(result)) for result in known
    ]
    given = set(chosen(groups, len(known) // 2))
    rest = [result for at, result in enumerate(known) if at not in given]
    calibrations = calibrate(), calibrate([known[at] for at in sorted(given)])
    found = [
        [
            (abs(said.time_s / _time_s(result) - 1), said.high_s / said.low_s)
            for result in rest
            if (device := _device(result))
            and (said := predict((call := as_measured(result))[0], device, calibration, call[1])).time_s
            and said.low_s
            and said.high_s
        ]
        for calibration in calibrations
    ]
    if not found[0]:
        return _Contribution(recording, points, None, None, 0)
    errors, widths = ([median([pair[at] for pair in pairs]) for pairs in found] for at in (0, 1))
    return _Contribution(recording, points, (errors[0], errors[1]), (widths[0], widths[1]), len(found[0]))


def _device(result: Result) -> Device | None:
    return result.environment.device if result.environment else None


def _time_s(result: Result) -> float:
    return result.measurement.median_s if result.measurement else 0.0


def _contradictions(path: Path) -> Iterator[str]:
    """Yield where a line states a median or an interval that is not that of its samples."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[1:]
        stated = [(number, json.loads(line).get("measurement") or {}) for number, line in enumerate(lines, start=2)]
        rows = [
            (number, row, Measurement(tuple(row["samples_s"]), None)) for number, row in stated if row.get("samples_s")
        ]
    except (OSError, ValueError, TypeError, AttributeError, InvalidInput):
        return  # `validate` says it better
    for number, row, measured in rows:
        claimed = row.get("median_s")
        if claimed is not None and not isclose(claimed, measured.median_s, rel_tol=ROUNDED):
            yield (
                f"{path.name}, line {number}: states a median of {format_seconds(claimed)}; that of its samples is "
                f"{format_seconds(measured.median_s)}"
            )
        ends = row.get("ci95_s")
        if ends is not None and not ends[0] <= measured.median_s <= ends[1]:
            yield (
                f"{path.name}, line {number}: its interval from {format_seconds(ends[0])} to {format_seconds(ends[1])} "
                f"does not contain the median {format_seconds(measured.median_s)}"
            )


def _inventions(recording: Recording) -> list[str]:
    """Return why the numbers of a valid recording were not measured, a sentence each."""
    measured = [result for result in recording.results if result.measurement]
    found = [sentence for device in recording.provenance.devices if (sentence := _wrong_facts(device))]
    for result in measured:
        found += filter(None, (_below_a_roof(result), _too_smooth(result)))
    return [f"{recording.name}: {sentence}" for sentence in (*found, *_copied(measured), *_proportional(measured))]


def _words(case: Case) -> str:
    return f"{case.operation} {case.shape} {case.dtype} {case.implementation}"


def _wrong_facts(device: Device) -> str | None:
    """Return how the facts of a device contradict its row of the table."""
    row = row_of(device)
    if row is None:
        return None
    name = device.name
    seen, why = choose(GpuFacts(name, memory_bytes=device.memory_bytes, multiprocessors=device.cores))
    if seen is None or seen.key != row.key:
        return f"{name} is not {row.key} of the table: {seen.key if seen else why}"
    if row.compute_capability and device.compute_capability not in {None, row.compute_capability}:
        return f"{name} states compute capability {device.compute_capability}, the table {row.compute_capability}"
    listed = {(peak.dtype, peak.unit): peak.flop_per_s for peak in table_device(row.key).peaks}
    for peak in device.peaks:
        rate = listed.get((peak.dtype, peak.unit))
        if peak.kind == "datasheet" and rate and not isclose(rate, peak.flop_per_s, rel_tol=0.1):
            return f"{name} states a {peak.dtype} peak of {peak.flop_per_s:.4g} FLOP/s, the table {rate:.4g} FLOP/s"
    return None


def _below_a_roof(result: Result) -> str | None:
    device = _device(result)
    if device is None:
        return None
    device = table_device(row.key) if (row := row_of(device)) else device
    for roof in roofs(result.case, device, arithmetic(result.case, device).peak):
        if _time_s(result) < roof.least_s:
            least = f"{format_seconds(roof.least_s)}, the least by its {roof.bound} limit"
            return f"{_words(result.case)} takes {format_seconds(_time_s(result))}, below {least}"
    return None


def _too_smooth(result: Result) -> str | None:
    samples = result.measurement.samples_s if result.measurement else ()
    if len(samples) < FEWEST_SAMPLES:
        return None
    if max(samples) - min(samples) <= ROUNDED * min(samples):
        return f"{_words(result.case)}: its {len(samples)} samples have no spread, all {format_seconds(samples[0])}"
    steps = [after - before for before, after in pairwise(samples)]
    if max(steps) - min(steps) <= 1e-3 * max(map(abs, steps)):
        return f"{_words(result.case)}: its {len(samples)} samples change by the same step every time"
    return None


def _copied(measured: Sequence[Result]) -> Iterator[str]:
    """Yield which results have the samples of another one, or a multiple of them."""
    seen: dict[tuple[float, ...], Case] = {}
    for result in measured:
        samples = result.measurement.samples_s if result.measurement else ()
        if len(samples) < FEWEST_SAMPLES:
            continue
        form = tuple(round(sample / samples[0], 6) for sample in samples)
        if len(set(form)) > 2 and (other := seen.setdefault(form, result.case)) != result.case:
            yield f"{_words(result.case)} has the samples of {_words(other)}, or a multiple of them"


def _proportional(measured: Sequence[Result]) -> Iterator[str]:
    """Yield which medians are proportional to the work over sizes, as no device's are: launches and caches differ."""
    groups: dict[tuple[str, str, str], list[tuple[int, float]]] = defaultdict(list)
    for result in measured:
        case = result.case
        work = operation_named(case.operation).flop_count(case.shape)
        groups[case.operation, case.dtype, case.implementation].append((work, _time_s(result)))
    for names, pairs in groups.items():
        rates = [work / time_s for work, time_s in pairs if work]
        few = 3
        if len(rates) >= few and max(pairs)[0] >= 4 * min(pairs)[0] and max(rates) <= (1 + 1e-3) * min(rates):
            yield f"{' '.join(names)}: the medians of {len(rates)} sizes are exactly proportional to their FLOPs"


def written(found: _Contribution, path: Path) -> Path:
    """Copy a recording into the package's data, under a name that says what it is, and return where.

    Raises:
        InvalidInput: this is no checkout, or a file of that name is there.
    """
    if not (Path(gpuexplore.__file__).parents[1] / ".git").exists():
        raise InvalidInput("this is no git checkout of gpuexplore: clone the repository, and add the recording there")
    words = [*(device.name for device in found.recording.provenance.devices[:1]), *found.points]
    name = path.stem if path.stem != "recording" else "-".join(words)
    target = recorded.FOLDER / f"{re.sub(r'[^a-z0-9_]+', '-', name.lower()).strip('-')}.jsonl"
    if target.exists():
        raise InvalidInput.of("name", target.name, "a new one: recordings are not overwritten")
    target.write_bytes(path.read_bytes())
    return target
