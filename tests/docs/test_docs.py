"""The documentation names everything there is, and what it links to exists."""

import argparse
import ast
import re
import shlex
from dataclasses import fields, is_dataclass
from typing import get_args

import pytest

import gpuexplore
import gpuexplore.analysis.model
import gpuexplore.core.dtypes
import gpuexplore.core.model
import gpuexplore.operations.contract
from gpuexplore.analysis.model import DiagnosisKind
from gpuexplore.analysis.run.json_report import run_report
from gpuexplore.backends import BACKENDS, load_backend
from gpuexplore.cli import COMMANDS, _module_of, main
from gpuexplore.cli.output import EXIT_OK
from gpuexplore.core.dtypes import DTYPES, FORMATS
from gpuexplore.core.model import Experiment, FlagName, PeakKind, Result, Status
from gpuexplore.core.pools import POOL_SETTINGS
from gpuexplore.features.atlas.analysis import citations, points
from gpuexplore.recorded import recorded_run, recordings
from gpuexplore.ui.navigation import pages
from tests.analysis.made import analyzed, ok
from tests.architecture.recipes import created, recipes
from tests.docs.markdown import ALL_TEXT, FILES, PROSE, ROOT, anchors, fenced, links, name_of, words_in_code
from tests.made_ceiling import save_made_ceiling

README = (ROOT / "README.md").read_text(encoding="utf-8")
REFERENCE = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
TOUR = (ROOT / "docs" / "tour.md").read_text(encoding="utf-8")
ATLAS = (ROOT / "docs" / "atlas.md").read_text(encoding="utf-8")
RECORDING = (ROOT / "docs" / "recording.md").read_text(encoding="utf-8")
MOST_WORDS_OF_README = 700
ENTRIES = dict(re.findall(r"^- \*\*(.+?)\*\* \(([^)]*)\)", GLOSSARY, re.M))  # the term, and its names in code
NAMES_OF_ENTRIES = {name for names in ENTRIES.values() for name in re.findall(r"`([\w.]+)`", names)}
IMAGES = sorted((ROOT / "docs" / "images").iterdir())
EACH_FILE = pytest.mark.parametrize("path", FILES, ids=name_of)


def parser_of(command):
    parser = argparse.ArgumentParser(add_help=False)
    _module_of(command).add_arguments(parser)
    return parser


def options_of(command):
    return [action.option_strings[-1] for action in parser_of(command)._actions if action.option_strings]


def test_readme_is_short():
    assert len(README.split()) <= MOST_WORDS_OF_README


@pytest.mark.parametrize("text", [REFERENCE, GLOSSARY], ids=["reference", "glossary"])
def test_every_dtype_is_named(text):
    assert set(DTYPES) <= words_in_code(text)


def test_every_format_that_is_only_predicted_is_named():
    assert set(FORMATS) <= words_in_code(GLOSSARY)


def test_every_kind_of_device_is_named():
    kinds = {kind for name in BACKENDS for kind in load_backend(name).DEVICE_KINDS}

    assert kinds <= {word.partition(":")[0] for word in words_in_code(GLOSSARY)}


@pytest.mark.parametrize("status", [status.value for status in Status])
def test_status_has_a_row(status):
    assert f"| `{status}` |" in REFERENCE


@pytest.mark.parametrize("flag", get_args(FlagName))
def test_flag_has_a_row(flag):
    assert f"| `{flag}` |" in REFERENCE


@pytest.mark.parametrize("kind", get_args(PeakKind))
def test_kind_of_peak_has_a_row(kind):
    assert f"| `{kind}` |" in REFERENCE


@pytest.mark.parametrize("kind", get_args(DiagnosisKind))
def test_diagnosis_is_named(kind):
    assert f"`{kind}`" in REFERENCE


@pytest.mark.parametrize("option", options_of("run"))
def test_option_of_run_has_a_row_or_is_left_to_its_help_by_name(option):
    (left,) = re.findall(r"`--operation`[^.]*explained by `--help`", REFERENCE)
    (help_text,) = (action.help for action in parser_of("run")._actions if option in action.option_strings)

    assert f"| `{option}` |" in REFERENCE or (f"`{option}`" in left and help_text)


