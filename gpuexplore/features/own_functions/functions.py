"""`gx.measure`: a function of a user in this process, or sent to a worker that a crash or a hang may end."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from gpuexplore.api import Outcome, experiment_asked, measured_in_process
from gpuexplore.backends import torch as torch_backend
from gpuexplore.core import Case, Device, Experiment, InvalidInput, Result, name_typed, require
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.features.own_functions.declared import check_count, operation_of_arrays, shape_of_arrays
from gpuexplore.features.own_functions.sources import (
    PICKLED,
    add_functions,
    add_source,
    label_of,
    remove_source,
    title_of,
)
from gpuexplore.jobs.engines import WorkerLimits, batches_of, limits_typed
from gpuexplore.jobs.engines.local import LocalEngine
from gpuexplore.operations import OPERATIONS, Operation, operation_named
from gpuexplore.operations.own_code import Function


def measure(
    function: Function,
    inputs: Any = None,
    *,
    reference: Function | None = None,
    against: Sequence[str | Function] = (),
    isolated: bool = True,
    **about: Any,
) -> Outcome:
    """Measure a function of your own, with others, by the rules of `run`: checked first, a wrong one is never timed.

        gx.measure(my_softmax, [x], operation="softmax", against=["torch", "numpy"])
        gx.measure(f, [x, y], reference=f64, flops=2 * x.size, against=[g])

    Args:
        function: `function(*inputs) -> output`, of arrays of NumPy, Numba, torch, JAX or CuPy.
        inputs: its inputs, arrays of one dtype. Calls between and after the timed ones get the same numbers in another
            order; of an operation that is built in, only their shapes count. None: the sizes of `operation`.
        reference: the right answer, `reference(*inputs)` on NumPy's float64; None: that of `operation`.
        against: what it is compared with: other functions, and names of implementations of `operation`.
        isolated: whether it runs in a process of its own, which alone ends where it crashes or hangs.
        **about: `flops` of a call, a multiply-add counted as 2 (without it, there is no rate or MFU); `bytes` moved at
            least (without it, each input is read and the output written once); `operation`, a name that `gpuexplore
            list` prints or what `operation` declared; `library`, whose arrays it takes, where that cannot be seen;
            `memory_limit` of its process, like ``4GB`` (else half of what is free); `time_limit` of its first call, as
            ``10s`` (else 60s); and the settings of `run`: `sizes`, `dtypes`, `devices`, `cache`, `threads`, `budget`.

    Raises:
        InvalidInput: something asked for does not exist or does not fit; names it and what is accepted.
        TypeError: an unknown setting.
    """
    arrays = [] if inputs is None else list(inputs) if isinstance(inputs, list | tuple) else [inputs]
    if isinstance(against, str) or not isinstance(against, list | tuple):
        raise InvalidInput.of("against", against, "a list of functions, and of names that `gpuexplore list` prints")
    if arrays and (both := [name for name in ("sizes", "shapes", "dtypes", "devices") if name in about]):
        raise InvalidInput(f"{both[0]}: the inputs already determine it; leave out one of the two")
    if "implementations" in about:
        raise InvalidInput("implementations: give them as against=")
    operation = about.pop("operation", None)
    library = about.pop("library", "")
    limits = _limits_asked(about, isolated)
    given = {"reference": reference, **{name: about.pop(name, None) for name in ("flops", "bytes")}}
    if arrays:
        about |= {"dtypes": _dtype_of(arrays), "devices": _device_of(arrays)}
    names = [each for each in against if isinstance(each, str)]
    if names and operation is None:
        raise InvalidInput.of("against", names[0], "functions; names need operation=")
    own = add_functions([function, *(each for each in against if not isinstance(each, str))], library, arrays)
    declared = _operation_of(function, operation, arrays, given)
    if arrays:
        about["shapes"] = str(shape_of_arrays(declared, [tuple(array.shape) for array in arrays]))
    experiment, used = experiment_asked(declared, {**about, "implementations": [*names, *own]})
    if not isolated:
        return Outcome(experiment, measured_in_process(experiment, used))
    with _sent(own if declared.name in OPERATIONS else {**own, declared.name: declared}):
        return Outcome(experiment, _measured_apart(experiment, used, limits))


def _operation_of(
    function: Function, operation: str | Operation | None, arrays: Sequence[Any], facts: Mapping[str, Any]
) -> Operation:
    """Return the operation that a function computes; one that is made of these facts is remembered.

    Args:
        function: of a user.
        operation: the one it computes, or its name; None: that of the facts.
        arrays: its inputs.
        facts: `reference`, `flops` and `bytes`, each None where nothing is.

    Raises:
        InvalidInput: there is no such operation, or no reference for it.
    """
    if operation is not None:
        if given := [name for name, value in facts.items() if value is not None]:
            raise InvalidInput(f"{given[0]}: {operation} defines its own; leave out one of the two")
        require(
            isinstance(operation, str | Operation),
            "operation",
            operation,
            "a name that `gpuexplore list` prints, or a declared one",
        )
        return operation if isinstance(operation, Operation) else operation_named(operation)
    if not arrays or facts["reference"] is None:
        missing = "inputs" if not arrays else "reference"
        raise InvalidInput(f"{missing}: give them, or an operation= that has them: a wrong kernel is never timed")
    counts = {"flop_count": facts["flops"], "byte_count": facts["bytes"]}
    for what, count in counts.items():
        if count is not None:
            check_count(what.replace("_count", "s of a call"), count)
    title = title_of(function)
    name = f"own_{title}" if title in OPERATIONS else label_of(title).replace("-", "_")
    return operation_of_arrays(name, [_widened(array) for array in arrays], facts["reference"], **counts)


def _limits_asked(about: dict[str, Any], isolated: bool) -> WorkerLimits:
    """Take the limits of a worker, e.g. ``4GB`` and ``10s``, out of what was asked for and return them.

    Raises:
        InvalidInput: one is no size or no time, or there is no worker.
    """
    names = ("memory_limit", "time_limit")
    typed = {name: name_typed(name, about.pop(name)) for name in names if about.get(name) is not None}
    if typed and not isolated:
        raise InvalidInput(f"{next(iter(typed))}: it needs a separate process; leave out isolated=False")
    return limits_typed(*(typed.get(name, "") for name in names))


def _dtype_of(arrays: Sequence[Any]) -> str:
    """Return the name of the dtype that all arrays have.

    Raises:
        InvalidInput: they have several, or one that is not measured.
    """
    for array in arrays:
        if not all(hasattr(array, name) for name in ("dtype", "shape", "ndim")) or 0 in array.shape:
            raise InvalidInput.of("inputs", type(array).__name__, "numeric arrays of NumPy, torch, JAX or CuPy")
    names = sorted({str(array.dtype).rpartition(".")[2] for array in arrays})
    known = {row.array_name: row.name for row in DTYPES.values() if not row.matrix_only}
    if len(names) > 1 or names[0] not in known:
        accepted = f"arrays of one of {', '.join(known)}; create arrays of other dtypes inside the function"
        raise InvalidInput.of("dtype of the inputs", ", ".join(names), accepted)
    return known[names[0]]


def _device_of(arrays: Sequence[Any]) -> str:
    """Return the id of the device that arrays are on."""
    found = str(getattr(arrays[0], "device", "cpu")).lower()
    called, _, index = found.partition(":")
    index = index or "0"
    if type(arrays[0]).__module__.partition(".")[0] == "torch":
        return torch_backend.device_of(called, index)
    return f"cuda:{index}" if "cuda" in found else "cpu"


def _widened(array: Any) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Return an array of any library in float64, in host memory."""
    if hasattr(array, "detach"):
        return np.asarray(array.detach().cpu().double().numpy())
    return np.asarray(array.get() if hasattr(array, "get") else array).astype(np.float64)


