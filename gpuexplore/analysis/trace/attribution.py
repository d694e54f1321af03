"""Which operation launched which work of a GPU."""

from collections import defaultdict
from collections.abc import Mapping, Sequence

from gpuexplore.analysis.trace.events import Call, Kernel, Trace
from gpuexplore.analysis.trace.nesting import Nested

OPERATIONS = ("cpu_op", "user_annotation")
DEEPEST = 8  # calls of runtime and driver within each other


def kernels_by_call(trace: Trace, nested: Nested) -> Mapping[int | None, Sequence[Kernel]]:
    """Return the kernels that each call launched, by its index; under None those whose call is unknown.

    Kineto gives a kernel the external id of the operation that was innermost when it was launched. Where it is missing,
    the call of CUDA's runtime with the kernel's correlation leads there, by the operation around it.
    """
    by_external_id: dict[int | None, int] = {
        call.external_id: index
        for index, call in enumerate(trace.calls)
        if call.category in OPERATIONS and call.external_id is not None
    }
    by_correlation: dict[int | None, int] = {
        call.correlation: index
        for index, call in enumerate(trace.calls)
        if call.category not in OPERATIONS and call.correlation is not None
    }
    found: dict[int | None, list[Kernel]] = defaultdict(list)
    for kernel in trace.kernels:
        launcher = by_external_id.get(kernel.external_id)
        if launcher is None:
            launcher = _around(by_correlation.get(kernel.correlation), trace.calls, nested)
        found[launcher].append(kernel)
    return found


def _around(index: int | None, calls: Sequence[Call], nested: Nested) -> int | None:
    """Return the innermost operation around a call of the runtime."""
    for _ in range(DEEPEST):
        if index is None or calls[index].category in OPERATIONS:
            return index
        index = nested.parents[index]
    return None


def busy_ns(kernels: Sequence[Kernel]) -> int:
    """Return how long at least one of `kernels` was running."""
    busy, until = 0, -(2**63)
    for kernel in sorted(kernels, key=lambda kernel: kernel.start_ns):
        busy += max(0, kernel.end_ns - max(kernel.start_ns, until))
        until = max(until, kernel.end_ns)
    return busy