@pytest.mark.parametrize("option", sorted(set(options_of("record")) - set(options_of("run"))))
def test_option_of_record_alone_has_a_row(option):
    assert f"| `{option}` |" in RECORDING


@pytest.mark.parametrize("option", options_of("atlas"))
def test_option_of_the_atlas_has_a_row(option):
    (_, rows) = REFERENCE.split("## Options of `atlas`\n")

    assert f"`{option}`" in rows.partition("\n## ")[0]


def test_sources_of_the_atlas_are_cited_with_their_licence_and_how_many_calls_they_measured():
    found = points()
    for citation in citations(found):
        name = f"[{citation.name}]({citation.url})" if citation.url else citation.name
        count = sum(point.citation == citation for point in found)
        told = (name, f"{count:,}", citation.licence, citation.text, citation.how)

        assert f"| {' | '.join(told)} |" in ATLAS


def test_what_the_atlas_holds_is_counted_right():
    published = [point for point in points() if point.origin == "published"]
    operations, gpus = {point.operation for point in published}, {point.spec_key for point in published}
    told = f"{len(published):,} published calls of {len(operations)} operations on {len(gpus)} GPUs"

    assert told in ATLAS


@pytest.mark.parametrize("command", COMMANDS)
def test_command_is_named_among_the_commands(command):
    section = REFERENCE.partition("\n## Commands\n")[2].partition("\n## ")[0]

    assert f"`{command}`" in section


