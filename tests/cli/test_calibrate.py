"""`gpuexplore calibrate`: runs that are kept, and what they change."""

from gpuexplore.cli import calibrate_command, main
from gpuexplore.cli.output import EXIT_OK
from gpuexplore.core.model import Experiment, Shape
from gpuexplore.hardware import discover
from gpuexplore.store import open_store
from gpuexplore.store.listing import Wanted

SMALL = Experiment("matmul", (Shape.of(m=64, k=64, n=64),), ("fp32",), ("torch",), ("cpu",))


def test_its_runs_are_titled_and_the_next_one_predicts_from_them(answered, monkeypatch, capsys):
    monkeypatch.setattr(calibrate_command, "sweep_of", lambda _: (SMALL,))

    code, told = answered("calibrate", "--device", "cpu", "--json")
    assert code == EXIT_OK
    first, *others = told["cases"]
    assert first["measured_s"] > 0
    assert len(others) > 3
    assert all(case["measured_s"] is None and case["now"]["time_s"] for case in others)
    assert told["unlike_its_kind"] == []

    with open_store() as store:
        (run,) = store.listed(Wanted())
        results = store.load(run.id).results
    monkeypatch.setattr(calibrate_command, "measure", lambda *_: results)
    assert main(["calibrate"]) == EXIT_OK
    said = capsys.readouterr().out
    assert "Predicted before (9 in 10 within)" in said
    assert "not measured" in said
    with open_store() as store:
        assert [run.title for run in store.listed(Wanted())] == ["Calibration", "Calibration"]
        assert store.measured_results(discover()[0])
