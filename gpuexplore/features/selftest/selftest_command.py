"""`gpuexplore selftest`: the first contact with a device, and a report of it that can be sent."""

import argparse
import json
import re
import shlex
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from getpass import getuser
from pathlib import Path
from platform import node

import gpuexplore
from gpuexplore.cli.device_locking import report_lock_holder
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, check_writable, declare, print_json, say
from gpuexplore.core import Device, InvalidInput, encode, format_seconds, format_whole_seconds, require
from gpuexplore.features.selftest.suite.checks import CHECKS
from gpuexplore.features.selftest.suite.contract import (
    DEFAULT_SOURCE,
    FULL_S,
    INTERRUPTED,
    QUICK_S,
    Bench,
    CheckFigure,
    CheckFinding,
    CheckOutcome,
    CheckVerdict,
    SelfCheck,
    SelftestReport,
    report_html,
    skipped,
)
from gpuexplore.hardware import GPU_KINDS, device_named, discover
from gpuexplore.measure.candidates.failure import describe_error
from gpuexplore.measure.conditions.environment import git_commit, utc_now

RESERVE_S = 8.0  # to end what runs, and to write the report

STAND_IN = ""  # what stands in for the device; tests have one
CLEAR_LINE = "\r\033[K"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `selftest`."""
    declare(
        parser,
        {
            "--quick": "two minutes instead of ten: fewer shapes and dtypes, no recording",
            "--device ID": {"default": "", "help": "cpu, cuda:0, .. (default: the first GPU, else the CPU)"},
            "--json": "print the report as JSON",
            "--out FOLDER": {
                "type": Path,
                "help": "folder for the report and the recording (default: selftest-<time>)",
            },
            "--html FILE.html": {"type": Path, "help": "the HTML report to send (default: report.html in that folder)"},
            "--by NAME": {
                "default": DEFAULT_SOURCE,
                "help": "name of the person who measures, for the recording (default: %(default)s)",
            },
        },
    )


def execute(arguments: argparse.Namespace) -> int:
    """Run every check, say on standard error how each ends, write the report, and print it."""
    devices = discover()
    device = device_named(
        arguments.device or _default(devices), [device for device in devices if not device.is_simulated]
    )
    if arguments.html:
        check_writable(arguments.html, [".html"])
    require(arguments.by.strip(), "--by", arguments.by, "the name of the person who measures and can answer questions")
    started_utc = utc_now()
    began_s = time.monotonic()
    bench = Bench(device, is_quick=arguments.quick, folder=_folder(arguments.out, started_utc), by=arguments.by)
    bench.progress = _show
    report_lock_holder(device)
    try:
        outcomes = _carry_out(CHECKS, bench, report=_tell)
    finally:
        bench.release()
    no_gpu = (
        "No GPU was found on this machine, so the CPU was tested. An NVIDIA GPU needs its driver (see docs/gpu.md), "
        "and in a container `--gpus all`."
    )
    # The command that repeats the test, without names of files.
    words = ["gpuexplore", "selftest", *(["--quick"] if arguments.quick else []), "--device", device.id]
    report = SelftestReport(
        started_utc=started_utc,
        app_version=gpuexplore.__version__,
        commit=git_commit(),
        command=shlex.join(words),
        device=bench.device,
        is_quick=arguments.quick,
        lasted_s=time.monotonic() - began_s,
        outcomes=outcomes,
        stand_in=STAND_IN,
        no_gpu=no_gpu if device.kind == "cpu" and not arguments.device else "",
    )
    _write(report, bench.folder, arguments.html or bench.folder / "report.html")
    if arguments.json:
        print_json(encode(report))
    else:
        print(_report_text(report))
    return EXIT_FAILED if report.has_failed or report.is_interrupted else EXIT_OK


def _default(devices: Sequence[Device]) -> str:
    """Return the id of the first GPU, one of NVIDIA's where there is one, else of the CPU."""
    gpus = [device for device in devices if device.kind in GPU_KINDS]
    return next((device.id for device in sorted(gpus, key=lambda gpu: gpu.kind != "cuda")), devices[0].id)


def _folder(given: Path | None, started_utc: str) -> Path:
    """Return the folder of the report, which is made where it is not there.

    Raises:
        InvalidInput: a report is in it already, or it cannot be made.
    """
    folder = given or Path(f"selftest-{started_utc[:19].replace(':', '').replace('-', '')}")
    try:
        folder.mkdir(exist_ok=True)
        if next(folder.iterdir(), None):
            raise InvalidInput.of("--out", folder, "empty or new folders: no report is overwritten")
    except OSError as error:
        raise InvalidInput.of("--out", folder, f"folders that can be created; this one: {error.strerror}") from error
    return folder


def _write(report: SelftestReport, folder: Path, page_file: Path) -> None:
    (folder / "report.json").write_text(json.dumps(encode(report), indent=2, allow_nan=False), encoding="utf-8")
    (folder / "report.txt").write_text(_report_text(report) + "\n", encoding="utf-8")
    page_file.write_text(report_html(report), encoding="utf-8")
    say(f"The report to send is {page_file}; {folder} has it as JSON and text, and the recording, if there is one.")
    say("To make this device a row of the atlas, run `gpuexplore atlas add RECORDING` in a checkout and send the file.")


