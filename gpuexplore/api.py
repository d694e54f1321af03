"""The Python API: the same requests, judged by the same rules, measured by the same core, in this process."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.prediction import Prediction
from gpuexplore.analysis.prediction.request import Question, predictions
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.comparison import comparison_for
from gpuexplore.analysis.run.estimate import check_limits
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.devices import discover, ensure_ceiling, peaks_json
from gpuexplore.jobs.locks import device_lock
from gpuexplore.measure.sweep import sweep
from gpuexplore.model import Case, Device, Experiment, Result
from gpuexplore.request import Request, resolve, split

if TYPE_CHECKING:
    import pandas as pd

Words = str | Iterable[object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run gave: the results, and the ways to look at them."""

    experiment: Experiment
    results: tuple[Result, ...]

    def analyze(self, baseline: str = "", peak: str = "") -> RunAnalysis:
        """Return everything that follows from the results.

        Args:
            baseline: of the speedups: an implementation or a dtype of the run; empty for the default.
            peak: kind of peak of MFU and bandwidth utilization, as `gpuexplore run --peak`; empty for the default.

        Raises:
            InvalidInput: the run has no such baseline, or there is no such kind of peak.
        """
        return analyze(self.results, comparison_for(self.experiment, baseline, peak))

    def to_pandas(self, baseline: str = "", peak: str = "") -> "pd.DataFrame":
        """Return one row per case, compared as in `analyze`; SI base units, unknown is missing."""
        from gpuexplore.charts.frame import to_frame

        return to_frame(self.analyze(baseline, peak))

    def to_dict(self, baseline: str = "", peak: str = "") -> dict[str, Any]:
        """Return the object that `gpuexplore run --json` prints, compared as in `analyze`."""
        return run_report(self.experiment, self.analyze(baseline, peak))

    def __str__(self) -> str:
        return self.analyze().summary.headline


def run(operation: str, *, sizes: Words = "", shapes: Words = "", **settings: Words | float | None) -> Outcome:
    """Measure `operation` in this process and return the results.

    Args:
        operation: a name that `gpuexplore list` prints.
        sizes: numbers, or text like ``256:8192:x2``; empty for the operation's own sweep.
        shapes: texts like ``m=512,k=64,n=512`` instead of sizes.
        **settings: `dtypes`, `implementations`, `devices` (names or lists of names), `cache`, `data`,
            `threads`, `budget` (seconds of sampling for one case) and `block` (``16,16``, of CUDA kernels).

    Raises:
        InvalidInput: something asked for does not exist or does not fit; names it and what is accepted.
        TypeError: an unknown setting.
    """
    texts = {name: _text(value) for name, value in settings.items()}
    request = Request(operation=operation, sizes=_text(sizes), shapes=_text(shapes, ";"), **texts)
    here = discover()
    experiment = resolve(request, [device.id for device in here])
    check_limits(experiment, here)
    used = [device for device in here if device.id in experiment.devices]
    return Outcome(experiment, _measure(experiment, used))


def predict(
    operation: str, gpus: Words, *, sizes: Words = "", shapes: Words = "", **further: Words
) -> list[Prediction]:
    """Return how long `operation` would take on local or hypothetical GPUs, with intervals.

    Args:
        operation: a name that `gpuexplore list` prints.
        gpus: driver names or keys of `specs`, or ids of this machine's devices.
        sizes: numbers, or text like ``256:8192:x2``.
        shapes: texts like ``m=512,k=64,n=512`` instead of sizes.
        **further: `dtypes`, fp8 among them, and `implementation` (default: the vendor's library).

    Raises:
        InvalidInput: something asked for does not exist; names it and what is accepted.
        TypeError: an unknown argument.
    """
    texts = {name: _text(value) for name, value in further.items()}
    asked = Question(operation, _text(gpus), sizes=_text(sizes), shapes=_text(shapes, ";"), **texts)
    here = [ensure_ceiling(device) if device.id in split(asked.gpus) else device for device in discover()]
    return list(predictions(asked, here))


def specs(name: str) -> dict[str, Any]:
    """Return the peaks of an accelerator by its driver name, as `gpuexplore specs NAME --json` does."""
    return peaks_json(name)


def _measure(experiment: Experiment, used: Sequence[Device]) -> tuple[Result, ...]:
    results: dict[Case, Result] = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event

    ready = [ensure_ceiling(device, experiment.options.threads) for device in used]
    sweep(experiment, ready, report=keep, turn=device_lock)
    return tuple(results[case] for case in experiment.cases())


def _text(value: Words | float | None, separator: str = ",") -> str:
    """Return names, numbers or text as the text a user would type."""
    if value is None:
        return ""
    if isinstance(value, str | int | float):
        return str(value)
    return separator.join(map(str, value))
