"""Metrics as text in the form of OpenMetrics 1.0, which Prometheus reads.

See https://github.com/prometheus/OpenMetrics/blob/main/specification/OpenMetrics.md
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

CONTENT_TYPE = "application/openmetrics-text; version=1.0.0; charset=utf-8"
SUFFIXES = {"gauge": "", "counter": "_total", "info": "_info"}
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


@dataclass(frozen=True, slots=True)
class Family:
    """One metric.

    Attributes:
        name: without the suffix of its kind; ends in its unit where it has one.
        kind: what its values are: a counter never falls while the process lives.
        about: a sentence.
        samples: values by labels.
        unit: in the base form, `seconds` or `bytes`.
    """

    name: str
    kind: Literal["gauge", "counter", "info"]
    about: str
    samples: tuple[tuple[Mapping[str, str], float], ...]
    unit: str = ""


def exposition(families: Iterable[Family]) -> str:
    """Return the text of all families, each with its samples."""
    lines = [line for family in families for line in _lines(family)]
    return "\n".join([*lines, "# EOF", ""])


def _lines(family: Family) -> list[str]:
    head = [f"# TYPE {family.name} {family.kind}"]
    if family.unit:
        head.append(f"# UNIT {family.name} {family.unit}")
    head.append(f"# HELP {family.name} {family.about.translate(ESCAPES)}")
    name = f"{family.name}{SUFFIXES[family.kind]}"
    return [*head, *(f"{name}{_labels(labels)} {value:.15g}" for labels, value in family.samples)]


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    listed = ",".join(f'{name}="{value.translate(ESCAPES)}"' for name, value in labels.items())
    return f"{{{listed}}}"
