"""A way to compute an operation: the rows of `implementations=`, and what follows from the name of a user's."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from gpuexplore.backends import load_backend
from gpuexplore.core import Device, InvalidInput, Layout, Peak, Shape, Unit
from gpuexplore.core.dtypes import DTYPES, DType
from gpuexplore.hardware import TORCH_KINDS
from gpuexplore.kernels.geometry import Geometry


class Growth(NamedTuple):
    """By how much roundings of sums may be larger than where terms are added one by one: factors of 1 or more.

    Attributes:
        norm: of the whole output.
        element: of its least accurate element.
    """

    norm: float = 1.0
    element: float = 1.0


AS_SUMMED = Growth()
OF_USERS = ":"  # between library and name of an implementation that is a user's: `torch:mine`
BACKEND_OF_USERS: Mapping[str, str] = MappingProxyType(  # by library; results of JAX and CuPy reach torch by DLPack
    {
        "numpy": "numpy_returned",
        "numba": "numpy_returned",
        "torch": "torch",
        "jax": "torch",
        "cupy": "torch",
        "triton": "triton",
        "numba_cuda": "numba_cuda",
    }
)


@dataclass(frozen=True, slots=True)
class Implementation:
    """One way to compute an operation.

    Attributes:
        name: what users type, e.g. `numba-cuda`.
        module: its file in the operation's folder, or in another's, as in `matmul.numba_cuda`; imported on demand.
        backend: its library's file in `gpuexplore.backends`.
        unit: the units it computes on, which decides the peak it is compared with.
        about: one sentence for a reader; of a rung: what it changed, and why that helps.
        export: its name in the module: a function `build`, a CudaKernel, or the layers that `technique` trains.
        calls: the library's function that computes it with `out=`, e.g. `numpy.add`; it has no file then.
        technique: the function of `torch_steps.py` that makes a training step of layers.
        arithmetic: dtypes it stores but computes in another one, e.g. bf16 -> fp32.
        native: dtypes of `arithmetic` it computes by dot-product instructions where the device has them.
        on_matrix_units: dtypes it computes on matrix units although `unit` says vector.
        dtypes: the only ones it has code for; empty: all that its library can.
        compute_capability: the least a CUDA device needs for `on_matrix_units`, e.g. `8.0`; None: any.
        otherwise: the implementation to use below `compute_capability`, or above it with `one_generation`.
        one_generation: whether other GPUs than those of `compute_capability` have no such instructions.
        device_kinds: the only devices it differs on from another implementation; empty: all that its library knows.
        vendor_library: it calls the library of the device's vendor, which predictions stand for; one of an operation.
        rung: a step of a kernel ladder, measured when asked for by name and not by default.
        best_rung: it is one of the operation's rungs again, by the dtype or always the same, under its usual name.
        optional: its library is an extra: measured when asked for by name and not by default.
        geometry: how a CUDA kernel of ours covers its output; None for everything else.
        one_thread: dtypes in which it uses one thread of a CPU, however many there are.
        one_thread_up_to: elements of its largest array up to which its library stays on one thread in every dtype.
        flags: those of its operation that it has code for, each an argument of its `build`.
        streaming_stores: whether it writes large arrays past the caches of a CPU; ordinary stores read each line first.
        growth: by how much roundings of its sums may be larger than where terms are added one by one, by shape, dtype
            and device, for a library that may choose a fast algorithm.
    """

    name: str
    module: str
    backend: str
    unit: Unit
    about: str
    export: str = "build"
    calls: str = ""
    technique: str = ""
    arithmetic: Mapping[str, str] = field(default_factory=dict)
    native: tuple[str, ...] = ()
    on_matrix_units: tuple[str, ...] = ()
    dtypes: tuple[str, ...] = ()
    compute_capability: str | None = None
    otherwise: str | None = None
    one_generation: bool = False
    device_kinds: tuple[str, ...] = ()
    vendor_library: bool = False
    rung: bool = False
    best_rung: bool = False
    optional: bool = False
    geometry: Geometry | None = None
    one_thread: tuple[str, ...] = ()
    one_thread_up_to: int = 0
    flags: tuple[str, ...] = ()
    streaming_stores: bool = False
    growth: Callable[[Shape, DType, Device], Growth] = lambda *_: AS_SUMMED

    def module_in(self, operation: str) -> str:
        """Return the full name of its module; `operation` is the name of its own."""
        return f"gpuexplore.operations.{self.module if '.' in self.module else f'{operation}.{self.module}'}"

    @property
    def hand_written(self) -> bool:
        """A kernel of ours."""
        return self.backend in ("numba_cpu", "numba_cuda", "triton") and not self.of_a_user

    @property
    def of_a_user(self) -> bool:
        """True for a user's implementation, of which only the library is known."""
        return OF_USERS in self.name

    @property
    def calls_library(self) -> bool:
        """Arithmetic of a library, not of a kernel of ours or of a user's code."""
        return not (self.hand_written or self.of_a_user)

    @property
    def runs_on_kinds(self) -> tuple[str, ...]:
        """The kinds of devices it runs on."""
        return self.device_kinds or load_backend(self.backend).DEVICE_KINDS

    def runs_on(self, device: Device) -> bool:
        """Return whether it runs on devices of this kind; a row of the table of accelerators is a GPU."""
        return ("cuda" if device.is_hypothetical else device.kind) in self.runs_on_kinds

    def computes_in(self, dtype: str, device: Device | None) -> tuple[str, Unit]:
        """Return the dtype and the units of the arithmetic on `device` when arrays are in `dtype`."""
        if dtype in self.on_matrix_units:
            return dtype, "matrix"
        if dtype in self.native and device is not None and dtype in device.native:
            return dtype, "dot"
        return self.arithmetic.get(dtype, dtype), self.unit

    def peak(self, device: Device, dtype: str) -> Peak | None:
        """Return the compute peak this implementation is compared with, or None when it is unknown."""
        return device.peak(*self.computes_in(dtype, device))

    def uses_one_thread(self, dtype: str, elements: int) -> bool:
        """Return whether a CPU computes it on one thread when arrays are in `dtype`, the largest of `elements`."""
        return dtype in self.one_thread or elements <= self.one_thread_up_to

    def lacks_layout(self, layout: Layout) -> str | None:
        """Return why it cannot take matrices in `layout`, or None when it can."""
        reads_rows = self.backend in ("numba_cuda", "triton")
        return (
            None
            if layout == "NN" or not reads_rows
            else f"{self.name} reads contiguous rows: it has code for layout NN only"
        )

    def lacks_flags(self, flags: Sequence[str]) -> str | None:
        """Return why it cannot compute with these flags of its operation, or None when it can."""
        missing = [flag for flag in flags if flag not in self.flags]
        return f"{self.name} has no code for {', '.join(f'{flag}=1' for flag in missing)}" if missing else None

    def unsupported(self, dtype: DType, device: Device) -> str | None:
        """Return why it has no code for `dtype` on `device`, or None when it has."""
        if not self.runs_on(device):
            instead = "; `torch` runs there" if device.kind in TORCH_KINDS else ""
            return f"{self.name} runs on {' and '.join(self.runs_on_kinds)} devices, not on {device.id}{instead}"
        if self.dtypes and dtype.name not in self.dtypes:
            return f"{self.name} has code for {', '.join(self.dtypes)} only"
        if device.kind != "cuda" or (self.geometry is None and self.compute_capability is None):
            return None
        if dtype.matrix_only and dtype.name not in self.on_matrix_units:
            return f"{dtype.name} exists only inside tensor cores, which {self.name} does not use"
        least = self.compute_capability if dtype.name in self.on_matrix_units else None
        found = device.compute_capability
        other = self.one_generation and found != least
        if least and found and (other or _capability(found) < _capability(least)):
            only = ", and no other" if self.one_generation else ""
            reason = f"{self.name} needs compute capability {least}{only}; {device.name} has {found}"
            return f"{reason}; use {self.otherwise}" if self.otherwise and not dtype.matrix_only else reason
        return None


