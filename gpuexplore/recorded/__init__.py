"""Results measured on real hardware, shipped as data with their provenance: a file in `data/` is all it takes.

`gpuexplore record` writes such files; `validate` refuses one that does not say where its numbers come from.
"""

from gpuexplore.recorded.catalog import (
    recorded_results,
    recorded_run,
    recording_named,
    recording_of_run,
    recordings,
    recordings_of,
    refusals,
)
from gpuexplore.recorded.provenance import Provenance, header, missing_provenance
from gpuexplore.recorded.recording import RUN_PREFIX, Recording, run_id, run_id_of
from gpuexplore.recorded.validation import check_commit, validate

__all__ = [
    "RUN_PREFIX",
    "Provenance",
    "Recording",
    "check_commit",
    "header",
    "missing_provenance",
    "recorded_results",
    "recorded_run",
    "recording_named",
    "recording_of_run",
    "recordings",
    "recordings_of",
    "refusals",
    "run_id",
    "run_id_of",
    "validate",
]
