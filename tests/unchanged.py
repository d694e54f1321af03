"""Heavy tests that resemble each other run where something they rest on is other than when they passed last.

`passed.json` has a digest of all that each of them rests on: of modules, their code without docstrings and comments.
`make nightly` runs every one of them and writes it.
"""

import ast
import json
import os
import sys
from functools import cache
from hashlib import sha256
from importlib import metadata
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "passed.json"
GRAPHS = ROOT / ".pytest_cache" / "grimp"
DIGESTS = ROOT / ".pytest_cache" / f"digests-{sha256(sys.version.encode() + Path(__file__).read_bytes()).hexdigest()}"
PACKAGE = "gpuexplore"
MARKER = "unchanged"
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def heavy(*modules, files=(), text=""):
    """Return the mark of a heavy test.

    Args:
        modules: what it loads by name, `package.*` for all below; what its file imports is found.
        files: below the root, which it reads; where they are scripts, with what they import.
        text: what else decides what it does.
    """
    return pytest.mark.heavy(tuple(sorted(modules)), tuple(sorted(files)), text)


def heavy_with(operation, *implementations):
    """Return the mark of a heavy test that runs implementations of an operation, which are loaded by name."""
    folder = f"{PACKAGE}.operations.{operation.name}"
    files = {row.module_in(operation.name) for row in implementations if row.module}
    techniques = {f"{PACKAGE}.operations.torch_steps" for row in implementations if row.technique}
    return heavy(folder, *files, *techniques, *{f"{PACKAGE}.backends.{row.backend}" for row in implementations})


def mark_unchanged(items, record=RECORD):
    """Note the digest of each heavy test, and mark those that passed with the one they have now."""
    passed = json.loads(record.read_text(encoding="utf-8")) if record.exists() else {}
    for item in items:
        mark = item.get_closest_marker("heavy")
        if mark:
            digest = digest_of(item.path, *mark.args)
            item.user_properties.append(("digest", digest))
            if passed.get(item.nodeid) == digest:
                item.add_marker(MARKER)


def write_passed(reports, record=RECORD):
    """Write the digests of the heavy tests that passed."""
    found = {report.nodeid: dict(report.user_properties).get("digest") for report in reports}
    text = json.dumps({name: digest for name, digest in sorted(found.items()) if digest}, indent=0)
    record.write_text(f"{text}\n", encoding="utf-8")


@cache
def digest_of(test, modules=(), files=(), text=""):
    """Return a digest of what a test rests on: code, data and versions of libraries."""
    paths, names = rests_on(test, modules, files)
    parts = [f"python {sys.version_info.major}.{sys.version_info.minor}", *_versions(names), text]
    return sha256("\0".join([*parts, *map(_digest_of_file, sorted(paths))]).encode()).hexdigest()[:12]


@cache
def _digest_of_file(path):
    """Return a digest of the name of a file and of its bytes, or of its code.

    Those of code are kept by what they are made from: parsing every module takes seconds.
    """
    name, content = path.relative_to(ROOT).as_posix().encode(), path.read_bytes()
    known = sha256(name + content).hexdigest()
    if path.suffix != ".py":
        return known
    kept = DIGESTS / known
    if not kept.exists():
        DIGESTS.mkdir(parents=True, exist_ok=True)
        made = kept.with_suffix(f".{os.getpid()}")
        made.write_text(sha256(name + _code_of(content)).hexdigest(), encoding="ascii")
        made.replace(kept)
    return kept.read_text(encoding="ascii")


def _code_of(source):
    """Return what a module does: its syntax tree without docstrings, comments and places of lines."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
    return ast.dump(tree).encode()


def rests_on(test, modules=(), files=()):
    """Return the files that a test rests on, and the names of all modules, those of libraries among them."""
    others = {ROOT / name for name in files}
    scripts = _scripts({test, *(path for path in others if path.suffix == ".py")})
    imported = {name for script in scripts for name in _imports(script)}
    reached = modules_reached(imported | set(modules))
    return {*scripts, *others, *(path for name in reached for path in _files_of(name))}, imported | reached


@cache
def graph():
    """Return the import graph of the package, imports inside of functions and of other libraries included."""
    import grimp  # not on every machine with a GPU

    return grimp.build_graph(PACKAGE, include_external_packages=True, cache_dir=str(GRAPHS))


@cache
def known_modules():
    return frozenset(graph().modules)


@cache
def _next_to(name):
    """Return what a module imports, and the package that it is in."""
    return known_modules() & {*graph().find_modules_directly_imported_by(name), name.rpartition(".")[0]}


def modules_reached(names):
    """Return what is imported, and what that imports: modules of the package, and names of libraries."""
    reached = set()
    below = tuple(name.removesuffix("*") for name in names if name.endswith(".*"))
    ahead = {name for name in known_modules() if name in names or name.startswith(below)}
    while ahead:
        name = ahead.pop()
        reached.add(name)
        ahead |= _next_to(name) - reached
    return frozenset(reached)


def _scripts(tests):
    """Return test files, the conftest files above them, and what all these import of tests, scripts and benchmarks."""
    ahead, found = set(tests), set()
    while ahead:
        script = ahead.pop()
        if script not in found and script.is_file():
            found.add(script)
            ahead |= {folder / "conftest.py" for folder in script.parents if folder.is_relative_to(ROOT / "tests")}
            stems = (ROOT.joinpath(*name.split(".")) for name in _imports(script) if not name.startswith(PACKAGE))
            ahead |= {path for stem in stems for path in (stem.with_suffix(".py"), stem / "__init__.py")}
    return found


@cache
def _imports(script):
    """Return the names that a script imports, with what it imports from them: these may be modules too."""
    names = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{each.name}" for each in node.names)}
    return frozenset(names)


@cache
def _files_of(name):
    """Return the file of a module of the package, and the data that lie beside it and in a folder of that name."""
    stem = ROOT.joinpath(*name.split("."))
    if not name.startswith(PACKAGE):
        return set()
    file = stem / "__init__.py" if stem.is_dir() else stem.with_suffix(".py")
    beside = [*file.parent.glob("*"), *(file.parent / "data").glob("*")]
    return {file, *(path for path in beside if path.is_file() and path.suffix != ".py")}


def _versions(names):
    """Return the versions of the libraries among names, without the part that says for which hardware they are."""
    found = {each for name in names for each in _distributions().get(name.partition(".")[0], ())}
    return sorted(f"{name} {_version(name).partition('+')[0]}" for name in found if name != PACKAGE)


_distributions = cache(metadata.packages_distributions)
_version = cache(metadata.version)
