"""PTX of anybody made machine code for a GPU by nvJitLink, which assembles our own kernels too; no GPU is needed.

Loads CUDA's libraries and Numba: only processes of their own import it.
"""

import re

from gpuexplore.errors import InvalidInput
from gpuexplore.kernels.cuda_compile import toolkit_version, unknown_capability
from gpuexplore.kernels.files.machine_code import Assembled
from gpuexplore.kernels.files.ptx_text import PtxText

_FUNCTION = re.compile(r"Function properties for (\S+)\n[^\n]*?(\d{1,12}) bytes spill stores, (\d+) bytes spill loads")
_PREFIX = re.compile(r"^ptxas (?:application )?(?:ptx input, )?(?:fatal\s+: )?")
_WORDS = ("error", "fatal")


def assemble(module: PtxText, compute_capability: str) -> Assembled:
    """Return the machine code of a PTX module for a compute capability.

    Raises:
        InvalidInput: the PTX is wrong, or for another GPU; the text is the assembler's.
        Unsupported: the CUDA toolkit that is installed does not know the compute capability.
    """
    from cuda.bindings.nvjitlink import nvJitLinkError
    from cuda.core import Linker, LinkerOptions, ObjectCode

    target = f"sm_{compute_capability.replace('.', '')}{'a' if module.suffix else ''}"  # `a` has all of a family's `f`
    options = LinkerOptions(arch=target, verbose=True, ptxas_options=["-v"])
    try:
        linker = Linker(ObjectCode.from_ptx(module.text.encode()), options=options)
        cubin = bytes(linker.link("cubin").code)
    except nvJitLinkError as error:
        if "_ARCH" in str(error):
            raise unknown_capability(compute_capability) from error
        raise InvalidInput(f"this PTX cannot be compiled for {target}: {first_complaint(str(error))}") from error
    spilled = {name: int(stores) + int(loads) for name, stores, loads in _FUNCTION.findall(linker.get_info_log())}
    return Assembled(cubin, target, toolkit_version(), spilled)


def first_complaint(log: str) -> str:
    """Return what nvJitLink's log says first, with the line of the PTX where it names one."""
    lines = [line.strip().removeprefix("nvJitLink error log: ") for line in log.replace("\0", "").splitlines()]
    named = [line for line in lines if any(word in line for word in _WORDS)]
    if not named:
        return lines[0] if lines and lines[0] else "no message"
    return " ".join(_PREFIX.sub("", named[0]).split()).replace(" : ", ": ")
