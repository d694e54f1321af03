"""Events of a trace of torch.profiler: calls on the host, work on a GPU, and the devices there were.

The file is Chrome's trace events as JSON, plain or packed by gzip, and opened without trusting it.

The format is that of Kineto's ChromeTraceLogger, https://github.com/pytorch/kineto: complete events (`ph` is `X`),
times in microseconds, whatever unit it asks to display. Categories and names of arguments are those of today, and
those that torch wrote before 2.0. What an event lacks is None; an event without a name or a time is left out and
counted. Python functions, which `with_stack=True` adds, are no operations: their time is not counted.
"""

import json
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from gzip import BadGzipFile, GzipFile
from io import BytesIO
from itertools import starmap, zip_longest
from math import isfinite
from typing import Any

from gpuexplore.core import InvalidInput, check_characters, readable, require
from gpuexplore.hardware.nvml import GpuFacts

OPERATIONS = ("cpu_op", "user_annotation")
HOST = (*OPERATIONS, "cuda_runtime", "cuda_driver")  # what takes time on a thread of the host
GPU = ("kernel", "gpu_memcpy", "gpu_memset")
Lane = tuple[str, int | None]  # what a kernel's event gives as its process, and its device
MOST_BYTES = 200_000_000  # of a file, unpacked
LONGEST_NAME = 60  # characters of a file's name that are kept
LONGEST_OPERATION = 200  # characters of an operation's name: C++ templates are longer
LONGEST_S = 1e9  # of an event, and of a trace


@dataclass(frozen=True, slots=True)
class CallArgument:
    """One argument of a call.

    Attributes:
        dims: lengths of a tensor's axes; None for what is no tensor, and for lists of tensors.
        kind: torch's name of its type: `float`, `c10::BFloat16`, `Scalar`.
        strides: elements from one to the next along each axis; None where the trace has none.
        value: of a number, a list or a flag, as torch prints it.
    """

    dims: tuple[int, ...] | None
    kind: str
    strides: tuple[int, ...] | None
    value: str


@dataclass(frozen=True, slots=True)
class Call:
    """Something that took time on a thread of the host.

    Attributes:
        category: one of HOST.
        arguments: None where they were not recorded.
        correlation: of a call of CUDA's runtime: what the work it started is numbered with.
    """

    name: str
    category: str
    process: str
    thread: str
    start_ns: int
    end_ns: int
    external_id: int | None
    correlation: int | None
    arguments: tuple[CallArgument, ...] | None


@dataclass(frozen=True, slots=True)
class Kernel:
    """Work on a GPU: a kernel, a copy or a fill.

    Attributes:
        process: of its event, which Kineto gives the number of the GPU.
        device: the number of the GPU.
        in_graph: it is a node of a graph.
    """

    name: str
    process: str
    device: int | None
    stream: str
    in_graph: bool
    start_ns: int
    end_ns: int
    external_id: int | None
    correlation: int | None

    @property
    def time_ns(self) -> int:
        """The duration."""
        return self.end_ns - self.start_ns

    @property
    def lane(self) -> Lane:
        """The GPU, and whatever a tool that merges traces has added to its process."""
        return self.process, self.device


@dataclass(frozen=True, slots=True)
class ProfilerTrace:
    """The parsed contents of a trace file.

    Attributes:
        gpus: those that something ran on, each with its number, as far as they are distinguished.
        has_shapes: whether arguments were recorded, with `record_shapes=True`.
        left_out: events that have no name or no time.
    """

    name: str
    calls: tuple[Call, ...]
    kernels: tuple[Kernel, ...]
    gpus: tuple[tuple[int, GpuFacts], ...]
    has_shapes: bool
    left_out: int