def names_in_code():
    """Return what the package defines or passes: classes, functions, fields, tables and parameters."""
    paths = (ROOT / "gpuexplore").rglob("*.py")
    nodes = [node for path in paths for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    defined = {node.name for node in nodes if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    passed = {node.arg for node in nodes if isinstance(node, ast.arg | ast.keyword)}
    return defined | passed | {node.id for node in nodes if isinstance(node, ast.Name)}


def test_every_entry_of_the_glossary_is_told_by_names_that_exist():
    assert len(ENTRIES) == len(re.findall(r"^- \*\*", GLOSSARY, re.M)), "an entry has no names in brackets"
    assert {name.rpartition(".")[2] for name in NAMES_OF_ENTRIES} - names_in_code() == set()


@pytest.mark.parametrize(
    "module", [gpuexplore.core.model, gpuexplore.core.dtypes, gpuexplore.operations.contract, gpuexplore.analysis.model]
)
def test_every_value_that_is_passed_around_has_its_entry_in_the_glossary(module):
    values = {name for name, kind in vars(module).items() if is_dataclass(kind) and kind.__module__ == module.__name__}

    assert values
    assert values - NAMES_OF_ENTRIES == set()


def test_every_figure_that_follows_from_a_result_has_its_entry_in_the_glossary():
    made = ok()
    experiment = Experiment("matmul", (made.case.shape,), ("fp32",), ("torch",))
    (told,) = run_report(experiment, analyzed(made))["results"]
    derived = set(told) - {field.name for field in fields(Result)}

    assert derived > {"mfu", "speedup"}
    assert derived - {name.casefold() for name in NAMES_OF_ENTRIES} == set()


@pytest.mark.parametrize("setting", POOL_SETTINGS)
def test_setting_of_the_pools_is_named(setting):
    assert f"`{setting}`" in PROSE


def test_changelog_tells_of_this_version():
    assert re.search(
        rf"^## {re.escape(gpuexplore.__version__)} - \d{{4}}-\d\d-\d\d$", (ROOT / "CHANGELOG.md").read_text(), re.M
    )


def title_of(page):
    return re.search(r'\btitle\("([^"]+)"', page.read_text(encoding="utf-8"))[1]


def test_every_script_of_a_page_is_in_the_navigation():
    scripts = {*(ROOT / "pages").glob("*.py"), *(ROOT / "gpuexplore" / "features").glob("*/page.py")}

    assert {page.file for page in pages().values()} == scripts


@pytest.mark.parametrize("page", pages().values(), ids=pages())
def test_page_is_tested_and_named(page):
    folder, name = page.file.relative_to(ROOT).as_posix().removeprefix("gpuexplore/").rsplit("/", 1)
    assert (ROOT / "tests" / folder / f"test_{name}").exists()
    assert f"**{title_of(page.file)}**" in TOUR


@pytest.mark.parametrize("page", [page for page in pages().values() if page.parameters], ids=lambda page: page.name)
def test_parameters_of_links_are_in_the_row_of_their_page(page):
    title = title_of(page.file)
    (row,) = (line for line in REFERENCE.splitlines() if line.startswith(f"| {title} | `"))

    assert set(page.parameters) <= words_in_code(row)


@EACH_FILE
def test_links_and_images_lead_somewhere(path):
    text = path.read_text(encoding="utf-8")
    for link in (link for link in links(text) if "://" not in link):
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

    assert all('alt="' in image for image in re.findall(r"<img[^>]*>", text))
    assert "![](" not in text


@pytest.mark.parametrize("text", [README, CONTRIBUTING], ids=["README", "CONTRIBUTING"])
def test_make_targets_exist(text):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    named = set(re.findall(r"^make ([a-z]+)|`make ([a-z]+)[^`]*`", text, re.M))
    targets = set(re.findall(r"^([a-z]+):", makefile, re.M))

    assert {"run", "test"} <= {target for pair in named for target in pair if target} <= targets


def missing_files(text):
    """Return the files, folders and modules of this repository that a text names and that are not there."""
    tops = "|".join(re.escape(path.name) for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith("."))
    paths = re.findall(rf"(?<![\w/.-])((?:{tops})/[\w/.-]*\w)", text)
    modules = re.findall(rf"`(?:python -m )?((?:{tops})(?:\.\w+)+)`|python -m ((?:{tops})(?:\.\w+)+)", text)
    names = [name for pair in modules for name in pair if name and not (ROOT / name).is_file()]
    dotted = [name.replace(".", "/") for name in names]
    return {path for path in paths if not (ROOT / path).exists()} | {
        path for path in dotted if not (ROOT / path).is_dir() and not (ROOT / f"{path}.py").exists()
    }


@EACH_FILE
def test_files_and_modules_that_are_named_exist(path):
    written = {path for recipe in recipes().values() for path in created(recipe)}

    assert missing_files(path.read_text(encoding="utf-8")) - written == set()


def test_files_and_modules_that_are_not_there_are_found():
    named = "`gpuexplore/analysis/mfu.py` or `gpuexplore.analysis.mfu`, not `gpuexplore.request` or docs/measuring.md"

    assert missing_files(named) == {"gpuexplore/analysis/mfu.py", "gpuexplore/analysis/mfu"}


def test_recorded_runs_in_links_exist():
    named = re.findall(r"\?run=(recorded-[\w-]+)", REFERENCE)
    beside = re.findall(r"`with=([\w-]+)`", REFERENCE)

    assert all(recorded_run(name).results for name in named)
    assert {recording.name for recording in recordings()} >= set(beside)
    assert named
    assert beside


@EACH_FILE
def test_python_snippets_compile_and_use_public_names(path):
    for language, code in fenced(path.read_text(encoding="utf-8")):
        if language == "python":
            compile(code, name_of(path), "exec")
            assert set(re.findall(r"\bgx\.(\w+)", code)) <= set(gpuexplore.__all__)


def test_answer_of_the_readme_is_what_its_command_prints(capsys):
    (example,) = (code.splitlines() for language, code in fenced(README) if language == "console")
    assert main(shlex.split(example[0])[4:]) == EXIT_OK

    printed = capsys.readouterr().out.splitlines()
    ratio = re.search(r"is ([\d.]+) times", example[-1])[1]
    assert set(example[1:]) <= set(printed)
    assert f"**{ratio} times**" in README


@pytest.mark.slow
def test_python_of_the_readme_runs(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    save_made_ceiling()
    names = {}
    for language, code in fenced(README):
        if language in ("py", "python"):
            exec(code, names)

    assert names["gx"] is gpuexplore
    assert capsys.readouterr().out


def test_no_absolute_path_of_a_machine_is_told():
    found = re.findall(r"(?<![\w.:/<~-])/(?:home|root|tmp|work|usr|var|opt|mnt|Users)/[\w./-]*", ALL_TEXT)

    assert [
        path for path in found if not path.startswith(("/usr/sbin/", "/opt/gpuexplore", "/var/lib/gpuexplore"))
    ] == []
