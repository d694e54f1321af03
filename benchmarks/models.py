"""How wrong predictions of whole models are, beside three usual ways to estimate them, in one run. It asserts nothing.

    python -m benchmarks.models                      each published configuration left out of the fit, then each GPU
    python -m benchmarks.models --rows FILE.csv      steps kept elsewhere, judged by what ships

FILE has the columns of training_steps.csv or of serving_steps.csv (gpuexplore/recorded/published). With --json it
prints ``{rows, median, p90, holds, bias, by: [{by, name, ...}], refused}``: errors as shares of what was measured, the
share of intervals that hold, the median of predicted over measured times, and the lines that were left out.
"""

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.features.model.analysis import SERVED, Training
from gpuexplore.features.model.analysis.models import tape_of
from gpuexplore.features.model.analysis.prediction import phase_of
from gpuexplore.features.model.analysis.rows import MeasuredStep, published_steps, read_rows
from gpuexplore.hardware import row_of

OURS = "gpuexplore"
USUAL_MFU = 0.4  # of the dense peak, as people assume it
PUBLISHED_MFU: Mapping[str, float] = {"a100": 0.536, "h100": 0.409}  # medians of llm-foundry's rows, attention whole


@dataclass(frozen=True, slots=True)
class Judged:
    """A measured step and the seconds that each way estimates; ours with its interval."""

    step: MeasuredStep
    seconds: Mapping[str, float]
    low_s: float
    high_s: float

    @property
    def holds(self) -> bool:
        """Whether the measured time lies in the interval."""
        return self.low_s <= self.step.step_s <= self.high_s


def main() -> None:
    """Print errors of each way, by task, model and GPU."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=Path, metavar="FILE", help="measured steps of training or serving, as CSV")
    parser.add_argument("--json", action="store_true", help="print JSON")
    arguments = parser.parse_args()
    refused: list[str] = []
    if arguments.rows:
        steps, refused = read_rows(arguments.rows.read_text(encoding="utf-8-sig").splitlines())
    else:
        steps = list(published_steps())
    judged = [judge(step) for step in steps]
    if arguments.json:
        print(json.dumps({**errors_of(judged), "by": list(by_groups(judged)), "refused": refused}))
        return
    if not arguments.rows:
        _print_left_out(steps)
        print("\nThe same rows by what ships, which is fitted to them, beside usual estimates:\n")
    print(
        "| group | rows | way | median | p90 | predicted / measured | intervals that hold |\n"
        "|---|---|---|---|---|---|---|"
    )
    for group in by_groups(judged):
        own = [each for each in judged if group["name"] == _groups(each.step)[group["by"]]]
        for way in own[0].seconds:
            found = errors_of([each for each in own if way in each.seconds], way)
            holds = f"{found['holds']:.0%}" if way == OURS else ""
            print(
                f"| {group['name']} | {found['rows']} | {way} | {found['median']:.1%} | {found['p90']:.1%} "
                f"| {found['bias']:.2f} | {holds} |"
            )
    for line in refused:
        print(f"left out: {line}")


def judge(step: MeasuredStep) -> Judged:
    """Return what each way estimates for a step."""
    phase = phase_of(step.terms(calibrate()), step.model, step.plan, 0.0)
    seconds = {OURS: phase.time_s.value, **peers(step)}
    return Judged(step, seconds, phase.time_s.low, phase.time_s.high)


def peers(step: MeasuredStep) -> dict[str, float]:
    """Return usual estimates: 6 N D at 40 % of the peak, the published MFU of the GPU, weights over bandwidth."""
    plan = step.plan
    row = row_of(step.device)
    if row is None or not row.bandwidth_bytes_per_s or "bf16_tensor" not in row.rates:
        return {}
    peak = row.rates.get("fp8_tensor" if plan.dtype == "fp8" else "bf16_tensor") or row.rates["bf16_tensor"]
    weights = sum(tape_of(step.model, Training(tokens=1)).weights)
    if step.task == "decode":
        moved = weights * SERVED[plan.weight_dtype] / plan.tensor_parallel
        return {"weights over bandwidth": moved / row.bandwidth_bytes_per_s}
    tokens = plan.batch * plan.tokens * plan.replicas * plan.accumulation
    if step.task == "prefill":
        return {"2 N D at 40 % of the peak": 2 * weights * tokens / (USUAL_MFU * peak * plan.gpus)}
    found = {"6 N D at 40 % of the peak": 6 * weights * tokens / (USUAL_MFU * peak * plan.gpus)}
    mfu = next((share for name, share in PUBLISHED_MFU.items() if row.key.startswith(name)), None)
    if mfu:
        layers = sum(layer.kind == "attention" for layer in step.model.layers)
        width = next(layer.sizes[0] for layer in step.model.layers if layer.kind == "embedding")
        flop_count = (6 * weights + 12 * layers * width * plan.tokens) * tokens
        found["median MFU of the GPU"] = flop_count / (mfu * peak * plan.gpus)
    return found


def errors_of(judged: Sequence[Judged], way: str = OURS) -> dict[str, Any]:
    """Return rows, the median and the ninth decile of errors, the bias, and the share of intervals that hold."""
    ratios = [each.seconds[way] / each.step.step_s for each in judged]
    off = sorted(abs(ratio - 1) for ratio in ratios)
    if not off:
        return {"rows": 0, "median": None, "p90": None, "holds": None, "bias": None}
    p90 = quantiles(off, n=10, method="inclusive")[-1] if len(off) > 1 else off[0]
    holds = sum(each.holds for each in judged) / len(judged)
    return {"rows": len(off), "median": median(off), "p90": p90, "holds": holds, "bias": median(ratios)}


def _groups(step: MeasuredStep) -> dict[str, str]:
    many = "one GPU" if step.plan.gpus == 1 else "several GPUs"
    return {
        "task": step.task,
        "gpus": f"{step.task} on {many}",
        "gpu": f"{step.task} on {step.device.name}",
        "dtype": f"{step.task} in {step.plan.dtype}",
        "model": f"{step.task}, {step.model.title}",
    }


def by_groups(judged: Sequence[Judged]) -> Iterator[dict[str, Any]]:
    """Yield the errors of each task, and of each by number of GPUs, GPU, dtype and model."""
    found: dict[tuple[str, str], list[Judged]] = defaultdict(list)
    for each in judged:
        for by, name in _groups(each.step).items():
            found[by, name].append(each)
    for (by, name), own in sorted(found.items(), key=lambda item: item[0][0] != "task"):
        yield {"by": by, "name": name, **errors_of(own)}


def _print_left_out(steps: Sequence[MeasuredStep]) -> None:
    """Print the errors of rows left out of a fit: by configuration, model and GPU; SciPy is needed."""
    from scripts.fit_models import deviations, rows_with_terms

    deviations(rows_with_terms(steps), steps)


if __name__ == "__main__":
    main()
