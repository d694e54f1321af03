"""Published steps of whole models: training and serving, each with its source; and files of the same two forms."""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.resources import files

from gpuexplore.analysis.prediction import Calibration
from gpuexplore.core import Device, InvalidInput, format_multiple, read_number, require
from gpuexplore.features.model.analysis.models import LayeredModel, model_named
from gpuexplore.features.model.analysis.parts import tokens_of
from gpuexplore.features.model.analysis.plan import ModelPlan, Sharding, Task
from gpuexplore.features.model.analysis.prediction import predict_model
from gpuexplore.features.model.analysis.step_time import StepTerms, call_seconds, step_of, terms_of
from gpuexplore.hardware import target_named

OF_TRAINING = ("model", "gpu_key", "gpus", "seq_len", "micro_batch", "precision", "tokens_per_s")
OF_SERVING = ("model", "gpu", "tensor_parallel", "batch", "prefill_tokens", "output_len", "prefill_s", "decode_step_s")
SHARDINGS: Mapping[str, Sharding] = {
    "FULL_SHARD": "full",
    "SHARD_GRAD_OP": "gradients",
    "HYBRID_SHARD": "full",
    "NO_SHARD": "none",
}


@dataclass(frozen=True, slots=True)
class MeasuredStep:
    """A step of a whole model that somebody measured.

    Attributes:
        name: of the model, and how it was run, in a few words.
        model: its layers.
        plan: how it was run.
        device: the GPU.
        context: tokens in the cache, of a step of decoding; else 0.
        step_s: what it took.
        source: address of the file it is from.
        mfu: as its authors count it; None where they do not say.
    """

    name: str
    model: LayeredModel
    plan: ModelPlan
    device: Device
    context: int
    step_s: float
    source: str
    mfu: float | None = None

    @property
    def task(self) -> Task:
        """Train, prefill or decode."""
        return "train" if self.plan.is_trained else "decode" if self.context else "prefill"

    def terms(self, calibration: Calibration | None = None) -> StepTerms:
        """Return what its time is predicted from."""
        step = step_of(self.model, self.plan, context=self.context)
        known = call_seconds(step.parts, self.device, self.plan, calibration)
        return terms_of(step, self.plan, self.device, known, context=self.context)


@dataclass(frozen=True, slots=True)
class PublishedPoint:
    """A published measurement next to predictions: seconds of a step, and tokens a second of all GPUs."""

    words: str
    step_s: float
    rate: float
    source: str


def published_points(
    model: LayeredModel, plan: ModelPlan, devices: Iterable[Device], calibration: Calibration | None = None
) -> list[PublishedPoint]:
    """Return what is published of a model on as many of the same GPUs; of training with as many tokens a sequence.

    Of serving the tokens of answers a second, with prompts and answers as long as those that were measured.
    """
    names = {device.name for device in devices}
    found: list[PublishedPoint] = []
    prefill_s = 0.0
    for step in published_steps():
        if step.model != model or step.plan.gpus != plan.gpus or step.device.name not in names:
            continue
        if plan.is_trained and step.plan.tokens != tokens_of(model, plan):
            continue
        sequences = step.plan.batch * step.plan.replicas * step.plan.accumulation
        if step.task == "prefill":
            prefill_s = step.step_s
        elif (step.task == "train") == plan.is_trained:
            answer = 2 * (step.context - step.plan.tokens)
            each_s = step.step_s / step.plan.tokens if plan.is_trained else step.step_s + prefill_s / answer
            answers = "" if plan.is_trained else f" and answers of {answer}"
            words = f"{step.device.name}, batch {step.plan.batch}, {step.plan.tokens:,} tokens{answers}"
            rate = sequences / each_s
            same = step.plan if plan.is_trained else replace(step.plan, answer=answer)
            fitted = predict_model(model, same, step.device, calibration, is_same_software=True).per_second.value
            words += f": {format_multiple(rate)} a second, fitted {format_multiple(fitted)}"
            found.append(PublishedPoint(words, step.step_s / step.plan.accumulation, rate, step.source))
    return found


@lru_cache(maxsize=1)
def published_steps() -> tuple[MeasuredStep, ...]:
    """Return the steps that ship: llm-foundry's training of MPT, and PipeWeave's serving."""
    folder = files("gpuexplore.recorded") / "published"
    return tuple(
        step
        for name in ("training_steps.csv", "serving_steps.csv")
        for row in csv.DictReader((folder / name).read_text(encoding="utf-8").splitlines())
        for step in steps_of(row)
    )


