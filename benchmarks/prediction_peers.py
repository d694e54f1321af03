"""Other ways to predict a time, for the benchmark of predictions: roofline, NVIDIA's heuristics, NeuSight.

nvMatmulHeuristics (`pip install nvidia-matmul-heuristics`, used where it is found) states the seconds of a product's
kernel for the kernel that it picks itself, on NVIDIA GPUs since the A100: no launch, and for float32 without TF32.

benchmarks/neusight.csv holds what NeuSight (S. Lee, A. Phanishayee, D. Mahajan, ASPLOS 2025, MIT licence) predicts for
the operations of networks, in its own words: scripts/asplos/results/prediction of sitar-lab/NeuSight, read in the copy
https://github.com/trsharm25/NeuSight at bca31fb1. It was trained on the A100 PCIe 40GB, not on the H100 and the L4.
"""

import csv
from collections.abc import Mapping
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any

from gpuexplore.analysis.prediction.calls import arithmetic
from gpuexplore.core.dtypes import format_named
from gpuexplore.core.model import Case, Device
from gpuexplore.operations import operation_named

HEURISTICS = "nvMatmulHeuristics"
PRODUCTS = ("matmul", "linear", "batched_matmul")
# A and B, the sum, C and D: half, bfloat16, single, double, TF32 for F, e4m3 for Q, whose output is bfloat16.
PRECISIONS: Mapping[str, str] = MappingProxyType(
    {"fp64": "DDD", "fp32": "SSS", "tf32": "SFS", "bf16": "TST", "fp16": "HSH", "fp8": "QST"}
)
GPUS: Mapping[str, str] = MappingProxyType(
    {
        "a100-sxm4-80gb": "A100_SXM_80GB",
        "a100-pcie-80gb": "A100_PCIE_80GB",
        "a10": "A10_PCIE",
        "a30": "A30_PCIE",
        "a40": "A40_PCIE",
        "rtx-3090": "RTX_3090",
        "rtx-a6000": "RTX_A6000",
        "l4": "L4",
        "l20": "L20",
        "l40": "L40",
        "l40s": "L40S",
        "rtx-4090": "RTX_4090",
        "rtx-6000-ada": "RTX_6000_ADA",
        "h100-sxm5-80gb": "H100_SXM",
        "h100-pcie-80gb": "H100_PCIE",
        "h100-nvl": "H100_NVL",
        "h200-sxm-141gb": "H200_SXM",
        "h20": "H20_SXM",
        "b200-sxm-180gb": "B200",
        "gb200": "GB200_NVL",
        "gb300": "GB300_NVL",
        "rtx-5080": "RTX_5080",
        "rtx-5090": "RTX_5090",
        "rtx-pro-6000-blackwell": "RTX_PRO_6000",
    }
)


def roofline_s(case: Case, device: Device) -> float | None:
    """Return max(FLOPs / peak, bytes / bandwidth) in seconds; None where a figure of the device is unknown."""
    operation, peak = operation_named(case.operation), arithmetic(case, device).peak
    flop_count = operation.flop_count(case.shape)
    if device.bandwidth is None or (flop_count and peak is None):
        return None
    memory_s = operation.byte_count(case.shape, format_named(case.dtype)) / device.bandwidth.bytes_per_s
    return max(memory_s, flop_count / peak.flop_per_s) if peak else memory_s


def heuristics_s(case: Case, device: Device) -> float | None:
    """Return what nvMatmulHeuristics states for a product, seconds; None for what it does not know, or without it."""
    gpu, products = GPUS.get(device.spec_key or ""), operation_named(case.operation).products
    if case.operation not in PRODUCTS or products is None or gpu is None or find_spec(HEURISTICS) is None:
        return None
    if arithmetic(case, device).support != "native":
        return None
    library, (product,) = import_module(HEURISTICS), products(case.shape)
    layout = library.NvMatmulHeuristicsMatmulLayout.NN_ROW_MAJOR
    estimator = _estimator(gpu)
    problem = estimator.makeNvMatmulHeuristicsProblem(product.m, product.n, product.k, layout, product.batch)
    found = estimator.get(problem, 1, precision=PRECISIONS[case.dtype])
    return float(found[0]["runtime"]) or None if found else None


@cache
def _estimator(gpu: str) -> Any:
    library = import_module(HEURISTICS)
    return library.NvMatmulHeuristicsInterfaceEx(
        backend=library.NvMatmulHeuristicsTarget.GENERIC,
        flags=library.NvMatmulHeuristicsFlags.PERF_MODEL_BASED_AUTO_TUNING,
        gpu=library.NvMatmulHeuristicsNvidiaGpu[gpu],
    )


def neusight_s(case: Case, device: Device, url: str | None) -> float | None:
    """Return what NeuSight predicts for the operation of a network that a row's link names, seconds; None without."""
    network = (url or "").rsplit("/", 1)[-1].removesuffix(".csv")
    return _neusight().get((device.spec_key or "", network, case.operation, _text(case)))


@cache
def _neusight() -> Mapping[tuple[str, str, str, str], float]:
    with (Path(__file__).parent / "neusight.csv").open(encoding="utf-8") as lines:
        rows = list(csv.DictReader(lines))
    return {(row["gpu_key"], row["network"], row["operation"], row["shape"]): float(row["time_s"]) for row in rows}


def _text(case: Case) -> str:
    return ";".join(f"{axis}={case.shape[axis]}" for axis in operation_named(case.operation).axes)
