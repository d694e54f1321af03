"""Lets a wheel carry what the web server serves, which a checkout has beside the package."""

from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SERVED = ("app.py", "pages/*.py", ".streamlit/config.toml", "docs/glossary.md")  # no secrets that lie beside them
INSIDE = "gpuexplore/_served"


class Served(BuildHookInterface[Any]):
    """The hook of the wheel; an editable installation finds them in the checkout."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add them to a wheel that is not editable."""
        if version != "editable":
            root = Path(self.root)
            found = [path.relative_to(root).as_posix() for pattern in SERVED for path in sorted(root.glob(pattern))]
            build_data["force_include"] |= {path: f"{INSIDE}/{path}" for path in found}
