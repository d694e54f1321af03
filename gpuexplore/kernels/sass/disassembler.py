"""Runs NVIDIA's disassembler, which the extra `sass` installs, on a kernel's machine code."""

import json
import shutil
import subprocess
import tempfile
from functools import cache
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

from gpuexplore.errors import Unsupported
from gpuexplore.kernels.sass.instruction import Instruction

PACKAGE, PROGRAM = "nvidia-cuda-nvdisasm", "nvdisasm"
INSTALL = 'pip install "gpuexplore[sass]"'
BYTES = 16  # of an instruction, from compute capability 7.0 on
LIMIT_S = 60.0


def disassembled(cubin: bytes) -> tuple[Instruction, ...]:
    """Return the instructions of the only kernel in a cubin, in their order.

    Raises:
        Unsupported: the disassembler is not installed, or cannot read this machine code.
    """
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        try:
            done = subprocess.run(
                [_program(), "-json", file.name], capture_output=True, text=True, check=False, timeout=LIMIT_S
            )
        except OSError as error:
            raise Unsupported(f"{PROGRAM} cannot be run: {error.strerror}") from error
        except subprocess.TimeoutExpired as error:
            raise Unsupported(f"{PROGRAM} took longer than {LIMIT_S:.0f} s") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise Unsupported(f"{PROGRAM} failed: {last}")
    _, (function, *_) = json.loads(done.stdout)
    return tuple(
        Instruction(place * BYTES, read["opcode"], read.get("operands", ""), read.get("predicate", ""))
        for place, read in enumerate(function["sass-instructions"])
    )


def _program() -> str:
    found = _packaged() or shutil.which(PROGRAM)
    if found is None:
        raise Unsupported(f"machine code needs NVIDIA's disassembler, {PROGRAM}: {INSTALL}")
    return found


@cache
def _packaged() -> str | None:
    """Return the program of the installed package; None without one."""
    try:
        inside = [file for file in files(PACKAGE) or () if Path(file).stem == PROGRAM and "bin" in Path(file).parts]
    except PackageNotFoundError:
        return None
    return str(inside[0].locate()) if inside else None
