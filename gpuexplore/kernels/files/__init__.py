"""Files of users with CUDA kernels: PTX, compiled for a GPU first, and cubins, which are machine code."""

from collections.abc import Sequence

from gpuexplore.core import InvalidInput, TooLarge, format_bytes
from gpuexplore.kernels.files.cubin import FATBIN, MAGIC, Cubin, CubinKernel, read_cubin
from gpuexplore.kernels.files.ptx_text import PtxKernel, PtxText, read_ptx

MOST_BYTES = 4 * 2**20  # of a file; a library's PTX is larger, one kernel's never
SUFFIXES = (".ptx", ".cubin")
KernelFile = PtxText | Cubin

__all__ = [
    "MOST_BYTES",
    "SUFFIXES",
    "Cubin",
    "CubinKernel",
    "KernelFile",
    "PtxKernel",
    "PtxText",
    "kernel_chosen",
    "read_cubin",
    "read_kernel_file",
    "read_ptx",
]


def read_kernel_file(content: bytes) -> KernelFile:
    """Return what a file holds, by its content and not by its name.

    Raises:
        InvalidInput: it is neither PTX nor a cubin, or holds no kernel.
        TooLarge: it has more than MOST_BYTES.
    """
    if len(content) > MOST_BYTES:
        raise TooLarge(f"a file of more than {format_bytes(MOST_BYTES)}: the limit is {MOST_BYTES:,} bytes")
    if not content.strip():
        raise InvalidInput("this file is empty: expected PTX or a cubin")
    if content.startswith((MAGIC, FATBIN)):
        return read_cubin(content)
    try:
        return read_ptx(content.rstrip(b"\0").decode())
    except UnicodeDecodeError as error:
        raise InvalidInput("this file is neither PTX, which is text, nor a cubin, which is an ELF file") from error


def kernel_chosen(names: Sequence[str], wanted: str | None) -> str:
    """Return the kernel that is meant by its name or a part of it that no other has; None where there is only one.

    Raises:
        InvalidInput: none or several are meant.
    """
    if wanted is None and len(names) == 1:
        return names[0]
    if wanted is None:
        raise InvalidInput(f"this file has {len(names)} kernels, so name one: {_listed(names)}")
    if wanted in names:
        return wanted
    meant = [name for name in names if wanted.strip() and wanted.strip() in name]
    if len(meant) != 1:
        raise InvalidInput.of("kernel", wanted, f"{_listed(meant or names)}, or a part of only one of these names")
    return meant[0]


def _listed(names: Sequence[str]) -> str:
    """Return 20 names at most, and of each 100 characters: a part of a name will do."""
    shown = [name if len(name) <= 100 else f"{name[:100]}…" for name in names[:20]]
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return f"{', '.join(shown)}{more}"
