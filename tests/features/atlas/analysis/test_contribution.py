"""Recordings for the atlas: real ones are taken, invented ones are refused."""

import json
from math import prod
from statistics import median

import pytest

from gpuexplore import recorded
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.atlas.analysis import contribution as module
from gpuexplore.features.atlas.analysis.contribution import contribution, written

PRODUCTS, MEMORY = (recorded.FOLDER / f"nvidia-h100-{name}.jsonl" for name in ("products", "memory"))


@pytest.fixture
def spoilt(tmp_path):
    """Return how to write a copy of a recording whose header and results were changed."""

    def spoil(change, source=PRODUCTS):
        lines = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
        lines = [line for line in lines if line.get("measurement") or "devices" in line]
        change(lines[0], lines[1:])
        path = tmp_path / "copy.jsonl"
        path.write_text("\n".join(map(json.dumps, lines)) + "\n", encoding="utf-8")
        return path

    return spoil


@pytest.mark.parametrize("path", sorted(recorded.FOLDER.glob("*.jsonl")), ids=lambda path: path.stem)
def test_recordings_that_ship_are_taken_also_under_another_name_and_commit(tmp_path, path):
    text = path.read_text(encoding="utf-8")
    commit = json.loads(text.partition("\n")[0])["commit"]
    copy = tmp_path / "new.jsonl"
    copy.write_text(text.replace(commit, "0123456789ab"[: len(commit)]), encoding="utf-8")

    found = contribution(copy)

    assert found.judged > 0
    assert found.points.total() == 0 if "-cores-" in path.stem else found.points.total() > 0


def scaled(factor):
    def change(_, measured):
        for line in measured:
            line["measurement"]["samples_s"] = [each * factor for each in line["measurement"]["samples_s"]]

    return change


def copied(_, measured):
    measured[1]["measurement"]["samples_s"] = [2 * each for each in measured[0]["measurement"]["samples_s"]]


def proportional(_, measured):
    for line in measured:
        work = prod(length for _, length in line["case"]["shape"]["axes"])
        samples = line["measurement"]["samples_s"]
        line["measurement"]["samples_s"] = [each / median(samples) * work * 1e-12 for each in samples]


def fact(name, value):
    def change(header, measured):
        for device in (header["devices"][0], *(line["environment"]["device"] for line in measured)):
            device[name] = value

    return change


def faster_peak(header, _):
    header["devices"][0]["peaks"][0]["flop_per_s"] *= 2


def first(**measurement):
    """Return how to change the measurement of the first result."""

    def change(_, measured):
        measured[0]["measurement"].update(measurement)

    return change


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (scaled(1e-2), "below"),
        (first(samples_s=[1e-2] * 20), "have no spread"),
        (first(samples_s=[1e-2 + step * 1e-5 for step in range(20)]), "change by the same step"),
        (copied, "has the samples of"),
        (proportional, "exactly proportional to their FLOPs"),
        (first(median_s=1e-9), "states a median of"),
        (first(ci95_s=[1e-9, 2e-9]), "does not contain the median"),
        (fact("cores", 100), "multiprocessors"),
        (fact("memory_bytes", 40 * 2**30), "of memory"),
        (fact("compute_capability", "8.0"), "compute capability 8.0, the table 9.0"),
        (faster_peak, "FLOP/s, the table"),
    ],
)
def test_inventions_are_refused_with_a_sentence(spoilt, change, words):
    with pytest.raises(InvalidInput, match=words):
        contribution(spoilt(change))
    with pytest.raises(InvalidInput, match="memory limit"):
        contribution(spoilt(scaled(0.1), MEMORY))


def test_a_recording_is_written_into_the_package_once(tmp_path, monkeypatch, spoilt, capsys):
    monkeypatch.setattr(recorded, "FOLDER", tmp_path / "data")
    recorded.FOLDER.mkdir()
    path = spoilt(lambda *_: None)
    monkeypatch.setattr(module.gpuexplore, "__file__", str(tmp_path / "gpuexplore" / "__init__.py"))
    (tmp_path / ".git").mkdir()

    assert main(["atlas", "add", str(path)]) == EXIT_OK
    assert "more points in the atlas" in capsys.readouterr().out
    assert (recorded.FOLDER / "copy.jsonl").read_bytes() == path.read_bytes()
    assert main(["atlas", "add", str(path)]) == EXIT_UNUSABLE
    assert main(["atlas", "add"]) == EXIT_UNUSABLE
    assert main(["atlas", "matmul", str(path)]) == EXIT_UNUSABLE


def test_outside_a_checkout_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.setattr(module.gpuexplore, "__file__", str(tmp_path / "gpuexplore" / "__init__.py"))

    with pytest.raises(InvalidInput, match="no git checkout"):
        written(contribution(MEMORY), MEMORY)
