"""Choices of the page Model, each in the URL: its view, the model, and for its memory how and where it runs."""

from collections.abc import Sequence

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.features.model.analysis import ITEMSIZES, MIXED, OPTIMIZERS, SERVED, Serving, Training
from gpuexplore.features.model.analysis.fits import (
    Gpu,
    Reserve,
    batch_of,
    capacity_named,
    gpus_named,
    reserve_of,
    setup_of,
)
from gpuexplore.features.model.analysis.models import (
    LayeredModel,
    model_named,
    model_of_text,
    models,
    usual_model,
)
from gpuexplore.hardware import NEWEST_FIRST
from gpuexplore.ui import link, url_widgets
from gpuexplore.ui.markdown import plain

TITLES = {"widths": "MLP by its widths", "layers": "Pasted layers"}
VIEWS = {"speed": "Speed", "memory": "Memory"}
MODEL = ("model", "widths", "layers", "batch")


def choose_view() -> str:
    """Draw the tabs, and return the view; one that a click leaves is as it was when a click leads back to it.

    Both views name the model and the batch alike; Memory takes the first GPU and the purpose of Speed.
    """
    view = url_widgets.segments("View", "view", list(VIEWS), shown=VIEWS.__getitem__, labelled=False)
    left = st.session_state.get("model.left", {})
    before = st.session_state.get("model.shown", view)
    st.session_state["model.shown"] = view
    given = link.parameters()
    given.pop("view", None)
    if view != before and given == left.get(before):  # a click, and no link
        known = usual_model(given.get("model", ""))
        serves = known and known.generates and given.get("task", "serve") == "serve"
        trained = {"optimizer": "adamw", "mixed": "fp16" if given.get("dtype") == "fp16" else "bf16"}  # as Speed
        first = ({"mode": "serve"} if serves else trained) if view == "memory" else {}
        first |= {"gpu": given["gpu"].partition(",")[0]} if "gpu" in given else {}
        shown = left.get(view, first) | {name: given[name] for name in MODEL if name in given}
        shown |= {name: text for name, text in link.parameters().items() if name == "view"}
        st.query_params.from_dict(shown)  # at once: each change of the link is a step back
    st.session_state[link.PAGE] = {"speed": "model"}.get(view, view)  # each has choices of its own
    return view


def note_choices(view: str) -> None:
    """Keep the parameters that a view ends with, for `choose_view`."""
    left = {name: text for name, text in link.parameters().items() if name != "view"}
    st.session_state.setdefault("model.left", {})[view] = left


def choose(above: DeltaGenerator, below: DeltaGenerator) -> tuple[LayeredModel, int, Training | Serving, Gpu, Reserve]:
    """Draw the model, GPU and purpose `above`, the other choices `below`; return them, and the reserve.

    Raises:
        InvalidInput: one of them cannot be; says what is accepted.
    """
    top = above.columns([3, 3, 2], gap="medium")
    with top[0]:
        if "model" not in link.parameters() and link.parameters().keys() - {"view"}:
            # of before language models stood first, or of an own model
            link.write("model", next((own for own in TITLES if own in link.parameters()), "vgg-16"))
        model = model_of(choose_name("llama-3.2-1b"))
    with top[1]:
        names = {row.key: row.name for row in NEWEST_FIRST}
        asked = link.parameters().get("gpu", "")
        keys = sorted(names, key=lambda key: key != "h100-sxm5-80gb")
        keys += [asked] if capacity_named(asked) else []  # 12GB, where the link names it
        gpu = url_widgets.select("GPU", "gpu", keys, shown=lambda key: names.get(key) or gpus_named([key])[0].name)
    with top[2]:
        serves = _serves(model)
    with below:
        columns = st.columns(5, gap="medium")
        with columns[0]:
            batch = url_widgets.text(
                "Batch",
                "batch",
                "",
                help="Samples of a training step, or sequences served at once.",
                placeholder=str(model.batch),
            )
        rare = st.expander(
            "Reserved memory" if serves else "Checkpointing, accumulation and reserved memory",
            icon=":material/tune:",
            expanded=not link.parameters().keys().isdisjoint(("checkpoints", "accumulate", "reserve")),
        )
        typed = _serving(model, columns) if serves else _training(model, columns, rare)
        with rare:
            reserve = url_widgets.text(
                "Reserve (GB)",
                "reserve",
                "",
                help="Memory not available to tensors: the CUDA context, ECC, fragmentation.",
                placeholder="1.3 GB and 7 % of the memory, 2 % of HBM",
            )
        if model.about:
            st.caption(model.about)
    return model, batch_of(batch, model), setup_of(typed, serves=serves), gpus_named([gpu])[0], reserve_of(reserve)


