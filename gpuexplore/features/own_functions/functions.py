"""Measures functions of users, given in Python: in this process, or sent to a worker that a crash or a hang may end."""

import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np

from gpuexplore.backends import torch_place
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import Case, Device, Experiment, Result
from gpuexplore.core.typed_text import name_typed
from gpuexplore.features.own_functions.declared import check_count, operation_of_arrays
from gpuexplore.features.own_functions.sources import (
    PICKLED,
    WITH_FUNCTIONS,
    add_file,
    add_function,
    add_operation,
    add_source,
    is_source,
    label_of,
    numbered,
    remove_source,
)
from gpuexplore.jobs.engines import WorkerLimits, batches_of, limits_typed
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.operations.contract import Operation
from gpuexplore.operations.implementation import OF_USERS

Function = Callable[..., Any]
OF_NUMPY = {"from_numpy", "numpy"}  # names in code that takes NumPy's arrays, or returns them
MODULES = {"cupy": "cupy", "jax": "jax", "jaxlib": "jax", "torch": "torch", "numba": "numba", "numpy": "numpy"}


def add_functions(
    functions: Sequence[Function], library: str = "", arrays: Sequence[Any] = (), *, taken: Collection[str] = ()
) -> dict[str, Function]:
    """Remember functions for this process; return them by the names of their implementations, `torch:mine`.

    Args:
        functions: each `function(*inputs) -> output`.
        library: whose arrays they take; empty: what the arrays, or the functions themselves, tell.
        arrays: inputs, where there are some.
        taken: names of others, which are measured with them.

    Raises:
        InvalidInput: one is no function.
    """
    found: dict[str, Function] = {}
    for function in functions:
        label = label_of(_title_of(function))
        name = f"{library or _library_of(function, arrays)}{OF_USERS}{label}"
        found[numbered(name, [*found, *taken])] = function
    for name, function in found.items():
        add_function(name, function)
    return found


def named(implementations: Iterable[Any]) -> list[Any]:
    """Return implementations by name: functions and files of users are remembered and get one."""
    found: list[Any] = []
    for each in implementations:
        if callable(each):
            found += add_functions([each], taken=found)
        elif isinstance(each, str | Path) and is_source(str(each)):
            found.append(add_file(str(each), found))
        else:
            found.append(each)
    return found


def operation_of(
    function: Function, operation: str | Operation | None, arrays: Sequence[Any], facts: Mapping[str, Any]
) -> Operation:
    """Return the operation that a function computes; one that is made of these facts is remembered.

    Args:
        function: of a user.
        operation: the one it computes, or its name; None: that of the facts.
        arrays: its inputs.
        facts: `reference`, `flops` and `bytes`, each None where nothing is.

    Raises:
        InvalidInput: there is no such operation, or nothing tells what its right answer is.
    """
    if operation is not None:
        if given := [name for name, value in facts.items() if value is not None]:
            raise InvalidInput(f"{given[0]}: {operation} has its own; leave out one of both")
        if not isinstance(operation, str | Operation):
            raise InvalidInput.of("operation", operation, "a name that `gpuexplore list` prints, or a declared one")
        return operation if isinstance(operation, Operation) else operation_named(operation)
    if not arrays or facts["reference"] is None:
        missing = "inputs" if not arrays else "reference"
        raise InvalidInput(f"{missing}: none is given, nor an operation= that has them: a wrong kernel is never timed")
    counts = {"flop_count": facts["flops"], "byte_count": facts["bytes"]}
    for what, count in counts.items():
        if count is not None:
            check_count(what.replace("_count", "s of a call"), count)
    title = _title_of(function)
    name = f"own_{title}" if title in OPERATIONS else label_of(title).replace("-", "_")
    made = operation_of_arrays(name, [widened(array) for array in arrays], facts["reference"], **counts)
    add_operation(made)
    return made


def limits_asked(about: dict[str, Any], isolated: bool) -> WorkerLimits:
    """Take the limits of a worker, e.g. ``4GB`` and ``10s``, out of what was asked for and return them.

    Raises:
        InvalidInput: one is no size or no time, or there is no worker.
    """
    names = ("memory_limit", "time_limit")
    typed = {name: name_typed(name, about.pop(name)) for name in names if about.get(name) is not None}
    if typed and not isolated:
        raise InvalidInput(f"{next(iter(typed))}: this process has none; leave out isolated=False")
    return limits_typed(*(typed.get(name, "") for name in names))


def measured_apart(
    experiment: Experiment,
    devices: Sequence[Device],
    functions: Mapping[str, Function],
    operation: Operation | None,
    *,
    limits: WorkerLimits,
) -> tuple[Result, ...]:
    """Return the results of every case, measured in a worker of its device: a crash or a hang ends that, not this.

    Args:
        experiment: what is measured.
        devices: those it is measured on.
        functions: of users in it, by the names of their implementations.
        operation: of it, where it is a user's.
        limits: of the worker.

    Raises:
        InvalidInput: a function cannot be sent to another process.
    """
    results: dict[Case, Result] = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event

    with _sent({**functions, **({operation.name: operation} if operation else {})}):
        engine = LocalEngine(devices, limits=limits)
        try:
            for batch in batches_of(experiment.cases()):
                engine.measure(batch, keep, lambda: False)
        finally:
            engine.close()
    return tuple(results[case] for case in experiment.cases())


