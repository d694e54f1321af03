"""What the server answers before any page is drawn, as a browser and as a stranger see it."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import closing
from http.client import HTTPConnection
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest
from sqlalchemy import select
from starlette.applications import Starlette
from starlette.datastructures import Headers
from starlette.responses import HTMLResponse
from starlette.routing import Route
from streamlit import get_option
from streamlit.proto.WidgetStates_pb2 import WidgetState
from websockets.exceptions import InvalidStatus

from gpuexplore import __version__
from gpuexplore.store import open_store
from gpuexplore.store.tables import RUNS
from gpuexplore.ui.identity import OWNER_COOKIE, is_cookie
from gpuexplore.ui.server import MIDDLEWARE, middleware
from gpuexplore.ui.server.middleware import FOREIGN_PAGE, OWN_PICTURES, _own_origins
from scripts.app_server import database_of, free_port, served, wait_until_served
from tests.ui.visitor import visiting
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.long

FOREIGN = "http://evil.example"


def got(address, path="/", **headers):
    """Return status, headers and text of an answer, whatever the status."""
    try:
        with urlopen(Request(address + path, headers=headers), timeout=DEADLINE_S) as answer:
            return answer.status, answer.headers, answer.read().decode()
    except HTTPError as refusal:
        return refusal.code, refusal.headers, refusal.read().decode()


def raw(address, host, path="/_stcore/stream", **headers):
    """Return status and text of the answer to a request under the name `host`."""
    with closing(HTTPConnection(urlsplit(address).netloc, timeout=DEADLINE_S)) as connection:
        connection.putrequest("GET", path, skip_host=True)
        for name, value in {"Host": host, **headers}.items():
            connection.putheader(name, value)
        connection.endheaders()
        with connection.getresponse() as answer:
            return answer.status, answer.read().decode()


UPGRADE = {
    "Connection": "Upgrade",
    "Upgrade": "websocket",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


@pytest.mark.parametrize("path", ["/", "/api/ready", "/_stcore/health", "/_stcore/metrics", "/media/none"])
def test_every_answer_carries_the_headers_that_keep_others_out(address, path):
    _, headers, _ = got(address, path)

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "SAMEORIGIN"
    assert headers["content-security-policy"] == f"frame-ancestors 'self'; {OWN_PICTURES}"
    assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize("path", ["/_stcore/metrics", "/_stcore/metrics/"])
def test_metrics_are_not_public(address, path):
    status, _, text = got(address, path)

    assert (status, text) == (404, "Not found\n")


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8501", "[", ""])
@pytest.mark.parametrize("extra", [{}, {**UPGRADE, "Origin": FOREIGN}], ids=["http", "websocket"])
def test_a_foreign_name_is_refused_with_the_names_that_are_not(address, host, extra):
    status, text = raw(address, host, "/", **extra) if not extra else raw(address, host, **extra)

    assert status == 400
    assert "This server does not accept requests for the name in the address. Use one of: localhost, 127.0.0.1" in text
    assert "GPUEXPLORE_ALLOWED_HOSTS" in text


@pytest.mark.parametrize("host", ["localhost", "localhost:8501", "127.0.0.1:80", "[::1]:8501", "LOCALHOST"])
def test_names_of_this_machine_are_answered(address, host):
    assert raw(address, host, "/_stcore/health") == (200, "ok")


def test_a_websocket_of_another_origin_is_refused(address):
    with pytest.raises(InvalidStatus), visiting(address.replace("127.0.0.1", "localhost"), Host="evil.example"):
        pass


@pytest.mark.parametrize(
    "origin",
    ["http://127.0.0.1:9", "http://localhost:9", FOREIGN, "null", "http://[", "http://127.0.0.1:port", "file://"],
)
def test_a_page_of_another_port_or_server_is_refused_with_what_to_do(address, origin):
    host = urlsplit(address).netloc

    assert raw(address, host, **UPGRADE, Origin=origin) == (403, FOREIGN_PAGE.format(origin=origin))


def test_a_file_that_a_foreign_page_sends_is_refused(address):
    request = Request(f"{address}/_stcore/upload_file/x/y", data=b"x", headers={"Origin": FOREIGN}, method="PUT")
    with pytest.raises(HTTPError) as refused:
        urlopen(request, timeout=DEADLINE_S)

    with refused.value as answer:
        assert (answer.code, answer.read().decode()) == (403, FOREIGN_PAGE.format(origin=FOREIGN))


@pytest.mark.parametrize(
    ("origin", "host", "own"),
    [
        ("https://lab.example.org", "lab.example.org", True),
        ("https://lab.example.org", "lab.example.org:443", True),
        ("https://LAB.example.org", "lab.Example.org", True),
        ("http://lab:8501", "lab:8501", True),
        ("http://[::1]:8501", "[::1]:8501", True),
        ("http://lab:8502", "lab:8501", False),
        ("http://lab", "lab:8501", False),
        ("https://lab.example.org.evil", "lab.example.org", False),
        ("https://lab.example.org", "127.0.0.1:8501", False),
    ],
)
def test_an_origin_is_the_servers_own_by_name_and_port(origin, host, own):
    assert _own_origins()(origin, host) is own


def test_ready_means_that_a_supervisor_measures(address):
    status, headers, text = got(address, "/api/ready")

    assert status == 200
    assert headers["content-type"] == "application/json"
    assert json.loads(text)["ready"] is True


def test_a_database_that_cannot_be_used_is_told_in_a_sentence_on_pages_too(tmp_path):
    (tmp_path / "gpuexplore.sqlite3").write_bytes(b"no database " * 1000)
    with served(tmp_path, warm=False, settings={"GPUEXPLORE_SUPERVISOR": "external"}) as address:
        answers = [got(address, path) for path in ("/api/ready", "/api/status")]
        with visiting(address, "devices") as visitor:
            said = visitor.run()

    assert [status for status, _, _ in answers] == [503, 503]
    (reason,) = {json.loads(text)["reason"] for _, _, text in answers}
    assert "database" in reason
    assert reason in said.replace("\\", "")
    assert "Traceback" not in (tmp_path / "server.log").read_text()


def test_status_tells_of_queue_and_devices_and_of_nobody(address):
    _, _, text = got(address, "/api/status")
    told = json.loads(text)
    (supervisor,) = told["supervisors"]

    assert told["version"] == __version__
    assert (told["waiting"], told["running"], told["yours"]) == (0, 0, None)
    assert supervisor["devices"][0]["id"].endswith("cpu")
    assert set(supervisor) == {"host", "version", "state", "alive", "age_s", "devices"}
    assert "owner" not in text


def test_a_browser_without_a_name_gets_one_with_its_first_page(address):
    _, headers, _ = got(address)
    cookie = headers["set-cookie"]

    assert cookie.startswith(f"{OWNER_COOKIE}=")
    assert "HttpOnly" in cookie
    assert "SameSite=lax" in cookie
    assert "Secure" not in cookie, "this server has no TLS"


def test_a_browser_that_kept_the_page_and_forgot_its_cookie_gets_a_new_one(address):
    _, first, _ = got(address, Accept="text/html")
    kept = {"If-None-Match": first["etag"]}
    status, headers, _ = got(address, Accept="text/html,application/xml;q=0.9", **kept)

    assert status == 304
    assert headers["set-cookie"].startswith(f"{OWNER_COOKIE}=")
    assert got(address, Accept="*/*", **kept)[1]["set-cookie"] is None, "a script is no page"


@pytest.mark.parametrize("cookie", ["x" * 3000, "x" * 65, "user:ada@example.org", "gr\xfc\xdfe", "a\x7fb"])
def test_a_cookie_we_never_gave_is_replaced(address, cookie):
    _, headers, _ = got(address, Cookie=f"{OWNER_COOKIE}={cookie}")

    assert headers["set-cookie"].startswith(f"{OWNER_COOKIE}=")
    assert not is_cookie(cookie)


def test_a_cookie_of_ours_stays(address):
    _, headers, _ = got(address, Cookie=f"{OWNER_COOKIE}=7oF1mQdHv-lOf7dt6kNpug")

    assert headers["set-cookie"] is None


def answered(host="127.0.0.1:8501", **headers):
    """Return status, headers and text of a page behind our layers, with the settings as they are now."""
    parts = []

    async def whose(request):
        return HTMLResponse(request.client.host)

    async def receive():
        return {"type": "http.request", "body": b""}

    async def send(message):
        parts.append(message)

    app = Starlette(routes=[Route("/", whose)], middleware=list(MIDDLEWARE))
    headers = {"host": host, **headers}
    scope = {
        "type": "http",
        "method": "GET",
        "path": "/",
        "query_string": b"",
        "scheme": "http",
        "client": ("127.0.0.1", 9),
        "server": ("127.0.0.1", 8501),
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
    }
    asyncio.run(app(scope, receive, send))
    start, body = parts[:2]
    return start["status"], Headers(raw=start["headers"]), body["body"].decode()


def test_names_and_proxies_are_settings(monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_ALLOWED_HOSTS", "lab.example.org,*.lab.example.org")
    monkeypatch.setenv("GPUEXPLORE_TRUSTED_PROXIES", "127.0.0.1")

    assert answered("lab.example.org:8501")[0] == 200
    assert answered("gpu.lab.example.org")[0] == 200
    assert answered("elab.example.org")[0] == 400
    _, headers, _ = answered("lab.example.org", **{"x-forwarded-proto": "https"})
    assert "Secure" in headers["set-cookie"], "the proxy has TLS"


@pytest.mark.parametrize(("trusted", "expected"), [("127.0.0.1", "192.0.2.7"), ("192.0.2.1", "127.0.0.1")])
def test_the_address_of_a_visitor_is_a_trusted_proxys_word(monkeypatch, trusted, expected):
    monkeypatch.setenv("GPUEXPLORE_TRUSTED_PROXIES", trusted)

    assert answered(**{"x-forwarded-for": "203.0.113.9, 192.0.2.7"})[2] == expected


def test_a_space_of_hugging_face_answers_to_its_name_and_may_be_framed_by_its_page(monkeypatch):
    space = "ada-gpuexplore.hf.space"  # Hugging Face sets it
    monkeypatch.setenv("SPACE_HOST", space)
    status, headers, _ = answered(space)

    assert status == 200
    assert answered("eve-gpuexplore.hf.space")[0] == 400
    assert headers["content-security-policy"].startswith("frame-ancestors 'self' https://huggingface.co;")
    assert "x-frame-options" not in headers


PROXY = "8501-gpu-t4-s-1.us-east1-0.prod.colab.dev"


def test_the_name_of_the_proxy_in_front_is_one_of_the_servers_own(monkeypatch):
    options = {"browser.serverAddress": PROXY}
    monkeypatch.setattr(middleware, "get_option", lambda name: options.get(name, get_option(name)))

    assert [answered(host)[0] for host in (PROXY, f"x.{PROXY}", "localhost")] == [200, 400, 200]


def test_behind_a_proxy_its_name_is_answered_and_its_pages_may_be_framed(tmp_path):
    own = {"GPUEXPLORE_ALLOWED_HOSTS": "lab.example.org"}
    home = {"GPUEXPLORE_HOME": str(tmp_path), "GPUEXPLORE_SUPERVISOR": "external"}
    frames = {"GPUEXPLORE_FRAMED_BY": "https://colab.research.google.com, https://*.googleusercontent.com"}
    port = free_port()
    command = [sys.executable, "-m", "gpuexplore", "app", "--port", str(port), "--behind-proxy", PROXY]
    address, origin = f"http://127.0.0.1:{port}", {"origin": f"https://{PROXY}"}
    with subprocess.Popen(command, env=os.environ | own | home | frames, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until_served(process, port)
            _, headers, _ = got(address)
            assert raw(address, PROXY, "/_stcore/health") == (200, "ok")
            assert raw(address, f"x.{PROXY}", "/_stcore/health")[0] == 400
            with visiting(address, "devices", origin) as visitor:  # as a proxy that names itself in Origin alone
                assert visitor.run()
            with pytest.raises(InvalidStatus), visiting(address, "devices", {"origin": "https://x.prod.colab.dev"}):
                pass
        finally:
            process.terminate()
    assert "x-frame-options" not in headers
    policy = "frame-ancestors 'self' https://colab.research.google.com https://*.googleusercontent.com"
    assert headers["content-security-policy"] == f"{policy}; {OWN_PICTURES}"


@pytest.fixture(scope="module")
def hosted(tmp_path_factory):
    """Return home and address of a server without a supervisor, behind a proxy, whose name is in a secret."""
    home = tmp_path_factory.mktemp("hosted")
    (home / "secrets.toml").write_text('GPUEXPLORE_ALLOWED_HOSTS = "ada.streamlit.app"\n')
    settings = {"STREAMLIT_SECRETS_FILES": str(home / "secrets.toml"), "GPUEXPLORE_SUPERVISOR": "external"}
    settings |= {"GPUEXPLORE_TRUSTED_PROXIES": "127.0.0.1", "FORWARDED_ALLOW_IPS": ""}
    with served(home, warm=False, settings=settings) as address:
        yield home, address


def test_without_a_supervisor_the_server_is_not_ready_and_says_why(hosted):
    status, _, text = got(hosted[1], "/api/ready")

    assert status == 503
    assert json.loads(text) == {"ready": False, "reason": "No supervisor has reported in the last 5 seconds"}


def test_a_secret_of_the_top_level_sets_the_names_where_a_host_offers_no_variables(hosted):
    assert raw(hosted[1], "ada.streamlit.app", "/_stcore/health") == (200, "ok")
    assert raw(hosted[1], "eve.streamlit.app", "/_stcore/health")[0] == 400


def test_a_run_is_of_the_address_that_a_trusted_proxy_names(hosted):
    home, address = hosted
    with visiting(address, **{"X-Forwarded-For": "203.0.113.9, 192.0.2.7"}) as visitor:
        visitor.run()
        (run,) = [button for button in visitor.buttons() if button.label.startswith("Run ")]
        visitor.run("", WidgetState(id=run.id, trigger_value=True))
    with open_store(database_of(home)) as store, store.reading() as connection:
        assert connection.scalars(select(RUNS.c.address)).all() == ["192.0.2.7"]
