"""A step in a trace of torch.profiler next to its prediction, operation by operation, and what the difference is.

A step is that of the `ProfilerStep#` marker with the median time, without markers one of equal repetitions, else the
whole trace; of several GPUs the busiest one. Products are matched by their shapes, whichever way they are transposed,
several of one input by the sum of their columns. A trace does not say how much of the host's time is idle on purpose.
"""

import re
from bisect import bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, combinations_with_replacement, pairwise
from math import exp, log, prod
from operator import attrgetter
from statistics import median_low
from typing import Any, NamedTuple

from gpuexplore.core import InvalidInput, format_multiple, format_percent, format_seconds
from gpuexplore.features.model.analysis.answers import GROUPS
from gpuexplore.features.model.analysis.prediction import ModelPrediction, StepPrediction
from gpuexplore.features.model.analysis.step_time import INTERVAL_DEVIATIONS
from gpuexplore.features.trace.analysis.attribution import busy_ns, nest
from gpuexplore.features.trace.analysis.call_kinds import kind_of
from gpuexplore.features.trace.analysis.events import Call, Kernel, ProfilerTrace, read_trace
from gpuexplore.features.trace.analysis.table import NS, TraceRow, table_of, traced_on

ALIKE = 1.1  # ratio of FLOPs up to which a trace is of the request, and of times that are as predicted
LEAST_SHARE = 0.15  # of a difference, or of a step, that is worth a word
LONG_AGO_NS = -(2**63)
BEGAN = attrgetter("start_ns")
KINDS = {  # of operations and kernels, by group and what a reader calls them: the first whose pattern is in the name
    ("communication", "communication"): (
        r"nccl|rccl|c10d|param_comms|all_?reduce|all_?gather|reduce_?scatter|all_?to_?all|cross_device_reduce|symm_mem"
    ),
    ("optimizer", "optimizer"): r"^optimizer|multi_tensor_apply|::_(foreach|fused)_|fused_?adam",
    ("elementwise", "fused operations"): r"^triton_(poi|red|per)_",
    ("attention", "attention"): r"attn|attention|fmha|flash_(fwd|bwd)|mha_|::(ba?dd)?bmm|::baddbmm",
    ("products", "matrix products"): (
        r"gemm|gemv|::(add)?mm\b|::_?\w*linear$|matmul|conv(?!ert)|cutlass|cublas|nvjet|cijk|xmma|splitk|[wd]grad|winograd"
        r"|triton_(tem|mm)|_mm\b|moe|expert"
    ),
    ("elementwise", "normalisation and softmax"): r"norm|softmax|\bbn_",
    ("elementwise", "embedding"): r"(?<!rotary_)embedding|index_?select",
    ("elementwise", "copies"): r"copy|memcpy|memset|fill|zero|::cat$|catarray|clone|::_?to",
}
VIEWS = re.compile(  # that compute nothing
    r"::(_?(unsafe_)?view|t|transpose|as_strided|_?reshape(_alias)?|expand|permute|slice|select|unsqueeze|squeeze|detach_?"
    r"|alias|unbind|split|chunk|narrow|empty\w*|result_type|resolve_\w+|item|_local_scalar_dense|lift_fresh|set_|resize_)$"
)


class _StepOperation(NamedTuple):
    """Alike calls of a step, as seen in a trace or as predicted.

    Attributes:
        group: what their time is added to, a key of GROUPS.
        title: for readers.
        sizes: rows, terms and columns of a product, sorted; empty where they are unknown, and of others.
        flop_count: of all of them; None where it is unknown.
    """

    group: str
    title: str
    sizes: tuple[int, ...]
    dtypes: tuple[str, ...]
    calls: int
    time_s: float
    flop_count: int | None


Pair = tuple[_StepOperation | None, _StepOperation | None]


