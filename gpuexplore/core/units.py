"""The only formatter of quantities, and the only reader of typed numbers: SI base units in, what people read out.

GB is 1e9 bytes and GiB is 2**30. Unknown prints as a dash.
"""

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from math import floor, isfinite, log, log10
from statistics import median_high
from typing import TypeVar

from gpuexplore.core.errors import InvalidInput

UNKNOWN = "—"
_SECONDS = {"s": 1.0, "ms": 1e-3, "us": 1e-6, "µs": 1e-6, "μs": 1e-6, "ns": 1e-9}  # either of Unicode's micro signs
_RATE = re.compile(
    r"(?P<number>[0-9][0-9.,]*(?:e[+-]?[0-9]+)?)\s{0,2}(?P<prefix>[kKmMgGtTpPeE]?)(?P<binary>i?)\s{0,2}"
    r"(?:(?P<flop>(?i:flops?|ops?|f(?=\s{0,2}/)))|B|(?i:bytes?))(?:\s{0,2}/\s{0,2}s(?:ec(?:ond)?)?|ps|(?<=[sS]))"
)
_BINARY = {0: "", 1: "Ki", 2: "Mi", 3: "Gi", 4: "Ti", 5: "Pi"}
_SI = {-9: "n", -6: "µ", -3: "m", 0: "", 3: "k", 6: "M", 9: "G", 12: "T", 15: "P"}
_PREFIXES = {name: 10.0**power for power, name in _SI.items()} | {
    name: 1024.0**power for power, name in _BINARY.items() if name
}
_NUMBER = r"(?<![\w.,-])(?<!min )-?[0-9]+(?:\.[0-9]+)?"
_UNIT = r"(?:FLOP/s|FLOP|B/s|B|s|J|Hz|W)(?![\w/])"
_QUANTITY = re.compile(rf"(?P<number>{_NUMBER}) (?P<prefix>[nµmkMGTP]|[KMGTP]i|)(?P<unit>{_UNIT})")
_OF_CELL = re.compile(rf"(?:[~<>≈≤≥±] ?)?{_NUMBER} (?:[KMGTP]i|[nµmkMGTP]|){_UNIT}(?: to {_NUMBER} \w*{_UNIT})?")
COMPARABLE = 1000.0  # factor between quantities above which each is shown in its own unit
K = TypeVar("K", bound=Hashable)


def read_whole(text: str) -> int | None:
    """Return the whole number from 0 that was typed, e.g. ``4_096``; None where it is none, or beyond 19 digits."""
    typed = text.strip()
    is_whole = re.fullmatch("[0-9]+(?:_[0-9]+)*", typed)  # 4_096 as in Python
    return int(typed) if is_whole and len(typed) < 20 else None


def whole_typed(what: str, text: str, most: int, *, least: int = 1) -> int:
    """Return the whole number that was typed.

    Raises:
        InvalidInput: it is none, or out of its limits.
    """
    number = read_whole(text)
    if number is None or not least <= number <= most:
        raise InvalidInput.of(what, text, f"whole numbers from {least} to {most:,}")
    return number


def read_length(text: str) -> int | None:
    """Return the length of an axis that was typed: 4096 for ``4k`` and ``2^12``, 1000 for ``1e3``; None as there."""
    typed = text.strip().casefold()
    if power := re.fullmatch(r"([0-9]{1,6})(?:\*\*|\^)([0-9]{1,2})", typed):
        return read_whole(str(int(power[1]) ** int(power[2])))
    if power := re.fullmatch(r"([0-9]{1,6})e\+?([0-9]{1,2})", typed):
        return read_whole(str(int(power[1]) * 10 ** int(power[2])))
    found = re.fullmatch("([0-9_]+) ?(k|m|)i?", typed)
    number = read_whole(found[1]) if found else None
    return None if found is None or number is None else number * 2 ** {"": 0, "k": 10, "m": 20}[found[2]]


def read_number(text: str) -> float | None:
    """Return the finite number that was typed, e.g. ``1e12``; None where it is none."""
    try:
        number = float(text) if text.isascii() else None
    except ValueError:
        return None
    return number if number is not None and isfinite(number) else None


def read_seconds(text: str) -> float | None:
    """Return the seconds that were typed with their unit, e.g. ``90us`` or ``1.25 ms``; None where it is none."""
    found = re.fullmatch(rf"(?P<number>[0-9.eE+-]+)\s*(?P<unit>{'|'.join(_SECONDS)})", text.strip())
    number = read_number(found["number"]) if found else None
    return None if found is None or number is None else number * _SECONDS[found["unit"]]


def read_bytes(text: str) -> int | None:
    """Return the bytes that were typed with their unit, e.g. ``500MB`` or ``4 GiB``; None where it is none."""
    pattern = r"(?P<number>[0-9][0-9.e+]{0,15}) ?(?P<prefix>[kmgt])(?P<binary>i?)b"
    found = re.fullmatch(pattern, text.strip(), re.IGNORECASE)
    number = read_number(found["number"]) if found else None
    if found is None or number is None:
        return None
    return int(number * (1024 if found["binary"] else 1000) ** ("kmgt".index(found["prefix"].casefold()) + 1))


