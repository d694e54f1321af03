"""`gpuexplore memory`: how much memory training or serving a model needs, when, and what fits where."""

import argparse
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from typing import Any

from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json, say, say_readings
from gpuexplore.core import UNKNOWN, InvalidInput, format_gigabytes
from gpuexplore.features.model.analysis import ITEMSIZES, MIXED, OPTIMIZERS, SERVED, Serving, Training, own_module
from gpuexplore.features.model.analysis.fits import (
    WELL_KNOWN,
    Fit,
    Reserve,
    batch_of,
    fits_of,
    gpus_named,
    memory_of,
    reserve_of,
    setup_of,
)
from gpuexplore.features.model.analysis.layer_kinds import KINDS
from gpuexplore.features.model.analysis.models import (
    LayeredModel,
    model_named,
    model_reading,
    models,
    read_layers_file,
)
from gpuexplore.features.model.analysis.training import MemoryTimeline
from gpuexplore.hardware import readings
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.operations.own_code import module_of, split_source
from gpuexplore.shapes import split

FORM = "FILE.py[:FUNCTION]"
OF_A_MODULE = "--optimizer, --gpu and --json"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `memory`; values stay text."""
    declare(
        parser,
        {
            "model MODEL": {"nargs": "*", "help": f"{', '.join(models())}, or an MLP by its widths: 784-512-10"},
            "--layers FILE": {
                "default": None,
                "help": f"a text file instead of MODEL, one layer per line: {', '.join(KINDS)}",
            },
            "--module": {
                "metavar": FORM,
                "help": "a Python file instead of MODEL; its FUNCTION (default: model) returns "
                f"an nn.Module and its inputs; can be combined with {OF_A_MODULE}",
            },
            "--batch N": "samples per step (default: a usual value for the model)",
            "--dtype NAME": f"{', '.join(ITEMSIZES)}; with --serve {', '.join(SERVED)}",
            "--optimizer NAME": f"{', '.join(OPTIMIZERS)} (default: sgd)",
            "--mixed NAME": f"autocast over fp32 parameters: {', '.join(MIXED)}",
            "--checkpoint N": "number of checkpointed segments, whose activations are recomputed (default: 0)",
            "--accumulate N": "micro-batches per step; must divide the batch (default: 1)",
            "--tokens N": "tokens per sequence (default: the model's own)",
            "--serve": "weights and KV cache of a language model, instead of training",
            "--cache-dtype NAME": "dtype of keys and values, with --serve (default: as the weights, bf16 at least)",
            "--gpu LIST": {"default": ",".join(WELL_KNOWN), "help": "names of `specs`, memory sizes like 12GB, or all"},
            "--reserve GB": "memory that is not available to tensors (default: 1.3 GB and 7 %%, 2 %% of HBM)",
            "--json": "print JSON",
        },
        default="",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print the peak with its moment, the timeline's main points, and what fits where."""
    arguments.model = " ".join(arguments.model)
    if arguments.module:
        return _of_own_module(arguments)
    typed = {
        "dtype": arguments.dtype,
        "optimizer": arguments.optimizer,
        "mixed": arguments.mixed,
        "checkpoints": arguments.checkpoint,
        "accumulation": arguments.accumulate,
        "tokens": arguments.tokens,
        "cache_dtype": arguments.cache_dtype,
    }
    if bool(arguments.model) == bool(arguments.layers):
        raise InvalidInput("give exactly one of MODEL, --layers FILE and --module FILE")
    if arguments.layers:
        model = LayeredModel(arguments.layers, arguments.layers, read_layers_file(arguments.layers))
    else:
        model = model_named(arguments.model)
    setup = setup_of(typed, serves=arguments.serve)
    reserve = reserve_of(arguments.reserve)
    gpus = gpus_named(split(arguments.gpu))
    memory = memory_of(model, batch_of(arguments.batch, model), setup)
    fits = fits_of(model, memory.batch, setup, gpus, reserve=reserve)
    if arguments.json:
        read = [*filter(None, [model_reading(arguments.model)]), *readings(split(arguments.gpu))]
        print_json(_memory_json(memory, setup, fits, reserve) | {"readings": read})
    else:
        if reading := model_reading(arguments.model):
            say(f"gpuexplore: {reading}")
        say_readings(split(arguments.gpu))
        _print(memory, setup, fits)
        print(f"\nLargest batch: within the memory less {reserve.words}.")
    return EXIT_OK


def _of_own_module(arguments: argparse.Namespace) -> int:
    """Print what torch tracks of a step of a module of one's own, compared with arithmetic."""
    others = "model layers batch dtype mixed checkpoint accumulate tokens serve cache_dtype reserve"
    for name in others.split():
        if value := getattr(arguments, name):
            option = "MODEL" if name == "model" else f"--{name.replace('_', '-')}"
            said = option if value is True else f"{option} {value!r}"
            raise InvalidInput(f"{said} cannot be combined with --module: expected {OF_A_MODULE}")
    module, inputs = module_of_file(arguments.module)
    memory = own_module.memory_of(module, inputs, optimizer=arguments.optimizer or "sgd", gpus=split(arguments.gpu))
    if arguments.json:
        further = {"peak_bytes": memory.peak_bytes, "readings": list(readings(split(arguments.gpu)))}
        print_json({**asdict(memory), **further})
    else:
        say_readings(split(arguments.gpu))
        print(memory)
    return EXIT_OK


