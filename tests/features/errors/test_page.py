import pytest

from gpuexplore.activity import of_kind
from gpuexplore.core.model import RunState
from gpuexplore.core.serialization import encode
from gpuexplore.features.errors.measure import ERRORS, Provoked
from tests.pages.conftest import OWNER, compiler, home, page, store, texts, told

VIEW = "view-of-a-transpose"
WORDS = "RuntimeError: view size is not <b>compatible</b>"


def asked(name=VIEW):
    return of_kind("provoke", {"name": name}, expected_s=1.0)


@pytest.fixture
def provoked(store):
    """Return the id of an activity that was done, and what torch said."""
    run_id = store.submit(asked(), "somebody else")
    claim = store.claim("tests", {"cpu"})
    said = ({"kind": "error", "type": "RuntimeError", "message": WORDS.partition(": ")[2]},)
    store.add_observation(claim, told(encode(Provoked(VIEW, said, "cpu", "2.13.0"))))
    store.finish(claim, RunState.DONE)
    return run_id


def codes(app):
    return [code.value for code in app.code]


@pytest.mark.parametrize("error", ERRORS.values(), ids=ERRORS)
def test_every_error_is_shown_with_its_code_its_meaning_and_a_way_out(page, error):
    app = page("errors", error=error.name)

    assert not app.exception
    assert texts(app.subheader) == error.title
    assert codes(app)[:2] == [error.code, error.instead_code]
    assert texts(app.markdown[:1]).replace("\\", "") == error.meaning
    assert error.rows[0] in texts(app.caption)


def test_what_nobody_provoked_says_so_and_is_queued_at_a_click(page, store):
    app = page("errors")
    assert "Not reproduced on this server yet" in texts(app.caption)
    (button,) = [button for button in app.button if button.label == "Reproduce on cpu"]
    button.click().run()

    assert not app.exception
    claim = store.claim("tests", {"cpu"})
    found = store.load_activity(claim.run_id)
    assert (found.owner, found.activity) == (OWNER, asked("no-cuda"))
    assert found.id in app.query_params["activity"]
    assert next(button for button in app.button if button.label == "Reproduce on cpu").disabled


def test_the_words_of_torch_are_shown_to_everybody_as_they_were_with_and_without_a_link(page, provoked):
    app = page("errors", error=VIEW)

    assert not app.exception
    assert WORDS in codes(app)
    assert "torch 2.13.0 on cpu" in texts(app.caption)
    assert "Reproduce again on cpu" in [button.label for button in app.button]
    assert WORDS not in codes(page("errors", error="no-cuda"))
    assert WORDS in codes(page("errors", error=VIEW, activity=provoked))


def test_an_error_that_is_not_there_is_named_and_the_first_is_shown(page):
    app = page("errors", error="voodoo")

    assert not app.exception
    assert "error 'voodoo'" in texts(app.error)
    assert texts(app.subheader) == ERRORS["no-cuda"].title
