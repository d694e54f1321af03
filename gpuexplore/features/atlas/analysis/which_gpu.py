"""The choice of a GPU for a call: its time on several GPUs, measured where there is a measurement, else predicted.

Everything but the choice of the time is the arithmetic of the what-if.
"""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from importlib.resources import files
from math import inf, isfinite
from typing import Any, Literal
from urllib.parse import urlsplit

from gpuexplore.analysis.prediction import Calls, UncertainValue
from gpuexplore.analysis.what_if.what_if import Known, WhatIf, what_if
from gpuexplore.analysis.what_if.workload import Workload, WorkloadLayer, of_operation
from gpuexplore.core import Device, InvalidInput, Origin, Shape, once, require
from gpuexplore.features.atlas.analysis import AtlasPoint, points
from gpuexplore.hardware import ACCELERATORS, as_device
from gpuexplore.operations import operation_named
from gpuexplore.recorded.validation import named

# What an hour of a GPU costs on demand, in US dollars: dated lists of providers; no price is made up.


@dataclass(frozen=True, slots=True)
class Price:
    """The price of one GPU at one provider.

    Attributes:
        spec_key: the GPU's row in the table of accelerators.
        usd_per_hour: US dollars for an hour of one GPU, on demand, without taxes.
        provider: who rents it.
        read_on: the day the list was read.
        page: the provider's list.
        read_at: where the figures were read.
        note: of what kind the prices of the list are.
    """

    spec_key: str
    usd_per_hour: float
    provider: str
    read_on: date
    page: str
    read_at: str
    note: str


@once
def _prices() -> tuple[Price, ...]:
    """Return every price, in the order of the file.

    Raises:
        InvalidInput: names the list and what is wrong there.
    """
    text = (files("gpuexplore.analysis") / "data" / "prices.toml").read_text(encoding="utf-8")
    return _read_prices(text, datetime.now(UTC).date())


def price_of(spec_key: str | None) -> Price | None:
    """Return the first price of a GPU; None where no list has it."""
    return next((price for price in _prices() if price.spec_key == spec_key), None)


def _read_prices(text: str, today: date) -> tuple[Price, ...]:
    """Return the prices of a file's text.

    Args:
        today: no list was read after it.

    Raises:
        InvalidInput: names the list and what is wrong there.
    """
    found = []
    for listed in tomllib.loads(text)["list"]:
        with named(f"prices.toml, {listed.get('provider')}"):
            for name in ("page", "read_at"):
                require(urlsplit(listed[name]).scheme == "https", name, listed[name], "https links")
            read_on = listed["read_on"]
            if not isinstance(read_on, date) or read_on > today:
                raise InvalidInput.of("read_on", read_on, f"days up to {today}")
            found += [_price(listed, key, amount) for key, amount in listed["usd_per_hour"].items()]
    return tuple(found)


def _price(listed: Mapping[str, Any], key: str, amount: object) -> Price:
    require(key in {row.key for row in ACCELERATORS}, "gpu", key, "keys of the table of accelerators")
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not (isfinite(amount) and amount > 0):
        raise InvalidInput.of(f"price of {key}", amount, "US dollars above 0")
    about = {name: listed[name] for name in ("provider", "read_on", "page", "read_at", "note")}
    return Price(key, float(amount), **about)


Order = Literal["time", "energy", "memory", "price"]
# The shortest published time that is also that of calls of another kind: a launch of 5 µs hides behind 50 µs of the
# call before, and one that is waited for, of 45 µs at most, is no more than 5 % of 1 ms. Cold caches and the lower
# clock of an idle GPU are in times of any length.
LEAST_S: Mapping[Calls, float] = {"queued": 5e-5, "graph": 5e-5, "single": 1e-3, "cold": inf}


@dataclass(frozen=True, slots=True)
class GpuChoice:
    """A call on one GPU; None is unknown.

    Attributes:
        layer: the call.
        found: what follows from its time: interval, MFU, memory, energy, cost.
        point: the published measurement that the time is; None where it was recorded, measured here or predicted.
        price_per_hour: of the GPU: what was entered, else that of `listed`.
        listed: where the price is from; None where it was entered, or no list has it.
    """

    layer: WorkloadLayer
    found: WhatIf
    point: AtlasPoint | None = None
    price_per_hour: float | None = None
    listed: Price | None = None

    @property
    def device(self) -> Device:
        """The GPU."""
        return self.found.device

    @property
    def time(self) -> UncertainValue | None:
        """Seconds of a call; both ends of the interval of a published measurement are its time."""
        return self.found.time

    @property
    def flop_per_s(self) -> float | None:
        """FLOP/s at that time."""
        return self.layer.flop_count / self.time.value if self.time else None

    @property
    def bytes_per_s(self) -> float | None:
        """Bytes/s at that time, by the bytes a call moves at least: those of its arrays."""
        return self.found.memory_bytes / self.time.value if self.time else None

    @property
    def cost_of_million(self) -> float | None:
        """The cost of a million calls, in the currency of the price."""
        return None if self.found.cost is None else 1_000_000 * self.found.cost


