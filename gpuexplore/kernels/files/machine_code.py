"""The machine code of one kernel of a file, whatever the file was; light, so that the web process can show it.

It is read by NVIDIA's disassembler, which the extra `sass` installs.
"""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.hardware.capabilities import CAPABILITIES
from gpuexplore.kernels.files.cubin import Cubin, CubinKernel, read_cubin
from gpuexplore.kernels.files.ptx_text import PtxText
from gpuexplore.kernels.geometry import Block
from gpuexplore.kernels.sass import Line, controls_of
from gpuexplore.kernels.sass.instruction import INSTRUCTION_BYTES, SassInstruction
from gpuexplore.kernels.sass.loops import with_descriptors

PROGRAM = "nvdisasm"
_LABEL = re.compile(r"(\.text\.[^\s:]+):")  # where the code of a function begins
_LIVE = re.compile(r"\s*/\*([0-9a-f]+)\*/[^;]*;\s*// \|\s*(?:(\d+)\s*)?\|")  # address; the first column of counts


def disassembled(cubin: bytes, kernel: str | None = None) -> tuple[SassInstruction, ...]:
    """Return the instructions of a kernel in a cubin, in their order; None: of its only one.

    Raises:
        Unsupported: the disassembler is not installed, or cannot read this machine code.
    """
    try:
        done = _run(cubin, "-json", limit_s=60)
    except subprocess.TimeoutExpired as error:
        raise Unsupported(f"{PROGRAM} took longer than {error.timeout:.0f} s") from error
    if done.returncode:
        last_line = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"{PROGRAM} failed: {last_line}")
    _, functions = json.loads(done.stdout)
    function = next((each for each in functions if kernel in (None, each["function-name"])), None)
    if function is None:
        raise Unsupported(f"{PROGRAM} found no machine code of {kernel}")
    return with_descriptors(
        [
            SassInstruction(
                index * INSTRUCTION_BYTES, read["opcode"], read.get("operands", ""), read.get("predicate", "")
            )
            for index, read in enumerate(function["sass-instructions"])
        ]
    )


def live_registers(cubin: bytes, kernel: str) -> Mapping[int, int]:
    """Return how many registers of a thread are live at each address of a kernel, those it reads or writes included.

    It is the analysis of the disassembler itself, which knows what every instruction reads and writes. Empty where it
    has none: of cubins in the layout of CUDA 12, and of kernels too long for it.

    Raises:
        Unsupported: the disassembler is not installed.
    """
    try:
        done = _run(cubin, "--print-code", "--life-range-mode", "count", limit_s=20)
    except subprocess.TimeoutExpired:  # tens of thousands of instructions, which can be read without
        return {}
    return {} if done.returncode else dict(_counts(done.stdout, kernel))


def _counts(text: str, kernel: str) -> Iterator[tuple[int, int]]:
    """Yield address and count from the lines of a kernel; those before its label are of others."""
    inside = False
    for line in text.splitlines():
        if label := _LABEL.match(line):
            inside = label.group(1) == f".text.{kernel}"
        elif inside and (found := _LIVE.match(line)):
            yield int(found.group(1), 16), int(found.group(2) or 0)


def _run(cubin: bytes, *options: str, limit_s: float) -> subprocess.CompletedProcess[str]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            return subprocess.run(
                [_program(), *options, file.name], capture_output=True, text=True, check=False, timeout=limit_s
            )
        except OSError as error:
            raise Unsupported(f"{PROGRAM} cannot be run: {error.strerror}") from error


def _program() -> str:
    found = _packaged() or shutil.which(PROGRAM)
    if found is None:
        raise Unsupported(f'machine code needs NVIDIA\'s disassembler, {PROGRAM}: pip install "gpuexplore[sass]"')
    return found


@cache
def _packaged() -> str | None:
    """Return the program of the installed package; None without one."""
    try:
        packaged = files("nvidia-cuda-nvdisasm") or ()
        inside = [file for file in packaged if Path(file).stem == PROGRAM and "bin" in Path(file).parts]
    except PackageNotFoundError:
        return None
    return str(inside[0].locate()) if inside else None


# What the compiler made of a CUDA kernel; light, so that the web process can show it.


@dataclass(frozen=True, slots=True)
class CompiledKernel:
    """A kernel compiled for one compute capability.

    Attributes:
        compute_capability: e.g. `9.0`.
        target: what it is compiled for, e.g. `sm_90a`.
        toolkit: version of the CUDA toolkit that compiled it, e.g. `13.0`.
        ptx: NVIDIA's portable assembly, after link-time optimization.
        cubin: the machine code's file, an ELF.
        registers_per_thread: 32-bit registers; a multiprocessor has 65536.
        shared_bytes: shared memory of a block, all of it.
        dynamic_shared_bytes: of it, what the launch asks for.
        local_bytes: stack of a thread, which lies in device memory.
        spill_store_bytes: what a thread moves out of registers because there are too few.
        spill_load_bytes: what it moves back.
    """

    compute_capability: str
    target: str
    toolkit: str
    ptx: str
    cubin: bytes
    registers_per_thread: int
    shared_bytes: int
    dynamic_shared_bytes: int
    local_bytes: int
    spill_store_bytes: int
    spill_load_bytes: int

    @property
    def spill_bytes(self) -> int:
        """Bytes a thread moves out of registers and back because there are too few."""
        return self.spill_store_bytes + self.spill_load_bytes


