"""The wheel serves the app and measures outside a checkout, and leaves a torch that is there alone."""

import asyncio
import json
import os
import shlex
import signal
import socket
import subprocess
import sys
import sysconfig
import venv
import zipfile

import pytest

from benchmarks.visitor import LONGEST_S, Visitor
from gpuexplore.core.served import COMMIT, LAUNCHER, PAGES
from scripts.app_server import free_port, wait_until_served
from tests.docs.markdown import ROOT
from tests.waiting import DEADLINE_S

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def environment(wheel, tmp_path_factory):
    """Return the interpreter of an environment with the wheel, and with all else from this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    python = folder / "bin" / "python"
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (site / "rest.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # without its .pth files: not the checkout
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(site)
    return python


@pytest.fixture
def outside(tmp_path):
    """Return the options of a process far from the checkout."""
    variables = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "GPUEXPLORE_LOCKS")}
    return {"cwd": tmp_path, "env": variables | {"GPUEXPLORE_HOME": str(tmp_path / "home")}}


def gpuexplore(python, outside, *arguments):
    command = [python, "-m", "gpuexplore", *arguments]
    done = subprocess.run(command, **outside, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_wheel_has_all_that_the_checkout_serves_and_no_more(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    served = {name.removeprefix("gpuexplore/_served/") for name in names if "/_served/" in name}

    pages = {f"pages/{path.name}" for path in PAGES.glob("*.py")}
    carried = {LAUNCHER.name, ".streamlit/config.toml", "docs/glossary.md", *pages}
    assert served - {COMMIT.name} == carried
    tracked = subprocess.run(["git", "ls-files", "gpuexplore"], cwd=ROOT, capture_output=True, text=True, check=False)
    if tracked.returncode == 0:  # else an archive without its history
        assert COMMIT.name in served, "a recording names the commit"
        assert set(tracked.stdout.splitlines()) <= names | {"gpuexplore/.gitignore"}


def test_the_wheel_carries_the_licences_of_what_it_ships(wheel):
    packed = zipfile.ZipFile(wheel)
    (metadata,) = (name for name in packed.namelist() if name.endswith(".dist-info/METADATA"))
    told = packed.read(metadata).decode()

    assert "License-Expression: Apache-2.0 AND MIT AND BSD-2-Clause AND BSD-3-Clause AND CC-BY-SA-4.0\n" in told
    for name in ("LICENSE", "NOTICE", "LICENSES/CC-BY-SA-4.0.txt"):
        assert f"License-File: {name}\n" in told
        assert packed.read(f"{metadata.removesuffix('METADATA')}licenses/{name}") == (ROOT / name).read_bytes()


def test_it_measures_and_predicts_where_there_is_no_checkout(environment, outside):
    where = "import gpuexplore; print(gpuexplore.__file__)"
    found = subprocess.run([environment, "-c", where], **outside, capture_output=True, text=True, check=True).stdout
    assert str(environment.parent.parent) in found
    run = shlex.split("run vector_add --size 1000 --dtype fp32 --impl numpy,torch --device cpu --json --budget 0.05")

    measured = json.loads(gpuexplore(environment, outside, *run))

    assert [result["status"] for result in measured["results"]] == ["ok", "ok"]
    assert "H100" in gpuexplore(environment, outside, "predict", "matmul", "--size", "1024", "--gpu", "H100 SXM5 80GB")


def test_it_serves_the_app_from_any_directory(environment, outside):
    port = free_port()
    command = [environment, "-m", "gpuexplore", "app", "--port", str(port)]
    with subprocess.Popen(command, **outside, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_until_served(process, port)
            for page in ("", "runs", "kernels"):
                visitor = Visitor(f"http://127.0.0.1:{port}", page)
                assert asyncio.run(drawn(visitor)) < LONGEST_S
                assert visitor.errors == []
                assert visitor.received_bytes > 5000
        finally:
            process.terminate()
            code = process.wait(DEADLINE_S)
    assert code in (0, 128 + signal.SIGTERM)
    with socket.socket() as probe, pytest.raises(ConnectionRefusedError):  # the server has ended with the command
        probe.connect(("127.0.0.1", port))


async def drawn(visitor):
    """Return the seconds that the page took."""
    try:
        return await visitor.open()
    finally:
        await visitor.close()


@pytest.mark.parametrize("version", ["2.6.0", "2.15.0"])
def test_a_torch_that_is_there_is_left_alone(wheel, environment, tmp_path, version):
    told = tmp_path / f"torch-{version}.dist-info"  # what pip reads of it
    told.mkdir()
    (told / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {version}\n")
    (told / "RECORD").touch()
    (told / "INSTALLER").write_text("pip")
    install = ["install", "--dry-run", "--no-index", "--quiet", "--report", "-", f"{wheel}[app,cuda13,torch]"]
    variables = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    search = f"{tmp_path}{os.pathsep}{sysconfig.get_path('purelib')}"
    variables |= {"PYTHONPATH": search, "PIP_CONFIG_FILE": os.devnull}  # a machine's own pins are not ours

    done = subprocess.run(
        [environment, "-m", "pip", *install], env=variables, capture_output=True, text=True, check=False
    )

    assert done.returncode == 0, done.stderr
    assert [found["metadata"]["name"] for found in json.loads(done.stdout)["install"]] == ["gpuexplore"]