def _measured_apart(experiment: Experiment, devices: Sequence[Device], limits: WorkerLimits) -> tuple[Result, ...]:
    """Return the results of every case, measured in a worker of its device: a crash or a hang ends that, not this."""
    results: dict[Case, Result] = {}

    def keep(event: Case | Result) -> None:
        if isinstance(event, Result):
            results[event.case] = event

    engine = LocalEngine(devices, limits=limits)
    try:
        for batch in batches_of(experiment.cases()):
            engine.measure(batch, keep, lambda: False)
    finally:
        engine.close()
    return tuple(results[case] for case in experiment.cases())


@contextmanager
def _sent(values: Mapping[str, Any]) -> Iterator[None]:
    """Inside, workers that are started find `values` by name.

    Raises:
        InvalidInput: one cannot be sent to another process.
    """
    import cloudpickle

    with TemporaryDirectory(prefix="gpuexplore-own-") as directory:
        try:
            for number, (name, value) in enumerate(values.items()):
                path = Path(directory) / f"{number}{PICKLED}"
                try:
                    path.write_bytes(cloudpickle.dumps(value))
                except Exception as error:
                    reason = f"{name} cannot be sent to a separate process ({error})"
                    raise InvalidInput(f"{reason}: isolated=False measures it in this one") from error
                add_source(name, str(path))
            yield
        finally:
            for name in values:
                remove_source(name)
