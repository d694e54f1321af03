"""The name of a run: a title from what it measures, or its owner's own, with a note and tags."""

from collections.abc import Iterable

from gpuexplore.core.errors import InvalidInput, require
from gpuexplore.core.model import Experiment, Shape
from gpuexplore.core.typed_text import check_characters

LONGEST_TITLE = 120  # characters
LONGEST_NOTE = 2000
MOST_TAGS = 10


def default_title(experiment: Experiment) -> str:
    """Return the title of a run without one, e.g. ``matmul 64 to 384, fp32 bf16 fp16``."""
    words = f"{experiment.operation} {_sizes(experiment.shapes)}, {' '.join(experiment.dtypes)}"
    title = ", ".join((words, *array_conditions(experiment.options.layout, experiment.options.align)))
    return title if len(title) <= LONGEST_TITLE else f"{title[: LONGEST_TITLE - 2]} …"


def array_conditions(layout: str, align: str) -> tuple[str, ...]:
    """Return the non-default memory conditions of arrays, e.g. ``layout NT``; empty for the defaults."""
    unusual = {f"layout {layout}": layout != "NN", "arrays on 2 MiB boundaries": align != "library"}
    return tuple(words for words, is_unusual in unusual.items() if is_unusual)


def checked_tags(tags: str | Iterable[str]) -> tuple[str, ...]:
    """Return tags as they are kept: each once, in lower case, in the order of the alphabet.

    Args:
        tags: a list, or text with commas between them.

    Raises:
        InvalidInput: too many, or one is too long or of characters that cannot be shown.
    """
    words = tags.split(",") if isinstance(tags, str) else list(tags)
    found = sorted({" ".join(checked("tag", word, 30).lower().split()) for word in words} - {""})
    require(len(found) <= MOST_TAGS, "tags", f"{len(found)} of them", f"at most {MOST_TAGS}")
    if commas := [tag for tag in found if "," in tag]:
        raise InvalidInput.of("tag", commas[0], "words without a comma")
    return tuple(found)


def _sizes(shapes: tuple[Shape, ...]) -> str:
    ends = [shapes[0], shapes[-1]] if len(shapes) > 1 else [shapes[0]]
    if all(len(set(shape)) == 1 for shape in shapes):
        return " to ".join(str(next(iter(shape))) for shape in ends)
    return str(shapes[0]) if len(shapes) == 1 else f"{len(shapes)} shapes"


def checked(what: str, text: str, longest: int) -> str:
    """Return a text of at most `longest` characters.

    Raises:
        InvalidInput: it is longer, or of characters that cannot be shown.
    """
    require(len(text) <= longest, what, f"{len(text):,} characters", f"at most {longest:,}")
    check_characters(what, text)
    return text
