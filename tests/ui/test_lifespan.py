"""What the web server readies before somebody asks for a page."""

import gc
import sys
from importlib import import_module

import pytest

lifespan = import_module("gpuexplore.ui.server.lifespan")  # its package calls the function so


@pytest.fixture
def collector():
    threshold = gc.get_threshold()
    yield
    gc.unfreeze()
    gc.set_threshold(*threshold)


def test_what_pages_need_is_imported_and_searched_for_garbage_no_more(collector):
    lifespan._settle()

    assert sys.modules.keys() >= set(lifespan.PAGES_NEED)
    assert gc.get_freeze_count() > 10 * len(gc.get_objects())
    assert gc.get_threshold()[0] == lifespan.GARBAGE_AFTER
