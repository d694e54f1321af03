"""Every page is served where Streamlit and Altair lack what we use of them beyond their documentation."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from gpuexplore.core.served import PACKAGE
from gpuexplore.ui.navigation import pages
from scripts.app_server import served
from tests.docs.markdown import ROOT
from tests.ui.visitor import visiting
from tests.waiting import DEADLINE_S

HOMES = ("ui/undocumented.py", "charts/quick_altair.py")  # the modules that may know such names
HIDDEN_OF_ALTAIR = ("_deep_copy", "_todict", "_compute_hash", "_kwds", "FieldChannelMixin", "debug_mode")
HIDING = """
import sys
from types import ModuleType

def hide(owner, names):
    usual = owner.__getattribute__
    def asked(self, name):
        if name in names and str(sys._getframe(1).f_globals.get("__name__")).startswith("gpuexplore"):
            raise AttributeError(f"a newer version has no {name}")
        return usual(self, name)
    owner.__getattribute__ = asked

class Hiding(ModuleType):
    pass

if "streamlit" in sys.argv or "streamlit" in sys.orig_argv:
    from streamlit.delta_generator import DeltaGenerator
    from streamlit.proto import BackMsg_pb2
    from streamlit import config
    from streamlit.runtime import Runtime, app_session
    from streamlit.runtime.scriptrunner_utils.script_run_context import ScriptRunContext

    hide(DeltaGenerator, {"_cursor"})
    hide(Runtime, {"stats_mgr"})
    hide(ScriptRunContext, {"_enqueue", "cached_message_hashes", "fragment_ids_this_run", "user_info"})
    hide(Hiding, {"_populate_theme_msg", "is_manually_set", "BackMsg"})
    for module in (app_session, BackMsg_pb2, config):
        module.__class__ = Hiding
"""


def releases():
    """Return which Streamlit is installed, and the newest of our range where an index answers.

    The oldest has these names: `tests/deploy/test_lowest_versions.py` has it serve every page.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (wanted,) = (each for each in map(Requirement, project["optional-dependencies"]["app"]) if each.name == "streamlit")
    asked = [sys.executable, "-m", "pip", "index", "versions", "streamlit", "--json"]
    answer = subprocess.run(asked, capture_output=True, text=True, check=False, timeout=DEADLINE_S)
    newest = json.loads(answer.stdout)["versions"] if answer.returncode == 0 else []
    admitted = sorted(filter(wanted.specifier.contains, newest), key=Version)[-1:]
    return sorted({Version(each) for each in [*admitted, version("streamlit")]})


def hidden(folder, release):
    """Fill a folder for PYTHONPATH: one release of Streamlit, Altair under other names, and what hides Streamlit's."""
    if release != Version(version("streamlit")):
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--target", folder]
        subprocess.run([*command, f"streamlit=={release}"], check=True, timeout=300)
    altair = Path(find_spec("altair").origin).parent
    shutil.copytree(altair, folder / "altair", ignore=shutil.ignore_patterns("__pycache__"))
    names = re.compile(rf"\b({'|'.join(HIDDEN_OF_ALTAIR)})\b")
    for path in (folder / "altair").rglob("*.py"):
        path.write_text(names.sub(r"\1_renamed", path.read_text(encoding="utf-8")), encoding="utf-8")
    (folder / "sitecustomize.py").write_text(HIDING, encoding="utf-8")


@pytest.mark.slow
def test_every_page_is_served_by_the_newest_streamlit_without_these_names(tmp_path):
    troubles = {}
    for release in releases():
        home = tmp_path / f"home-{release}"
        folder = tmp_path / f"streamlit-{release}" / "site-packages"  # elsewhere Streamlit is being developed
        home.mkdir()
        folder.mkdir(parents=True)
        hidden(folder, release)
        with served(home, warm=False, settings={"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}) as address:
            for name in pages():
                with visiting(address, name) as visitor:
                    visitor.run()
                found = [element.exception.message for element in visitor.elements if element.HasField("exception")]
                if found or len(visitor.elements) < 3:
                    troubles[str(release), name] = found or visitor.elements
        log = (home / "server.log").read_text(encoding="utf-8")
        if "Traceback" in log:
            troubles[str(release)] = log
    assert troubles == {}


def reaches_past_the_documentation(path):
    """Return the modules and attributes of Streamlit and Altair that a module uses and their documentation lacks."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and re.match(
            r"streamlit\.(runtime|proto|config|web|elements)|altair\.(utils|vegalite)", node.module or ""
        ):
            yield node.module
        if isinstance(node, ast.Attribute) and node.attr in ("_cursor", "_enqueue", "_kwds", "stats_mgr"):
            yield node.attr


def test_only_two_modules_reach_past_the_documentation_of_streamlit_and_altair():
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in PACKAGE.rglob("*.py")
        if str(path.relative_to(PACKAGE)) not in HOMES and (names := list(reaches_past_the_documentation(path)))
    }
    assert found == {}
