"""Time of a step of a model: its operations as the predictor knows them, collectives, and what whole models showed.

The predictor is fitted to single calls. Steps of whole models take longer: clocks fall under a sustained load, few
kernels reach what a benchmark of them alone does, a host prepares the next. The coefficients of that are fitted to
published steps of whole models by `scripts/fit_models.py`, each with a prior, and ship in `models.json`.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib.resources import files
from math import exp, inf, log, log2
from types import MappingProxyType

from gpuexplore.analysis.prediction import Calibration, Conditions, calibrate, predict_each
from gpuexplore.analysis.prediction.calls import arithmetic
from gpuexplore.core import Case, Device, InvalidInput, Shape, once
from gpuexplore.features.model.analysis import OPTIMIZERS
from gpuexplore.features.model.analysis.models import LayeredModel, stages_of
from gpuexplore.features.model.analysis.network import link_of
from gpuexplore.features.model.analysis.parts import (
    Part,
    Pass,
    backward_parts,
    forward_pass,
    itemsize_of,
    optimizer_part,
)
from gpuexplore.features.model.analysis.plan import HOST_GPUS, Execution, ModelPlan
from gpuexplore.hardware import row_of
from gpuexplore.operations import operation_named

# Where kernels are fused, the norm or activation before a product in fp8 writes fp8: RMSNorm + Quant and others of
# https://docs.vllm.ai/en/stable/design/fusions/
CALLS_OF: Mapping[Execution, Conditions] = MappingProxyType(
    {"eager": Conditions("queued"), "compiled": Conditions("queued"), "graph": Conditions("graph", quantises=False)}
)
# Priors of the coefficients, logarithms of factors unless a unit says otherwise: expected value, and deviation.
PRIORS: Mapping[str, tuple[float, float]] = MappingProxyType(
    {
        "sustained:hbm": (0.1, 0.15),  # of products, on chips with stacked memory
        "sustained:gddr": (0.3, 0.3),  # with a watt for each TFLOP/s of the peak; with more, clocks fall less
        "chip": (0.0, 0.2),  # what one chip differs from its kind
        "device": (0.0, 0.3),  # what one card differs from others with its chip
        "attention": (0.4, 0.4),
        # FlashAttention-2 reaches 35 % of an H100's peak, where a kernel written for it reaches 75: arXiv 2407.08608.
        "attention:hopper": (0.7, 0.25),
        "elementwise": (0.2, 0.4),
        "kept": (0.1, 0.1),  # of products without recomputation
        "hosts": (0.01, 0.02),  # share of a step for each doubling of the hosts
        "kernel": (-12.5, 1.0),  # log of seconds
        "decode": (0.0, 0.1),  # of products that read weights
        "cache": (0.4, 0.3),  # of reading keys and values
        "ragged": (0.3, 0.3),  # exponent of the longest prompt over the mean
        "token": (-7.6, 0.7),  # log of the seconds a server needs for a step beside its kernels
        "exposed": (-1.5, 0.7),  # log of the share of collectives that nothing hides
    }
)
# Of CPUs, from steps of GPT-2 and ResNet-50 in fp32 by PyTorch on two cores of a Sapphire Rapids: logarithms of how
# many times as long products in training and convolutions take as at the machine's peaks (cold weights, other
# layouts), and seconds of a call besides its work.
CPU: Mapping[str, float] = {"products": 0.5, "convolutions": 0.9, "call_s": 10e-6}
CPU_DEVIATION = 0.35
# Reads and writes of weights, gradients and states by PyTorch's loop over parameters, e.g. of AdamW: mul_ 2, lerp_ 3,
# mul_ 2, addcmul_ 3, sqrt 2, div_ 2, add_ 2, addcdiv_ 4. https://github.com/pytorch/pytorch/tree/main/torch/optim
UNFUSED_ACCESSES: Mapping[str, int] = MappingProxyType(
    {"sgd": 3, "momentum": 8, "adamw": 20, "adam": 18, "rmsprop": 13, "adagrad": 11}
)
INTERVAL_DEVIATIONS = 1.645
# Weights of 4 or 8 bits that a multiprocessor widens in a clock: median of 14 published speeds of one sequence with
# 4 bits. https://github.com/mit-han-lab/llm-awq/blob/048e19e/tinychat/README.md (RTX A6000 and 4090),
# https://github.com/casper-hansen/AutoAWQ/blob/027758d/README.md (RTX 4090)
WIDENED = 40
# Seconds that Python and PyTorch need to issue a step of a forward pass, several calls as most are: 39 ms a token of
# Llama 2 7B (https://pytorch.org/blog/accelerating-generative-ai-2/), 10 to 13 ms an image of ResNet-50 alone
# (https://github.com/NVIDIA/DeepLearningExamples/tree/master/PyTorch/Classification/ConvNets/resnet50v1.5)
ISSUE_S: Mapping[str, float] = {"forward": 70e-6, "trained": 35e-6}  # in training autograd calls from C++
ISSUE_DEVIATION = 0.35


@dataclass(frozen=True, slots=True)
class StepFit:
    """Coefficients that were fitted to steps of whole models, and how far those were from them.

    Attributes:
        coefficients: by name, as PRIORS; of chips as ``chip:GA100``, of cards as ``device:a40``.
        deviation: of the logarithm of a measured step over its prediction, by task, left out of the fit.
    """

    coefficients: Mapping[str, float]
    deviation: Mapping[str, float]

    def of(self, name: str) -> float:
        """Return a coefficient; that of a chip nothing is known of is zero."""
        return self.coefficients.get(
            name, 0.0 if ":" in name and name not in PRIORS else PRIORS.get(name, (0.0, 0.0))[0]
        )


@dataclass(frozen=True, slots=True)
class StepTerms:
    """Seconds of a step before any coefficient, by group, and the counts they are used with.

    Attributes:
        seconds: products, attention, elementwise and optimizer of a step, and of each group of parts.
        gathered_s: collectives of sharded weights and gradients, which can be hidden.
        parallel_s: those of tensor parallelism.
        kernels: launches of a step.
        issue_s: that a host needs to issue the step in eager mode, while the GPU computes.
        parts: each operation with its seconds, all of them of a kind together.
        bubble: seconds that a stage of a pipeline waits, of each that it computes.
        teraflop_per_j: peak of the products over the power of the board; where one is unknown, that of an A40.
    """

    task: str
    chip: str
    device: str
    seconds: Mapping[str, float]
    gathered_s: float
    parallel_s: float
    kernels: int
    hosts: int
    checkpoint: bool
    longest: float
    issue_s: float
    parts: tuple[tuple[Part, float], ...] = field(repr=False)
    bubble: float = 0.0
    teraflop_per_j: float = 0.5


@once
def fitted() -> StepFit:
    """Return the coefficients that ship."""
    text = (files("gpuexplore.analysis") / "data" / "models.json").read_text(encoding="utf-8")
    return StepFit(**json.loads(text))


def seconds_of(terms: StepTerms, fit: StepFit) -> dict[str, float]:
    """Return the seconds of a step by what takes them."""
    is_gpu = bool(terms.chip)
    of_gddr = fit.of("sustained:gddr") * min(1.0, terms.teraflop_per_j)
    sustained = fit.of("sustained:hbm") if terms.chip in STACKED else of_gddr
    seconds = {**terms.seconds, "host": terms.kernels * CPU["call_s"]}
    if is_gpu and terms.task == "decode":
        seconds["products"] *= exp(fit.of("decode"))
        seconds["attention"] *= exp(fit.of("cache")) * terms.longest ** fit.of("ragged")
        seconds["host"] = exp(fit.of("token"))
    elif is_gpu:
        seconds["products"] *= exp(sustained + fit.of(f"chip:{terms.chip}") + fit.of(f"device:{terms.device}"))
        if terms.task == "train":
            seconds["products"] *= 1.0 if terms.checkpoint else exp(fit.of("kept"))
            of_its_own = fit.of("attention:hopper") if terms.chip in ("GH100", "GB100", "GB110") else 0.0
            seconds["attention"] *= exp(fit.of("attention") + of_its_own)
        # published steps fuse less than FUSED says; those that are issued one by one move all that is counted
        seconds["elementwise"] *= 1.0 if terms.issue_s else exp(fit.of("elementwise"))
        seconds["host"] = terms.kernels * exp(fit.of("kernel"))
    computed = sum(seconds.values())
    if is_gpu and terms.issue_s > computed:
        seconds["host"] += terms.issue_s - computed
        computed = terms.issue_s
    exposed = max(terms.gathered_s - 0.8 * computed, exp(fit.of("exposed")) * terms.gathered_s)
    seconds["communication"] = terms.parallel_s + exposed  # the next product waits for the former
    if terms.hosts > 1:
        seconds["communication"] += (computed + exposed) * max(0.0, fit.of("hosts")) * log2(terms.hosts)
    seconds["bubble"] = terms.bubble * (computed - seconds.get("optimizer", 0.0) + terms.parallel_s)
    return {name: value for name, value in seconds.items() if value}


STACKED = ("GA100", "GH100", "GB100", "GB110", "GV100", "GP100", "Aldebaran", "Aqua Vanjaram", "gfx950", "Arcturus")


def step_of(model: LayeredModel, plan: ModelPlan, *, context: int = 0) -> Pass:
    """Return a training step, the prompts of a batch, or one token more with a `context`.

    Of a pipeline what its last stage computes of all micro-batches; of one token more what all stages do, one after
    the other, for a micro-batch: as many of them as there are stages are on their way.

    Raises:
        InvalidInput: a setting cannot be; names it.
    """
    if plan.pipeline > 1:
        _, last = stages_of(model, plan.pipeline)
        each = plan.batch if plan.is_trained else -(-plan.batch // plan.micro_batches)
        forward = forward_pass(model if context else last, replace(plan, batch=each), context=context)
    else:
        forward = forward_pass(model, plan, context=context)
    if not plan.is_trained:
        times = 1 if context else plan.micro_batches
        some = forward.parts if times == 1 else tuple(replace(each, count=each.count * times) for each in forward.parts)
        return replace(forward, parts=some, steps=forward.steps * times)
    parts = list(forward.parts)
    head = next((part.name for part in reversed(forward.parts) if part.operation == "linear"), "")
    again = [part for part in parts if part.name != head] if plan.checkpoint else []
    parts = [*parts, *again, *backward_parts(parts)]
    parts = [replace(part, count=part.count * plan.accumulation) for part in parts]
    shares = plan.replicas if plan.shard != "none" else 1
    parts.append(optimizer_part(forward.weights / shares, plan))
    launches = forward.steps * (4 if plan.checkpoint else 3) * plan.accumulation
    return replace(forward, parts=tuple(parts), steps=launches)


def terms_of(
    step: Pass,
    plan: ModelPlan,
    device: Device,
    known: Mapping[Case, float | None] | None = None,
    *,
    context: int = 0,
) -> StepTerms:
    """Return the seconds of a step before any coefficient.

    Args:
        known: seconds of its calls, among those of others; None: as predicted from what ships.

    Raises:
        InvalidInput: the device has no units for the dtype; names it.
    """
    parts = _run_on(device, step.parts)
    times_s = _times_s(parts, device, known or call_seconds(parts, device, plan))
    if device.kind == "cpu":
        times_s = [part_s * exp(_cpu_term(part, plan)) for part, part_s in zip(parts, times_s, strict=True)]
    timed = tuple(zip(parts, times_s, strict=True))
    seconds: dict[str, float] = defaultdict(float)
    for part, part_s in timed:
        seconds[part.group] += part_s
    row = row_of(device)
    peak = arithmetic(Case("linear", Shape.of(b=8192, d=8192, k=8192), plan.dtype, "torch", device.id), device).peak
    link = link_of(device, plan.tensor_parallel)
    passes = (2 + plan.checkpoint if plan.is_trained else 1) * (1 if context else plan.micro_batches)
    parallel_s = passes * sum(
        count * link.all_reduce_s(size, plan.tensor_parallel, is_served=not plan.is_trained)
        for size, count in step.reduced_bytes
    )
    if plan.pipeline > 1:  # a stage hands on each micro-batch, and its gradient back
        between = plan.gpus if plan.is_trained else plan.tensor_parallel * plan.pipeline  # stages are furthest apart
        sent_s = link_of(device, between, plan.network_gbs).send_s(step.passed_bytes / plan.tensor_parallel)
        parallel_s += sent_s * (plan.pipeline if context else plan.micro_batches * (2 if plan.is_trained else 1))
    return StepTerms(
        "train" if plan.is_trained else "decode" if context else "prefill",
        row.chip if row else "",
        row.key if row else "",
        {name: seconds.get(name, 0.0) for name in ("products", "attention", "elementwise", "optimizer")},
        _gathered_s(step, plan, device) if plan.is_trained else 0.0,
        parallel_s,
        step.steps,
        -(-plan.gpus // HOST_GPUS),
        plan.checkpoint,
        plan.longest,
        step.steps * ISSUE_S["trained" if plan.is_trained else "forward"] if plan.execution == "eager" else 0.0,
        timed,
        0.0 if context else (plan.pipeline - 1) / plan.micro_batches,
        peak.flop_per_s / 1e12 / row.power_w if peak and row and row.power_w else 0.5,
    )


def _run_on(device: Device, parts: Iterable[Part]) -> Sequence[Part]:
    """Return parts as a device runs them: on a CPU each element-wise result is new memory, which no cache has."""
    limit = operation_named("copy").limits["n"]
    return [
        replace(part, shape=Shape.of(n=limit), calls=part.calls * part.shape["n"] / limit)
        if device.kind == "cpu" and part.group == "elementwise"
        else part
        for part in parts
    ]


def _cpu_term(part: Part, plan: ModelPlan) -> float:
    """Return the logarithm of how many times as long an operation of a step takes as it does alone on a CPU."""
    if part.group == "optimizer" and plan.execution == "eager":  # PyTorch calls operation by operation
        return log(UNFUSED_ACCESSES[plan.optimizer] / (3 + 2 * OPTIMIZERS[plan.optimizer].state_count))
    if part.operation == "conv2d":
        return CPU["convolutions"]
    return CPU["products"] if part.group == "products" and plan.is_trained else 0.0


def _gathered_s(forward: Pass, plan: ModelPlan, device: Device) -> float:
    """Return the seconds of collectives of sharded or replicated weights in a step, layer by layer."""
    if plan.replicas == 1:
        return 0.0
    link = link_of(device, plan.gpus, plan.network_gbs, sharing=plan.tensor_parallel)
    gather_s = forward.layers * link.gather_s(layer_bytes_of(forward, plan), plan.replicas)
    if plan.shard == "none":
        return 2 * gather_s  # one all-reduce of the gradients
    gathers = {"full": 2, "gradients": 1}[plan.shard] * plan.accumulation
    return gather_s * (gathers + plan.accumulation)


def layer_bytes_of(forward: Pass, plan: ModelPlan) -> float:
    """Return the bytes of a block's weights, or gradients, that data-parallel GPUs exchange at once."""
    return forward.weights / forward.layers * itemsize_of("bf16" if plan.dtype != "fp32" else "fp32")


