"""Pins what is installed in this environment in `requirements/lock.txt`, but for CUDA: torch's builds pin their own.

`requirements.txt` follows from it and from pyproject.toml: hosts of apps install that file alone, and no package.
"""

import subprocess
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "requirements" / "lock.txt"
REQUIREMENTS = ROOT / "requirements.txt"
APP = ("app", "cuda13", "sass", "torch")  # the extras that `make run` installs
OF_CUDA = (
    "cuda-bindings",
    "cuda-toolkit",
    "nvidia-cuda-cccl",
    "nvidia-cuda-nvrtc",
    "nvidia-cuda-runtime",
    "nvidia-nvjitlink",
    "nvidia-nvvm",
)
HEAD = """\
# What the app needs, at the versions of requirements/lock.txt: `make lock` writes this from pyproject.toml.
# In a clone: pip install -r requirements.txt && streamlit run app.py
# torch stands first, so that nothing else decides which of its builds is taken.
"""


def main() -> None:
    """Write both files, the first comments of the lock kept."""
    command = [sys.executable, "-m", "pip", "freeze", "--exclude-editable"]
    frozen = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    found = [line.partition("+")[0] for line in frozen if "==" in line and not line.startswith("#")]
    words = [line for line in LOCK.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    kept = [pin for pin in found if pin.partition("==")[0] not in OF_CUDA]
    LOCK.write_text("\n".join([*words, *kept]) + "\n", encoding="utf-8")
    REQUIREMENTS.write_text(requirements(), encoding="utf-8")


def requirements() -> str:
    """Return requirements.txt: what the extras of the app need, and what that needs, each at its locked version."""
    pins = locked()
    direct = {canonicalize_name(one.name): one for one in _declared()}
    names, waiting = set(direct), list(direct.values())
    while waiting:
        needed = [one for one in _needs(waiting.pop()) if canonicalize_name(one.name) not in names]
        names |= {canonicalize_name(one.name) for one in needed}
        waiting += needed
    lines = []
    for name in sorted(names & ({*pins, *direct}), key=lambda name: (name != "torch", name)):
        one = direct.get(name, Requirement(name))
        extras = f"[{','.join(sorted(one.extras))}]" if one.extras else ""
        version = f"=={pins[name]}" if name in pins else str(one.specifier)
        lines.append(f"{name}{extras}{version}" + (f"; {one.marker}" if one.marker else ""))
    return HEAD + "\n".join(lines) + "\n"


def locked() -> dict[str, str]:
    """Return the version of each package in the lock."""
    pairs = (line.split("==") for line in LOCK.read_text(encoding="utf-8").splitlines() if not line.startswith("#"))
    return {canonicalize_name(name): version for name, version in pairs}


def _declared() -> list[Requirement]:
    """Return what pyproject.toml asks for with the extras of the app."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    listed = [project["dependencies"], *(project["optional-dependencies"][extra] for extra in APP)]
    return [Requirement(line) for lines in listed for line in lines]


def _needs(required: Requirement) -> list[Requirement]:
    """Return what an installed package needs here with its extras; CUDA's own, which may not be, needs nothing."""
    try:
        lines = requires(required.name) or []
    except PackageNotFoundError:
        return []
    extras = ["", *required.extras]
    found = [Requirement(line) for line in lines]
    return [one for one in found if not one.marker or any(one.marker.evaluate({"extra": extra}) for extra in extras)]


if __name__ == "__main__":
    main()
