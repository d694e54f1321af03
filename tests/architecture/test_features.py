"""Features: the core names none of them, and each imports only those that it declares."""

import re
from importlib.util import find_spec
from pathlib import Path

import pytest

from gpuexplore.registry import FEATURES, features
from tests.unchanged import graph

PACKAGE = Path(__file__).resolve().parents[2] / "gpuexplore"
FOLDER = PACKAGE / "features"
BY_NAME = {feature.name: feature for feature in features()}


def feature_of(module):
    """Return the name of the feature that a module belongs to; None for one of the core."""
    parts = module.split(".")
    return parts[2] if parts[1:2] == ["features"] and len(parts) > 2 else None


def test_registry_names_every_folder_and_each_declares_itself():
    assert set(FEATURES) == {path.parent.name for path in FOLDER.glob("*/__init__.py")}
    assert [feature.name for feature in features()] == list(FEATURES)


def test_core_names_no_feature_but_in_the_registry():
    named = re.compile(r"gpuexplore[./]features[./]\w")
    core = [path for path in PACKAGE.rglob("*.py") if not path.is_relative_to(FOLDER)]

    assert [path.name for path in core if named.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("name", FEATURES)
def test_feature_imports_those_that_it_needs_and_no_other(name):
    imported = {
        feature_of(other)
        for module in graph().find_descendants(f"gpuexplore.features.{name}")
        for other in graph().find_modules_directly_imported_by(module)
    }

    assert imported - {None, name} == set(BY_NAME[name].needs)


@pytest.mark.parametrize("name", FEATURES)
def test_declaration_of_a_feature_names_what_is_there(name):
    feature = BY_NAME[name]
    modules = [
        *feature.functions.values(),
        *feature.modules.values(),
        feature.offer,
        feature.implementations,
        feature.preload,
        feature.cluster_engine,
        feature.routes,
    ]
    modules += [kind.module for kind in feature.activities.values()]

    for module in filter(None, modules):
        path = PACKAGE.parent / module.replace(".", "/")
        assert path.with_suffix(".py").exists() or (path / "__init__.py").exists(), module
        assert feature_of(module) == name
    assert {path.stem.removesuffix("_command") for path in (FOLDER / name).glob("*_command.py")} == set(
        feature.commands
    )
    for module in ("lesson_block", "ui") if feature.lesson_blocks else ():
        assert find_spec(f"gpuexplore.features.{name}.{module}"), module
    assert feature.page is None or feature.page.file == FOLDER / name / "page.py"
