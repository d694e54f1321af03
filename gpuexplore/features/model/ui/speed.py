"""Speed of a model on a page: the answer, the picture among its choices, what a step consists of, and the basis."""

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import product
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from gpuexplore.analysis.prediction import calibrate
from gpuexplore.core import InvalidInput, format_multiple, format_percent, require, round_significant
from gpuexplore.features.model.analysis import SERVED
from gpuexplore.features.model.analysis.answers import (
    MFU_WORDS,
    PHASES,
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
from gpuexplore.features.model.analysis.config import LARGEST_FILE
from gpuexplore.features.model.analysis.models import LayeredModel
from gpuexplore.features.model.analysis.plan import DTYPES, SHARDINGS, ModelPlan, plan_of
from gpuexplore.features.model.analysis.prediction import (
    BATCHES,
    ModelPrediction,
    by_batch,
    memory_of_each,
    predict_model,
    smallest_that_fits,
    usable_bytes_of,
)
from gpuexplore.features.model.analysis.rows import PublishedPoint, published_points, published_steps
from gpuexplore.features.model.analysis.trace_comparison import SeenStep, compared_step, flops_of
from gpuexplore.features.model.speed_chart import memory_bars, step_shares, throughput
from gpuexplore.features.model.ui.choice import choose_name, model_of
from gpuexplore.features.trace.ui import MOST_BYTES
from gpuexplore.hardware import NEWEST_FIRST, target_named
from gpuexplore.jobs.reading import read_apart
from gpuexplore.ui import link, url_widgets
from gpuexplore.ui.markdown import plain
from gpuexplore.ui.shared import Shared, shared_values
from gpuexplore.ui.shared.charts import show_chart
from gpuexplore.ui.shared.tables import show_table, table_of

NAMES: Mapping[str, str] = {row.key: row.name for row in NEWEST_FIRST}
USUAL_GPUS = ("h100-sxm5-80gb", "a100-sxm4-80gb")
MOST_LINES = 6  # of the chart
TASKS = {"serve": "Serving", "train": "Training", "prefill": "Inference"}
STEPS: Shared[SeenStep] = Shared(32)
TRACED: Mapping[str, str] = {  # columns of a step in a trace, by their keys in JSON
    "part": "Part",
    "predicted_calls": "Calls predicted",
    "seen_calls": "Calls seen",
    "predicted_s": "Predicted",
    "predicted_low_s": "90 % from",
    "predicted_high_s": "to",
    "seen_s": "Seen",
    "ratio": "Seen / predicted",
}
Curve = tuple[ModelPrediction, ...]


def show_speed() -> None:
    """Draw the answer, what it is of, its picture with what moves it below, and what it consists of."""
    answer, top, picture, numbers = (st.container() for _ in range(4))
    ways = st.container(border=True)
    try:
        model, plans, keys = _choose(top, numbers, ways)
    except InvalidInput as error:
        with answer:
            url_widgets.show_problem(error)
        return
    found: list[tuple[ModelPrediction, Curve]] = []
    with answer:
        for key, plan in product(keys, plans):
            try:
                found.append(_line_of(model, plan, key))
            except InvalidInput as error:
                url_widgets.show_problem(error)
                continue
            if len(found) == 1:  # at once: others and the picture take longer
                st.markdown(f"#### {plain(headline(found[0][0]))}")
    if found:
        _show(found, len(plans), picture)


@shared_values(300)
def _line_of(model: LayeredModel, plan: ModelPlan, key: str) -> tuple[ModelPrediction, Curve]:
    """Return the prediction, and that of each batch that fits, the chosen one among them, if need be on more GPUs."""
    device = target_named(key, ())
    usable = usable_bytes_of(device)
    other = plan
    if usable is not None and memory_of_each(model, plan) > usable:
        other = smallest_that_fits(model, plan, device) or plan
    curve = by_batch(model, other, device, calibrate(), batches=sorted({*BATCHES[::2], other.batch}))
    asked = next((each for each in curve if each.plan == plan), None)
    return asked or predict_model(model, plan, device, calibrate()), curve


@shared_values(300)
def _published(model: LayeredModel, plan: ModelPlan, keys: tuple[str, ...]) -> list[PublishedPoint]:
    return published_points(model, plan, [target_named(key, ()) for key in keys], calibrate())


def _choose(
    above: DeltaGenerator, numbers: DeltaGenerator, ways: DeltaGenerator
) -> tuple[LayeredModel, list[ModelPlan], list[str]]:
    """Draw the model, task and GPUs `above`, sliders, and other `ways`; return model, plan for each dtype, and keys.

    A bad value is named and gives way to its default.

    Raises:
        InvalidInput: there is no model, or no GPU.
    """
    top = above.columns([3, 2, 4], gap="medium")
    below = ways.container()
    forms = ways.columns(2, gap="medium")
    with forms[0].expander("A config.json of your own", icon=":material/upload_file:"):
        _read_upload(
            st.file_uploader(
                "config.json",
                type=["json"],
                key="model.file",
                help="As on Hugging Face, at most 4 MB. Its layers are in the link; the file is not stored.",
            )
        )
    with top[0]:
        model = model_of(choose_name("llama-3-8b"))
    with top[1]:
        task = url_widgets.segments("Task", "task", list(model.tasks), shown=TASKS.__getitem__)
    with top[2]:
        keys = url_widgets.several("GPUs to compare", "gpu", list(NAMES), default=USUAL_GPUS, shown=NAMES.__getitem__)
    with numbers:
        chosen = _numbers(model, trains=task == "train")
    with forms[1].expander("Exact numbers", icon=":material/123:"):
        _exact(chosen)
    with below:
        typed, dtypes, weights = _ways(trains=task == "train", shares=model.generates)
    with ways:
        kept = _usable({"task": task} | typed | {name: str(number) for name, number in chosen.items()}, model)
    plans = [
        plan_of(kept | {"dtype": dtype, "weights": stored}, heads=model.sharing_heads)
        for dtype, stored in product(dtypes or ["bf16"], weights)
    ]
    if not keys:
        raise InvalidInput("no gpu: choose at least one")
    shown = max(1, MOST_LINES // len(plans))
    if len(keys) * len(plans) > MOST_LINES:
        st.info(f"The first {MOST_LINES} of {len(keys) * len(plans)} combinations are drawn.", icon=":material/info:")
    return model, plans[:MOST_LINES], keys[:shown]


def _numbers(model: LayeredModel, *, trains: bool) -> dict[str, int]:
    """Draw a slider for each length that moves a point along its curve or changes it; return the numbers by name."""
    sequences = "Sequences or samples that a GPU, or a group that shares layers, has at once."
    rows = [("Batch", "batch", 4096, model.batch if trains else 1, sequences)]
    if model.tokens and trains:
        rows.append(("Tokens", "tokens", model.tokens, model.tokens, "Of a sequence."))
    elif model.tokens:
        rows.append(("Tokens of a prompt", "tokens", model.tokens, model.prompt, "Of a sequence."))
    if model.generates and not trains:
        rows.append(("Tokens of an answer", "answer", 8192, 256, "Generated for each prompt."))
    found = {}
    for (label, name, most, usual, help), column in zip(
        rows, st.columns(max(2, len(rows)), gap="medium"), strict=False
    ):
        with column:
            found[name] = url_widgets.powers(label, name, most, usual, help=help)
    return found


def _exact(chosen: Mapping[str, int]) -> None:
    """Draw a field for each number of a slider, which takes those that are no powers of two."""
    for (name, number), column in zip(chosen.items(), st.columns(len(chosen)), strict=True):
        key = f"model.{name}.exact"
        st.session_state[key] = str(number)
        column.text_input(
            name.capitalize(),
            key=key,
            on_change=lambda name=name, key=key: link.write(name, st.session_state[key].strip() or None),
        )


def _ways(*, trains: bool, shares: bool) -> tuple[dict[str, str], list[str], list[str]]:
    """Draw on how many GPUs and in which dtypes; return what was typed, the dtypes, and those of stored weights."""
    fields = [
        ("GPU count", "gpus", "gpus", "GPUs in all.", "1"),
        ("GPUs per layer", "tp", "tensor_parallel", "Tensor parallelism: a divisor of all GPUs.", "1"),
        ("Pipeline stages", "pipeline", "pipeline", "Each has as many layers; they divide the number of GPUs.", "1"),
    ]
    if trains:
        what = "Of a step; those of a pipeline follow each other through it."
        fields.append(("Micro-batches", "accumulate", "accumulation", what, "1"))
    else:
        fields[1] = (*fields[1][:4], "all, at most 8" if shares else "1")
    columns = st.columns([*[2] * len(fields), 3, 4], gap="medium", vertical_alignment="bottom")
    typed = {}
    for column, (label, name, key, what, shown) in zip(columns, fields, strict=False):
        with column:
            typed[key] = url_widgets.text(label, name, "", help=f"{what} A whole number.", placeholder=shown)
    with columns[-2]:
        dtypes = url_widgets.several("Dtype", "dtype", DTYPES, default=["bf16"])
    with columns[-1]:
        if not trains:
            return typed, dtypes, url_widgets.several("Stored weights", "weights", list(SERVED), default=()) or [""]
        first = 1 if typed["pipeline"].strip() not in ("", "1") else -1  # as the command: none in a pipeline
        shards = {str(name): f"{name} ({words})" for name, words in list(SHARDINGS.items())[::first]}
        typed["shard"] = url_widgets.select("Sharding", "shard", list(shards), shown=shards.__getitem__)
    typed["checkpoint"] = (
        "yes"
        if url_widgets.toggle(
            "Checkpointing", "checkpoint", help="Activations are computed again in the backward pass."
        )
        else ""
    )
    return typed, dtypes, [""]


def _usable(typed: Mapping[str, str], model: LayeredModel) -> dict[str, str]:
    """Return what of the typed values a plan can have, and name the others."""
    kept = {"task": typed["task"]}
    if typed["task"] == "train":
        kept["batch"] = str(model.batch)
    for name, text in typed.items():
        try:
            plan_of(kept | {name: text})
        except InvalidInput as error:
            url_widgets.show_problem(error)
            continue
        kept |= {name: text} if text.strip() else {}
    return kept


def _read_upload(file: Any) -> None:
    """Put the layers of a `config.json` into the link, once; say what is wrong with one as long as it is there."""
    if file is None or st.session_state.get("model.read") == file.file_id:
        return
    try:
        require(
            file.size <= LARGEST_FILE, file.name, f"{file.size:,} bytes", f"a config.json of at most {LARGEST_FILE:,}"
        )
        layers = read_apart(
            "gpuexplore.features.model.analysis.config:layers_of_text", file.getvalue().decode("utf-8-sig"), file.name
        )
    except UnicodeDecodeError:
        url_widgets.show_problem(InvalidInput(f"{file.name} is not UTF-8 text: expected a config.json"))
        return
    except InvalidInput as error:
        url_widgets.show_problem(error)
        return
    st.session_state["model.read"] = file.file_id
    link.write("model", "layers")
    link.write("layers", ";".join(line.strip() for line in layers.splitlines()))


def _show(found: Sequence[tuple[ModelPrediction, Curve]], plans: int, picture: DeltaGenerator) -> None:
    """Draw the answers, their curves in `picture`: each as asked, and where that fits no GPU, as it is drawn."""
    asked = [each for each, _ in found]
    curves = [curve for _, curve in found]
    first = asked[0]
    plan = first.plan
    key = (first.model, *((each.plan, each.device.spec_key) for each in asked))
    lines = {_line(curve[0], plans): curve for curve in curves if curve}
    drawn = {
        name: next((each for each in curve if each.plan.batch == plan.batch), curve[0]) for name, curve in lines.items()
    }
    published = _published(first.model, plan, tuple(each.device.spec_key or "" for each in asked))
    if lines:
        with picture:
            show_chart(lambda: throughput(lines, plan.batch, published), ("speed", key), key="chart.speed")
            st.caption(_chart_words(first, lines, published))
    name, shown = next(iter(drawn.items()), ("", first))
    said = [
        *(headline(each) for each in asked[1:] if each.fits is False),
        *comparisons(list(drawn.values()), plans),
        *(
            f"On {name}, {words[0].lower()}{words[1:]}"
            for words in (batch_words(curves[0]), cost_words(shown))
            if name and words
        ),
    ]
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
        st.subheader("MFU by which FLOPs are counted", anchor="mfu")
        shares = {MFU_WORDS[name]: format_percent(share) for name, share in mfu_by_definition(shown).items()}
        rows = (f"| {words} | {share.replace(' ', chr(160))} |" for words, share in shares.items())
        st.markdown("\n".join(("| FLOPs | MFU |", "| --- | ---: |", *rows)))
    if lines:
        _operations(shown, key)
    _traced(first)
    st.caption(plain(f"Predicted, with 90 % intervals: {shown.main.basis}."))


def _traced(prediction: ModelPrediction) -> None:
    """Draw the field of a trace, and its step next to the prediction."""
    with st.expander("A trace of your own next to this prediction", icon=":material/flowsheet:"):
        file = st.file_uploader(
            "Trace of torch.profiler",
            type=["json", "gz"],
            key="model.trace",
            help=f"Of a step, with record_shapes=True, up to {MOST_BYTES // 1_000_000} MB unpacked. It is not stored.",
        )
        if file is None:
            return
        content = file.getvalue()
        counts = tuple(flops_of(phase) for name in PHASES if (phase := getattr(prediction, name)))
        read = "gpuexplore.features.model.analysis.trace_comparison:read_step"
        try:
            with st.spinner(f"Reading {plain(file.name)} …"):
                seen = STEPS.get(
                    (file.name, sha256(content).hexdigest(), counts),
                    lambda: read_apart(read, file.name, content, MOST_BYTES, counts),
                )
        except InvalidInput as error:
            url_widgets.show_problem(error)
            return
        found = compared_step(prediction, seen)
        st.markdown(f"**{plain(found['sentence'])}**")
        st.caption(plain(f"{gpus_words(prediction)}, {dtype_words(prediction)}. {' '.join(found['notes'])}"))
        for words in ("groups", "operations"):
            shown = [{title: row[name] for name, title in TRACED.items()} for row in found[words]]
            units = {title: "s" for name, title in TRACED.items() if name.endswith("_s")}
            units |= {title: "count" for name, title in TRACED.items() if name.endswith("_calls")}
            table_of(shown, units).show(alt=f"Table of {len(shown)} {words} of a step, as predicted and in the trace")


def _table(drawn: Mapping[str, ModelPrediction], key: object) -> None:
    """Draw the figures of each line at the chosen batch, next to each other."""
    shown = next(iter(drawn.values()))
    unit = "Tokens" if shown.model.tokens else "Samples"
    first = "First token" if shown.decode else "Time of a batch"
    show_table(
        lambda: [
            {
                "On": name,
                f"{unit} a second": round(rate)
                if (rate := round_significant(each.per_second.value, 2)) >= 10
                else rate,
                "90 % interval": f"{format_multiple(each.per_second.low)} to {format_multiple(each.per_second.high)}",
                "Time of a step": each.train.time_s.value if each.train else None,
                "MFU": mfu.value if each.train and (mfu := each.mfu()) else None,
                "Time of a token": each.decode.time_s.value if each.decode else None,
                first: each.prefill.time_s.value if each.prefill else None,
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
            first: "s",
            f"Energy of a million {unit.lower()}, at most": "J",
        },
        alt=f"Table of {len(drawn)} ways to run the model: speed with intervals, cost of a million {unit.lower()}",
    )


def _line(prediction: ModelPrediction, plans: int) -> str:
    return gpus_words(prediction) + (f", {dtype_words(prediction)}" if plans > 1 else "")


def _chart_words(first: ModelPrediction, lines: Mapping[str, Curve], published: Sequence[PublishedPoint]) -> str:
    words = f"Points: batches{' per GPU' if first.train else ''}, with 90 % intervals of the rate."
    if first.decode:
        words += " Dashed: the time to read the weights from memory once, the shortest possible for a token."
    if first.train:
        words += " Dashed: the rate at the GPUs' dense peak."
    if first.fits is False:
        words += f" Drawn on GPUs that hold the model: {plain(', '.join(lines))}."
    on = dict.fromkeys(
        f"{step.plan.gpus} × {step.device.name}"
        for step in published_steps()
        if step.model == first.model and step.plan.is_trained == first.plan.is_trained
    )
    runs = "; ".join(point.words for point in published) or ", ".join(on)
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
