"""What serving a language model needs: its weights, and the keys and values of every token of every sequence."""

from collections.abc import Iterator

from gpuexplore.errors import InvalidInput
from gpuexplore.features.memory.analysis.layers.size import NOTHING, Size
from gpuexplore.features.memory.analysis.layers.tape import FULL_BYTES
from gpuexplore.features.memory.analysis.layers.text import ModelLayer
from gpuexplore.features.memory.analysis.memory_model import Moment
from gpuexplore.features.memory.analysis.models import LayeredModel, model_named, tape_of
from gpuexplore.features.memory.analysis.setup import LARGEST_BATCH, SERVED, Serving, Training, check_count
from gpuexplore.features.memory.analysis.training import MemoryTimeline, timeline_of

QUARTERS = 4  # of a sequence, in the timeline
DEFAULT = Serving()


def serving_memory(model: LayeredModel | str, batch: int, setup: Serving = DEFAULT) -> MemoryTimeline:
    """Return what serving `batch` sequences at once needs, when each has all its tokens.

    Args:
        model: one that reads tokens, or its name.
        batch: sequences at once.
        setup: dtypes and tokens.

    Raises:
        InvalidInput: unknown model, one that reads no tokens, or a batch or setting that cannot be.
    """
    asked = model_named(model) if isinstance(model, str) else model
    check_count("batch", batch, 1, LARGEST_BATCH)
    timeline = timeline_of(tuple(serving_moments(asked, setup)), batch)
    return MemoryTimeline(asked, batch, _parameter_count(asked, setup), timeline)


def cache_bytes_per_token(model: LayeredModel, setup: Serving = DEFAULT) -> int:
    """Return the bytes of keys and values of one token: 2 x layers x KV heads x head dimension x bytes of a number.

    Raises:
        InvalidInput: the model has no attention.
    """
    attention = [layer.settings for layer in model.layers if layer.kind == "attention"]
    if not attention or not model.tokens:
        raise InvalidInput.of("model", model.name, "models that read tokens and have attention, when served")
    width = _width(model)
    itemsize = SERVED[setup.cache_dtype or setup.dtype]
    heads = ((found["kv"] or found["heads"]) * (found["head"] or width // found["heads"]) for found in attention)
    return 2 * sum(heads) * itemsize


def serving_moments(model: LayeredModel, setup: Serving) -> Iterator[Moment]:
    """Yield the moments of a sequence: the weights alone, then each quarter of its tokens."""
    per_token, tokens = cache_bytes_per_token(model, setup), setup.tokens or model.tokens
    weights = Size(_parameter_count(model, setup) * SERVED[setup.dtype])
    logits = Size(0, _last_width(model) * FULL_BYTES)
    loaded = {"parameters": weights, "KV cache": NOTHING, "activations": NOTHING}
    yield Moment("weights loaded", 0, "", loaded, weights)
    for quarter in range(1, QUARTERS + 1):
        there = tokens * quarter // QUARTERS
        sizes = {"parameters": weights, "KV cache": Size(0, there * per_token), "activations": logits}
        yield Moment("decoding", quarter, f"token {there:,}", sizes, sum(sizes.values(), NOTHING))


def _parameter_count(model: LayeredModel, setup: Serving) -> int:
    return sum(tape_of(model, Training(tokens=setup.tokens)).weights)


def _width(model: LayeredModel) -> int:
    sizes = [layer.sizes for layer in model.layers if layer.kind in ("embedding", "input") and layer.sizes]
    return sizes[-1][0]


def _last_width(model: LayeredModel) -> int:
    last: ModelLayer = next(layer for layer in reversed(model.layers) if layer.sizes)
    return last.sizes[-1]
