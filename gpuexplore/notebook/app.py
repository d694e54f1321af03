"""Shows the app below a cell, as far as the notebook's service lets a browser reach it."""

import atexit
import html
import subprocess
from dataclasses import dataclass
from typing import Any

from gpuexplore.notebook.platform import Platform, platform
from gpuexplore.notebook.server import checked_port, served

HEIGHT_PX = 900
LOCAL = "localhost"  # as Jupyter is opened: browsers keep the cookies of 127.0.0.1 apart from those of localhost
NO_PROXY = (
    "Kaggle lets no browser reach a port of its machines, so the app cannot be shown here. Measure with %gpuexplore or "
    "gpuexplore.run, and download a recording: the app on a machine of your own takes it on its page Runs."
)
ENDS_WITH = "It ends with this notebook, or with .close()."
SERVED: "list[App]" = []  # in this process, the latest one last


@dataclass(eq=False, slots=True, repr=False)
class App:
    """The app while it is served for a notebook; drawn as a frame with its first page.

    Attributes:
        platform: where the notebook runs.
        address: where a browser reaches it; None where none can.
        port: on the notebook's machine; None where it is not served.
        process: the server; None where there is none.
    """

    platform: Platform
    address: str | None = None
    port: int | None = None
    process: subprocess.Popen[bytes] | None = None

    @property
    def is_served(self) -> bool:
        """Return whether the server runs."""
        return self.process is not None and self.process.poll() is None

    def close(self) -> None:
        """End the server, and what it started."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait()

    def __repr__(self) -> str:
        if self.address is None:
            return NO_PROXY
        if not self.is_served:
            return f"The app on {self.address} has ended."
        return f"The app is on {self.address}. {ENDS_WITH}"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: a link, and the page in a frame unless the service has drawn that already."""
        if not self.is_served:
            return f"<p>{html.escape(repr(self))}</p>"
        address = html.escape(f"{self.address}")
        link = f'<p>The app <a href="{address}" target="_blank">in a tab of its own</a>. {ENDS_WITH}</p>'
        if self.platform == "colab":
            return link
        return f'{link}<iframe src="{address}" width="100%" height="{HEIGHT_PX}" style="border: 0"></iframe>'


def show_app(port: int | None = None) -> App:
    """Serve the app on a port of this machine and return it, to be drawn below the cell.

    Args:
        port: None for the app that is served already, else for a port that is free.

    Raises:
        InvalidInput: the port is none, or something else listens on it.
        NotStarted: the server ended, or did not answer in time; says why.
    """
    here = platform()
    if here == "kaggle":
        return App(here)
    app = next((app for app in SERVED if app.is_served and port in (None, app.port)), None) or _started(port, here)
    if here == "colab":
        _colab().serve_kernel_port_as_iframe(app.port, height=str(HEIGHT_PX))
    return app


def _started(port: int | None, here: Platform) -> App:
    chosen = checked_port(port)
    address = _proxied(chosen) if here == "colab" else f"http://{LOCAL}:{chosen}"
    app = App(here, address, chosen, served(chosen, here, address))
    SERVED.append(app)
    atexit.register(app.close)
    return app


def _proxied(port: int) -> str:
    """Return under which address Colab shows a port of its machine to the reader's browser."""
    return str(_colab().eval_js(f"google.colab.kernel.proxyPort({port})")).rstrip("/")


def _colab() -> Any:
    from google.colab import output

    return output
