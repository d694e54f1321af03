"""Charts of a model's speed: throughput against latency over batches, what takes a step, and the memory of a GPU."""

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas as pd

from gpuexplore.charts import NEUTRAL, log_ticks, si_label, with_halo, x_value, y_value
from gpuexplore.core.units import format_gigabytes, format_percent, format_seconds
from gpuexplore.features.model.analysis.answers import GROUPS, PHASES, rate_words, shares_of
from gpuexplore.features.model.analysis.prediction import ModelPrediction
from gpuexplore.features.model.analysis.rows import PublishedPoint

HEIGHT = 360  # of the chart with its axes, without its legend
MOST_WORDS = 3  # at lines that bound others: more would cover the curves


def throughput(
    lines: Mapping[str, Sequence[ModelPrediction]], batch: int, published: Sequence[PublishedPoint]
) -> alt.LayerChart:
    """Return tokens a second against the time of a step, a line over batches each, the chosen batch emphasised.

    Args:
        lines: predictions by the name of their line, each with one.
        batch: the chosen one.
        published: measured points, hollow.
    """
    first = next(iter(lines.values()))[0]
    unit = "tokens" if first.model.tokens else "samples"
    frame = pd.DataFrame([_point(name, each, batch) for name, found in lines.items() for each in found])
    roofs = _roofs(lines, batch)
    steps = [*frame["x"], *(point.step_s for point in published), *([] if first.train else roofs.values())]
    rates = [*frame["low"], *frame["high"], *(point.rate for point in published)]
    rates += roofs.values() if first.train else []
    x_axis = "Time of a step" if first.train else "Time of a token" if first.decode else "Time of a batch"
    x = _log("x", x_axis, steps, "s")
    y = _log("y", f"{unit.capitalize()} a second, all GPUs", rates, "")
    legend = alt.Legend(orient="top", columns=1 if _is_long(lines) else 2, labelLimit=320, symbolOpacity=1)
    color = alt.Color("line:N", scale=alt.Scale(domain=list(lines)), title=None, legend=legend)
    tips = [
        alt.Tooltip(f"{name}:N", title=title)
        for name, title in (
            ("line", "On"),
            ("batch", "Batch"),
            ("rate", unit.capitalize() + " a second"),
            ("time", x_axis),
        )
    ]
    base = alt.Chart(frame).encode(x=x, y=y, color=color, tooltip=tips)
    chosen = base.transform_filter("datum.chosen")
    label = {"align": "left", "baseline": "top", "dx": 7, "dy": 4, "tooltip": None}
    layers = [
        *_roof_lines(roofs, first, color),
        base.mark_line(strokeWidth=2, tooltip=None).encode(order="batch:Q"),
        base.mark_rule(strokeWidth=2, opacity=0.45, tooltip=None).encode(y=alt.Y("low:Q"), y2=alt.Y2("high:Q")),
        base.mark_point(filled=True, size=55, opacity=1),
        chosen.mark_point(filled=True, size=230, opacity=1),
        *with_halo(
            base.transform_filter("!datum.chosen").mark_text(fontSize=12, **label).encode(text="batch:N")  # type: ignore[arg-type]
        ),
        *with_halo(
            chosen.transform_calculate(words="'batch ' + datum.batch")
            .mark_text(fontSize=13, fontWeight=600, **label)  # type: ignore[arg-type]
            .encode(text="words:N")
        ),
        *_published(published),
    ]
    words = "; ".join(f"{row.line} at batch {row.batch}: {row.rate}" for row in frame[frame["chosen"]].itertuples())
    return alt.LayerChart(
        layer=layers,
        width="container",
        height=HEIGHT + 22 * (len(lines) if _is_long(lines) else (len(lines) + 1) // 2),
        description=f"{unit.capitalize()} a second against {x_axis.lower()} over batches. {words}.",
    )


def _point(name: str, prediction: ModelPrediction, batch: int) -> dict[str, Any]:
    rate = prediction.per_second
    return {
        "line": name,
        "batch": prediction.plan.batch,
        "x": prediction.main.time_s.value,
        "y": rate.value,
        "low": rate.low,
        "high": rate.high,
        "rate": rate_words(rate),
        "time": format_seconds(prediction.main.time_s.value),
        "chosen": prediction.plan.batch == batch,
    }


def _log(name: str, title: str, values: Sequence[float], unit: str) -> Any:
    """Return a log axis, `x` or `y`, a little wider than its values."""
    domain = [min(values) / 1.15, max(values) * 1.15]
    ticks = [tick for tick in log_ticks(values) if domain[0] <= tick <= domain[1]]
    decades = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    shown = decades if len(decades) > 3 else ticks
    scale = alt.Scale(type="log", nice=False, domain=domain)
    axis = alt.Axis(values=shown, labelExpr=si_label(unit), labelOverlap="greedy")
    return (alt.X if name == "x" else alt.Y)(f"{name}:Q", title=title, scale=scale, axis=axis)


def _is_long(lines: Mapping[str, object]) -> bool:
    """Return whether names of lines are too long to stand next to each other on a phone."""
    return max(map(len, lines)) > 22


def _roofs(lines: Mapping[str, Sequence[ModelPrediction]], batch: int) -> dict[str, float]:
    """Return by line the rate at its dense peak, or the seconds in which memory gives all weights once."""
    found = {}
    for name, predictions in lines.items():
        each = next((point for point in predictions if point.plan.batch == batch), predictions[0])
        memory = each.device.bandwidth
        if each.train and each.peak_flop_per_s:
            found[name] = each.tokens_a_step / each.flop_count * each.peak_flop_per_s * each.plan.gpus
        elif each.decode and memory:
            read = sum(part.weight_bytes * part.count for part, _ in each.decode.parts)
            found[name] = read / memory.bytes_per_s
    return {name: value for name, value in found.items() if value}


def _roof_lines(roofs: Mapping[str, float], first: ModelPrediction, color: alt.Color) -> list[alt.Chart]:
    """Return a dashed line for each roof, with its words: across, or upright where it bounds the time."""
    layers: list[alt.Chart] = []
    for at, (name, value) in enumerate(roofs.items()):
        words = "dense peak" if first.train else f"weights {format_seconds(value)}"
        words = words if len(roofs) <= MOST_WORDS else ""
        row = alt.Chart(alt.InlineData(values=[{"line": name, "value": value, "words": words}])).encode(color=color)
        line = row.mark_rule(strokeDash=[5, 4], strokeWidth=1.5, tooltip=None)
        text = row.mark_text(align="left", dx=5, dy=-7 if first.train else 9 + 17 * at, fontSize=12, tooltip=None)
        if first.train:
            layers.append(line.encode(y=alt.Y("value:Q")))
            layers += with_halo(text.encode(y=alt.Y("value:Q"), x=x_value(0), text="words:N"))
        else:
            layers.append(line.encode(x=alt.X("value:Q")))
            layers += with_halo(text.encode(x=alt.X("value:Q"), y=y_value(0), text="words:N"))
    return layers


def _published(points: Sequence[PublishedPoint]) -> list[alt.Chart]:
    if not points:
        return []
    rows: list[dict[str, Any]] = []
    for point in sorted(points, key=lambda each: -each.rate):  # a word at the highest of each GPU
        device = point.words.partition(",")[0]
        name = "" if any(row["device"] == device for row in rows) else "published"
        row = {"x": point.step_s, "y": point.rate, "words": point.words, "source": point.source}
        rows.append(row | {"device": device, "name": name})
    tips = [alt.Tooltip("words:N", title="Published"), alt.Tooltip("source:N", title="Source")]
    base = alt.Chart(alt.InlineData(values=rows)).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"), tooltip=tips)
    text = base.mark_text(dy=-14, fontSize=12, color=NEUTRAL, tooltip=None).encode(text="name:N")
    return [base.mark_point(shape="diamond", size=110, strokeWidth=2.2, color=NEUTRAL), *with_halo(text)]


def step_shares(predictions: Mapping[str, ModelPrediction]) -> alt.LayerChart:
    """Return what takes each phase of a step, a bar of 100 % for each."""
    rows: list[dict[str, Any]] = []
    names: list[str] = []
    for phase, words in PHASES.items():
        for name, prediction in predictions.items():
            found = getattr(prediction, phase)
            if not found:
                continue
            names.append(f"{name}, {words if prediction.model.tokens else 'step'}")
            start = 0.0
            for group in GROUPS.values():
                share = shares_of(found).get(group, 0.0)
                label = f"{100 * share:.0f} %" if share >= 0.09 else ""
                row = {"of": names[-1], "group": group, "start": start, "end": start + share, "label": label}
                rows.append(row | {"middle": start + share / 2, "share": format_percent(share)})
                start += share
    frame = pd.DataFrame(rows)
    x = alt.X(
        "start:Q",
        title=None,
        axis=alt.Axis(labelExpr="round(100 * datum.value) + ' %'", tickCount=5),
        scale=alt.Scale(domain=[0, 1]),
    )
    y = alt.Y("of:N", sort=names, title=None, axis=_names_above(), scale=alt.Scale(paddingInner=0.5, paddingOuter=0.4))
    present = [
        group for group in GROUPS.values() if any(row["group"] == group and row["end"] > row["start"] for row in rows)
    ]
    color = alt.Color(
        "group:N",
        scale=alt.Scale(domain=list(GROUPS.values())),
        title=None,
        legend=alt.Legend(orient="top", values=present, columns=2, labelLimit=200, symbolType="square"),
    )
    tips = [alt.Tooltip(f"{name}:N", title=name.capitalize()) for name in ("of", "group", "share")]
    base = alt.Chart(frame).encode(y=y)
    bars = base.mark_bar(height=20).encode(x=x, x2="end:Q", color=color, tooltip=tips)
    inside = alt.ExprRef("luminance(background) > 0.5 ? 'white' : 'black'")
    texts = base.mark_text(fontSize=12, fontWeight=600, tooltip=None, color=inside).encode(x="middle:Q", text="label:N")
    words = "; ".join(f"{row['of']}: {row['group']} {row['share']}" for row in rows if row["label"])
    return _bars([bars, texts], len(names), 76 + 22 * ((len(present) + 1) // 2), f"What takes a step. {words}.")


def memory_bars(predictions: Mapping[str, ModelPrediction]) -> alt.LayerChart:
    """Return the memory that each GPU needs, as a bar, and what it has for tensors, as a line."""
    rows: list[dict[str, Any]] = [
        {
            "of": f"{name}: {format_gigabytes(each.memory_bytes)} of {format_gigabytes(each.usable_bytes)} usable",
            "bytes": each.memory_bytes,
            "usable": each.usable_bytes,
            "fits": {True: "fits", False: "does not fit"}.get(each.fits, "memory unknown"),  # type: ignore[arg-type]
        }
        for name, each in predictions.items()
    ]
    x = alt.X("bytes:Q", title=None, axis=alt.Axis(labelExpr=si_label("B"), tickCount=5))
    y = alt.Y(
        "of:N",
        sort=[row["of"] for row in rows],
        title=None,
        axis=_names_above(),
        scale=alt.Scale(paddingInner=0.5, paddingOuter=0.4),
    )
    tips = [alt.Tooltip(f"{name}:N", title=name.capitalize()) for name in ("of", "fits")]
    base = alt.Chart(pd.DataFrame(rows)).encode(y=y, tooltip=tips)
    color = alt.Color("fits:N", scale=alt.Scale(domain=["fits", "does not fit", "memory unknown"]), legend=None)
    layers = [
        base.mark_bar(height=20).encode(x=x, color=color),
        base.transform_filter("isValid(datum.usable)")
        .mark_tick(thickness=3, size=30, color=NEUTRAL)
        .encode(x=alt.X("usable:Q")),
    ]
    words = "; ".join(f"{row['of']}, {row['fits']}" for row in rows)
    return _bars(layers, len(rows), 50, f"Memory per GPU. {words}.")


def _names_above() -> alt.Axis:
    """Return an axis whose names stand above their bars: beside them a phone has no space."""
    return alt.Axis(
        labelAlign="left", labelPadding=-4, labelOffset=-19, labelLimit=340, ticks=False, domain=False, orient="left"
    )


def _bars(layers: Sequence[alt.Chart], count: int, beside: int, description: str) -> alt.LayerChart:
    """Return so many bars; `beside` is the height of what is above and below them."""
    return alt.LayerChart(layer=list(layers), width="container", height=46 * count + beside, description=description)
