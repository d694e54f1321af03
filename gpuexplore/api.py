"""The Python API: the same requests, judged by the same rules, measured by the same core, in this process."""

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.prediction import Prediction
from gpuexplore.analysis.prediction.request import PredictionRequest, predictions
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.estimate import check_limits
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.utilization.best_results import comparison_for
from gpuexplore.core import Case, Device, Experiment, InvalidInput, Result, Words, default_title, name_typed, text_typed
from gpuexplore.hardware import discover, ensure_ceiling, first_dtypes, peaks_json, readings
from gpuexplore.jobs.locks import device_lock
from gpuexplore.measure.runner import sweep
from gpuexplore.operations import Operation, additions, operation_named
from gpuexplore.request import Request, listed, resolve
from gpuexplore.shapes import split

if TYPE_CHECKING:
    import pandas as pd

    from gpuexplore.analysis.compare import RunComparison, Side

SETTINGS = tuple(field.name for field in fields(Request) if field.name not in ("operation", "sizes", "shapes"))


@dataclass(frozen=True, slots=True, repr=False)
class Outcome:
    """The outcome of a run: its results, and the ways to look at them.

    Attributes:
        experiment: what was asked for.
        results: one of every case.
        baseline: what the results are compared with where nothing else is asked for; empty for the default.
        peak: the same for MFU and bandwidth utilization.
    """

    experiment: Experiment
    results: tuple[Result, ...]
    baseline: str = ""
    peak: str = ""

    def analyze(self, baseline: str = "", peak: str = "") -> RunAnalysis:
        """Return everything that follows from the results.

        Args:
            baseline: of the speedups: an implementation or a dtype of the run; empty for the default.
            peak: kind of peak of MFU and bandwidth utilization, as `gpuexplore run --peak`; empty for the default.

        Raises:
            InvalidInput: the run has no such baseline, or there is no such kind of peak.
        """
        name_typed("baseline", baseline, empty=True), name_typed("peak", peak, empty=True)
        comparison = comparison_for(self.experiment, baseline or self.baseline, peak or self.peak)
        return analyze(self.results, comparison)

    def to_pandas(self, baseline: str = "", peak: str = "") -> "pd.DataFrame":
        """Return one row per case, compared as in `analyze`; SI base units, unknown is missing."""
        from gpuexplore.charts.series import to_frame

        return to_frame(self.analyze(baseline, peak))

    def to_dict(self, baseline: str = "", peak: str = "") -> dict[str, Any]:
        """Return the object that `gpuexplore run --json` prints, compared as in `analyze`."""
        return run_report(self.experiment, self.analyze(baseline, peak))

    def __str__(self) -> str:
        return self.analyze().summary.headline

    def __repr__(self) -> str:
        return f"<{default_title(self.experiment)}: {len(self.results)} results. {self}>"

    def _repr_html_(self) -> str | None:
        """Return what a notebook shows: sentence, chart and table; None without what draws them."""
        try:
            from gpuexplore.charts.exports.exported import Exported
            from gpuexplore.charts.exports.html_report import html_cell
        except ModuleNotFoundError:
            return None
        return html_cell(Exported(self.experiment, self.analyze()))


def run(
    operation: str | Operation,
    *,
    sizes: Words | None = None,
    shapes: Words | None = None,
    **settings: Words | float | None,
) -> Outcome:
    """Measure `operation` in this process and return the results.

    Args:
        operation: a name that `gpuexplore list` prints, or what `operation` declared.
        sizes: numbers, or text like ``256:8192:x2``; None for the operation's own sweep.
        shapes: texts like ``m=512,k=64,n=512`` instead of sizes.
        **settings: `dtypes`, `implementations`, `devices` (names or lists of names), `cache`, `data`,
            `threads`, `budget` (seconds of sampling for one case) and `block` (``16,16``, of CUDA kernels).
            Among `implementations`, functions of your own (`function(*inputs) -> output`) and paths of their files.
            Fresh processes (`repeat`) are for `gpuexplore run` and the app: this one measures in its own.

    Raises:
        InvalidInput: something asked for does not exist or does not fit; names it and what is accepted.
        TypeError: an unknown setting.
    """
    experiment, used = experiment_asked(operation, {**settings, "sizes": sizes, "shapes": shapes})
    return Outcome(experiment, measured_in_process(experiment, used))


def predict(
    operation: str, gpus: Words, *, sizes: Words = "", shapes: Words = "", **further: Words
) -> list[Prediction]:
    """Return how long `operation` would take on local or hypothetical GPUs, with intervals.

    Args:
        operation: a name that `gpuexplore list` prints.
        gpus: driver names or keys of `specs`, or ids of this machine's devices.
        sizes: numbers, or text like ``256:8192:x2``.
        shapes: texts like ``m=512,k=64,n=512`` instead of sizes.
        **further: `dtypes`, fp8 among them, `implementation` (default: the vendor's library), and `calls`, how they
            follow one another: ``graph``, ``queued`` (default) or ``single``.

    Raises:
        InvalidInput: something asked for does not exist; names it and what is accepted.
        TypeError: an unknown argument.
    """
    texts = texts_of("predict", ("dtypes", "implementation", "calls"), further)
    if not texts.get("dtypes", "given"):
        del texts["dtypes"]  # as where nothing is given
    asked = PredictionRequest(
        name_typed("operation", operation),
        text_typed("gpus", gpus),
        sizes=text_typed("sizes", sizes),
        shapes=text_typed("shapes", shapes, ";"),
        **texts,
    )
    here = [ensure_ceiling(device) if device.id in split(asked.gpus) else device for device in discover()]
    warn_of_readings(asked.gpus)
    return list(predictions(asked, here))


