"""Thousands of random chains, as torch takes them: the same shapes, strides, offsets, copies, values and refusals."""

from collections import Counter

import pytest
import torch

from gpuexplore.features.tensors.analysis import MOST_LISTED
from gpuexplore.features.tensors.analysis.evaluate import StepRefused, evaluate
from tests.features.tensors.analysis.chains import facts, random_chain, run_step
from tests.unchanged import heavy

CHAINS = 5_000


def ours(shape, steps, written):
    """Return the chain, and what refused its last step."""
    count = torch.Size(shape).numel()
    ending = "" if written is None else f" = {written}"
    try:
        return evaluate(f"x = arange({count}).view({_words(shape)}); x{''.join(steps)}{ending}"), None
    except StepRefused as error:
        return error.chain, error


def torchs(shape, steps, written):
    """Return the tensors of torch, one for the start and one for each step, and what refused the last step."""
    seen = [torch.arange(torch.Size(shape).numel()).view(shape)]
    for step in steps:
        seen.append(run_step(seen[-1], step))
    if isinstance(seen[-1], Exception):
        return seen[:-1], seen[-1]
    try:
        if written is not None:
            seen[-1][...] = written
    except RuntimeError as error:
        return seen, error
    return seen, None


def fails_for_strides(error):
    """Return whether torch says that `view` fails because of the strides."""
    return "view size is not compatible" in str(error)


def disagreement(shape, steps, written, seen, error):
    """Return where a chain differs from torch's, in words; None where it does not."""
    chain, refused = ours(shape, steps, written)
    if (refused is None) != (error is None):
        return f"refused by torch: {error}, by us: {refused}"
    if error and (refused.refused != steps[-1] or fails_for_strides(error) != (refused.view_refused is not None)):
        return f"torch: {error}, we: {refused}"
    found = chain.steps[-len(seen) :]
    said = [
        (step.view.shape, step.view.strides, step.view.offset, step.view.is_contiguous, step.view.storage == "A")
        for step in found
    ]
    expected = [facts(tensor, seen[0]) for tensor in seen]
    values = [chain.values_of(step.view) for step in found]
    if said == expected and values == [values_of(tensor) for tensor in seen]:
        return None
    return f"{said} {values}, torch: {expected}"


def values_of(tensor):
    """Return the elements of a tensor of torch in row order; None where ours keeps no values of so many."""
    many = max(tensor.numel(), tensor.untyped_storage().nbytes() // tensor.itemsize) > MOST_LISTED
    return None if many else tuple(tensor.flatten().tolist())


def _words(shape):
    return ", ".join(map(str, shape))


@pytest.mark.long
@heavy()
def test_random_chains_are_what_torch_makes_of_them():
    found, kinds = {}, Counter()
    for seed in range(CHAINS):
        shape, steps, written = random_chain(seed)
        seen, error = torchs(shape, steps, written)
        if difference := disagreement(shape, steps, written, seen, error):
            found[f"zeros({_words(shape)}){''.join(steps)} = {written}"] = difference
        kinds.update(step.partition("(")[0] if step[0] == "." else "index" for step in steps)
        kinds["write"] += written is not None
        kinds["view that fails"] += steps[-1].startswith(".view") and fails_for_strides(error)

    assert found == {}
    assert min(kinds.values()) > 100, kinds
