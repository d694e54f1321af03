"""The choices of the page Memory, each in the URL: what is trained or served, how and where."""

from dataclasses import dataclass

import streamlit as st

from gpuexplore.features.memory.analysis.fits import Gpu, MemoryQuestion, Reserve, capacity_named, gpus_named
from gpuexplore.features.memory.analysis.models import (
    MLP_BATCH,
    PASTED_BATCH,
    LayeredModel,
    model_named,
    model_of_text,
    models,
    usual_model,
)
from gpuexplore.features.memory.analysis.setup import ITEMSIZES, MIXED, OPTIMIZERS, SERVED, Serving, Training
from gpuexplore.hardware import ACCELERATORS
from gpuexplore.ui import link, url_widgets
from gpuexplore.ui.markdown import plain

WIDTHS, LAYERS = "widths", "layers"
TITLES = {WIDTHS: "MLP by its widths", LAYERS: "Pasted layers"}
USUAL_BATCHES = {WIDTHS: MLP_BATCH, LAYERS: PASTED_BATCH}
DEFAULT_LAYERS = "input 3x32x32\nconv 32 kernel=3 padding=1\nrelu\nmax_pool 2\nflatten\nlinear 10"
DEFAULT_MODEL = "vgg-16"
DEFAULT_GPU = "h100-sxm5-80gb"
CHECKPOINTS_HELP = (
    "Activation checkpointing as `checkpoint_sequential` does it; of all but the last only the input is kept."
)
PURPOSES = {"train": "Training", "serve": "Serving"}


@dataclass(frozen=True, slots=True)
class MemoryChoice:
    """What the page computes."""

    model: LayeredModel
    batch: int
    setup: Training | Serving
    gpu: Gpu
    reserve: Reserve


def choose() -> MemoryChoice:
    """Draw the choices and return them.

    Raises:
        InvalidInput: one of them cannot be; says what is accepted.
    """
    top = st.columns([3, 2, 3], gap="medium")
    with top[0]:
        said = link.parameters().get("model", "")
        for own in (WIDTHS, LAYERS):
            if not said and own in link.parameters():  # a link of these alone means a model of them
                link.write("model", own)
        if said not in _model_names() and (meant := usual_model(said)):
            url_widgets.read_as("model", meant.name, f"{said} read as {meant.title}")
        name = url_widgets.select("Model", "model", _model_names(), shown=_title)
    with top[1]:
        batch = url_widgets.text(
            "Batch",
            "batch",
            "",
            help="Samples of a training step, or sequences served at once.",
            placeholder=str(models()[name].batch if name in models() else USUAL_BATCHES[name]),
        )
    with top[2]:
        gpu = url_widgets.select("GPU", "gpu", _gpu_keys(), shown=_gpu_title)
    model = _model(name)
    if model.about:
        st.caption(model.about)
    serves = _serves(model)
    question = _serving(batch, model) if serves else _training(batch, model)
    return MemoryChoice(model, question.batch_of(model), question.setup(), gpus_named([gpu])[0], question.reserve_of())


def reset() -> None:
    """Give every choice its default again."""
    url_widgets.forget(*link.PARAMETERS["memory"])


def _model_names() -> list[str]:
    others = [name for name in models() if name != DEFAULT_MODEL]
    return [DEFAULT_MODEL, *others, WIDTHS, LAYERS]


def _title(name: str) -> str:
    return TITLES.get(name) or models()[name].title


_GPU_NAMES = {row.key: row.name for row in ACCELERATORS}


def _gpu_keys() -> list[str]:
    """Return the GPUs of the table, and the bare capacity that the link names, like 12GB, if it does."""
    others = [row.key for row in ACCELERATORS if row.key != DEFAULT_GPU]
    asked = link.parameters().get("gpu", "")
    return [DEFAULT_GPU, *others, *([asked] if capacity_named(asked) else [])]


def _gpu_title(key: str) -> str:
    return _GPU_NAMES.get(key) or gpus_named([key])[0].name


def _model(name: str) -> LayeredModel:
    if name == WIDTHS:
        return model_named(url_widgets.text("Widths", "widths", "784-512-10", help="Like `784-512-10`."))
    if name == LAYERS:
        return model_of_text(
            url_widgets.lines(
                "Layers",
                "layers",
                DEFAULT_LAYERS,
                help="One layer a line, like `conv 64 kernel=3 padding=1`; the kinds of layers are listed below.",
            )
        )
    return models()[name]


def _serves(model: LayeredModel) -> bool:
    if model.tokens:
        return url_widgets.segments("Purpose", "mode", list(PURPOSES), shown=PURPOSES.__getitem__) == "serve"
    if link.parameters().get("mode") == "serve":
        st.info(f"{plain(model.title)} reads no tokens, so it is shown in training.", icon=":material/info:")
    return False


def _training(batch: str, model: LayeredModel) -> MemoryQuestion:
    columns = st.columns(3, gap="medium")
    with columns[0]:
        dtype = url_widgets.select("Dtype of parameters", "dtype", list(ITEMSIZES))
        checkpoints = _number("Checkpointed segments", "checkpoints", "0", CHECKPOINTS_HELP)
    with columns[1]:
        optimizer = url_widgets.select("Optimizer", "optimizer", list(OPTIMIZERS), shown=_optimizer_title)
        accumulation = _number(
            "Gradient accumulation steps", "accumulate", "1", "Micro-batches a step, which divide the batch."
        )
    with columns[2]:
        mixed = url_widgets.select("Mixed precision", "mixed", list(MIXED))
        tokens = _tokens(model)
    return MemoryQuestion(
        batch=batch,
        dtype=dtype,
        optimizer=optimizer,
        mixed=mixed,
        checkpoints=checkpoints,
        accumulation=accumulation,
        tokens=tokens,
        reserve=_reserve(),
    )


def _serving(batch: str, model: LayeredModel) -> MemoryQuestion:
    columns = st.columns(3, gap="medium")
    with columns[0]:
        dtype = url_widgets.select("Dtype of weights", "dtype", list(SERVED))
    with columns[1]:
        cache = url_widgets.select(
            "Dtype of the KV cache", "kv", ["", *SERVED], shown=lambda name: name or "as weights"
        )
    with columns[2]:
        tokens = _tokens(model)
    return MemoryQuestion(batch=batch, dtype=dtype, cache_dtype=cache, tokens=tokens, reserve=_reserve(), serves=True)


def _number(label: str, name: str, default: str, meaning: str) -> str:
    return url_widgets.text(label, name, default, help=f"{meaning} A whole number.")


def _optimizer_title(name: str) -> str:
    return OPTIMIZERS[name].title


def _tokens(model: LayeredModel) -> str:
    if not model.tokens:
        return ""
    return url_widgets.text(
        "Sequence length", "tokens", "", help="In tokens, a whole number.", placeholder=f"{model.tokens}"
    )


def _reserve() -> str:
    with st.expander("Reserved memory", icon=":material/lock:", expanded="reserve" in st.query_params):
        return url_widgets.text(
            "Reserve (GB)",
            "reserve",
            "",
            help="What tensors cannot have: the CUDA context, ECC, fragmentation.",
            placeholder="1.3 GB and 7 % of the memory",
        )
