"""torch's compiler, loaded by importing this module, which takes seconds.

An implementation imports it where it is loaded itself: the compiler replaces `torch.manual_seed` by a wrapper of its
own, which would be taken for a kernel's doing once a group of cases is watched.
"""

import warnings
from collections.abc import Callable
from typing import Any

import torch
import torch._dynamo

SILENCED: tuple[tuple[str, type[Warning]], ...] = (
    ("TensorFloat32 tensor cores", UserWarning),  # a hint for fp32; TF32 is a dtype of its own here
    ("`torch.jit.script_method`", DeprecationWarning),  # torch's own use of it, where it loads Inductor
)


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, to be compiled as one graph when it is first called."""
    for message, category in SILENCED:
        warnings.filterwarnings("ignore", message, category)
    compile_graph: Any = torch.compile  # its hints leave out isolate_recompiles
    # without isolation every shape of a sweep counts against one limit of eight
    made: Callable[..., Any] = compile_graph(function, fullgraph=True, dynamic=False, isolate_recompiles=True)
    return made
