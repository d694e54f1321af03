"""What scripts read of `gpuexplore run`: the keys and columns of the version before are there, and mean the same."""

import csv
import json

import pytest

from gpuexplore.analysis.diagnosis import DISTURBANCES
from gpuexplore.analysis.run.analyze import analyze
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.analysis.utilization.best_results import comparison_for
from gpuexplore.charts.exports import Exported, export
from tests.compatibility.conftest import DATA

# a speedup was the median of the ratios round by round: now it is the ratio of the medians
MEANS_MORE = {"sentence", "evidence", "reason", "speedup", "diagnosis"}  # the words may get better
WIDER = ("speedup", "ci95_low_s", "ci95_high_s")  # by what disturbed them
NEW = {"one_thread", "below_limits"}
NEW_KEYS = {"comparison", "summary", "bound", "identity", "phases", "ordinary_stores", "one_thread"}
NEW_KEYS |= {"covers_processes", "process_medians_s", "between_processes", "between_ratios", "by_round", "repeat"}
NEW_KEYS |= {"probe_flop_per_s", "worst", "size", "machines", "machine_kind", "run", "seed", "processes", "energy_j"}
NEW_KEYS |= {"per_round"}


@pytest.fixture
def run(store):
    """Return the run that the version before measured, kept and reported by one command."""
    return store.load("commandrun")


def analyzed(run):
    return analyze(run.results, comparison_for(run.experiment, "", ""))


def leaves(value, path=()):
    """Yield the path and value of everything in a JSON document that holds nothing further."""
    if value and isinstance(value, dict | list):
        for key, held in value.items() if isinstance(value, dict) else enumerate(value):
            yield from leaves(held, (*path, key))
    else:
        yield path, value


def keys(value):
    """Return the keys of all objects of a JSON document, lists left out of their paths."""
    return {tuple(key for key in path if isinstance(key, str)) for path, _ in leaves(value)}


def test_every_value_of_the_report_is_where_it_was(run):
    before = json.loads((DATA / "report.json").read_text(encoding="utf8"))
    now = json.loads(json.dumps(run_report(run.experiment, analyzed(run))))
    found = dict(leaves(now))
    expected = {path: value for path, value in leaves(before) if not (set(path) & MEANS_MORE or _is_interval(path))}

    assert {path: found.get(path, "missing") for path in expected} == expected
    assert all(NEW_KEYS & set(path) for path in keys(now) - keys(before))


def _is_interval(path):
    """Return whether it is an end of a measurement's interval, which what disturbed it widens since."""
    return path[-3:-1] == ("measurement", "ci95_s")


def test_intervals_are_wider_where_something_disturbed_and_else_no_wider(run):
    before = json.loads((DATA / "report.json").read_text(encoding="utf8"))["results"]
    now = json.loads(json.dumps(run_report(run.experiment, analyzed(run))))["results"]
    pairs = [
        (old["measurement"]["ci95_s"], new["measurement"]["ci95_s"], new["flags"])
        for old, new in zip(before, now, strict=True)
        if old["measurement"]
    ]

    assert pairs
    for old, new, flags in pairs:
        disturbed = {flag["name"] for flag in flags} & DISTURBANCES.keys()
        if disturbed:
            assert new[1] / new[0] > old[1] / old[0]
        else:  # ten samples cover 95 %, where they covered 98
            assert old[0] <= new[0] < new[1] <= old[1]


def test_diagnoses_are_those_of_before_but_for_what_disturbed_all_results_alike(run):
    before = json.loads((DATA / "report.json").read_text(encoding="utf8"))["results"]
    now = json.loads(json.dumps(run_report(run.experiment, analyzed(run))))["results"]
    for old, new in zip(before, now, strict=True):
        found = {diagnosis["kind"] for diagnosis in old["diagnosis"]}
        kinds = {diagnosis["kind"] for diagnosis in new["diagnosis"]}
        gone = {"compute_bound", "memory_bound"} if "below_limits" in kinds else set()
        assert kinds - NEW - DISTURBANCES.keys() == found - DISTURBANCES.keys() - gone
        assert all(diagnosis.keys() == old["diagnosis"][0].keys() for diagnosis in new["diagnosis"])


def test_every_column_of_the_table_is_there_with_its_values(run):
    with (DATA / "report.csv").open(encoding="utf8", newline="") as file:
        before = list(csv.DictReader(file))
    table = export(".csv", Exported(run.experiment, analyzed(run))).decode("utf8")
    now = list(csv.DictReader(table.splitlines()))

    kept = [{name: value for name, value in row.items() if not name.startswith(WIDER)} for row in before]
    assert [{name: row.get(name, "missing") for name in kept[0]} for row in now] == kept
    assert {name for name in now[0].keys() - before[0].keys() if not name.startswith("phase_")} == {
        "energy_j",
        "layout",
        "align",
        "contrast_library_s",
        "contrast_pages_s",
        "run_id",
        "title",
        "app_version",
        "bound",
        "between_processes",
        "between_ratios",
        "ci95_covers_processes",
        "diagnosis",
        "process_count",
    }
