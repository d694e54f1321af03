"""The command line and the supervisor as they are, in a process that knows the plants: `run ...`, `supervisor ...`.

Only what they start differs: workers that know them too, and that need not hang for a minute to count as hanging.
"""

import sys
from functools import partial

from tests.measure.evil import catalogue
from tests.measure.evil.plant import BUILD_S

catalogue.register(setattr, dict.__setitem__)

from gpuexplore.cli import main, run_command  # noqa: E402 what knows the plants is imported after them
from gpuexplore.jobs import supervisor  # noqa: E402
from gpuexplore.jobs.engines.local import LocalEngine  # noqa: E402
from gpuexplore.jobs.engines.worker_process import WorkerLimits  # noqa: E402

LIMITS = WorkerLimits(build_s=BUILD_S, per_budget=20, round_s=3.0)


def execute(command: str, *arguments: str) -> int:
    """Run one of the two; return its exit code."""
    engine = partial(LocalEngine, runner="tests.measure.evil.runner", limits=LIMITS)
    for module in (run_command, supervisor):
        module.LocalEngine = engine  # type: ignore[attr-defined, misc]
    return supervisor.main(arguments) if command == "supervisor" else main([command, *arguments])


if __name__ == "__main__":
    sys.exit(execute(*sys.argv[1:]))
