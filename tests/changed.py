"""The test files that `make check` leaves out: what they import is as it is on main, or as it was a commit ago.

A plugin, for `pytest -p tests.changed`. Pages and commands are loaded by name, which their imports do not show: a
folder of tests is kept where a file of the same folder of the package has changed, and `tests/architecture` always.
"""

import subprocess
from functools import cache
from pathlib import Path

from tests.unchanged import ROOT, _imports, _scripts, graph, known_modules

MAIN = "origin/main"
ALWAYS = ("tests/architecture/",)


def pytest_ignore_collect(collection_path):
    """Leave out a test file that no change can reach."""
    name = collection_path.name
    if collection_path.is_dir() or not (name.startswith("test_") and name.endswith(".py")):
        return None
    changed = changed_files()
    return None if changed is None or is_reached(collection_path, changed) else True


@cache
def changed_files():
    """Return the paths below the root of what differs from main, or from the commit before; None where git says no."""
    base = _git("merge-base", "HEAD", MAIN) or _git("rev-parse", "HEAD")
    if base == _git("rev-parse", "HEAD") and _git("status", "--porcelain") == "":
        base = _git("rev-parse", "--verify", "HEAD~1")
    if not base:
        return None
    named = _git("diff", "--name-only", base), _git("ls-files", "--others", "--exclude-standard")
    return frozenset(file for names in named for file in (names or "").splitlines())


def _git(*arguments):
    ended = subprocess.run(("git", *arguments), cwd=ROOT, capture_output=True, text=True, check=False)
    return ended.stdout.strip() if ended.returncode == 0 else None


def is_reached(test, changed):
    """Return whether a test file, or anything that it imports, is among the changed files."""
    name = test.relative_to(ROOT).as_posix()
    if name.startswith(ALWAYS) or any(_is_twin(name, file) for file in changed):
        return True
    scripts = _scripts({test})
    if any(script.relative_to(ROOT).as_posix() in changed for script in scripts):
        return True
    imported = {each for script in scripts for each in _imports(script)}
    return bool(imported & _modules_reached_by(changed))


def _is_twin(test, file):
    """Return whether a file belongs to the folder of the package, or of the root, that a test is named after."""
    folder = Path(test).parent.relative_to("tests")
    package = Path("gpuexplore") / folder
    return folder.parts != () and (Path(file).is_relative_to(package) or Path(file).is_relative_to(folder))


@cache
def _modules_reached_by(changed):
    """Return the modules that import what has changed, directly or not; data belong to the modules beside them."""
    ahead = {module for file in changed if file.startswith("gpuexplore/") for module in _modules_of(Path(file))}
    reached = set()
    while ahead:
        module = ahead.pop()
        reached.add(module)
        ahead |= graph().find_modules_that_directly_import(module) - reached
    return frozenset(reached)


def _modules_of(file):
    stem = file.with_suffix("") if file.suffix == ".py" else file.parent
    name = ".".join(stem.parts).removesuffix(".__init__")
    below = () if file.suffix == ".py" else tuple(each for each in known_modules() if each.rpartition(".")[0] == name)
    return {each for each in (name, *below) if each in known_modules()}
