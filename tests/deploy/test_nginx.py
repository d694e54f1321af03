"""The app behind nginx as it ships: TLS, a login, the visitor's name and address, and websockets."""

import socket
import ssl
import subprocess
from base64 import b64encode
from contextlib import contextmanager
from getpass import getuser
from shutil import which
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from scripts.app_server import served
from tests.docs.markdown import ROOT
from tests.ui.visitor import visiting
from tests.waiting import DEADLINE_S, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not which("nginx"), reason="nginx is not installed")]

LOGIN = f"Basic {b64encode(b'ada@example.org:secret').decode()}"
SETTINGS = {
    "FORWARDED_ALLOW_IPS": "",
    "GPUEXPLORE_ALLOWED_HOSTS": "localhost",
    "GPUEXPLORE_TRUSTED_PROXIES": "127.0.0.1",
    "STREAMLIT_SERVER_TRUSTED_USER_HEADERS": '{"X-Remote-User": "user"}',
}
WITHOUT_CHECKS = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # the certificate is made for this test
WITHOUT_CHECKS.check_hostname, WITHOUT_CHECKS.verify_mode = False, ssl.CERT_NONE
KINDS = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
FRAME = (
    """user {user}; daemon off; pid {home}/nginx.pid; error_log {home}/error.log;
events {{}}
http {{
    access_log off;
"""
    + "".join(f"    {kind}_temp_path {{home}}/{kind};\n" for kind in KINDS)
    + "{shipped}}}\n"
)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory):
    """Return the addresses of nginx and of the app behind it."""
    home = tmp_path_factory.mktemp("nginx")
    with served(home, warm=False, settings=SETTINGS) as address, _nginx(home, address) as found:
        yield found, address


@contextmanager
def _nginx(home, address):
    plain, secure = _free_port(), _free_port()
    config = _config(home, address, plain, secure)
    checked = subprocess.run(["nginx", "-t", "-c", config], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    process = subprocess.Popen(["nginx", "-c", config], stderr=subprocess.DEVNULL)
    try:
        _wait_for(secure)
        yield f"https://localhost:{secure}"
    finally:
        process.terminate()
        process.wait(DEADLINE_S)


def _config(home, address, plain, secure):
    """Write the shipped file with this machine's name, ports and paths, within the frame that nginx needs."""
    certificate, key, users = home / "test.pem", home / "test.key", home / "users"
    made = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=localhost", "-days", "1"]
    subprocess.run([*made, "-keyout", key, "-out", certificate], capture_output=True, check=True)
    hashed = subprocess.run(["openssl", "passwd", "-apr1", "secret"], capture_output=True, text=True, check=True)
    users.write_text(f"ada@example.org:{hashed.stdout}")
    shipped = (ROOT / "deploy" / "nginx.conf").read_text(encoding="utf-8")
    replaced = {
        "http://127.0.0.1:8501": address,
        "listen 80;": f"listen 127.0.0.1:{plain};",
        "listen 443 ssl;": f"listen 127.0.0.1:{secure} ssl;",
        "lab.example.org;": "localhost;",
        "/etc/ssl/certs/lab.example.org.pem": str(certificate),
        "/etc/ssl/private/lab.example.org.key": str(key),
        "/etc/nginx/gpuexplore.htpasswd": str(users),
    }
    for old, new in replaced.items():
        assert old in shipped
        shipped = shipped.replace(old, new)
    (home / "nginx.conf").write_text(FRAME.format(user=getuser(), home=home, shipped=shipped))
    return str(home / "nginx.conf")


def _free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def _wait_for(port):
    def listens():
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, what="nginx")


def got(address, path="/", **headers):
    """Return status and headers of an answer."""
    try:
        with urlopen(Request(address + path, headers=headers), timeout=DEADLINE_S, context=WITHOUT_CHECKS) as answer:
            return answer.status, answer.headers
    except HTTPError as refusal:
        return refusal.code, refusal.headers


def account_shown(address, **headers):
    """Return whether a page over the websocket greets the account."""
    options = {"ssl": WITHOUT_CHECKS} if address.startswith("https") else {}
    with visiting(address, "devices", options, **headers) as visitor:
        visitor.run()
        return any("ada@example.org" in text.replace("\\", "") for text in visitor.captions())


def test_without_a_login_there_is_no_page(proxy):
    status, headers = got(proxy[0])

    assert status == 401
    assert "max-age" in headers["strict-transport-security"]
    assert got(proxy[0], "/api/status")[0] in (200, 503), "monitors need none"
    wrong = got(proxy[0], "/metrics", Authorization="Bearer wrong")[0]
    assert wrong == 404, "metrics have a token of their own, are off by default, and no login of nginx asks"


def test_the_cookie_is_for_tls_alone_and_long_links_are_answered(proxy):
    status, headers = got(proxy[0], Authorization=LOGIN)

    assert status == 200
    assert "Secure" in headers["set-cookie"]
    assert got(proxy[0], f"/?shapes={'m=512;' * 2000}", Authorization=LOGIN)[0] == 200


def test_a_websocket_through_nginx_is_the_accounts(proxy):
    assert account_shown(proxy[0], Authorization=LOGIN)


def test_the_name_a_browser_claims_is_replaced(proxy):
    assert account_shown(proxy[0], **{"Authorization": LOGIN, "X-Remote-User": "grace@example.org"})


def test_a_visitor_who_comes_past_a_proxy_that_is_not_trusted_has_no_account(tmp_path):
    settings = SETTINGS | {"GPUEXPLORE_TRUSTED_PROXIES": "192.0.2.1", "GPUEXPLORE_ALLOWED_HOSTS": ""}
    with served(tmp_path, warm=False, settings=settings) as address:
        assert not account_shown(address, **{"X-Remote-User": "ada@example.org"})
