"""Lookup of accelerators by typed names: `gpuexplore specs NAME` and the searchable table."""

import re
from collections.abc import Collection, Iterable, Sequence
from difflib import get_close_matches
from functools import lru_cache
from typing import Any

from gpuexplore.core import LONGEST_TEXT, Device, InvalidInput
from gpuexplore.hardware.accelerators import (
    ACCELERATORS,
    Accelerator,
    as_device,
    bandwidth_of,
    peaks_of,
    rows_named,
)

NEWEST_FIRST = tuple(sorted(ACCELERATORS, key=lambda row: -(row.release_year or 0)))  # as lists offer them
_BRANDS = frozenset({"tesla", "quadro", "geforce", "gtx", "rtx", "instinct", "radeon", "dgx", "hgx"})  # of others too


def search(query: str) -> tuple[Accelerator, ...]:
    """Return the rows with every word of `query` in any of their names, the newest first; all for an empty query."""
    words = query.casefold().split()
    return tuple(row for row in NEWEST_FIRST if all(word in _text(row) for word in words))


def _text(row: Accelerator) -> str:
    names = (row.key, row.name, *row.driver_names, row.vendor, row.architecture, row.chip, row.compute_capability)
    return " ".join(names).casefold()


def accelerator_named(query: str, among: Collection[str] | None = None) -> Accelerator | None:
    """Return the row with this driver name, key or display name, else the usual variant of a model like `h100`.

    Args:
        query: as a person typed it.
        among: keys of the rows that may be meant; None is all.
    """
    return next((row for row in _meant(query) if among is None or row.key in among), None)


def gpu_named(query: str, also: str = "") -> Accelerator:
    """Return the row that a person means by a name; where it is a model's, its usual variant: see `readings`.

    Args:
        query: as a person typed it.
        also: what is accepted besides names and keys, for the message.

    Raises:
        InvalidInput: there is none, or different chips have this name; names those that are near.
    """
    row = accelerator_named(query)
    if row is None:
        raise InvalidInput.of("gpu", query, f"names and keys of `specs`{near_names(query)}{also}")
    return row


def target_named(query: str, here: Iterable[Device]) -> Device:
    """Return the device a person means: one of `here` by its id, name or title, else a row of the table.

    Raises:
        InvalidInput: there is none; names those of the table that are near.
    """
    wanted = query.strip()
    devices = tuple(here)
    known = next((device for device in devices if wanted in (device.id, device.name, device.title)), None)
    if known is not None:
        return known
    ids = ", ".join(device.id for device in devices) or "none"
    return as_device(gpu_named(wanted, f"; devices of this machine: {ids}"))


def _near_rows(query: str) -> tuple[Accelerator, ...]:
    """Return a few rows that may be meant by a name that none of them has.

    Its number counts most: that of a model, else those of the same series nearest to it, as M4 is to M5.
    """
    if ambiguous := _fitting(_words(query)):
        return tuple({row.architecture: row for row in reversed(ambiguous)}.values())[::-1]
    words = _words(query) - _BRANDS
    found = _numbered_nearly(query) or [*_beginning(words), *_sharing(words)]
    return tuple(dict.fromkeys(found or _sharing(_close(words))))[:5]


def near_names(query: str, among: Collection[str] | None = None) -> str:
    """Return the suggestion of similar rows in an error: ``, near: GeForce RTX 4090``; empty without any.

    Args:
        query: as a person typed it.
        among: keys of the rows that may be chosen; None is all.
    """
    near = ", ".join(row.name for row in _near_rows(query) if among is None or row.key in among)
    return f", near: {near}" if near else ""


def _numbered_nearly(query: str) -> list[Accelerator]:
    """Return the rows of a name's series and number; else one of each model of the series, the nearest number first."""
    asked = _series_and_number(query)
    if asked is None:
        return []
    found = []
    for row in ACCELERATORS:
        own = _series_and_number(row.name)
        if own and own[0] == asked[0] and (off := _distance(asked[1], own[1])) is not None:
            found.append((off, -len(_words(query) & _words(row.name)), row))
    found.sort(key=lambda each: each[:2])
    exact = [row for off, _, row in found if off == 0]
    return exact or list({row.short_names: row for _, _, row in reversed(found)}.values())[::-1]


