"""Prices: dated, with the provider's page, of GPUs of the table; anything else is refused with its list named."""

from datetime import UTC, date, datetime

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.atlas.analysis.which_gpu import _prices, _read_prices, price_of
from gpuexplore.hardware import ACCELERATORS

TODAY = date(2026, 11, 27)
LIST = """
[[list]]
provider = "A cloud"
read_on = 2026-11-26
page = "https://cloud.example/prices"
read_at = "https://cloud.example/prices"
note = "on demand"
[list.usd_per_hour]
t4 = 0.35
"""


def test_every_price_that_comes_along_is_of_a_row_and_says_who_asks_it_and_when():
    keys, today = {row.key for row in ACCELERATORS}, datetime.now(UTC).date()

    assert len(_prices()) > 30
    assert {price.spec_key for price in _prices()} <= keys
    assert all(0 < price.usd_per_hour < 20 and price.read_on <= today for price in _prices())
    assert all(price.page.startswith("https://") and price.note and price.provider for price in _prices())
    assert len({(price.provider, price.spec_key) for price in _prices()}) == len(_prices())


def test_the_first_list_that_has_a_gpu_counts_and_unknown_stays_unknown():
    several = [price for price in _prices() if price.spec_key == "h100-sxm5-80gb"]

    assert len(several) > 1
    assert price_of("h100-sxm5-80gb") is several[0]
    assert price_of("apple-m1") is price_of(None) is None


def test_a_list_is_read_as_it_stands():
    (price,) = _read_prices(LIST, TODAY)

    assert (price.spec_key, price.usd_per_hour, price.provider, price.note) == ("t4", 0.35, "A cloud", "on demand")
    assert (price.read_on, price.page) == (date(2026, 11, 26), "https://cloud.example/prices")


@pytest.mark.parametrize(
    ("right", "wrong", "named"),
    [
        ("t4 =", "t5 =", "t5"),
        ("0.35", "0", "price of t4 '0'"),
        ("0.35", "-1.5", "price of t4 '-1.5'"),
        ("0.35", "nan", "price of t4 'nan'"),
        ("0.35", "inf", "price of t4 'inf'"),
        ("0.35", "true", "price of t4 'True'"),
        ("0.35", '"0.35"', "US dollars above 0"),
        ("2026-11-26", "2026-11-28", "read_on '2026-11-28'"),
        ("2026-11-26", '"2026-11-26"', "read_on"),
        ('page = "https', 'page = "http', "page 'http://"),
        ('read_at = "https://cloud.example/prices"', 'read_at = "a friend"', "read_at 'a friend'"),
        ('note = "on demand"', "", "note"),
    ],
)
def test_what_cannot_be_is_refused_with_the_list_named(right, wrong, named):
    with pytest.raises(InvalidInput, match="A cloud") as refusal:
        _read_prices(LIST.replace(right, wrong), TODAY)

    assert named in str(refusal.value)