@dataclass(frozen=True, slots=True)
class SeenStep:
    """A step in a trace.

    Attributes:
        on: the GPU's name; None where the trace has none.
        spec_key: of it; None where it is unknown.
        is_gpu: whether anything ran on a GPU: else times are those of the host.
        choice: which step of the trace it is, in words.
        idle_s: time in which no kernel ran, or no operation of the host.
        longest_s: of it, at once and between kernels.
        kernels: that ran in it.
    """

    name: str
    on: str | None
    spec_key: str | None
    is_gpu: bool
    choice: str
    step_s: float
    idle_s: float
    longest_s: float
    kernels: int
    operations: tuple[_StepOperation, ...]

    @property
    def dtype(self) -> str | None:
        """The dtype of most of the products' time, of those that products are predicted in; None without shapes."""
        spent: dict[str, float] = defaultdict(float)
        for each in self.operations:
            if each.group == "products" and each.dtypes[:1] and each.dtypes[0] in ("fp32", "bf16", "fp16"):
                spent[each.dtypes[0]] += each.time_s
        return max(spent, key=lambda dtype: spent[dtype], default=None)


def read_step(name: str, content: bytes, most_bytes: int, flop_counts: Sequence[float] = ()) -> SeenStep:
    """Return one step of a trace.

    Args:
        name: of the file.
        content: of it.
        most_bytes: that it may have unpacked.
        flop_counts: of the products of a step that may be meant: a trace with a multiple of it has several.

    Raises:
        InvalidInput: it is no trace.
    """
    trace = _of_one_gpu(read_trace(name, content, most_bytes))
    on = traced_on(trace)
    starts, choice = _starts(trace, flop_counts)
    trace, step_ns = _cut(trace, starts)
    if not (trace.kernels or trace.calls):
        raise InvalidInput(f"{trace.name}: nothing ran in the step, {choice}")
    table = table_of(trace, on)
    busy_s = table.self_cpu_s if table.busy_s is None else table.busy_s
    rows = [row for row in table.rows if row.time_s or row.flop_count]
    silent = busy_ns([kernel for kernel in trace.kernels if _group_of(kernel.name)[0] != "communication"]) * NS
    exchanged = sum(row.time_s for row in rows if _group_of(row.operation, row.kind)[0] == "communication")
    exposed = (busy_s - silent) / exchanged if exchanged and trace.kernels else 1.0
    return SeenStep(
        trace.name,
        on.name,
        on.device.spec_key if on.device else None,
        bool(trace.kernels),
        choice,
        step_ns * NS,
        max(0.0, step_ns * NS - busy_s),
        _longest_gap_ns(trace.kernels) * NS,
        len(trace.kernels),
        tuple(_seen(row, exposed, is_gpu=bool(trace.kernels)) for row in rows),
    )


def _group_of(name: str, kind: str | None = None) -> tuple[str, str]:
    """Return the group of an operation or kernel, a key of GROUPS, and what a reader calls it.

    Args:
        name: of it.
        kind: that `kind_of` knows it by.
    """
    if kind == "attention":
        return kind, kind
    found = next((group for group, pattern in KINDS.items() if re.search(pattern, name, re.IGNORECASE)), None)
    return found or ("elementwise", "other element-wise operations")


def _of_one_gpu(trace: ProfilerTrace) -> ProfilerTrace:
    """Return what ran on the busiest GPU, and the calls of the process that launched it."""
    spent: Counter[Any] = Counter()
    for kernel in trace.kernels:
        spent[kernel.lane] += kernel.time_ns
    lane = max(spent, key=lambda each: spent[each], default=None)
    kernels = tuple(kernel for kernel in trace.kernels if kernel.lane == lane)
    numbers = {kernel.correlation for kernel in kernels} - {None}
    launching = Counter(call.process for call in trace.calls if call.correlation in numbers)
    launching = launching or Counter(call.process for call in trace.calls if call.category == "cpu_op")
    process = max(launching, key=lambda each: launching[each], default="")
    return replace(trace, calls=tuple(call for call in trace.calls if call.process == process), kernels=kernels)


