"""`gpuexplore model`: tokens a second, step time, MFU and memory of a whole model, with intervals."""

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.cli.output import EXIT_OK, content_of, declare, print_columns, print_json, say, say_readings
from gpuexplore.core import (
    UNKNOWN,
    InvalidInput,
    format_gigabytes,
    format_multiple,
    format_percent,
    format_seconds,
    format_si,
)
from gpuexplore.features.model.analysis.answers import (
    GROUPS,
    MFU_WORDS,
    PHASES,
    batch_words,
    comparisons,
    cost_words,
    dtype_words,
    gpus_words,
    headline,
    measured_words,
    mfu_by_definition,
    rows_of,
    scaling_words,
    shares_of,
    to_json,
    uncounted_words,
)
from gpuexplore.features.model.analysis.fits import CAPACITY, DEFAULT_RESERVE, Gpu, gpus_named
from gpuexplore.features.model.analysis.models import LayeredModel, model_asked, model_reading, models
from gpuexplore.features.model.analysis.own_module import USUAL_GPU, predict_module, tracer
from gpuexplore.features.model.analysis.plan import DTYPES, EXECUTIONS, SHARDINGS, TASKS, ModelPlan, plan_of
from gpuexplore.features.model.analysis.prediction import ModelPrediction, by_batch, memory_of_each, predict_model
from gpuexplore.features.model.analysis.trace_comparison import compared_step, flops_of, read_step
from gpuexplore.features.model.measure import activity_of
from gpuexplore.features.model.memory_command import module_of_file
from gpuexplore.features.trace.analysis.events import MOST_BYTES
from gpuexplore.hardware import device_named, discover, ensure_ceiling, readings, target_named
from gpuexplore.measure.conditions.isolation import is_contended
from gpuexplore.measure.flags import share_of_peak
from gpuexplore.shapes import split

