"""Results as files: CSV, JSON and Parquet."""

import json
from collections.abc import Callable, Mapping
from io import BytesIO

from gpuexplore.analysis.model import RunAnalysis
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.charts.frame import to_frame
from gpuexplore.model import Experiment


def _csv(_: Experiment, analysis: RunAnalysis) -> bytes:
    return bytes(to_frame(analysis).to_csv(index=False), "utf8")


def _json(experiment: Experiment, analysis: RunAnalysis) -> bytes:
    return bytes(json.dumps(run_report(experiment, analysis), indent=2, allow_nan=False), "utf8")


def _parquet(_: Experiment, analysis: RunAnalysis) -> bytes:
    file = BytesIO()
    to_frame(analysis).to_parquet(file, index=False)
    return file.getvalue()


EXPORTS: Mapping[str, Callable[[Experiment, RunAnalysis], bytes]] = {
    ".json": _json,
    ".csv": _csv,
    ".parquet": _parquet,
}


def export(suffix: str, experiment: Experiment, analysis: RunAnalysis) -> bytes:
    """Return the content of a file of the type `suffix`, a key of EXPORTS."""
    return EXPORTS[suffix](experiment, analysis)
