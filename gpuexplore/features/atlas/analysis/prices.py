"""What an hour of a GPU costs on demand, in US dollars: dated lists of providers; no price is made up."""

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, date, datetime
from importlib.resources import files
from math import isfinite
from typing import Any
from urllib.parse import urlsplit

from gpuexplore.devices import ACCELERATORS
from gpuexplore.errors import InvalidInput
from gpuexplore.once import once
from gpuexplore.recorded.validation import named

FILE = "prices.toml"


@dataclass(frozen=True, slots=True)
class Price:
    """What one provider asks for one GPU.

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
def prices() -> tuple[Price, ...]:
    """Return every price, in the order of the file.

    Raises:
        InvalidInput: names the list and what is wrong there.
    """
    text = (files("gpuexplore.analysis") / "data" / FILE).read_text(encoding="utf-8")
    return read_prices(text, datetime.now(UTC).date())


def price_of(spec_key: str | None) -> Price | None:
    """Return the first price of a GPU; None where no list has it."""
    return next((price for price in prices() if price.spec_key == spec_key), None)


def read_prices(text: str, today: date) -> tuple[Price, ...]:
    """Return the prices of a file's text.

    Args:
        today: no list was read after it.

    Raises:
        InvalidInput: names the list and what is wrong there.
    """
    found = []
    for listed in tomllib.loads(text)["list"]:
        with named(f"{FILE}, {listed.get('provider')}"):
            _check_list(listed, today)
            found += [_price(listed, key, amount) for key, amount in listed["usd_per_hour"].items()]
    return tuple(found)


def _check_list(listed: Mapping[str, Any], today: date) -> None:
    for name in ("page", "read_at"):
        if urlsplit(listed[name]).scheme != "https":
            raise InvalidInput.of(name, listed[name], "https links")
    read_on = listed["read_on"]
    if not isinstance(read_on, date) or read_on > today:
        raise InvalidInput.of("read_on", read_on, f"days up to {today}")


def _price(listed: Mapping[str, Any], key: str, amount: object) -> Price:
    if key not in {row.key for row in ACCELERATORS}:
        raise InvalidInput.of("gpu", key, "keys of the table of accelerators")
    if isinstance(amount, bool) or not isinstance(amount, int | float) or not (isfinite(amount) and amount > 0):
        raise InvalidInput.of(f"price of {key}", amount, "US dollars above 0")
    about = {name: listed[name] for name in ("provider", "read_on", "page", "read_at", "note")}
    return Price(key, float(amount), **about)
