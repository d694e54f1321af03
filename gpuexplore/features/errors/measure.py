"""Errors that people meet in torch, provoked on purpose in the process that measures: torch's words as they are today.

Each is bounded: what asks for memory asks for so much that it is refused at once. The texts load no torch.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from textwrap import dedent
from types import MappingProxyType
from typing import Literal

from gpuexplore.backends.host import version_of
from gpuexplore.backends.timer import Clock
from gpuexplore.core.errors import Cancelled, InvalidInput
from gpuexplore.core.model import Device
from gpuexplore.core.serialization import encode
from gpuexplore.core.typed_text import readable
from gpuexplore.measure.conditions.isolation import Isolation, ProgressHooks


@dataclass(frozen=True, slots=True)
class CommonError:
    """An error or a warning that people meet.

    Attributes:
        name: what links name.
        function: the one of `provocations`, next to this file, that runs into it.
        title: what happened, as one would say it.
        rows: of the notebooks in which it can be met.
        meaning: what torch's words mean.
        instead: what to do.
        instead_code: the same as code.
        otherwise: why it cannot be provoked on some machines; empty where it can on all.
    """

    name: str
    function: str
    title: str
    rows: tuple[str, ...]
    meaning: str
    instead: str
    instead_code: str
    otherwise: str = ""

    @property
    def code(self) -> str:
        """What provokes it: the very lines that run."""
        text = (files("gpuexplore.features.errors") / "provocations.py").read_text(encoding="utf-8")
        body = text.partition(f"def {self.function}(")[2].partition("\n\n\n")[0]
        return dedent(body.split('"""\n', 1)[1]).strip()


@dataclass(frozen=True, slots=True)
class Message:
    """One thing that torch said.

    Attributes:
        kind: an error ends the call, a warning does not.
        type: the class, e.g. `RuntimeError`.
        message: its words.
    """

    kind: Literal["error", "warning"]
    type: str
    message: str


@dataclass(frozen=True, slots=True)
class Provoked:
    """What came of provoking an error.

    Attributes:
        name: of the error.
        said: the warnings in their order, then what ended the call; empty where nothing happened.
        device: on which.
        torch: its version.
        reason: why nothing was said; None where something was.
    """

    name: str
    said: tuple[Message, ...]
    device: str
    torch: str
    reason: str | None = None


LONGEST_MESSAGE = 2000  # characters: some of CUDA's come with a manual
ERRORS: Mapping[str, CommonError] = MappingProxyType(
    {
        error.name: error
        for error in (
            CommonError(
                name="no-cuda",
                function="no_cuda",
                title="There is no CUDA here",
                rows=("A3", "B1", "C1", "C2"),
                meaning="This torch was built for CPUs, or finds no driver. No tensor can be on a GPU, however many "
                "GPUs are in the machine; torch.cuda.is_available() is False in both cases.",
                instead="Choose the device once, and use it everywhere. For a GPU, install the build of torch for the "
                "CUDA version that nvidia-smi shows.",
                instead_code='device = "cuda:0" if torch.cuda.is_available() else "cpu"\n'
                "x = torch.ones(5, 5, device=device)",
                otherwise="this machine has CUDA, so the call succeeds",
            ),
            CommonError(
                name="device-mismatch",
                function="device_mismatch",
                title="The tensors are on different devices",
                rows=("C2", "D1"),
                meaning="An operation takes tensors of one device only, and torch never moves one by itself: here the "
                "weights of the model are on the CPU, and the batch is not.",
                instead="Move the model once, and each batch as it comes. A model is moved in place; of a tensor, "
                ".to returns another one, which has to be kept.",
                instead_code="model.to(device)\nbatch = batch.to(device)\nmodel(batch)",
            ),
            CommonError(
                name="out-of-memory",
                function="out_of_memory",
                title="The memory is not enough",
                rows=("C4",),
                meaning="The allocator cannot give that many bytes. Here it was 1 PiB, which is refused at once; in a "
                "training the last of many tensors fails, usually an activation, which grow with the batch.",
                instead="Take a smaller batch and accumulate gradients, compute activations again in the backward "
                "pass, or store them in 16 bits. Emptying the cache frees nothing that is in use.",
                instead_code="for part in batch.chunk(4):\n    (loss_of(model(part)) / 4).backward()\noptimizer.step()",
            ),
            CommonError(
                name="unsupported-dtype",
                function="unsupported_dtype",
                title="The operation does not exist in this dtype",
                rows=("D2", "E7"),
                meaning="Tensors can be stored in more dtypes than can be computed with: each operation has a kernel "
                "for each dtype and device, or it has none. The name in quotes is that of the kernel.",
                instead="Convert for the operation, and back for storage.",
                instead_code="y = (x.to(torch.float32) + x.to(torch.float32)).to(x.dtype)",
            ),
            CommonError(
                name="view-of-a-transpose",
                function="view_of_a_transpose",
                title="A transpose has no such view",
                rows=("E2",),
                meaning="A view has to reach every element by one stride per axis over the storage as it is. The "
                "elements of the transpose lie in another order, so no strides give that shape.",
                instead="reshape copies where a view is impossible, and only there; contiguous copies first.",
                instead_code="x.t().reshape(2, 3)\nx.t().contiguous().view(2, 3)",
            ),
            CommonError(
                name="deprecated-amp",
                function="deprecated_amp",
                title="Mixed precision has another name now",
                rows=("D2",),
                meaning="The old names still work, and will go. Where there is no CUDA, a second warning of each says "
                "that it does nothing: training goes on in fp32.",
                instead="torch.amp takes the kind of device, so the same lines run on a CPU too.",
                instead_code='kind = "cuda" if torch.cuda.is_available() else "cpu"\n'
                "scaler = torch.amp.GradScaler(kind)\n"
                "with torch.amp.autocast(kind):\n    loss = loss_of(model(batch))",
            ),
        )
    }
)


def perform(
    arguments: Mapping[str, str],
    device: Device,
    *,
    clock: Clock,
    isolation: Isolation,
    progress: ProgressHooks,
) -> None:
    """Report what torch says to the error that `arguments` name, as an encoded `Provoked`.

    Args:
        arguments: `name` is that of the error.
        device: where it is provoked.
        clock: not used; nothing is timed.
        isolation: not used.
        progress: asked before whether it is cancelled; gets one report.

    Raises:
        InvalidInput: no such error.
        Cancelled: `cancelled` said so.
    """
    name = arguments.get("name", "")
    if name not in ERRORS:
        raise InvalidInput.of("error", name, ERRORS)
    if progress.cancelled():
        raise Cancelled("cancelled before anything was provoked")
    progress.report(encode(provoked(ERRORS[name], device)))


def provoked(error: CommonError, device: Device) -> Provoked:
    """Return what torch says when `error` is provoked on `device`."""
    run: Callable[[str], None] = getattr(import_module("gpuexplore.features.errors.provocations"), error.function)
    said = _said(lambda: run(device.id))
    reason = None if said else error.otherwise or "torch said nothing"
    return Provoked(error.name, said, device.id, version_of("torch") or "unknown", reason)


def _said(run: Callable[[], None]) -> tuple[Message, ...]:
    """Return what was warned of, and what ended the call."""
    ended: tuple[Message, ...] = ()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            run()
        except Exception as error:
            ended = (Message("error", type(error).__name__, readable(str(error), LONGEST_MESSAGE)),)
    warned = tuple(
        Message("warning", warning.category.__name__, readable(str(warning.message), LONGEST_MESSAGE))
        for warning in caught
    )
    return warned + ended
