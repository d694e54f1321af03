"""The page on the architecture names files that are there."""

import re

import pytest

from tests.docs.markdown import ROOT

TEXT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
PATHS = sorted(set(re.findall(r"`([a-z_]+(?:/[a-z_0-9]+)*(?:\.py|/))`", TEXT)))


@pytest.mark.parametrize("path", PATHS)
def test_file_that_is_named_is_there(path):
    assert (ROOT / "gpuexplore" / path).exists() or (ROOT / path).exists()


def test_many_files_are_named():
    assert len(PATHS) > 30
