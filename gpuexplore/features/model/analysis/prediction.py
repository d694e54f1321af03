"""Predicted speed of a whole model: tokens a second, step time and MFU with intervals, and the memory of each GPU."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import takewhile
from math import exp, hypot, log
from typing import Literal

from gpuexplore.analysis.prediction import Calibration, UncertainValue
from gpuexplore.analysis.prediction.calls import arithmetic
from gpuexplore.core import Case, Device, InvalidInput, Shape
from gpuexplore.features.model.analysis import SERVED, Serving, Training
from gpuexplore.features.model.analysis.fits import DEFAULT_RESERVE
from gpuexplore.features.model.analysis.models import LayeredModel, stages_of, tape_of
from gpuexplore.features.model.analysis.network import GpuLink, link_of
from gpuexplore.features.model.analysis.parts import Part, Pass, backward_parts, forward_pass, step_counts, tokens_of
from gpuexplore.features.model.analysis.plan import HOST_GPUS, ModelPlan
from gpuexplore.features.model.analysis.step_time import (
    CPU_DEVIATION,
    INTERVAL_DEVIATIONS,
    ISSUE_DEVIATION,
    STACKED,
    StepFit,
    StepTerms,
    call_seconds,
    fitted,
    seconds_of,
    step_of,
    terms_of,
)
from gpuexplore.features.model.analysis.tape import NOTHING, Size
from gpuexplore.features.model.analysis.training import cache_bytes, step_moments, weight_bytes
from gpuexplore.hardware import ACCELERATORS, row_of

OTHERWISE: Mapping[str, float] = {  # deviations of what no published step of a whole model is like
    "vendor": 0.6,  # whose single calls are not measured either
    "AMD": 0.25,  # whose single calls are
    "NVIDIA": 0.0,
    "card": 0.08,  # between two with the same chip
    "software": 0.15,  # published steps are of one codebase for training and one for serving
    "unlike": 0.15,  # of other dtypes, experts, convolutions
}
Limit = Literal["compute", "memory bandwidth", "communication", "host", "pipeline bubble"]
SATURATED = 0.9
BATCHES = tuple(2**power for power in range(13))


@dataclass(frozen=True, slots=True)
class StepPrediction:
    """Training steps, prompts or one token more, as predicted.

    Attributes:
        time_s: of one step of a batch.
        seconds: of it by what takes them: products, attention, elementwise, optimizer, communication, host, bubble.
        parts: operations of it, with the seconds that all of a kind take.
        deviation: of the logarithm of the time.
        basis: what the interval rests on.
    """

    time_s: UncertainValue
    seconds: Mapping[str, float]
    parts: tuple[tuple[Part, float], ...] = field(repr=False)
    deviation: float
    basis: str

    @property
    def limit(self) -> Limit:
        """What takes most of the step."""
        groups: dict[Limit, float] = {
            "communication": self.seconds.get("communication", 0.0),
            "host": self.seconds.get("host", 0.0),
            "pipeline bubble": self.seconds.get("bubble", 0.0),
            "compute": 0.0,
            "memory bandwidth": self.seconds.get("elementwise", 0.0) + self.seconds.get("optimizer", 0.0),
        }
        for part, part_s in self.parts:
            if part.group in ("products", "attention"):
                groups["compute" if self.is_compute_bound(part) else "memory bandwidth"] += part_s
        return max(groups, key=lambda name: groups[name])

    @staticmethod
    def is_compute_bound(part: Part) -> bool:
        """Whether a part has more than a hundred FLOPs for each byte: more than any GPU's memory feeds."""
        return part.flop_count > 100 * part.byte_count