MOST_ROWS = 12
OPTIONS = ("gpus", "tensor_parallel", "pipeline", "shard", "batch", "tokens", "answer", "accumulation", "optimizer")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `model`; values stay text."""
    declare(
        parser,
        {
            "model MODEL": {"nargs": "*", "help": f"{', '.join(models())}, a config.json, or a text file of layers"},
            "--module FILE": "FILE.py[:FUNCTION] that returns an nn.Module and its inputs",
            "--task NAME": f"{', '.join(TASKS)} (default: serve; of models that make no text, train or prefill)",
            "--gpu LIST": "names of `specs`, devices of this machine, or memory sizes like 24GB (default: h100)",
            "--gpus N": "number of GPUs (default: 1)",
            "--tensor-parallel N": "GPUs that share each layer (default: 1; up to 8 for serving)",
            "--pipeline N": "stages of equal numbers of layers, one after the other (default: 1)",
            "--shard NAME": f"{', '.join(SHARDINGS)}: what GPUs share in training (default: full; none in a pipeline)",
            "--batch N": "sequences or samples that a GPU, or a group of them, has at once",
            "--tokens N": "tokens per training sequence, or per prompt (default: 1024)",
            "--answer N": "tokens generated per prompt (default: 256)",
            "--dtype LIST": f"{', '.join(DTYPES)} (default: bf16)",
            "--weights NAME": "dtype of stored weights in serving: bf16, fp8, int8, int4",
            "--cache-dtype NAME": "dtype of keys and values in serving",
            "--checkpoint": "recompute activations in training, block by block (scores of fused attention always are)",
            "--accumulate N": {"dest": "accumulation", "help": "micro-batches per training step"},
            "--optimizer NAME": "as in `memory` (default: adamw)",
            "--execution NAME": f"{', '.join(EXECUTIONS)} (default: graph for serving, eager for training)",
            "--network GBS": "GB/s of a host to others, one direction",
            "--measure": "measure steps on a device of this machine beside the prediction",
            "--device NAME": {"default": "cpu", "help": "device that is measured: cpu or cuda:0 (default: cpu)"},
            "--compile": "measure with torch.compile",
            "--trace FILE": {
                "type": Path,
                "default": None,
                "help": "trace of torch.profiler: a step of it is compared, part by part",
            },
            "--json": "print JSON",
        },
        default="",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the answer for each GPU and dtype, how they compare, and what a step consists of."""
    name = " ".join(arguments.model)
    if arguments.measure:
        return _measure(arguments, name)
    if bool(name) == bool(arguments.module):
        raise InvalidInput("give a model or --module FILE.py, one of them")
    known = discover()
    file = (arguments.trace.name, content_of(arguments.trace, MOST_BYTES), MOST_BYTES) if arguments.trace else None
    seen = read_step(*file) if file else None
    gpus = arguments.gpu or (seen and seen.spec_key) or (USUAL_GPU if seen is None or seen.is_gpu else "cpu")
    sizes = (
        [] if file or arguments.module else [gpus_named([each])[0] for each in split(gpus) if CAPACITY.fullmatch(each)]
    )
    named = [each for each in split(gpus) if not sizes or not CAPACITY.fullmatch(each)]
    devices = [ensure_ceiling(target_named(each, known)) for each in named]
    if not devices and not sizes:
        raise InvalidInput("no gpu: give at least one of `gpuexplore specs`")
    typed = {option: getattr(arguments, option) for option in OPTIONS}
    typed |= {
        "task": arguments.task,
        "weights": arguments.weights,
        "cache": arguments.cache_dtype,
        "execution": arguments.execution,
        "network_gbs": arguments.network,
        "checkpoint": "yes" if arguments.checkpoint else "",
    }
    dtypes = split(arguments.dtype or (seen and seen.dtype) or "bf16")
    batches: Sequence[ModelPrediction] = ()
    rooms: list[dict[str, Any]] = []
    if arguments.module:
        with tracer().torch.device("meta"):  # nothing is allocated
            module, inputs = module_of_file(arguments.module)
        plans = [plan_of(typed | {"task": arguments.task or "train", "dtype": dtype}) for dtype in dtypes]
        by_device = zip(*(predict_module(module, inputs, plan, devices) for plan in plans), strict=True)
        found = [each for of_device in by_device for each in of_device]
    else:
        model = model_asked(name)
        typed["task"] = arguments.task or model.tasks[0]
        if not typed["batch"] and typed["task"] == "train":
            typed["batch"] = str(model.batch)
        calibration = calibrate()
        plans = [plan_of(typed | {"dtype": dtype}, heads=model.sharing_heads) for dtype in dtypes]
        found = [predict_model(model, plan, device, calibration) for device in devices for plan in plans]
        rooms = [_room_of(model, plan, size) for size in sizes for plan in plans]
        batches = by_batch(model, plans[0], devices[0], calibration) if devices else ()
    reading = model_reading(name) if name else None
    if file:
        seen = read_step(*file, [flops_of(phase) for name in PHASES if (phase := getattr(found[0], name))])
        compared = compared_step(found[0], seen)
        print_json(compared) if arguments.json else _print_compared(found[0], compared)
        return EXIT_OK
    if arguments.json:
        sentences = [*comparisons(found, len(plans)), batch_words(batches)]
        read = [*filter(None, [reading]), *readings(split(gpus))]
        said = {"memory": rooms, "comparisons": sentences, "readings": read}
        print_json({"predictions": [to_json(each) for each in found]} | said)
        return EXIT_OK
    print(*(room["headline"] for room in rooms), sep="\n", end="\n" if rooms else "")
    _print(found, batches, len(plans))
    if reading:
        say(f"gpuexplore: {reading}")
    say_readings(split(gpus))
    return EXIT_OK


def _room_of(model: LayeredModel, plan: ModelPlan, gpu: Gpu) -> dict[str, Any]:
    """Return whether a plan fits GPUs of which only the memory is known."""
    needed = memory_of_each(model, plan)
    usable = DEFAULT_RESERVE.usable_bytes(gpu.memory_bytes or 0)
    stored = f" with {plan.weights} weights" if plan.weights else ""
    what = (
        f"{'Training' if plan.is_trained else 'Running'} {model.title} in {plan.dtype}{stored} at batch {plan.batch:,}"
    )
    needs = f"needs {format_gigabytes(needed)}{' a GPU' if plan.gpus > 1 else ''}"
    fits = f"{'fits' if needed <= usable else 'does not fit'} {gpu.name}, {format_gigabytes(usable)} of it usable"
    return {
        "headline": f"{what} {needs} and {fits}. Its speed is unknown: a size of memory names no GPU.",
        "gpu": gpu.key,
        "fits": needed <= usable,
        "memory_bytes": needed,
        "usable_bytes": usable,
    }


