"""The cost of reading a tensor against its strides: the same elements, contiguous and strided, interleaved.

Two ways to read: a loop of ours in row order, whose order is known, and torch's copy into a contiguous tensor, which is
what `contiguous` does, and may go through the tensor in another order. Every candidate is checked before it is timed.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from importlib import import_module
from typing import Any

import numpy as np

from gpuexplore.backends import Call, Clock, load_backend
from gpuexplore.core import (
    Accuracy,
    Case,
    Device,
    IncorrectOutput,
    InvalidInput,
    Measurement,
    Options,
    Shape,
    encode,
    paired_ratio,
    read_whole,
    require,
)
from gpuexplore.core.dtypes import dtype_named
from gpuexplore.features.tensors.analysis import TensorView, row_order
from gpuexplore.features.tensors.analysis.reading import ITEMSIZE_BYTES, LAYOUTS, WAYS
from gpuexplore.hardware import check_measured_on
from gpuexplore.kernels.strided_sum import AXES, MOST_CELLS
from gpuexplore.measure.candidates.candidate import Candidate, cache_mode, device_for, new_flush
from gpuexplore.measure.check.group import check_memory
from gpuexplore.measure.conditions.environment import describe_environment, free_bytes
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks
from gpuexplore.measure.runner import measured_together
from gpuexplore.shapes import whole_number

LOOPS = {"cpu": "numba_cpu", "cuda": "numba_cuda"}  # by kind of device: the backend, and the module of the kernel
DTYPE = dtype_named("fp32")  # its bits, as integers
Read = Callable[[], np.typing.NDArray[Any]]


def _elements_of(storage: np.typing.NDArray[np.uint32], layout: TensorView) -> np.typing.NDArray[np.uint32]:
    """Return the elements of a storage that `layout` shows, without a copy."""
    strides = [stride * ITEMSIZE_BYTES for stride in layout.strides]
    return np.lib.stride_tricks.as_strided(storage, layout.shape, strides, writeable=False)


def _check_read(name: str, output: Read, expected: np.typing.NDArray[Any]) -> None:
    """Compare what a candidate has read with what it should have: integers, so that they have to be equal.

    Raises:
        IncorrectOutput: they are not.
    """
    if not np.array_equal(output(), expected):
        raise IncorrectOutput(f"{name} read the wrong elements", Accuracy(None, 0.0))


def _readers(layout: TensorView, device: Device, clock: Clock) -> Iterator[tuple[Candidate, Callable[[], None]]]:
    """Yield each way to read `layout` and the contiguous one on `device`, its output zero so far, with its check."""
    storage = np.random.default_rng(0).integers(1, 2**32, _cell_count(layout), dtype=np.uint32)
    build = {"loop": _loop, "copy": _copy}
    contiguous = replace(layout, strides=row_order(layout.shape))
    for way in WAYS:
        for name, shown in zip(LAYOUTS, (contiguous, layout), strict=True):
            backend = load_backend(LOOPS[device.kind] if way == "loop" else "torch")
            backend.set_threads(1)
            run, output, expected = build[way](shown, storage, device)
            shape = Shape.of(n=layout.element_count)
            case = Case("strided_read", shape, DTYPE.name, f"{way} {name}", device.id, Options(threads=1, budget_s=0.5))
            found = device_for(backend, device)
            flush = new_flush(cache_mode(case, found), found, backend)
            candidate = Candidate(case, found, backend, DTYPE, run, None, backend.timer(device.id, clock), flush)
            yield candidate, partial(_check_read, case.implementation, output, expected)


def _cell_count(layout: TensorView) -> int:
    """Return how many cells the storage, or the contiguous tensor, has: the larger one."""
    return max(layout.span, layout.element_count)


def _loop(
    layout: TensorView, storage: np.typing.NDArray[np.uint32], device: Device
) -> tuple[Call, Read, np.typing.NDArray[Any]]:
    """Return a call of the kernel, what it sums to, and what it should sum to."""
    missing = AXES - len(layout.shape)
    lengths = np.array((*[1] * missing, *layout.shape), np.uint64)
    strides = np.array((*[0] * missing, *layout.strides), np.uint64)
    kernel = import_module(f"gpuexplore.kernels.strided_sum.{LOOPS[device.kind]}")
    run, output = kernel.build(storage, lengths, strides, device.id)
    return run, output, _elements_of(storage, layout).sum(dtype=np.uint64).reshape(1)


def _copy(
    layout: TensorView, storage: np.typing.NDArray[np.uint32], device: Device
) -> tuple[Call, Read, np.typing.NDArray[Any]]:
    """Return torch's copy into a contiguous tensor, what it writes, and what it should write."""
    import torch

    moved = load_backend("torch").to_device(storage.view(np.float32), DTYPE, device.id).view(torch.int32)
    source = moved.as_strided(layout.shape, layout.strides)
    out = torch.zeros(layout.shape, dtype=torch.int32, device=moved.device)
    return lambda: out.copy_(source), lambda: out.cpu().numpy().view(np.uint32), _elements_of(storage, layout)


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Measure and report one JSON-able object: medians with intervals, their ratios, bytes and environment.

    Args:
        arguments: ``rows`` and ``columns`` of a tensor that is read transposed, or ``shape`` and ``strides`` of what is
            read, whole numbers between commas; elements have 4 bytes.
        device: where it is read.
        clock: in nanoseconds.
        isolation: of the calls.
        progress: gets the object; polled between rounds.

    Raises:
        InvalidInput: other arguments.
        Unsupported: the device is no CPU and no NVIDIA GPU.
        TooLarge: the memory is not enough.
        Cancelled: the user asked to stop.
        IncorrectOutput: a candidate read something else.
    """
    layout = _layout_of(arguments)
    check_measured_on(device.id, "a strided read")
    environment = describe_environment(device, (LOOPS[device.kind], "torch"), threads=1)
    needed_bytes = ITEMSIZE_BYTES * 2 * (_cell_count(layout) + layout.element_count)  # with what they are checked with
    check_memory(needed_bytes, free_bytes(device), device)
    candidates = list(_readers(layout, device, clock))
    environment, found = measured_together(candidates, environment, clock=clock, isolation=isolation, progress=progress)
    names = [candidate.case.implementation for candidate, _ in candidates]
    measured = dict(zip(names, (measurement for measurement, _ in found), strict=True))
    read_bytes = layout.element_count * ITEMSIZE_BYTES
    progress.report(
        {
            "shape": list(layout.shape),
            "strides": list(layout.strides),
            "itemsize_bytes": ITEMSIZE_BYTES,
            "read_bytes": read_bytes,
            "threads": 1,
            "cache": "warm" if candidates[0][0].flush is None else "cold",
            "readings": {
                name: {
                    "median_s": measurement.median_s,
                    "ci95_s": encode(measurement.ci95_s),
                    "p20_s": measurement.p20_s,
                    "p80_s": measurement.p80_s,
                    "n": len(measurement.samples_s),
                    "first_call_s": measurement.first_call_s,
                    "bytes_per_s": read_bytes / measurement.median_s,
                    "samples_s": list(measurement.samples_s),
                    "flags": encode(flags),
                }
                for name, (measurement, flags) in zip(names, found, strict=True)
            },
            "ratios": {way: _ratio(measured[f"{way} strided"], measured[f"{way} contiguous"]) for way in WAYS},
            "environment": encode(environment),
        }
    )


def _layout_of(arguments: Mapping[str, str]) -> TensorView:
    """Return the shape and strides that `arguments` ask for.

    Raises:
        InvalidInput: other names, values that are no whole numbers, or too many of them.
    """
    if set(arguments) == {"rows", "columns"}:
        rows, columns = (whole_number(name, arguments[name]) for name in ("rows", "columns"))
        layout = TensorView((columns, rows), (1, columns))
    elif set(arguments) == {"shape", "strides"}:
        layout = TensorView(_lengths("shape", arguments["shape"], least=1), _lengths("strides", arguments["strides"]))
    else:
        raise InvalidInput.of("arguments", ", ".join(arguments), "rows and columns, or shape and strides")
    if len(layout.shape) != len(layout.strides) or len(layout.shape) > AXES:
        raise InvalidInput.of("strides", arguments["strides"], f"one value per axis, for at most {AXES} axes")
    cells = _cell_count(layout)
    require(cells <= MOST_CELLS, "tensor of", f"{cells:,} elements", f"at most {MOST_CELLS:,}")
    return layout


def _ratio(strided: Measurement, contiguous: Measurement) -> dict[str, Any]:
    """Return how many times as long the strided one takes, with the 95 % interval of the ratios round by round."""
    per_round = strided.per_round, contiguous.per_round
    ratio, ends, by_round = paired_ratio(strided.samples_s, contiguous.samples_s, per_round)
    count = min(len(strided.samples_s), len(contiguous.samples_s))
    return {"median": ratio, "ci95": encode(ends), "n": count, "by_round": by_round}


def _lengths(name: str, text: str, least: int = 0) -> tuple[int, ...]:
    values = [read_whole(word) for word in text.split(",")]
    if any(value is None or value < least for value in values):
        raise InvalidInput.of(name, text, f"whole numbers from {least}, between commas")
    return tuple(value for value in values if value is not None)