def reset() -> None:
    """Give every choice its default again."""
    url_widgets.forget(*(name for name in link.PARAMETERS["memory"] if name != "view"))


def choose_name(first: str) -> str:
    """Draw the choice of a model, `first` by default, and return its name, or a key of TITLES."""
    names = [*sorted(models(), key=lambda name: (name != first, not models()[name].tokens)), *TITLES]
    said = link.parameters().get("model", "")
    if said not in names and (meant := usual_model(said)):
        url_widgets.read_as("model", meant.name, f"{said} read as {meant.title}")
    return url_widgets.select(
        "Model",
        "model",
        names,
        shown=lambda name: TITLES.get(name) or models()[name].title,
        is_always_named=True,
    )


def model_of(name: str) -> LayeredModel:
    """Return the model of a name; draw the field of one's own layers.

    Raises:
        InvalidInput: they are none.
    """
    if name == "widths":
        return model_named(url_widgets.text("Widths", "widths", "784-512-10", help="Like `784-512-10`."))
    if name == "layers":
        return model_of_text(
            url_widgets.lines(
                "Layers",
                "layers",
                "input 3x32x32\nconv 32 kernel=3 padding=1\nrelu\nmax_pool 2\nflatten\nlinear 10",
                help="One layer per line, like `conv 64 kernel=3 padding=1`; the kinds of layers are listed below.",
            )
        )
    return models()[name]


def _serves(model: LayeredModel) -> bool:
    if model.generates:
        purposes = {"train": "Training", "serve": "Serving"}
        return url_widgets.segments("Purpose", "mode", list(purposes), shown=purposes.__getitem__) == "serve"
    if link.parameters().get("mode") == "serve":
        st.info(f"{plain(model.title)} generates no tokens, so it is shown in training.", icon=":material/info:")
    return False


def _training(model: LayeredModel, columns: Sequence[DeltaGenerator], rare: DeltaGenerator) -> dict[str, str]:
    with columns[1]:
        dtype = url_widgets.select("Dtype of parameters", "dtype", list(ITEMSIZES))
    with columns[2]:
        optimizer = url_widgets.select(
            "Optimizer", "optimizer", list(OPTIMIZERS), shown=lambda name: OPTIMIZERS[name].title
        )
    with columns[3]:
        mixed = url_widgets.select("Mixed precision", "mixed", list(MIXED))
    with rare:
        checkpoints = url_widgets.text(
            "Checkpointed segments",
            "checkpoints",
            "0",
            help="Activation checkpointing as in `checkpoint_sequential`: all segments but the last keep only their "
            "input. A whole number.",
        )
        accumulation = url_widgets.text(
            "Gradient accumulation steps",
            "accumulate",
            "1",
            help="Micro-batches per step, a whole number that divides the batch.",
        )
    return {
        "dtype": dtype,
        "optimizer": optimizer,
        "mixed": mixed,
        "checkpoints": checkpoints,
        "accumulation": accumulation,
        "tokens": _tokens(model, columns[4]),
    }


def _serving(model: LayeredModel, columns: Sequence[DeltaGenerator]) -> dict[str, str]:
    with columns[1]:
        dtype = url_widgets.select("Dtype of weights", "dtype", list(SERVED))
    with columns[2]:
        cache = url_widgets.select(
            "Dtype of the KV cache", "kv", ["", *SERVED], shown=lambda name: name or "as weights"
        )
    return {"dtype": dtype, "cache_dtype": cache, "tokens": _tokens(model, columns[3])}


def _tokens(model: LayeredModel, column: DeltaGenerator) -> str:
    if not model.tokens:
        return ""
    with column:
        return url_widgets.text(
            "Sequence length", "tokens", "", help="In tokens, a whole number.", placeholder=f"{model.tokens}"
        )