def _measure(arguments: argparse.Namespace, name: str) -> int:
    """Measure a model on a device of this machine, and print it beside its prediction."""
    if arguments.module:
        raise InvalidInput("--measure needs the name of a model, not --module")
    model = model_asked(name)
    task = arguments.task or "train"
    typed = {
        "task": task,
        "batch": arguments.batch or (str(model.batch) if task == "train" else ""),
        "tokens": arguments.tokens or (str(model.tokens) if model.tokens else ""),
        "dtype": arguments.dtype or "fp32",
        "optimizer": arguments.optimizer if task == "train" else "",
        "execution": "compiled" if arguments.compile else "eager",
        "answer": "1" if task == "decode" else "",
    }
    device = ensure_ceiling(device_named(arguments.device, discover()))
    plan = plan_of(typed)
    activity = activity_of(typed | {"model": name}, device)
    phase = predict_model(model, plan, device).main
    found = import_module("gpuexplore.cli.activity_run").perform(activity)[-1]  # loads engines
    core = share_of_peak(found["probe_flop_per_s"], device) if found["probe_flop_per_s"] else None
    found["speed"] = None if core is None else min(core, 1.0) * (1 - (found["lost_cpu_share"] or 0.0))
    if arguments.json:
        print_json({"measured": found, "predicted": asdict(phase.time_s), "predicted_seconds": dict(phase.seconds)})
        return EXIT_OK
    what = f"{model.title} in {plan.dtype} on {device.title}, {TASKS[plan.task]}"
    print(measured_words(what, found, phase, found["speed"]))
    rows = [
        (words, format_seconds(found["shares"].get(group, 0.0) * found["step_s"]), format_seconds(seconds))
        for group, words in GROUPS.items()
        if (seconds := phase.seconds.get(group, 0.0)) or group in found["shares"]
    ]
    print_columns([("operations", "measured", "predicted"), *rows], one_unit=False)
    if is_contended(found["lost_cpu_share"]):
        print(f"contended: other work used {format_percent(found['lost_cpu_share'])} of the CPU")
    return EXIT_OK


def _print_compared(of: ModelPrediction, found: Mapping[str, Any]) -> None:
    print(f"{of.model.title} in {dtype_words(of)} on {gpus_words(of)}, {PHASES[found['phase']]}:")
    print(found["sentence"])
    for note in found["notes"]:
        print(f"- {note}")
    for rows in (found["groups"], found["operations"][:MOST_ROWS]):
        cells = [
            ("part", "calls predicted", "calls seen", "predicted", "90 % interval", "seen", "seen / predicted"),
            *(
                (
                    row["part"],
                    *(UNKNOWN if row[key] is None else f"{row[key]:,}" for key in ("predicted_calls", "seen_calls")),
                    format_seconds(row["predicted_s"]),
                    " to ".join(
                        format_seconds(row[f"predicted_{end}_s"]) for end in ("low", "high") if row["predicted_s"]
                    )
                    or UNKNOWN,
                    format_seconds(row["seen_s"]),
                    UNKNOWN if row["ratio"] is None else format_multiple(row["ratio"]),
                )
                for row in rows
            ),
        ]
        print()
        print_columns(cells, one_unit=False)


def _print(found: Sequence[ModelPrediction], batches: Sequence[ModelPrediction], dtypes: int) -> None:
    if not found:
        return
    print(*map(headline, found), sep="\n")
    first = found[0]
    costs = () if first.fits is False else (scaling_words(first), cost_words(first))
    said = (*comparisons(found, dtypes), batch_words(batches), uncounted_words(first), _memory_words(first), *costs)
    for sentence in filter(None, said):
        print(sentence)
    print(f"Interval: {first.main.basis}.\n")
    for key, name in PHASES.items():
        phase = getattr(first, key)
        if phase is None:
            continue
        shares = ", ".join(f"{words} {format_percent(share)}" for words, share in shares_of(phase).items())
        words = name.capitalize() if first.model.generates or phase is first.train else "Forward pass"
        print(f"{words}: {format_seconds(phase.time_s.value)}; {shares}")
        table = [
            (
                row["name"],
                row["dtype"],
                f"{row['count']:,}",
                format_seconds(row["seconds"]),
                format_si(row["flop_count"], "FLOP"),
                format_gigabytes(row["byte_count"]),
                row["bound"],
            )
            for row in rows_of(phase)[:MOST_ROWS]
        ]
        print_columns([("operation", "dtype", "count", "time", "FLOPs", "bytes", "bound"), *table], one_unit=False)
        print()
    if first.train:
        for key, share in mfu_by_definition(first).items():
            print(f"MFU {format_percent(share)}: {MFU_WORDS[key]}")


def _memory_words(prediction: ModelPrediction) -> str:
    usable = format_gigabytes(prediction.usable_bytes)
    each = "" if prediction.device.kind == "cpu" else " per GPU"
    words = f"Memory: {format_gigabytes(prediction.memory_bytes)}{each}, {usable} usable on {gpus_words(prediction)}"
    if prediction.link:
        assumed = ", assumed" if prediction.link.is_assumed else ""
        bus = format_si(prediction.link.bus_bytes_per_s, "B/s")
        words += f"; bus bandwidth over {prediction.link.title}: {bus}{assumed}"
    return f"{words}."
