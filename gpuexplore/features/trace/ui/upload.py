"""The upload of a trace: taken, refused with a sentence, or asked for with the lines that make one."""

from collections.abc import Sequence
from hashlib import sha256

import streamlit as st

from gpuexplore.devices import ACCELERATORS
from gpuexplore.errors import InvalidInput
from gpuexplore.features.trace.analysis import TraceTable
from gpuexplore.features.trace.analysis.file import MOST_BYTES as MOST_COMMAND_BYTES
from gpuexplore.features.trace.analysis.file import SUFFIXES
from gpuexplore.features.trace.analysis.roof import CPU
from gpuexplore.jobs.reading import read_apart
from gpuexplore.model import Device
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.session import known_devices
from gpuexplore.ui.shared import Shared
from gpuexplore.ui.url_widgets import select, show_problem

MOST_BYTES = 40_000_000  # unpacked: whoever reads more stalls all other visitors; the command takes more
KEY = "trace.file"
AS_IT_SAYS = ""
GPUS = {accelerator.key: accelerator.name for accelerator in ACCELERATORS}
TABLES: Shared[tuple[TraceTable, bool]] = Shared(32)
HOW_TO = """\
with torch.profiler.profile(record_shapes=True) as prof:
    step()  # a few calls of what you want to look at, after some to warm up
prof.export_chrome_trace("trace.json.gz")
"""


def choose_trace() -> TraceTable | None:
    """Draw the field of the file and the choice of the device; return the table, None without one that can be read."""
    file = st.file_uploader("Trace of torch.profiler", type=[suffix.removeprefix(".") for suffix in SUFFIXES], key=KEY)
    if file is None:
        select("Taken on", "device", [AS_IT_SAYS, CPU, *GPUS], shown=_device_title)
        st.caption(
            f"Up to {st.get_option('server.maxUploadSize')} MB as it is sent (packed by gzip, about a tenth as "
            f"large) and {MOST_BYTES // 1_000_000} MB unpacked. From a shell `gpuexplore trace FILE` takes up to "
            f"{MOST_COMMAND_BYTES // 1_000_000} MB, and prints JSON. The file is read, and not kept."
        )
        _explain()
        return None
    content = file.getvalue()
    try:
        return _chosen(file.name, content)
    except InvalidInput as error:
        show_problem(error)
        _explain()
        return None


def _explain() -> None:
    st.info("Three lines around a training step or any other code of torch make a trace:", icon=":material/add_chart:")
    st.code(HOW_TO, language="python")


def _chosen(name: str, content: bytes) -> TraceTable:
    """Return the table of a file, with the roof of the device that is chosen for it.

    Raises:
        InvalidInput: it is no trace.
    """
    digest = sha256(content).hexdigest()
    with st.spinner(f"Reading {plain(name)} …"):
        found, on_gpu = TABLES.get((name, digest, AS_IT_SAYS), lambda: _read(name, content, AS_IT_SAYS))
    options = [AS_IT_SAYS, *(GPUS if on_gpu else (CPU,))]
    chosen = select("Taken on", "device", options, shown=_device_title)
    if chosen == AS_IT_SAYS:
        return found
    here = known_devices() if chosen == CPU else ()
    return TABLES.get((name, digest, chosen, here), lambda: _read(name, content, chosen, here))[0]


def _device_title(key: str) -> str:
    if key == AS_IT_SAYS:
        return "what the trace says"
    return "this server's CPU" if key == CPU else GPUS.get(key, key)


def _read(name: str, content: bytes, chosen: str, here: Sequence[Device] = ()) -> tuple[TraceTable, bool]:
    """Return the table, and whether anything ran on a GPU."""
    taken_on = tuple(here) if chosen == CPU else chosen
    read = "gpuexplore.features.trace.analysis:read_table"
    found: tuple[TraceTable, bool] = read_apart(read, name, content, MOST_BYTES, taken_on)
    return found
