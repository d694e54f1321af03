"""The kinds of goals, as data: what each asks for, in which words, and what has to be said to set one."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import urlencode

from gpuexplore.dtypes import DTYPES, dtype_named
from gpuexplore.errors import InvalidInput
from gpuexplore.operations import OPERATIONS, operation_named
from gpuexplore.typed_text import check_characters
from gpuexplore.units import read_number, read_seconds, read_whole

LONGEST = 40  # characters of a setting
GPU = "gpu"  # a side of a comparison that is any GPU
LARGEST_SIZE = 1 << 24
LONGEST_GUESS_S = 1e6


@dataclass(frozen=True, slots=True)
class Setting:
    """What has to be said to set a goal.

    Attributes:
        name: its key.
        title: its label.
        default: what a form begins with.
        read: returns it in one form, or raises InvalidInput.
        choices: the only ones there are; empty for text.
    """

    name: str
    title: str
    default: str
    read: Callable[[str], str]
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of goals.

    Attributes:
        name: its key.
        title: what it is called.
        sentence: what a class reads, with the settings in braces.
        settings: what has to be said to set one.
        is_guessed: whether everybody guesses the time of a call first.
        parameters: of the page Benchmark, which measures something of the kind.
    """

    name: str
    title: str
    sentence: str
    settings: tuple[Setting, ...]
    is_guessed: bool = False
    parameters: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Goal:
    """What a class is asked to reach: a kind with its settings."""

    kind: Kind
    settings: Mapping[str, str]

    @property
    def sentence(self) -> str:
        """What a class reads."""
        return self.kind.sentence.format_map(self.settings)

    @property
    def link(self) -> str:
        """The page that measures it, filled in, such as `benchmark?op=matmul&dtype=fp32`."""
        filled = {name: text.format_map(self.settings) for name, text in self.kind.parameters}
        return f"benchmark?{urlencode(filled)}"


def goal_of(kind: str, settings: Mapping[str, str]) -> Goal:
    """Return the goal that was set.

    Raises:
        InvalidInput: no such kind or setting, or a value that cannot be used; says what is accepted.
    """
    if kind not in KINDS:
        raise InvalidInput.of("kind of goal", kind, KINDS)
    known = {setting.name: setting for setting in KINDS[kind].settings}
    for name in settings:
        if name not in known:
            raise InvalidInput.of(f"setting of {kind}", name, known)
    read = {name: setting.read(settings.get(name, setting.default).strip()) for name, setting in known.items()}
    if "implementation" in read:
        operation_named(read["operation"]).implementation_named(read["implementation"])
    return Goal(KINDS[kind], MappingProxyType(read))


def read_guess(text: str) -> float:
    """Return a guessed time in seconds.

    Raises:
        InvalidInput: it is none; says what is accepted.
    """
    seconds = read_seconds(text.strip()[:LONGEST])
    if seconds is None or not 0 < seconds <= LONGEST_GUESS_S:
        raise InvalidInput.of("guess", text, "times above 0 with their unit, like 90us or 2.5 ms")
    return seconds


def _operation(text: str) -> str:
    return operation_named(text).name


def _dtype(text: str) -> str:
    return dtype_named(text).name


def _size(text: str) -> str:
    size = read_whole(text)
    if size is None or not 1 <= size <= LARGEST_SIZE:
        raise InvalidInput.of("size", text, f"whole numbers from 1 to {LARGEST_SIZE:,}")
    return str(size)


def _percent(text: str) -> str:
    percent = read_number(text)
    if percent is None or not 0 < percent <= 1000:
        raise InvalidInput.of("percent", text, "numbers above 0, up to 1000")
    return f"{percent:g}"


def _bound(text: str) -> str:
    bound = read_number(text)
    if bound is None or not 0 < bound < 1:
        raise InvalidInput.of("bound", text, "numbers between 0 and 1, like 1e-4")
    return f"{bound:g}"


def _side(text: str) -> str:
    check_characters("side of the comparison", text)
    if not text or len(text) > LONGEST or any(not sign.isalnum() and sign not in "_:-" for sign in text):
        raise InvalidInput.of("side of the comparison", text, f"cpu, {GPU} and names of implementations")
    return text


OPERATION = Setting("operation", "Operation", "matmul", _operation, tuple(OPERATIONS))
DTYPE = Setting("dtype", "Dtype", "fp32", _dtype, tuple(DTYPES))
SIZE = Setting("size", "Size", "1024", _size)
IMPLEMENTATION = Setting("implementation", "Implementation", "torch", str)
SLOWER = Setting("slower", "First ahead", "cpu", _side)
FASTER = Setting("faster", "Ahead from there", GPU, _side)
BOUND = Setting("bound", "Relative error below", "1e-4", _bound)


def _percents(default: str) -> Setting:
    return Setting("percent", "Percent", default, _percent)


_CASE = (("op", "{operation}"), ("dtype", "{dtype}"))
_ONE_SIZE = (*_CASE, ("size", "{size}"))
_KINDS = (
    Kind(
        "share",
        "Reach a share of the limit",
        "Reach {percent} % of the limit with {operation} in {dtype}",
        (OPERATION, DTYPE, _percents("50")),
        parameters=_CASE,
    ),
    Kind(
        "overtake",
        "Find the size where one overtakes the other",
        "{operation} in {dtype}: from which size on is {faster} faster than {slower}?",
        (OPERATION, DTYPE, SLOWER, FASTER),
        parameters=_CASE,
    ),
    Kind(
        "guess",
        "Guess, then measure",
        "How long does {implementation} take for {operation} of size {size} in {dtype}?",
        (OPERATION, SIZE, DTYPE, IMPLEMENTATION),
        is_guessed=True,
        parameters=(*_ONE_SIZE, ("impl", "{implementation}")),
    ),
    Kind(
        "kernel",
        "Make the fastest kernel of a ladder",
        "Which of our kernels of {operation} in {dtype} reaches {percent} % of the library's rate at size {size}?",
        (OPERATION, SIZE, DTYPE, _percents("50")),
        parameters=_ONE_SIZE,
    ),
    Kind(
        "error",
        "Get the error below a bound",
        "Compute {operation} in {dtype} with a relative error below {bound}",
        (OPERATION, DTYPE, BOUND),
        parameters=_CASE,
    ),
)
KINDS: Mapping[str, Kind] = MappingProxyType({kind.name: kind for kind in _KINDS})
