"""Layers as text: one a line, the same for the models that come along and for what people paste.

::

    input 3x224x224
    conv 64 kernel=3 padding=1
    repeat 2
      relu
    end

``split``, ``shortcut`` and ``add`` make a residual block: what stands between ``shortcut`` and ``add`` is on the
shortcut; ``#`` begins a comment, and ``;`` ends a line as well.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.typed_text import LONGEST_LIST, check_text
from gpuexplore.core.units import read_whole
from gpuexplore.features.memory.analysis.layer_kinds import KINDS, LayerKind, ModelLayer

MOST_LAYERS = 5000  # after `repeat`
MOST_DEPTH = 4  # of one `repeat` within another
LARGEST_NUMBER = 1_000_000_000


@dataclass(frozen=True, slots=True)
class _Line:
    number: int
    words: tuple[str, ...]


def read_layers_file(path: str) -> tuple[ModelLayer, ...]:
    """Return the layers of a text file.

    Raises:
        InvalidInput: it cannot be read, is too long, or a line is no layer; says which line of which file.
    """
    try:
        with Path(path).open(encoding="utf-8-sig") as file:
            text = file.read(LONGEST_LIST + 1)
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text in UTF-8"
        raise InvalidInput.of("file", path, f"files of layers that can be read; this one: {reason}") from error
    return parse_layers(text, source=path)


def parse_layers(text: str, *, source: str = "layers") -> tuple[ModelLayer, ...]:
    """Return the layers of a text, with what `repeat` repeats as often as it says.

    Args:
        source: the name of the text in messages.

    Raises:
        InvalidInput: too long, or a line is no layer; names the line and what is accepted.
    """
    if len(text) > LONGEST_LIST:
        raise InvalidInput.of(source, f"more than {LONGEST_LIST:,} characters", f"at most {LONGEST_LIST:,}")
    check_text(source, text, "\n;")
    rows = text.replace(";", "\n").splitlines()
    stripped = ((number, row.partition("#")[0].split()) for number, row in enumerate(rows, 1))
    lines = [_Line(number, tuple(words)) for number, words in stripped if words]
    layers: list[ModelLayer] = []
    for line in _repeated(lines, source, MOST_DEPTH):
        if len(layers) == MOST_LAYERS:
            raise _error(source, line, f"at most {MOST_LAYERS:,} layers, repeated ones counted each time")
        layers.append(_layer(line, source))
    if not layers or layers[0].kind != "input":
        start = lines[0] if lines else _Line(1, ())
        raise _error(source, start, "a first line like `input 3x224x224`, `input 784` or `input tokens=1024`")
    return tuple(layers)


def _repeated(lines: Sequence[_Line], source: str, depth: int) -> Iterator[_Line]:
    index = 0
    while index < len(lines):
        line = lines[index]
        index += 1
        if line.words[0] == "end":
            raise _error(source, line, "`end` after a `repeat`")
        if line.words[0] != "repeat":
            yield line
            continue
        count = read_whole(line.words[1]) if len(line.words) == 2 else None
        if not count or count > MOST_LAYERS or depth == 0:
            raise _error(source, line, f"`repeat N` with N from 1 to {MOST_LAYERS:,}, at most {MOST_DEPTH} deep")
        stop = _end_of(lines, index, line, source)
        for _ in range(count):
            yield from _repeated(lines[index:stop], source, depth - 1)
        index = stop + 1


def _end_of(lines: Sequence[_Line], start: int, opening: _Line, source: str) -> int:
    depth = 1
    for index in range(start, len(lines)):
        depth += {"repeat": 1, "end": -1}.get(lines[index].words[0], 0)
        if depth == 0:
            if index == start:
                break
            return index
    raise _error(source, opening, "layers behind `repeat`, and an `end` behind them")


def _layer(line: _Line, source: str) -> ModelLayer:
    name, *rest = line.words
    kind = KINDS.get(name)
    if kind is None:
        raise _error(source, line, f"{', '.join(KINDS)}, repeat, end")
    sizes: tuple[int, ...] = ()
    if rest and "=" not in rest[0]:
        sizes, rest = _sizes(rest[0], line, kind, source), rest[1:]
    given = dict(_setting(word, line, kind, source) for word in rest)
    if len(given) < len(rest) or len(sizes) not in kind.size_counts:
        raise _error(source, line, f"`{kind.syntax}`")
    missing = [setting for setting, value in kind.settings.items() if value is None and setting not in given]
    if missing:
        raise _error(source, line, f"`{kind.syntax}`: {missing[0]} is missing")
    known = {setting: value for setting, value in kind.settings.items() if value is not None}
    return ModelLayer(line.number, name, sizes, {**known, **given})


def _sizes(word: str, line: _Line, kind: LayerKind, source: str) -> tuple[int, ...]:
    numbers = [read_whole(part) for part in word.split("x")]
    found = tuple(number for number in numbers if number is not None and 1 <= number <= LARGEST_NUMBER)
    if len(found) < len(numbers):
        raise _error(source, line, f"`{kind.syntax}`, with whole numbers from 1 to {LARGEST_NUMBER:,}")
    return found


def _setting(word: str, line: _Line, kind: LayerKind, source: str) -> tuple[str, int]:
    name, _, value = word.partition("=")
    number = {"yes": 1, "no": 0}.get(value, read_whole(value))
    if name not in kind.settings or number is None or number > LARGEST_NUMBER:
        raise _error(source, line, f"`{kind.syntax}`")
    return name, number


def _error(source: str, line: _Line, accepted: str) -> InvalidInput:
    return InvalidInput.of(f"{source}, line {line.number}:", " ".join(line.words), accepted)
