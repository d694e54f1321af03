"""A part of torch that stands in for torch.cuda of ROCm, torch.mps or torch.xpu; its arrays are the host's."""

from contextlib import contextmanager
from types import SimpleNamespace

import torch

from gpuexplore.backends import DriverFacts
from gpuexplore.backends import torch as torch_backend


class FakePart:
    """Writes down events, waits and which device is the current one."""

    def __init__(self):
        self.log = []

    def Event(self, *, enable_timing):  # noqa: N802 torch's name
        assert enable_timing
        return SimpleNamespace(record=lambda: self.log.append("event"), elapsed_time=lambda end: 1.0)

    def synchronize(self, *device):
        self.log.append(("wait", *device))

    def empty_cache(self):
        self.log.append("give back")

    @contextmanager
    def device(self, device):
        self.log.append(("on", device))
        yield


def install(monkeypatch):
    """Put the stand-in in the place of the part of every kind, and the host's memory in that of devices'."""
    part = FakePart()

    def refuse(_):
        raise AssertionError("the unit of this is not known there")

    monkeypatch.setattr(torch_backend, "_module", lambda torch, kind: part)
    monkeypatch.setattr(torch.cuda, "_sleep", refuse)
    return part


def on_host(monkeypatch):
    """Let arrays be the host's, and let torch find every device."""
    part = install(monkeypatch)
    monkeypatch.setattr(torch_backend, "torch_device", lambda device: "cpu")
    monkeypatch.setattr(torch_backend, "driver_facts", lambda device: DriverFacts())
    return part