def _series_and_number(name: str) -> tuple[str, str] | None:
    """Return the letters before a name's first number that is no memory, and the number: `m` and `5` of ``Apple M5``.

    Brands are no series, nor are words that no row has: the 4090 of ``my RTX 4090`` has none.
    """
    before = ""
    for word in _spaced(name):
        found = re.match(r"([a-z]*)(\d+)(?!\d|gb$)", word)
        if found:
            letters = found[1] or (before if before in _VOCABULARY else "")
            return "" if letters in _BRANDS else letters, found[2]
        before = word
    return None


def _distance(asked: str, number: str) -> int | None:
    """Return how far apart two numbers are, 1 where a digit is one too many or two are swapped; None: over twice."""
    short, long = sorted((asked, number), key=len)
    if short != long and (sorted(short) == sorted(long) or short in (long[:at] + long[at + 1 :] for at in range(1, 6))):
        return 1
    low, high = sorted((int(asked), int(number)))
    return high - low if high <= 2 * low else None


def _beginning(words: Collection[str]) -> list[Accelerator]:
    """Return the rows that have, for each of `words`, one that begins so: `hopp`."""
    return [
        row for row in ACCELERATORS if words and all(any(w.startswith(word) for w in _WORDS[row.key]) for word in words)
    ]


def _sharing(words: Collection[str]) -> list[Accelerator]:
    return [row for row in ACCELERATORS if any(not _words(name).isdisjoint(words) for name in row.short_names)]


def _close(words: Iterable[str]) -> set[str]:
    known = sorted({word for row in ACCELERATORS for name in row.short_names for word in _words(name)})
    return {near for word in words for near in get_close_matches(word, known, n=2, cutoff=0.7)}


def readings(names: Iterable[str]) -> tuple[str, ...]:
    """Return how names that say less than a row's were read: ``H100 read as H100 SXM5 80GB; also PCIe, NVL``."""
    return tuple(dict.fromkeys(said for name in names if (said := _reading(name.strip())) is not None))


def _reading(query: str) -> str | None:
    row, *others = _meant(query) or (None,)
    if row is None or (row in _literal(query) and not others):
        return None
    spelled = {word.casefold(): word for name in (row.name, *row.short_names) for word in name.split()}
    said = " ".join(spelled.get(word.casefold(), word) for word in query.split())
    also = f"; also {', '.join(_labels((row, *others))[1:])}" if others else ""
    return f"{said} read as {row.name}{also}"


def _labels(rows: Sequence[Accelerator]) -> list[str]:
    """Return what distinguishes variants of a model, in as few words as possible: `PCIe` and `NVL` of the H100."""
    shared = frozenset.intersection(*(frozenset(row.name.split()) for row in rows))
    own = [" ".join(word for word in row.name.split() if word not in shared) for row in rows]
    for left_out in (r"\(.*\)|\b\d+GB\b", r"\(.*\)", r"[(),]"):
        labels = [" ".join(re.sub(left_out, "", name).split()) for name in own]
        if len(set(labels)) == len(rows) and all(labels[1:]):
            return labels
    return [row.name for row in rows]


@lru_cache(maxsize=1024)
def _meant(query: str) -> tuple[Accelerator, ...]:
    """Return the rows a name can mean, the usual one first: one, or the variants of one model; else none."""
    literal = _literal(query.strip())
    fitting = _fitting(_words(query))
    if not literal:
        return fitting if len({row.architecture for row in fitting}) == 1 else ()
    first = literal[0]
    if len(literal) == 1 and _words(query) not in map(_words, first.short_names):
        return literal
    return (first, *(row for row in fitting if row != first and row.short_names == first.short_names))


def _literal(query: str) -> tuple[Accelerator, ...]:
    """Return the rows of this driver name, else the one of this key or display name."""
    wanted = query.casefold()
    return rows_named(query) or tuple(
        row for row in ACCELERATORS if wanted in (row.key.casefold(), row.name.casefold())
    )


