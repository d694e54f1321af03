"""The check that every library finds the device that is described, with a driver that is new enough for it."""

from collections.abc import Iterator
from dataclasses import replace

from gpuexplore.core import Device, Environment, decode
from gpuexplore.features.selftest.suite.contract import (
    Bench,
    CheckFigure,
    CheckFinding,
    Payload,
    SelfCheck,
    judged,
    skipped,
)


def _run(bench: Bench) -> CheckFinding:
    """Return what the worker finds; a worker that can be used is warm afterwards."""
    payloads = bench.probe("environment")
    if not payloads:
        return skipped(bench.no_answer())
    about, *libraries = payloads
    environment = decode(Environment, about["environment"])
    caches = [size for payload in libraries if (size := payload.get("cache_bytes"))]
    bench.device = replace(bench.device, cache_bytes=next(iter(caches), bench.device.cache_bytes))
    problems = [problem for payload in libraries if (problem := _problem(payload))]
    bench.unusable = {payload["library"] for payload in libraries if "problem" in payload}
    if not problems:
        bench.warm()
    figures = [*_of_device(environment, bench.device.cache_bytes), *(_of_library(payload) for payload in libraries)]
    figures += [CheckFigure(name, value) for name, value in sorted(environment.libraries.items())]
    return judged(problems, figures, tuple(_hints(environment.device, is_cut=bool(about["is_cut"]))))


def _problem(payload: Payload) -> str | None:
    if "install" in payload and payload["library"] in ("numpy", "numba_cpu", "numba_cuda", "torch"):
        return f"{payload['library']} is not installed: {payload['install']}"
    return payload.get("problem")


def _of_device(environment: Environment, cache_bytes: int | None) -> Iterator[CheckFigure]:
    device = environment.device
    now = environment.before
    power_w = device.identity.power_limit_w if device.identity else None
    yield CheckFigure("platform", environment.platform)
    yield CheckFigure("Python", environment.python)
    yield CheckFigure("cores" if device.kind == "cpu" else "multiprocessors", device.cores)
    yield CheckFigure("memory", device.memory_bytes, "B")
    yield CheckFigure("last-level cache", cache_bytes, "B")
    if device.kind == "cpu":
        return
    yield CheckFigure("driver", device.driver)
    yield CheckFigure("compute capability", device.compute_capability)
    yield CheckFigure("UUID", device.uuid)
    yield CheckFigure("rated clock", device.clock_hz, "Hz")
    yield CheckFigure("clock now", now.clock_hz, "Hz")
    yield CheckFigure("power limit", power_w, "W")
    yield CheckFigure("row of the table", device.spec_key or "none")
    yield CheckFigure("other processes on it", now.foreign_processes)


def _of_library(payload: Payload) -> CheckFigure:
    name = f"{payload['library']} finds it"
    if "install" in payload:
        return CheckFigure(name, "not installed", note=payload["install"])
    return CheckFigure(name, "no" if "problem" in payload else "yes", note=str(payload.get("uuid") or ""))


def _hints(device: Device, *, is_cut: bool) -> Iterator[str]:
    yield from device.notes
    if is_cut:
        yield "MIG splits this GPU into instances: CUDA uses one of them, so no peak of the whole GPU applies."
    if "laptop" in device.name.casefold():
        yield "A laptop's GPU: plug it in; its clock depends on the power budget of the laptop."


CHECK = SelfCheck("environment", "Environment and driver", _run, needs_s=2.0, share=0.4)
