"""`gpuexplore atlas`: what GPUs were measured to do, by whom, and which GPU suits a call."""

import argparse
import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from gpuexplore.analysis.prediction import CALLS, USUAL_CALLS
from gpuexplore.analysis.prediction.request import PredictionRequest
from gpuexplore.analysis.utilization.utilization import shape_label
from gpuexplore.cli.output import EXIT_OK, declare, print_columns, print_json, say, say_readings
from gpuexplore.cli.predict_command import measured_here
from gpuexplore.core import (
    UNKNOWN,
    InvalidInput,
    format_bytes,
    format_bytes_per_s,
    format_energy,
    format_flop_per_s,
    format_interval,
    format_money,
    format_percent,
    format_seconds,
    format_work_rate,
    spreadsheet_safe,
)
from gpuexplore.core.dtypes import FORMATS
from gpuexplore.features.atlas.analysis import AtlasPoint, Citation, citations
from gpuexplore.features.atlas.analysis.answers import (
    EXAMPLE,
    Atlas,
    Ranking,
    choice_row,
    choices_asked,
    citation_row,
    point_row,
    points_asked,
)
from gpuexplore.features.atlas.analysis.contribution import contribution, written
from gpuexplore.features.atlas.analysis.which_gpu import ORDERS, GpuChoice
from gpuexplore.hardware import discover, ensure_ceiling, readings
from gpuexplore.operations import OPERATIONS
from gpuexplore.shapes import split

MOST_ROWS = 40  # of a table for people


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `atlas`; values stay text."""
    declare(
        parser,
        {
            "operation OPERATION": {"nargs": "?", "help": f"{', '.join(OPERATIONS)}, or add; default: a summary"},
            "recording RECORDING": {"nargs": "?", "help": "after `add`: a file of record or selftest for the atlas"},
        },
    )
    for option, metavar, about in (
        ("--gpu", "LIST", "names or keys of `specs` (default: all that were measured)"),
        ("--dtype", "LIST", f"{', '.join(FORMATS)} (default: all; with --which fp32)"),
        ("--source", "NAME", "only measurements of one collection"),
        ("--size", "N", "size of the call, with --which"),
        ("--shape", "m=..|PRESET", "exact axes of the call, or a preset, with --which"),
        ("--calls", "KIND", f"{', '.join(CALLS)}, with --which (default: {USUAL_CALLS}); see predict"),
        ("--by", "|".join(ORDERS), "quantity that --which ranks by (default: time)"),
        ("--price", "KEY=AMOUNT,..", f"price per hour, instead of the listed ones: {EXAMPLE}"),
    ):
        parser.add_argument(option, metavar=metavar, help=about)
    parser.add_argument(
        "--which", action="store_true", help="rank GPUs for one call, by measured times, else predicted ones"
    )
    declare(
        parser.add_mutually_exclusive_group(),
        {
            "--json": "print JSON",
            "--csv": "print CSV",
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Print a summary of what was measured, the measurements of an operation, or GPUs ranked for a call."""
    for name in ("operation", "gpu", "dtype", "source", "size", "shape", "calls", "by", "price"):
        if getattr(arguments, name) is not None and not getattr(arguments, name).strip():
            raise InvalidInput.of(name, getattr(arguments, name), "a value; leave the option out for all")
    if (arguments.operation == "add") != (arguments.recording is not None):
        raise InvalidInput.of("arguments", arguments.recording or "add", "`atlas add RECORDING`, or an operation alone")
    if arguments.recording:
        return _add(Path(arguments.recording))
    return (_which if arguments.which else _points)(arguments)


def _add(path: Path) -> int:
    found = contribution(path)
    for operation, count in found.points.items():
        print(f"{operation}: {count} more points in the atlas")
    if not found.points:
        print("No more points in the atlas, whose devices are those of the table; predictions use the recording")
    if found.error and found.width:
        before, after = map(format_percent, found.error)
        print(f"Given half of its results, the median error of {found.judged} others goes from {before} to {after}")
        print("Their intervals span a factor of " + " instead of ".join(f"{width:.2f}" for width in found.width[::-1]))
    print(f"Written: {written(found, path)}; commit it and open a pull request (CONTRIBUTING.md, Add a recording)")
    return EXIT_OK