@dataclass(frozen=True, slots=True)
class ModelPrediction:
    """The predicted speed and memory of a model, run by a plan on GPUs of a kind.

    Attributes:
        train: a step, where it is trained.
        prefill: the prompts of a batch, where it is served.
        decode: a token more for each sequence, half way through the answers.
        memory_bytes: of each GPU, at its peak.
        usable_bytes: of a GPU for tensors; None where it is unknown.
        flop_count: of the products of a step or a pass over all GPUs, attention as far as a causal mask leaves it.
        dense_flop_count: the same without attention.
        whole_flop_count: the same with attention to all tokens, as papers and torch's counter count it.
        repeated_flop_count: of them with what checkpointing computes again.
        peak_flop_per_s: dense peak of one GPU in the dtype; None where it is unknown.
        link: what tensor-parallel or data-parallel GPUs are connected by; None for one GPU.
        weights: numbers of weights of the model.
        active: of them those that a token uses.
        uncounted: operations of a module of one's own that are in none of these, with how often it calls them.
    """

    model: LayeredModel
    plan: ModelPlan
    device: Device
    train: StepPrediction | None
    prefill: StepPrediction | None
    decode: StepPrediction | None
    memory_bytes: int
    usable_bytes: int | None
    flop_count: float
    dense_flop_count: float
    whole_flop_count: float
    repeated_flop_count: float
    peak_flop_per_s: float | None
    link: GpuLink | None
    weights: int
    active: int
    uncounted: Mapping[str, int] = field(default_factory=dict)

    @property
    def fits(self) -> bool | None:
        """Whether it fits each GPU; None where its memory is unknown."""
        return None if self.usable_bytes is None else self.memory_bytes <= self.usable_bytes

    @property
    def main(self) -> StepPrediction:
        """The phase that was asked for: of serving, the tokens of the answer."""
        found = self.train or self.decode or self.prefill
        assert found is not None
        return found

    @property
    def tokens_a_step(self) -> int:
        """Tokens, or samples, of a step of all GPUs; of decoding one for each sequence."""
        if self.train is None and self.decode is not None:
            return self.plan.batch * self.plan.replicas
        each = max(1, tokens_of(self.model, self.plan)) * self.plan.batch
        return each * self.plan.replicas * (self.plan.accumulation if self.train else 1)

    @property
    def per_second(self) -> UncertainValue:
        """Tokens or samples a second of all GPUs; of serving with prompts and answers in turn, of answers."""
        time_s = self.main.time_s
        if self.plan.task == "serve" and self.prefill and self.decode:
            answers = self.decode.time_s.times(self.plan.answer)
            time_s = UncertainValue(
                *(getattr(self.prefill.time_s, end) + getattr(answers, end) for end in ("value", "low", "high"))
            )
            time_s = time_s.times(1 / self.plan.answer)
        return UncertainValue(
            self.tokens_a_step / time_s.value, self.tokens_a_step / time_s.high, self.tokens_a_step / time_s.low
        )

    def mfu(self, flop_count: float | None = None) -> UncertainValue | None:
        """Return the share of the dense peak of all GPUs, by the FLOPs of a step or by others that are counted."""
        if not self.peak_flop_per_s:
            return None
        counted = self.flop_count if flop_count is None else flop_count
        best_s = counted / (self.peak_flop_per_s * self.plan.gpus)
        time_s = self.main.time_s
        return UncertainValue(best_s / time_s.value, best_s / time_s.high, best_s / time_s.low)

    @property
    def six_n(self) -> float:
        """FLOPs of a training step as 6 N for each token: what nanoGPT's authors and many others count."""
        return 6.0 * self.active * self.tokens_a_step


def predict_model(
    model: LayeredModel,
    plan: ModelPlan,
    device: Device,
    calibration: Calibration | None = None,
    *,
    is_same_software: bool = False,
) -> ModelPrediction:
    """Return how fast a model runs, and what memory each GPU needs.

    Args:
        is_same_software: whether it is run by the software of the published steps, llm-foundry or PipeWeave's server.

    Raises:
        InvalidInput: the model cannot be run so, or the device has no units for the dtype; says why.
    """
    return _predict_each(
        model, [plan], device, calibration, software=0.0 if is_same_software else OTHERWISE["software"]
    )[0]


def _predict_each(
    model: LayeredModel,
    plans: Sequence[ModelPlan],
    device: Device,
    calibration: Calibration | None,
    *,
    software: float = OTHERWISE["software"],
) -> tuple[ModelPrediction, ...]:
    """Return the prediction of each plan, all with one execution: their calls are predicted at once."""
    if device.kind == "cpu" and (many := max((plan.gpus for plan in plans), default=1)) > 1:
        raise InvalidInput.of("gpus", many, "1 on a CPU: only GPUs share the work of a model")
    steps = [list(_steps(model, plan)) for plan in plans]
    parts = [part for of_plan in steps for *_, step in of_plan for part in step.parts]
    known = call_seconds(parts, device, plans[0], calibration) if plans else {}
    whole = step_counts(model, Training(tokens=1 if model.tokens else 0))["weights"]
    found = []
    for plan, of_plan in zip(plans, steps, strict=True):
        phases = {}
        for name, context, step in of_plan:
            phases[name] = phase_of(terms_of(step, plan, device, known, context=context), model, plan, software)
        found.append(
            ModelPrediction(
                model,
                plan,
                device,
                phases.get("train"),
                phases.get("prefill"),
                phases.get("decode"),
                memory_of_each(model, plan),
                usable_bytes_of(device),
                *_counted(model, plan, tokens_of(model, plan)),
                peak_of(device, plan.dtype),
                link_of(
                    device, plan.gpus if plan.is_trained else plan.tensor_parallel * plan.pipeline, plan.network_gbs
                )
                if plan.gpus > 1
                else None,
                whole,
                _active(model, whole),
            )
        )
    return tuple(found)


