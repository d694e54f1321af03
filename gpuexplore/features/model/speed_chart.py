"""Charts of a model's speed: throughput against latency over batches, what takes a step, and the memory of a GPU.

They are Vega-Lite as such, with the rows of each layer in it: Altair took as long for these three as their predictions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from gpuexplore.charts import LAYERED, NEUTRAL, Spec, layer, log_ticks, nominal, number, si_label, with_halo
from gpuexplore.core.units import format_gigabytes, format_percent, format_seconds
from gpuexplore.features.model.analysis.answers import GROUPS, PHASES, rate_words, shares_of
from gpuexplore.features.model.analysis.prediction import ModelPrediction
from gpuexplore.features.model.analysis.rows import PublishedPoint

HEIGHT = 360  # of the chart with its axes, without its legend
MOST_WORDS = 3  # at lines that bound others: more would cover the curves


def throughput(lines: Mapping[str, Sequence[ModelPrediction]], batch: int, published: Sequence[PublishedPoint]) -> Spec:
    """Return tokens a second against the time of a step, a line over batches each, the chosen batch emphasised.

    Args:
        lines: predictions by the name of their line, each with one.
        batch: the chosen one.
        published: measured points, hollow.
    """
    first = next(iter(lines.values()))[0]
    unit = "tokens" if first.model.tokens else "samples"
    points = [_point(name, each, batch) for name, found in lines.items() for each in found]
    roofs = _roofs(lines, batch)
    steps = [*(point["x"] for point in points), *(point.step_s for point in published)]
    rates = [*(point[end] for end in ("low", "high") for point in points), *(point.rate for point in published)]
    (rates if first.train else steps).extend(roofs.values())
    x_axis = "Time of a step" if first.train else "Time of a token" if first.decode else "Time of a batch"
    color = nominal(
        "line",
        scale={"domain": list(lines)},
        title=None,
        legend={"orient": "top", "columns": 1 if _is_long(lines) else 2, "labelLimit": 320, "symbolOpacity": 1},
    )
    titles = {"line": "On", "batch": "Batch", "rate": f"{unit.capitalize()} a second", "time": x_axis}
    base = {
        "x": _log("x", x_axis, steps, "s"),
        "y": _log("y", f"{unit.capitalize()} a second, all GPUs", rates, ""),
        "color": color,
        "tooltip": [nominal(name, title=title) for name, title in titles.items()],
    }
    chosen = {"filter": "datum.chosen"}
    others = {"transform": [{"filter": "!datum.chosen"}]}
    named = {"transform": [chosen, {"calculate": "'batch ' + datum.batch", "as": "words"}]}
    label = {"align": "left", "baseline": "top", "dx": 7, "dy": 4, "tooltip": None}
    layers = [
        *_roof_lines(roofs, first, color),
        layer("line", {**base, "order": number("batch")}, strokeWidth=2, tooltip=None),
        layer("rule", {**base, "y": number("low"), "y2": {"field": "high"}}, strokeWidth=2, opacity=0.45, tooltip=None),
        layer("point", base, filled=True, size=55, opacity=1),
        layer("point", base, {"transform": [chosen]}, filled=True, size=230, opacity=1),
        *with_halo(layer("text", {**base, "text": nominal("batch")}, others, fontSize=12, **label)),
        *with_halo(layer("text", {**base, "text": nominal("words")}, named, fontSize=13, fontWeight=600, **label)),
        *_published(published),
    ]
    words = "; ".join(f"{row['line']} at batch {row['batch']}: {row['rate']}" for row in points if row["chosen"])
    height = HEIGHT + 22 * (len(lines) if _is_long(lines) else (len(lines) + 1) // 2)
    said = f"{unit.capitalize()} a second against {x_axis.lower()} over batches. {words}."
    return {**LAYERED, "data": {"values": points}, "layer": layers, "height": height, "description": said}


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


def _log(name: str, title: str, values: Sequence[float], unit: str) -> Spec:
    """Return a log axis, `x` or `y`, a little wider than its values."""
    domain = [min(values) / 1.15, max(values) * 1.15]
    ticks = [tick for tick in log_ticks(values) if domain[0] <= tick <= domain[1]]
    decades = [tick for tick in ticks if f"{tick:e}".startswith("1.0")]
    shown = {"labelExpr": si_label(unit), "labelOverlap": "greedy", "tickCount": 5}
    if len(ticks) > 2:  # else Vega's own, between those
        shown["values"] = decades if len(decades) > 3 else ticks
    return number(name, title=title, scale={"type": "log", "nice": False, "domain": domain}, axis=shown)


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


def _roof_lines(roofs: Mapping[str, float], first: ModelPrediction, color: Spec) -> list[Spec]:
    """Return a dashed line for each roof, with its words: across, or upright where it bounds the time."""
    layers: list[Spec] = []
    along, across = ("y", "x") if first.train else ("x", "y")
    for at, (name, value) in enumerate(roofs.items()):
        words = "dense peak" if first.train else f"weights {format_seconds(value)}"
        row = {"line": name, "value": value, "words": words if len(roofs) <= MOST_WORDS else ""}
        data = {"data": {"values": [row]}}
        line = {"color": color, along: number("value")}
        layers.append(layer("rule", line, data, strokeDash=[5, 4], strokeWidth=1.5, tooltip=None))
        text = line | {across: {"value": 0}, "text": nominal("words")}
        dy = -7 if first.train else 9 + 17 * at
        layers += with_halo(layer("text", text, data, align="left", dx=5, dy=dy, fontSize=12, tooltip=None))
    return layers


def _published(points: Sequence[PublishedPoint]) -> list[Spec]:
    if not points:
        return []
    rows: list[Spec] = []
    for point in sorted(points, key=lambda each: -each.rate):  # a word at the highest of each GPU
        device = point.words.partition(",")[0]
        name = "" if any(row["device"] == device for row in rows) else "published"
        row = {"x": point.step_s, "y": point.rate, "words": point.words, "source": point.source}
        rows.append(row | {"device": device, "name": name})
    base = {
        "x": number("x"),
        "y": number("y"),
        "tooltip": [nominal("words", title="Published"), nominal("source", title="Source")],
    }
    data = {"data": {"values": rows}}
    return [
        layer("point", base, data, shape="diamond", size=110, strokeWidth=2.2, color=NEUTRAL),
        *with_halo(
            layer("text", base | {"text": nominal("name")}, data, dy=-14, fontSize=12, color=NEUTRAL, tooltip=None)
        ),
    ]


def step_shares(predictions: Mapping[str, ModelPrediction]) -> Spec:
    """Return what takes each phase of a step, a bar of 100 % for each."""
    rows: list[Spec] = []
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
    present = [
        group for group in GROUPS.values() if any(row["group"] == group and row["end"] > row["start"] for row in rows)
    ]
    legend = {"orient": "top", "values": present, "columns": 2, "labelLimit": 200, "symbolType": "square"}
    base = {"y": _bar_names(names)}
    bar = base | {
        "x": number(
            "start",
            title=None,
            axis={"labelExpr": "round(100 * datum.value) + ' %'", "tickCount": 5},
            scale={"domain": [0, 1]},
        ),
        "x2": {"field": "end"},
        "color": nominal("group", scale={"domain": list(GROUPS.values())}, title=None, legend=legend),
        "tooltip": [nominal(name, title=name.capitalize()) for name in ("of", "group", "share")],
    }
    layers = [
        layer("bar", bar, height=20),
        layer(
            "text",
            base | {"x": number("middle"), "text": nominal("label")},
            fontSize=12,
            fontWeight=600,
            tooltip=None,
            color={"expr": "luminance(background) > 0.5 ? 'white' : 'black'"},
        ),
    ]
    words = "; ".join(f"{row['of']}: {row['group']} {row['share']}" for row in rows if row["label"])
    height = 46 * len(names) + 76 + 22 * ((len(present) + 1) // 2)  # of the bars, and of what is above and below them
    said = f"What takes a step. {words}."
    return {**LAYERED, "data": {"values": rows}, "layer": layers, "height": height, "description": said}


def memory_bars(predictions: Mapping[str, ModelPrediction]) -> Spec:
    """Return the memory that each GPU needs, as a bar, and what it has for tensors, as a line."""
    rows: list[Spec] = [
        {
            "of": f"{name}: {format_gigabytes(each.memory_bytes)} of {format_gigabytes(each.usable_bytes)} usable",
            "bytes": each.memory_bytes,
            "usable": each.usable_bytes,
            "fits": {True: "fits", False: "does not fit"}.get(each.fits, "memory unknown"),  # type: ignore[arg-type]
        }
        for name, each in predictions.items()
    ]
    base = {
        "y": _bar_names([row["of"] for row in rows]),
        "tooltip": [nominal(name, title=name.capitalize()) for name in ("of", "fits")],
    }
    bar = base | {
        "x": number("bytes", title=None, axis={"labelExpr": si_label("B"), "tickCount": 5}),
        "color": nominal("fits", scale={"domain": ["fits", "does not fit", "memory unknown"]}, legend=None),
    }
    known = {"transform": [{"filter": "isValid(datum.usable)"}]}
    layers = [
        layer("bar", bar, height=20),
        layer("tick", base | {"x": number("usable")}, known, thickness=3, size=30, color=NEUTRAL),
    ]
    words = "; ".join(f"{row['of']}, {row['fits']}" for row in rows)
    said = f"Memory per GPU. {words}."
    return {**LAYERED, "data": {"values": rows}, "layer": layers, "height": 46 * len(rows) + 50, "description": said}


def _bar_names(names: Sequence[str]) -> Spec:
    """Return an axis of bars with their names above them: beside them a phone has no space."""
    axis = {"labelAlign": "left", "labelPadding": -4, "labelOffset": -19, "labelLimit": 340, "orient": "left"}
    bands = {"paddingInner": 0.5, "paddingOuter": 0.4}
    return nominal("of", sort=names, title=None, axis={**axis, "ticks": False, "domain": False}, scale=bands)
