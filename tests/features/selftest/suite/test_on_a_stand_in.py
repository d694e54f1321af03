"""A self-test from its command line to its report, on a GPU that is not there, and with a fault planted in it."""

import json
import os
import re
import subprocess
import sys

import pytest

from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK
from gpuexplore.features.selftest.suite.checks import CHECKS
from gpuexplore.recorded import validate
from tests.features.selftest.suite import stand_in
from tests.unchanged import heavy

LOADED = (f"gpuexplore.{name}" for name in ("__main__", "backends.*", "measure.*", "operations.*", "selftest.*"))
pytestmark = [
    pytest.mark.long,
    heavy(*LOADED, files=["tests/features/selftest/suite/worker.py"]),
]  # its clock is the stand-in's own
LIMIT_S = 1200  # for the whole of a self-test, however busy the machine is


@pytest.fixture
def selftest(tmp_path, repository):
    """Return how to run a self-test on the stand-in: its exit code, its report, and what it said."""

    def run(*words, checks="", operations="copy", fault=""):
        folder = tmp_path / "report"
        own = {
            "GPUEXPLORE_HOME": str(tmp_path / "home"),
            "PYTHONPATH": os.pathsep.join([str(repository), *sys.path]),
            stand_in.CHECKS: checks,
            stand_in.OPERATIONS: operations,
            stand_in.FAULT: fault,
            stand_in.GONE: str(tmp_path / "gone"),
            stand_in.STRUCK: str(tmp_path / "struck"),
        }
        done = subprocess.run(
            [
                sys.executable,
                "-P",
                "-m",
                "tests.features.selftest.suite.stand_in",
                "selftest",
                "--out",
                str(folder),
                *words,
            ],
            env=os.environ | own,
            capture_output=True,
            text=True,
            check=False,
            timeout=LIMIT_S,
        )
        assert (folder / "report.json").exists(), done.stderr
        return done, json.loads((folder / "report.json").read_text(encoding="utf-8")), folder

    return run


def verdicts(report):
    return {outcome["name"]: outcome["verdict"] for outcome in report["outcomes"]}


def said(report, name):
    (outcome,) = (outcome for outcome in report["outcomes"] if outcome["name"] == name)
    return " ".join(outcome["said"])


def figures(report, name):
    (outcome,) = (outcome for outcome in report["outcomes"] if outcome["name"] == name)
    return {figure["name"]: figure["value"] for figure in outcome["figures"]}


def test_every_check_runs_to_its_end_and_the_report_says_that_it_is_simulated(selftest):
    done, report, folder = selftest("--by", "a tester")
    page = (folder / "report.html").read_text(encoding="utf-8")

    assert verdicts(report) == {check.name: "pass" for check in CHECKS}, done.stdout
    assert done.returncode == EXIT_OK
    assert report["stand_in"] == stand_in.STAND_IN
    assert f"Simulated: {stand_in.STAND_IN}" in done.stdout
    assert "Simulated." in page
    assert not re.search(r"(?:src|href)=\"(?!#)", page), "it has to be readable with nothing beside it"
    assert figures(report, "environment")["driver"] == "580.65.06"
    assert figures(report, "timer")["torch, 100 µs, cold"] == pytest.approx(100e-6, rel=0.05)
    assert figures(report, "survival")["selftest-out-of-memory-torch"] == "out_of_memory"
    assert 0.85 < figures(report, "bandwidth")["of the peak"] < 0.95
    recording = validate(folder / "recording.jsonl")
    assert (recording.provenance.recorded_by, recording.missing) == ("a tester", ())


@pytest.mark.parametrize(
    ("fault", "sentences"),
    [
        (
            "double-timer,wrong-kernel,other-kernel",
            {
                "timer": "reads 200 µs for a kernel of 100 µs (warm): 2 times as long",
                "registers": "the kernel launched has 40 registers, the one shown 32",
                "correctness": "softmax m=255,n=257 fp32 numba-cuda ended incorrect",
            },
        ),
        ("hang", {"survival": "numba-cuda beside selftest-out-of-bounds ended timeout: no result within"}),
    ],
)
def test_faults_fail_their_checks_with_a_sentence_and_the_others_go_on(selftest, fault, sentences):
    checks = ",".join([*sentences, "clock"])
    done, report, _ = selftest("--quick", checks=checks, operations="softmax,matmul", fault=fault)

    assert verdicts(report) == dict.fromkeys(sentences, "fail") | {"clock": "pass"}, done.stdout
    for guilty, sentence in sentences.items():
        assert sentence in said(report, guilty)
        assert sentence in done.stdout
    assert done.returncode == EXIT_FAILED


@pytest.mark.parametrize(
    ("fault", "untried", "others"), [("old-driver", "torch", "pass"), ("older-driver", "numba_cuda, torch", "skipped")]
)
def test_nothing_is_right_of_libraries_whose_driver_is_too_old(selftest, fault, untried, others):
    done, report, _ = selftest("--quick", checks="environment,timer,bandwidth,correctness", fault=fault)

    assert verdicts(report) == {"environment": "fail", "timer": others, "bandwidth": others, "correctness": "skipped"}
    assert "torch 2.13.0 is built for CUDA 13.0, which needs driver 580.65.06" in said(report, "environment")
    assert f"libraries that do not run here were not tried: {untried}" in said(report, "correctness")
    assert (figures(report, "correctness")["right"] > 0) == (fault == "old-driver")
    assert done.returncode == EXIT_FAILED


def test_gpu_that_falls_off_the_bus_is_said_once_and_what_needs_it_is_skipped(selftest):
    done, report, _ = selftest("--quick", checks="environment,ladder,survival", fault="lost")

    assert verdicts(report) == {"environment": "pass", "ladder": "fail", "survival": "skipped"}
    assert "the driver has lost cuda:0 (Stand-in GPU): it fell off the bus or hangs" in done.stdout
    assert said(report, "survival").startswith("the GPU was lost")
    assert done.returncode == EXIT_FAILED
