"""The devices that torch alone finds and computes on, apart from NVIDIA's: their kinds, and those of this machine.

The table of kinds is all that the program knows of them. Nothing in it was tried on such hardware. Torch is asked only
where something on the machine speaks for a kind and torch is built for it, in a process of its own, which takes
seconds, and its answer is kept; a machine without a hint is asked nothing. What fails there is no device.
"""

import hashlib
import json
import logging
import os
import platform
import re
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from gpuexplore.core import Device, InvalidInput, Unsupported, write_json
from gpuexplore.hardware.accelerators import with_row
from gpuexplore.hardware.cpu import ROOT, read_line
from gpuexplore.hardware.directories import cache_directory
from gpuexplore.hardware.nvml import GpuFacts
from gpuexplore.hardware.variants import choose


@dataclass(frozen=True, slots=True)
class Host:
    """The machine in which devices are looked for: system and processor by Python's names, and where its files are."""

    system: str = sys.platform
    processor: str = platform.machine()
    root: Path = ROOT


@dataclass(frozen=True, slots=True)
class _TorchKind:
    """A kind of device that torch alone finds.

    Attributes:
        name: the part of a device's id before the colon.
        title: maker and software, for a reader.
        torch_type: what torch calls its devices; those of ROCm it calls as NVIDIA's.
        build: the name in torch.version that is set where torch is built for it; None: builds do not state it.
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
        """Return the notice that gpuexplore was never tested on `device`'s kind, and how to report a test."""
        check = f"`gpuexplore selftest --device {device}` checks what it can there, and we would welcome its report"
        if not self.has_workers:
            check = "the self-test needs Linux, so we would welcome a report of `gpuexplore.run(...)` from Python there"
        return f"gpuexplore has never been tested on {self.title}; {check}."


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
    intel = "0x8086"  # the PCI vendor
    return tuple(str(node) for node, vendor in vendors.items() if vendor == intel)


_BY_EVENTS = "Times come from torch's events; the device is not kept busy before them, so a time may include a launch."
_ROWS = (
    # torch.cuda._sleep counts another clock on each generation: 100 MHz on gfx11, the shader's on others
    # (https://github.com/pytorch/pytorch/pull/197541), so what fills the queue on NVIDIA's would take seconds
    _TorchKind("rocm", "AMD ROCm", "cuda", "hip", _kfd, "events", _BY_EVENTS, compiled_by_triton=True),
    # an event of MPS has the time at which the host was notified (aten/src/ATen/mps/MPSEvent.mm)
    _TorchKind(
        name="mps",
        title="Apple MPS",
        torch_type="mps",
        build=None,
        hints=_metal,
        timed_by="host",
        about_times=(
            "Times are the host's, around calls and one wait for the device, and include both: torch's events of MPS "
            "hold the time at which the host was notified."
        ),
        absent=("fp64",),
        has_workers=False,
    ),
    _TorchKind("xpu", "Intel XPU", "xpu", "xpu", _intel_nodes, "events", _BY_EVENTS, compiled_by_triton=True),
)
TORCH_KINDS: Mapping[str, _TorchKind] = MappingProxyType({row.name: row for row in _ROWS})

GPU_KINDS = ("cuda", *TORCH_KINDS)


def check_measured_on(device: str, what: str) -> None:
    """Raise Unsupported where `device` is of this table, and what is asked is not done on such a one.

    Args:
        device: the id.
        what: is asked, e.g. ``a training``.

    Raises:
        Unsupported: says what runs there.
    """
    kind = TORCH_KINDS.get(device.rpartition("/")[2].partition(":")[0])
    if kind is not None:
        raise Unsupported(
            f"{what} needs a CPU or an NVIDIA GPU, but {device} is {kind.title}, where gpuexplore only measures "
            "operations with torch"
        )


LOG = logging.getLogger(__name__)
COMMAND = (sys.executable, "-P", "-m", "gpuexplore.hardware.torch_probe")
LIMIT_S = 60.0  # loading torch from a cold disk takes twenty
AGAIN_S = 600.0  # a failed probe is not repeated for this time: a driver may be loaded later

Answer = Sequence[Mapping[str, Any]]
Build = Mapping[str, str]  # what torch.version sets, by its names
Ask = Callable[[str], Answer | None]


def torch_devices(
    host: Host | None = None, *, build: Callable[[], Build | None] | None = None, ask: Ask | None = None
) -> tuple[Device, ...]:
    """Return the devices of torch's other kinds; on most machines this looks whether a few files exist.

    Args:
        host: where to look for hints; None: this machine.
        build: returns what torch.version of the installed one sets; None: reads its file.
        ask: returns what torch says of a kind, None where it does not answer; None: a process that loads it.
    """
    looked_at = host or Host()
    hinted = [(kind, hints) for kind in TORCH_KINDS.values() if (hints := kind.hints(looked_at))]
    torch = (build or _installed_build)() if hinted else None
    if torch is None:
        return ()
    return tuple(
        _device(kind, index, facts)
        for kind, hints in hinted
        if kind.build is None or kind.build in torch
        for index, facts in enumerate(_kept(kind, torch, hints, ask or _ask_torch))
    )