def read_trace(name: str, content: bytes, most_bytes: int = MOST_BYTES) -> ProfilerTrace:
    """Return the events in the file of a trace.

    Args:
        name: of the file.
        content: of it, plain or packed by gzip.
        most_bytes: that it may have, unpacked.

    Raises:
        InvalidInput: it cannot be read, or no operation of torch is in it; a sentence says which.
    """
    data = _open_trace(name, content, most_bytes)
    timed = [event for event in data["traceEvents"] if isinstance(event, Mapping) and event.get("ph") == "X"]
    known = [_event(event, category) for event in timed if (category := _category(event)) in (*HOST, *GPU)]
    found = tuple(event for event in known if isinstance(event, Call))
    work = tuple(event for event in known if isinstance(event, Kernel))
    short = name[:LONGEST_NAME]
    if not work and not any(call.category == "cpu_op" for call in found):
        raise InvalidInput(
            f"{short}: a trace without torch operations: profile with torch.profiler and ProfilerActivity.CPU"
        )
    everything: list[Call | Kernel] = [*found, *work]
    require(
        max(each.end_ns for each in everything) - min(each.start_ns for each in everything) <= LONGEST_S * 1e9,
        f"time between the events of {short}",
        "more",
        f"up to {LONGEST_S:,.0f} s",
    )
    used = {kernel.device for kernel in work}
    described = [
        gpu for entry in _list(data.get("deviceProperties")) if isinstance(entry, Mapping) and (gpu := _gpu(entry))
    ]
    # kernels of ROCm name their device by another number than its description: then all that are described
    is_complete = used <= {number for number, _ in described}
    return ProfilerTrace(
        name=readable(short),
        calls=found,
        kernels=work,
        gpus=tuple((number, gpu) for number, gpu in described if number in used or not is_complete),
        has_shapes=any(call.arguments is not None for call in found),
        left_out=known.count(None),
    )


def _open_trace(name: str, content: bytes, most_bytes: int) -> dict[str, Any]:
    """Return the object in a file, its events under `traceEvents`.

    Args:
        name: of the file, for messages; its first bytes say whether it is packed.
        content: of it.
        most_bytes: that it may have, unpacked.

    Raises:
        InvalidInput: it is too large, damaged, no JSON, or no trace; a sentence says which.
    """
    check_characters("file", name)
    short = name[:LONGEST_NAME]
    if not content:
        raise InvalidInput(f"{short}: the file is empty")
    text = content
    if content.startswith(b"\x1f\x8b"):
        try:
            with GzipFile(fileobj=BytesIO(content)) as file:
                text = file.read(most_bytes + 1)  # and not all: a few kB can unpack to gigabytes
        except (BadGzipFile, EOFError, zlib.error) as error:
            raise InvalidInput(f"{short}: starts like gzip, but cannot be unpacked: {error}") from error
    if len(text) > most_bytes:
        more = f"; `gpuexplore trace FILE` takes {MOST_BYTES:,}" if most_bytes < MOST_BYTES else ""
        raise InvalidInput.of(f"trace {short}", "a larger one", f"at most {most_bytes:,} bytes unpacked{more}")
    found = _parsed(short, text)
    trace = {"traceEvents": found} if isinstance(found, list) else found  # Chrome's format is either
    is_of_others = isinstance(found, list) and not any(isinstance(each, Mapping) and "ph" in each for each in found)
    if is_of_others or not isinstance(trace, dict) or not isinstance(trace.get("traceEvents"), list):
        raise InvalidInput(
            f"{short}: JSON, but not a trace: a trace is an object with a list traceEvents, or a list of events"
        )
    return trace


def _parsed(name: str, text: bytes) -> Any:
    try:
        # NaN and Infinity are no JSON: profilers write them for rates of what took no time; names contain control
        # characters
        return json.loads(_decoded(name, text), parse_constant=lambda _: None, strict=False)
    except json.JSONDecodeError as error:
        is_cut = error.pos >= len(error.doc.rstrip()) or error.msg.startswith("Unterminated string")
        hint = ", so it may have been cut off" if is_cut else ""
        raise InvalidInput(f"{name}: invalid JSON at line {error.lineno}{hint}: {error.msg}") from error
    except RecursionError as error:
        raise InvalidInput(f"{name}: brackets are nested too deep to be a trace") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise InvalidInput(f"{name}: a number that cannot be read: {error}") from error


def _decoded(name: str, text: bytes) -> str:
    """Return the text of a file; where it begins as JSON, bytes that are no UTF-8 are marked: names contain such."""
    is_json = text.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] in (b"{", b"[")
    try:
        return text.decode("utf-8-sig", "replace" if is_json else "strict")
    except UnicodeDecodeError as error:
        raise InvalidInput(
            f"{name}: not UTF-8 text: byte {error.start}; a trace is JSON, plain or packed by gzip once"
        ) from error