def dtype_of(arrays: Sequence[Any]) -> str:
    """Return the name of the dtype that all arrays have.

    Raises:
        InvalidInput: they have several, or one that is not measured.
    """
    for array in arrays:
        if not all(hasattr(array, name) for name in ("dtype", "shape", "ndim")) or 0 in array.shape:
            raise InvalidInput.of(
                "inputs", type(array).__name__, "arrays of NumPy, torch, JAX or CuPy that hold numbers"
            )
    names = sorted({str(array.dtype).rpartition(".")[2] for array in arrays})
    known = {row.array_name: row.name for row in DTYPES.values() if not row.matrix_only}
    if len(names) > 1 or names[0] not in known:
        accepted = f"arrays of one of {', '.join(known)}; let the function hold what has another dtype"
        raise InvalidInput.of("dtype of the inputs", ", ".join(names), accepted)
    return known[names[0]]


def device_of(arrays: Sequence[Any]) -> str:
    """Return the id of the device that arrays are on."""
    found = str(getattr(arrays[0], "device", "cpu")).lower()
    called, index = found.partition(":")[0], found.partition(":")[2] or "0"
    if type(arrays[0]).__module__.partition(".")[0] == "torch":
        return torch_place.device_of(called, index)
    return f"cuda:{index}" if "cuda" in found else "cpu"


def widened(array: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return an array of any library in float64, in host memory."""
    if hasattr(array, "detach"):
        return np.asarray(array.detach().cpu().double().numpy())
    return np.asarray(array.get() if hasattr(array, "get") else array).astype(np.float64)


@contextmanager
def _sent(values: Mapping[str, Any]) -> Iterator[None]:
    """Inside, workers that are started find `values` by name."""
    import cloudpickle

    with TemporaryDirectory(prefix="gpuexplore-own-") as directory:
        try:
            for number, (name, value) in enumerate(values.items()):
                path = Path(directory) / f"{number}{PICKLED}"
                try:
                    path.write_bytes(cloudpickle.dumps(value))
                except Exception as error:
                    reason = f"{name} cannot be sent to a process of its own ({error})"
                    raise InvalidInput(f"{reason}: isolated=False measures it in this one") from error
                add_source(name, str(path))
            yield
        finally:
            for name in values:
                remove_source(name)


def _title_of(function: Function) -> str:
    if not callable(function):
        raise InvalidInput.of("implementation", function, "names that `gpuexplore list` prints, and functions")
    inner = getattr(function, "py_func", None) or getattr(function, "_torchdynamo_orig_callable", None) or function
    return str(getattr(inner, "__name__", None) or type(inner).__name__).strip("<>")


def _library_of(function: Function, arrays: Sequence[Any]) -> str:
    """Return whose arrays a function takes: those it is given, unless they are NumPy's and it is another library's.

    That is seen by its type, as of `jax.jit`, and by the modules that its code names: one that calls torch's
    `from_numpy`, or `numpy` of a tensor, takes NumPy's. What calls nothing of a library takes any arrays: it gets
    NumPy's.
    """
    given, own = _library_named(arrays[0]) if arrays else "", _library_named(function)
    if given not in ("", "numpy"):
        return given
    compiled = getattr(function, "_torchdynamo_orig_callable", None)
    if own in ("", "numpy") and (compiled or _is_of_torch(function)):
        own = "torch"
    if own:
        return own
    used = {getattr(value, "__name__", "").partition(".")[0] for value in _modules_of(function)}
    named = next((library for library in WITH_FUNCTIONS[::-1] if library in used), "numpy")
    return "numpy" if given and ("numpy" in used or _names(function) & OF_NUMPY) else named


def _library_named(value: Any) -> str:
    """Return the library whose object a value is; empty: none's."""
    names = (getattr(value, "__module__", ""), type(value).__module__)
    roots = (str(name or "").partition(".")[0] for name in names)
    return next((MODULES[root] for root in roots if root in MODULES), "")


def _is_of_torch(function: Function) -> bool:
    return getattr(sys.modules.get("torch"), getattr(function, "__name__", ""), None) is function


def _names(function: Function) -> set[str]:
    """Return the names of globals and attributes in a function's code; none where it has no code of Python."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return set(code.co_names) if code else set()


def _modules_of(function: Function) -> list[ModuleType]:
    """Return the modules that the code of a function names."""
    try:
        found = inspect.getclosurevars(inspect.unwrap(function))
    except TypeError:  # it has no code of Python
        return []
    return [value for value in (*found.globals.values(), *found.nonlocals.values()) if isinstance(value, ModuleType)]