def _installed_build() -> Build | None:
    """Return the texts that torch.version of the installed torch sets; None without one. This does not load it."""
    try:
        found = find_spec("torch")
    except ValueError:  # something else is loaded under this name
        return None
    if found is None or found.origin is None:
        return None
    try:
        text = (Path(found.origin).parent / "version.py").read_text(encoding="utf-8")
    except OSError:
        return None
    return dict(re.findall(r"""^(\w+)(?:\s*:[^=\n]*)?\s*=\s*['"]([^'"\n]+)['"]""", text, re.MULTILINE))


def _ask_torch(kind: str, command: Sequence[str] = COMMAND, limit_s: float = LIMIT_S) -> Answer | None:
    """Return torch's facts about the devices of a kind; None where it fails, hangs or prints nothing readable."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    try:
        done = subprocess.run(
            [*command, kind], capture_output=True, text=True, timeout=limit_s, check=True, env=environment
        )
        answer = json.loads(done.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        LOG.warning("torch did not list the devices of %s: %s", kind, error)
        return None
    return answer if _is_answer(answer) else None


def _is_answer(answer: object) -> bool:
    return isinstance(answer, list) and all(isinstance(facts, dict) for facts in answer)


def _kept(kind: _TorchKind, torch: Build, hints: Sequence[str], ask: Ask) -> Answer:
    """Return torch's facts about a kind, from a file where the same environment was probed before."""
    try:
        path = cache_directory() / f"torch-{kind.name}-{_circumstances(torch, hints)}.json"
    except InvalidInput:  # a directory that cannot be used is reported elsewhere
        return ask(kind.name) or ()
    saved = _saved(path)
    if saved is None:
        saved = ask(kind.name) or ()
        try:
            write_json(path, saved)
        except OSError as error:
            LOG.warning("The list of torch's devices could not be saved: %s", error)
    return saved


def _circumstances(torch: Build, hints: Sequence[str]) -> str:
    """Return a short text that changes with torch, this Python, the driver's nodes and what is to be visible."""
    loaded = [_changed(Path(hint)) for hint in hints]
    visible = (
        "CUDA_VISIBLE_DEVICES",
        "HIP_VISIBLE_DEVICES",
        "ROCR_VISIBLE_DEVICES",
        "ONEAPI_DEVICE_SELECTOR",
        "ZE_AFFINITY_MASK",
    )
    installed = (
        1,  # the version of this file: raise it when other facts are asked
        torch.get("__version__", ""),
        sys.prefix,
        *hints,
        *loaded,
        *(os.environ.get(name) for name in visible),
    )
    return hashlib.sha256(repr(installed).encode()).hexdigest()[:16]


def _changed(node: Path) -> float | None:
    """Return when a node was made, at each start of the machine or of its driver; None of what is no file."""
    try:
        return node.stat().st_ctime
    except OSError:
        return None


def _saved(path: Path) -> Answer | None:
    try:
        answer = json.loads(path.read_text(encoding="utf-8"))
        age_s = time.time() - path.stat().st_mtime
    except (OSError, ValueError):
        return None
    return answer if _is_answer(answer) and (answer or age_s < AGAIN_S) else None


def _device(kind: _TorchKind, index: int, said: Mapping[str, Any]) -> Device:
    """Return a device with the peaks of its row, if nothing that torch says contradicts it, else with none."""
    facts = GpuFacts(
        name=_text(said.get("name")) or f"GPU of {kind.title} without a name",
        uuid=_text(said.get("uuid")),
        memory_bytes=_whole(said.get("memory_bytes")),
        multiprocessors=_whole(said.get("multiprocessors")),
        driver=_text(said.get("driver")),
    )
    name = f"{kind.name}:{index}"
    plain = Device(
        id=name,
        kind=kind.name,
        name=facts.name,
        cores=facts.multiprocessors,
        memory_bytes=facts.memory_bytes,
        cache_bytes=_whole(said.get("cache_bytes")),
        compute_capability=_text(said.get("architecture")),
        driver=facts.driver,
        uuid=facts.uuid,
        notes=(kind.untried(name), kind.about_times),
    )
    row, doubt = choose(facts)
    if row is None:
        return replace(plain, notes=(*plain.notes, f"Peaks are unknown: {doubt}."))
    return with_row(plain if doubt is None else replace(plain, notes=(*plain.notes, f"{doubt}.")), row)


def _text(said: object) -> str | None:
    return said if isinstance(said, str) and said else None


def _whole(said: object) -> int | None:
    """Return a whole number above zero; what torch does not know it says is 0."""
    return said if isinstance(said, int) and not isinstance(said, bool) and said > 0 else None
