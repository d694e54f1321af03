"""Who watches a run learns that it ended, whatever became of the page that told it."""

from time import monotonic

import pytest
from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.store import open_store
from gpuexplore.ui.identity import OWNER_COOKIE
from tests.ui.visitor import visiting
from tests.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.slow
NOWHERE = Experiment("matmul", (Shape.of(m=64, k=64, n=64),), ("fp32",), ("numpy",), ("cuda:77",))


class Watcher:
    """A browser that shows a run; `fragments` are those that redraw themselves, by what it was sent."""

    def __init__(self, socket, run_id):
        self._socket, self._query, self.fragments = socket, f"run={run_id}", []

    def send(self, fragment=""):
        """Ask for the page, or for one of its fragments as a tick does."""
        message = BackMsg()
        client = message.rerun_script
        client.query_string, client.fragment_id, client.is_auto_rerun = self._query, fragment, bool(fragment)
        self._socket.send(message.SerializeToString())

    def gets_a_whole_page(self):
        """Take what comes; return whether a whole page was begun and ended well."""
        latest, drawn = monotonic() + DEADLINE_S, ()
        while True:
            try:
                message = ForwardMsg.FromString(self._socket.recv(timeout=max(latest - monotonic(), 0.01)))
            except TimeoutError:
                return False
            kind = message.WhichOneof("type")
            if kind == "new_session":
                drawn = tuple(message.metadata.run.fragment_ids)
            elif kind == "auto_rerun":
                self.fragments.append(message.auto_rerun.fragment_id)
            elif (
                not drawn and message.script_finished == ForwardMsg.FINISHED_SUCCESSFULLY and kind == "script_finished"
            ):
                return True


def offers_to_cancel(visitor, run_id):
    visitor.run(f"run={run_id}")
    return any(button.label == "Cancel" for button in visitor.buttons())


def test_a_page_whose_last_drawing_was_thrown_away_is_drawn_again_at_the_next_tick(address, server_home):
    with open_store(f"sqlite:///{server_home / 'gpuexplore.sqlite3'}") as store:
        run_id = store.submit(NOWHERE, "somebody")
        with visiting(address, Cookie=f"{OWNER_COOKIE}=somebody") as visitor:
            watcher = Watcher(visitor.socket, run_id)
            watcher.send()
            assert watcher.gets_a_whole_page()
            store.request_cancel(run_id, "somebody")
            with visiting(address, Cookie=f"{OWNER_COOKIE}=somebody") as other:
                wait_until(lambda: not offers_to_cancel(other, run_id), what="a look of the server at its queue")
            watcher.send()  # what Streamlit drew for the other fragment, and threw away
            assert watcher.gets_a_whole_page()
            watcher.send(watcher.fragments[0])

            assert watcher.gets_a_whole_page()
