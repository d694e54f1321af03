"""The choices of the page Transfers, each in the URL: what is moved, where to and how."""

from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st

from gpuexplore.core.model import Device
from gpuexplore.core.units import format_bytes_per_s
from gpuexplore.features.transfer.analysis import LINKS, OWN, SHARES, Memory
from gpuexplore.features.transfer.measure.contract import sizes_of
from gpuexplore.hardware import ACCELERATORS, TORCH_KINDS, target_named
from gpuexplore.operations import operation_named
from gpuexplore.ui import url_widgets
from gpuexplore.ui.session import known_devices

DEFAULT_GPU = "t4"


@dataclass(frozen=True, slots=True)
class TransferChoice:
    """What the page compares.

    Attributes:
        size: one of the operation's sizes, taken apart in the stacked bars.
        gpu: of the table, or of this machine.
        link: a key of LINKS, or OWN.
        measured_on: the device that the button measures on.
    """

    operation: str
    size: int
    gpu: Device
    link: str
    memory: Memory
    cpu: Device
    measured_on: Device


def choose() -> TransferChoice:
    """Draw the choices and return them."""
    devices = known_devices()
    columns = st.columns([3, 2, 3, 3], gap="medium")
    with columns[0]:
        operation = url_widgets.operation()
    with columns[1]:
        size = int(url_widgets.select("Size", "size", _sizes(operation), shown=lambda text: f"{int(text):,}"))
    with columns[2]:
        names = {row.key: row.name for row in ACCELERATORS}
        gpu = url_widgets.select("GPU", "gpu", _gpus(devices), shown=lambda key: names.get(key, key))
    with columns[3]:
        link = url_widgets.select("Link", "link", [OWN, *LINKS], shown=_link_title)
    columns = st.columns([3, 5], gap="medium")
    with columns[0]:
        memory: Memory = (
            "pinned" if url_widgets.segments("Host memory", "memory", list(SHARES)) == "pinned" else "pageable"
        )
    cpu = next((device for device in devices if device.kind == "cpu"), devices[0])
    with columns[1]:
        able = [device for device in devices if device.kind not in TORCH_KINDS]
        measured_on = url_widgets.device(sorted(able, key=lambda device: device.kind == "cpu"), "Measure on")
    return TransferChoice(operation, size, target_named(gpu, devices), link, memory, cpu, measured_on)


def _sizes(operation: str) -> list[str]:
    """Return the sizes, the middle of the default sweep's first."""
    contract = operation_named(operation)
    sizes = sizes_of(contract)
    usual = max(contract.default_sizes)
    first = min(sizes, key=lambda size: abs(size - usual))
    return [str(first), *(str(size) for size in sizes if size != first)]


def _gpus(devices: Sequence[Device]) -> list[str]:
    """Return the GPUs of this machine, then those of the table that a PCI Express link leads to."""
    here = [device.id for device in devices if device.kind == "cuda"]
    table = [row.key for row in ACCELERATORS if row.pcie_bytes_per_s]
    default = [key for key in table if key == DEFAULT_GPU]
    return [*here, *default, *(key for key in table if key != DEFAULT_GPU)]


def _link_title(key: str) -> str:
    if key not in LINKS:
        return "the GPU's own"
    return f"{LINKS[key].title}: {format_bytes_per_s(LINKS[key].bytes_per_s)}"
