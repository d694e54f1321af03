"""torch's compiler, loaded by importing this module, which takes seconds.

An implementation imports it where it is loaded itself: the compiler replaces `torch.manual_seed` by a wrapper of its
own, which would be taken for a kernel's doing once a group of cases is watched.
"""

import warnings
from collections.abc import Callable, Mapping
from functools import cache
from inspect import signature
from typing import Any

import torch
import torch._dynamo


def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return `function`, to be compiled as one graph when it is first called."""
    silenced: tuple[tuple[str, type[Warning]], ...] = (
        ("TensorFloat32 tensor cores", UserWarning),  # a hint for fp32; TF32 is a dtype of its own here
        ("\nOnline softmax is disabled", UserWarning),  # a hint for rows that it sums in pieces
        ("`torch.jit.script_method`", DeprecationWarning),  # torch's own use of it, where it loads Inductor
    )
    for message, category in silenced:
        warnings.filterwarnings("ignore", message, category)
    compile_graph: Any = torch.compile  # its hints leave out isolate_recompiles
    return compile_graph(function, fullgraph=True, dynamic=False, **_isolated())


@cache
def _isolated() -> Mapping[str, bool]:
    """Return what keeps shapes of a sweep from counting against one limit of eight; before torch 2.13, raise it."""
    if "isolate_recompiles" in signature(torch.compile).parameters:
        return {"isolate_recompiles": True}
    settings = torch._dynamo.config
    for name in ("recompile_limit", "accumulated_recompile_limit"):
        if hasattr(settings, name):
            setattr(settings, name, 10_000)
    return {}
