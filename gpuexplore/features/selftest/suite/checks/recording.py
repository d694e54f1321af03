"""The check that `record` writes a file that `record --check` takes: what to send for the table of GPUs."""

import os
import subprocess
import sys
from collections import Counter
from signal import SIGINT

from gpuexplore.core import InvalidInput, Status
from gpuexplore.features.selftest.suite.contract import (
    Bench,
    CheckFigure,
    CheckFinding,
    SelfCheck,
    ended,
    judged,
    skipped,
)
from gpuexplore.measure.conditions.environment import git_commit
from gpuexplore.operations import OPERATIONS
from gpuexplore.recorded import Recording, validate

COMMAND = (sys.executable, "-P", "-m", "gpuexplore")
FILE = "recording.jsonl"
GRACE_S = 5.0


def _run(bench: Bench) -> CheckFinding:
    """Return what was recorded: on a GPU the default sizes of every operation, as far as the time is enough."""
    if git_commit() is None:
        return skipped(
            "a recording needs the commit of the code, but this is not a git checkout: use `record --commit`"
        )
    names = ("matmul", "vector_add", "softmax") if bench.device.kind == "cpu" else tuple(OPERATIONS)
    said, is_ended = _recorded(bench, names)
    path = bench.folder / FILE
    if not path.exists() and not is_ended:
        return skipped(bench.no_answer())
    if not path.exists():
        return judged([f"no recording was written: {(said.splitlines() or ['no output'])[-1]}"], [])
    try:
        return _judged(validate(path))
    except InvalidInput as error:
        return judged([f"`record --check` rejects it: {error}"], [])


def _recorded(bench: Bench, names: tuple[str, ...]) -> tuple[str, bool]:
    """Run `record` until it ends, or until the time is over; it keeps what it has.

    Returns:
        What it said, and whether it ended by itself.
    """
    words = ["record", *names, "--device", bench.device.id, "--by", bench.by, "--out", FILE]
    bench.progress(" ".join(words))
    bench.release()  # or its worker would be another process on the GPU
    process = subprocess.Popen(
        [*COMMAND, *words],
        cwd=bench.folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        return process.communicate(timeout=max(0.0, bench.left_s() - GRACE_S))[1].strip(), True
    except subprocess.TimeoutExpired:
        process.send_signal(SIGINT)
    try:
        return process.communicate(timeout=GRACE_S)[1].strip(), False
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[1].strip(), False


def _judged(recording: Recording) -> CheckFinding:
    counts = Counter(result.status for result in recording.results)
    figures = [CheckFigure(str(status), count, note="cases") for status, count in counts.most_common()]
    figures.append(CheckFigure("out of time for", len(recording.missing), note="cases"))
    wrong = (Status.INCORRECT, Status.CRASHED, Status.ERROR)
    problems = [ended(result) for result in recording.results if result.status in wrong]
    none = "" if counts[Status.OK] else f"none of {len(recording.results)} cases ended ok"
    if none and not recording.missing:
        problems.append(none)
    notes: tuple[str, ...] = (f"{FILE} is next to this report.",)
    if recording.missing:
        notes += (f"Out of time before all cases were recorded: `{recording.provenance.command}` records all of them.",)
    return judged(problems, figures, notes, untried=none and f"out of time: {none}" if recording.missing else "")


CHECK = SelfCheck("recording", "A recording with provenance", _run, needs_s=20.0, share=0.9, in_quick=False)
