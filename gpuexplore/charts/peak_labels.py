"""The words at the lines of peaks: what each is the peak of, and whose it is where a chart shows several devices."""

from collections.abc import Callable, Iterable
from typing import NamedTuple

from gpuexplore.dtypes import DTYPES

NEAR = 1.05  # lines of devices that differ by less lie on each other: they share a label that gives every figure


class PeakLine(NamedTuple):
    """A peak of some results, its rate per second; the dtype is empty where it has none or its panel names it."""

    device: str
    dtype: str
    kind: str
    rate: float


def peak_labels(lines: Iterable[PeakLine], words: Callable[[float], str]) -> dict[str, float]:
    """Return the rates to draw a line at by their label; equal rates of a device are one line."""
    dtypes: dict[tuple[str, str, float], set[str]] = {}
    for line in lines:
        dtypes.setdefault((line.device, line.kind, line.rate), set()).add(line.dtype)
    several_kinds = len({kind for _, kind, _ in dtypes}) > 1
    several_devices = len({device for device, _, _ in dtypes}) > 1
    found: dict[str, list[tuple[str, float]]] = {}
    for (device, kind, rate), names in dtypes.items():
        listed = "" if "" in names else ", ".join(name for name in DTYPES if name in names)
        told = kind if several_kinds or not several_devices or not listed else ""  # labels of devices have to be short
        found.setdefault(", ".join(filter(None, (listed, told))), []).append((device if several_devices else "", rate))
    return {
        f"{what}: {', '.join(f'{device} {words(rate)}'.strip() for device, rate in near)}": near[0][1]
        for what, rates in found.items()
        for near in (sorted(group, key=rates.index) for group in _near(rates))
    }


def _near(rates: list[tuple[str, float]]) -> list[list[tuple[str, float]]]:
    """Return groups of rates that differ by less than NEAR, the highest first."""
    groups: list[list[tuple[str, float]]] = []
    for rate in sorted(rates, key=lambda each: -each[1]):
        if groups and groups[-1][0][1] < rate[1] * NEAR:
            groups[-1].append(rate)
        else:
            groups.append([rate])
    return groups
