"""`repeatability`: what fresh processes tell of a machine, kept for its later runs."""

import pytest

from gpuexplore.cli import main, repeatability_command
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.model import Case, Flag, Measurement, Options, Result, Shape, Status
from gpuexplore.hardware import discover
from gpuexplore.measure.conditions.repeatability import _load_repeatability

CASE = Case("vector_add", Shape.of(n=1000), "fp32", "numpy", "cpu", Options())
CONTENDED = Flag("contended", "other work took 50 % of the CPU meanwhile")


@pytest.fixture
def processes(monkeypatch, tmp_path):
    """Have processes return made medians; gets those, with their flags."""
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))

    def made(*results):
        left = iter(results)
        monkeypatch.setattr(repeatability_command, "_in_a_fresh_process", lambda device: (device, {CASE: next(left)}))

    return made


def ok(median_s, *flags):
    return Result(CASE, Status.OK, measurement=Measurement((median_s,) * 6, 1.0), flags=flags)


def test_the_table_is_printed_and_kept_for_this_processor(processes, capsys):
    processes(*(ok(1e-6 * factor) for factor in (1.0, 1.1, 0.9, 1.0, 1.05)))

    assert main(["repeatability", "--processes", "5"]) == EXIT_OK

    printed = capsys.readouterr().out
    (spread,) = _load_repeatability(discover()[0]).spreads
    assert (spread.library, spread.deviation) == ("numpy", pytest.approx(0.226, abs=0.01))
    assert "numpy    ±22" in printed
    assert "in 5 processes" in printed


def test_disturbed_processes_teach_nothing(processes, capsys):
    processes(*(ok(1e-6) for _ in range(4)), ok(9e-6, CONTENDED))

    assert main(["repeatability", "--processes", "5"]) == EXIT_FAILED

    assert "No result: the CPU was busy" in capsys.readouterr().out
    assert _load_repeatability(discover()[0]) is None


@pytest.mark.parametrize("count", ["4", "61", "", "many", "1e9", "-5"])
def test_a_bad_number_of_processes_is_named(processes, capsys, count):
    processes()

    assert main(["repeatability", f"--processes={count}"]) == EXIT_UNUSABLE

    assert f"{count!r}: expected 5 to 60" in capsys.readouterr().err


def test_an_unknown_device_is_named(processes, capsys):
    processes()

    assert main(["repeatability", "--device", "cuda:7"]) == EXIT_UNUSABLE

    assert "cuda:7" in capsys.readouterr().err


def test_groups_span_the_caches_with_every_usual_implementation():
    groups = list(repeatability_command._groups(discover()[0]))

    assert {case.operation for group in groups for case in group} == {"vector_add", "matmul"}
    assert all({case.implementation for case in group} == {"numpy", "numba-cpu", "torch"} for group in groups)
