"""A test that asserts nothing passes whatever the code does: there is none."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
ASSERTING = (
    "assert_",
    "expect",
    "to_be_",
    "to_have_",
)  # how functions that assert are called: ours, NumPy's, Playwright's
EXPECTED_TO_RAISE = ("pytest.raises", "pytest.warns", "pytest.fail")


def asserts(node):
    """Return whether a statement or call can fail a test by itself."""
    if isinstance(node, ast.Assert):
        return True
    if not isinstance(node, ast.Call):
        return False
    name = ast.unparse(node.func)
    return name in EXPECTED_TO_RAISE or name.rpartition(".")[2].startswith(ASSERTING)


def without_assertion(source):
    """Return the names of the tests in a file that assert nothing."""
    functions = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef)]
    tests = [function for function in functions if function.name.startswith("test_")]
    return [test.name for test in tests if not any(asserts(node) for node in ast.walk(test))]


def test_every_test_asserts_something():
    found = {str(path.relative_to(ROOT)): without_assertion(path.read_text(encoding="utf-8")) for path in FILES}

    assert len(found) > 100
    assert {path: names for path, names in found.items() if names} == {}


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("run()", ["test_it"]),
        ("assert run()", []),
        ("with pytest.raises(ValueError): run()", []),
        ("np.testing.assert_array_equal(run(), 1)", []),
        ("expect_right(run())", []),
    ],
)
def test_a_test_that_asserts_nothing_would_be_seen(body, found):
    assert without_assertion(f"def test_it():\n    {body}") == found
