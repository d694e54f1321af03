"""What people type about memory, from a page or the command line, as a model and a setup."""

from dataclasses import dataclass, fields

from gpuexplore.dtypes import spelled
from gpuexplore.errors import InvalidInput
from gpuexplore.features.memory.analysis.fits import DEFAULT_RESERVE, LARGEST_CAPACITY, Reserve
from gpuexplore.features.memory.analysis.models import LayeredModel
from gpuexplore.features.memory.analysis.serving import serving_memory
from gpuexplore.features.memory.analysis.setup import (
    LARGEST_BATCH,
    LARGEST_TOKENS,
    MOST_ACCUMULATED,
    MOST_CHECKPOINTS,
    OPTIMIZERS,
    Serving,
    Training,
    read_count,
)
from gpuexplore.features.memory.analysis.training import MemoryTimeline, training_memory
from gpuexplore.typed_text import in_any_case
from gpuexplore.units import read_number

GB = 1e9


@dataclass(frozen=True, slots=True)
class MemoryQuestion:
    """Everything but the model, as text; empty is the default.

    Attributes:
        reserve: GB of a device's memory that tensors cannot have, instead of the assumed ones.
    """

    batch: str = ""
    dtype: str = ""
    optimizer: str = ""
    mixed: str = ""
    checkpoints: str = ""
    accumulation: str = ""
    tokens: str = ""
    cache_dtype: str = ""
    reserve: str = ""
    serves: bool = False

    def batch_of(self, model: LayeredModel) -> int:
        """Return the batch; by default a usual one of the model.

        Raises:
            InvalidInput: no whole number from 1.
        """
        return read_count("batch", self.batch, 1, LARGEST_BATCH) if self.batch else model.batch

    def setup(self) -> Training | Serving:
        """Return how the model is trained or served.

        Raises:
            InvalidInput: a value that cannot be, or one that has no meaning with the others.
        """
        tokens = read_count("tokens", self.tokens, 1, LARGEST_TOKENS) if self.tokens else 0
        if self.serves:
            self._refuse("training", ("optimizer", "mixed", "checkpoints", "accumulation"))
            return Serving(spelled(self.dtype) or Serving().dtype, spelled(self.cache_dtype), tokens)
        self._refuse("serving", ("cache_dtype",))
        return Training(
            dtype=spelled(self.dtype) or Training().dtype,
            optimizer=in_any_case(self.optimizer, OPTIMIZERS) or Training().optimizer,
            mixed=spelled(self.mixed) or Training().mixed,
            checkpoints=read_count("checkpoints", self.checkpoints, 0, MOST_CHECKPOINTS) if self.checkpoints else 0,
            accumulation=read_count("accumulation", self.accumulation, 1, MOST_ACCUMULATED) if self.accumulation else 1,
            tokens=tokens,
        )

    def _refuse(self, only: str, names: tuple[str, ...]) -> None:
        given = [field.name for field in fields(self) if field.name in names and getattr(self, field.name)]
        if given:
            name, value = given[0].replace("_", " "), getattr(self, given[0])
            raise InvalidInput(f"{name} {value[:60]!r} has a meaning with {only} only: leave it out")

    def reserve_of(self) -> Reserve:
        """Return what of a device's memory is reserved.

        Raises:
            InvalidInput: no number of GB from 0.
        """
        if not self.reserve:
            return DEFAULT_RESERVE
        number = read_number(self.reserve)
        if number is None or not 0 <= number * GB <= LARGEST_CAPACITY:
            raise InvalidInput.of("reserve", self.reserve, "numbers of GB from 0, like 1.5")
        return Reserve(round(number * GB), 0.0)


def memory_of(model: LayeredModel, batch: int, setup: Training | Serving) -> MemoryTimeline:
    """Return the memory of a training step, or of serving.

    Raises:
        InvalidInput: the batch, a layer or a setting cannot be.
    """
    if isinstance(setup, Serving):
        return serving_memory(model, batch, setup)
    return training_memory(model, batch, setup)


def reserve_words(reserve: Reserve) -> str:
    """Say what is reserved, e.g. ``1.3 GB and 7 % of the memory``."""
    share = f" and {reserve.share:.0%} of the memory".replace("%", " %") if reserve.share else ""
    source = reserve == DEFAULT_RESERVE
    why = " for the CUDA context and its libraries, and for ECC and firmware" if source else ""
    return f"{reserve.context_bytes / GB:g} GB{share}{why}"
