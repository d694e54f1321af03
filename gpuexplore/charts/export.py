"""Results as files: CSV, JSON and Parquet."""

import json
from collections.abc import Callable, Mapping, Sequence
from io import BytesIO

from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against
from gpuexplore.charts.frame import to_frame
from gpuexplore.model import Experiment, Result


def _csv(_: Experiment, results: Sequence[Result], against: Against) -> bytes:
    return bytes(to_frame(results, against=against).to_csv(index=False), "utf8")


def _json(experiment: Experiment, results: Sequence[Result], against: Against) -> bytes:
    return bytes(json.dumps(run_report(experiment, results, against=against), indent=2, allow_nan=False), "utf8")


def _parquet(_: Experiment, results: Sequence[Result], against: Against) -> bytes:
    file = BytesIO()
    to_frame(results, against=against).to_parquet(file, index=False)
    return file.getvalue()


EXPORTS: Mapping[str, Callable[[Experiment, Sequence[Result], Against], bytes]] = {
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}


def export(suffix: str, experiment: Experiment, results: Sequence[Result], against: Against = USUAL) -> bytes:
    """Return the content of a file of the type `suffix`, a key of EXPORTS."""
    return EXPORTS[suffix](experiment, results, against)
