"""Quantities as people read them out: three digits, the right prefix, a dash for what is unknown."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.core import units


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0, "0 FLOP/s"),
        (1, "1.00 FLOP/s"),
        (482e9, "482 GFLOP/s"),
        (999.4e9, "999 GFLOP/s"),
        (999.6e9, "1.00 TFLOP/s"),
        (1e12, "1.00 TFLOP/s"),
        (12.345e12, "12.3 TFLOP/s"),
        (2e18, "2000 PFLOP/s"),
        (-3e6, "-3.00 MFLOP/s"),
    ],
)
def test_rates_have_three_digits_and_a_prefix(value, text):
    assert units.format_flop_per_s(value) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (None, "—"),
        (0, "0 s"),
        (1.25e-3, "1.25 ms"),
        (20e-6, "20.0 µs"),
        (2e-9, "2.00 ns"),
        (3e-12, "0.00300 ns"),
        (59.0, "59.0 s"),
        (60, "1 min"),
        (125, "2 min 5 s"),
        (3600, "1 h 0 min"),
        (7384, "2 h 3 min"),
    ],
)
def test_durations_are_read_out(seconds, text):
    assert units.format_seconds(seconds) == text


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.2, "1 s"), (5.4, "5 s"), (59.4, "59 s"), (59.6, "1 min"), (95, "1 min 35 s")]
)
def test_durations_nobody_wants_to_know_closely_are_whole_seconds(seconds, text):
    assert units.format_whole_seconds(seconds) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (None, "—"),
        (0, "0 B"),
        (1023, "1023 B"),
        (1024, "1.00 KiB"),
        (2**30, "1.00 GiB"),
        (23.4 * 2**30, "23.4 GiB"),
        (2**60, "1020 PiB"),
    ],
)
def test_sizes_are_binary(count, text):
    assert units.format_bytes(count) == text


def test_bandwidth_is_decimal():
    assert units.format_bytes_per_s(38.2e9) == "38.2 GB/s"
    assert units.format_bytes_per_s(None) == "—"


@pytest.mark.parametrize(
    ("share", "text"), [(None, "—"), (0, "0 %"), (0.642, "64.2 %"), (1.0, "100 %"), (0.0123, "1.2 %"), (1.234, "123 %")]
)
def test_shares_are_percent(share, text):
    assert units.format_percent(share) == text


@pytest.mark.parametrize(("ratio", "text"), [(None, "—"), (4.213, "4.21×"), (0.5, "0.500×"), (123.4, "123×")])
def test_ratios_have_three_digits(ratio, text):
    assert units.format_ratio(ratio) == text


@given(st.floats(1e-9, 1e17))
def test_text_reads_back_within_half_a_digit(value):
    number, _, unit = units.format_si(value, "s").partition(" ")
    exponents = {prefix: exponent for exponent, prefix in units._SI.items()}

    assert float(number) * 10.0 ** exponents[unit.removesuffix("s")] == pytest.approx(value, rel=5.1e-3)


@given(st.floats(1e-300, 1e300), st.integers(1, 6))
def test_rounding_keeps_the_asked_digits(value, digits):
    assert units.round_significant(value, digits) == pytest.approx(value, rel=0.6 * 10.0 ** (1 - digits))
    assert units.round_significant(-value, digits) == -units.round_significant(value, digits)


def test_zero_stays_zero():
    assert units.round_significant(0.0) == 0.0


def test_a_rate_is_that_of_memory_where_nothing_is_computed():
    assert units.format_work_rate(2e9, 1e9) == units.format_flop_per_s(2e9)
    assert units.format_work_rate(0.0, 1e9) == units.format_bytes_per_s(1e9)
    assert units.format_work_rate(None, 1e9) == units.format_flop_per_s(None)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "—"),
        (0, "0 FLOP/byte"),
        (0.0833333, "0.0833 FLOP/byte"),
        (4.24, "4.24 FLOP/byte"),
        (683, "683 FLOP/byte"),
    ],
)
def test_intensities_have_three_digits(value, text):
    assert units.format_intensity(value) == text


@pytest.mark.parametrize(
    ("text", "number"),
    [("42", 42), (" 4_096 ", 4096), ("0", 0), ("-1", None), ("1.0", None), ("٣", None), ("", None), ("9" * 20, None)],
)
def test_whole_numbers_are_read_as_typed(text, number):
    assert units.read_whole(text) == number


@pytest.mark.parametrize(
    ("text", "number"),
    [("4k", 4096), ("2**12", 4096), ("2^12", 4096), ("1e3", 1000), ("5E+2", 500), (" 2^40 ", 2**40)]
    + [(bad, None) for bad in ("2**", "1.5e3", "1e-3", "2^99", "999999**99", "2^^3", "1e", "e3", "4kk")],
)
def test_lengths_are_read_as_powers_and_in_units_of_1024(text, number):
    assert units.read_length(text) == number


@pytest.mark.parametrize(
    ("text", "number"), [("1e12", 1e12), (" 0.5 ", 0.5), ("nan", None), ("1e999", None), ("٣", None), ("x", None)]
)
def test_numbers_are_finite_or_none(text, number):
    assert units.read_number(text) == number


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90us", 90e-6), (" 1.25 ms ", 1.25e-3), ("3µs", 3e-6), ("3μs", 3e-6), ("2s", 2), ("1e3ns", 1e-6)]
    + [(bad, None) for bad in ("90", "us", "1 h", "1.2.3s", "nans", "--1s", "1 us s")],
)
def test_times_are_read_with_their_unit(text, seconds):
    assert units.read_seconds(text) == (seconds if seconds is None else pytest.approx(seconds))


@pytest.mark.parametrize(
    ("text", "size"),
    [("500MB", 5 * 10**8), ("4 GiB", 2**32), ("1.5gb", 15 * 10**8), ("2TB", 2 * 10**12), ("64 KiB", 2**16)]
    + [(bad, None) for bad in ("4", "GB", "-4GB", "4 GBit", "4G", "infGB", "")],
)
def test_sizes_of_memory_are_read_with_their_unit(text, size):
    assert units.read_bytes(text) == size


def test_an_interval_has_both_ends_in_words():
    assert units.format_interval((1e-3, 2e-3), units.format_seconds) == "1.00 ms to 2.00 ms"
    assert units.format_interval(None, units.format_seconds) == units.UNKNOWN


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        *((f"1.2{unit}", (1.2e15, "FLOP/s")) for unit in ("PFLOP/s", " PFLOP/s", " pflops", "P FLOPS", "e15flops")),
        *((f"900{unit}", (9e11, "FLOP/s")) for unit in ("GFLOPs", " gflop/s", " GF/s", " GFLOP/sec", "GOPS")),
        *((f"3.35{unit}", (3.35e12, "B/s")) for unit in ("TB/s", " tB/s", "TBps", " TBytes/s", "e12 B/s")),
        *((text, (1.2e15, "FLOP/s")) for text in ("1,200TFLOPS", "1200 TFLOP/s")),
        ("2GiB/s", (2.0**31, "B/s")),
        *((text, None) for text in ("", "900", "900Gbps", "900 Gb/s", "5 foo", "PFLOP/s", "-1 TFLOP/s", "1.2.3TB/s")),
        *((text, None) for text in ("3TB", "9TF", "9 T", "1e999FLOP/s")),
    ],
)
def test_rates_are_read_as_people_write_them(text, rate):
    assert units.read_rate(text) == (rate and (pytest.approx(rate[0]), rate[1]))


def test_a_column_and_columns_that_compare_are_in_one_unit():
    rows = [
        ("case", "before", "after", "95 % interval", "rate", "peak", "memory"),
        ("a", "129.6 µs", "0.1579 ms", "980 µs to 1.02 ms", "7800 GFLOP/s", "15.7 TFLOP/s", "512 MiB"),
        ("b", "2 min 5 s", "—", "1.10 ms to 1.20 ms, within this run", "166 GB/s", "0 FLOP/s", "2.50 GiB"),
    ]
    (_, first, second) = units.in_one_unit(rows)

    assert first[1:] == ("0.1296 ms", "0.1579 ms", "0.980 ms to 1.02 ms", "7.800 TFLOP/s", "15.7 TFLOP/s", "0.500 GiB")
    assert second[1:4] == ("2 min 5 s", "—", "1.10 ms to 1.20 ms, within this run")
    assert second[4:] == ("166 GB/s", "0 TFLOP/s", "2.50 GiB")


def test_what_is_a_thousand_times_as_large_is_read_apart():
    (row,) = units.in_one_unit([("3.00 µs", "12.0 s", "skipped: 900 µs of 1.00 ms")])

    assert row == ("3.00 µs", "12.0 s", "skipped: 900 µs of 1.00 ms")
    assert units.alike("900 MB/s of 1.20 TB/s in 1.02 ms, 980 µs or 12 s") == (
        "900 MB/s of 1.20 TB/s in 1.02 ms, 0.980 ms or 12 s"
    )


def test_an_interval_is_in_one_unit():
    assert units.format_interval((980e-6, 1.02e-3), units.format_seconds) == "0.980 ms to 1.02 ms"


@given(st.lists(st.floats(1e-9, 50.0), min_size=1, max_size=8))
def test_one_unit_keeps_what_was_said(values):
    texts = [units.format_seconds(value) for value in values]
    rows = units.in_one_unit([(text,) for text in texts])
    shown = [units.read_seconds(text) for (text,) in rows]

    assert shown == pytest.approx([units.read_seconds(text) for text in texts], rel=1e-2)
    assert len({text.partition(" ")[2] for (text,) in rows}) == 1
