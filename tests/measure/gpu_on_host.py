"""What is measured on a GPU that is the host, and what that takes."""

from itertools import accumulate

from torch.profiler import ProfilerActivity, profile

from gpuexplore.core.model import Result
from gpuexplore.measure.runner import measure_group
from tests.measure.fakes import QUIET, FakeClock, run_with


def measured_there(asked, device):
    """Return the result of a case on `device`."""
    results = []
    measure_group([asked], device, **run_with(results.append, clock=FakeClock(tick_ns=1_000_000), isolation=QUIET))
    (result,) = (event for event in results if isinstance(event, Result))
    return result


def peak_bytes(work):
    """Return the most bytes of tensors that `work` holds at once, by the allocations that torch's profiler sees."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiled:
        kept = work()
    events = [event for event in profiled.profiler.kineto_results.events() if event.name() == "[memory]"]
    del kept
    return max(accumulate(event.nbytes() for event in sorted(events, key=lambda event: event.start_ns())), default=0)