@dataclass(frozen=True, slots=True)
class Assembled:
    """An assembled PTX module.

    Attributes:
        cubin: the machine code's file.
        target: what it is assembled for, e.g. `sm_90a`.
        toolkit: version of the CUDA toolkit, e.g. `13.5`.
        spill_bytes: what a thread of each kernel moves out of registers and back because there are too few.
    """

    cubin: bytes
    target: str
    toolkit: str
    spill_bytes: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class MachineCode:
    """One kernel of a file.

    Attributes:
        kernel: its name, as the compiler mangled it.
        target: what it is compiled for, e.g. `sm_90a`.
        registers_per_thread: 32-bit registers, at launch; None: the file does not say.
        local_bytes: stack of a thread, in device memory; None: the file does not say.
        shared_bytes: shared memory of a block, of fixed size.
        block: threads of a block that the file says, or at most; None: it does not say.
        lines: its instructions with their scheduling.
        toolkit: version of the CUDA toolkit that assembled it here; None: it was machine code already.
        spill_bytes: what a thread moves out of registers and back; None: unknown, for a cubin does not say.
        has_open_array: whether a launch gives it shared memory on top; None: unknown, for a cubin does not say.
        reallocated: registers of a thread that its warps ask for while they run (`setmaxnreg`), ascending.
        ignored: a clause on why the code shown does not ask; empty where it does.
    """

    kernel: str
    target: str
    registers_per_thread: int | None
    local_bytes: int | None
    shared_bytes: int
    block: Block | None
    lines: tuple[Line, ...]
    toolkit: str | None = None
    spill_bytes: int | None = None
    has_open_array: bool | None = None
    reallocated: tuple[int, ...] = ()
    ignored: str = ""

    @property
    def code(self) -> tuple[SassInstruction, ...]:
        """Its instructions alone."""
        return tuple(line.instruction for line in self.lines)


def reallocated(lines: Iterable[Line]) -> tuple[int, ...]:
    """Return the registers of a thread that warps ask for while they run, ascending."""
    asking = (each.instruction.operands for each in lines if each.instruction.name == "USETMAXREG")
    return tuple(sorted({int(operands.split(",")[-1], 0) for operands in asking}))


def check_target(module: PtxText, compute_capability: str) -> None:
    """Refuse PTX that cannot be assembled for a GPU: it uses what only later GPUs have, or only those it names.

    https://docs.nvidia.com/cuda/parallel-thread-execution/#ptx-module-directives-target

    Raises:
        InvalidInput: it cannot.
    """
    needed = _pair(module.compute_capability)
    gpu = _pair(compute_capability)
    accepted = {"a": f"{module.compute_capability} only", "f": f"{module.compute_capability} and later {needed[0]}.x"}
    fits = {"a": gpu == needed, "f": gpu[0] == needed[0] and gpu >= needed}.get(module.suffix, gpu >= needed)
    if not fits and module.compute_capability not in CAPABILITIES:
        known = ", ".join(CAPABILITIES)
        raise InvalidInput(f"this PTX is for {module.target}, which no known GPU has: known are {known}")
    if not fits:
        raise InvalidInput(
            f"this PTX is for {module.target}, but the GPU has compute capability {compute_capability}: expected "
            f"{accepted.get(module.suffix, f'{module.compute_capability} and later')}"
        )


def check_fits(cubin: Cubin, compute_capability: str) -> None:
    """Refuse machine code that a GPU cannot execute: of another major number, or of a later minor one.

    https://docs.nvidia.com/cuda/cuda-c-programming-guide/#binary-compatibility

    Raises:
        InvalidInput: it cannot, or its instructions have another length than those read here.
    """
    needed = _pair(cubin.compute_capability)
    gpu = _pair(compute_capability)
    if needed < (7, 0):  # instructions of 128 bits
        raise InvalidInput.of("compute capability of this cubin", cubin.compute_capability, "7.0 and later")
    if needed[0] != gpu[0] or needed > gpu:
        raise InvalidInput(
            f"this cubin is for compute capability {cubin.compute_capability}, but the GPU has {compute_capability}: "
            f"expected {cubin.compute_capability} or a later {needed[0]}.x"
        )


def lines_of_kernel(cubin: Cubin, kernel: CubinKernel) -> tuple[Line, ...]:
    """Return the lines of a kernel in a cubin.

    Raises:
        Unsupported: the disassembler is not installed, or cannot read this machine code.
    """
    code = disassembled(cubin.content, kernel.name)
    live = live_registers(cubin.content, kernel.name)
    controls = controls_of(kernel.code)
    return tuple(Line(each, controls.get(each.address), live.get(each.address)) for each in code)


def lines_of_ours(content: bytes) -> tuple[Line, ...]:
    """Return the lines of the only kernel in a cubin that was compiled here.

    Raises:
        Unsupported: the disassembler is not installed, or cannot read this machine code.
    """
    cubin = read_cubin(content)
    return lines_of_kernel(cubin, cubin.kernels[0])


def _pair(compute_capability: str) -> tuple[int, int]:
    major, minor = map(int, compute_capability.split("."))
    return major, minor
