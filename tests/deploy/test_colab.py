"""The notebook does what it says where neither git nor make is, and leaves the torch that is there alone."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
import sysconfig
import tempfile
from importlib.metadata import distribution
from pathlib import Path

import pytest

from gpuexplore import __version__
from tests.docs.markdown import ROOT
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.slow

NOTEBOOK = ROOT / "docs" / "colab.ipynb"
RUNNER = Path(__file__).with_name("run_cells.py")
THERE = ("sh", "uname", "ldconfig")  # on PATH, and nothing else: no git, no make
SHORT_VERSION = f"python{sys.version_info.major}.{sys.version_info.minor}"
NOT_ROOT = "the tests run as nobody special already, or nobody may use no Python of this version and no library of ours"


@pytest.fixture(scope="module")
def place():
    """Give a folder that everybody may enter, other than pytest's."""
    with tempfile.TemporaryDirectory(prefix="gpuexplore-colab-") as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture(scope="module")
def wheel(place):
    command = [sys.executable, "-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--quiet", "-w", place, ROOT]
    subprocess.run(command, check=True, timeout=DEADLINE_S)
    (found,) = place.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def nobody():
    """Return the interpreter and the options of a process that is not root's; without options where none can be."""
    libraries = sysconfig.get_path("purelib")
    others = {"user": "nobody", "group": pwd.getpwnam("nobody").pw_gid, "extra_groups": []}
    bases = (sys._base_executable, shutil.which(SHORT_VERSION, path="/usr/bin"))
    if os.geteuid() == 0:
        for base in filter(None, bases):
            looks = f"import os, sys; sys.exit(not os.access({libraries!r}, os.R_OK))"
            if can(base, "-c", looks, **others):
                return base, others
    return bases[0], {}


def can(*command, **options):
    try:
        return subprocess.run(command, check=False, cwd="/", **options).returncode == 0
    except PermissionError:
        return False


@pytest.fixture
def machine(place, nobody, wheel):
    """Give a machine as a notebook's: an interpreter, an empty home, and what a process there gets."""
    base, options = nobody
    folder = Path(tempfile.mkdtemp(dir=place))
    subprocess.run([base, "-m", "venv", "--without-pip", folder / "python"], check=True)
    site = folder / "python" / "lib" / SHORT_VERSION / "site-packages"
    (site / "rest.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # without its .pth files: not the checkout
    for name in ("home", "notebook", "bin"):
        (folder / name).mkdir()
    for name in THERE:
        (folder / "bin" / name).symlink_to(shutil.which(name, path="/bin:/usr/bin:/sbin"))
    for path in (RUNNER, NOTEBOOK, wheel):
        shutil.copy(path, folder / "notebook")
    if options:
        give(folder, options)
    variables = {"PATH": f"{folder / 'bin'}", "HOME": f"{folder / 'home'}", "LANG": "C.UTF-8"}
    pip = {"PIP_NO_INDEX": "1", "PIP_CONFIG_FILE": os.devnull, "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    return {"folder": folder, "site": site, "options": {"env": variables | pip, "cwd": folder / "notebook", **options}}


def give(folder, options):
    """Make a folder and all below it that user's."""
    uid = pwd.getpwnam(options["user"]).pw_uid
    for path in (folder, *folder.rglob("*")):
        os.chown(path, uid, options["group"], follow_symlinks=False)


def cells(machine, wheel, *words, **variables):
    """Run the cells on a machine and return what each gave, and what was printed."""
    options = machine["options"]
    command = [machine["folder"] / "python" / "bin" / "python", RUNNER.name, NOTEBOOK.name]
    done = subprocess.run(
        [*command, f"SOURCE=./{wheel.name}[app]", *words],  # what a GPU needs comes from an index
        **options | {"env": options["env"] | variables},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    *printed, found = done.stdout.splitlines()
    return json.loads(found), "\n".join(printed) + done.stderr


def contents(folder):
    return {path.name: (path.read_bytes(), path.stat().st_mtime_ns) for path in folder.iterdir() if path.is_file()}


def test_the_cells_measure_and_serve_and_leave_torch_alone(machine, wheel):
    torch = distribution("torch")._path
    before = contents(torch)

    found, printed = cells(machine, wheel, "BY=a test")

    assert contents(torch) == before
    assert [path.name for path in machine["site"].glob("torch*")] == []
    report, recording = map(Path, found["measure"]["files"])
    assert "the list of files of Jupyter" in found["measure"]["text"]
    assert "not part of the quick test" in report.read_text()
    check = [machine["folder"] / "python" / "bin" / "python", "-m", "gpuexplore", "record", "--check", recording]
    checked = subprocess.run(check, **machine["options"], capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr
    assert "by a test" in checked.stdout
    assert found["app"]["health"] == "ok"
    assert f'<iframe src="http://localhost:{found["app"]["port"]}"' in found["app"]["html"]
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):  # the app has ended with the notebook
        probe.connect(("127.0.0.1", found["app"]["port"]))
    assert "Traceback" not in printed


@pytest.mark.parametrize("version", ["2.6.0+cu124", "2.15.0"])
def test_a_torch_of_another_version_is_left_alone(machine, wheel, version):
    told = machine["folder"] / "notebook" / "before" / f"torch-{version}.dist-info"  # what pip reads of it
    told.mkdir(parents=True)
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    (told / "RECORD").touch()
    (told / "INSTALLER").write_text("pip")
    before = contents(told)

    cells(machine, wheel, "--only", "install", PYTHONPATH=str(told.parent))

    assert contents(told) == before
    installed = {path.name for path in machine["site"].glob("*.dist-info")}
    assert installed == {f"gpuexplore-{__version__}.dist-info"}


def test_on_kaggle_the_app_says_that_it_cannot_be_shown(machine, wheel):
    cells(machine, wheel, "--only", "install")

    found, _ = cells(machine, wheel, "--only", "app", KAGGLE_KERNEL_RUN_TYPE="Interactive")

    assert found["app"]["port"] is None
    assert found["app"]["text"].startswith("Kaggle's machines have no port that a browser can reach")


def test_nothing_of_this_needs_root(nobody):
    if not nobody[1]:
        pytest.skip(NOT_ROOT)
    assert can(*nobody[:1], "-c", "import os; assert os.geteuid() != 0", **nobody[1])


@pytest.mark.gpu
def test_the_recording_has_the_gpu(machine, wheel):
    found, _ = cells(machine, wheel)

    assert '"cuda:0"' in Path(found["measure"]["files"][1]).read_text()
