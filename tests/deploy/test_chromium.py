"""The headless shell is preferred to a Chromium with a window, and installed where that is possible."""

import subprocess
from shutil import which

import pytest

from tests.docs.markdown import ROOT

STARTS, FAILS = "#!/bin/sh\nexit 0\n", "#!/bin/sh\nexit 1\n"


@pytest.mark.parametrize(
    ("there", "offered", "named", "found"),
    [
        ("chromium chromium-headless-shell", "", "", "chromium-headless-shell"),
        ("chromium", "chromium-headless-shell", "", "chromium-headless-shell"),
        ("chromium", "", "", "chromium"),
        ("", "chromium", "", "chromium"),
        ("google-chrome", "", "", "google-chrome"),
        ("chromium chromium-headless-shell", "", "chromium", "chromium"),
        ("chromium", "chromium-headless-shell", "other", None),
    ],
)
def test_the_chromium_that_costs_least_is_printed(tmp_path, there, offered, named, found):
    programs = dict.fromkeys(there.split(), STARTS) | {"chromium-browser": FAILS, "id": "#!/bin/sh\necho 0\n"}
    copying = f'case "$*" in *" {offered or "nothing"}") exec cp "$0.starts" "${{0%/*}}/{offered}"; esac'
    install = f"#!/bin/sh\n{copying}\nexit 1\n"
    programs |= {"apt-get.starts": STARTS, "apt-get": install}
    for name, text in programs.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "cp").symlink_to(which("cp"))

    printed = subprocess.run(
        [which("sh"), ROOT / "scripts" / "chromium.sh"],
        env={"PATH": str(tmp_path), "CHROMIUM": named, "BIN": "nowhere"},
        capture_output=True,
        text=True,
        check=False,
    )

    assert printed.stdout == (f"{tmp_path / found}\n" if found else ""), printed.stderr
