"""`gpuexplore selftest`: the first contact with a device, and a report of it that can be sent."""

import argparse
import json
import os
import shlex
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import gpuexplore
from gpuexplore.cli import EXIT_FAILED, EXIT_OK
from gpuexplore.cli.output import check_writable, print_json
from gpuexplore.cli.streams import say
from gpuexplore.cli.turns import say_who_is_waited_for
from gpuexplore.devices import GPU_KINDS, device_named, discover
from gpuexplore.errors import InvalidInput
from gpuexplore.features.selftest.suite import page
from gpuexplore.features.selftest.suite.bench import DEFAULT_SOURCE, Bench
from gpuexplore.features.selftest.suite.checks import CHECKS
from gpuexplore.features.selftest.suite.contract import Outcome, Report
from gpuexplore.features.selftest.suite.run import carry_out
from gpuexplore.measure.conditions.environment import git_commit, utc_now
from gpuexplore.model import Device
from gpuexplore.serialization import encode

NO_GPU = (
    "No GPU was found on this machine, so the CPU was tested: one of NVIDIA needs its driver, and in a container "
    "`--gpus all`; docs/gpu.md says which driver."
)
STAND_IN = ""  # what stands in for the device; tests have one
CLEAR_LINE, MAX_SHOWN = "\r\033[K", 100
NUMBA_SIMULATOR = "NUMBA_ENABLE_CUDASIM is set: Numba's simulator stands in for the GPU."


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of `selftest`."""
    add = parser.add_argument
    add("--quick", action="store_true", help="two minutes instead of ten: fewer shapes and dtypes, no recording")
    add("--device", default="", metavar="ID", help="cpu, cuda:0, .. (default: the first GPU, else the CPU)")
    add("--json", action="store_true", help="print the report as JSON")
    add("--out", type=Path, metavar="FOLDER", help="for the report and the recording (default: selftest-<time>)")
    add("--html", type=Path, metavar="FILE.html", help="the page to send (default: report.html in that folder)")
    add("--by", default=DEFAULT_SOURCE, metavar="NAME", help="who measures, for the recording (default: %(default)s)")


def execute(arguments: argparse.Namespace) -> int:
    """Run every check, say on standard error how each ends, write the report, and print it."""
    devices = discover()
    device = device_named(arguments.device or _default(devices), _testable(devices))
    if arguments.html:
        check_writable(arguments.html, [".html"])
    if not arguments.by.strip():
        raise InvalidInput.of("--by", arguments.by, "names: who measures, and answers questions")
    started_utc, began_s = utc_now(), time.monotonic()
    bench = Bench(device, is_quick=arguments.quick, folder=_folder(arguments.out, started_utc), by=arguments.by)
    bench.progress = _show
    say_who_is_waited_for(device)
    try:
        outcomes = carry_out(CHECKS, bench, report=_tell)
    finally:
        bench.release()
    report = Report(
        started_utc=started_utc,
        app_version=gpuexplore.__version__,
        commit=git_commit(),
        command=command_of(arguments, device),
        device=bench.device,
        is_quick=arguments.quick,
        lasted_s=time.monotonic() - began_s,
        outcomes=outcomes,
        stand_in=NUMBA_SIMULATOR if os.environ.get("NUMBA_ENABLE_CUDASIM", "0") != "0" else STAND_IN,
        no_gpu=NO_GPU if device.kind == "cpu" and not arguments.device else "",
    )
    _write(report, bench.folder, arguments.html or bench.folder / "report.html")
    if arguments.json:
        print_json(encode(report))
    else:
        print(page.text(report))
    return EXIT_FAILED if report.has_failed or report.is_interrupted else EXIT_OK


def command_of(arguments: argparse.Namespace, device: Device) -> str:
    """Return the command that repeats the test, without names of files."""
    words = ["gpuexplore", "selftest", *(["--quick"] if arguments.quick else []), "--device", device.id]
    return shlex.join(words)


def _testable(devices: Sequence[Device]) -> list[Device]:
    """Return the devices that something can be measured on."""
    return [device for device in devices if not device.is_simulated]


def _default(devices: Sequence[Device]) -> str:
    """Return the id of the first GPU, one of NVIDIA's where there is one, else of the CPU."""
    gpus = [device for device in devices if device.kind in GPU_KINDS]
    return next((device.id for device in sorted(gpus, key=lambda gpu: gpu.kind != "cuda")), devices[0].id)


def _folder(given: Path | None, started_utc: str) -> Path:
    """Return the folder of the report, which is made where it is not there.

    Raises:
        InvalidInput: it holds a report already, or cannot be made.
    """
    folder = given or Path(f"selftest-{started_utc[:19].replace(':', '').replace('-', '')}")
    try:
        folder.mkdir(exist_ok=True)
        if next(folder.iterdir(), None):
            raise InvalidInput.of("--out", folder, "folders that are empty or not there yet: no report is overwritten")
    except OSError as error:
        raise InvalidInput.of("--out", folder, f"folders that can be made; this one: {error.strerror}") from error
    return folder


def _write(report: Report, folder: Path, page_file: Path) -> None:
    (folder / "report.json").write_text(json.dumps(encode(report), indent=2, allow_nan=False), encoding="utf-8")
    (folder / "report.txt").write_text(page.text(report) + "\n", encoding="utf-8")
    page_file.write_text(page.html(report), encoding="utf-8")
    say(f"The report to send is {page_file}; {folder} has it as JSON and text, and the recording, if there is one.")


def _show(doing: str) -> None:
    """Say what is being done, on one line of a terminal."""
    if sys.stderr.isatty():
        print(f"{CLEAR_LINE}{doing[:MAX_SHOWN]}", end="", file=sys.stderr, flush=True)


def _tell(outcome: Outcome) -> None:
    say((CLEAR_LINE if sys.stderr.isatty() else "") + page.outcome_line(outcome))
