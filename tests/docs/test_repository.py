"""What a host of repositories reads: its workflow runs what everybody runs, its forms and the citation can be read."""

import tomllib
from collections import Counter

import pytest
import yaml
from trove_classifiers import classifiers

from tests.docs.markdown import ROOT

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def read(name):
    return yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))


def test_the_workflow_runs_the_command_of_every_other_machine():
    workflow = read(".github/workflows/ci.yml")
    (job,) = workflow["jobs"].values()

    assert [step["run"] for step in job["steps"] if "run" in step] == [".ci/run"]
    assert (ROOT / ".ci" / "run").stat().st_mode & 0o111
    assert workflow["permissions"] == {"contents": "read"}


@pytest.mark.parametrize(
    "path", sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("[!c]*.yml")), ids=lambda path: path.stem
)
def test_a_form_asks_for_each_thing_once_and_needs_what_is_told_by_nothing_else(path):
    form = read(path.relative_to(ROOT))
    asked = [field for field in form["body"] if field["type"] != "markdown"]
    counts = Counter(field["id"] for field in asked)

    assert form["name"]
    assert form["description"]
    assert set(counts.values()) == {1}
    assert any(field.get("validations", {}).get("required") for field in asked)
    assert all(field["attributes"]["label"] for field in asked)


def test_the_citation_has_what_the_format_requires_and_names_the_licence_of_our_own():
    citation = read("CITATION.cff")

    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert citation["license"] == PROJECT["license"].partition(" AND ")[0]
    assert citation["authors"] == PROJECT["authors"]


def test_classifiers_are_known_and_keep_the_package_out_of_registries_it_is_not_in():
    assert set(PROJECT["classifiers"]) - classifiers - {"Private :: Do Not Upload"} == set()
    assert "Private :: Do Not Upload" in PROJECT["classifiers"]
