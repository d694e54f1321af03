"""A server that an administrator watches and copies, as it is served."""

import os
import subprocess
import sys

import pytest

from scripts.app_server import served
from tests.features.admin.openmetrics_parser import parsed
from tests.ui.conftest import address, server_home
from tests.ui.test_server import got
from tests.ui.visitor import visiting

pytestmark = pytest.mark.long


def test_own_metrics_are_served_only_where_a_setting_says_so(address):
    assert got(address, "/metrics")[0] == 404


def test_an_administrator_watches_copies_and_cannot_pull_the_database_away(tmp_path):
    settings = {"GPUEXPLORE_SUPERVISOR": "external", "GPUEXPLORE_METRICS": "0123456789abcdef"}
    home = os.environ | {"GPUEXPLORE_HOME": str(tmp_path)}

    def told(*words):
        done = subprocess.run(
            [sys.executable, "-m", "gpuexplore", *words], env=home, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout + done.stderr

    with served(tmp_path, warm=False, settings=settings) as address:
        with visiting(address, "queue") as visitor:
            visitor.run()
            status, headers, text = got(address, "/metrics", Authorization="Bearer 0123456789abcdef")
            refused, *_ = got(address, "/metrics")
        copied = told("backup", str(tmp_path / "copy"))
        kept_away = told("restore", str(tmp_path / "copy"))

    values, _ = parsed(text)
    assert (status, refused) == (200, 401)
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert values[("gpuexplore_sessions", ())] == 1
    assert values[("gpuexplore_database_up", ())] == 1
    assert copied[0] == 0
    assert kept_away[0] == 2
    assert "another program has it open" in kept_away[1]
    assert told("restore", str(tmp_path / "copy"))[0] == 0