def read_rows(lines: Iterable[str]) -> tuple[list[MeasuredStep], list[str]]:
    """Return the steps of a CSV file of either form, and what was refused of it, line by line.

    Raises:
        InvalidInput: its columns are those of neither form.
    """
    reader = csv.DictReader(lines)
    columns = tuple(reader.fieldnames or ())
    form = next((form for form in (OF_TRAINING, OF_SERVING) if set(form) <= set(columns)), None)
    if form is None:
        raise InvalidInput.of("columns", ", ".join(columns)[:200], (", ".join(OF_TRAINING), ", ".join(OF_SERVING)))
    found: list[MeasuredStep] = []
    refused: list[str] = []
    for number, row in enumerate(reader, 2):
        try:
            found += steps_of({name: value or "" for name, value in row.items() if name})
        except InvalidInput as error:
            refused.append(f"line {number}: {error}")
    return found, refused


def steps_of(row: Mapping[str, str]) -> Iterator[MeasuredStep]:
    """Yield the steps of a row: one of training, or the prompts' and the next token's of serving.

    Raises:
        InvalidInput: a value cannot be; names it.
    """
    model = model_named(row["model"])
    if "micro_batch" in row:
        yield _trained(row, model)
        return
    device = target_named(row.get("gpu_key") or row["gpu"].replace("_", " "), ())
    parallel, batch = (_whole(row, name) for name in ("tensor_parallel", "batch"))
    tokens = max(1, round(_whole(row, "prefill_tokens") / batch))
    longest = max(1.0, _number(row, "input_len_max") / tokens) if row.get("input_len_max") else 1.0
    dtype = row.get("precision") or "bf16"
    plan = ModelPlan("serve", parallel, parallel, batch=batch, tokens=tokens, longest=longest, dtype=dtype)
    context = tokens + _whole(row, "output_len") // 2
    words = f"{row['model']}, {parallel} × {device.name}, batch {batch}"
    for task, name, known in (("prefill", "prefill_s", 0), ("decode", "decode_step_s", context)):
        if row.get(name):
            step_s = _number(row, name)
            yield MeasuredStep(f"{words}, {task}", model, plan, device, known, step_s, row.get("source", ""))


def _trained(row: Mapping[str, str], model: LayeredModel) -> MeasuredStep:
    device = target_named(row["gpu_key"], ())
    gpus, tokens, batch = (_whole(row, name) for name in ("gpus", "seq_len", "micro_batch"))
    times = _whole(row, "grad_accum") if row.get("grad_accum") else 1
    parallel = _whole(row, "tensor_parallel") if row.get("tensor_parallel") else 1
    sharding = row.get("sharding") or "FULL_SHARD"
    require(sharding in SHARDINGS, "sharding", sharding, SHARDINGS)
    precision = row["precision"].removeprefix("amp_")
    checkpoint = row.get("checkpointing", "").casefold() in ("true", "yes", "1")
    link = _number(row, "interconnect") / 8 if row.get("interconnect") else None  # Gb/s of a host
    plan = ModelPlan(
        "train",
        gpus,
        parallel,
        shard=SHARDINGS[sharding],
        batch=batch,
        tokens=tokens,
        dtype=precision,
        checkpoint=checkpoint,
        accumulation=times,
        execution="graph",
        network_gbs=link,
    )
    step_s = gpus // parallel * batch * times * tokens / _number(row, "tokens_per_s")
    words = f"{row['model']}, {gpus} × {device.name}, {tokens} tokens, batch {batch}"
    mfu = _number(row, "mfu_percent") / 100 if row.get("mfu_percent") else None
    return MeasuredStep(words, model, plan, device, 0, step_s, row.get("source", ""), mfu)


def _number(row: Mapping[str, str], name: str) -> float:
    number = read_number(row[name])
    if number is None or number <= 0:
        raise InvalidInput.of(name, row[name], "numbers above 0")
    return number


def _whole(row: Mapping[str, str], name: str) -> int:
    number = _number(row, name)
    require(number == int(number), name, row[name], "whole numbers from 1")
    return int(number)
