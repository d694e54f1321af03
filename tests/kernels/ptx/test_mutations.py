"""Kernels that are wrong on purpose: what the interpreter would miss, a wrong kernel could hide behind.

Each of our kernels, in one dtype and those on tensor cores alone in all, is changed at lines spread over its PTX.
A change must be noticed at one of the shapes of its operation, by a fault or by a wrong number.
"""

import re

import pytest

pytest.importorskip("numba.cuda", reason="numba-cuda is not installed")
pytest.importorskip("cuda.core", reason="cuda.core, which brings nvJitLink, is not installed")

from gpuexplore.operations.kernel_targets import capabilities_for
from scripts.compiled_kernels import kernels
from scripts.compiled_kernels import key as key_of
from tests.kernels.ptx.launches import EXECUTED, dynamic_shared_bytes, is_right, launched, lengths_for, ptx_of

BEST = "matmul/numba-cuda/"  # made of other steps
BOUND = "bound off by one"
MUTATIONS = {
    "no barrier": (r"bar\.sync\s+0;", ""),
    "one group too few": (r"(wait_group\S*)\s+(\d)", lambda found: f"{found[1]} {int(found[2]) + 1}"),
    "registers swapped": (r"(mma\.sync\S+ \{[^}]*\}, \{)([^,]*), ([^,]*),", r"\1\3, \2,"),
    "not transposed": (r"(ldmatrix\S+)\.trans", r"\1"),
    BOUND: (r"setp\.ge\.s64(\s+%p\d+, %rd\d+, %rd\d+)", r"setp.gt.s64\1"),
    "sums swapped": (r"(wgmma\.mma_async\S+ \{)(\S+), (\S+),", r"\1\3, \2,"),
    "second factor not transposed": (r"(wgmma\.mma_async\S+ .*), 1, 1, 1, 0, 1;", r"\1, 1, 1, 1, 0, 0;"),
    "no fence of registers": (r"wgmma\.fence\S+;", ""),
    "no fence of the proxy": (r"fence\.proxy\.async\S*;", ""),
    "group not closed": (r"(wgmma\.|cp\.async\.)commit_group\S*;", ""),
}
TOGETHER = ("no fence of registers",)  # only the first of several products on the same sums needs one
MUTATED_MATCHES = 3  # of one mutation in one kernel
pytestmark = pytest.mark.ptx


def mutated():
    """Yield a kernel of each implementation, one with and one without asynchronous copies, of some in every dtype."""
    seen = set()
    for operation, implementation, dtype in kernels():
        key = key_of(operation, implementation, dtype)
        narrow = implementation.dtypes and "fp64" not in implementation.dtypes
        source = operation.name, implementation.name, dynamic_shared_bytes(key) > 0
        if not key.startswith(BEST) and (narrow or source not in seen):
            seen.add(source)
            yield pytest.param((operation, implementation, dtype), id=key)


@pytest.mark.parametrize("kernel", [*mutated()])
def test_every_mutation_is_noticed(kernel):
    key = key_of(*kernel)
    capability = next(each for each in EXECUTED if each in capabilities_for(*kernel))
    text, tried = ptx_of(key, capability, None), 0
    for name, (pattern, instead) in MUTATIONS.items():
        if name == BOUND and not is_bound_by_each(kernel, text):
            continue
        for changed in changes(text, pattern, instead, together=name in TOGETHER):
            assert is_noticed(kernel, changed, capability), (name, *set(changed.splitlines()) ^ set(text.splitlines()))
            tried += 1
    assert tried or "bar.sync" not in text


def changes(text, pattern, instead, *, together):
    """Yield the text with a mutation at some of its matches, or at all of them together."""
    matches = list(re.finditer(pattern, text))
    if together and matches:
        yield re.sub(pattern, instead, text)
    else:
        for match in matches[:: max(1, -(-len(matches) // MUTATED_MATCHES))]:
            yield text[: match.start()] + expanded(match, instead) + text[match.end() :]


def is_bound_by_each(kernel, text):
    """Whether each bound alone keeps a thread within an array.

    Tiles, and what the lanes of a warp add up, are filled up with zeros, by which what another bound lets in is
    multiplied; a loop that strides in steps of several elements does a last step of them or single ones.
    """
    geometry, fills = kernel[1].geometry, ".shared" in text or "shfl" in text
    return not fills and geometry.tile(geometry.checked(None)) is not None


def expanded(match, instead):
    return instead(match) if callable(instead) else match.expand(instead)


def is_noticed(kernel, text, capability):
    key = key_of(*kernel)
    first, *others = lengths_for(key)
    return any(not is_right(*launched(key, lengths, text, capability)) for lengths in (*others[::-1], first))
