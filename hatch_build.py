"""Lets a wheel carry what a checkout has beside the package: what the web server serves, and the commit."""

import atexit
import subprocess
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SERVED = ("app.py", "pages/*.py", ".streamlit/config.toml", "docs/glossary.md")  # no secrets that lie beside them
INSIDE = "gpuexplore/_served"
COMMIT = "commit"  # a recording names the one it was made with


class Served(BuildHookInterface[Any]):
    """The hook of the wheel; an editable installation finds them in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to a wheel that is not editable."""
        if version != "editable":
            root = Path(self.root)
            found = [path.relative_to(root).as_posix() for pattern in SERVED for path in sorted(root.glob(pattern))]
            build_data["force_include"] |= {path: f"{INSIDE}/{path}" for path in found}
            self._add_commit(root, build_data)

    def _add_commit(self, root: Path, build_data: dict[str, Any]) -> None:
        if commit := commit_of(root):
            path = Path(mkdtemp(prefix="gpuexplore-")) / COMMIT
            path.write_text(commit + "\n", encoding="ascii")
            build_data["force_include"][str(path)] = f"{INSIDE}/{COMMIT}"
            atexit.register(rmtree, path.parent)  # the builder reads it after this hook


def commit_of(root: Path) -> str:
    """Return the commit of a checkout; empty for an archive without its history, and where git does not tell."""
    if not (root / ".git").exists():
        return ""
    command = ["git", "-C", str(root), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=5).stdout.strip()
    except (OSError, subprocess.SubprocessError):
        return ""
