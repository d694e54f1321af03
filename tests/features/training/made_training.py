"""Reports of a training with round numbers."""

from gpuexplore.features.training.measure.contract import (
    ModeReport,
    PhaseTime,
    Processes,
    Timing,
    TrainingReport,
    Underflow,
)
from tests.analysis.made import environment

MS = 1e-3


def timing(value=4 * MS):
    return Timing(value, (0.9 * value, 1.1 * value), 9)


def mode(name="fp32", *, losses=(0.7, 0.6, 0.5), first_step=0, **more):
    phases = tuple(PhaseTime(phase, timing(MS)) for phase in ("forward", "backward", "optimizer"))
    about = {"step_s": timing(), "phases": phases, "samples_per_s": 25_000.0, "mfu": 0.25, "peak": "a test"}
    return ModeReport(name, first_step, tuple(losses), **about | more)


def fp16(**more):
    underflow = Underflow(1e-5, 65536.0, unscaled=1.0, scaled=0.009, dead=0.0)
    scales = ((0, 65536.0), (2, 32768.0))
    return mode("fp16", ratio=timing(2.0), scales=scales, skipped_steps=1, underflow=underflow, **more)


def processes(**more):
    about = {"speedup": timing(1.6), "efficiency": 0.8, "all_reduce_s": timing(MS), "communicating": 0.25}
    return Processes(2, "gloo", "fp32", reduced_bytes=2_493_160, largest_loss_difference=3e-8, **about | more)


def report(*modes, **more):
    about = {"model": "3-10-2", "batch": 100, "steps": 3, "classes": 2, "parameters": 62, "flop_count": 24_000}
    about |= {
        "chance_loss": 0.693147,
        "data": "rule",
        "optimizer": "sgd",
        "learning_rate": 0.05,
        "seed": 0,
        "threads": 2,
    }
    about |= {"steps_done": 3, "final": True, "environment": environment()}
    return TrainingReport(modes=modes or (mode(), fp16()), **about | more)
