"""The same copy, by the timer of one library, behind the flush of each: they must empty the cache alike."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from gpuexplore.backends import load_backend
from gpuexplore.devices import ASSUMED_CACHE_BYTES
from gpuexplore.dtypes import DTYPES
from gpuexplore.measure.candidates.candidate import build_candidate, device_for, new_flush
from gpuexplore.measure.check.inputs import make_inputs
from gpuexplore.measure.conditions.idle_threads import Timekeeper
from gpuexplore.measure.sample.prepare import sample_all, warmed
from gpuexplore.model import Case, Device, Options, Shape
from gpuexplore.operations import operation_named
from gpuexplore.statistics import median

ITEMSIZE_BYTES = 4


def probe(device: Device, time: Timekeeper, library: str, flushes: str) -> Iterator[dict[str, Any]]:
    """Yield seconds of a copy of half a cache, warm and behind the flush of each library of `flushes`."""
    operation, dtype = operation_named("copy"), DTYPES["fp32"]
    facts = device_for(load_backend(library), device)
    count = (facts.cache_bytes or ASSUMED_CACHE_BYTES) // 2 // (2 * ITEMSIZE_BYTES)
    (name,) = (row.name for row in operation.usual if row.backend == library)
    case = Case(operation.name, Shape.of(n=max(1, count)), dtype.name, name, device.id, Options(cache="warm"))
    inputs = make_inputs(operation, case.shape, dtype, "normal")
    for flush in ("", *flushes.split(",")):
        candidate = build_candidate(case, operation, device, inputs=inputs, clock=time.clock)
        if flush:
            candidate = replace(candidate, flush=new_flush("cold", facts, load_backend(flush)))
        sampling = warmed(candidate, lambda: None, time)
        sample_all([sampling], lambda: False, time)
        yield {"library": library, "flush": flush or None, "median_s": median(sampling.samples_s)}