def _steps(model: LayeredModel, plan: ModelPlan) -> Iterator[tuple[str, int, Pass]]:
    """Yield the phases of a plan by name, each with the tokens that are in the cache, and its operations."""
    for name in ("prefill", "decode") if plan.task == "serve" else (plan.task,):
        context = tokens_of(model, plan) + plan.answer // 2 if name == "decode" else 0
        yield name, context, step_of(model, plan, context=context)


def usable_bytes_of(device: Device) -> int | None:
    """Return the bytes that tensors can have on a device; None where its memory is unknown."""
    row = row_of(device)
    memory_bytes = row.memory_bytes if row else device.memory_bytes
    return (
        None if memory_bytes is None else DEFAULT_RESERVE.usable_bytes(memory_bytes, row.memory_type if row else None)
    )


def peak_of(device: Device, dtype: str) -> float | None:
    """Return the dense peak of products in a dtype, in FLOP/s; None where it is unknown."""
    peak = arithmetic(Case("linear", Shape.of(b=8192, d=8192, k=8192), dtype, "torch", device.id), device).peak
    return peak.flop_per_s if peak else None


def _active(model: LayeredModel, weights: int) -> int:
    """Return the numbers of weights that a token uses: without the experts it is not sent to."""
    width = next((layer.sizes[0] for layer in model.layers if layer.kind == "embedding"), 0)
    return weights - sum(
        3 * width * layer.sizes[0] * (layer.settings["count"] - layer.settings["active"])
        for layer in model.layers
        if layer.kind == "experts"
    )


def _counted(model: LayeredModel, plan: ModelPlan, tokens: int) -> tuple[float, float, float, float]:
    """Return a step's FLOPs on all GPUs: causal, without attention, with all of it, and with what is repeated."""
    context = tokens + plan.answer // 2 if plan.task in ("decode", "serve") else 0
    forward = forward_pass(model, plan, context=context)
    parts = list(forward.parts)
    again = 0.0
    if plan.is_trained:
        again = sum(part.flop_count * part.count for part in parts) if plan.checkpoint else 0.0
        parts += list(backward_parts(parts))
    times = plan.gpus // plan.pipeline * (plan.accumulation if plan.is_trained else 1)
    dense = sum(part.flop_count * part.count for part in parts if part.group == "products") * times
    attention = sum(part.flop_count * part.count for part in parts if part.group == "attention") * times
    whole = sum(part.whole_flop_count * part.count for part in parts) * times
    return dense + attention, dense, whole, dense + attention + again * times


def phase_of(
    terms: StepTerms, model: LayeredModel, plan: ModelPlan, software: float = OTHERWISE["software"]
) -> StepPrediction:
    """Return the time of a step with its interval.

    Args:
        software: deviation between the software it is run by and that of the published steps.
    """
    fit = fitted()
    seconds = seconds_of(terms, fit)
    deviation, basis = _deviation(terms, model, plan, fit)
    value = sum(seconds.values())
    deviation = hypot(deviation, software, ISSUE_DEVIATION if terms.issue_s > 0.8 * value else 0.0)
    wide = exp(INTERVAL_DEVIATIONS * deviation)
    return StepPrediction(UncertainValue(value, value / wide, value * wide), seconds, terms.parts, deviation, basis)


