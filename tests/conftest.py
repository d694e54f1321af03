"""What every test gets: a home of its own, a kernel cache that lasts, and a reason when there is no GPU."""

import gc
import os
import shutil
import sys
import tempfile
from functools import cache, partial
from importlib import import_module
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import pynvml
import pytest
from hypothesis import settings

from tests.unchanged import mark_unchanged, write_passed

MEASURING = ("slow", "gpu")  # markers
CHROMIUMS = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
ROOT = Path(__file__).resolve().parent.parent

# Without bytecode on disk every worker and each of dozens of interpreters would compile all files anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Before any test imports the package: nothing may touch the home of whoever runs the tests.
_HOME = tempfile.TemporaryDirectory(prefix="gpuexplore-tests-", ignore_cleanup_errors=True)
os.environ["GPUEXPLORE_HOME"] = _HOME.name
os.environ["GPUEXPLORE_LOCKS"] = str(Path(_HOME.name) / "locks")  # tests side by side do not wait for each other
_CODE = import_module("gpuexplore.measure").shared_kernel_code()
os.environ.setdefault("NUMBA_CACHE_DIR", str(ROOT / ".pytest_cache" / "numba" / _CODE))  # compiled once, not each time

settings.register_profile("gpuexplore", deadline=None, derandomize=True)  # no verdict depends on speed or luck
settings.load_profile("gpuexplore")


def pytest_unconfigure():
    _HOME.cleanup()


def pytest_addoption(parser):
    parser.addoption("--note-passed", action="store_true", help="write tests/passed.json: which heavy tests passed")


def pytest_terminal_summary(terminalreporter, config):
    """Note which heavy tests passed, where that is wanted."""
    if config.getoption("note_passed"):
        write_passed(terminalreporter.stats.get("passed", ()))


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Make a million objects that stay, and look for no garbage among them: that is a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@cache
def why_no_gpu():
    """Return why no NVIDIA GPU can be used here, or None."""
    try:
        pynvml.nvmlInit()
        return None if pynvml.nvmlDeviceGetCount() else "the NVIDIA driver lists no GPU"
    except pynvml.NVMLError as error:
        return f"no NVIDIA GPU: {error}"


@pytest.hookimpl(tryfirst=True)  # before `-m` chooses
def pytest_collection_modifyitems(items):
    """Mark what renders pages as long and what has not changed; see that `make measuring` finds all."""
    mark_unchanged(items)
    for item in items:
        if "page" in item.fixturenames:
            item.add_marker("long")
    mixed_up = {item.path for item in items if Path(getattr(item, "module", item).__file__) != item.path}
    if mixed_up:
        raise pytest.UsageError(f"these files have a module's name of another file, whose tests ran: {mixed_up}")
    unseen = {item.path for item in items if any(map(item.get_closest_marker, MEASURING)) and not _names(item.path)}
    if unseen:
        raise pytest.UsageError(f"make measuring looks for {MEASURING} in files, and passes over {sorted(unseen)}")


@cache
def _names(path):
    """Return whether a file names a marker of what `make measuring` runs, as the Makefile looks for it."""
    text = path.read_text(encoding="utf-8")
    return any(f"mark.{marker}" in text for marker in MEASURING)


def pytest_runtest_setup(item):
    if item.get_closest_marker("gpu") and (reason := why_no_gpu()):
        pytest.skip(reason)


@pytest.fixture(autouse=True)
def _no_call_times(monkeypatch):
    """Forget how long calls took in the tests before: what is slow is measured last."""
    monkeypatch.setattr(import_module("gpuexplore.measure.sample.slow_cases"), "_seen", {})


@pytest.fixture(scope="session")
def repository():
    """Return the root of the repository."""
    return ROOT


@pytest.fixture(scope="session")
def database_file(tmp_path_factory):
    """Return a database of SQLite with its schema and no rows: making one takes 60 ms."""
    file = tmp_path_factory.mktemp("database") / "gpuexplore.sqlite3"
    import_module("gpuexplore.store").open_store(f"sqlite:///{file}").close()
    return file


@pytest.fixture
def quick_database(database_file, monkeypatch):
    """Where this process makes a file of SQLite, copy one that has its schema."""
    upgrade = import_module("gpuexplore.store.upgrade")
    create = upgrade.create

    def copy(engine):
        file = engine.url.database if engine.dialect.name == "sqlite" else None
        is_new = file not in (None, "", ":memory:") and not Path(file).exists()
        create(engine)
        if is_new:
            shutil.copyfile(database_file, file)

    monkeypatch.setattr(upgrade, "create", copy)
    store = import_module("gpuexplore.store")
    monkeypatch.setattr(store, "connect", partial(_with_known_statements, store.connect))


_ENGINES = {}  # by dialect, the first that was connected


def _with_known_statements(connect, url):
    """Return an engine that compiles no statement again which another one in this process has compiled."""
    engine = connect(url)
    known = _ENGINES.setdefault(engine.dialect.name, engine)
    if known.dialect.server_version_info is None:  # it was never connected
        _ENGINES[engine.dialect.name] = engine
    elif known is not engine:
        engine.dialect, engine._compiled_cache = known.dialect, known._compiled_cache
    return engine


@pytest.fixture(scope="session")
def server_home(tmp_path_factory):
    """Return the home of the server that `address` names."""
    home = tmp_path_factory.mktemp("served")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUEXPLORE_HOME", str(home))
        import_module("tests.made_ceiling").save_made_ceiling()
    return home


@pytest.fixture(scope="session")
def address(server_home):
    """Return the address of a server as it ships, in a process of its own, whose supervisor is ready."""
    with import_module("scripts.app_server").served(server_home) as found:
        yield found


@pytest.fixture(scope="session")
def nvdisasm():
    """Skip where NVIDIA's disassembler is not installed."""
    try:
        files("nvidia-cuda-nvdisasm")
    except PackageNotFoundError:
        if not shutil.which("nvdisasm"):
            pytest.skip("nvdisasm is not installed: make installs it on Linux")


@pytest.fixture(scope="session")
def chromium():
    """Return the Chromium to drive, or None for Playwright's own; `make test` sets CHROMIUM."""
    named = os.environ.get("CHROMIUM")
    return named or next(filter(None, map(shutil.which, CHROMIUMS)), None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return an empty folder that stands in for the shipped recordings."""
    library = import_module("gpuexplore.recorded")
    found = tmp_path / "recordings"
    found.mkdir()
    monkeypatch.setattr(library, "FOLDER", found)
    _forget_points()
    yield found
    _forget_points()


def _forget_points():
    """Forget what the atlas keeps for the life of a process: the recordings are among its points."""
    for name in [
        name
        for name in sys.modules
        if name.startswith(("gpuexplore.features.atlas.analysis", "gpuexplore.features.atlas.ui"))
    ]:
        for value in vars(sys.modules[name]).values():
            if hasattr(value, "cache_clear") and not isinstance(value, type):
                value.cache_clear()
