"""Notebooks are committed as nobody ran them, and the one for Colab installs the wheel that is made here."""

import json

from gpuexplore import __version__, notebook
from tests.docs.markdown import ROOT

HIDDEN = {".venv", ".git"}
NOTEBOOKS = sorted(path for path in ROOT.rglob("*.ipynb") if not HIDDEN & set(path.relative_to(ROOT).parts))
COLAB = ROOT / "docs" / "colab.ipynb"


def cells_of(path, kind="code"):
    return [cell for cell in json.loads(path.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == kind]


def test_every_notebook_is_without_outputs():
    assert COLAB in NOTEBOOKS
    ran = {
        f"{path.relative_to(ROOT)}: {cell['id']}"
        for path in NOTEBOOKS
        for cell in cells_of(path)
        if cell["outputs"] or cell["execution_count"] is not None
    }
    assert ran == set()


def test_cells_are_three_and_each_is_explained():
    assert [cell["id"] for cell in cells_of(COLAB)] == ["install", "measure", "app"]
    assert len(cells_of(COLAB, "markdown")) == 4


def test_the_wheel_that_is_installed_is_of_this_version():
    text = (ROOT / "docs" / "jupyter.md").read_text(encoding="utf-8") + COLAB.read_text(encoding="utf-8")

    assert text.count(f"./gpuexplore-{__version__}-py3-none-any.whl[app,cuda12]") == 2


def test_what_cells_may_call_is_documented():
    text = (ROOT / "docs" / "jupyter.md").read_text(encoding="utf-8")
    functions = [name for name in notebook.__all__ if name.islower() and name != "new_folder"]

    assert functions == ["hand_over", "show_app"]
    assert all(f"{name}(" in text for name in functions)
