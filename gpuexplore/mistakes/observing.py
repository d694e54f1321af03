"""From what was found on both ways to the observation that is shown."""

from gpuexplore.mistakes.contract import Finding, Mistake, Observation
from gpuexplore.mistakes.subject import Subject
from gpuexplore.mistakes.turns import Pairs, reading
from gpuexplore.units import format_interval

WITHIN_NOISE = "the two ways agree within the noise on this machine"


def from_pairs(mistake: Mistake, pairs: Pairs, subject: Subject, finding: Finding) -> Observation:
    """Return the observation of two ways that were sampled in turns.

    Where their factor cannot be told from 1, the mistake is not claimed to have been seen.
    """
    factor = pairs.factor
    if factor.is_within_noise:
        interval = format_interval(factor.ci95, "{:.3f}".format)
        finding = Finding(None, f"{WITHIN_NOISE}: a factor of {interval}. {_sentence(finding.evidence)}")
    return Observation(
        mistake=mistake.name,
        quantity=mistake.quantity,
        what=subject.what,
        how="measured",
        wrong=reading(pairs.wrong),
        right=reading(pairs.right),
        finding=finding,
        factor=factor,
        rounds=len(pairs.right),
        environment=subject.environment,
    )


def no_sign(mistake: Mistake) -> Finding:
    """Return the finding on a mistake that leaves no sign in a result."""
    return Finding(None, mistake.why_none or "")


def _sentence(evidence: str) -> str:
    return f"{evidence[:1].upper()}{evidence[1:]}"