def read_rate(text: str) -> tuple[float, str] | None:
    """Return the rate that was typed, and FLOP/s or B/s: ``1.2PFLOP/s``, ``900 tflops``, ``3.35 TB/s``; None: none.

    Gb/s and Gbps are taken for neither bits nor bytes.
    """
    found = _RATE.fullmatch(text.strip())
    number = read_number(found["number"].replace(",", "")) if found else None
    if found is None or number is None:
        return None
    power = "kmgtpe".index(found["prefix"].casefold()) + 1 if found["prefix"] else 0
    base = 1024 if found["binary"] else 1000
    return number * base**power, "FLOP/s" if found["flop"] else "B/s"


def format_si(value: float | None, unit: str, digits: int = 3) -> str:
    """Return `value` with an SI prefix and `digits` significant digits, e.g. ``482 GFLOP/s``."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return f"0 {unit}"
    exponent = max(-9, min(15, 3 * floor(log10(abs(value)) / 3)))
    if abs(round_significant(value / 10**exponent, digits)) >= 1000 and exponent < 15:
        exponent += 3
    return f"{_significant(value / 10**exponent, digits)} {_SI[exponent]}{unit}"


def round_significant(value: float, digits: int = 3) -> float:
    """Return `value` rounded to `digits` significant digits."""
    return 0.0 if value == 0 else round(value, digits - 1 - floor(log10(abs(value))))


def _significant(value: float, digits: int) -> str:
    rounded = round_significant(value, digits)
    decimals = max(0, digits - 1 - floor(log10(abs(rounded)))) if rounded else 0
    return f"{rounded:.{decimals}f}"


def format_seconds(seconds: float | None) -> str:
    """Return a duration, e.g. ``1.25 ms``; from a minute up ``2 min 5 s``."""
    if seconds is None or seconds < 60:
        return format_si(seconds, "s")
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s" if rest else f"{minutes} min"
    return f"{minutes // 60} h {minutes % 60} min"


def format_whole_seconds(seconds: float) -> str:
    """Return a rounded duration, from a second up, e.g. ``12 s``."""
    whole = max(1, round(seconds))
    return f"{whole} s" if whole < 60 else format_seconds(whole)


def format_flop_per_s(rate: float | None) -> str:
    """Return a compute rate, e.g. ``482 GFLOP/s``."""
    return format_si(rate, "FLOP/s")


def format_intensity(flop_per_byte: float | None) -> str:
    """Return an arithmetic intensity, e.g. ``0.625 FLOP/byte``."""
    return UNKNOWN if flop_per_byte is None else f"{_significant(flop_per_byte, 3)} FLOP/byte"


def format_work_rate(flop_per_s: float | None, bytes_per_s: float | None) -> str:
    """Return the compute rate, or the memory rate of an operation that computes nothing, e.g. ``166 GB/s``."""
    return format_bytes_per_s(bytes_per_s) if flop_per_s == 0 else format_flop_per_s(flop_per_s)


def format_bytes_per_s(rate: float | None) -> str:
    """Return a bandwidth, e.g. ``38.2 GB/s``."""
    return format_si(rate, "B/s")


def format_bytes(count: float | None) -> str:
    """Return a size in binary units, as memory is sold: ``23.4 GiB``."""
    if count is None:
        return UNKNOWN
    size = float(count)
    power = 0
    while size >= 1024 and power < max(_BINARY):
        size /= 1024
        power += 1
    return f"{_significant(size, 3)} {_BINARY[power]}B" if power else f"{size:.0f} B"


def format_gigabytes(count: float | None) -> str:
    """Return a size in SI units, as models are described: ``10.5 GB``."""
    return format_si(count, "B")


def format_percent(share: float | None) -> str:
    """Return a fraction as a percentage, e.g. ``64.2 %``; small ones keep two significant digits."""
    if share is None:
        return UNKNOWN
    percent = 100 * share
    if 0 < percent < 1e-3:
        return f"{percent:.1e} %"
    return f"{_significant(percent, 3 if share >= 0.1 else 2)} %"


def format_ratio(ratio: float | None) -> str:
    """Return a speedup, e.g. ``4.21×``."""
    return UNKNOWN if ratio is None else f"{_significant(ratio, 3)}×"


def format_interval(interval: tuple[float, float] | None, words: Callable[[float], str]) -> str:
    """Return an interval, e.g. ``1.02 ms to 1.10 ms``, both ends formatted by `words`; a dash where there is none."""
    return UNKNOWN if interval is None else alike(f"{words(interval[0])} to {words(interval[1])}")


def format_multiple(factor: float) -> str:
    """Return how many times something is as large, to two significant digits: ``0.45``, ``3.2``, ``40,000``."""
    rounded = round_significant(factor, 2)
    return f"{rounded:,.0f}" if rounded >= 10 else _significant(rounded, 2)


def format_money(amount: float | None) -> str:
    """Return an amount of money, in the currency in which it was entered, e.g. ``12.30``."""
    if amount is None:
        return UNKNOWN
    return f"{amount:,.2f}" if amount >= 0.01 or amount == 0 else f"{amount:.1e}"


def format_energy(joules: float | None) -> str:
    """Return an energy, e.g. ``12.3 mJ``."""
    return format_si(joules, "J")


def common_unit(values: Sequence[float], unit: str, *, binary: bool | None = None) -> tuple[float, str]:
    """Return the unit that suits most of `values`, none of them zero: its size in `unit`, and its name, e.g. ``ms``.

    Prefixes are binary for ``B``, as in `format_bytes`, unless `binary` says otherwise, and SI for all others; of
    seconds there are no thousands.
    """
    is_binary = unit == "B" if binary is None else binary
    base, prefixes = (1024, _BINARY) if is_binary else (1000, {power // 3: name for power, name in _SI.items()})
    if unit == "s":
        prefixes = {power: name for power, name in prefixes.items() if power <= 0}
    middle = median_high(map(abs, values)) if values else 1.0
    power = max(
        min(prefixes), min(max(prefixes), floor(log(middle, base) + 1e-9))
    )  # 1000 is 1 k, despite the rounding of log
    return float(base**power), f"{prefixes[power]}{unit}"


def shared_units(columns: Mapping[K, Sequence[float]], unit: str, **about: bool) -> dict[K, tuple[float, str]]:
    """Return the `common_unit` of each column, one for all those whose medians lie within COMPARABLE of each other."""
    middles = {
        key: median_high(known) for key, values in columns.items() if (known := [abs(each) for each in values if each])
    }
    found = {key: common_unit((), unit, **about) for key in columns}
    rest = sorted(middles, key=lambda key: middles[key])
    while rest:
        alike = [key for key in rest if middles[key] <= COMPARABLE * middles[rest[0]]]
        found |= dict.fromkeys(
            alike, common_unit([each for key in alike for each in columns[key] if each], unit, **about)
        )
        rest = rest[len(alike) :]
    return found


def in_one_unit(rows: Sequence[Sequence[str]]) -> list[tuple[str, ...]]:
    """Return the rows of a table, the quantities of each column, and of columns that compare, in one unit.

    A quantity is what a cell is or begins with, as the functions here write it: ``980 µs`` above ``1.02 ms`` becomes
    ``0.980 ms``. Minutes and what stands behind words stay as they are.
    """
    cells = {(line, column): cell for line, row in enumerate(rows) for column, cell in enumerate(row)}
    heads = {key: found.group() for key, cell in cells.items() if (found := _OF_CELL.match(cell))}
    shown = _rewritten(heads, {key: key[1] for key in heads})
    return [
        tuple(
            shown[line, column] + cell[len(heads[line, column]) :] if (line, column) in shown else cell
            for column, cell in enumerate(row)
        )
        for line, row in enumerate(rows)
    ]


def alike(text: str) -> str:
    """Return a sentence in which quantities that compare are in one unit: ``0.980 ms of 1.02 ms``."""
    pieces = {found.start(): found.group() for found in _QUANTITY.finditer(text)}
    shown = _rewritten(pieces, {start: start for start in pieces})
    for start in sorted(pieces, reverse=True):
        text = text[:start] + shown[start] + text[start + len(pieces[start]) :]
    return text


def _rewritten(texts: Mapping[K, str], columns: Mapping[K, Hashable]) -> dict[K, str]:
    """Return texts with their quantities in the unit of their column."""
    found = {key: [*_QUANTITY.finditer(text)] for key, text in texts.items()}
    has_binary = any(quantity["prefix"].endswith("i") for quantities in found.values() for quantity in quantities)
    values: dict[str, dict[Hashable, list[float]]] = {}
    for key, quantities in found.items():
        for quantity in quantities:
            values.setdefault(_kind(quantity, has_binary), {}).setdefault(columns[key], []).append(_si(quantity))
    units = {
        kind: shared_units(of_kind, kind.removeprefix("i"), binary=kind == "iB") for kind, of_kind in values.items()
    }

    def shown(column: Hashable, quantity: re.Match[str]) -> str:
        size, name = units[_kind(quantity, has_binary)][column]
        if name == quantity["prefix"] + quantity["unit"]:
            return quantity.group()
        digits = len(quantity["number"].lstrip("-0.").replace(".", ""))
        value = _si(quantity) / size
        is_tiny = 0 < abs(value) < 1e-4  # longer runs of zeros are hard to read
        text = f"{value:.{max(digits, 1) - 1}e}" if is_tiny else _significant(value, digits)
        return f"{text if digits else 0} {name}"

    return {key: _QUANTITY.sub(partial(shown, columns[key]), text) for key, text in texts.items()}


def _kind(quantity: re.Match[str], has_binary: bool) -> str:
    """Return the unit of a quantity without its prefix, behind an ``i`` where prefixes are binary."""
    is_binary = quantity["prefix"].endswith("i") or (has_binary and quantity["unit"] == "B" and not quantity["prefix"])
    return f"i{quantity['unit']}" if is_binary else quantity["unit"]


def _si(quantity: re.Match[str]) -> float:
    return float(quantity["number"]) * _PREFIXES[quantity["prefix"]]
