"""Answers on a model: sentences, the rows of tables, and one object of JSON, of predictions of its speed and memory."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from gpuexplore.analysis.prediction import UncertainValue
from gpuexplore.core.units import (
    format_gigabytes,
    format_multiple,
    format_percent,
    format_seconds,
    format_si,
    round_significant,
)
from gpuexplore.features.atlas.analysis.which_gpu import price_of
from gpuexplore.features.model.analysis import SERVED
from gpuexplore.features.model.analysis.network import link_of
from gpuexplore.features.model.analysis.parts import tokens_of
from gpuexplore.features.model.analysis.prediction import (
    ModelPrediction,
    StepPrediction,
    memory_of_each,
    predict_model,
    ratio,
    saturating,
    smallest_that_fits,
)
from gpuexplore.features.model.analysis.step_time import layer_bytes_of, step_of
from gpuexplore.hardware import row_of
from gpuexplore.measure.conditions.isolation import is_slow

PHASES: Mapping[str, str] = {"train": "training step", "prefill": "prompts", "decode": "next token"}
GROUPS: Mapping[str, str] = {
    "products": "matrix products",
    "attention": "attention",
    "elementwise": "element-wise operations",
    "optimizer": "optimizer",
    "communication": "communication",
    "host": "host",
    "bubble": "pipeline bubble",
}
MFU_WORDS: Mapping[str, str] = {
    "causal": "products and causal attention, as computed",
    "whole": "attention to all tokens, as llm-foundry, PaLM and torch's counter count it",
    "dense": "products alone, without attention",
    "six_n": "6 N a token, with N all weights a token uses",
    "hfu": "with what checkpointing computes again (HFU)",
}


def mfu_by_definition(prediction: ModelPrediction) -> dict[str, float | None]:
    """Return the MFU of a training step by each usual way to count its FLOPs, keys of MFU_WORDS."""
    counts = {
        "causal": prediction.flop_count,
        "whole": prediction.whole_flop_count,
        "dense": prediction.dense_flop_count,
        "six_n": prediction.six_n,
    } | ({"hfu": prediction.repeated_flop_count} if prediction.plan.checkpoint else {})
    if not prediction.model.tokens:
        del counts["six_n"]  # a weight of a convolution is used many times
    return {name: share.value if (share := prediction.mfu(count)) else None for name, count in counts.items()}


def gpus_words(prediction: ModelPrediction) -> str:
    """Return the GPUs, e.g. ``4 × A100 SXM4 80GB``."""
    count = f"{prediction.plan.gpus:,} × " if prediction.plan.gpus > 1 else ""
    return f"{count}{prediction.device.title}"


def headline(prediction: ModelPrediction) -> str:
    """Return the answer in a sentence: whether it fits, how fast it is, and what limits it."""
    plan = prediction.plan
    what = f"{prediction.model.title} in {dtype_words(prediction)} on {gpus_words(prediction)}"
    if prediction.fits is False:
        return f"{what} does not fit: {_too_large(prediction)}"
    rate = prediction.per_second
    unit = "tokens" if prediction.model.tokens else "samples"
    limit = f"bottleneck: {prediction.main.limit}"
    if prediction.train:
        mfu = prediction.mfu()
        share = (
            f", MFU {format_percent(mfu.value)} ({format_percent(mfu.low)} to {format_percent(mfu.high)})"
            if mfu
            else ""
        )
        speed = (
            f"{rate_words(rate)} {unit} a second in training, {format_seconds(prediction.train.time_s.value)} a step"
        )
        return f"{what}: {speed}{share}; {limit}."
    if prediction.decode is None:
        time = format_seconds(prediction.main.time_s.value)
        each_has = f"batch {plan.batch:,}{' on each' if plan.replicas > 1 else ''}"
        return f"{what}: {rate_words(rate)} {unit} a second at {each_has}, {time} for the batch; {limit}."
    each = prediction.decode.time_s
    user = UncertainValue(1 / each.value, 1 / each.high, 1 / each.low)
    users = plan.batch * plan.replicas
    words = f"{what}: {rate_words(user)} tokens a second for "
    words += "one user" if users == 1 else f"each of {users:,} users, {rate_words(rate)} in all"
    if prediction.prefill:
        after = prediction.prefill.time_s
        words += (
            f"; first token after {format_seconds(after.value)} "
            f"({format_seconds(after.low)} to {format_seconds(after.high)})"
        )
    return f"{words}; {limit}."


def dtype_words(prediction: ModelPrediction) -> str:
    """Return the dtype of the products, and of stored weights where that is another."""
    plan = prediction.plan
    stored = plan.weight_dtype
    return plan.dtype if plan.is_trained or stored in (plan.dtype, "fp32") else f"{plan.dtype} with {stored} weights"


def rate_words(rate: UncertainValue) -> str:
    """Return a rate with its interval, e.g. ``30 (26 to 35)``."""
    return f"{format_multiple(rate.value)} ({format_multiple(rate.low)} to {format_multiple(rate.high)})"


def _too_large(prediction: ModelPrediction) -> str:
    usable = prediction.usable_bytes or 0
    needed, room, more = map(format_gigabytes, (prediction.memory_bytes, usable, prediction.memory_bytes - usable))
    if prediction.device.kind == "cpu":
        return f"{needed} needed, {room} of this CPU's memory usable, {more} too much."
    stored = 0 if prediction.plan.is_trained else SERVED[prediction.plan.weight_dtype]
    fewer = [dtype for dtype in ("fp8", "int4") if SERVED[dtype] < stored]
    found = []
    for dtype in (prediction.plan.weights, *fewer):
        plan = smallest_that_fits(prediction.model, replace(prediction.plan, weights=dtype), prediction.device)
        if plan is None:
            continue
        trained = f"{plan.gpus} of them with sharded weights and" if plan.gpus > 1 else "one with"
        ways = {f"weights in {dtype}": dtype in fewer, f"tensor parallelism over {plan.gpus}": plan.gpus > 1}
        how = f"{trained} checkpointing" if plan.is_trained else " and ".join(words for words in ways if ways[words])
        each = " each" if plan.gpus > 1 else ""
        found.append(f"{how} ({format_gigabytes(memory_of_each(prediction.model, plan))}{each})")
        if plan.gpus == 1:
            break
    return f"{needed} a GPU, {room} usable{'; fits with ' if found else ''}{' or with '.join(found)}."


def measured_words(what: str, found: Mapping[str, Any], phase: StepPrediction, speed: float | None) -> str:
    """Return a measured step beside its prediction, as a sentence or two.

    Args:
        what: the model, dtype, device and task.
        found: what `measure.steps.measured` returns.
        speed: of the device meanwhile, over that at which its peaks were measured; None is unknown.
    """

    def beside(speed: float) -> tuple[str, str]:
        low, value, high = (time_s / speed for time_s in (predicted.low, predicted.value, predicted.high))
        words = f"{format_seconds(value)} predicted ({format_seconds(low)} to {format_seconds(high)})"
        return words, "within" if low <= found["step_s"] <= high else "outside"

    predicted = phase.time_s
    low, high = found["ci95"] or (min(found["samples_s"]), max(found["samples_s"]))
    threads = f", {found['threads']} threads" if found["threads"] else ""
    times = format_multiple(found["step_s"] / predicted.value)
    expected, place = beside(1.0)
    words = (
        f"{what}: {format_seconds(found['step_s'])} a step measured ({format_seconds(low)} to {format_seconds(high)}, "
        f"median of {len(found['samples_s'])}{threads}); {expected}, {times} times; {place} the predicted interval."
    )
    if speed is None or not is_slow(speed):
        return words
    expected, place = beside(speed)
    return f"{words} The CPU had {format_percent(speed)} of its measured speed meanwhile; {expected} for that: {place}."


def uncounted_words(prediction: ModelPrediction) -> str:
    """Return which operations of a module are in no number, as a sentence; empty where all are."""
    found = [f"{name}, {count:,} time{'s'[: count != 1]}" for name, count in prediction.uncounted.items()]
    return f"Not counted: {'; '.join(found)}." if found else ""


def compared(first: ModelPrediction, second: ModelPrediction, *, of: str = "GPU") -> str:
    """Return how much faster the first of two is, as a sentence."""
    found = ratio(first, second)
    names = [gpus_words(each) if of == "GPU" else dtype_words(each) for each in (first, second)]
    if found.low < 1 < found.high:
        return f"{names[0]} and {names[1]}: no significant difference ({_times(found)})."
    if found.value < 1:
        return compared(second, first, of=of)
    return f"{names[0]} is {_times(found)} as fast as {names[1]} for this model."


def comparisons(found: Sequence[ModelPrediction], plans: int) -> list[str]:
    """Return how GPUs compare in the first of so many plans, and plans on the first GPU; those that fit."""
    if not found or found[0].fits is False:
        return []
    first, *others = found[::plans]
    of_dtypes = [compared(each, first, of="dtype") for each in found[1:plans] if each.fits is not False]
    return [*(compared(first, each) for each in others if each.fits is not False), *of_dtypes]


def _times(found: UncertainValue) -> str:
    return f"{format_multiple(found.value)} times ({format_multiple(found.low)} to {format_multiple(found.high)})"


def batch_words(predictions: Sequence[ModelPrediction]) -> str:
    """Return from which batch on the rate is near its best, as a sentence; empty without predictions."""
    found = saturating(predictions)
    if found is None:
        return ""
    best = max(predictions, key=lambda each: each.per_second.value)
    rate = f"{format_multiple(best.per_second.value)} {'tokens' if found.model.tokens else 'samples'} a second"
    within = f"90 % of the best rate ({rate}) is reached from batch {found.plan.batch:,} on"
    return (
        f"{within}; the largest of the batches tried that fits is {predictions[-1].plan.batch:,}."
        if found.fits
        else f"{within}."
    )


def cost_of(prediction: ModelPrediction) -> dict[str, float | str] | None:
    """Return US dollars and joules of a million tokens or samples; None for a GPU without a listed price and power.

    Joules are of the board's power limit: an upper bound, without the host.
    """
    row = row_of(prediction.device)
    if row is None:
        return None
    rate = prediction.per_second.value
    found: dict[str, float | str] = {}
    price = price_of(row.key)
    if price:
        found |= {
            "usd": price.usd_per_hour * prediction.plan.gpus / 3600 / rate * 1e6,
            "usd_per_gpu_hour": price.usd_per_hour,
            "price_source": f"{price.provider}, {price.read_on}",
        }
    if row.power_w:
        found["joules_at_most"] = row.power_w * prediction.plan.gpus / rate * 1e6
    return found or None


def cost_words(prediction: ModelPrediction) -> str:
    """Return what a million tokens cost, as a sentence; empty where nothing is known."""
    found = cost_of(prediction)
    if found is None:
        return ""
    unit = "tokens" if prediction.model.tokens else "samples"
    parts = []
    if "usd" in found:
        parts.append(
            f"{round_significant(float(found['usd'])):,}".removesuffix(".0") + " US dollars "
            f"({found['price_source']}: {found['usd_per_gpu_hour']} per GPU hour)"
        )
    if "joules_at_most" in found:
        parts.append(f"at most {format_si(float(found['joules_at_most']), 'J')} at the boards' power limit")
    return f"A million {unit} cost {', and '.join(parts)}."


def _collectives_of(prediction: ModelPrediction) -> list[dict[str, Any]]:
    """Return the collectives between GPUs in a step, with their bandwidths as nccl-tests define them.

    Algorithm bandwidth is bytes over seconds; bus bandwidth is that times (n - 1) / n, of an all-reduce times two.
    """
    plan = prediction.plan
    if plan.gpus == 1:
        return []
    context = 0 if plan.is_trained or plan.task == "prefill" else tokens_of(prediction.model, plan) + plan.answer // 2
    step = step_of(prediction.model, plan, context=context)
    shared = link_of(prediction.device, plan.tensor_parallel)
    every = link_of(prediction.device, plan.gpus, plan.network_gbs, sharing=plan.tensor_parallel)
    found = [
        (
            "tensor parallelism",
            "all-reduce",
            size,
            shared,
            plan.tensor_parallel,
            shared.all_reduce_s(size, plan.tensor_parallel, is_served=not plan.is_trained),
        )
        for size, _ in step.reduced_bytes[:1]
    ]
    if plan.is_trained and plan.replicas > 1:
        size = layer_bytes_of(step, plan)
        name, sends = ("all-reduce", 2) if plan.shard == "none" else ("all-gather", 1)
        seconds = sends * every.gather_s(size, plan.replicas)
        found.append(("data parallelism, block by block", name, size, every, plan.replicas, seconds))
    return [
        {
            "of": of,
            "name": name,
            "byte_count": round(size),
            "workers": workers,
            "link": link.title,
            "time_s": seconds,
            "algorithm_bytes_per_s": size / seconds,
            "bus_bytes_per_s": size / seconds * (2 if name == "all-reduce" else 1) * (workers - 1) / workers,
            "longest_bus_bytes_per_s": link.bus_bytes_per_s,
            "is_assumed": link.is_assumed,
        }
        for of, name, size, link, workers, seconds in found
    ]


def _scaling_of(prediction: ModelPrediction) -> float | None:
    """Return the rate of a GPU over that of one alone with the same batch, as if its memory held it; None for one."""
    if prediction.plan.gpus == 1:
        return None
    alone = replace(prediction.plan, gpus=1, tensor_parallel=1, pipeline=1, shard="none")
    one = predict_model(prediction.model, alone, prediction.device)
    return prediction.per_second.value / prediction.plan.gpus / one.per_second.value


def scaling_words(prediction: ModelPrediction) -> str:
    """Return how efficient several GPUs are, and the bandwidths of their collectives; empty for one GPU."""
    share = _scaling_of(prediction)
    if share is None:
        return ""
    words = f"Scaling: each GPU reaches {format_percent(share)} of the rate of one alone with all of the model"
    for row in _collectives_of(prediction):
        bus, longest, alone = (
            format_si(row[key], "B/s")
            for key in ("bus_bytes_per_s", "longest_bus_bytes_per_s", "algorithm_bytes_per_s")
        )
        words += (
            f"; {row['name']} of {row['of']}, {format_si(row['byte_count'], 'B')} over {row['workers']:,} GPUs by "
            f"{row['link']}: {format_seconds(row['time_s'])}, algorithm bandwidth {alone}, bus bandwidth {bus} "
            f"(of long messages {longest}{', assumed' if row['is_assumed'] else ''})"
        )
    return f"{words}."


def shares_of(phase: StepPrediction) -> dict[str, float]:
    """Return what takes a step, as shares of it by words of GROUPS, the largest first."""
    total = sum(phase.seconds.values())
    return {
        GROUPS[name]: phase.seconds[name] / total
        for name in sorted(phase.seconds, key=lambda name: -phase.seconds[name])
    }


def rows_of(phase: StepPrediction) -> list[dict[str, Any]]:
    """Return a row for each kind of operation of a step: how many, their seconds, FLOPs and bytes, and what bounds."""
    merged: dict[str, dict[str, Any]] = {}
    for part, part_s in phase.parts:
        row = merged.setdefault(
            f"{part.name} {part.dtype}",
            {"name": part.name, "dtype": part.dtype, "count": 0, "seconds": 0.0, "flop_count": 0.0, "byte_count": 0.0},
        )
        row["count"] += part.count
        row["seconds"] += part_s
        row["flop_count"] += part.flop_count * part.count
        row["byte_count"] += part.byte_count * part.count
        row["bound"] = "compute" if StepPrediction.is_compute_bound(part) else "memory"
    return sorted(merged.values(), key=lambda row: -row["seconds"])


def to_json(prediction: ModelPrediction) -> dict[str, Any]:
    """Return a prediction as one object of plain values, seconds, bytes, FLOPs and shares from 0 to 1."""
    phases = {name: getattr(prediction, name) for name in ("train", "prefill", "decode")}
    rate = prediction.per_second
    mfu = prediction.mfu()
    return {
        "model": prediction.model.name,
        "title": prediction.model.title,
        "headline": headline(prediction),
        "gpu": prediction.device.spec_key or prediction.device.id,
        "plan": asdict(prediction.plan) | {"tokens": tokens_of(prediction.model, prediction.plan)},
        "parameters": prediction.weights,
        "active_parameters": prediction.active,
        "fits": prediction.fits,
        "memory_bytes": prediction.memory_bytes,
        "usable_bytes": prediction.usable_bytes,
        "per_second": asdict(rate),
        "mfu": asdict(mfu) if mfu else None,
        "mfu_by_definition": mfu_by_definition(prediction) if prediction.train else None,
        "flop_count": prediction.flop_count,
        "not_counted": dict(prediction.uncounted),
        "link": prediction.link.title if prediction.link else None,
        "link_is_assumed": prediction.link.is_assumed if prediction.link else None,
        "bus_bytes_per_s": prediction.link.bus_bytes_per_s if prediction.link else None,
        "scaling_efficiency": _scaling_of(prediction),
        "collectives": _collectives_of(prediction),
        "cost_of_a_million": cost_of(prediction),
        "phases": {
            name: {
                "time_s": asdict(phase.time_s),
                "seconds": dict(phase.seconds),
                "limit": phase.limit,
                "basis": phase.basis,
                "operations": rows_of(phase),
            }
            for name, phase in phases.items()
            if phase
        },
    }
