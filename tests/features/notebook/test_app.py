"""The app below a cell: where each service lets a browser reach it, and what is said where none does."""

import socket
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import pytest

from gpuexplore.core.errors import GpuExploreError, InvalidInput
from gpuexplore.features.notebook import functions as module
from gpuexplore.features.notebook import functions as notebook
from gpuexplore.features.notebook.functions import show_app

PROXY = "https://8501-gpu-t4-s-1.us-east1-0.prod.colab.dev"


class Process:
    """A server that runs until it is told to end."""

    code = None

    def poll(self):
        return self.code

    def terminate(self):
        self.code = 0

    def wait(self):
        return self.code


@pytest.fixture
def started(monkeypatch):
    """Give the list of servers that were started, by port, platform and address; none is."""
    calls = []
    monkeypatch.setattr(module, "SERVED", [])
    monkeypatch.setattr(module.atexit, "register", lambda _: None)
    monkeypatch.setattr(module, "_served", lambda *asked: calls.append(asked) or Process())
    return calls


@pytest.fixture
def colab(monkeypatch):
    """Give the list of what Colab's own library was asked for."""
    asked = []
    output = ModuleType("google.colab.output")
    output.eval_js = lambda code: asked.append(code) or f"{PROXY}/"
    output.serve_kernel_port_as_iframe = lambda port, **options: asked.append((port, options))
    package = ModuleType("google.colab")
    package.output = output
    monkeypatch.setitem(sys.modules, "google.colab", package)
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
    return asked


def test_in_jupyter_it_is_a_frame_of_this_machine(started):
    app = show_app()

    assert started == [(app.port, "jupyter", f"http://localhost:{app.port}")]
    assert f'<iframe src="http://localhost:{app.port}"' in app._repr_html_()
    assert repr(app).startswith(f"The app is on http://localhost:{app.port}. It ends with")


def test_a_second_cell_shows_the_same_app(started):
    app = show_app()

    assert show_app() is app
    assert show_app(app.port) is app
    assert len(started) == 1


def test_one_that_has_ended_is_started_again(started):
    app = show_app()
    app.close()

    assert not app.is_served
    assert repr(app) == f"The app on {app.address} has ended."
    assert "<iframe" not in app._repr_html_()
    assert show_app() is not app
    assert len(started) == 2


def test_colab_draws_the_frame_and_its_proxy_is_the_address(started, colab):
    app = show_app()

    assert started == [(app.port, "colab", PROXY)]
    assert colab == [f"google.colab.kernel.proxyPort({app.port})", (app.port, {"height": "900"})]
    assert "<iframe" not in app._repr_html_()
    assert f'href="{PROXY}"' in app._repr_html_()


def test_kaggle_has_no_way_and_nothing_is_started(started, colab, monkeypatch):
    monkeypatch.setenv("KAGGLE_KERNEL_RUN_TYPE", "Interactive")

    app = show_app()

    assert (started, colab) == ([], [])
    assert app.address is None
    assert "no port that a browser can reach" in repr(app)
    assert "no port that a browser can reach" in app._repr_html_()
    app.close()


@pytest.mark.parametrize("port", [0, -1, 65536, True, "8501", 80.5, "taken"])
def test_a_port_that_is_none_or_taken_is_refused(started, port):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        said = "Address already in use" if port == "taken" else "expected whole numbers from 1 to 65535"
        with pytest.raises(InvalidInput, match=said):
            show_app(taken.getsockname()[1] if port == "taken" else port)
    assert started == []


def asked_of_popen(monkeypatch, address, here):
    """Return command and options of the process that is started."""
    asked = SimpleNamespace()

    def start(command, **options):
        asked.command, asked.options = command, options
        return Process()

    monkeypatch.setattr(notebook.subprocess, "Popen", start)
    monkeypatch.setattr(notebook, "_answers", lambda port: True)
    notebook._served(8501, here, address)
    return asked


def test_colab_s_proxy_is_named_to_the_server_and_jupyter_s_pages_may_show_it(monkeypatch):
    colab = asked_of_popen(monkeypatch, PROXY, "colab")
    jupyter = asked_of_popen(monkeypatch, "http://localhost:8501", "jupyter")

    assert colab.command[-4:] == ["--port", "8501", "--behind-proxy", PROXY.removeprefix("https://")]
    assert "https://colab.research.google.com" in colab.options["env"]["GPUEXPLORE_FRAMED_BY"]
    assert colab.options["start_new_session"], "interrupting a cell leaves it alone"
    assert jupyter.command[-2:] == ["--port", "8501"]
    assert jupyter.options["env"]["GPUEXPLORE_FRAMED_BY"] == "http://localhost:*,http://127.0.0.1:*"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("import sys; sys.exit('gpuexplore: streamlit is not installed')", "streamlit is not installed"),
        ("raise SystemExit(1)", "it printed nothing"),
    ],
)
def test_why_it_did_not_start_is_told(monkeypatch, code, said):
    real = subprocess.Popen
    monkeypatch.setattr(
        notebook.subprocess, "Popen", lambda _, **options: real([sys.executable, "-c", code], **options)
    )
    port = notebook._checked_port(None)

    with pytest.raises(GpuExploreError, match=f"The app did not start: .*{said}"):
        notebook._served(port, "jupyter", f"http://localhost:{port}")


def test_one_that_never_answers_is_ended(monkeypatch):
    process = Process()
    monkeypatch.setattr(notebook.subprocess, "Popen", lambda *_, **options: process)
    monkeypatch.setattr(notebook, "START_S", -1)

    with pytest.raises(GpuExploreError, match="it did not answer"):
        notebook._served(notebook._checked_port(None), "jupyter", "")
    assert process.code == 0
