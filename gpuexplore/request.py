"""The experiment that a user's text stands for, on whatever route it was typed.

Widgets, URLs, the command line and Python all fill in a `Request`; `resolve` is the only judge of it.
A bad value is named together with the accepted ones, and every bad value is named at once.
"""

import shlex
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

from gpuexplore.backends import load_backend
from gpuexplore.core import (
    DEFAULT_BUDGET_S,
    LARGEST_BUDGET_S,
    Experiment,
    InvalidInput,
    Options,
    Shape,
    check_known,
    check_text,
    read_number,
)
from gpuexplore.core.dtypes import DTYPES, spelled
from gpuexplore.operations import OPERATIONS, Implementation, Operation, operation_named
from gpuexplore.shapes import check_limits, exact_shapes, parse_sizes, split, whole_number


@dataclass(frozen=True, slots=True)
class Request:
    """An experiment as text; an empty field stands for the default, a list of nothing (see `listed`) is refused.

    Attributes:
        operation: its name.
        sizes: ``64,128,256``, ``64 128 256``, ``1k;2k`` (1024 and 2048) or a range ``256:8192:x2`` or ``100:500:+100``.
        shapes: ``m=512,k=64,n=512``, with ranges like those of sizes for a sweep over axes, or the name of a preset;
            several separated by ``;``; given, it replaces the sizes.
        dtypes: names separated by commas.
        implementations: names separated by commas; empty: all that run on one of the devices.
        devices: ids separated by commas; empty: every device of this machine.
        cache: `cold`, `warm`, `both` or empty for the device's own default.
        data: values of the inputs.
        threads: CPU threads.
        budget: seconds of sampling for one case.
        block: threads of a block of our CUDA kernels, ``16,16``; empty: each kernel's default.
        layout: of the matrices of a product: NN, NT or TN.
        align: where a CPU's arrays lie: `library` or `pages`.
        repeat: in how many fresh processes each case is measured; empty: in the one that is there.
    """

    operation: str = "matmul"
    sizes: str = ""
    shapes: str = ""
    dtypes: str = "fp32,bf16,fp16"
    implementations: str = ""
    devices: str = ""
    cache: str = ""
    data: str = "normal"
    threads: str = ""
    budget: str = f"{DEFAULT_BUDGET_S:g}"
    block: str = ""
    layout: str = "NN"
    align: str = "library"
    repeat: str = ""

    def __post_init__(self) -> None:
        names = [spelled(name) for name in self.dtypes.split(",")]
        if names != self.dtypes.split(","):
            object.__setattr__(self, "dtypes", ",".join(dict.fromkeys(names)))


# the short names of the command line and the URL
SHORT_NAMES: Mapping[str, str] = {
    "operation": "op",
    "sizes": "size",
    "shapes": "shape",
    "dtypes": "dtype",
    "implementations": "impl",
    "devices": "device",
    "cache": "cache",
    "data": "data",
    "threads": "threads",
    "budget": "budget",
    "block": "block",
    "layout": "layout",
    "align": "align",
    "repeat": "repeat",
}

# the fields that are lists, with what separates their values
SEPARATORS: Mapping[str, str] = {"sizes": ",; ", "shapes": ";", "dtypes": ",", "implementations": ",", "devices": ","}


def resolve(request: Request, device_ids: Iterable[str]) -> Experiment:
    """Return the experiment `request` stands for, on a machine with the devices `device_ids`.

    Raises:
        InvalidInput: one line for every bad value.
    """
    known_devices = tuple(device_ids)
    request = with_defaults(request, known_devices)
    problems = problems_by_field(request, known_devices)
    if problems:
        raise InvalidInput("\n".join(dict.fromkeys(problems.values())))
    operation = operation_named(request.operation)
    judged: Any = {name: getattr(request, name) for name in ("data", "layout", "align")}  # by Options
    options = Options(
        cache=request.cache or None,  # type: ignore[arg-type]  # Options judges the text
        threads=_whole("threads", request.threads),
        budget_s=_budget(request.budget),
        block=_block(request.block),
        repeat=_whole("fresh processes", request.repeat) or 1,
        **judged,
    )
    return Experiment(
        operation=operation.name,
        shapes=shapes_of(request, operation),
        dtypes=split(request.dtypes),
        implementations=split(request.implementations),
        devices=split(request.devices),
        options=options,
    )