def _deviation(terms: StepTerms, model: LayeredModel, plan: ModelPlan, fit: StepFit) -> tuple[float, str]:
    """Return the deviation of the logarithm of a step's time, and the words for what it rests on."""
    if not terms.chip:
        return CPU_DEVIATION, "the sum of its operations; no step of a whole model on such a device is published"
    is_known = f"device:{terms.device}" in fit.coefficients
    is_known_chip = f"chip:{terms.chip}" in fit.coefficients
    level = "configuration" if is_known_chip else "chip"
    deviation = fit.deviation[f"{level}:{terms.task}:{'stacked' if terms.chip in STACKED else 'gddr'}"]
    deviation = deviation if is_known or not is_known_chip else hypot(deviation, OTHERWISE["card"])
    kinds = {layer.kind for layer in model.layers}
    facts = {
        "modules of one's own": model.is_own,
        "a model without plain attention": "attention" not in kinds and not model.is_own,
        "experts": "experts" in kinds,
        "an encoder": "encode" in kinds,
        f"a pipeline of {plan.pipeline} stages": plan.pipeline > 1,
        f"{plan.dtype} products": plan.dtype not in ("bf16", "fp16"),
        f"weights in {plan.weight_dtype}": terms.task == "decode" and SERVED[plan.weight_dtype] < 2,
        f"{plan.execution} execution": plan.execution != "graph" and terms.task != "train",
        f"tensor parallelism over {plan.tensor_parallel} GPUs": plan.tensor_parallel > (4, 1)[terms.task == "train"],
    }
    vendor = next((row.vendor for row in ACCELERATORS if row.key == terms.device), "vendor")
    deviation = hypot(deviation, OTHERWISE.get(vendor, OTHERWISE["vendor"]))
    unlike = [words for words, is_true in facts.items() if is_true]
    rests = "61 published training steps on A100 and H100" if plan.is_trained else "16 published cases of serving"
    basis = f"the sum of its operations, corrected by {rests}"
    missing = [*([] if is_known else [f"on {terms.device}"]), *(f"with {each}" for each in unlike)]
    basis += f"; none of these is {' or '.join(missing)}" if missing else ""
    return hypot(deviation, OTHERWISE["unlike"] * len(unlike) ** 0.5), basis


