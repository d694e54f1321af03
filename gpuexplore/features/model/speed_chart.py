"""Charts of a model's speed: throughput against latency over batches, what takes a step, and the memory of a GPU.

They are Vega-Lite as such, with the rows of each layer in it: Altair took as long for these three as their predictions.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from altair import SCHEMA_URL

from gpuexplore.charts import NEUTRAL, log_ticks, si_label
from gpuexplore.core.units import format_gigabytes, format_percent, format_seconds
from gpuexplore.features.model.analysis.answers import GROUPS, PHASES, rate_words, shares_of
from gpuexplore.features.model.analysis.prediction import ModelPrediction
from gpuexplore.features.model.analysis.rows import PublishedPoint

HEIGHT = 360  # of the chart with its axes, without its legend
MOST_WORDS = 3  # at lines that bound others: more would cover the curves
Spec = dict[str, Any]  # of Vega-Lite, or a part of it


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
    color = _name(
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
        "tooltip": [_name(name, title=title) for name, title in titles.items()],
    }
    chosen = {"filter": "datum.chosen"}
    label = {"align": "left", "baseline": "top", "dx": 7, "dy": 4, "tooltip": None}
    layers = [
        *_roof_lines(roofs, first, color),
        _layer("line", {**base, "order": _number("batch")}, strokeWidth=2, tooltip=None),
        _layer(
            "rule", {**base, "y": _number("low"), "y2": {"field": "high"}}, strokeWidth=2, opacity=0.45, tooltip=None
        ),
        _layer("point", base, filled=True, size=55, opacity=1),
        _layer("point", base, {"transform": [chosen]}, filled=True, size=230, opacity=1),
        *_texts({**base, "text": _name("batch")}, {"transform": [{"filter": "!datum.chosen"}]}, fontSize=12, **label),
        *_texts(
            {**base, "text": _name("words")},
            {"transform": [chosen, {"calculate": "'batch ' + datum.batch", "as": "words"}]},
            fontSize=13,
            fontWeight=600,
            **label,
        ),
        *_published(published),
    ]
    words = "; ".join(f"{row['line']} at batch {row['batch']}: {row['rate']}" for row in points if row["chosen"])
    height = HEIGHT + 22 * (len(lines) if _is_long(lines) else (len(lines) + 1) // 2)
    return _chart(
        layers, points, height, f"{unit.capitalize()} a second against {x_axis.lower()} over batches. {words}."
    )


def _chart(layers: Sequence[Spec], rows: Sequence[Spec], height: int, description: str) -> Spec:
    """Return a chart as wide as its place, of layers that draw `rows` unless they have their own."""
    return {
        "$schema": SCHEMA_URL,
        "config": {"view": {"continuousWidth": 300, "continuousHeight": 300}},
        "data": {"values": rows},
        "layer": layers,
        "width": "container",
        "height": height,
        "description": description,
    }


def _layer(mark: str, encoding: Spec, more: Spec | None = None, **settings: object) -> Spec:
    """Return a layer; `more`: its own data, or transforms."""
    return {**(more or {}), "mark": {"type": mark, **settings}, "encoding": encoding}


def _texts(encoding: Spec, more: Spec, **settings: object) -> list[Spec]:
    """Return words, above a rim in the colour of the background that leaves them readable on lines and points."""
    rim = {"stroke": {"expr": "background"}, "strokeWidth": 4, "strokeJoin": "round", "tooltip": None, "aria": False}
    return [_layer("text", encoding, more, **{**settings, **rim}), _layer("text", encoding, more, **settings)]


def _number(field: str, **settings: object) -> Spec:
    return {"field": field, "type": "quantitative", **settings}


def _name(field: str, **settings: object) -> Spec:
    return {"field": field, "type": "nominal", **settings}


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
    shown = {"values": decades if len(decades) > 3 else ticks, "labelExpr": si_label(unit), "labelOverlap": "greedy"}
    return _number(name, title=title, scale={"type": "log", "nice": False, "domain": domain}, axis=shown)


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
        line = {"color": color, along: _number("value")}
        layers.append(_layer("rule", line, data, strokeDash=[5, 4], strokeWidth=1.5, tooltip=None))
        text = line | {across: {"value": 0}, "text": _name("words")}
        layers += _texts(
            text, data, align="left", dx=5, dy=-7 if first.train else 9 + 17 * at, fontSize=12, tooltip=None
        )
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
        "x": _number("x"),
        "y": _number("y"),
        "tooltip": [_name("words", title="Published"), _name("source", title="Source")],
    }
    data = {"data": {"values": rows}}
    return [
        _layer("point", base, data, shape="diamond", size=110, strokeWidth=2.2, color=NEUTRAL),
        *_texts(base | {"text": _name("name")}, data, dy=-14, fontSize=12, color=NEUTRAL, tooltip=None),
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
        "x": _number(
            "start",
            title=None,
            axis={"labelExpr": "round(100 * datum.value) + ' %'", "tickCount": 5},
            scale={"domain": [0, 1]},
        ),
        "x2": {"field": "end"},
        "color": _name("group", scale={"domain": list(GROUPS.values())}, title=None, legend=legend),
        "tooltip": [_name(name, title=name.capitalize()) for name in ("of", "group", "share")],
    }
    layers = [
        _layer("bar", bar, height=20),
        _layer(
            "text",
            base | {"x": _number("middle"), "text": _name("label")},
            fontSize=12,
            fontWeight=600,
            tooltip=None,
            color={"expr": "luminance(background) > 0.5 ? 'white' : 'black'"},
        ),
    ]
    words = "; ".join(f"{row['of']}: {row['group']} {row['share']}" for row in rows if row["label"])
    beside = 76 + 22 * ((len(present) + 1) // 2)  # the height of what is above and below the bars
    return _chart(layers, rows, 46 * len(names) + beside, f"What takes a step. {words}.")


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
        "tooltip": [_name(name, title=name.capitalize()) for name in ("of", "fits")],
    }
    bar = base | {
        "x": _number("bytes", title=None, axis={"labelExpr": si_label("B"), "tickCount": 5}),
        "color": _name("fits", scale={"domain": ["fits", "does not fit", "memory unknown"]}, legend=None),
    }
    known = {"transform": [{"filter": "isValid(datum.usable)"}]}
    layers = [
        _layer("bar", bar, height=20),
        _layer("tick", base | {"x": _number("usable")}, known, thickness=3, size=30, color=NEUTRAL),
    ]
    words = "; ".join(f"{row['of']}, {row['fits']}" for row in rows)
    return _chart(layers, rows, 46 * len(rows) + 50, f"Memory per GPU. {words}.")


def _bar_names(names: Sequence[str]) -> Spec:
    """Return an axis of bars with their names above them: beside them a phone has no space."""
    axis = {"labelAlign": "left", "labelPadding": -4, "labelOffset": -19, "labelLimit": 340, "orient": "left"}
    bands = {"paddingInner": 0.5, "paddingOuter": 0.4}
    return _name("of", sort=names, title=None, axis={**axis, "ticks": False, "domain": False}, scale=bands)
