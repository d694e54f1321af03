"""The systemd units name what exists, and systemd understands them."""

import subprocess
import sys
from configparser import ConfigParser
from shutil import which

import pytest

from tests.docs.markdown import ROOT

UNITS = sorted((ROOT / "deploy").glob("*.service"))
INSTALLED = "/opt/gpuexplore"


def service_of(path):
    """Return the settings of a unit's service; of those given twice, the last."""
    parser = ConfigParser(strict=False, interpolation=None)
    parser.optionxform = str
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser["Service"]


def test_there_is_a_unit_for_each_process():
    assert [path.stem for path in UNITS] == ["gpuexplore-supervisor", "gpuexplore-web"]


def test_the_supervisor_is_watched_by_systemd():
    service = service_of(ROOT / "deploy" / "gpuexplore-supervisor.service")

    assert service["Type"] == "notify"
    assert 0 < int(service["WatchdogSec"]) <= 20
    assert service["ExecStart"].endswith("-m gpuexplore.jobs.supervisor")


def test_the_web_server_starts_no_supervisor_of_its_own():
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
    verified = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert str(tmp_path) not in verified.stderr
    assert verified.returncode == 0, verified.stderr
