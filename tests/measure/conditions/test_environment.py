"""What stands beside a number: known facts, and None for the rest."""

import os
import subprocess
from datetime import datetime, timedelta

import pytest

import gpuexplore
from gpuexplore.backends import load_backend
from gpuexplore.measure.conditions import environment as module
from gpuexplore.measure.conditions.environment import SETTINGS, describe_environment, git_commit, utc_now
from tests.measure.fakes import CPU, GPU


@pytest.fixture(autouse=True)
def _forget_commit():
    git_commit.cache_clear()
    yield
    git_commit.cache_clear()


def test_environment_tells_device_versions_threads_and_start():
    found = describe_environment(CPU, ["numpy", "torch", "numpy"], 3, now=lambda: "2026-01-02T03:04:05+00:00")

    assert (found.device, found.threads, found.started_utc) == (CPU, 3, "2026-01-02T03:04:05+00:00")
    assert found.app_version == gpuexplore.__version__
    assert {"numpy", "torch"} <= set(found.libraries)
    assert "numba" not in found.libraries


def test_libraries_of_another_kind_of_device_are_left_out():
    assert describe_environment(GPU, ["numpy"], None).libraries == {}


def test_library_that_is_not_installed_is_left_out(monkeypatch):
    monkeypatch.setattr(load_backend("torch"), "is_available", lambda: False)

    assert describe_environment(CPU, ["torch"], None).libraries == {}


def test_settings_are_those_that_are_set(monkeypatch):
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(os, "getpriority", lambda *_: 0)
    assert describe_environment(CPU, [], None).settings == {}

    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    monkeypatch.setenv("GPUEXPLORE_SECRET", "not for others")
    assert describe_environment(CPU, [], None).settings == {"OMP_NUM_THREADS": "2"}


def test_unusual_priority_is_a_setting(monkeypatch):
    monkeypatch.setattr(os, "getpriority", lambda *_: -10)

    assert describe_environment(CPU, [], None).settings["nice"] == "-10"


def test_now_is_utc_to_the_second():
    assert datetime.fromisoformat(utc_now()).utcoffset() == timedelta(0)
    assert "." not in utc_now()


def test_commit_is_unknown_outside_a_checkout(tmp_path, monkeypatch):
    monkeypatch.setattr(gpuexplore, "__file__", str(tmp_path / "gpuexplore" / "__init__.py"))

    assert git_commit() is None


def test_an_installed_wheel_names_the_commit_it_was_built_from(tmp_path, monkeypatch):
    (tmp_path / "commit").write_text("0123456789ab\n")
    monkeypatch.setattr(module, "COMMIT", tmp_path / "commit")

    assert git_commit() == "0123456789ab"


@pytest.mark.parametrize("error", [OSError("no git"), subprocess.CalledProcessError(128, "git")])
def test_commit_is_unknown_when_git_refuses(tmp_path, monkeypatch, error):
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(gpuexplore, "__file__", str(tmp_path / "gpuexplore" / "__init__.py"))

    def refuse(*arguments, **options):
        raise error

    monkeypatch.setattr(module.subprocess, "run", refuse)

    assert git_commit() is None


def test_commit_is_twelve_digits_in_a_checkout(tmp_path, monkeypatch):
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(gpuexplore, "__file__", str(tmp_path / "gpuexplore" / "__init__.py"))
    answer = subprocess.CompletedProcess([], 0, stdout="0123456789ab\n")
    monkeypatch.setattr(module.subprocess, "run", lambda *arguments, **options: answer)

    assert git_commit() == "0123456789ab"
