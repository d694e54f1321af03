"""Assembles the PTX on standard input and prints what came of it as JSON: the machine code, or why there is none.

A process of its own because it loads CUDA's compiler, and because the PTX is anybody's: it may take this process down
or more memory than its share, and nothing else.
"""

import json
import os
import resource
import sys
from typing import Any

from gpuexplore.errors import GpuExploreError, InvalidInput
from gpuexplore.kernels.cuda_compile import assemble
from gpuexplore.kernels.files import read_ptx
from gpuexplore.serialization import encode

NICENESS = 10  # nobody who measures or serves pages shall wait for a compiler
MOST_BYTES = 8 * 2**30  # of addresses, of which most are never touched


def main() -> None:
    """Answer `{"ptx", "compute_capability"}` with `{"assembled": ...}`, `{"invalid": ...}` or `{"reason": ...}`."""
    os.nice(NICENESS)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_BYTES, MOST_BYTES))
    sys.stdout.write(json.dumps(_answer(json.load(sys.stdin))))


def _answer(request: dict[str, str]) -> dict[str, Any]:
    try:
        return {"assembled": encode(assemble(read_ptx(request["ptx"]), request["compute_capability"]))}
    except InvalidInput as error:
        return {"invalid": str(error)}
    except GpuExploreError as error:
        return {"reason": str(error)}


if __name__ == "__main__":
    main()
