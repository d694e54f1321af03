"""`streamlit run app.py` needs what requirements.txt lists, and no package of ours: so hosts of apps start it."""

import json
import os
import subprocess
import sys
import sysconfig
import venv
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest

from scripts.app_server import free_port, wait_until_served
from tests.docs.markdown import ROOT
from tests.waiting import DEADLINE_S, wait_until

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def python(tmp_path_factory):
    """Return the interpreter of an environment that has all that this one has but our package."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=False)
    site = folder / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    (site / "rest.pth").write_text(f"{sysconfig.get_path('purelib')}\n")  # without its .pth files: not the checkout
    return folder / "bin" / "python"


def is_ready(port):
    try:
        with urlopen(f"http://127.0.0.1:{port}/api/ready", timeout=DEADLINE_S) as answer:
            return json.load(answer)["ready"]
    except HTTPError:
        return False


def test_the_app_is_served_and_measures_without_an_installation_from_any_folder(python, tmp_path):
    told = {name: value for name, value in os.environ.items() if not name.startswith(("GPUEXPLORE", "PYTHONPATH"))}
    port = free_port()
    command = [python, "-m", "streamlit", "run", ROOT / "app.py", "--server.port", str(port)]
    with subprocess.Popen(
        command, cwd=tmp_path, env=told | {"HOME": str(tmp_path)}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            wait_until_served(process, port)
            wait_until(lambda: is_ready(port))
        finally:
            process.terminate()
