"""Hands files of a notebook's machine to whoever reads it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import count
from pathlib import Path

from gpuexplore.errors import InvalidInput
from gpuexplore.notebook.platform import Platform, platform

WAYS: Mapping[Platform, str] = {
    "colab": "Your browser downloads them; they also lie in the pane Files",
    "kaggle": "Kaggle keeps what lies in /kaggle/working, and offers it under Output",
    "jupyter": "Open or download them in the list of files of Jupyter",
}


@dataclass(frozen=True, slots=True, repr=False)
class Files:
    """Files, and how to get them where the notebook runs; its repr is a sentence."""

    paths: tuple[Path, ...]
    platform: Platform

    def __repr__(self) -> str:
        return f"{WAYS[self.platform]}: {', '.join(str(path) for path in self.paths)}."


def new_folder() -> str:
    """Make a folder beside the notebook, named after the time, and return its name: no report is overwritten."""
    named = f"gpuexplore-{datetime.now(UTC):%Y%m%dT%H%M%S}"
    for number in count(1):
        name = named if number == 1 else f"{named}-{number}"
        try:
            Path(name).mkdir()
        except FileExistsError:
            continue
        return name
    raise AssertionError("numbers do not end")


def hand_over(*files: Path | str) -> Files:
    """Have the browser download `files` where the notebook's service can, and return how else to get them.

    Raises:
        InvalidInput: one of them is no file.
    """
    if not files:
        raise InvalidInput.of("files", "", "names of files, one at least")
    paths = tuple(_checked(file) for file in files)
    here = platform()
    if here == "colab":
        from google.colab import files as downloads

        for path in paths:
            downloads.download(str(path))
    return Files(paths, here)


def _checked(file: Path | str) -> Path:
    """Return the whole path of a file.

    Raises:
        InvalidInput: it is none.
    """
    if not isinstance(file, Path | str):
        raise InvalidInput.of("file", file, "names of files, as text")
    path = Path(file)
    try:
        is_there = path.is_file()
    except (OSError, ValueError):  # too long, or with a sign that no name has
        is_there = False
    if not is_there:
        raise InvalidInput.of("file", file, "files that are there: did the command that writes it succeed?")
    return path.resolve()