def problems_by_field(request: Request, device_ids: Iterable[str]) -> dict[str, str]:
    """Return what is wrong with each field of `request`; an empty dict means nothing is."""
    texts = {field.name: getattr(request, field.name) for field in fields(Request)}
    unusable = {name: partial(check_text, name, text, SEPARATORS.get(name, "")) for name, text in texts.items()}
    if problems := _problems(unusable):
        return problems
    try:
        operation = operation_named(request.operation)
        if operation.of_name is not None:
            raise InvalidInput.of("operation", operation.name, OPERATIONS)
    except InvalidInput as error:
        return {"operation": str(error)}
    known_devices = tuple(device_ids)
    checks: dict[str, Callable[[], object]] = {
        "shapes" if request.shapes else "sizes": lambda: shapes_of(request, operation),
        "dtypes": lambda: _check_names("dtype", map(spelled, _some("dtype", request.dtypes, operation.dtypes)), DTYPES),
        "implementations": lambda: _known_implementations(request.implementations, operation),
        "devices": lambda: _check_names("device", _some("device", request.devices, known_devices), known_devices),
        "cache": lambda: Options(cache=request.cache or None),  # type: ignore[arg-type]  # Options judges the text
        "data": lambda: Options(data=request.data),  # type: ignore[arg-type]  # Options judges the text
        "threads": lambda: Options(threads=_whole("threads", request.threads)),
        "budget": lambda: Options(budget_s=_budget(request.budget)),
        "block": lambda: _check_block(request, operation),
        "layout": lambda: _check_names(f"layout of {operation.name}", [request.layout], operation.layouts),
        "align": lambda: Options(align=request.align),  # type: ignore[arg-type]  # Options judges the text
        "repeat": lambda: Options(repeat=_whole("fresh processes", request.repeat) or 1),
    }
    return _problems(checks)


def with_defaults(request: Request, device_ids: Iterable[str]) -> Request:
    """Return `request` with the empty fields that depend on the operation and the machine filled in."""
    devices = request.devices or ",".join(device_ids)
    try:
        operation = operation_named(request.operation)
    except InvalidInput:
        return replace(request, devices=devices)
    kinds = {device.rpartition("/")[2].partition(":")[0] for device in split(devices)}  # `cuda` of lab1/cuda:0
    fitting = [
        implementation
        for implementation in operation.usual
        if kinds & set(implementation.runs_on_kinds)
        and ("/" in devices or load_backend(implementation.backend).is_available())  # a node has libraries of its own
    ]
    sizes = "" if request.shapes else ",".join(map(str, operation.default_sizes))
    return replace(
        request,
        devices=devices,
        sizes=request.sizes or sizes,
        implementations=request.implementations or _names(fitting or operation.usual),
    )


def to_query(request: Request) -> dict[str, str]:
    """Return the URL parameters of `request`: only what differs from the defaults."""
    standard = Request()
    changed = {field.name: getattr(request, field.name) for field in fields(Request)}
    return {SHORT_NAMES[name]: text for name, text in changed.items() if text != getattr(standard, name)}


def fields_in(query: Mapping[str, str]) -> dict[str, str]:
    """Return the fields of a request that URL parameters name; parameters of other pages are left alone."""
    given = short_names(query)
    return {name: listed(name, given[short].strip()) for name, short in SHORT_NAMES.items() if short in given}


def listed(name: str, text: str) -> str:
    """Return the text of a field that was given: of an empty list its separator, for no text stands for the default."""
    return text if text.strip() else SEPARATORS.get(name, text)[:1]


def short_names(query: Mapping[str, str]) -> dict[str, str]:
    """Return URL parameters under their short names: `sizes`, as in Python, is read as `size`, which wins over it."""
    long = {SHORT_NAMES[name]: text for name, text in query.items() if name in SHORT_NAMES}
    return long | {name: text for name, text in query.items() if SHORT_NAMES.get(name, name) == name}


