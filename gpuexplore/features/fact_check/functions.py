"""Stated times from Python: whether one is possible on a GPU."""

from numbers import Real
from pathlib import Path
from typing import Any

from gpuexplore.analysis.prediction.request import PredictionRequest
from gpuexplore.api import texts_of, warn_of_readings
from gpuexplore.cli.output import content_of
from gpuexplore.core import InvalidInput, Words, name_typed, require
from gpuexplore.features.fact_check.analysis.possible import Possibility
from gpuexplore.features.fact_check.analysis.possible import is_possible as judged_time
from gpuexplore.features.fact_check.analysis.referee import MOST_BYTES, MOST_CLAIMS, rows_of, verdicts_on
from gpuexplore.hardware import discover, ensure_ceiling


def is_possible(
    operation: str, gpu: str, time: float | str | None = None, *, rate: float | str | None = None, **further: Words
) -> Possibility:
    """Return whether a stated time or rate is possible; true unless it is above a limit of the GPU.

    Args:
        operation: a name that `gpuexplore list` prints.
        gpu: a driver name or key of `specs`, or the id of a device of this machine.
        time: of one call: seconds, or text like ``90us``.
        rate: instead of a time: FLOP/s, or text like ``1.2PFLOP/s`` or ``3TB/s``.
        **further: `sizes` or `shapes`, of one case; `dtypes` (default: fp32), `implementation`, and `calls` as of
            `predict`.

    Raises:
        InvalidInput: something asked for does not exist, or there are several cases; names it and what is accepted.
        TypeError: an unknown argument.
    """
    texts = texts_of("is_possible", ("sizes", "shapes", "dtypes", "implementation", "calls"), further)
    asked = PredictionRequest(name_typed("operation", operation), name_typed("gpu", gpu), **{"dtypes": "fp32"} | texts)
    if isinstance(time, bool) or not isinstance(time, str | Real | None):
        raise InvalidInput.of("time", time, "seconds, or text with the unit: 90us")
    if isinstance(rate, bool) or not isinstance(rate, str | Real | None):
        raise InvalidInput.of("rate", rate, "FLOP/s, or text with the unit: 1.2PFLOP/s")
    here = [ensure_ceiling(device) if device.id == asked.gpus else device for device in discover()]
    warn_of_readings(asked.gpus)
    return judged_time(asked, time, here, rate=rate)


def check_claims(source: Any, **defaults: Words | float) -> dict[str, Any]:
    """Return the verdict on each claimed time or rate, as `gpuexplore check --claims FILE --json` prints.

    Args:
        source: path or text of CSV, JSON or JSONL, objects, or a data frame: a claim a row, with `gpu`, `operation`,
            `dtype`, `shape`, and a time (`time_us`, or `time` with its unit) or a rate (`tflops`, `gb_s`).
        **defaults: the same for claims that state none: `gpu`, `operation`, `dtype`, `shape`, `calls`.

    Raises:
        InvalidInput: the source cannot be read. A claim that cannot be is a result with the verdict `invalid`.
    """
    is_frame = hasattr(source, "to_dict")
    rows = source.astype(object).where(source.notna(), None).to_dict("records") if is_frame else source
    if isinstance(source, str | Path):
        is_text = "\n" in str(source) or str(source).lstrip().startswith(("{", "["))
        content = str(source).encode() if is_text else content_of(Path(source), MOST_BYTES)
        require(len(content) <= MOST_BYTES, "file", f"over {MOST_BYTES:,} bytes", f"at most {MOST_BYTES:,}")
        rows = rows_of(content.decode("utf-8", errors="replace"))
    claims = list(rows)
    require(0 < len(claims) <= MOST_CLAIMS, "number of claims", len(claims), f"1 to {MOST_CLAIMS:,}")
    return verdicts_on(claims, defaults)