@lru_cache(maxsize=10_000)  # a few hundred names and values stand in a trace again and again
def _shown(text: str, longest: int) -> str:
    return readable(text, longest)


def _category(event: Mapping[str, Any]) -> str:
    category = event.get("cat")
    before_2_0 = {
        "Operator": "cpu_op",
        "Runtime": "cuda_runtime",
        "Kernel": "kernel",
        "Memcpy": "gpu_memcpy",
        "Memset": "gpu_memset",
    }
    return before_2_0.get(category, category) if isinstance(category, str) else ""


def _event(event: Mapping[str, Any], category: str) -> Call | Kernel | None:
    """Return a call or a kernel; None for an event without a name or a time that can be."""
    name = event.get("name")
    start_us = _number(event.get("ts"))
    time_us = _number(event.get("dur"))
    if not (isinstance(name, str) and name) or start_us is None or time_us is None:
        return None
    if not 0 <= time_us <= LONGEST_S * 1e6:
        return None
    args = event.get("args")
    own: Mapping[str, Any] = args if isinstance(args, Mapping) else {}
    start_ns = round(start_us * 1000)
    common: dict[str, Any] = {
        "name": _shown(name, LONGEST_OPERATION),
        "process": str(event.get("pid")),
        "start_ns": start_ns,
        "end_ns": start_ns + round(time_us * 1000),
        "external_id": _whole(own.get("External id", own.get("external id"))) or None,  # Kineto writes 0 for none
        "correlation": _whole(own.get("correlation")) or None,
    }
    if category in HOST:
        thread = f"{event.get('pid')}/{event.get('tid')}"
        arguments = _arguments(own) if category == "cpu_op" else None
        return Call(category=category, thread=thread, arguments=arguments, **common)
    stream = own.get("stream", event.get("tid"))
    in_graph = bool(_whole(own.get("graph node id")))
    return Kernel(
        device=_whole(own.get("device")), stream="" if stream is None else str(stream), in_graph=in_graph, **common
    )


def _number(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if isfinite(value) and abs(value) < 1e18 else None  # microseconds: longer than there are people


def _whole(value: Any) -> int | None:
    """Return a number that is whole, also one in quotes, as some versions write it."""
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 20:
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**64 else None


def _arguments(own: Mapping[str, Any]) -> tuple[CallArgument, ...] | None:
    dims = own.get("Input Dims", own.get("Input dims"))
    if not isinstance(dims, list):
        return None
    others = (_list(own.get(name))[: len(dims)] for name in ("Input type", "Input Strides", "Concrete Inputs"))
    return tuple(starmap(_argument, zip_longest(dims, *others)))


def _argument(dims: Any, kind: Any, strides: Any, value: Any) -> CallArgument:
    name = _shown(kind, LONGEST_NAME) if isinstance(kind, str) else ""
    return CallArgument(
        dims=_lengths(dims) if name not in ("", "Scalar", "ScalarList", "TensorList", "GenericList") else None,
        kind=name,
        strides=_lengths(strides),
        value=_shown(value, LONGEST_OPERATION) if isinstance(value, str) else "",
    )


def _lengths(value: Any) -> tuple[int, ...] | None:
    if not isinstance(value, list) or len(value) > 64:  # axes, as in torch
        return None
    return tuple(value) if all(type(length) is int and 0 <= length < 2**62 for length in value) else None


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _gpu(entry: Mapping[str, Any]) -> tuple[int, GpuFacts] | None:
    number = _whole(entry.get("id"))
    name = entry.get("name")
    if number is None or not isinstance(name, str) or not name:
        return None
    major = _whole(entry.get("computeMajor"))
    minor = _whole(entry.get("computeMinor"))
    return number, GpuFacts(
        name=_shown(name, LONGEST_NAME),
        compute_capability=None if major is None or minor is None else f"{major}.{minor}",
        # some tracers write the bytes of shared memory as numSms
        multiprocessors=_whole(entry.get("multiProcessorCount", entry.get("numSms"))),
        memory_bytes=_whole(entry.get("totalGlobalMem")),
    )
