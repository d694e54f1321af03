"""Whether an output is right: judged element by element, or the same bits as one that was."""

import numpy as np

from gpuexplore.measure.arrays.on_device import device_arrays
from gpuexplore.measure.candidates.candidate import Accepted, Candidate, bits
from gpuexplore.measure.candidates.failure import IncorrectOutput
from gpuexplore.measure.check.correctness import Output, describe
from gpuexplore.measure.check.elements import judge
from gpuexplore.measure.check.group import Group
from gpuexplore.measure.check.in_blocks import AnyReference
from gpuexplore.model import Accuracy

NOT_NEW = (
    "it returned an array that this call has not written: the result of an earlier call, or memory that is not filled"
)
KEPT_BYTES = 2**26  # of an output that was right: comparing bits takes a tenth of the time of judging elements


def checked(candidate: Candidate, group: Group, reference: AnyReference) -> Accuracy:
    """Return the accuracy of the candidate's output, which is that of the same bits before.

    Raises:
        IncorrectOutput: the output, or an element of it, is further from the reference than rounding explains.
    """
    group.untouched.check()
    if candidate.stays_there:
        return _accepted(candidate, group, reference, device_arrays().DeviceOutput(candidate.out, group.dtype))
    stored, known = candidate.stored(), candidate.accepted.get(id(reference))
    if known is not None and np.array_equal(bits(stored), bits(known.stored)):
        return known.accuracy
    accuracy = _accepted(candidate, group, reference, group.dtype.widen(stored))
    if stored.nbytes <= KEPT_BYTES:
        candidate.accepted[id(reference)] = Accepted(reference, stored.copy(), accuracy)
    return accuracy


def _accepted(candidate: Candidate, group: Group, reference: AnyReference, out: Output) -> Accuracy:
    accuracy = judge(out, reference, group.shape, group.growth(candidate.case.implementation, group.shape))
    if not accuracy.within:
        raise IncorrectOutput(NOT_NEW if _returned_again(candidate, group) else describe(accuracy), accuracy)
    return accuracy


def _returned_again(candidate: Candidate, group: Group) -> bool:
    """Return whether a function returned what was overwritten with NaN before the call, and nothing new."""
    return group.operation.implementation_named(candidate.case.implementation).of_a_user and candidate.is_poisoned()
