"""What a run's results mean, in plain sentences built from the results and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass

from gpuexplore.analysis.run.evidence import Evidence, gather, measurement, name_of
from gpuexplore.analysis.run.summary_rules import RULES, missing_sentence
from gpuexplore.analysis.utilization.peak_choice import USUAL, Against, chosen
from gpuexplore.analysis.utilization.rates import bytes_per_s, flop_per_s, shape_label
from gpuexplore.analysis.utilization.utilization import PEAK_KINDS, compute_share
from gpuexplore.model import Result
from gpuexplore.units import format_bytes_per_s, format_flop_per_s, format_percent, format_seconds


@dataclass(frozen=True, slots=True)
class Summary:
    """What a run says.

    Attributes:
        headline: one sentence.
        details: further sentences, the most telling first.
    """

    headline: str
    details: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join((self.headline, *self.details))


def summarize(
    results: Sequence[Result], *, baseline: str | None = None, against: Against = USUAL, running: bool = False
) -> Summary:
    """Return what `results` mean; while `running` it speaks of what is there.

    Args:
        baseline: an implementation or a dtype; None is the operation's first implementation here.
        against: what the results are held against.
    """
    evidence = gather(results, baseline, against)
    if evidence is None:
        return _without_measurement(tuple(results), running)
    headline = _headline(evidence)
    if running:
        headline = f"So far: {headline[0].lower()}{headline[1:]}"
    return Summary(headline, tuple(dict.fromkeys(sentence for rule in RULES if (sentence := rule(evidence)))))


def _without_measurement(results: tuple[Result, ...], running: bool) -> Summary:
    headline = "Nothing is measured yet." if running or not results else "No case could be measured."
    missing = missing_sentence(results)
    return Summary(headline, (missing,) if missing else ())


def _headline(evidence: Evidence) -> str:
    place, alike = shape_label(evidence.shape), evidence.alike
    names = [name_of(result, evidence.results) for result in alike]
    if len(alike) > 1 and len(alike) == len(evidence.here):
        return f"At {place}, all {len(alike)} are about as fast: {_achieved(alike[0], evidence)}."
    if len(alike) > 1:
        listed = f"{', '.join(names[:-1])} and {names[-1]}"
        return f"At {place}, {listed} are about as fast, ahead of the rest: {_achieved(alike[0], evidence)}."
    claim = "takes" if len(evidence.here) == 1 else "is the fastest:"
    return f"At {place}, {names[0]} {claim} {_achieved(alike[0], evidence)}."


def _achieved(result: Result, evidence: Evidence) -> str:
    """Return time, rate and MFU with its peak, as far as they are known; without FLOPs the rate of memory."""
    parts = [format_seconds(measurement(result).median_s)]
    rate, peak = flop_per_s(result), chosen(result, evidence.against).peak
    share = compute_share(result, peak)
    parts.append(format_flop_per_s(rate) if rate else format_bytes_per_s(bytes_per_s(result)))
    if share is not None and peak is not None:
        parts.append(f"{format_percent(share)} of {PEAK_KINDS[peak.kind]}")
    return ", ".join(parts)
