"""What is told of implementations of users: that one is wrong elsewhere, or uses more than it was given."""

from gpuexplore.analysis.model import AnalyzedResult, Diagnosis


def fragile(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say on which inputs it is wrong, although it is right where it was timed."""
    flag = analyzed.flag("fragile")
    if flag is None:
        return None
    sentence = f"{analyzed.label} is fragile: right where it was timed, and {flag.evidence}."
    return Diagnosis("fragile", sentence, "inputs beside the timed ones, once each", "doubt")


def extra_threads(analyzed: AnalyzedResult) -> Diagnosis | None:
    """Say that it uses threads of its own: its time is not comparable with that of others."""
    flag = analyzed.flag("extra_threads")
    if flag is None:
        return None
    sentence = f"{analyzed.label} uses threads of its own: compare it with others on as many."
    return Diagnosis("extra_threads", sentence, flag.evidence, "doubt")