def from_experiment(experiment: Experiment) -> Request:
    """Return the request that resolves to `experiment`."""
    operation = operation_named(experiment.operation)
    options = experiment.options
    sizes = [operation.size_of(shape) for shape in experiment.shapes]
    all_sizes = None not in sizes and sizes == sorted(sizes, key=lambda size: size or 0)  # sizes are read ascending
    return Request(
        operation=experiment.operation,
        sizes=",".join(map(str, sizes)) if all_sizes else "",
        shapes="" if all_sizes else ";".join(map(str, experiment.shapes)),
        dtypes=",".join(experiment.dtypes),
        implementations=",".join(experiment.implementations),
        devices=",".join(experiment.devices),
        cache=options.cache or "",
        data=options.data,
        threads="" if options.threads is None else str(options.threads),
        budget=repr(options.budget_s).removesuffix(".0"),
        block=",".join(map(str, options.block or ())),
        layout=options.layout,
        align=options.align,
        repeat="" if options.repeat == 1 else str(options.repeat),
    )


def as_command(request: Request) -> str:
    """Return the shell command that repeats `request`."""
    words = ["gpuexplore", "run", request.operation]
    for name, text in _given(request).items():
        words += [f"--{SHORT_NAMES[name]}", text]
    return shlex.join(words)


def as_python(request: Request) -> str:
    """Return the Python lines that repeat `request`."""
    arguments = "".join(f", {name}={text!r}" for name, text in _given(request).items())
    return f"import gpuexplore as gx\n\nrun = gx.run({request.operation!r}{arguments})\nrun.to_pandas()"


def _given(request: Request) -> dict[str, str]:
    """Return the fields a repetition has to name: what is swept always, conditions where they differ."""
    standard = Request()
    swept = ("sizes", "shapes", "dtypes", "implementations", "devices")
    texts = {field.name: getattr(request, field.name) for field in fields(Request) if field.name != "operation"}
    return {name: text for name, text in texts.items() if text and (name in swept or text != getattr(standard, name))}


def _problems(checks: Mapping[str, Callable[[], object]]) -> dict[str, str]:
    found = {}
    for name, judge in checks.items():
        try:
            judge()
        except InvalidInput as error:
            found[name] = str(error)
    return found


def shapes_of(request: Request, operation: Operation, *, measured: bool = True) -> tuple[Shape, ...]:
    """Return the shapes that the sizes or exact shapes of `request` stand for, each once; see `check_limits`.

    Raises:
        InvalidInput: names the part that is no shape of `operation`, or beyond its limits.
    """
    if request.shapes:
        return exact_shapes(request.shapes, operation, measured=measured)
    shapes = [operation.shape_of_size(size) for size in parse_sizes(request.sizes)]
    for shape in shapes:
        check_limits(shape, operation, measured=measured)
    return tuple(dict.fromkeys(shapes))


def _names(implementations: Iterable[Implementation]) -> str:
    return ",".join(implementation.name for implementation in implementations)


def _some(what: str, text: str, accepted: Iterable[str]) -> tuple[str, ...]:
    words = split(text)
    if not words:
        raise InvalidInput(f"no {what}: give at least one of {', '.join(accepted)}")
    return words


def _check_names(what: str, names: Iterable[str], known: Collection[str]) -> None:
    for name in names:
        check_known(what, name, known)


def _known_implementations(text: str, operation: Operation) -> None:
    for name in _some("implementation", text, (implementation.name for implementation in operation.implementations)):
        operation.implementation_named(name)


def _whole(what: str, text: str) -> int | None:
    return whole_number(what, text.strip()) if text.strip() else None


def _block(text: str) -> tuple[int, ...] | None:
    return tuple(whole_number("block", word.strip()) for word in text.split(",")) if text.strip() else None


def _check_block(request: Request, operation: Operation) -> None:
    """Raise when one of the kernels asked for does not take the block, or none of them takes any."""
    block = _block(request.block)
    if block is None:
        return
    asked = [
        implementation
        for implementation in operation.implementations
        if implementation.name in split(request.implementations)
    ]
    geometries = [implementation.geometry for implementation in asked if implementation.geometry]
    if not geometries:
        raise InvalidInput(f"block {request.block!r}: none of {_names(asked)} is a CUDA kernel of gpuexplore")
    for geometry in geometries:
        geometry.checked(block)


def _budget(text: str) -> float:
    number = read_number(text) if text.strip() else DEFAULT_BUDGET_S
    if number is None:
        raise InvalidInput.of("budget", text, f"a number of seconds above 0, up to {LARGEST_BUDGET_S:g}")
    return number
