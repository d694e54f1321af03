"""Operations that launched kernels, as far as a trace says, and how long each kernel can have run."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

from gpuexplore.features.trace.analysis.events import OPERATIONS, Call, Kernel, Lane, ProfilerTrace

SLACK_NS = 5000  # of one kernel's end over the next one's start, which rounding of stamps explains
Parents = Sequence[int | None]  # the call that each was made within, by its index; None for the outermost of a thread


def nest(calls: Sequence[Call]) -> tuple[Parents, tuple[int, ...]]:
    """Return who called whom, and the time of each call less that of the calls made directly within it.

    A call is within another of its thread when its time is.

    The rule is that of `torch.autograd.profiler_util.EventList`, so self times add up to what `key_averages()` says.
    """
    slack_ns = SLACK_NS if all(call.start_ns % 1000 == 0 for call in calls) else 0
    threads: dict[str, list[int]] = defaultdict(list)
    for index, call in enumerate(calls):
        threads[call.thread].append(index)
    parents: list[int | None] = [None] * len(calls)
    self_ns = [call.end_ns - call.start_ns for call in calls]
    for indices in threads.values():
        indices.sort(key=lambda index: (calls[index].start_ns, -calls[index].end_ns))
        stack: list[int] = []
        for index in indices:
            call = calls[index]
            while stack:
                outer = calls[stack[-1]]
                if call.start_ns < outer.end_ns and call.end_ns <= outer.end_ns + slack_ns:
                    break
                stack.pop()
            parents[index] = stack[-1] if stack else None
            stack.append(index)
    for index, parent in enumerate(parents):
        if parent is not None:
            self_ns[parent] -= calls[index].end_ns - calls[index].start_ns
    return parents, tuple(max(0, time_ns) for time_ns in self_ns)


def attribute(trace: ProfilerTrace, parents: Parents) -> tuple[Mapping[int | str, Sequence[Kernel]], Sequence[int]]:
    """Return which kernels belong to which call, each ended where the next one on its stream began; and what they lost.

    They are by the index of the operation that launched them; by their own name where none is known, or it is a graph
    or a region of many operations. Lost is the time in ns, of each kernel that ends long after the next one began.

    Kineto gives a kernel the external id of the operation that was innermost when it was launched. Where it is missing,
    or another number (the correlation, in traces of 2023), the call of the runtime with the kernel's correlation leads
    there, by the operation around it.
    """
    calls = trace.calls
    regions = ("Torch-Compiled Region", "## Call CompiledFxGraph", "CompiledFunction", "ProfilerStep")  # of many
    by_external_id = _by_number(calls, lambda call: call.external_id if call.category in OPERATIONS else None)
    by_correlation = _by_number(calls, lambda call: None if call.category in OPERATIONS else call.correlation)
    processes = _processes(trace, by_correlation, by_external_id)
    launches = _matched(trace, [kernel.correlation for kernel in trace.kernels], by_correlation, processes)
    operations = _matched(trace, [kernel.external_id for kernel in trace.kernels], by_external_id, processes)
    launched_by = ["" if launch is None else calls[launch].name for launch in launches]
    kernels = _one_after_another(trace.kernels, launched_by)
    found: dict[int | str, list[Kernel]] = defaultdict(list)
    for kernel, launch, operation, by in zip(kernels, launches, operations, launched_by, strict=True):
        caller = operation
        if launch is not None:
            began = calls[launch]
            around = None if operation is None else calls[operation]
            is_within = around and around.thread == began.thread and around.start_ns <= began.start_ns <= around.end_ns
            if not is_within:
                caller = _around(launch, calls, parents)
        is_of_graph = kernel.in_graph or "GraphLaunch" in by
        if caller is None or is_of_graph:
            found[kernel.name].append(kernel)
        else:
            is_operation = calls[caller].category == "cpu_op" and not calls[caller].name.startswith(regions)
            found[caller if is_operation else kernel.name].append(kernel)
    return found, [before.end_ns - after.end_ns for before, after in zip(trace.kernels, kernels, strict=True)]


def _by_number(calls: Sequence[Call], number_of: Callable[[Call], int | None]) -> Mapping[int, list[int]]:
    found: dict[int, list[int]] = defaultdict(list)
    for index, call in enumerate(calls):
        number = number_of(call)
        if number is not None:
            found[number].append(index)
    return found


def _processes(trace: ProfilerTrace, *by_number: Mapping[int, list[int]]) -> Mapping[Lane, str]:
    """Return which process launched the kernels of which GPU; of none where there are fewer GPUs than processes.

    The one counts that gave most of the kernels' numbers before they began; among equals each process has its own GPU,
    in the order in which they stand in the file.
    """
    calls = trace.calls
    processes = list(dict.fromkeys(call.process for call in calls))
    lanes = dict.fromkeys(kernel.lane for kernel in trace.kernels)
    if len(lanes) < len(processes) or len(processes) < 2:
        return {}
    votes: dict[Lane, Counter[str]] = defaultdict(Counter)
    for kernel in trace.kernels:
        for numbers, number in zip(by_number, (kernel.correlation, kernel.external_id), strict=True):
            indices = [] if number is None else numbers.get(number, [])
            before = {calls[index].process for index in indices if calls[index].start_ns <= kernel.start_ns}
            votes[kernel.lane].update(before)
    found: dict[Lane, str] = {}
    for lane in lanes:
        taken = Counter(found.values())
        found[lane] = max(processes, key=lambda process: (votes[lane][process], process == lane[0], -taken[process]))
    return found


def _matched(
    trace: ProfilerTrace,
    numbers: Sequence[int | None],
    by_number: Mapping[int, list[int]],
    processes: Mapping[Lane, str],
) -> list[int | None]:
    """Return the call that each kernel's number means.

    A number is unique in its process only, and a trace may have several: where its process is unknown, as many calls as
    kernels with that number are matched in the order of the file; else it is the last call before the kernel.
    """
    asked = Counter(zip((kernel.lane for kernel in trace.kernels), numbers, strict=True))
    seen: Counter[tuple[Lane, int | None]] = Counter()
    found: list[int | None] = []
    for kernel, number in zip(trace.kernels, numbers, strict=True):
        indices = [] if number is None else by_number.get(number, [])
        if kernel.lane in processes:
            indices = [index for index in indices if trace.calls[index].process == processes[kernel.lane]]
        key = kernel.lane, number
        if len(indices) > 1 and asked[key] == len(indices):
            found.append(indices[seen[key]])
        else:
            before = [index for index in indices if trace.calls[index].start_ns <= kernel.start_ns] or indices[:1]
            found.append(max(before, key=lambda index: trace.calls[index].start_ns, default=None))
        seen[key] += 1
    return found


def _around(index: int | None, calls: Sequence[Call], parents: Parents) -> int | None:
    """Return the innermost operation around a call of the runtime."""
    for _ in range(8):  # calls of runtime and driver within each other
        if index is None or calls[index].category in OPERATIONS:
            return index
        index = parents[index]
    return None


def _one_after_another(kernels: Sequence[Kernel], launched_by: Sequence[str]) -> list[Kernel]:
    """Return the kernels, those ended that last beyond the start of the next one on a serial stream.

    Args:
        launched_by: the call of the runtime of each; those of graphs and of programmatic launches may overlap.
    """
    streams: dict[tuple[Lane, str], list[int]] = defaultdict(list)
    for index, (kernel, by) in enumerate(zip(kernels, launched_by, strict=True)):
        if kernel.stream and not kernel.in_graph and "GraphLaunch" not in by:
            streams[kernel.lane, kernel.stream].append(index)
    found = list(kernels)
    for indices in streams.values():
        indices.sort(key=lambda index: kernels[index].start_ns)
        for index, following in pairwise(indices):
            start_ns = kernels[following].start_ns
            # programmatic launches may overlap with the kernel before
            may_overlap = launched_by[following].startswith(("cudaLaunchKernelEx", "cuLaunchKernelEx"))
            if kernels[index].end_ns - start_ns > SLACK_NS and not may_overlap:
                found[index] = replace(kernels[index], end_ns=start_ns)
    return found


def busy_ns(kernels: Sequence[Kernel]) -> int:
    """Return how long at least one of `kernels` was running."""
    busy = 0
    until = -(2**63)
    for kernel in sorted(kernels, key=lambda kernel: kernel.start_ns):
        busy += max(0, kernel.end_ns - max(kernel.start_ns, until))
        until = max(until, kernel.end_ns)
    return busy
