"""Copies of the repository without one feature each: what is left has to pass types, layers and the short tests.

    python -m scripts.without_feature [NAME ...] [--workers N]

Taken out are the folder of the feature and that of its tests, its name in the registry, and the features that need it.
Left out of the tests are those of the documents, which describe every feature, and of budgets, which are then not used
up. Ends with 1 where one fails.
"""

import argparse
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from gpuexplore.registry import FEATURES, features

ROOT = Path(__file__).resolve().parents[1]
LAYERS = ("-c", "from importlinter.cli import lint_imports_command; lint_imports_command()", "--no-logo")
SHORT = "not long and not slow and not browser and not gpu and not faults and not ptx"


def main() -> None:
    """Check a copy without each of the features that are named."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"default: all of {', '.join(FEATURES)}")
    parser.add_argument("--workers", type=int, default=2)
    arguments = parser.parse_args()
    failed = [name for name in arguments.names or FEATURES if not stands_without(name, arguments.workers)]
    sys.exit(f"failed without {', '.join(failed)}" if failed else 0)


def stands_without(name: str, workers: int) -> bool:
    """Return whether a copy without one feature passes, and print what fails."""
    gone = with_dependents(name)
    with tempfile.TemporaryDirectory(prefix="without-", ignore_cleanup_errors=True) as folder:
        copy = Path(folder) / "copy"
        make_copy(copy, gone)
        commands = (
            ("-m", "mypy"),
            LAYERS,
            (
                "-m",
                "pytest",
                "-q",
                "-p",
                "no:cacheprovider",
                "-n",
                str(workers),
                "-m",
                SHORT,
                "--ignore=tests/docs",
                "--ignore=tests/architecture/test_shape.py",
                "tests",
            ),
        )
        print(f"without {', '.join(gone)}", flush=True)
        passed = [_passes(copy, command) for command in commands]
        return all(passed)


def with_dependents(name: str) -> list[str]:
    """Return a feature and those that need it, at any distance."""
    gone = [name]
    for feature in gone:
        gone += [other.name for other in features() if feature in other.needs and other.name not in gone]
    return gone


def make_copy(copy: Path, gone: Sequence[str]) -> None:
    """Copy what git knows, without features."""
    listed = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.splitlines()
    folders = tuple(f"{place}/features/{name}/" for place in ("gpuexplore", "tests") for name in gone)
    for path in listed:
        if not path.startswith(folders) and (ROOT / path).is_file():
            (copy / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / path, copy / path)
    registry = copy / "gpuexplore" / "registry.py"
    lines = registry.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = [line for line in lines if not re.fullmatch(rf'    "({"|".join(gone)})",\n', line)]
    registry.write_text("".join(kept), encoding="utf-8")


def _passes(copy: Path, command: Sequence[str]) -> bool:
    done = subprocess.run([sys.executable, *command], cwd=copy, capture_output=True, text=True, check=False)
    if done.returncode:
        print("\n".join((done.stdout + done.stderr).splitlines()[-30:]), flush=True)
    return not done.returncode


if __name__ == "__main__":
    main()