def _points(arguments: argparse.Namespace) -> int:
    for name in ("size", "shape", "calls", "by", "price"):
        if getattr(arguments, name) is not None:
            raise InvalidInput(f"--{name} needs --which, which ranks GPUs for one call")
    texts = (arguments.gpu or "", arguments.dtype or "", arguments.source or "")
    found = Atlas(points_asked(arguments.operation, *texts))
    if arguments.csv:
        _print_csv([point_row(point) for point in found])
        return EXIT_OK
    if arguments.json:
        about = _summary_json(found) if arguments.operation is None else found.to_dict()
        print_json(about | {"readings": list(readings(split(texts[0])))})
        return EXIT_OK
    say_readings(split(texts[0]))
    if not found:
        say("gpuexplore: the atlas has no such measurement; `gpuexplore predict` gives a prediction")
    elif arguments.operation is None:
        _print_summary(found)
    else:
        _print_points(found)
    return EXIT_OK


def _which(arguments: argparse.Namespace) -> int:
    if arguments.operation is None:
        raise InvalidInput.of("operation", "", OPERATIONS)
    if arguments.source is not None:
        raise InvalidInput("--source cannot be combined with --which, which uses the fastest result of all collections")
    gpus = arguments.gpu or ""
    here = [ensure_ceiling(device) if device.id in split(gpus) else device for device in discover()] if gpus else []
    asked = PredictionRequest(
        arguments.operation,
        gpus,
        arguments.size or "",
        arguments.shape or "",
        dtypes=arguments.dtype or "fp32",
        calls=arguments.calls or USUAL_CALLS,
    )
    own = measured_here(here)[::-1] if here else ()  # newest last
    asked_for = (*split(gpus), *(word.partition("=")[0] for word in split(arguments.price or "")))
    found = Ranking(choices_asked(asked, here, own, by=arguments.by or "time", prices=arguments.price or ""))
    if arguments.csv:
        _print_csv([choice_row(choice) for choice in found])
    elif arguments.json:
        print_json(found.to_dict() | {"readings": list(readings(asked_for))})
    else:
        say_readings(asked_for)
        _print_choices(found)
    return EXIT_OK


def _print_csv(rows: Sequence[dict[str, object]]) -> None:
    if rows:
        print(_csv_text(rows), end="")
    else:
        say("gpuexplore: no measurement matches")


