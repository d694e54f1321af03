"""Everything of others that ships names its licence, and NOTICE has its text."""

import csv
import re
import tomllib
from urllib.parse import urlsplit

import pytest
from packaging.licenses import canonicalize_license_expression

from gpuexplore.features.machine_code.analysis.ladder import published
from gpuexplore.recorded.published import sources
from tests.docs.markdown import ROOT

NOTICE = (ROOT / "NOTICE").read_text(encoding="utf-8")
BLOCKS = {  # by the repository of each: its licence, the files its rows are in, and the text below
    found["repository"]: found
    for found in re.finditer(
        r"^https://github\.com/(?P<repository>\S+)\nLicence: (?P<licence>\S+)\nIn: (?P<files>.+)\n\n"
        r"(?P<text>(?:(?!-{50}).*\n)+)",
        NOTICE,
        re.M,
    )
}
OF_LICENCE = {  # a sentence that only its text has
    "Apache-2.0": "The Apache License 2.0 is the text in LICENSE.",
    "BSD-2-Clause": "ARE DISCLAIMED",
    "BSD-3-Clause": "Neither the name of the copyright holder",
    "CC-BY-SA-4.0": "text in LICENSES/CC-BY-SA-4.0.txt",
    "MIT": "Permission is hereby granted, free of charge",
}
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.mark.parametrize("source", sources(), ids=lambda source: source.repository)
def test_a_source_of_measurements_has_its_licence_in_the_notice(source):
    assert BLOCKS[source.repository]["licence"] == source.licence


@pytest.mark.parametrize("repository", BLOCKS)
def test_a_licence_in_the_notice_has_its_text_its_holder_and_its_files(repository):
    block = BLOCKS[repository]

    assert OF_LICENCE[block["licence"]] in block["text"]
    assert re.search(r"copyright", block["text"], re.I)
    assert [name for name in block["files"].split(", ") if not (ROOT / name).is_file()] == []


def test_every_row_that_names_a_repository_is_of_one_in_the_notice():
    data = [*(ROOT / "gpuexplore").rglob("*.csv"), *(ROOT / "benchmarks").glob("*.csv")]
    for path in data:
        with path.open(encoding="utf-8") as lines:
            linked = {row.get("source", "") for row in csv.DictReader(lines)}
        name = path.relative_to(ROOT).as_posix()
        for repository in {"/".join(urlsplit(link).path.split("/")[1:3]) for link in linked if "github.com" in link}:
            assert name in BLOCKS[repository]["files"].split(", "), (name, repository)
    assert {urlsplit(row["source"]).hostname for row in published("matmul", "fp32").values()} == {"github.com"}


def test_the_package_names_every_licence_of_what_it_ships():
    named = set(PROJECT["license"].split(" AND "))

    assert canonicalize_license_expression(PROJECT["license"]) == PROJECT["license"]
    assert named == {"Apache-2.0"} | {source.licence for source in sources()} | {"MIT"}
    assert {"LICENSE", "LICENSES/*", "NOTICE"} == set(PROJECT["license-files"])


def test_rows_to_be_shared_alike_say_so_beside_them():
    (path,) = (ROOT / "gpuexplore").rglob("*.cc-by-sa-4.0.csv")

    assert "SPDX-License-Identifier: CC-BY-SA-4.0\n" in path.with_name(f"{path.name}.license").read_text("utf-8")
    assert "Attribution-ShareAlike 4.0" in (ROOT / "LICENSES" / "CC-BY-SA-4.0.txt").read_text("utf-8")


def test_no_font_script_or_binary_of_others_ships_unnoticed():
    packed = [path for path in (ROOT / "gpuexplore").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    ours = {".css", ".csv", ".jinja", ".json", ".jsonl", ".license", ".mako", ".md", ".py", ".svg", ".toml", ".typed"}

    controls = {"controls.html", "controls.js", "search.html", "search.js"}
    recorded = {"example.json.gz"}  # a trace that this project took

    assert {path.name for path in packed if path.suffix not in ours} == controls | recorded
