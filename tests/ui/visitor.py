"""A browser without a window: what Streamlit's client sends over the websocket, and what comes back."""

from contextlib import contextmanager
from time import monotonic
from types import MappingProxyType

from streamlit.proto.BackMsg_pb2 import BackMsg
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from websockets.sync.client import connect

from tests.waiting import DEADLINE_S


@contextmanager
def visiting(address, page="benchmark", options=MappingProxyType({}), **headers):
    """Give a visitor with a websocket to the server at `address`, like http://127.0.0.1:8501.

    Args:
        options: of the connection.
    """
    opened = connect(
        address.replace("http", "ws", 1) + "/_stcore/stream",
        subprotocols=["streamlit"],
        additional_headers=headers,
        max_size=None,
        **{"origin": address, **options},
    )
    with opened as socket:
        yield Visitor(socket, page)


class Visitor:
    """One session.

    Attributes:
        socket: the websocket, to send what no browser sends.
        elements: what the last run drew.
        session: as Streamlit knows it, once it has run.
    """

    def __init__(self, socket, page):
        self.socket, self._page = socket, page
        self.elements, self.session = [], ""

    def run(self, query="", *widgets):
        """Run the page's script with a URL's query and forged states of widgets; return what it says."""
        message = BackMsg()
        message.rerun_script.query_string = query
        message.rerun_script.page_name = self._page
        message.rerun_script.widget_states.widgets.extend(widgets)
        self.socket.send(message.SerializeToString())
        self.elements = list(self._drawn())
        return "\n".join(self.said())

    def said(self):
        """Return the texts of messages and of exceptions."""
        return [element.alert.body or str(element.exception) for element in self._of("alert", "exception")]

    def buttons(self):
        """Return the buttons."""
        return [element.button for element in self._of("button")]

    def captions(self):
        """Return the texts that are not in messages."""
        return [element.markdown.body for element in self._of("markdown")]

    def _of(self, *kinds):
        return [element for element in self.elements if element.WhichOneof("type") in kinds]

    def _drawn(self):
        latest = monotonic() + DEADLINE_S
        while True:
            message = ForwardMsg.FromString(self.socket.recv(timeout=latest - monotonic()))
            if message.WhichOneof("type") == "new_session":
                self.session = message.new_session.initialize.session_id
            if message.WhichOneof("type") == "script_finished":
                return
            if message.delta.WhichOneof("type") == "new_element":
                yield message.delta.new_element
