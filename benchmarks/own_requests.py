"""First requests: for each page a link of its own for every visitor, and what opening them takes.

Pages that differ cannot be drawn from what others drew: `python -m benchmarks.pages --requests` opens them.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from urllib.parse import urlencode

from benchmarks.server import Served, measuring, opened, serve
from benchmarks.visitor import Visitor
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.features.lessons.lesson import catalog
from gpuexplore.features.model.analysis.models import models
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.hardware.capabilities import CAPABILITIES
from gpuexplore.operations import OPERATIONS
from scripts.app_server import ROOT

Request = Callable[[int], dict[str, str]]
PEER = "benchmarks/peer_charts.py"
NAMES = {PEER: "(three plain charts)"}
FIRST, ALONE = 5, 15  # requests that load what a page needs, and those that are measured one by one
GPUS = tuple(row.key for row in ACCELERATORS)
CUDA_GPUS = tuple(row.key for row in ACCELERATORS if row.compute_capability in CAPABILITIES)
LINKED_GPUS = tuple(row.key for row in ACCELERATORS if row.pcie_bytes_per_s)
KERNELS = tuple(
    (operation.name, kernel.name)
    for operation in OPERATIONS.values()
    for kernel in operation.implementations
    if kernel.hand_written and kernel.geometry
)
STEPS = tuple((name, step.letter) for name in catalog().lessons for step in catalog().lesson(name).steps)
MODELS = tuple(models())
LANGUAGE_MODELS = tuple(model.name for model in models().values() if model.tokens >= 1024)
NAMED_GPUS = tuple(row.key for row in ACCELERATORS if row.memory_bytes and row.compute_capability in CAPABILITIES)


def _what_if(number: int) -> dict[str, str]:
    size = 512 + 16 * number
    gpus = [GPUS[(number * 7 + place * 5) % len(GPUS)] for place in range(1, 6)]
    return {
        "op": "matmul",
        "shape": f"m={size},k={size},n={2 * size}",
        "device": GPUS[number % len(GPUS)],
        "gpus": ",".join(dict.fromkeys(gpus)),
        "baseline": list(FORMATS)[number % 3],
    }


def _kernels(number: int) -> dict[str, str]:
    operation, kernel = KERNELS[number % len(KERNELS)]
    size = OPERATIONS[operation].default_sizes[-1] + number
    return {"op": operation, "impl": kernel, "gpu": CUDA_GPUS[number * 7 % len(CUDA_GPUS)], "shape": str(size)}


def _model(number: int) -> dict[str, str]:
    gpus = [NAMED_GPUS[(number * 7 + place * 5) % len(NAMED_GPUS)] for place in range(2)]
    asked = {"model": LANGUAGE_MODELS[number % len(LANGUAGE_MODELS)], "batch": str(2 + number % 31)}
    return asked | {"gpu": ",".join(gpus), "tokens": str(256 + 8 * number)}


def _memory(number: int) -> dict[str, str]:
    return {"model": MODELS[number % len(MODELS)], "batch": str(8 + number), "gpu": GPUS[number * 7 % len(GPUS)]}


def _roofline(number: int) -> dict[str, str]:
    operations = list(OPERATIONS)
    return {"device": GPUS[number % len(GPUS)], "op": operations[number * 7 // len(GPUS) % len(operations)]}


def _atlas(number: int) -> dict[str, str]:
    size = 1024 + 16 * number
    gpus = [CUDA_GPUS[(number * 7 + place * 5) % len(CUDA_GPUS)] for place in range(4)]
    return {"op": "linear", "gpus": ",".join(dict.fromkeys(gpus)), "shape": f"b={size},d={size},k={2 * size}"}


def _benchmark(number: int) -> dict[str, str]:
    operations = list(OPERATIONS)
    return {"op": operations[number % len(operations)], "size": f"{64 + number},{128 + number}"}


def _training(number: int) -> dict[str, str]:
    return {"batch": str(16 + number), "steps": str(20 + number)}


def _transfers(number: int) -> dict[str, str]:
    operations = list(OPERATIONS)
    place = number // len(operations)
    return {"op": operations[number % len(operations)], "gpu": LINKED_GPUS[place * 7 % len(LINKED_GPUS)]}


def _tensors(number: int) -> dict[str, str]:
    rows, columns = 2 + number % 10, 2 + number // 10
    return {"expression": f"x = {rows}x{columns}; x.t(); x[1]"}


def _peer(number: int) -> dict[str, str]:
    return {"size": str(512 + number)}


def _lessons(number: int) -> dict[str, str]:
    lesson, letter = STEPS[number % len(STEPS)]
    return {"lesson": lesson, "step": letter}


REQUESTS: Mapping[str, Request] = MappingProxyType(
    {
        "what-if": _what_if,
        "kernels": _kernels,
        "model": _model,
        "memory": _memory,
        "roofline": _roofline,
        "atlas": _atlas,
        "training": _training,
        "transfers": _transfers,
        "tensors": _tensors,
        "benchmark": _benchmark,
        "lessons": _lessons,
    }
)


def measure(counts: Sequence[int], root: Path) -> None:
    """Print for each page and the peer the server's CPU time of a new request, and seconds until crowds are drawn."""
    heads = "".join(f"{f'{count} at once, s':>18}" for count in counts)
    print(f"{'own request each':20}{'CPU ms a page':>16}{heads}", flush=True)
    for page, request in {PEER: _peer, **REQUESTS}.items():
        with serve(ROOT if page == PEER else root, PEER if page == PEER else "app.py") as served:
            alone_s, crowds_s = asyncio.run(_measured(served, "" if page == PEER else page, request, counts))
        seconds = "".join(f"{crowd_s:18.1f}" for crowd_s in crowds_s)
        print(f"{NAMES.get(page, page):20}{alone_s * 1e3:16.0f}{seconds}", flush=True)


async def _measured(served: Served, page: str, request: Request, counts: Sequence[int]) -> tuple[float, list[float]]:
    """Return CPU seconds of the web server a page, one after the other, and seconds of each crowd."""
    async with measuring(served.store, None):
        await _open(served, page, request, range(FIRST))
        before_s = _own_cpu_s(served)
        for number in range(FIRST, FIRST + ALONE):
            await _open(served, page, request, range(number, number + 1))
        alone_s = (_own_cpu_s(served) - before_s) / ALONE
        start, crowds_s = FIRST + ALONE, []
        for count in counts:
            crowds_s.append(await _open(served, page, request, range(start, start + count)))
            start += count
    return alone_s, crowds_s


async def _open(served: Served, page: str, request: Request, numbers: range) -> float:
    """Open these requests at once; return the seconds until the last one was drawn."""
    visitors = [Visitor(served.address, page, urlencode(request(number))) for number in numbers]
    async with opened(visitors) as seconds:
        return max(seconds)


def _own_cpu_s(served: Served) -> float:
    """Return the CPU seconds of the server without compilers that it starts."""
    times = served.process.cpu_times()
    return float(times.user + times.system)
