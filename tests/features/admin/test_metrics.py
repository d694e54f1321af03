"""What is served at /metrics, to whom, and that a strict reader takes it."""

import pytest
from starlette.requests import Request

import gpuexplore
from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from gpuexplore.core.errors import StoreUnavailable
from gpuexplore.core.model import Device, Experiment, Shape
from gpuexplore.features.admin import routes
from gpuexplore.features.admin.routes import ROUTES, _exposition, _metric
from gpuexplore.store import Supervisor, open_store
from gpuexplore.ui.session import PAGE_ERRORS
from scripts.app_server import served
from tests.features.admin.openmetrics_parser import parsed
from tests.ui.test_server import got
from tests.ui.visitor import visiting

TOKEN = "0123456789abcdef"
EXPERIMENT = Experiment("matmul", (Shape.of(m=8, k=8, n=8),), ("fp32",), ("numpy",))


@pytest.fixture
def store(tmp_path, monkeypatch, quick_database):
    with open_store(f"sqlite:///{tmp_path}/watched.sqlite3") as opened:
        monkeypatch.setattr(routes, "store", lambda: opened)
        routes.FIGURES.forget()
        yield opened
        routes.FIGURES.forget()


class Client:
    """Asks the route as a server does."""

    def get(self, path, headers=None):
        (route,) = ROUTES
        assert route.path == path
        pairs = [(name.lower().encode(), value.encode()) for name, value in (headers or {}).items()]
        return Answer(route.endpoint(Request({"type": "http", "method": "GET", "path": path, "headers": pairs})))


class Answer:
    def __init__(self, response):
        self.status_code, self.headers, self.text = response.status_code, response.headers, response.body.decode()


@pytest.fixture
def client(store):
    return Client()


def set_to(monkeypatch, value):
    monkeypatch.setenv("GPUEXPLORE_METRICS", value)


@pytest.mark.parametrize("value", ["", "off", " "])
def test_without_the_setting_there_are_none(client, monkeypatch, value):
    set_to(monkeypatch, value)

    answer = client.get("/metrics")

    assert (answer.status_code, answer.text) == (404, "Not found\n")


def test_a_token_that_can_be_guessed_is_refused_without_being_told(client, monkeypatch):
    set_to(monkeypatch, "secret")

    answer = client.get("/metrics", headers={"Authorization": "Bearer secret"})

    assert answer.status_code == 503
    assert "tokens of at least 16 characters" in answer.text
    assert "secret" not in answer.text


@pytest.mark.parametrize(
    ("shown", "status"),
    [(None, 401), (f"Bearer {TOKEN}", 200), (f"bearer  {TOKEN}", 200), (f"Bearer {TOKEN}x", 401), (TOKEN, 401)],
)
def test_with_a_token_only_who_shows_it_is_answered(client, monkeypatch, shown, status):
    set_to(monkeypatch, TOKEN)

    answer = client.get("/metrics", headers={"Authorization": shown} if shown else {})

    assert answer.status_code == status
    assert ("gpuexplore_build" in answer.text) == (status == 200)
    assert (answer.headers.get("www-authenticate") == "Bearer") == (status == 401)


