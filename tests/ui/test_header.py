"""Places, and what the search of the header leads to."""

import json
from urllib.parse import parse_qsl

import pytest

from gpuexplore.hardware import ACCELERATORS
from gpuexplore.operations import OPERATIONS
from gpuexplore.registry import FEATURES, PLACES, SERVER
from gpuexplore.ui import header
from gpuexplore.ui.link import PARAMETERS
from gpuexplore.ui.navigation import pages


def test_there_are_ten_places_and_each_page_has_one():
    assert len(PLACES) == 10
    assert {page.place for page in pages().values()} <= {*PLACES, SERVER}
    assert set(PLACES) <= {page.place for page in pages().values()} or len(FEATURES) < 19  # one was taken out


def test_search_lists_pages_operations_gpus_and_lessons_and_each_entry_leads_somewhere():
    entries = json.loads(header._entries())

    for label, kind, target in entries:
        name, _, query = target.partition("?")
        assert label
        assert kind
        assert set(dict(parse_qsl(query))) <= set(PARAMETERS[name])
    targets = [target for _, _, target in entries]
    assert {*pages(), *(f"benchmark?op={name}" for name in OPERATIONS)} <= set(targets)
    assert f"what-if?device={ACCELERATORS[0].key}" in targets
    assert ("lessons?lesson=tour" in targets) == ("lessons" in FEATURES)
    assert len(targets) == len(set(targets))


@pytest.fixture
def went(monkeypatch):
    led, said = [], []
    monkeypatch.setattr(header.st, "switch_page", lambda file, query_params: led.append((file.name, query_params)))
    monkeypatch.setattr(header, "show_problem", lambda error: said.append(str(error)))
    return led, said


def test_search_leads_to_a_page_with_its_parameters(went):
    header._go("what-if?device=t4&op=softmax")

    assert went == ([("what_if.py", {"device": "t4", "op": "softmax"})], [])


@pytest.mark.parametrize("target", ["nowhere?x=1", 7, {"page": "runs"}])
def test_target_of_no_page_is_named(went, target):
    header._go(target)
    led, (said,) = went

    assert led == []
    assert said.startswith("page ")


def test_the_name_of_a_place_is_an_address_of_its_first_page():
    addresses = header._addresses()

    assert {place.lower() for place in PLACES} <= set(addresses)
    assert addresses["predict"] is pages()["what-if"]
    assert all(addresses[name] is page for name, page in pages().items())
