"""The app is drawn inside the page of a notebook, which is another site's, and measures there."""

import re
import sys
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from types import ModuleType

import pytest
from playwright.sync_api import expect

import gpuexplore.notebook
from tests.made_ceiling import save_made_ceiling

pytestmark = pytest.mark.browser

QUICK = "?size=32,64&dtype=fp32&impl=numpy&budget=0.02"
NAME = "app.colab.localhost"  # a site of its own, which browsers look for on this machine


@contextmanager
def notebook(cell):
    """Serve a page with the output of a cell in it, and give its port."""

    class Page(BaseHTTPRequestHandler):
        def do_GET(self):
            self.send_response(200)
            self.send_header("content-type", "text/html; charset=utf-8")
            self.end_headers()
            self.wfile.write(f"<!doctype html><title>Notebook</title>{cell}".encode())

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Page)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def colab(monkeypatch):
    """Stand in for Colab: its library gives a name, and puts a frame into the page by a script of its own."""
    output, package = ModuleType("google.colab.output"), ModuleType("google.colab")
    output.eval_js = lambda code: f"http://{NAME}:{''.join(filter(str.isdigit, code))}/"
    output.serve_kernel_port_as_iframe = lambda port, height: None
    package.output = output
    monkeypatch.setitem(sys.modules, "google.colab", package)
    monkeypatch.setenv("COLAB_RELEASE_TAG", "release-colab")
    monkeypatch.setenv("GPUEXPLORE_FRAMED_BY", "http://*.localhost:*")


@pytest.fixture
def app(tmp_path, monkeypatch):
    """Show the app from a home of its own until the test ends."""
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    save_made_ceiling()
    shown = gpuexplore.notebook.show_app()
    yield shown
    shown.close()


def framed(page):
    return page.frame_locator("iframe")


def test_jupyter_shows_it_below_the_cell_and_a_page_that_is_no_notebook_may_not(app, page):
    with notebook(app._repr_html_()) as port:
        page.goto(f"http://localhost:{port}")
        expect(framed(page).get_by_role("heading", name="Explore")).to_be_visible()

        with page.expect_console_message(lambda message: "frame-ancestors" in message.text):  # the browser's refusal
            page.goto(f"http://elsewhere.localhost:{port}")
        expect(framed(page).get_by_role("heading", name="Explore")).to_have_count(0)


@pytest.mark.usefixtures("colab")
def test_behind_the_name_of_a_proxy_a_page_of_another_site_shows_it_and_measures(app, page):
    assert app.address == f"http://{NAME}:{app.port}"
    with notebook(f'<iframe src="{app.address}/{QUICK}" width="1200" height="850"></iframe>') as port:
        page.goto(f"http://notebook.localhost:{port}")
        framed(page).get_by_role("button", name=re.compile(r"^.*Run \d+ points?")).click()
        expect(framed(page).get_by_text("Export", exact=True)).to_be_visible()
        expect(framed(page).locator("[data-testid=stVegaLiteChart]").first).to_be_visible()
