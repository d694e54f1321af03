"""A training in the worker: a model learns a synthetic rule, or labels drawn by lot, in several interleaved modes.

`perform` is what the queue calls for activities of the kind `train`; arguments are texts, by the names in
`setup.DEFAULTS`. It reports encoded `contract.TrainingReport`s about every 0.3 s; `contract.joined` puts them
together. The last one has `final`, and is whole by itself:

- `modes`: for each `name` its `losses` (mean cross-entropy by step), `step_s`, `phases` (`name`, `time_s`) and `ratio`
  to the first mode (each `median`, `ci95`, `count`), `samples_per_s`, `mfu` with its `peak`, `zero_gradients` (step and
  share), `scales` (step and loss scale), `skipped_steps`, `first_call_s`, `error` of the first gradients and, of fp16,
  `underflow`: the share of zero gradients at a loss of 1e-5, `unscaled` and `scaled`;
- `processes` where there are several: `speedup`, `efficiency`, `all_reduce_s`, `communicating`, `reduced_bytes` and
  `largest_loss_difference` to one process;
- `parameters`, `flop_count`, `chance_loss`, `steps_done`, `stopped`, the `environment` and `lost_cpu_share`, which
  others took of the CPU.

This module loads no torch.
"""

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from math import prod
from typing import Any

from gpuexplore.activity import Activity, of_kind
from gpuexplore.backends import Clock
from gpuexplore.core.model import Device
from gpuexplore.features.training.measure.setup import Setup, most_processes, read_setup
from gpuexplore.hardware import check_measured_on, cpu_lost_share, read_cpu_times
from gpuexplore.hardware import read as read_telemetry
from gpuexplore.measure.check.group import check_memory
from gpuexplore.measure.conditions.environment import describe_environment, free_bytes
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Train as `arguments` say on `device`; see the module for what is reported.

    Args:
        arguments: by the names in `DEFAULTS`.
        device: where; several processes on a CPU have one thread each, on GPUs one GPU each.
        clock: in nanoseconds.
        isolation: of the steps.
        progress: gets each payload; polled after each step.

    Raises:
        InvalidInput, TooLarge: arguments that cannot be used; nothing ran.
        Cancelled: the user asked to stop.
        GpuExploreError: gradients are wrong, or a process failed.
    """
    check_measured_on(device.id, "a training")
    setup = read_setup(arguments, most_processes(device))
    check_memory(_needed_bytes(setup), free_bytes(device), device)
    before = read_cpu_times()
    last: list[Mapping[str, Any]] = []

    def keep_the_last(payload: Mapping[str, Any]) -> None:
        (last.append if payload["final"] else progress.report)(payload)

    if setup.processes > 1:
        processes: Any = import_module("gpuexplore.features.training.measure.processes")
        processes.train_in_processes(
            arguments, device, setup.processes, report=keep_the_last, cancelled=progress.cancelled
        )
    else:
        reporting = replace(progress, report=keep_the_last)
        environment = describe_environment(device, ("torch",), threads=None)
        interleaved: Any = import_module("gpuexplore.features.training.measure.interleaved")
        recorder, stopped = interleaved.train(setup, device, clock=clock, isolation=isolation, progress=reporting)
        environment = replace(environment, threads=recorder.threads, after=read_telemetry(device))
        keep_the_last(recorder.last_payload(environment, stopped=stopped))
    for payload in last:  # now that processes which were started count as ours
        progress.report({**payload, "lost_cpu_share": cpu_lost_share(before, read_cpu_times())})


def activity_of(arguments: Mapping[str, str], device: Device, gpu_count: int) -> Activity:
    """Return the training that `arguments` ask for, checked, as work for the queue.

    Args:
        arguments: by the names in `DEFAULTS`; empty ones are left out.
        device: where it runs.
        gpu_count: of the machine, for several processes.

    Raises:
        InvalidInput, TooLarge: arguments that cannot be used.
        Unsupported: trainings were not made for this kind of device.
    """
    check_measured_on(device.id, "a training")
    setup = read_setup(arguments, most_processes(device, gpu_count))
    given = {name: text.strip() for name, text in arguments.items() if text.strip()}
    # About how many device seconds a training takes: the same for every device of a kind, to be known again.
    step_s = 1e-3 + setup.flop_count / (5e12 if device.kind == "cuda" else 5e10)  # calls, and products
    learners = len(setup.modes) * (2 if setup.processes > 1 else 1)
    return of_kind(
        "train",
        given,
        device=device.id,
        expected_s=min(240.0, (12.0 if setup.processes > 1 else 1.0) + setup.steps * learners * step_s),
    )


def _needed_bytes(setup: Setup) -> int:
    """Return about how many bytes a training takes: weights for each mode and process, and a few copies of a batch."""
    copies = len(setup.modes) * (2 if setup.processes > 1 else 1) * setup.processes
    elements = sum(prod(lengths) for lengths in setup.model.contract.inputs(setup.shape)[:2])
    # of a parameter: weight, gradient, two numbers of the optimizer, and a copy in float64 for the check; of an input:
    # a batch, its activations of a few layers, and a copy of both in float64
    return copies * (24 * setup.model.parameters + 64 * elements)
