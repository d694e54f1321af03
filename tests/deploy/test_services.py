"""The systemd units name what exists, systemd understands them, and what they start does what they say."""

import os
import re
import shlex
import signal
import socket
import subprocess
import sys
from configparser import ConfigParser
from pathlib import Path
from shutil import which

import pytest

from tests.docs.markdown import ROOT
from tests.waiting import DEADLINE_S

UNITS = sorted((ROOT / "deploy").glob("*.service"))
INSTALLED = "/opt/gpuexplore"


def service_of(path):
    """Return the settings of a unit's service; of those given twice, the last."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser["Service"]


def test_systemd_watches_the_supervisor_and_the_web_server_starts_none_of_its_own():
    assert [path.stem for path in UNITS] == ["gpuexplore-supervisor", "gpuexplore-web"]
    service = service_of(ROOT / "deploy" / "gpuexplore-supervisor.service")

    assert service["Type"] == "notify"
    assert 0 < int(service["WatchdogSec"]) <= 20
    assert service["ExecStart"].endswith("-m gpuexplore.jobs.supervisor")
    assert "Environment=GPUEXPLORE_SUPERVISOR=external" in (ROOT / "deploy" / "gpuexplore-web.service").read_text()


@pytest.mark.parametrize("path", UNITS, ids=lambda path: path.stem)
def test_systemd_accepts_the_unit(path, tmp_path):
    if not which("systemd-analyze"):
        pytest.skip("systemd-analyze is not installed")
    for unit in UNITS:  # one names the other
        text = unit.read_text(encoding="utf-8").replace("User=gpuexplore", "User=root")
        python = text.replace(f"{INSTALLED}/.venv/bin/streamlit", sys.executable)
        here = python.replace(f"{INSTALLED}/.venv/bin/python", sys.executable).replace(INSTALLED, str(ROOT))
        (tmp_path / unit.name).write_text(here, encoding="utf-8")
    command = ["systemd-analyze", "verify", "--man=no", tmp_path / path.name]
    verified = subprocess.run(command, capture_output=True, text=True, timeout=DEADLINE_S, check=False)

    assert str(tmp_path) not in verified.stderr
    assert verified.returncode == 0, verified.stderr


@pytest.mark.slow
def test_the_supervisor_of_the_unit_tells_systemd_that_it_is_alive_and_stops_in_good_order(tmp_path):
    unit = ROOT / "deploy" / "gpuexplore-supervisor.service"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as told:
        told.bind(str(tmp_path / "notify"))
        told.settimeout(60)
        process = started(unit, tmp_path, NOTIFY_SOCKET=str(tmp_path / "notify"))
        try:
            said = {told.recv(1000).decode() for _ in range(5)}
        finally:
            process.send_signal(signal.SIGTERM)
            code = process.wait(int(service_of(unit)["TimeoutStopSec"]))

    assert said >= {"READY=1", "WATCHDOG=1"}
    assert code == 0


def started(unit, home, **environment):
    """Start the program of a unit as systemd would, here, with a home of its own."""
    text = unit.read_text(encoding="utf-8")
    settings = dict(line.split("=", 1) for line in re.findall("^Environment=(.+)$", text, re.M))
    program, *arguments = shlex.split(service_of(unit)["ExecStart"])
    binary = Path(sys.executable).parent / Path(program).name
    own = {"GPUEXPLORE_HOME": str(home), "PYTHONPATH": str(ROOT), **environment}
    return subprocess.Popen([binary, *arguments], cwd=ROOT, env=os.environ | settings | own)