def test_a_strict_reader_finds_queue_runs_use_supervisors_disk_and_errors(client, store, monkeypatch):
    set_to(monkeypatch, "on")
    instance = Supervisor('lab"1\\', "lab", "scope", 1, "1")
    store.heartbeat(instance, state="ready", devices=[Device("cpu", "cpu", "CPU")])
    for _ in range(3):
        store.submit(EXPERIMENT, "ada")
    store.add_device_seconds(store.claim(instance.name, {"cpu"}), 2.5)
    before = parsed(client.get("/metrics").text)[0][("gpuexplore_page_errors_total", ())]
    PAGE_ERRORS.append("a reference")

    answer = client.get("/metrics")
    values, kinds = parsed(answer.text)

    assert answer.headers["content-type"] == "application/openmetrics-text; version=1.0.0; charset=utf-8"
    assert values[("gpuexplore_build_info", (("version", gpuexplore.__version__),))] == 1
    assert values[("gpuexplore_database_up", ())] == 1
    assert values[("gpuexplore_queue_runs", (("devices", "cpu"),))] == 2
    assert 0 < values[("gpuexplore_queue_oldest_wait_seconds", (("devices", "cpu"),))] < 60
    assert values[("gpuexplore_runs", (("state", "running"),))] == 1
    assert values[("gpuexplore_runs", (("state", "failed"),))] == 0
    assert values[("gpuexplore_device_use_seconds_total", (("devices", "cpu"),))] == 2.5
    age = ("gpuexplore_supervisor_age_seconds", (("host", "lab"), ("supervisor", 'lab\\"1\\\\')))
    assert 0 <= values[age] < 60
    assert values[("gpuexplore_database_size_bytes", ())] > 0
    assert values[("gpuexplore_disk_free_bytes", ())] > 0
    assert values[("gpuexplore_page_errors_total", ())] == before + 1
    assert set(kinds.values()) == {"gauge", "counter", "info"}


def test_one_look_at_the_database_serves_all_who_ask_within_a_second(client, store, monkeypatch):
    set_to(monkeypatch, "on")
    monkeypatch.setattr(routes, "moment", lambda looks: 1)
    looked = []
    monkeypatch.setattr(routes, "_figures", lambda _: looked.append(1))

    for _ in range(5):
        client.get("/metrics")

    assert looked == [1]


def test_without_a_database_the_server_says_that_it_is_down(client, monkeypatch):
    set_to(monkeypatch, "on")

    def fail(_):
        raise StoreUnavailable("gone")

    monkeypatch.setattr(routes, "_figures", fail)
    values, _ = parsed(client.get("/metrics").text)

    assert values[("gpuexplore_database_up", ())] == 0
    assert not [name for name, _ in values if name.startswith("gpuexplore_queue")]


def test_what_labels_and_sentences_may_hold_is_escaped():
    labels = {"host": 'a"b\\c\nd'}
    values, _ = parsed(
        _exposition([_metric("x", "gauge", "A \\ and\na line.", ((labels, 1e-7), ({}, 123456789012.0)))])
    )

    assert values == {("x", (("host", 'a\\"b\\\\c\\nd'),)): 1e-7, ("x", ()): 123456789012.0}


@pytest.mark.parametrize(
    "spoilt", ["x 1\n", "# EOF", "# TYPE x gauge\nx{a=} 1\n# EOF\n", "# TYPE x counter\nx 1\n# EOF\n", "# EOF\n\n"]
)
def test_the_reader_is_strict(spoilt):
    with pytest.raises((AssertionError, KeyError, TypeError)):
        parsed(spoilt)


pytestmark = pytest.mark.long


def test_own_metrics_are_served_only_where_a_setting_says_so(address):
    assert got(address, "/metrics")[0] == 404


def test_an_administrator_watches_copies_and_cannot_pull_the_database_away(tmp_path, monkeypatch, capsys):
    settings = {"GPUEXPLORE_SUPERVISOR": "external", "GPUEXPLORE_METRICS": "0123456789abcdef"}
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    copy = str(tmp_path / "copy")

    with served(tmp_path, warm=False, settings=settings) as address:
        with visiting(address, "queue") as visitor:
            visitor.run()
            status, headers, text = got(address, "/metrics", Authorization="Bearer 0123456789abcdef")
            refused, *_ = got(address, "/metrics")
        assert main(["backup", copy]) == EXIT_OK
        assert main(["restore", copy]) == EXIT_UNUSABLE
        assert "another program has it open" in capsys.readouterr().err

    values, _ = parsed(text)
    assert (status, refused) == (200, 401)
    assert headers["content-type"].startswith("application/openmetrics-text")
    assert values[("gpuexplore_sessions", ())] == 1
    assert values[("gpuexplore_database_up", ())] == 1
    assert main(["restore", copy]) == EXIT_OK