# What a choice is ranked by, the least first.
ORDERS: Mapping[Order, Callable[[GpuChoice], float | None]] = {
    "time": lambda choice: choice.time.value if choice.time else None,
    "energy": lambda choice: choice.found.energy_j,
    "memory": lambda choice: -choice.device.memory_bytes if choice.device.memory_bytes else None,
    "price": lambda choice: choice.found.cost,
}


def which_gpu(
    operation: str, shape: Shape, dtype: str, *, devices: Sequence[Device], known: Known
) -> tuple[GpuChoice, ...]:
    """Return what one call takes on each of `devices`, in their order.

    A time is the fastest measured by gpuexplore on such a GPU, else the fastest that others published of calls of that
    kind, or that a launch is no great part of, else a prediction; a published time above a peak, as of a convolution
    that takes fewer multiplications than are counted, is none.

    Args:
        known: calibration, results, how calls follow one another, and prices an hour that were entered, by a device's
            id or its row's key; a GPU without one has the price of the first list that names it.

    Raises:
        InvalidInput: there is no such operation or dtype.
    """
    workload = of_operation(operation_named(operation), shape)
    measured = [
        point
        for point in points(operation, dtypes=[dtype])
        if point.shape == shape
        and point.origin == "published"
        and (point.calls == known.calls or (known.calls != "cold" and point.time_s >= LEAST_S[point.calls]))
    ]
    listed = {device.id: price_of(device.spec_key) for device in devices if _entered(device, known) is None}
    hourly = {device.id: _entered(device, known) for device in devices}
    hourly |= {device_id: price.usd_per_hour for device_id, price in listed.items() if price}
    priced = {device_id: price for device_id, price in hourly.items() if price is not None}
    facts = replace(known, times_s={}, prices_per_hour=priced)
    rows = what_if(workload, devices, dtypes=[dtype], baseline=dtype, known=facts)
    return tuple(
        _choice(workload, row, known=facts, measured=measured, listed=listed.get(row.device.id)) for row in rows
    )


def _entered(device: Device, known: Known) -> float | None:
    return known.prices_per_hour.get(device.id, known.prices_per_hour.get(device.spec_key or ""))


def usual_devices() -> tuple[Device, ...]:
    """Return the GPUs of the table with a measurement or a price, in the order of the table."""
    known = {point.spec_key for point in points()} | {price.spec_key for price in _prices()}
    return tuple(as_device(row) for row in ACCELERATORS if row.key in known)


def ranked(choices: Iterable[GpuChoice], by: str = "time") -> tuple[GpuChoice, ...]:
    """Return the choices from the best to the worst: those that do not fit, and then unknown ones, come last.

    Args:
        by: a key of ORDERS: `time`, `energy` of a call, `memory` of the GPU (the most first) or `price` of a call.

    Raises:
        InvalidInput: `by` is another word.
    """
    order = next((order for order in ORDERS if order == by), None)
    if order is None:
        raise InvalidInput.of("order", by, ORDERS)
    value_of = ORDERS[order]

    def sort_key(choice: GpuChoice) -> tuple[bool, bool, float]:
        value = value_of(choice)
        return (value is None, choice.found.fits is False, value or 0.0)

    return tuple(sorted(choices, key=sort_key))


def _choice(
    workload: Workload, found: WhatIf, *, known: Known, measured: Sequence[AtlasPoint], listed: Price | None
) -> GpuChoice:
    device = found.device
    layer = workload.layers[0]
    price = known.prices_per_hour.get(device.id)
    point = min(
        (point for point in measured if point.spec_key == device.spec_key), key=lambda point: point.time_s, default=None
    )
    if point is not None and found.origin in (None, Origin.PREDICTED):
        timed = replace(known, times_s={found.dtype: point.time_s})
        (entry,) = what_if(workload, [device], dtypes=[found.dtype], baseline=found.dtype, known=timed)
        if entry.impossible is None:
            basis = f"published by {point.citation.name}: {point.conditions}"
            return GpuChoice(layer, replace(entry, origin=Origin.PUBLISHED, basis=basis), point, price, listed)
    return GpuChoice(layer, found, None, price, listed)
