"""What the results of an experiment are to be compared with, from what a user typed: in a URL, a shell or Python."""

from gpuexplore.analysis.model import Comparison
from gpuexplore.analysis.speedup import default_baseline
from gpuexplore.analysis.utilization.peak_choice import peak_kind
from gpuexplore.errors import InvalidInput
from gpuexplore.model import Experiment


def comparison_for(experiment: Experiment, baseline: str = "", peak: str = "") -> Comparison:
    """Return the comparison; an empty text stands for the default.

    Raises:
        InvalidInput: the baseline is not among the experiment's implementations and dtypes, or no such kind of peak.
    """
    accepted = baselines(experiment)
    if baseline and baseline not in accepted:
        raise InvalidInput.of("baseline", baseline, accepted)
    return Comparison(baseline or accepted[0], peak_kind(peak))


def baselines(experiment: Experiment) -> tuple[str, ...]:
    """Return what a speedup can be over: the default first, then the other implementations, then the dtypes."""
    default = default_baseline(experiment.operation, experiment.implementations)
    names = sorted(experiment.implementations, key=lambda name: name != default)
    return (*names, *experiment.dtypes)
