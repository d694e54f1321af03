"""Devices that torch alone finds and computes on, beside NVIDIA's: what each kind is called, and what it lacks.

This table is all that the program knows of them. Nothing in it was tried on such hardware.
"""

import platform
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Literal

from gpuexplore.devices.cpu import ROOT, read_line
from gpuexplore.errors import Unsupported

INTEL = "0x8086"  # the PCI vendor


@dataclass(frozen=True, slots=True)
class Host:
    """The machine in which devices are looked for: system and processor by Python's names, and where its files are."""

    system: str = sys.platform
    processor: str = platform.machine()
    root: Path = ROOT


@dataclass(frozen=True, slots=True)
class TorchKind:
    """A kind of device that torch alone finds.

    Attributes:
        name: the part of a device's id before the colon.
        title: maker and software, for a reader.
        torch_type: what torch calls its devices; those of ROCm it calls as NVIDIA's.
        build: the name in torch.version that is set where torch is built for it; None: builds do not tell.
        hints: what on a host speaks for such a device; without any torch is not asked.
        timed_by: events of its own, or the host's clock around calls and a wait.
        about_times: what that does to times, a sentence.
        absent: dtypes that torch does not have there.
        has_workers: whether its system has what measuring in a process of its own needs.
        compiled_by_triton: whether torch.compile makes kernels there, with Triton.
    """

    name: str
    title: str
    torch_type: str
    build: str | None
    hints: Callable[[Host], tuple[str, ...]]
    timed_by: Literal["events", "host"]
    about_times: str
    absent: tuple[str, ...] = ()
    has_workers: bool = True
    compiled_by_triton: bool = False

    def untried(self, device: str) -> str:
        """Return the sentence that stands wherever `device` is shown, with what would change it."""
        check = f"`gpuexplore selftest --device {device}` checks what it can there, and its report would help"
        if not self.has_workers:
            check = "the self-test needs Linux, so what `gpuexplore.run(...)` does there in Python would help to know"
        return f"Nothing of gpuexplore was tried on {self.title}; {check}."


def _kfd(host: Host) -> tuple[str, ...]:
    """Return the node of AMD's driver for computing."""
    node = host.root / "dev/kfd"
    return (str(node),) if host.system == "linux" and node.exists() else ()


def _metal(host: Host) -> tuple[str, ...]:
    return (host.processor,) if (host.system, host.processor) == ("darwin", "arm64") else ()


def _intel_nodes(host: Host) -> tuple[str, ...]:
    """Return the nodes of Intel's GPUs; every processor of Intel with graphics has one."""
    nodes = host.root / "dev/dri"
    if host.system != "linux" or not nodes.exists():
        return ()
    vendors = {
        node: read_line(host.root / "sys/class/drm" / node.name / "device/vendor")
        for node in sorted(nodes.glob("renderD*"))
    }
    return tuple(str(node) for node, vendor in vendors.items() if vendor == INTEL)


_BY_EVENTS = (
    "Times are those of torch's events; the device is not kept busy before them, so that a launch may be inside a time."
)
_ROWS = (
    # torch.cuda._sleep counts another clock on each generation: 100 MHz on gfx11, the shader's on others
    # (https://github.com/pytorch/pytorch/pull/197541), so what fills the queue on NVIDIA's would take seconds
    TorchKind("rocm", "AMD ROCm", "cuda", "hip", _kfd, "events", _BY_EVENTS, compiled_by_triton=True),
    # an event of MPS has the time at which the host was told of it (aten/src/ATen/mps/MPSEvent.mm)
    TorchKind(
        name="mps",
        title="Apple MPS",
        torch_type="mps",
        build=None,
        hints=_metal,
        timed_by="host",
        about_times=(
            "Times are the host's, around calls and one wait for the device, which are inside them: torch's events of "
            "MPS hold the time at which the host was told."
        ),
        absent=("fp64",),
        has_workers=False,
    ),
    TorchKind("xpu", "Intel XPU", "xpu", "xpu", _intel_nodes, "events", _BY_EVENTS, compiled_by_triton=True),
)
TORCH_KINDS: Mapping[str, TorchKind] = MappingProxyType({row.name: row for row in _ROWS})


GPU_KINDS = ("cuda", *TORCH_KINDS)


def check_measured_on(device: str, what: str, needed: str = "a CPU or an NVIDIA GPU") -> None:
    """Raise Unsupported where `device` is of this table, and what is asked is not done on such a one.

    Args:
        device: the id.
        what: is asked, e.g. ``a training``.
        needed: by what.

    Raises:
        Unsupported: says what runs there.
    """
    kind = TORCH_KINDS.get(device.rpartition("/")[2].partition(":")[0])
    if kind is not None:
        raise Unsupported(
            f"{what} needs {needed}, and {device} is {kind.title}: there gpuexplore measures operations, with torch"
        )
