"""Speed of a model on a page: the answer and its picture, then the choices, what a step consists of, and its basis."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import streamlit as st

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.units import format_multiple, format_percent, round_significant
from gpuexplore.features.model.analysis import SERVED
from gpuexplore.features.model.analysis.answers import (
    MFU_WORDS,
    batch_words,
    comparisons,
    cost_of,
    cost_words,
    dtype_words,
    gpus_words,
    headline,
    mfu_by_definition,
    rows_of,
)
from gpuexplore.features.model.analysis.config import LARGEST_FILE, layers_of_text
from gpuexplore.features.model.analysis.models import LayeredModel
from gpuexplore.features.model.analysis.plan import DTYPES, HOST_GPUS, SHARDINGS, ModelPlan, plan_of
from gpuexplore.features.model.analysis.prediction import (
    BATCHES,
    ModelPrediction,
    by_batch,
    predict_model,
    smallest_that_fits,
)
from gpuexplore.features.model.analysis.rows import PublishedPoint, published_points, published_runs
from gpuexplore.features.model.speed_chart import PHASES, memory_bars, step_shares, throughput
from gpuexplore.features.model.ui.choice import choose_name, model_of
from gpuexplore.hardware import NEWEST_FIRST, target_named
from gpuexplore.ui import link, url_widgets
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import shared_values
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table

NAMES: Mapping[str, str] = {row.key: row.name for row in NEWEST_FIRST}
USUAL_GPUS = ("h100-sxm5-80gb", "a100-sxm4-80gb")
MOST_LINES = 6  # of the chart
TASKS = {"serve": "Serving", "train": "Training"}
Curve = tuple[ModelPrediction, ...]


def show_speed() -> None:
    """Draw the answer, its picture and what it consists of above the choices that it follows."""
    answer = st.container()
    with st.container(border=True):
        try:
            model, plans, keys = _choose()
        except InvalidInput as error:
            url_widgets.show_problem(error)
            return
    with answer:
        asked: list[tuple[ModelPrediction, str]] = []
        for key, plan in product(keys, plans):
            try:
                asked.append((_predicted(model, plan, key), key))
            except InvalidInput as error:
                url_widgets.show_problem(error)
                continue
            if len(asked) == 1:  # at once: others and the picture take longer
                st.markdown(f"#### {plain(headline(asked[0][0]))}")
        if asked:
            _show([found for found, _ in asked], [_curve(model, found.plan, key) for found, key in asked], len(plans))


@shared_values(300)
def _predicted(model: LayeredModel, plan: ModelPlan, key: str) -> ModelPrediction:
    return predict_model(model, plan, target_named(key, ()), calibrate())


@shared_values(300)
def _curve(model: LayeredModel, plan: ModelPlan, key: str) -> Curve:
    """Return the prediction of each batch that fits, the chosen one among them; where none does, on more GPUs."""
    device = target_named(key, ())
    asked = _predicted(model, plan, key)
    other = plan if asked.fits is not False else smallest_that_fits(model, plan, device) or plan
    batches = sorted({*BATCHES[::2], other.batch})
    return by_batch(model, other, device, calibrate(), batches=batches)


@shared_values(300)
def _published(model: LayeredModel, plan: ModelPlan, keys: tuple[str, ...]) -> list[PublishedPoint]:
    return published_points(model, plan, [target_named(key, ()) for key in keys], calibrate())


def _choose() -> tuple[LayeredModel, list[ModelPlan], list[str]]:
    """Draw the choices; return the model, a plan for each dtype, and the keys of GPUs.

    A bad value is named and gives way to its default.

    Raises:
        InvalidInput: there is no model, or no GPU.
    """
    top = st.columns([3, 2, 4], gap="medium")
    below = st.container()
    with st.expander("A config.json of your own", icon=":material/upload_file:"):
        _read_upload(
            st.file_uploader(
                "config.json",
                type=["json"],
                key="model.file",
                help="As on Hugging Face, at most 200 kB. Its layers are in the link; the file is not stored.",
            )
        )
    with top[0]:
        name = choose_name("llama-3-8b")
        model = model_of(name)
    with top[1]:
        tasks = list(TASKS) if model.tokens else ["train"]
        task = url_widgets.segments("Task", "task", tasks, shown=TASKS.__getitem__)
    with top[2]:
        keys = url_widgets.several("GPUs to compare", "gpu", list(NAMES), default=USUAL_GPUS, shown=NAMES.__getitem__)
    trains = task == "train"
    columns = below.columns(5, gap="medium")
    with columns[0]:
        gpus = _number("Number of GPUs", "gpus", "1", help="All of them.")
    with columns[1]:
        dtypes = url_widgets.several("Dtype", "dtype", DTYPES, default=["bf16"])
    with columns[2]:
        batch = _number(
            "Batch",
            "batch",
            str(model.batch if trains else 1),
            help="Sequences or samples that a GPU, or a group that shares layers, has at once.",
        )
    with columns[3]:
        tokens = (
            _number(
                "Tokens" if trains else "Tokens of a prompt",
                "tokens",
                str(model.tokens if trains else min(1024, model.tokens)),
                help="Of a sequence.",
            )
            if model.tokens
            else ""
        )
    with columns[4]:
        usual = {True: "1", False: "all, at most 8"}[trains]
        parallel = _number(
            "GPUs that share a layer", "tp", usual, help="Tensor parallelism: a divisor of the number of GPUs."
        )
    typed = {"task": task, "gpus": gpus, "tensor_parallel": parallel, "batch": batch, "tokens": tokens}
    weights = [""]
    if trains:
        last = below.columns([3, 2], gap="medium", vertical_alignment="bottom")
        with last[0]:
            usual_shard = ["full", "gradients", "none"]
            typed["shard"] = url_widgets.select(
                "Sharding between GPUs",
                "shard",
                usual_shard,
                shown=lambda name: f"{name}: {SHARDINGS[name]}",  # type: ignore[index]
            )
        with last[1]:
            typed["checkpoint"] = (
                "yes"
                if url_widgets.toggle(
                    "Checkpointing", "checkpoint", help="Activations are computed again in the backward pass."
                )
                else ""
            )
    else:
        last = below.columns([3, 2], gap="medium")
        with last[0]:
            weights = url_widgets.several("Stored weights", "weights", list(SERVED), default=()) or [""]
        with last[1]:
            typed["answer"] = _number("Tokens of an answer", "answer", "256", help="Generated for each prompt.")
    kept = _usable(typed, model)
    plans = [
        plan_of(kept | {"dtype": dtype, "weights": stored}) for dtype, stored in product(dtypes or ["bf16"], weights)
    ]
    if not keys:
        raise InvalidInput("no gpu: choose at least one")
    shown = max(1, MOST_LINES // len(plans))
    if len(keys) * len(plans) > MOST_LINES:
        st.info(f"The first {MOST_LINES} of {len(keys) * len(plans)} combinations are drawn.", icon=":material/info:")
    return model, plans[:MOST_LINES], keys[:shown]


def _number(label: str, name: str, usual: str, *, help: str) -> str:
    return url_widgets.text(label, name, "", help=f"{help} A whole number.", placeholder=usual)


def _usable(typed: Mapping[str, str], model: LayeredModel) -> dict[str, str]:
    """Return what of the typed values a plan can have, and name the others."""
    kept = {"task": typed["task"]}
    if typed["task"] == "train":
        kept["batch"] = str(model.batch)
    for name, text in typed.items():
        try:
            found = plan_of(kept | {name: text} if text.strip() else kept)
        except InvalidInput as error:
            url_widgets.show_problem(error)
            continue
        kept |= {name: text} if text.strip() else {}
        if name == "gpus" and typed["task"] == "serve" and not typed["tensor_parallel"].strip():
            kept["tensor_parallel"] = str(next(each for each in range(HOST_GPUS, 0, -1) if found.gpus % each == 0))
    return kept


def _read_upload(file: Any) -> None:
    """Put the layers of a `config.json` into the link, once; say what is wrong with one as long as it is there."""
    if file is None or st.session_state.get("model.read") == file.file_id:
        return
    try:
        if file.size > LARGEST_FILE:
            raise InvalidInput.of(file.name, f"{file.size:,} bytes", f"a config.json of at most {LARGEST_FILE:,}")
        layers = layers_of_text(file.getvalue().decode("utf-8-sig"), file.name)
    except UnicodeDecodeError:
        url_widgets.show_problem(InvalidInput(f"{file.name} is not UTF-8 text: expected a config.json"))
        return
    except InvalidInput as error:
        url_widgets.show_problem(error)
        return
    st.session_state["model.read"] = file.file_id
    link.write("model", "layers")
    link.write("layers", ";".join(line.strip() for line in layers.splitlines()))


def _show(asked: Sequence[ModelPrediction], curves: Sequence[Curve], plans: int) -> None:
    """Draw the answers: each as asked, and where that fits no GPU, as it is drawn."""
    first = asked[0]
    plan = first.plan
    key = (first.model, *((each.plan, each.device.spec_key) for each in asked))
    lines = {_line(curve[0], plans): curve for curve in curves if curve}
    drawn = {
        name: next((each for each in curve if each.plan.batch == plan.batch), curve[0]) for name, curve in lines.items()
    }
    published = _published(first.model, plan, tuple(each.device.spec_key or "" for each in asked))
    if lines:
        show_chart(lambda: throughput(lines, plan.batch, published), ("speed", key), key="chart.speed")
        st.caption(_chart_words(first, lines, published))
    name, shown = next(iter(drawn.items()), ("", first))
    said = [headline(each) for each in asked[1:] if each.fits is False]
    said += [*comparisons(list(drawn.values()), plans), f"{name}: {batch_words(curves[0])}" if curves[0] else ""]
    said += [f"{name}: {cost_words(shown)}" if name else ""]
    st.markdown("\n".join(f"- {plain(sentence)}" for sentence in said if sentence))
    if len(drawn) > 1:
        _table(drawn, key)
    left, right = st.columns(2, gap="large")
    if lines:
        with left:
            st.subheader("Composition of a step", anchor="composition")
            show_chart(lambda: step_shares(drawn), ("shares", key), key="chart.shares")
    with right:
        st.subheader("Memory per GPU", anchor="memory")
        needs = {_line(each, plans): each for each in asked} | drawn
        show_chart(lambda: memory_bars(needs), ("memory", key), key="chart.memory")
    if shown.train:
        rows = (f"| {format_percent(share)} | {MFU_WORDS[name]} |" for name, share in mfu_by_definition(shown).items())
        st.markdown("\n".join(("| MFU | Counted |", "| ---: | --- |", *rows)))
    if lines:
        _operations(shown, key)
    st.caption(plain(f"Predicted, with 90 % intervals: {shown.main.basis}."))


def _table(drawn: Mapping[str, ModelPrediction], key: object) -> None:
    """Draw the figures of each line at the chosen batch, next to each other."""
    unit = "Tokens" if next(iter(drawn.values())).model.tokens else "Samples"
    show_table(
        lambda: [
            {
                "On": name,
                f"{unit} a second": round_significant(each.per_second.value, 3),
                "90 % interval": f"{format_multiple(each.per_second.low)} to {format_multiple(each.per_second.high)}",
                "Time of a step": each.train.time_s.value if each.train else None,
                "MFU": mfu.value if each.train and (mfu := each.mfu()) else None,
                "Time of a token": each.decode.time_s.value if each.decode else None,
                "First token": each.prefill.time_s.value if each.prefill else None,
                f"US$ per million {unit.lower()}": (cost_of(each) or {}).get("usd"),
                f"Energy of a million {unit.lower()}, at most": (cost_of(each) or {}).get("joules_at_most"),
            }
            for name, each in drawn.items()
        ],
        ("lines", key),
        {
            f"{unit} a second": "count",
            "Time of a step": "s",
            "MFU": "%",
            "Time of a token": "s",
            "First token": "s",
            f"Energy of a million {unit.lower()}, at most": "J",
        },
        alt=f"Table of {len(drawn)} ways to run the model: speed with intervals, cost of a million {unit.lower()}",
        config={f"US$ per million {unit.lower()}": st.column_config.NumberColumn(format="%.2f")},
    )


def _line(prediction: ModelPrediction, plans: int) -> str:
    return gpus_words(prediction) + (f", {dtype_words(prediction)}" if plans > 1 else "")


def _chart_words(first: ModelPrediction, lines: Mapping[str, Curve], published: Sequence[PublishedPoint]) -> str:
    words = "A point is a batch; dashed: the time in which memory gives all weights once, the least a token can take."
    if first.train:
        words = "A point is a batch per GPU; dashed: the rate at the GPUs' dense peak."
    if first.fits is False:
        words += f" Drawn on GPUs that hold the model: {plain(', '.join(lines))}."
    runs = "; ".join(point.words for point in published) or published_runs(
        first.model, is_trained=first.plan.is_trained
    )
    return f"{words} Published, which predictions are fitted to: {plain(runs)}." if runs else words


def _operations(prediction: ModelPrediction, key: object) -> None:
    with st.expander("Operations of a step", icon=":material/table_rows:"):
        show_table(
            lambda: [
                {
                    "Phase": words,
                    "Operation": row["name"],
                    "Dtype": row["dtype"],
                    "Count": row["count"],
                    "Time": row["seconds"],
                    "FLOPs": row["flop_count"],
                    "Bytes": row["byte_count"],
                    "Bound": row["bound"],
                }
                for phase, words in PHASES.items()
                if (found := getattr(prediction, phase))
                for row in rows_of(found)
            ],
            ("operations", key),
            {"Count": "count", "Time": "s", "FLOPs": "FLOP", "Bytes": "GB"},
            alt=f"Table of the operations of a step on {gpus_words(prediction)}, the longest first",
        )
