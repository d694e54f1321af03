"""From what was found on both ways to the observation that is shown."""

from gpuexplore.features.mistakes.catalog.contract import Detection, Mistake, Observation
from gpuexplore.features.mistakes.catalog.subject import Subject
from gpuexplore.features.mistakes.catalog.turns import Pairs, reading
from gpuexplore.units import format_interval

WITHIN_NOISE = "the two ways agree within the noise on this machine"


def from_pairs(mistake: Mistake, pairs: Pairs, subject: Subject, detection: Detection) -> Observation:
    """Return the observation of two ways that were sampled in turns.

    Where their factor cannot be told from 1, the mistake is not claimed to have been seen.
    """
    factor = pairs.factor
    if factor.is_within_noise:
        interval = format_interval(factor.ci95, "{:.3f}".format)
        detection = Detection(None, f"{WITHIN_NOISE}: a factor of {interval}. {_sentence(detection.evidence)}")
    return Observation(
        mistake=mistake.name,
        quantity=mistake.quantity,
        what=subject.what,
        how="measured",
        wrong=reading(pairs.wrong),
        right=reading(pairs.right),
        detection=detection,
        factor=factor,
        rounds=len(pairs.right),
        environment=subject.environment,
    )


def no_sign(mistake: Mistake) -> Detection:
    """Return that nothing can be decided, and why: a mistake that leaves no sign in a result."""
    return Detection(None, mistake.why_none or "")


def _sentence(evidence: str) -> str:
    return f"{evidence[:1].upper()}{evidence[1:]}"
