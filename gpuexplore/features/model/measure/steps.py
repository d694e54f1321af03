"""Timed steps of a model in torch: training, a prompt, or one token more for each sequence of a batch."""

from collections import defaultdict
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

import torch
from torch import nn
from torch.profiler import ProfilerActivity, profile

from gpuexplore.backends import Clock
from gpuexplore.core import Cancelled, Device, median, median_interval
from gpuexplore.features.model.analysis.models import LayeredModel
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.measure.built import Builder
from gpuexplore.features.model.measure.tracked import OPTIMIZERS_OF_TORCH
from gpuexplore.hardware.cpu_ceiling.probe import clock_probe
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks

STEPS: Mapping[str, int] = {
    "most": 30,
    "least": 6,  # of which a median has an interval
    "warm-up": 2,  # at least
}
BUDGET_S = 20.0
STEADY = 0.05  # of a step: two medians of three steps that differ by less are as long
NARROW = {"bf16": torch.bfloat16, "fp16": torch.float16}
WORDS: Mapping[str, tuple[str, ...]] = {  # in the names of operations, of a kind before those after it
    "optimizer": ("Optimizer.step",),
    "attention": ("scaled_dot_product", "flash_attention", "bmm", "ScaledDotProduct"),
    "products": ("::mm", "addmm", "::linear", "convolution", "ConvolutionBackward", "mkldnn", "AddmmBackward"),
}


def measured(
    asked: tuple[LayeredModel, ModelPlan],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> dict[str, Any]:
    """Return the median seconds of a step with its 95 % interval, samples, threads, and shares of each group.

    `probe_flop_per_s` is the median rate of a core after each step, by the clock probe; None on a GPU.

    Raises:
        Cancelled: the user asked to stop.
    """
    step = step_of(*asked, torch.device(device.id))

    def timed_s() -> float:
        if progress.cancelled():
            raise Cancelled("cancelled during the measurement")
        with isolation.exclude_servers(times_s[-1] if times_s else 0.0):
            start = clock()
            step()
            if device.kind == "cuda":
                torch.cuda.synchronize()
            return (clock() - start) / 1e9

    times_s: list[float] = []
    rates: list[float | None] = []
    began = monotonic()
    while len(times_s) < STEPS["warm-up"] or not (is_steady(times_s) or monotonic() - began > BUDGET_S / 2):
        times_s.append(timed_s())
        progress.report({"step_s": times_s[-1]})
    warm_up = len(times_s)
    began = monotonic()
    while len(times_s) < warm_up + STEPS["most"] and (
        monotonic() - began < BUDGET_S or len(times_s) < warm_up + STEPS["least"]
    ):
        times_s.append(timed_s())
        rates.append(clock_probe() if device.kind == "cpu" else None)
        progress.report({"step_s": times_s[-1]})
    samples_s = times_s[warm_up:]
    return {
        "step_s": median(samples_s),
        "ci95": median_interval(samples_s),
        "least_s": min(samples_s),
        "samples_s": samples_s,
        "first_s": times_s[0],
        "probe_flop_per_s": median(known) if (known := [each for each in rates if each]) else None,
        "threads": torch.get_num_threads() if device.kind == "cpu" else None,
        "shares": _shares(step, is_gpu=device.kind == "cuda"),
    }


def is_steady(times_s: list[float]) -> bool:
    """Return whether the last three steps took as long as the three before them."""
    if len(times_s) < 6:
        return False
    before = median(times_s[-6:-3])
    return abs(median(times_s[-3:]) - before) <= STEADY * before


def step_of(model: LayeredModel, plan: ModelPlan, device: torch.device) -> Callable[[], object]:
    """Return a step of a model with random weights and a random batch."""
    torch.manual_seed(0)
    context = plan.tokens if plan.task == "decode" else 0
    builder = Builder(model, tokens=plan.tokens, context=context)
    shape = builder.shape
    with device:
        made: Any = nn.Sequential(*builder.modules())
        reads_indices = bool(model.tokens) and len(shape) == 1
        data = torch.randint(100, (plan.batch, *shape)) if reads_indices else torch.randn(plan.batch, *shape)
        rows = builder.shape[:-1] if len(builder.shape) > 1 else ()
        labels = torch.randint(2, (plan.batch, *rows)).flatten()
    narrow = NARROW.get(plan.dtype)
    if not plan.is_trained:
        made = made.eval().to(narrow or torch.float32)
        data = data if reads_indices else data.to(narrow or torch.float32)
    called = torch.compile(made) if plan.execution == "compiled" else made
    if not plan.is_trained:

        def forward() -> object:
            with torch.no_grad():
                return called(data)

        return forward
    optimizer = OPTIMIZERS_OF_TORCH[plan.optimizer](made.parameters())

    def train() -> object:
        with torch.autocast(device.type, narrow or torch.bfloat16, enabled=narrow is not None):
            logits = called(data).float()
            loss = nn.functional.cross_entropy(logits.flatten(0, -2), labels)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        return loss

    return train


def _shares(step: Callable[[], object], *, is_gpu: bool) -> dict[str, float]:
    """Return the share of each group in one further step, by torch's profiler."""
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if is_gpu else [])]
    with profile(activities=activities) as profiled:
        step()
    found: dict[str, float] = defaultdict(float)
    for event in profiled.events() or ():
        spent = event.self_device_time_total if is_gpu else event.self_cpu_time_total
        if spent > 0:
            found[_group(event)] += spent
    total = sum(found.values())
    return {name: spent / total for name, spent in found.items()}


def _group(event: Any) -> str:
    names = []
    above = event
    while above is not None:
        names.append(above.name)
        above = above.cpu_parent
    for group, words in WORDS.items():
        if any(word in name for name in names for word in words):
            return group
    return "elementwise"