def memory_of_each(model: LayeredModel, plan: ModelPlan, in_flight: int = 1) -> int:
    """Return the bytes each GPU needs at its peak.

    Args:
        in_flight: micro-batches whose activations are kept: as many as stages on the first of a pipeline (1F1B), one on
            the last.
    """
    if plan.pipeline > 1:
        stage = replace(plan, gpus=plan.gpus // plan.pipeline, pipeline=1)
        first, last = stages_of(model, plan.pipeline)
        return max(memory_of_each(first, stage, min(plan.pipeline, plan.accumulation)), memory_of_each(last, stage))
    tokens = tokens_of(model, plan)
    if plan.is_trained:
        return _trained_bytes(model, plan, tokens, in_flight)
    forward = forward_pass(model, plan, context=0)  # as `step_of` asks
    weights = weight_bytes(model, plan.weight_dtype, plan.tensor_parallel)
    if plan.task == "prefill" and not model.generates:
        tape = tape_of(model, Training(tokens=tokens), plan.tensor_parallel)
        return weights + 2 * max(buffer.at(plan.batch) for buffer in tape.buffers) // 2
    setup_of_cache = Serving("bf16", plan.cache_dtype)
    kept = tokens + (plan.answer if plan.task != "prefill" else 0)
    cached = plan.batch * cache_bytes(model, kept, setup_of_cache, plan.tensor_parallel)
    # the widest intermediate result of a chunk of prompts, as servers cut them, and the logits in fp32
    chunk = min(plan.batch * tokens, 8192)
    return weights + cached + chunk * min(forward.widest, 65_536) * 4 + plan.batch * forward.widest * 4


def _trained_bytes(model: LayeredModel, plan: ModelPlan, tokens: int, in_flight: int) -> int:
    """Return the bytes of a training step, under autocast on one GPU or on several with whole weights.

    Those that share weights or gradients keep them and the states in fp32, and compute in the dtype of the products, as
    FSDP's MixedPrecision does. Three blocks are gathered at a time: one computes, one comes, gradients of one leave;
    embedding and logits stay. https://docs.pytorch.org/docs/stable/fsdp.html
    """
    narrow = plan.dtype if plan.dtype in ("bf16", "fp16") else "bf16" if plan.dtype == "fp8" else "none"
    forward = forward_pass(model, plan, context=0)
    blocks = forward.layers
    shares = plan.replicas if plan.shard != "none" else 1
    is_cast = shares > 1 and narrow != "none"
    setup = Training(narrow if is_cast else "fp32", plan.optimizer, "none" if is_cast else narrow, tokens=tokens)
    tape = tape_of(model, setup, plan.tensor_parallel)
    segments = min(blocks, len(tape.items)) if plan.checkpoint and blocks > 1 else 0
    counts = step_counts(model, setup, how=(plan.tensor_parallel, True, True))
    whole = counts["weights"]
    tables = counts["tables"]
    setup = replace(setup, checkpoints=segments, accumulation=plan.accumulation)
    gathered = whole if plan.shard == "gradients" else min(whole, 3 * (whole - tables) / blocks) + 2 * tables
    lines, activations = _lines_of(model, setup, plan.tensor_parallel)
    own = 4 / tape.itemsize / shares
    most = max(own * stored.at(plan.batch) + rest.at(plan.batch) for stored, rest in lines)
    most += gathered * tape.itemsize if shares > 1 else 0
    kept: float = activations.at(plan.batch)
    if plan.checkpoint:  # only what each block begins with stays, in fp32 under autocast
        kept = min(kept, blocks * forward.passed_bytes * (1 if is_cast or narrow == "none" else 2))
    return int(most + (in_flight - 1) * kept)


@lru_cache(maxsize=128)
def _lines_of(model: LayeredModel, setup: Training, parallel: int) -> tuple[tuple[tuple[Size, Size], ...], Size]:
    """Return, over the batch, what GPUs can share and the rest at each moment of a step, and what the forward keeps."""
    lines = []
    kept = NOTHING
    for moment in step_moments(model, setup, parallel):
        shared = ["parameters", "gradients", "optimizer state"]
        if moment.phase == "optimizer step":
            shared.append("temporary")
        stored = sum((moment.sizes[kind] for kind in shared), NOTHING)
        lines.append((stored, moment.total - stored))
        kept = moment.sizes["activations"] if moment.phase == "forward" else kept
    return tuple(dict.fromkeys(lines)), kept


def by_batch(
    model: LayeredModel,
    plan: ModelPlan,
    device: Device,
    calibration: Calibration | None = None,
    *,
    batches: Sequence[int] = BATCHES,
) -> tuple[ModelPrediction, ...]:
    """Return the prediction of each batch, in order, that fits a GPU; of none where even the first does not."""
    usable = usable_bytes_of(device)
    each_batch = (replace(plan, batch=batch) for batch in batches)
    fitting = takewhile(lambda each: usable is None or memory_of_each(model, each) <= usable, each_batch)
    return _predict_each(model, list(fitting), device, calibration)


def saturating(predictions: Sequence[ModelPrediction]) -> ModelPrediction | None:
    """Return the prediction of the smallest batch with SATURATED of the best rate; None of none."""
    best = max((each.per_second.value for each in predictions), default=None)
    return None if best is None else next(each for each in predictions if each.per_second.value >= SATURATED * best)


def smallest_that_fits(model: LayeredModel, plan: ModelPlan, device: Device) -> ModelPlan | None:
    """Return the plan on the fewest GPUs of a host, or with the fewest bits of weights, that fits; None: none does.

    A server shares its layers among more GPUs; a training its weights.
    """
    usable = usable_bytes_of(device)
    if usable is None or model.is_own:
        return None
    for gpus in (1, 2, 4, 8, 16, 32, 64, 128, 256, 512):
        if plan.is_trained:
            each = replace(plan, gpus=gpus, tensor_parallel=1, pipeline=1, shard="full", checkpoint=True)
        elif gpus > 2 * HOST_GPUS:
            return None
        else:
            each = replace(plan, gpus=gpus, tensor_parallel=gpus, pipeline=1)
        try:
            least = 0 if plan.is_trained else weight_bytes(model, plan.weight_dtype, each.tensor_parallel)  # is quick
            if least <= usable and memory_of_each(model, each) <= usable:
                return each
        except InvalidInput:  # heads that so many GPUs cannot share
            continue
    return None


def ratio(first: ModelPrediction, second: ModelPrediction) -> UncertainValue:
    """Return how many times as fast the first is: errors of both as independent, but for what one fit has in common."""
    value = first.per_second.value / second.per_second.value
    common = 0.5 if first.device != second.device else 0.7
    deviation = hypot(first.main.deviation, second.main.deviation) * (1 - common) ** 0.5
    wide = exp(INTERVAL_DEVIATIONS * max(deviation, log(1.02) / INTERVAL_DEVIATIONS))
    return UncertainValue(value, value / wide, value * wide)
