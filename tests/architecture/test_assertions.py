"""A test that asserts nothing passes whatever the code does: there is none."""

import ast
from pathlib import Path

import pytest

from tests.waiting import DEADLINE_S, LOOK_S

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "tests").rglob("test_*.py"))
ASSERTING = (
    "assert_",
    "expect",
    "to_be_",
    "to_have_",
    "wait_until",
)  # how functions that assert are called: ours, NumPy's, Playwright's
SLEEPS, WAITS = ("sleep", "wait_for_timeout"), ("wait", "join", "result", "communicate")
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
        ("wait_until(run)", []),
    ],
)
def test_a_test_that_asserts_nothing_would_be_seen(body, found):
    assert without_assertion(f"def test_it():\n    {body}") == found


def impatient(source):
    """Return the calls in a file that wait for a number of seconds: a busy machine takes longer."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    return [ast.unparse(call) for call in calls if is_impatient(call)]


def is_impatient(call):
    name = ast.unparse(call.func).rpartition(".")[2]
    waits = call.args[:1] if name in (*SLEEPS, *WAITS) else []
    waits += [keyword.value for keyword in call.keywords if keyword.arg == "timeout"]
    numbers = [each.value for each in waits if isinstance(each, ast.Constant) and isinstance(each.value, int | float)]
    if name in SLEEPS:
        return any(number > LOOK_S for number in numbers)
    return any(0 < number < DEADLINE_S or 1000 <= number < 1000 * DEADLINE_S for number in numbers)  # s, ms


def test_every_test_waits_for_an_event_and_none_for_a_number_of_seconds():
    files = [path for path in FILES if path.parent.name != "faults"]  # which say within how long something recovers
    found = {str(path.relative_to(ROOT)): impatient(path.read_text(encoding="utf-8")) for path in files}

    assert {path: calls for path, calls in found.items() if calls} == {}


@pytest.mark.parametrize(
    ("call", "found"),
    [
        ("time.sleep(0.3)", True),
        ("page.wait_for_timeout(500)", True),
        ("thread.join(20)", True),
        ("subprocess.run(command, timeout=60)", True),
        ("expect(it).to_be_visible(timeout=5000)", True),
        ("expect(it).to_have_count(62)", False),
        ("thread.join(DEADLINE_S)", False),
        ("lock.acquire(timeout=0)", False),
        ("time.sleep(0.01)", False),
        ("', '.join(names)", False),
    ],
)
def test_an_impatient_wait_would_be_seen(call, found):
    assert impatient(call) == ([call] if found else [])
