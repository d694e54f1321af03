"""Pages under AppTest: a home, a store and a machine of their own, and no process is started."""

import json
import re
import sys
from functools import cache

import pytest
from streamlit.components.v2 import manifest_scanner
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest

from gpuexplore.activity import DEVICE, ActivityReport
from gpuexplore.core.model import Experiment, Shape
from gpuexplore.hardware.identity import device_key
from gpuexplore.kernels.files.machine_code import CompiledKernel
from gpuexplore.kernels.sass import Control, Line
from gpuexplore.registry import FEATURES
from gpuexplore.store import Supervisor
from gpuexplore.ui import roles, session, shared
from gpuexplore.ui.benchmark.form import NO_RUN, OPEN
from gpuexplore.ui.markdown import WORD_JOINER
from gpuexplore.ui.navigation import pages
from gpuexplore.ui.server import OWNER_COOKIE
from gpuexplore.ui.shared import later
from tests.analysis.made import device, ok
from tests.kernels.test_sass import code
from tests.waiting import DEADLINE_S

OWNER = "the one who looks"
COMPONENTS_ONCE = cache(manifest_scanner.scan_component_manifests)  # AppTest reads every package's metadata each time
CODE = code("MOV R1,R9", *(f"FFMA R{n},R90,R91,R{n}" for n in range(8)), "@P0 BRA 0x10", "EXIT")
LINES = tuple(Line(each, Control(2, True, None, None, (), ()), 9) for each in CODE)


def compiled(target):
    return CompiledKernel(
        target.compute_capability, "sm_00", "13.0", ".visible .entry made_up()", b"", 40, 2048, 0, 0, 0, 0
    )


@pytest.fixture(autouse=True)
def compiler(monkeypatch):
    """Answer for the compiler, which takes 5 s for a kernel, and return what it was asked."""
    asked = []

    def answer(targets):
        asked.extend(targets)
        return [compiled(target) for target in targets]

    monkeypatch.setattr(later.Later, "get", lambda self, key, make: make())  # AppTest does not look again
    if "machine_code" in FEATURES:
        monkeypatch.setattr("gpuexplore.features.machine_code.ui.facts.compiled_kernels", answer)
        monkeypatch.setattr("gpuexplore.features.machine_code.ui.machine_code.lines_of_ours", lambda _: LINES)
    return asked


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch, quick_database):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    monkeypatch.setattr(session, "discover", lambda: (device(memory_bytes=2**34),))
    monkeypatch.setattr(shared, "LOOK_S", 1e-9)  # no test waits until a look is old
    get = shared.Shared.get  # the tests of a process are no visitors of one server: each has values of its own
    monkeypatch.setattr(shared.Shared, "get", lambda self, key, make: get(self, (tmp_path, key), make))
    monkeypatch.setattr(manifest_scanner, "scan_component_manifests", COMPONENTS_ONCE)
    main = sys.modules["__main__"]
    yield tmp_path
    sys.modules["__main__"] = main  # AppTest leaves the page there, and every spawned process would run it
    session.store().close()
    session.store.cache_clear()
    session._VISITS.clear()
    session._TROUBLES.clear()
    roles._SHOWED.clear()


@pytest.fixture
def store(home):
    return session.store()


@pytest.fixture
def page(monkeypatch):
    """Return a function that opens a page by its name with URL parameters and runs it, as the browser of `owner`.

    The name of one that is a view of another now leads there, as the navigation does.
    """

    def opened(name, owner=OWNER, **query):
        monkeypatch.setattr(ContextProxy, "cookies", {OWNER_COOKIE: owner})
        home = next((each for each in pages().values() if each.also == name), None)
        app = AppTest.from_file(str((home or pages()[name]).file), default_timeout=DEADLINE_S)
        query |= {"view": name} if home else {}
        app.session_state[OPEN] = NO_RUN  # the form of Benchmark, which is one line at first
        for key, value in query.items():
            app.query_params[key] = value
        return app.run()

    return opened


@pytest.fixture
def experiment():
    return Experiment(
        "matmul",
        tuple(Shape.of(m=size, k=size, n=size) for size in (64, 128)),
        ("fp32", "bf16"),
        ("numpy", "torch"),
    )


@pytest.fixture
def results(experiment):
    return [
        ok(
            1e-3 * (1 + (case.implementation == "torch")),
            size=case.shape["m"],
            dtype=case.dtype,
            implementation=case.implementation,
        )
        for case in experiment.cases()
    ]


@pytest.fixture
def finished(store, experiment, results):
    """Return the id of a run that is done."""
    return store.record(experiment, OWNER, results=results)


@pytest.fixture
def claimed(store, experiment):
    """Return the claim of a run that is being measured."""
    store.submit(experiment, OWNER)
    return store.claim("tests", {"cpu", "cuda:0"})


@pytest.fixture
def beat(store):
    """Return how a supervisor reports itself."""

    def reported(state, *devices, name="tests"):
        instance = Supervisor(name, host=name, scope=name, pid=1, version="tests")
        store.heartbeat(instance, state=state, devices=devices)

    return reported


def told(payload, on=None, versions=None):
    """Return a report of an activity that was done on a device: the made one of these tests, or another."""
    return ActivityReport(payload, {**(versions or {}), DEVICE: device_key(on or device())})


def texts(elements):
    """Return what `elements` say, in one string, as a reader sees it: without Markdown's backslashes and joiners."""
    shown = "\n".join(str(element.value) for element in elements)
    return re.sub(r"\\(.)", r"\1", shown.replace(WORD_JOINER, ""))


def only(value):
    """Return the one value of a URL parameter, which AppTest lists once it was written."""
    return value if isinstance(value, str) else value[0]


def link_of(app):
    """Return the parameters of the link."""
    return {name: only(value) for name, value in app.query_params.items()}


def button(app, label):
    return next(each for each in app.button if each.label == label)


def specs(app):
    """Return the charts of a page, as Vega-Lite."""
    return [chart.proto.spec for chart in app.get("vega_lite_chart")]


def spec(app):
    """Return the only chart of a page."""
    (only_one,) = specs(app)
    return json.loads(only_one)