WIDENED: Mapping[str, str] = MappingProxyType({"bf16": "fp32", "fp16": "fp32"})
USUAL_FACTS: Mapping[str, Mapping[str, Any]] = MappingProxyType(  # of every operation, by backend
    {
        "numpy": {"arithmetic": WIDENED},
        "numba_cpu": {"arithmetic": WIDENED},
        "numba_cuda": {"arithmetic": WIDENED, "export": "KERNEL"},
        "torch": {},
        "torch_compile": {"optional": True},
        "triton": {"optional": True},
        "cupy": {"optional": True},
    }
)
EVERY_DTYPE = tuple(DTYPES)  # one thread in all: NumPy but for BLAS
TORCH_GRAIN = 32768  # elements that one thread takes at least where TensorIterator does the work: ATen/Parallel.h


def row(backend: str, about: str, **own: Any) -> Implementation:
    """Return a row of `implementations=`, with what is the same in every operation.

    Args:
        backend: its library; that of its file too, unless `module` or `calls` is among `own`.
        about: one sentence for a reader.
        own: whatever differs, e.g. `unit="matrix"`.
    """
    usual = {"name": backend.replace("_", "-"), "module": "" if "calls" in own else backend, "unit": "vector"}
    return Implementation(backend=backend, about=about, **{**usual, **USUAL_FACTS.get(backend, {}), **own})


