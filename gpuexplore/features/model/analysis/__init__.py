"""Memory that training or serving a model needs, by arithmetic on its layers: here how it is trained or served.

Torch is not needed. What is counted is what PyTorch allocates: tests compare the peaks with its own MemTracker.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from gpuexplore.core import InvalidInput, read_length, require

ITEMSIZES: Mapping[str, int] = MappingProxyType({"fp32": 4, "bf16": 2, "fp16": 2, "fp64": 8})
MIXED = ("none", "bf16", "fp16")
LIMITS: Mapping[str, tuple[int, int]] = MappingProxyType(
    {"batch": (1, 10**9), "tokens": (1, 10**7), "checkpoints": (0, 1000), "accumulation": (1, 10_000)}
)


@dataclass(frozen=True, slots=True)
class Optimizer:
    """Memory of an optimizer, stored and temporary, in copies of all parameters.

    Attributes:
        title: as PyTorch calls it.
        state_count: tensors of the parameters' size that stay between steps.
        scratch_count: those that exist during the step only; with `foreach`, which PyTorch takes on a GPU by default.
    """

    title: str
    state_count: int
    scratch_count: int


OPTIMIZERS: Mapping[str, Optimizer] = MappingProxyType(
    {
        "sgd": Optimizer("SGD", 0, 0),
        "momentum": Optimizer("SGD with momentum", 1, 0),
        "adamw": Optimizer("AdamW", 2, 1),
        "adam": Optimizer("Adam", 2, 1),
        "rmsprop": Optimizer("RMSprop", 1, 1),
        "adagrad": Optimizer("Adagrad", 1, 2),
    }
)


@dataclass(frozen=True, slots=True)
class Training:
    """A training step.

    Attributes:
        dtype: of parameters, gradients and optimizer state, and without `mixed` of everything.
        optimizer: a key of OPTIMIZERS.
        mixed: the dtype autocast computes products in, over fp32 parameters; ``none`` without it.
        checkpoints: segments as `torch.utils.checkpoint.checkpoint_sequential` makes them; 0 keeps all activations.
        accumulation: micro-batches a step.
        tokens: of a sequence; 0 for the model's own.
    """

    dtype: str = "fp32"
    optimizer: str = "sgd"
    mixed: str = "none"
    checkpoints: int = 0
    accumulation: int = 1
    tokens: int = 0

    def __post_init__(self) -> None:
        check_choices(
            ("dtype", self.dtype, ITEMSIZES), ("optimizer", self.optimizer, OPTIMIZERS), ("mixed", self.mixed, MIXED)
        )
        check_count("checkpoints", self.checkpoints)
        check_count("accumulation", self.accumulation)
        check_count("tokens", self.tokens, least=0)
        if self.mixed != "none" and self.dtype != "fp32":
            raise InvalidInput.of("dtype", self.dtype, "fp32 with mixed precision: autocast needs fp32 parameters")


@dataclass(frozen=True, slots=True)
class Serving:
    """A language model that answers: weights, and keys and values of all tokens of each sequence.

    Attributes:
        dtype: of the weights.
        cache_dtype: of keys and values; empty for that of the weights, or bf16 where those have fewer bits.
        tokens: of a sequence, prompt and answer; 0 for the model's own.
    """

    dtype: str = "bf16"
    cache_dtype: str = ""
    tokens: int = 0

    def __post_init__(self) -> None:
        check_choices(("dtype", self.dtype, SERVED), ("cache dtype", self.cache_dtype or self.dtype, SERVED))
        check_count("tokens", self.tokens, least=0)

    @property
    def cached(self) -> str:
        """Dtype of keys and values."""
        return self.cache_dtype or (self.dtype if SERVED[self.dtype] >= 2 else "bf16")


# bytes of a number; int4 with a 16-bit scale and a zero for each 128 of them, as GPTQ and AWQ store it
SERVED: Mapping[str, float] = MappingProxyType(
    {"bf16": 2, "fp16": 2, "fp32": 4, "fp8": 1, "int8": 1, "int4": (4 + 32 / 128) / 8}
)


def check_choices(*choices: tuple[str, str, Iterable[str]]) -> None:
    """Accept values that are among those accepted: their names, the values, and what is accepted.

    Raises:
        InvalidInput: one is not.
    """
    for what, value, accepted in choices:
        require(value in accepted, what, value, accepted)


def check_count(
    what: str, value: int | str, *, least: int | None = None, limits: Mapping[str, tuple[int, int]] = LIMITS
) -> int:
    """Return a number, or what was typed as one, within its limits, or from another `least` on.

    Raises:
        InvalidInput: it is no whole number, or beyond its limits.
    """
    first, most = limits[what]
    first = first if least is None else least
    number = read_length(value) if isinstance(value, str) else value
    if isinstance(number, bool) or not isinstance(number, int) or not first <= number <= most:
        raise InvalidInput.of(what.replace("_", " "), value, f"whole numbers from {first} to {most:,}")
    return number
