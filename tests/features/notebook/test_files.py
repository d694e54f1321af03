"""Files go to the reader's browser where a service can send them; where it cannot, a sentence says where they lie."""

import sys
from types import ModuleType

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.notebook.functions import hand_over, new_folder


@pytest.fixture
def report(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "report.html"
    path.write_text("<p>")
    return path


@pytest.mark.parametrize(
    ("service", "said"),
    [({}, "in the list of files of Jupyter"), ({"KAGGLE_KERNEL_RUN_TYPE": "Batch"}, "under Output")],
    ids=["jupyter", "kaggle"],
)
def test_a_sentence_says_where_they_lie(report, monkeypatch, service, said):
    for name, value in service.items():
        monkeypatch.setenv(name, value)

    files = hand_over("report.html", report)

    assert files.paths == (report, report)
    assert said in repr(files)
    assert str(report) in repr(files)


def test_colab_downloads_them(report, monkeypatch):
    downloaded = []
    package, files = ModuleType("google.colab"), ModuleType("google.colab.files")
    files.download = downloaded.append
    package.files = files
    monkeypatch.setitem(sys.modules, "google.colab", package)
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")

    assert "Your browser downloads them" in repr(hand_over("report.html"))
    assert downloaded == [str(report)]


@pytest.mark.parametrize("name", ["missing.jsonl", ".", "", "x" * 5000, "a\0b", None, 3])
def test_what_is_no_file_is_named_and_none_at_all_refused(report, name):
    with pytest.raises(InvalidInput, match=r"expected (existing files|names of files)"):
        hand_over("report.html", name)
    with pytest.raises(InvalidInput, match="at least one file name"):
        hand_over()


def test_each_folder_is_a_new_one(report):
    names = [new_folder() for _ in range(3)]

    assert len(set(names)) == 3
    assert all((report.parent / name).is_dir() for name in names)
