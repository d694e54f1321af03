"""Runs NVIDIA's disassembler, which the extra `sass` installs, on a kernel's machine code."""

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from gpuexplore.core.errors import Unsupported
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
