"""Each recipe of CONTRIBUTING.md, followed literally in a copy of the repository, passes the tests it names."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.architecture.recipes import changed, created, follow, recipes
from tests.unchanged import heavy

RECIPES = recipes()
WITHOUT_A_LITERAL_ONE = {
    "add-a-dtype": "a format changes the arithmetic of every library: no short example does something of use",
    "add-a-published-result": "a row of the kind of a device's, whose source somebody has to read",
    "add-a-recording": "the commands are there; they need a quiet machine, and tests of its results follow",
}
GENERAL = ("tests/architecture", "tests/docs")
LITERAL = [name for name in RECIPES if name not in WITHOUT_A_LITERAL_ONE]
ALWAYS = "add-a-device"  # a short one; what the commands of the others try has often not changed
LIMIT_S = 600
ROOT = Path(__file__).resolve().parents[2]
LEFT_OUT = shutil.ignore_patterns(".git", ".venv", "*_cache", ".hypothesis", "*.egg-info", "build", "dist")


@pytest.fixture
def tree(tmp_path, repository):
    """Return a copy of the repository, with the bytecode of its files."""
    return shutil.copytree(repository, tmp_path / "copy", ignore=LEFT_OUT)


def run(commands, tree):
    """Run a block of shell commands in `tree`, with its package and this interpreter."""
    tools = tree.parent / "bin"
    tools.mkdir(exist_ok=True)
    python = tools / "python"
    if not python.exists():
        python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n', encoding="utf-8")
        python.chmod(0o755)
    of_the_copy = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(tree),
        "NUMBA_CACHE_DIR": str(tree.parent / "numba"),
    }
    return subprocess.run(
        ["sh", "-e", "-c", commands],
        cwd=tree,
        env=os.environ | of_the_copy,
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


def expect_success(commands, tree):
    done = run(commands, tree)
    assert done.returncode == 0, f"{commands}\n{done.stdout[-4000:]}\n{done.stderr[-2000:]}"


def steps_of(recipe):
    """Return the steps of what comes first, without its commands, and those of the recipe."""
    before = [step for step in RECIPES[recipe.first].steps if step.language != "sh"] if recipe.first else []
    return [*before, *recipe.steps]


def what_is_tried(name):
    """Mark a recipe with what its commands rest on, but for tests of the whole repository, which always run."""
    text = "\n".join(step.text for step in steps_of(RECIPES[name]))
    changed_files = {step.path for step in steps_of(RECIPES[name]) if step.path and (ROOT / step.path).is_file()}
    named = {ROOT / path for path in re.findall(r"tests/[\w/.]+", text) if not path.startswith(GENERAL)}
    tests = {test for path in named for test in ([path] if path.suffix else path.rglob("test_*.py")) if test.is_file()}
    modules = {path.removesuffix(".py").replace("/", ".") for path in changed_files if path.startswith("gpuexplore/")}
    files = {path for path in changed_files if not path.endswith(".md")}
    return heavy(
        *(name.removesuffix(".__init__") for name in modules),
        files=[*files, *(str(test.relative_to(ROOT)) for test in tests)],
        text=text,
    )


@pytest.mark.parametrize("recipe", RECIPES.values(), ids=list(RECIPES))
def test_recipe_has_files_or_changes_and_commands_that_judge_them(recipe):
    if recipe.anchor in WITHOUT_A_LITERAL_ONE:
        assert not created(recipe), "it is literal now: take it off the list"
        return
    languages = [step.language for step in recipe.steps]
    assert languages[-1:] == ["sh"], f"'{recipe.name}' has no literal recipe that ends in commands"
    assert set(languages) - {"sh"}
    assert "pytest" in recipe.steps[-1].text


@pytest.mark.parametrize("name", LITERAL)
def test_files_and_changes_of_a_recipe_fit_the_code_as_it_is(tmp_path, repository, name):
    steps = [step for step in steps_of(RECIPES[name]) if step.language != "sh"]
    paths = {step.path for step in steps}
    for path in paths:
        if (repository / path).is_file():
            (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(repository / path, tmp_path / path)
    for step in steps:
        follow(step, tmp_path)

    scripts = [path for path in paths if path.endswith(".py")]
    assert [path for path in scripts if not ast.parse((tmp_path / path).read_bytes(), path).body] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == ALWAYS else what_is_tried(name)) for name in LITERAL]
)
def test_recipe_followed_in_a_copy_passes_its_own_tests(tree, name):
    for step in steps_of(RECIPES[name]):
        if step.language == "sh":
            expect_success(step.text, tree)
        else:
            follow(step, tree)

    python_files = " ".join(path for path in created(RECIPES[name]) if path.endswith(".py"))
    if python_files:
        expect_success(f"python -m ruff check {python_files} && python -m ruff format --check {python_files}", tree)


def test_an_operation_is_a_folder_and_one_line():
    recipe = RECIPES["add-an-operation"]
    (line,) = (step for step in recipe.steps if step.language == "diff")

    assert {Path(path).parent.name for path in created(recipe)} == {"gelu"}
    assert [text for text in line.text.splitlines() if text.startswith("+")] == ['+    "gelu",']


def test_change_has_to_stand_in_the_file_once():
    assert changed("a\nb\nc\n", " b\n+new\n") == "a\nb\nnew\nc\n"
    assert changed("a\nb\nc\n", "-b\n+new\n c\n") == "a\nnew\nc\n"
    assert changed("a\r\n", "+b\r\n", "\r\n") == "a\r\nb\r\n"
    for text, times in (("a\n", 0), ("b\nb\n", 2)):
        with pytest.raises(AssertionError, match=f"stands {times} times"):
            changed(text, " b\n+new\n")
