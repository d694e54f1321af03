"""Stands in for `gpuexplore.recorded` until there are recordings: there are none."""

from gpuexplore.model import Result


def recorded_results() -> tuple[tuple[object, Result], ...]:
    """Return every recorded result with its recording."""
    return ()


def run_id(recording: object, result: Result) -> str:
    """Return what a link to the recording's run names."""
    raise NotImplementedError(f"there are no recordings, so none is {recording} or of {result.case}")