@lru_cache(maxsize=256)
def _seconds_by_call(
    calls: tuple[Case, ...], device: Device, conditions: Conditions, calibration: Calibration
) -> Mapping[Case, float | None]:
    found = predict_each([(case, device) for case in calls], calibration, conditions, explained=False)
    return {each.case: each.time_s for each in found}


def call_seconds(
    parts: Iterable[Part], device: Device, plan: ModelPlan, calibration: Calibration | None = None
) -> Mapping[Case, float | None]:
    """Return the seconds of the call of each part; those of many steps at once are faster than step by step."""
    calls = tuple(dict.fromkeys(_call(part, device) for part in _run_on(device, parts)))
    return _seconds_by_call(calls, device, CALLS_OF[plan.execution], calibration or calibrate())


def _call(part: Part, device: Device) -> Case:
    return Case(part.operation, part.shape, part.dtype, operation_named(part.operation).vendor_library.name, device.id)


def _times_s(parts: Sequence[Part], device: Device, known: Mapping[Case, float | None]) -> list[float]:
    """Return the seconds of each part, all its calls together.

    Raises:
        InvalidInput: the device has no units for a dtype.
    """
    found = []
    for part in parts:
        case = _call(part, device)
        time_s = known[case]
        if time_s is None:
            reason = arithmetic(case, device).reason or "nothing is known of it"
            raise InvalidInput(f"{part.dtype} on {device.name}: {reason}; another dtype, or another GPU")
        found.append(part.count * _with_stored_weights(part, case, device, time_s))
    return found


def _with_stored_weights(part: Part, case: Case, device: Device, time_s: float) -> float:
    """Return the seconds of a part whose weights may be stored in fewer bits than they are computed with.

    Fewer bytes are read, but each weight is widened, which reads of so few bytes do not hide.

    Args:
        time_s: of its call, with weights as wide as they are computed with.
    """
    # a call alone finds its weights in the cache, a step of a whole model does not
    least_s = part.weight_bytes / device.bandwidth.bytes_per_s if device.bandwidth else 0.0
    if not part.saved_bytes:
        return max(least_s, part.calls * time_s)
    peak = arithmetic(case, device).peak
    computed_s = part.flop_count / peak.flop_per_s / 0.7 if peak else 0.0
    moved_s = part.calls * time_s * part.byte_count / (part.byte_count + part.saved_bytes)
    row = row_of(device)
    clocks_per_s = (row.multiprocessors or inf) * (row.boost_clock_hz or inf) if row else inf  # of all together
    weights = (part.weight_bytes + part.saved_bytes) / itemsize_of(part.dtype)
    return max(least_s, moved_s, min(part.calls * time_s, computed_s)) + weights / WIDENED / clocks_per_s