def _show(doing: str) -> None:
    """Say what is being done, on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"{CLEAR_LINE}{doing[:100]}", end="", file=sys.stderr, flush=True)


def _tell(outcome: CheckOutcome) -> None:
    say((CLEAR_LINE if sys.stderr.isatty() else "") + _outcome_line(outcome))


# One check after the other, within the time there is: what fails, fails alone, and what no longer fits says so.


def _carry_out(
    checks: Sequence[SelfCheck], bench: Bench, *, report: Callable[[CheckOutcome], None], total_s: float | None = None
) -> tuple[CheckOutcome, ...]:
    """Return how each check ended on `bench`.

    Args:
        checks: in this order.
        bench: the device.
        report: called with each outcome as it comes.
        total_s: seconds for all of them; None: ten minutes, or two for the quick test.
    """
    limit_s = total_s or (QUICK_S if bench.is_quick else FULL_S)
    outcomes: list[CheckOutcome] = []
    for outcome in _outcomes(checks, bench, limit_s - RESERVE_S):
        outcomes.append(outcome)
        report(outcome)
    return tuple(outcomes)


def _outcomes(checks: Sequence[SelfCheck], bench: Bench, limit_s: float) -> Iterator[CheckOutcome]:
    began_s = time.monotonic()
    stopped = ""
    for check in checks:
        check_began_s = time.monotonic()
        left_s = limit_s - (check_began_s - began_s)
        reason = _why_not(check, bench, left_s, stopped)
        if reason:
            finding = skipped(reason)
        else:
            bench.allow(min(left_s, check.share * limit_s))
            finding, stopped = _found(check, bench)
        said = tuple(map(_without_names, finding.said))
        figures = tuple(map(_figure, finding.figures))
        yield CheckOutcome(check.name, check.title, finding.verdict, said, figures, time.monotonic() - check_began_s)


def _why_not(check: SelfCheck, bench: Bench, left_s: float, stopped: str) -> str:
    """Return why a check is skipped; an empty text where it is run."""
    if bench.device.kind not in check.kinds:
        return f"it needs a device of kind {' or '.join(check.kinds)}, not {bench.device.id}"
    if bench.is_quick and not check.in_quick:
        return "not part of the quick test"
    if stopped or left_s >= check.needs_s:
        return stopped
    return f"out of time: it needs {format_whole_seconds(check.needs_s)}, and {max(0.0, left_s):.0f} s are left"


def _found(check: SelfCheck, bench: Bench) -> tuple[CheckFinding, str]:
    """Return what a check found, and why no other one is worth a try: an empty text, nearly always."""
    try:
        finding = check.run(bench)
    except KeyboardInterrupt:
        return skipped(INTERRUPTED), INTERRUPTED
    except Exception as error:
        finding = CheckFinding(CheckVerdict.FAIL, (describe_error(error),))
    if lost := bench.lost():
        return CheckFinding(CheckVerdict.FAIL, (lost, *finding.said), finding.figures), f"the GPU was lost: {lost}"
    return finding, ""


# Leaves out of what a report says whose machine it was: errors of libraries contain paths, and paths contain names.


def _without_names(text: str) -> str:
    """Return `text` with `~` for the home folder, and without the user in paths and the host.

    Elsewhere a user's name stays: it may be a word of the text.
    """
    for pattern, instead in _patterns():
        text = pattern.sub(instead, text)
    return text


def _figure(figure: CheckFigure) -> CheckFigure:
    value = _without_names(figure.value) if isinstance(figure.value, str) else figure.value
    return replace(figure, value=value, note=_without_names(figure.note))


def _patterns() -> Iterator[tuple[re.Pattern[str], str]]:
    """Yield what is replaced, and by what."""
    home = Path("~").expanduser()
    for folder in dict.fromkeys((home, home.resolve())):
        if folder.is_absolute() and folder != Path(folder.anchor):
            yield re.compile(re.escape(str(folder)) + r"(?![\w.-])"), "~"
    with suppress(KeyError, OSError, ImportError):  # a number without a name, as in a container
        yield re.compile(rf"(?<=[/\\_-]){re.escape(getuser())}(?=[/\\])"), "<user>"
    host = node()
    for name in filter(None, dict.fromkeys((host, host.partition(".")[0]))):
        yield re.compile(rf"(?<![\w.-]){re.escape(name)}(?![\w-])"), "<host>"


# The report as lines for a terminal.


def _report_text(report: SelftestReport) -> str:
    """Return the report as lines for a terminal."""
    notes = (report.stand_in and f"Simulated: {report.stand_in}", report.no_gpu)  # before any figure
    lines = [report.headline, *(f"  {note}" for note in notes if note)]
    for outcome in report.outcomes:
        lines += ["", _outcome_line(outcome), *(f"  {sentence}" for sentence in outcome.said)]
        width = max((len(figure.name) for figure in outcome.figures), default=0)
        lines += [
            f"    {figure.name.ljust(width)}  {figure.text}{f'  ({figure.note})' if figure.note else ''}"
            for figure in outcome.figures
        ]
    return "\n".join(lines)


def _outcome_line(outcome: CheckOutcome) -> str:
    """Return how a check ended, in a line."""
    took = f"  ({format_seconds(outcome.lasted_s)})" if outcome.lasted_s >= 0.01 else ""
    return f"{outcome.verdict.upper():7}  {outcome.title}{took}"