def _fitting(words: frozenset[str]) -> tuple[Accelerator, ...]:
    """Return the rows whose model is named, and that have every further word.

    A brand counts only where one of them has it: a Tesla A100 is an A100, a Quadro RTX 6000 Max-Q no RTX 6000 Ada.
    """
    named = [
        (row, words - name - _WORDS[row.key] - _memory(row))
        for row in ACCELERATORS
        for name in map(_words, row.short_names)
        if name <= words
    ]
    ignored = _BRANDS if all(left & _BRANDS for _, left in named) else frozenset()
    return tuple(dict.fromkeys(row for row, left in named if left <= ignored))


@lru_cache(maxsize=4096)
def _words(text: str) -> frozenset[str]:
    """Return the words of a name in lower case: `rtx`, `4070`, `ti` and `16gb` of ``RTX4070Ti 16 GB``."""
    words: list[str] = []
    for word in _spaced(text):
        if words and word not in _VOCABULARY and words[-1] + word in _VOCABULARY:
            words[-1] += word  # MI 300X
        else:
            words += _parts(word) or [word]
    return frozenset(words)


def _spaced(text: str) -> list[str]:
    if not text.isprintable():
        return []
    memory_joined = re.sub(r"(?<!\w)(\d+)\s*g(?:i?b)?(?!\w)", r"\1gb", text.casefold()[:LONGEST_TEXT])
    return re.findall(r"[^\W_]+", re.sub(r"\((r|tm)\)|[®™]", " ", memory_joined))


def _parts(word: str) -> list[str]:
    """Return the known words that a word consists of; none where it does not."""
    if word in _VOCABULARY:
        return [word]
    for end in range(len(word) - 1, 0, -1):
        if word[:end] in _VOCABULARY and (rest := _parts(word[end:])):
            return [word[:end], *rest]
    return []


def _memory(row: Accelerator) -> frozenset[str]:
    """Return the memory in GB, as in ``A100 SXM 40``; nothing where it is unknown."""
    return frozenset() if row.memory_bytes is None else frozenset({str(row.memory_bytes // 2**30)})


def _words_of(row: Accelerator) -> frozenset[str]:
    """Return every word that may be said of a row; `sxm` of one with SXM5."""
    texts = (
        row.key,
        row.name,
        *row.driver_names,
        *row.short_names,
        row.vendor,
        row.architecture,
        row.memory_type or "",
    )
    words = _spaced(" ".join((*texts, row.chip, *(f"{size}GB" for size in _memory(row)))))
    of_any = frozenset({"gpu", "gpus", "card", "graphics", "accelerator", "generation", "edition", "tensor", "core"})
    return of_any.union(words, (word.rstrip("0123456789") for word in words if word.startswith("sxm")))


_WORDS = {row.key: _words_of(row) for row in ACCELERATORS}
_VOCABULARY = _BRANDS.union(*_WORDS.values())


def peaks_json(query: str) -> dict[str, Any]:
    """Return what `gpuexplore specs NAME --json` prints; `key` is None for an unknown name.

    A dtype with both units is given with its matrix unit. `kind` is that of all of them, `mixed` where the vendor
    prints some and others are derived: each says its own. `same_driver_name` lists other rows that a driver gives the
    same name.
    """
    row = accelerator_named(query)
    bandwidth = bandwidth_of(row) if row else None
    known = peaks_of(row) if row else ()
    matrix = {peak.dtype for peak in known if peak.unit == "matrix"}
    peaks = [peak for peak in known if peak.unit == "matrix" or peak.dtype not in matrix]
    kinds = {peak.kind for peak in peaks}
    namesakes = (
        [other.key for name in row.driver_names for other in rows_named(name) if other.key != row.key] if row else []
    )
    return {
        "query": query,
        "key": row.key if row else None,
        "kind": "mixed" if len(kinds) > 1 else next(iter(kinds), None),
        "peaks": {
            peak.dtype: {"flop_per_s": peak.flop_per_s, "unit": peak.unit, "kind": peak.kind, "source": peak.source}
            for peak in peaks
        },
        "bandwidth_bytes_per_s": bandwidth.bytes_per_s if bandwidth else None,
        "bandwidth_kind": bandwidth.kind if bandwidth else None,
        "bandwidth_source": bandwidth.source if bandwidth else None,
        "memory_bytes": row.memory_bytes if row else None,
        "confidence": row.confidence if row else None,
        "notes": (row.notes or None) if row else None,
        "same_driver_name": list(dict.fromkeys(namesakes)),
        "readings": list(readings([query])),
    }
