"""The documentation names everything there is, and what it links to exists."""

import argparse
import re
from importlib import import_module
from typing import get_args

import pytest

import gpuexplore
from gpuexplore.analysis.model import DiagnosisKind
from gpuexplore.backends import BACKENDS, load_backend
from gpuexplore.cli import COMMANDS
from gpuexplore.dtypes import DTYPES, FORMATS
from gpuexplore.measure import POOL_SETTINGS
from gpuexplore.model import FlagName, PeakKind, Status
from gpuexplore.recorded import recorded_run, recordings
from tests.architecture.recipes import created, recipes
from tests.docs.markdown import ALL_TEXT, FILES, PROSE, ROOT, anchors, fenced, links, name_of, words_in_code

README = (ROOT / "README.md").read_text(encoding="utf-8")
MEASURING = (ROOT / "docs" / "measuring.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TERMS = [
    "contrast",
    "ladder",
    "block",
    "occupancy",
    "wave",
    "limiter",
    "multiprocessor",
    "warp",
    "operation",
    "implementation",
    "reference",
    "dtype",
    "device",
    "shape",
    "case",
    "group",
    "experiment",
    "run",
    "result",
    "first call",
    "warm-up",
    "sample",
    "round",
    "budget",
    "cold / warm",
    "flag",
    "latency",
    "throughput",
    "baseline",
    "speedup",
    "arithmetic intensity",
    "peak",
    "ceiling",
    "ridge point",
    "attainable",
    "utilization",
    "mfu",
    "denominator",
    "held clock",
    "diagnosis",
    "roofline",
    "roof",
    "recording",
    "provenance",
    "recorded run",
    "published",
    "prediction",
    "calibration",
    "native / emulated / unsupported",
    "what-if",
    "workload",
    "layer",
    "origin",
]
IMAGES = sorted((ROOT / "docs" / "images").iterdir())
EACH_FILE = pytest.mark.parametrize("path", FILES, ids=name_of)


def options_of(command):
    parser = argparse.ArgumentParser(add_help=False)
    import_module(f"gpuexplore.cli.{command}_command").add_arguments(parser)
    return [action.option_strings[-1] for action in parser._actions if action.option_strings]


@pytest.mark.parametrize("text", [README, MEASURING, GLOSSARY], ids=["README", "measuring", "glossary"])
def test_every_dtype_is_named(text):
    assert set(DTYPES) <= words_in_code(text)


@pytest.mark.parametrize("text", [README, GLOSSARY], ids=["README", "glossary"])
def test_every_format_that_is_only_predicted_is_named(text):
    assert set(FORMATS) <= words_in_code(text)


def test_every_kind_of_device_is_named():
    kinds = {kind for name in BACKENDS for kind in load_backend(name).DEVICE_KINDS}

    assert kinds <= {word.partition(":")[0] for word in words_in_code(GLOSSARY)}


@pytest.mark.parametrize("status", [one.value for one in Status])
def test_status_has_a_row(status):
    assert f"| `{status}` |" in MEASURING


@pytest.mark.parametrize("flag", get_args(FlagName))
def test_flag_has_a_row(flag):
    assert f"| `{flag}` |" in MEASURING


@pytest.mark.parametrize("kind", get_args(PeakKind))
def test_kind_of_peak_has_a_row(kind):
    assert f"| `{kind}` |" in MEASURING


@pytest.mark.parametrize("kind", get_args(DiagnosisKind))
def test_diagnosis_is_named(kind):
    assert f"`{kind}`" in MEASURING


@pytest.mark.parametrize("kind", get_args(PeakKind))
def test_kind_of_peak_is_accepted_by_the_option(kind):
    (row,) = (line for line in MEASURING.splitlines() if line.startswith("| `--peak` |"))

    assert f"`{kind}`" in row


@pytest.mark.parametrize("option", options_of("run"))
def test_option_of_run_has_a_row(option):
    assert f"| `{option}` |" in MEASURING


