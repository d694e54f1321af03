"""What the package imports is declared, and what is pinned is what was declared."""

import re
import sys
import tomllib
from importlib.metadata import packages_distributions

import pytest
from packaging.requirements import Requirement

from gpuexplore.core.errors import EXTRAS
from scripts.lock import locked, requirements
from tests.architecture.imports import libraries_named_in

OPTIONAL = {
    "cupy",
    "dask",
    "triton",
}  # not installed by a checkout, or by what is: dask by distributed, Triton by torch
OWN = {"gpuexplore"}


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def named(requirement):
    return normal(re.match(r"[\w.-]+", requirement).group())


@pytest.fixture(scope="module")
def project(repository):
    return tomllib.loads((repository / "pyproject.toml").read_text(encoding="utf-8"))["project"]


@pytest.fixture(scope="module")
def imported(repository):
    scripts = [repository / "app.py", *(repository / "pages").glob("*.py"), *(repository / "gpuexplore").rglob("*.py")]
    names = set().union(*map(libraries_named_in, scripts)) - set(sys.stdlib_module_names) - OWN - {""}
    installed = packages_distributions()  # what is not installed, as CuPy, is asked for by name only
    return {name: {normal(found) for found in installed[name]} for name in names & set(installed)}


def test_every_library_that_is_imported_is_a_declared_one(project, imported):
    extras = {name: listed for name, listed in project["optional-dependencies"].items() if name != "dev"}
    declared = {named(required) for listed in (project["dependencies"], *extras.values()) for required in listed}

    assert len(imported) > 20
    assert {name: found for name, found in imported.items() if not found & declared} == {}


def test_the_sentence_on_what_is_missing_names_the_extra_that_declares_it(project):
    for extra, modules in EXTRAS.items():
        declared = {named(required) for required in project["optional-dependencies"][extra]}
        for module in modules:
            assert {normal(found) for found in packages_distributions()[module]} & declared, module


def test_every_module_of_an_extra_is_named_with_it(project, imported):
    for extra in EXTRAS:
        declared = {named(required) for required in project["optional-dependencies"][extra]}
        assert {name for name, found in imported.items() if found & declared} - set(EXTRAS[extra]) == set()


def test_what_is_pinned_is_within_what_is_declared(project, repository):
    lines = (repository / "requirements" / "lock.txt").read_text(encoding="utf-8").splitlines()
    pins = {normal(name): version for name, version in (line.split("==") for line in lines if "==" in line)}
    extras = {name: listed for name, listed in project["optional-dependencies"].items() if name != "cuda12"}
    wanted = [required for listed in (*extras.values(), project["dependencies"]) for required in listed]
    declared = [required for required in map(Requirement, wanted) if normal(required.name) not in OWN]
    unpinned = {normal(required.name) for required in declared} - set(pins)

    assert unpinned == {"cuda-bindings"}  # each build of torch names its own
    assert [str(required) for required in declared if not _holds(required, pins)] == []


def _holds(required, pins):
    return normal(required.name) not in pins or required.specifier.contains(pins[normal(required.name)])


def test_hosts_of_apps_install_what_is_declared_for_the_app_at_the_locked_versions(repository):
    told = (repository / "requirements.txt").read_text(encoding="utf-8")
    asked = [Requirement(line) for line in told.splitlines() if not line.startswith("#")]
    versions = {normal(required.name): str(required.specifier) for required in asked}

    assert told == requirements(), "requirements.txt is not up to date: run make lock"
    assert asked[0].name == "torch"
    assert {"torch", "streamlit", "pandas", "altair", "numba", "numba-cuda", "sqlalchemy"} <= set(versions)
    assert {name for name, version in versions.items() if version != f"=={locked().get(name)}"} == {"cuda-bindings"}
    assert "-" not in {line[0] for line in told.splitlines()}, (
        "a host that copies this file alone cannot follow options"
    )


@pytest.mark.parametrize("name", ["app.py", "pages", "gpuexplore", "tests", "requirements.txt", ".streamlit"])
def test_the_checkout_is_laid_out_as_streamlit_and_its_hosts_expect(name, repository):
    path = repository / name

    assert path.is_file() if "." in name[1:] else any(path.iterdir())