def _starts(trace: ProfilerTrace, flop_counts: Sequence[float]) -> tuple[list[int], str]:
    """Return when each step of a trace starts on the host, in ns, and how they were found, in words."""
    marked = [call.start_ns for call in trace.calls if call.name.startswith("ProfilerStep#")]
    if marked:
        many = f"the median of {len(marked)} ProfilerStep markers"
        return sorted(marked), many if len(marked) > 1 else "that of the ProfilerStep marker"
    ops = sorted((call for call in trace.calls if call.category == "cpu_op"), key=BEGAN)
    table = table_of(trace, traced_on(trace))
    products = [row for row in table.rows if row.flop_count and _group_of(row.operation, row.kind)[0] == "products"]
    flop_count = sum(row.calls * (row.flop_count or 0) for row in products)
    names = {row.operation for row in products}
    events: list[Call | Kernel] = [call for call in ops if call.name in names or not products]
    events = events or sorted(trace.kernels, key=BEGAN)
    keys = [(each.name, str(getattr(each, "arguments", ""))) for each in events]
    counts: Iterable[int] = range(len(keys) // 2, 1, -1)
    if products:
        counts = {round(flop_count / each) for each in flop_counts if each} - {0, 1}
    for count in counts:
        size, rest = divmod(len(keys), count)
        if not rest and keys[size:] == keys[:-size]:
            words = f"the median of {count} repetitions"
            return [_outermost_ns(events[at], ops) for at in range(0, len(events), size)], words
    return [], "the whole trace"


def _outermost_ns(event: Call | Kernel, ops: Sequence[Call]) -> int:
    return min((op.start_ns for op in ops if op.start_ns <= event.start_ns < op.end_ns), default=event.start_ns)


def _cut(trace: ProfilerTrace, starts: Sequence[int]) -> tuple[ProfilerTrace, int]:
    """Return the calls and kernels of the step with the median time, and its time in ns.

    A step ends where the next one starts on the GPU, the last one with its last kernel. What was launched before the
    first start is of none: a GPU still works on it when the host has gone on.
    """
    launched = {call.correlation: call.start_ns for call in trace.calls if call.category.startswith("cuda")}
    first_ns = min((kernel.start_ns for kernel in trace.kernels if kernel.correlation in launched), default=LONG_AGO_NS)
    own: dict[int, list[Kernel]] = defaultdict(list)
    for kernel in trace.kernels:
        unknown_ns = kernel.start_ns if kernel.start_ns >= first_ns else LONG_AGO_NS
        own[bisect_right(starts, launched.get(kernel.correlation, unknown_ns))].append(kernel)
    events: list[Call | Kernel] = [*trace.kernels, *trace.calls]
    since = starts or [LONG_AGO_NS]
    if not starts:  # what the GPU took, where there is one: what is before prepares it
        own = {1: own[0]}
        events = [*own[1]] or events
        starts = [min(each.start_ns for each in events)]
    end_ns = max(each.end_ns for each in events)
    began = [max([start, *(kernel.end_ns for kernel in own.get(step, ()))]) for step, start in enumerate(starts)]
    spans = [after - before for before, after in pairwise([*began, end_ns])]
    usual = spans[1:-1] or spans[:-1] or spans  # the first may warm up, the last lacks what follows it
    at = spans.index(median_low(usual))
    until_ns = starts[at + 1] if at + 1 < len(starts) else end_ns + 1
    calls = [call for call in _in_context(trace) if since[at] <= call.start_ns < until_ns]
    return replace(trace, calls=tuple(calls), kernels=tuple(own.get(at + 1, ()))), spans[at]


def _longest_gap_ns(kernels: Sequence[Kernel]) -> int:
    ordered = sorted(kernels, key=BEGAN)
    ends = accumulate((kernel.end_ns for kernel in ordered), max)
    return max((after.start_ns - end for end, after in zip(ends, ordered[1:], strict=False)), default=0)


def _in_context(trace: ProfilerTrace) -> Iterator[Call]:
    """Yield the calls without annotations; what an optimizer or an attention calls, with its name before their own.

    Without shapes so do calls that leave a product to another one.
    """
    calls = trace.calls
    parents, _ = nest(calls)
    products = [_group_of(call.name, kind_of(call.name))[0] == "products" for call in calls]
    leaving = {parents[index] for index, is_product in enumerate(products) if is_product and not trace.has_shapes}
    contexts: dict[int | None, str] = {None: ""}
    for index in sorted(range(len(calls)), key=lambda index: (calls[index].start_ns, -calls[index].end_ns)):
        call = calls[index]
        outer = contexts[parents[index]]
        own = "optimizer" if call.name.startswith("Optimizer.") else "attention" * (kind_of(call.name) == "attention")
        contexts[index] = outer or own
        if call.category != "user_annotation":
            within = "" if kind_of(call.name) == "matrix products" else outer  # their work is known by their names
            within = within or "outer" * (index in leaving and products[index])
            yield replace(call, name=f"{within}: {call.name}") if within else call


def _seen(row: TraceRow, exposed: float, *, is_gpu: bool) -> _StepOperation:
    """Return a row of a trace as what a prediction knows.

    Args:
        row: of the table of the step.
        exposed: share of the time of communication in which nothing else ran.
        is_gpu: whether the time is of kernels.
    """
    group, title = _group_of(row.operation, row.kind)
    if not is_gpu and VIEWS.search(row.operation) and group == "elementwise":
        group, title = "host", "views and allocation"
    shapes = row.shapes or ()
    sizes: tuple[int, ...] = ()
    is_convolution = row.kind == "convolutions"
    at = 1 + ("backward" in row.operation) if is_convolution else int("addm" in row.operation)
    dims = shapes[at] if group == "products" and row.flop_count and at < len(shapes) else ()
    if is_convolution and len(dims) > 2:
        title = f"conv {' × '.join(map(str, dims[2:]))}, {dims[1]} → {dims[0]}"
    elif dims and row.flop_count and not is_convolution:
        sizes = (prod(dims[:-1]), dims[-1], row.flop_count // (2 * prod(dims)))
        title = f"linear {sizes[1]} → {sizes[2]}"
    is_part = row.operation.startswith(("attention: ", "outer: "))
    is_part = is_part or (group == "products" and row.shapes is not None and not row.flop_count)
    return _StepOperation(
        group,
        title,
        tuple(sorted(sizes)),
        row.dtypes,
        0 if is_part and not is_gpu else row.calls,  # of a GPU each has a kernel
        row.time_s * (exposed if group == "communication" else 1.0),
        row.flop_count * row.calls if row.flop_count else None,
    )


def flops_of(phase: StepPrediction) -> float:
    """Return the FLOPs of the products of a predicted step, without attention."""
    return sum(part.flop_count * part.count for part, _ in phase.parts if part.group == "products")


def compared_step(prediction: ModelPrediction, seen: SeenStep) -> dict[str, Any]:
    """Return a step of a trace next to its prediction, as plain values, with what the difference is in sentences.

    Of serving, prompts or the next token are meant, whichever has its FLOPs. What one side does not have is None.
    """
    products = [each for each in seen.operations if each.group == "products"]
    unknown_s = sum(each.time_s for each in products if not each.flop_count)
    seen_flops = sum(each.flop_count or 0 for each in products)
    is_known = bool(seen_flops) and unknown_s <= LEAST_SHARE * sum(each.time_s for each in products)
    phases = {name: phase for name in ("train", "prefill", "decode") if (phase := getattr(prediction, name))}
    name = next(each for each in phases if phases[each] is prediction.main)
    if is_known:
        name = min(phases, key=lambda each: abs(log(seen_flops / (flops_of(phases[each]) or 1.0))))
    phase = phases[name]
    predicted = _predicted(phase)
    rows, unlike = _product_rows(predicted, products)
    rows += [(None, each) for each in _pooled(each for each in seen.operations if each.group == "elementwise").values()]
    head = (0, 0)  # FLOPs of a product of the last token, and of all of them in the trace
    if len(unlike) == 1 and name != "train" and unlike[0][0].sizes[0] == prediction.plan.batch:
        head = unlike[0][0].flop_count or 1, unlike[0][1].flop_count or 1
    same = flops_of(phase) - head[0], seen_flops - head[1]
    wide = exp(INTERVAL_DEVIATIONS * phase.deviation)
    found: dict[str, Any] = {
        "trace": seen.name,
        "traced_on": seen.on,
        "step": seen.choice,
        "phase": name,
        "seen_s": seen.step_s,
        "predicted_s": phase.time_s.value,
        "predicted_low_s": phase.time_s.low,
        "predicted_high_s": phase.time_s.high,
        "ratio": seen.step_s / phase.time_s.value,
        "predicted_flop_count": flops_of(phase),
        "seen_flop_count": seen_flops if is_known else None,
        "flop_ratio": same[1] / same[0] if is_known and all(same) else None,
        "products_of_other_rows": len(unlike) - any(head),
        "groups": [_row(*pair, wide) for pair in _groups(phase, predicted, seen)],
        "operations": sorted(
            (_row(*pair, wide) for pair in rows), key=lambda row: -max(row["predicted_s"] or 0.0, row["seen_s"] or 0.0)
        ),
    }
    return {"sentence": _sentence(found, seen), "notes": list(_notes(found, prediction, seen, head))} | found


def _groups(phase: StepPrediction, predicted: Sequence[_StepOperation], seen: SeenStep) -> Iterator[Pair]:
    """Yield what each group takes, as predicted and as seen."""
    idle = _StepOperation("host", "", (), (), 0, seen.idle_s, None)
    for group, title in {**GROUPS, "host": "idle, or host"}.items():
        sides = [[each for each in side if each.group == group] for side in (predicted, (*seen.operations, idle))]
        calls = [0 if group == "host" else sum(each.calls for each in side) for side in sides]
        times = phase.seconds.get(group, 0.0), sum(each.time_s for each in sides[1])
        found = [_StepOperation(group, title, (), (), *both, None) for both in zip(calls, times, strict=True)]
        if any(times):
            yield found[0], found[1]


def _row(predicted: _StepOperation | None, seen: _StepOperation | None, wide: float) -> dict[str, Any]:
    sides = [each or _StepOperation("", "", (), (), 0, 0.0, None) for each in (predicted, seen)]
    calls = [each.calls or None for each in sides]
    times = [each.time_s or None for each in sides]
    return {
        "part": sides[0].title or sides[1].title,
        "group": sides[0].group or sides[1].group,
        "predicted_calls": calls[0],
        "seen_calls": calls[1],
        "predicted_s": times[0],
        "predicted_low_s": times[0] and times[0] / wide,
        "predicted_high_s": times[0] and times[0] * wide,
        "seen_s": times[1],
        "ratio": times[1] / times[0] if times[0] and times[1] else None,
    }


def _predicted(phase: StepPrediction) -> list[_StepOperation]:
    """Return the parts of a predicted step, with seconds that add up to it."""
    raw_s: dict[str, float] = defaultdict(float)
    for part, part_s in phase.parts:
        raw_s[part.group] += part_s
    found = []
    for part, part_s in phase.parts:
        title = part.name.removesuffix(", backward")
        lengths = re.fullmatch(r"linear (\d+) → (\d+)", title)
        sizes = [int(each) for each in lengths.groups()] if lengths else []
        sizes += [round(part.flop_count / (2 * prod(sizes)))] if lengths else []
        time_s = phase.seconds.get(part.group, 0.0) * part_s / (raw_s[part.group] or 1.0)
        found.append(
            _StepOperation(
                part.group,
                title,
                tuple(sorted(sizes)),
                (part.dtype,),
                part.count,
                time_s,
                round(part.flop_count * part.count),
            )
        )
    return found


def _product_rows(
    predicted: Sequence[_StepOperation], products: Sequence[_StepOperation]
) -> tuple[list[Pair], list[tuple[_StepOperation, _StepOperation]]]:
    """Return each product as predicted and as seen; and again those that have other rows in the trace."""
    wanted = _pooled(each for each in predicted if each.group == "products")
    pool = _pooled(products)
    taken = {key: _take(pool, key, each.calls) for key, each in wanted.items()}
    for key, each in wanted.items():
        missing = each.calls - taken[key].calls
        parts = next(_merged(each, pool, missing), ()) if missing > 0 else ()
        taken[key] = _added([taken[key], *(_take(pool, part, missing) for part in parts)])
    unlike = []
    for key, each in wanted.items():
        alike = [
            other for other in pool if each.sizes and pool[other].calls and _lengths(pool[other]) == _lengths(each)
        ]
        if alike and not taken[key].calls:
            taken[key] = _take(pool, alike[0], pool[alike[0]].calls)
            unlike.append((each, taken[key]))
    left = [each for each in pool.values() if each.time_s]
    return [*((each, taken[key]) for key, each in wanted.items()), *((None, each) for each in left)], unlike


def _pooled(operations: Iterable[_StepOperation]) -> dict[Any, _StepOperation]:
    """Return operations with those of equal sizes, or without sizes of equal title, as one."""
    alike: dict[Any, list[_StepOperation]] = defaultdict(list)
    for each in operations:
        alike[each.sizes or each.title].append(each)
    return {key: _added(found) for key, found in alike.items()}


def _added(operations: Sequence[_StepOperation]) -> _StepOperation:
    return operations[0]._replace(
        calls=sum(each.calls for each in operations),
        time_s=sum(each.time_s for each in operations),
        flop_count=sum(each.flop_count or 0 for each in operations),
    )


def _take(pool: dict[Any, _StepOperation], key: Any, count: int) -> _StepOperation:
    """Return up to `count` calls out of a pool, with their share of the time."""
    there = pool.get(key, _StepOperation("products", "", (), (), 0, 0.0, 0))
    share = min(1.0, count / there.calls) if there.calls else 0.0
    taken, pool[key] = (
        there._replace(
            calls=round(there.calls * part),
            time_s=there.time_s * part,
            flop_count=round((there.flop_count or 0) * part),
        )
        for part in (share, 1 - share)
    )
    return taken


def _lengths(product: _StepOperation) -> list[int]:
    """Return the terms and columns of a product, sorted: a backward pass swaps them."""
    return sorted(map(int, re.findall(r"\d+", product.title)))


def _merged(whole: _StepOperation, pool: Mapping[Any, _StepOperation], count: int) -> Iterator[tuple[Any, ...]]:
    """Yield products that one is the sum of along its columns or terms, `count` times or more in the pool."""
    for length in set(whole.sizes) & {*_lengths(whole)}:
        lengths = {}
        for key, each in pool.items():
            rest = Counter(each.sizes) + Counter([length]) - Counter(whole.sizes)
            if each.sizes and each.calls >= count and rest.total() == 1:
                lengths[key] = next(iter(rest))
        for number in (2, 3, 4):
            for parts in combinations_with_replacement(lengths, number):
                is_there = all(pool[part].calls >= count * times for part, times in Counter(parts).items())
                if is_there and sum(lengths[part] for part in parts) == length:
                    yield parts


def _sentence(found: Mapping[str, Any], seen: SeenStep) -> str:
    """Return what the difference is."""
    ends = f"{format_seconds(found['predicted_low_s'])} to {format_seconds(found['predicted_high_s'])}"
    predicted = f"the predicted {format_seconds(found['predicted_s'])} ({ends})"
    measured = f"{format_seconds(found['seen_s'])} measured, {format_multiple(found['ratio'])} times {predicted}"
    ratio = found["flop_ratio"]
    if ratio is not None and not 1 / ALIKE <= ratio <= ALIKE:
        more = f"{format_multiple(ratio)} times as many" if ratio > 1 else f"{format_percent(ratio)} of the"
        why = f"its products have {more} FLOPs; check model, task, batch and tokens"
        return f"This trace is not of this request: {why}. {measured}."
    if count := found["products_of_other_rows"]:
        other = f"{count} of the products have other rows in it, batch × tokens"
        return f"This trace is not of this request: {other}. {measured}."
    total_s = found["seen_s"] - found["predicted_s"]
    is_alike = 1 / ALIKE <= found["ratio"] <= ALIKE
    least_s = LEAST_SHARE * (found["seen_s"] if is_alike else abs(total_s))
    deltas = [((row["seen_s"] or 0.0) - (row["predicted_s"] or 0.0), row) for row in found["groups"]]
    causes = [each for each in deltas if abs(each[0]) >= least_s and (is_alike or each[0] * total_s > 0)]
    words: list[str] = []
    for delta_s, row in sorted(causes, key=lambda each: -abs(each[0])):
        of = "in " if words else "of the difference is in "
        share = "" if is_alike else f"{format_percent(min(1.0, delta_s / total_s))} {of}"
        words.append(f"{share}{_cause(row, seen)}")
    large = [row for row in found["groups"] if row["ratio"] and row["seen_s"] >= LEAST_SHARE * found["seen_s"]]
    as_predicted = [row["part"] for row in large if 1 / ALIKE <= row["ratio"] <= ALIKE]
    words += [f"as predicted: {', '.join(as_predicted)}"] if as_predicted else []
    only = "" if found["seen_flop_count"] else "If this trace is of this request, which needs shapes to be checked: "
    return f"{only}{measured}{': ' if words else ''}{'; '.join(words)}."


def _cause(row: Mapping[str, Any], seen: SeenStep) -> str:
    """Return how a group differs from its prediction, and why where the trace says so."""
    if row["group"] == "host" and seen.is_gpu and seen.idle_s > (row["predicted_s"] or 0.0):
        is_once = seen.longest_s > seen.idle_s / 2
        why = f"once {format_seconds(seen.longest_s)}" if is_once else "launch-bound"
        return f"idle time between {seen.kernels:,} kernels ({why})"
    if row["ratio"] is None:
        return f"{row['part']}, {'not predicted' if row['seen_s'] else 'not in the trace'}"
    predicted = row["predicted_calls"] or 0
    calls = row["seen_calls"] or 0
    is_unfused = row["group"] == "elementwise" and row["ratio"] > 1 and calls > ALIKE * predicted
    why = f" (not fused: {calls:,} calls, {predicted:,} predicted)" if is_unfused else ""
    return f"{row['part']}, {format_multiple(row['ratio'])} times{why}"


def _notes(
    found: Mapping[str, Any], prediction: ModelPrediction, seen: SeenStep, head: tuple[float, float]
) -> Iterator[str]:
    """Yield what limits the comparison."""
    device = prediction.device
    if seen.is_gpu != (device.kind != "cpu"):
        yield f"The trace is of a {'GPU' if seen.is_gpu else 'CPU'}, the prediction of {device.title}."
    elif seen.is_gpu and seen.spec_key != (device.spec_key or seen.spec_key):
        yield f"The trace was taken on {seen.on or 'a GPU it does not name'}, the prediction is of {device.title}."
    yield f"Step: {seen.choice}."
    if found["seen_flop_count"] is None:
        yield (
            "Shapes of the products are not in the trace, so whether it is of this request and dtype is unknown: "
            "profile with record_shapes=True, without CUDA graphs."
        )
    if absent := [row["part"] for row in found["groups"] if row["predicted_s"] and not row["seen_s"]]:
        yield f"Predicted, and not in the trace: {', '.join(absent)}."
    if any(head):
        times = format_multiple(head[1] / head[0])
        yield f"The last product has {times} times as many rows: logits of all tokens, not of the last one only."
    dtype = prediction.plan.dtype
    if seen.dtype not in (None, {"tf32": "fp32", "fp8": None}.get(dtype, dtype)):
        yield f"Products are in {seen.dtype} in the trace, in {dtype} in the prediction."
    if not seen.is_gpu:
        yield "Times are those of the host, with the overhead of profiling."