def torch_variants() -> tuple[Implementation, ...]:
    """Return the rows of a training step in torch: eager, and with each technique of training."""

    def step(technique: str, about: str, backend: str = "torch", **own: Any) -> Implementation:
        return row(backend, about, module="torch", export="network", technique=technique, unit="matrix", **own)

    return (
        step("eager", "torch's operators and autograd, step by step", vendor_library=True),
        step(
            "autocast",
            "the same under torch.autocast: weights in fp32, products in 16 bits, the loss scaled in fp16",
            name="torch-autocast",
            dtypes=("bf16", "fp16"),
        ),
        step(
            "checkpointed",
            "the same with torch.utils.checkpoint: backward recomputes the intermediate results of a layer",
            name="torch-checkpoint",
        ),
        step(
            "accumulated",
            "the same over four parts of the batch, with added gradients and a quarter of the activations at a time",
            name="torch-accumulate",
        ),
        step("through_compiler", "torch.compile of forward and backward", "torch_compile"),
    )


def row_of_user(name: str, operation: str, rows: Sequence[Implementation], *, is_product: bool) -> Implementation:
    """Return the row of a user's implementation: its library's of this operation, without what ours promise.

    Args:
        name: `torch:mine`.
        operation: its name.
        rows: its implementations.
        is_product: whether it is a matrix product.

    Raises:
        InvalidInput: the name has no library before the colon, or nothing that can be shown behind it.
    """
    library, _, label = name.partition(OF_USERS)
    if library not in BACKEND_OF_USERS or not label.replace("-", "").replace("_", "").isalnum():
        accepted = (f"{known}:NAME" for known in BACKEND_OF_USERS)
        raise InvalidInput.of(f"own implementation of {operation}", name, accepted)
    backend = BACKEND_OF_USERS[library]
    about = f"{label}, of a user, on arrays of {library}"
    unit: Unit = "matrix" if is_product and backend == "torch" else "vector"
    found = Implementation(name, label, backend, unit, about, optional=True)
    for row in sorted(rows, key=lambda row: row.vendor_library, reverse=True):
        if row.backend == library or (row.backend, library) == ("numba_cpu", "numba"):
            return replace(found, unit=row.unit, arithmetic=row.arithmetic, native=row.native, growth=row.growth)
    return found


def _capability(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split("."))
