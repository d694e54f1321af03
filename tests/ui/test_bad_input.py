"""What no browser of ours sends, at the served app: a sentence, nothing queued, no traceback, and nobody else waits."""

from concurrent.futures import ThreadPoolExecutor
from statistics import median
from time import monotonic

import pytest
from streamlit.components.v2.bidi_component.main import _make_trigger_id
from streamlit.proto.Slider_pb2 import Slider
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import ConnectionClosed

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.store import open_store
from gpuexplore.ui.identity import OWNER_COOKIE
from gpuexplore.ui.navigation import pages
from scripts.app_server import database_of
from tests.ui.visitor import visiting

pytestmark = pytest.mark.slow

HALF_A_MEGABYTE = "x" * 500_000
MANY_IDS = ".".join(f"{number:010}" for number in range(20_000))
MOST_WAIT_S, TIMES_ALONE = 0.3, 10  # the second for a machine that is busy without them
EXPERIMENT = Experiment("matmul", (Shape.of(m=64, k=64, n=64),), ("fp32",), ("numpy",), ("cpu",))
LINKS = {
    "run": f"run={HALF_A_MEGABYTE}",
    "NUL": "run=%00abc",
    "20,000 ids": f"sweep={MANY_IDS}",
    "20,000 names": f"gpus={','.join(f'gpu{number}' for number in range(20_000))}",
    "20 parameters": "&".join(f"p{number}={'x' * 25_000}" for number in range(20)),
    "a long name": f"{HALF_A_MEGABYTE}=1",
}


@pytest.fixture(autouse=True)
def calm(server_home):
    """Check that nothing was queued and that the server's log has no traceback."""
    log = server_home / "server.log"
    before = log.stat().st_size if log.exists() else 0
    yield
    assert "Traceback" not in log.read_text(errors="replace")[before:]
    with open_store(database_of(server_home)) as store:
        assert store.queue_length() == 0


@pytest.mark.parametrize("frame", ["text", b"\xff" * 100, b"", b"\x00" * 1000], ids=["text", "bits", "empty", "zeros"])
def test_a_frame_of_garbage_ends_its_websocket_with_a_sentence(address, frame):
    with visiting(address) as visitor:
        visitor.socket.send(frame)
        with pytest.raises(ConnectionClosed) as closed:
            visitor.run()

    assert "Expected binary frames" in closed.value.rcvd.reason


def test_a_frame_of_more_than_a_megabyte_ends_its_websocket(address):
    with visiting(address) as visitor, pytest.raises(ConnectionClosed) as closed:
        visitor.run("run=" + "x" * 2_000_000)

    assert closed.value.rcvd.code == 1009


@pytest.mark.parametrize("query", LINKS.values(), ids=LINKS)
@pytest.mark.parametrize("page", ["benchmark", "kernels", "what-if", "roofline", "atlas", "devices"])
def test_a_link_of_half_a_megabyte_is_answered_in_a_sentence(address, page, query):
    with visiting(address, page) as visitor:
        said = visitor.run(query)

    assert "invalid; defaults were used" in said or "Unknown in this link" in said
    assert "Something went wrong" not in said
    assert len(said) < 2000


BEHIND_AN_UPLOAD = "trace"  # whose widgets stand behind a file, which tests/features/trace/test_page.py uploads
READING = [page.name for page in pages().values() if page.parameters and page.name != BEHIND_AN_UPLOAD]
FIRST_LINKS = {"lessons": "lesson=how-long"}  # without one the page has buttons alone
FORMS = [*((page, FIRST_LINKS.get(page, "")) for page in READING), ("model", "view=memory")]


@pytest.mark.parametrize(("page", "query"), FORMS)
def test_values_outside_their_options_are_refused_or_dropped(address, page, query):
    with visiting(address, page) as visitor:
        visitor.run(query)
        forged = [*_forged(visitor.elements)]
        assert forged
        said = [visitor.run(query, widget) for widget in forged]

    assert not [text for text in said if "Something went wrong" in text or "Traceback" in text]


def _forged(elements):
    """Yield a state for each widget of a page that none of its options can be."""
    for element in elements:
        kind = element.WhichOneof("type")
        widget = getattr(element, kind)
        if kind in ("selectbox", "text_input", "text_area"):
            yield WidgetState(id=widget.id, string_value="forged\x00<b>")
        if kind in ("button_group", "multiselect") or (kind == "slider" and widget.type == Slider.SELECT_SLIDER):
            forged = WidgetState(id=widget.id)
            forged.string_array_value.data.append("forged\x00<b>")
            yield forged
        elif kind == "slider":
            for value in (-1e30, 1e30, float("nan")):
                forged = WidgetState(id=widget.id)
                forged.double_array_value.data.append(value)
                yield forged
        if kind == "bidi_component":
            yield WidgetState(id=widget.id, json_value='{"run": "forged"}')
            for value in ('"forged"', '{"op": ["forged"]}', '{"op": "matmul", "dtype": "\\u0000<b>"}'):
                events = f'[{{"event": "run", "value": {value}}}]'
                yield WidgetState(id=_make_trigger_id(widget.id, "events"), json_trigger_value=events)


def test_a_run_of_somebody_else_is_shown_and_cannot_be_cancelled(address, server_home):
    with open_store(database_of(server_home)) as store:
        run_id = store.record(EXPERIMENT, "somebody-else", results=[])
        with visiting(address, Cookie=f"{OWNER_COOKIE}=me") as visitor:
            said = visitor.run(f"run={run_id}")
            labels = [button.label for button in visitor.buttons()]
            visitor.run(f"run={run_id}", WidgetState(id=f"$$ID-0-cancel.{run_id}", trigger_value=True))

        assert "no run" not in said
        assert "Cancel" not in labels
        assert store.load(run_id).state == "done"


def test_other_visitors_do_not_wait_meanwhile(address):
    with visiting(address, "devices") as visitor, ThreadPoolExecutor(1) as pool:
        visitor.run()
        alone_s = median(_rerun_s(visitor) for _ in range(5))
        attacks = [pool.submit(_send_link, address, query) for query in LINKS.values()]
        waited = []
        while not all(attack.done() for attack in attacks):
            waited.append(_rerun_s(visitor))
        for attack in attacks:
            attack.result()

    assert waited
    assert median(waited) < MOST_WAIT_S + TIMES_ALONE * alone_s, "of a rerun while bad links were answered"


def _rerun_s(visitor):
    started = monotonic()
    visitor.run()
    return monotonic() - started


def _send_link(address, query):
    with visiting(address, "devices") as visitor:
        visitor.run(query)
