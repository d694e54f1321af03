"""docs/support.md is what its generator prints."""

import subprocess
import sys


def test_page_of_support_is_up_to_date(repository):
    command = [sys.executable, "-m", "scripts.support_matrix"]
    done = subprocess.run(command, cwd=repository, capture_output=True, text=True, timeout=60, check=True)

    assert (repository / "docs" / "support.md").read_text(encoding="utf-8") == done.stdout
