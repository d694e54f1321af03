"""Results as files: tables, text for a paper or a chat, a page to send, and what other harnesses read."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from gpuexplore.analysis.model import AnalyzedResult
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.charts.exports.exported import Exported
from gpuexplore.charts.exports.html_report import html_report, latex, markdown
from gpuexplore.charts.series import to_frame
from gpuexplore.core import Environment, Measurement, encode, quantile, require
from gpuexplore.recorded.harnesses import CASE

__all__ = ["EXPORTS", "Exported", "export", "format_of"]


@dataclass(frozen=True, slots=True)
class _ExportFormat:
    """A type of file.

    Attributes:
        label: what a button calls it.
        mime: its media type.
        write: makes the content.
    """

    label: str
    mime: str
    write: Callable[[Exported], bytes]


def export(suffix: str, exported: Exported) -> bytes:
    """Return the content of a file of the type `suffix`, a key of EXPORTS."""
    return EXPORTS[suffix].write(exported)


def format_of(path: Path) -> str:
    """Return which of EXPORTS the name of a file asks for: the longest that it ends in.

    Raises:
        InvalidInput: none; names those there are.
    """
    found = [suffix for suffix in EXPORTS if path.name.endswith(suffix)]
    require(found, "file type", path.suffix or path.name, EXPORTS)
    return max(found, key=len)


def _csv(exported: Exported) -> bytes:
    return bytes(to_frame(exported.analysis, exported.run).to_csv(index=False), "utf8")


def _json(exported: Exported) -> bytes:
    report = run_report(exported.experiment, exported.analysis, exported.run)
    return bytes(json.dumps(report, indent=2, allow_nan=False), "utf8")


def _parquet(exported: Exported) -> bytes:
    file = BytesIO()
    to_frame(exported.analysis, exported.run).to_parquet(file, index=False)
    return file.getvalue()


# Files of other harnesses, pyperf's JSON and pytest-benchmark's, as far as results map to them. What they do not know
# is left out: first passes, cases without a time, flags, checks and peaks. What pyperf calls a run is a process of
# ours. Times are seconds per call.


def _pyperf(exported: Exported) -> bytes:
    """Return what `pyperf compare_to` and `pyperf show` read: one benchmark a case, one run a process."""
    found = [
        {
            "metadata": {
                "name": _name(analyzed),
                "unit": "second",
                "loops": analyzed.measurement.batch,
                CASE: json.dumps(_case(analyzed)),
            },
            "runs": _runs(analyzed, analyzed.measurement),
        }
        for analyzed in exported.analysis.results
        if analyzed.measurement
    ]
    version = "1.0"
    metadata = {"perf_version": version, **_machine(exported.environment)}
    return _dumped({"version": version, "metadata": metadata, "benchmarks": found})


def _pytest_benchmark(exported: Exported) -> bytes:
    """Return what `pytest-benchmark compare` reads: one benchmark a case, grouped by size and dtype."""
    environment = exported.environment
    found = [
        {
            "group": f"{analyzed.case.shape} {analyzed.case.dtype}",
            "name": _name(analyzed),
            "fullname": f"gpuexplore::{_name(analyzed)}",
            "params": {"shape": str(analyzed.case.shape), "dtype": analyzed.case.dtype},
            "param": f"{analyzed.case.shape}-{analyzed.case.dtype}",
            "extra_info": {
                "flags": [flag.name for flag in analyzed.result.flags],
                "mfu": analyzed.mfu,
                CASE: _case(analyzed),
            },
            "options": {"disable_gc": True, "timer": "gpuexplore", "warmup": True},
            "stats": _stats(analyzed.measurement),
        }
        for analyzed in exported.analysis.results
        if analyzed.measurement
    ]
    return _dumped(
        {
            "machine_info": _machine(environment),
            "commit_info": {"id": environment.commit if environment else None, "dirty": False},
            "benchmarks": found,
            "datetime": environment.started_utc if environment else None,
            "version": "5.2.3",
        }
    )


def _runs(analyzed: AnalyzedResult, measurement: Measurement) -> list[dict[str, Any]]:
    environment = analyzed.result.environment
    about = {"date": environment.started_utc[:19].replace("T", " ")} if environment else {}
    return [{"metadata": about, "values": list(samples)} for samples in measurement.by_process()]


def _stats(measurement: Measurement) -> dict[str, Any]:
    samples = sorted(measurement.samples_s)
    low = quantile(samples, 0.25)
    high = quantile(samples, 0.75)
    average = fmean(samples)
    deviation = stdev(samples) if len(samples) > 1 else 0.0
    inside = [seconds for seconds in samples if low - 1.5 * (high - low) <= seconds <= high + 1.5 * (high - low)]
    outliers = sum(abs(seconds - average) > deviation for seconds in samples)
    return {
        "min": samples[0],
        "max": samples[-1],
        "mean": average,
        "stddev": deviation,
        "rounds": len(samples),
        "median": measurement.median_s,
        "iqr": high - low,
        "q1": low,
        "q3": high,
        "iqr_outliers": len(samples) - len(inside),
        "stddev_outliers": outliers,
        "outliers": f"{outliers};{len(samples) - len(inside)}",
        "ld15iqr": inside[0],
        "hd15iqr": inside[-1],
        "ops": 1 / average,
        "total": sum(samples),
        "data": list(measurement.samples_s),
        "iterations": measurement.batch,
    }


def _case(analyzed: AnalyzedResult) -> Mapping[str, Any]:
    """Return what other harnesses have no field for, so that `gpuexplore import` reads what was written."""
    measurement = analyzed.measurement
    about = {"processes": list(measurement.processes), "per_round": measurement.per_round} if measurement else {}
    return {"case": encode(analyzed.case), "accuracy": encode(analyzed.result.accuracy), **about}


def _name(analyzed: AnalyzedResult) -> str:
    case = analyzed.case
    return f"{case.operation}[{case.shape}-{case.dtype}-{case.implementation}-{case.device}]"


def _machine(environment: Environment | None) -> Mapping[str, Any]:
    if environment is None:
        return {}
    return {
        "cpu_model_name": environment.device.title,
        "platform": environment.platform,
        "python_version": environment.python,
        "gpuexplore_version": environment.app_version,
        **{f"{name}_version": version for name, version in environment.libraries.items()},
    }


def _dumped(value: Mapping[str, Any] | Sequence[Any]) -> bytes:
    return bytes(json.dumps(value, indent=1, allow_nan=False), "utf8")


EXPORTS: Mapping[str, _ExportFormat] = {
    ".html": _ExportFormat("Report", "text/html", html_report),
    ".json": _ExportFormat("JSON", "application/json", _json),
    ".csv": _ExportFormat("CSV", "text/csv", _csv),
    ".parquet": _ExportFormat("Parquet", "application/vnd.apache.parquet", _parquet),
    ".md": _ExportFormat("Markdown", "text/markdown", markdown),
    ".tex": _ExportFormat("LaTeX", "application/x-tex", latex),
    ".pyperf.json": _ExportFormat("pyperf", "application/json", _pyperf),
    ".pytest-benchmark.json": _ExportFormat("pytest-benchmark", "application/json", _pytest_benchmark),
}