@pytest.mark.parametrize("option", sorted(set(options_of("record")) - set(options_of("run"))))
def test_option_of_record_alone_is_explained(option):
    assert f"`{option}`" in README


@pytest.mark.parametrize("command", COMMANDS)
def test_command_has_a_row(command):
    assert f"| `{command}` |" in README


@pytest.mark.parametrize("term", TERMS)
def test_term_is_defined(term):
    assert f"- **{term}**" in GLOSSARY.lower()


@pytest.mark.parametrize("setting", POOL_SETTINGS)
def test_setting_of_the_pools_is_named(setting):
    assert f"`{setting}`" in PROSE


def test_changelog_tells_of_this_version():
    assert re.search(
        rf"^## {re.escape(gpuexplore.__version__)} - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )


@pytest.mark.parametrize("page", sorted((ROOT / "pages").glob("*.py")), ids=name_of)
def test_page_is_in_the_navigation_tested_and_named(page):
    assert f'"{page.name}"' in (ROOT / "gpuexplore" / "ui" / "main.py").read_text(encoding="utf-8")
    assert (ROOT / "tests" / "pages" / f"test_{page.name}").exists()
    assert page.stem.replace("_", " ").capitalize() in README


@EACH_FILE
def test_links_and_images_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for link in (one for one in links(text) if "://" not in one):
        name, _, anchor = link.partition("#")
        target = path.parent / name if name else path

        assert target.exists(), link
        assert not anchor or anchor in anchors(target.read_text(encoding="utf-8")), link


@pytest.mark.parametrize("image", IMAGES, ids=name_of)
def test_image_is_shown_in_its_light_and_its_dark_form(image):
    name, _, scheme = image.stem.rpartition("-")
    other = {"light": "dark", "dark": "light"}[scheme]

    assert image.with_stem(f"{name}-{other}") in IMAGES
    assert f"images/{image.name}" in ALL_TEXT


@EACH_FILE
def test_images_say_what_they_show(path):
    text = path.read_text(encoding="utf-8")

    assert all('alt="' in one for one in re.findall(r"<img[^>]*>", text))
    assert "![](" not in text


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_make_targets_exist(text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)`", text, re.M))
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))

    assert {"run", "test"} <= {one for pair in named for one in pair if one} <= targets


def test_contributing_names_files_that_exist():
    written = {path for recipe in recipes().values() for path in created(recipe)}
    paths = [path for path in re.findall(r"`([\w/.]+/[\w.]*)`", CONTRIBUTING) if path not in written]

    assert paths
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_recorded_runs_in_links_exist():
    named = re.findall(r"\?run=(recorded-[\w-]+)", MEASURING)
    beside = re.findall(r"`with=([\w-]+)`", MEASURING)

    assert all(recorded_run(one).results for one in named)
    assert {recording.name for recording in recordings()} >= set(beside)
    assert named
    assert beside


@EACH_FILE
def test_python_snippets_compile_and_use_public_names(path):
    for language, code in fenced(path.read_text(encoding="utf-8")):
        if language == "python":
            compile(code, name_of(path), "exec")
            assert set(re.findall(r"\bgx\.(\w+)", code)) <= set(gpuexplore.__all__)


def shell_examples():
    blocks = [code for language, code in fenced(README) if language == "sh"]
    return re.findall(r"^(?:python -m )?gpuexplore .+$", "\n".join(blocks), re.M)


@pytest.mark.parametrize("line", shell_examples())
def test_shell_examples_name_commands_and_options_that_exist(line):
    words = line.removeprefix("python -m ").split()

    assert words[1] in COMMANDS
    assert {word for word in words if word.startswith("--")} <= set(options_of(words[1]))


def test_no_absolute_path_of_a_machine_is_told():
    found = re.findall(r"(?<![\w.:/<~-])/(?:home|root|tmp|work|usr|var|opt|mnt|Users)/[\w./-]*", ALL_TEXT)

    assert found == []