def runs(text: str = "", *, before: int | None = None, limit: int = 50, **filters: str) -> "pd.DataFrame":
    """Return what was measured before, one row a run, the newest first, as `gpuexplore runs --json` does.

    Args:
        text: words of title, tags, note, device or id.
        before: only runs with a smaller `number`: the next page.
        limit: of runs, up to 200.
        **filters: `operation`, a name that `gpuexplore list` prints; `device`, words of the name of the device it was
            measured on; `tag`, one that the run has.

    Raises:
        InvalidInput: something asked for does not exist; names it and what is accepted.
        TypeError: an unknown filter.
        StoreUnavailable: the database cannot be used.
    """
    import pandas as pd

    from gpuexplore.jobs.run_sources import ROW, listed_with_summaries, row_of
    from gpuexplore.store import Wanted, open_store

    accepted = ("operation", "device", "tag")
    for name in filters:
        if name not in accepted:
            raise TypeError(f"runs() has no filter {name!r}: expected {', '.join(accepted)}")
    texts = {name: name_typed(name, value) for name, value in filters.items()}
    if "operation" in texts:
        operation_named(texts["operation"])
    if isinstance(limit, bool) or not isinstance(limit, int):
        raise InvalidInput.of("limit", limit, "whole numbers from 1")
    with open_store() as store:
        wanted = Wanted(text=name_typed("text", text, empty=True), **texts)
        found = listed_with_summaries(store, wanted, before=before, limit=limit)
    return pd.DataFrame([row_of(run) for run in found], columns=list(ROW))


def compare(before: "Outcome | str", after: "Outcome | str") -> "RunComparison":
    """Return what follows from two runs, matched by case: what got faster or slower, and what is inconclusive.

    Args:
        before: what `run` returned, a run's id, or the path of a recording.
        after: what is compared with it.

    Raises:
        InvalidInput, NotFound: one of both is no run.
        StoreUnavailable: the database cannot be used.
    """
    from gpuexplore.analysis.compare import compare_runs

    return compare_runs(_side("before", before), _side("after", after))


def specs(name: str) -> dict[str, Any]:
    """Return the peaks of an accelerator by its driver name, as `gpuexplore specs NAME --json` does.

    Raises:
        InvalidInput: the name is no text.
    """
    return peaks_json(name_typed("name", name))


def experiment_asked(operation: str | Operation, settings: Mapping[str, Any]) -> tuple[Experiment, Sequence[Device]]:
    """Return the experiment that is asked for by the settings of `run`, and the devices it uses."""
    given = {name: value for name, value in settings.items() if value is not None}
    if isinstance(given.get("implementations"), list | tuple):
        for module in additions():
            given["implementations"] = module.named(given["implementations"])
    shapes = given.pop("shapes", None)
    texts = {name: listed(name, text) for name, text in texts_of("run", (*SETTINGS, "sizes"), given).items()}
    if shapes is not None:
        texts["shapes"] = listed("shapes", text_typed("shapes", shapes, ";"))
    name = operation.name if isinstance(operation, Operation) else name_typed("operation", operation)
    here = discover()
    request = Request(operation=name, **{"dtypes": first_dtypes(here, texts.get("devices", ""))} | texts)
    experiment = resolve(request, [device.id for device in here])
    check_limits(experiment, here)
    return experiment, [device for device in here if device.id in experiment.devices]


def _side(what: str, source: "Outcome | str") -> "Side":
    from gpuexplore.analysis.compare import Side

    if isinstance(source, Outcome):
        return Side(default_title(source.experiment), source.results)
    name = name_typed(what, source)
    from gpuexplore.jobs.run_sources import side_named
    from gpuexplore.store import open_store

    with open_store() as store:
        return side_named(store, name)


def measured_in_process(experiment: Experiment, used: Sequence[Device]) -> tuple[Result, ...]:
    """Return the results of every case, measured in this process."""
    results: dict[Case, Result] = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event

    ready = [ensure_ceiling(device, experiment.options.threads) for device in used]
    sweep(experiment, ready, report=keep, lock=device_lock)
    return tuple(results[case] for case in experiment.cases())


def warn_of_readings(gpus: str) -> None:
    """Say how names of GPUs that leave something open were read, where a caller of this module's caller sees it."""
    for reading in readings(split(gpus)):
        warnings.warn(reading, stacklevel=3)


def texts_of(function: str, accepted: Iterable[str], given: Mapping[str, Words | float | None]) -> dict[str, str]:
    """Return the settings as the text a user would type."""
    for name in given:
        if name not in accepted:
            raise TypeError(f"{function}() has no setting {name!r}: expected {', '.join(accepted)}")
    return {name: text_typed(name, value) for name, value in given.items()}