def module_of_file(source: str) -> tuple[Any, Any]:
    """Return the module and its inputs that a function of a user's file returns.

    Raises:
        InvalidInput: there is no such file or function, it fails, or it returns something else.
    """
    path, function = split_source(source)
    if path.suffix != ".py" or not path.is_file():
        raise InvalidInput.of("module", source, f"{FORM}, an existing file")
    name = function or "model"
    with _failing_as(f"module {source!r}: the file failed"):
        file = module_of(path.resolve())
    if not callable(making := getattr(file, name, None)):
        raise InvalidInput.of("module", source, f"{FORM} with a function; the file has no function {name}")
    with _failing_as(f"module {source!r}: its function {name} failed"):
        made = making()
    if not isinstance(made, tuple) or len(made) != 2:
        raise InvalidInput.of(f"what {name} of {source} returns", type(made).__name__, "a module and its inputs")
    return made


@contextmanager
def _failing_as(what: str) -> Iterator[None]:
    """Raise what a user's code raises as a refusal."""
    try:
        yield
    except SystemExit as error:
        raise InvalidInput(f"{what}: it called exit with {error.code!r}") from error
    except Exception as error:
        raise InvalidInput(f"{what}: {describe_error(error)}") from error


def _print(memory: MemoryTimeline, setup: Training | Serving, fits: Sequence[Fit]) -> None:
    print(f"{memory.model.title}: {memory.parameter_count:,} parameters, batch {memory.batch:,}")
    print(_setup_words(memory, setup))
    print(f"Peak: {format_gigabytes(memory.total_bytes)}, in: {memory.peak.moment}\n")
    peak = memory.peak.bytes_by_kind
    rows = [(kind, format_gigabytes(memory.most(kind)), format_gigabytes(size)) for kind, size in peak.items()]
    print_columns([("", "at most", "at the peak"), *(row for row in rows if memory.most(row[0]))], one_unit=False)
    print()
    table = [("gpu", "memory", "fits", "largest batch")]
    for fit in fits:
        largest = UNKNOWN if fit.largest_batch is None else f"{fit.largest_batch:,}"
        word = {True: "yes", False: "no", None: UNKNOWN}[fit.fits]
        table.append((fit.gpu.name, format_gigabytes(fit.gpu.memory_bytes), word, largest))
    print_columns(table)


def _setup_words(memory: MemoryTimeline, setup: Training | Serving) -> str:
    """Return what the figures are valid for, and the options that change it."""
    tokens = setup.tokens or memory.model.tokens
    if isinstance(setup, Serving):
        how = f"Serving: weights in {setup.dtype}, cache in {setup.cached}"
        options = "--cache-dtype"
    else:
        mixed = "" if setup.mixed == "none" else f", autocast to {setup.mixed}"
        how = f"Training in {setup.dtype}{mixed} with {OPTIMIZERS[setup.optimizer].title}"
        options = "--optimizer, --mixed"
    sequences = f", sequences of {tokens:,} tokens" if tokens else ""
    return f"{how}{sequences} (--dtype, {options}, --batch{', --tokens' if tokens else ''} change it)"


def _memory_json(
    memory: MemoryTimeline, setup: Training | Serving, fits: Sequence[Fit], reserve: Reserve
) -> dict[str, Any]:
    """Return one object: the most of each kind at any moment, the peak of all together, and what fits where."""
    timeline = []
    for point in memory.timeline:
        by_kind = {f"{kind.replace(' ', '_').lower()}_bytes": size for kind, size in point.bytes_by_kind.items()}
        timeline.append({"moment": point.moment, "phase": point.phase, **by_kind, "total_bytes": point.total_bytes})
    return {
        "model": memory.model.name,
        "parameter_count": memory.parameter_count,
        "batch": memory.batch,
        "mode": "training" if isinstance(setup, Training) else "serving",
        "setup": asdict(setup),
        "parameters_bytes": memory.most("parameters"),
        "gradients_bytes": memory.most("gradients"),
        "optimizer_bytes": memory.most("optimizer state"),
        "activations_bytes": memory.most("activations"),
        "kv_cache_bytes": memory.most("KV cache"),
        "total_bytes": memory.total_bytes,
        "peak_moment": memory.peak.moment,
        "timeline": timeline,
        "reserve": asdict(reserve),
        "fits": [
            {
                "gpu": fit.gpu.key,
                "name": fit.gpu.name,
                "memory_bytes": fit.gpu.memory_bytes,
                "usable_bytes": fit.usable_bytes,
                "fits": fit.fits,
                "largest_batch": fit.largest_batch,
            }
            for fit in fits
        ],
    }
