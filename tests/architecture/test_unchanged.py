"""A heavy test is left out only where nothing that it rests on has changed since it passed."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from gpuexplore.operations import OPERATIONS
from tests import unchanged
from tests.unchanged import ROOT, digest_of, heavy, mark_unchanged, rests_on, write_passed
from tests.waiting import DEADLINE_S

AGREEMENT = ROOT / "tests/operations/test_agreement.py"
SOFTMAX = ("gpuexplore.backends.numpy", "gpuexplore.operations.softmax", "gpuexplore.operations.softmax.numpy")
LOADED = """
import json, sys
import pytest

def loaded():
    return {name for name in sys.modules if name.startswith("gpuexplore")}

class Seen:
    def pytest_collection_finish(self):
        self.collecting = loaded()
        self.opened = set()
        sys.addaudithook(lambda event, given: event == "open" and self.opened.add(str(given[0])))

seen = Seen()
code = pytest.main([*sys.argv[1:], "-q", "-p", "no:cacheprovider"], plugins=[seen])
print(json.dumps([code, sorted(seen.opened), sorted(seen.collecting), sorted(loaded() - seen.collecting)]))
"""
OTHERS = ("gpuexplore.operations.", "gpuexplore.backends.")  # of which lists of tests are made


class Item(SimpleNamespace):
    """A test as pytest collects it."""

    def get_closest_marker(self, name):
        return self.mark.mark if self.mark and name == "heavy" else None

    def add_marker(self, name):
        self.added.append(name)


def item(mark, nodeid="tests/operations/test_agreement.py::test_it[softmax]"):
    return Item(path=AGREEMENT, nodeid=nodeid, mark=mark, user_properties=[], added=[])


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("tests/operations/test_agreement.py", True),
        ("tests/operations/shapes.py", True),  # which the test imports
        ("tests/conftest.py", True),
        ("gpuexplore/measure/check/elements.py", True),  # what judges
        ("gpuexplore/core/timed.py", True),  # far below it
        ("gpuexplore/operations/__init__.py", True),  # runs when anything below is imported
        ("gpuexplore/operations/softmax/numpy.py", True),  # loaded by name
        ("gpuexplore/hardware/data/accelerators.csv", True),  # read by a module that is reached
        ("gpuexplore/operations/matmul/torch.py", False),
        ("gpuexplore/ui/main.py", False),
        ("gpuexplore/store/__init__.py", False),
        ("tests/pages/conftest.py", False),
    ],
)
def test_a_test_rests_on_what_it_imports_at_any_distance_and_on_the_data_beside_it(path, found):
    assert (ROOT / path in rests_on(AGREEMENT, SOFTMAX)[0]) is found


def test_all_below_a_package_may_be_meant():
    found = rests_on(AGREEMENT, ("gpuexplore.features.selftest.suite.*",))[0]
    below = set((ROOT / "gpuexplore/features/selftest/suite").rglob("*.py"))

    assert below <= found
    assert not below & rests_on(AGREEMENT)[0]


def test_versions_of_libraries_count_without_the_part_that_names_the_hardware(monkeypatch):
    versions = unchanged._versions({"torch.nn", "numpy", "json"})
    assert [name.partition(" ")[0] for name in versions] == ["numpy", "torch"]
    assert "+" not in "".join(versions)

    before = digest_of(AGREEMENT, SOFTMAX)
    monkeypatch.setattr(unchanged, "_versions", lambda _: ["numpy 0.1"])
    assert digest_of.__wrapped__(AGREEMENT, SOFTMAX) != before


def test_a_changed_file_another_subject_and_another_text_are_other_digests(monkeypatch):
    digests = {
        digest_of(AGREEMENT, SOFTMAX),
        digest_of(AGREEMENT, SOFTMAX[:2]),
        digest_of(AGREEMENT, SOFTMAX, text="a recipe"),
        digest_of(AGREEMENT, SOFTMAX, files=("CONTRIBUTING.md",)),
    }
    read = unchanged._digest_of_file
    monkeypatch.setattr(unchanged, "_digest_of_file", lambda path: read(path) + "x" * (path.name == "elements.py"))

    assert digest_of.__wrapped__(AGREEMENT, SOFTMAX) not in digests
    assert len(digests) == 4


@pytest.mark.parametrize(
    ("source", "same"),
    [
        ('def f(x):\n    """Other words."""\n    # why\n    return x + 1\n', True),
        ("def f(x): return x + 1", True),
        ("def f(x): return x + 2", False),
        ("def f(x): 'words'; return x - 1", False),
        ("def f(x):\n    'words'\n    x = 'data'\n    return x + 1\n", False),
    ],
)
def test_other_words_and_lines_are_the_same_code_and_another_value_is_not(source, same):
    assert (unchanged._code_of(source) == unchanged._code_of("def f(x):\n    'Words.'\n    return x + 1\n")) == same


def test_a_digest_that_is_kept_is_that_of_the_code_as_it_is(tmp_path, monkeypatch):
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    monkeypatch.setattr(unchanged, "DIGESTS", tmp_path / "kept")
    module, digests = tmp_path / "module.py", []
    for source in ("x = 1", "x = 2", "x = 1", "x = 1  # why"):
        module.write_text(source)
        digests.append(unchanged._digest_of_file.__wrapped__(module))

    assert digests[0] == digests[2] == digests[3] != digests[1]
    assert len(list((tmp_path / "kept").iterdir())) == 3


def test_what_passed_is_left_out_until_something_changes_and_what_failed_is_not(tmp_path):
    record, first, other = tmp_path / "passed.json", item(heavy(*SOFTMAX)), item(heavy(*SOFTMAX), "failed")
    mark_unchanged([first, other], record)
    assert first.added == other.added == []  # there is no record

    write_passed([first], record)  # a report has the same properties
    again = [item(heavy(*SOFTMAX)), item(heavy(*SOFTMAX), "failed"), item(None)]
    mark_unchanged(again, record)
    assert [each.added for each in again] == [["unchanged"], [], []]

    changed = item(heavy(*SOFTMAX[:2]))
    mark_unchanged([changed], record)
    assert changed.added == []


def test_the_record_is_of_tests_that_exist():
    names = {name.partition("::")[0] for name in json.loads(unchanged.RECORD.read_text(encoding="utf-8"))}

    assert [name for name in sorted(names) if not (ROOT / name).is_file()] == []


def test_everything_that_a_heavy_test_loads_and_opens_is_something_that_it_rests_on():
    """In a process of its own, where nothing was loaded for another test."""
    test = f"{AGREEMENT}::test_implementations_agree_with_the_reference_at_awkward_sizes[reduce_sum-fp32]"
    command = [sys.executable, "-c", LOADED, test]
    done = subprocess.run(
        command, cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False, timeout=DEADLINE_S
    )
    code, opened, collecting, testing = json.loads(done.stdout.splitlines()[-1])
    operation = OPERATIONS["reduce_sum"]
    paths, names = rests_on(AGREEMENT, unchanged.heavy_with(operation, *operation.implementations).mark.args[0])

    assert code == 0, done.stdout
    assert [name for name in collecting if name not in names and not name.startswith(OTHERS)] == []
    assert [name for name in testing if name not in names] == []
    inside = {path for path in opened if path.startswith(str(ROOT / "gpuexplore")) and "__pycache__" not in path}
    assert sorted(inside - set(map(str, paths))) == []
