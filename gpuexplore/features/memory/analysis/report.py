"""The memory of a model as `gpuexplore memory --json` prints it."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from gpuexplore.features.memory.analysis.fits import Fit, Reserve
from gpuexplore.features.memory.analysis.setup import Serving, Training
from gpuexplore.features.memory.analysis.training import Memory, Point


def memory_json(memory: Memory, setup: Training | Serving, fits: Sequence[Fit], reserve: Reserve) -> dict[str, Any]:
    """Return one object: the most of each kind at any moment, the peak of all together, and what fits where."""
    return {
        "model": memory.model.name,
        "parameter_count": memory.parameter_count,
        "batch": memory.batch,
        "mode": "training" if isinstance(setup, Training) else "serving",
        "setup": asdict(setup),
        "parameters_bytes": memory.parameters_bytes,
        "gradients_bytes": memory.gradients_bytes,
        "optimizer_bytes": memory.optimizer_bytes,
        "activations_bytes": memory.activations_bytes,
        "kv_cache_bytes": memory.cache_bytes,
        "total_bytes": memory.total_bytes,
        "peak_moment": memory.peak_moment,
        "timeline": [_point_json(point) for point in memory.timeline],
        "reserve": {"context_bytes": reserve.context_bytes, "share": reserve.share},
        "fits": [_fit_json(fit) for fit in fits],
    }


def _point_json(point: Point) -> dict[str, Any]:
    by_kind = {f"{kind.replace(' ', '_').lower()}_bytes": size for kind, size in point.bytes_by_kind.items()}
    return {"moment": point.moment, "phase": point.phase, **by_kind, "total_bytes": point.total_bytes}


def _fit_json(fit: Fit) -> dict[str, Any]:
    return {
        "gpu": fit.gpu.key,
        "name": fit.gpu.name,
        "memory_bytes": fit.gpu.memory_bytes,
        "usable_bytes": fit.usable_bytes,
        "fits": fit.fits,
        "largest_batch": fit.largest_batch,
    }