def _csv_text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return rows, at least one, as CSV that no spreadsheet computes; unknown is empty."""
    text = io.StringIO()
    writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
    writer.writeheader()
    for row in rows:
        writer.writerow(
            {name: spreadsheet_safe(value) if isinstance(value, str) else value for name, value in row.items()}
        )
    return text.getvalue()


def _summary_json(found: Atlas) -> dict[str, object]:
    return {
        "operations": _counts(found, lambda point: point.operation, "operation"),
        "gpus": _counts(found, lambda point: point.spec_key, "spec_key"),
        "sources": [
            citation_row(citation) | {"points": sum(point.citation == citation for point in found)}
            for citation in found.citations
        ],
    }


def _counts(found: Atlas, key: Callable[[AtlasPoint], str], name: str) -> list[dict[str, Any]]:
    """Return a row for each value of `key`, with how many points have it, and what else they have."""
    groups: dict[str, list[AtlasPoint]] = {}
    for point in found:
        groups.setdefault(key(point), []).append(point)
    return [
        {
            name: value,
            "points": len(group),
            "operations": _each(point.operation for point in group),
            "gpus": _each(point.spec_key for point in group),
            "dtypes": [dtype for dtype in FORMATS if dtype in {point.dtype for point in group}],
        }
        for value, group in sorted(groups.items(), key=lambda pair: -len(pair[1]))
    ]


def _each(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def _print_summary(found: Atlas) -> None:
    by_operation = _counts(found, lambda point: point.operation, "operation")
    by_gpu = _counts(found, lambda point: point.device.title, "gpu")
    print_columns(
        [
            ("operation", "points", "GPUs", "dtypes"),
            *(
                (row["operation"], str(row["points"]), str(len(row["gpus"])), ", ".join(row["dtypes"]))
                for row in by_operation
            ),
        ]
    )
    print()
    print_columns(
        [
            ("gpu", "points", "dtypes", "operations"),
            *(
                (row["gpu"], str(row["points"]), ", ".join(row["dtypes"]), ", ".join(row["operations"]))
                for row in by_gpu
            ),
        ]
    )
    _print_citations(found)


def _print_points(found: Atlas) -> None:
    shown = sorted(found, key=lambda point: (point.device.title, point.dtype, point.work))
    if len(shown) > MOST_ROWS:
        best: dict[tuple[str, str], AtlasPoint] = {}
        for point in sorted(found, key=lambda point: -point.rate):
            best.setdefault((point.spec_key, point.dtype), point)
        shown = list(best.values())[:MOST_ROWS]
    print_columns(
        [("gpu", "shape", "dtype", "time", "rate", "of limit", "calls", "source"), *map(_point_columns, shown)]
    )
    if left := len(found) - len(shown):
        print(f"The fastest of each GPU and dtype; {left:,} more with --json or --csv, or with --gpu and --dtype.")
    _print_citations(shown)


def _point_columns(point: AtlasPoint) -> tuple[str, ...]:
    shape = shape_label(point.shape)
    rate = format_flop_per_s(point.flop_per_s) if point.is_product else format_bytes_per_s(point.bytes_per_s)
    return (
        point.device.title,
        shape if len(shape) <= 44 else f"{shape[:42]} …",
        point.dtype,
        format_seconds(point.time_s),
        rate,
        UNKNOWN if point.share is None else f"{format_percent(point.share)} {point.bound}",
        point.calls,
        point.citation.name if point.implementation is None else f"{point.citation.name}, {point.implementation}",
    )


def _print_citations(found: Iterable[AtlasPoint]) -> None:
    if cited := citations(found):
        print("\nSources:", *(f"- {_citation_words(citation)}" for citation in cited), sep="\n")


def _citation_words(citation: Citation) -> str:
    """Return what is printed of a collection: what to cite, its licence, where it is and how it was measured."""
    details = (citation.text, citation.licence, citation.url)
    return f"{citation.name}: {'; '.join(filter(None, details))} ({citation.how})"


def _print_choices(found: Ranking) -> None:
    shown = found.choices[:MOST_ROWS]
    heading = (
        "gpu",
        "dtype",
        "time",
        "9 in 10 within",
        "rate",
        "MFU",
        "energy",
        "fits",
        "per hour",
        "10^6 calls",
        "time is",
    )
    print(f"{found.choices[0].layer.name}: {format_bytes(found.choices[0].found.memory_bytes)} of arrays")
    print_columns([heading, *map(_choice_columns, shown)])
    if left := len(found) - len(shown):
        print(f"{left} more with --json or --csv, or with --gpu.")
    for reason in _each(f"{choice.found.dtype}: {choice.found.reason}" for choice in shown if choice.found.reason):
        print(f"  {reason}")
    print("Energy is the time at the board's power limit: an upper bound.")
    prices = [choice.listed for choice in shown if choice.listed]
    if prices:
        print("Prices are in US dollars, on demand, without taxes:")
    for text in _each(f"- {price.provider}, {price.read_on}, {price.note}: {price.page}" for price in prices):
        print(text)
    _print_citations(choice.point for choice in shown if choice.point)


def _choice_columns(choice: GpuChoice) -> tuple[str, ...]:
    found = choice.found
    time = choice.time
    interval = (time.low, time.high) if time and time.low < time.high else None
    return (
        choice.device.title,
        found.dtype,
        format_seconds(time.value if time else None),
        format_interval(interval, format_seconds),
        format_work_rate(choice.flop_per_s, choice.bytes_per_s),
        format_percent(found.mfu),
        format_energy(found.energy_j),
        {True: "yes", False: "no", None: UNKNOWN}[found.fits],
        f"{format_money(choice.price_per_hour)} {choice.listed.provider if choice.listed else ''}".rstrip(),
        format_money(choice.cost_of_million),
        found.origin.value if found.origin else UNKNOWN,
    )
