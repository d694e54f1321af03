"""Every command of the README and the guides is run here, or stands below with what it takes that a test has not."""

import re
import shlex
from importlib.util import find_spec

import pytest

from gpuexplore.cli import COMMANDS, main
from gpuexplore.cli.output import EXIT_UNUSABLE
from tests.docs.markdown import FILES, ROOT, fenced
from tests.docs.test_docs import parser_of

GUIDES = [path for path in FILES if path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))]
TARGETS = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.M))
PROGRAMS = ("dask", "docker", "git", "gpuexplore", "make", "pip", "python", "sbatch", "streamlit", "sudo")
PLACEHOLDER = re.compile(r"[A-Z]+")  # a value that the reader has: FILE, NAME, CODE

# Those of ours that are understood here, each word of them, and not carried out
NOT_RUN = {
    "app": "serves until it is stopped: tests/deploy, tests/browser",
    "backup": "run by tests/deploy/test_documents.py",
    "compare": "needs two runs",
    "import": "needs a file",
    "mistake": "measures: tests/features/mistakes/test_command.py",
    "prune": "run by tests/deploy/test_documents.py",
    "record": "measures for minutes: tests/cli/test_record.py",
    "repeatability": "measures in fresh processes",
    "restore": "run by tests/deploy/test_documents.py",
    "room": "needs a room and its server: tests/features/workshop/test_command.py",
    "run": "measures for seconds and more: tests/cli/test_run.py",
    "sass": "needs NVIDIA's disassembler, or a file: tests/features/machine_code/test_sass.py",
    "selftest": "measures for minutes: tests/features/selftest/suite",
    "trace": "needs a trace: tests/features/trace/test_command.py",
    "train": "measures for seconds and more: tests/features/training/test_command.py",
    "transfer": "measures: tests/features/transfer/test_command.py",
    "worker": "needs a Dask cluster: tests/features/cluster/test_command.py",
}
NOT_RUN_WITH = {
    "--measure": "measures for seconds and more",
    "--module": "needs a file",
    "drain": "needs a GPU: tests/cli/test_held_devices.py",
    "pause": "needs a GPU: tests/cli/test_held_devices.py",
    "reserve": "needs a GPU: tests/cli/test_held_devices.py",
    "run": "measures for seconds and more: tests/features/lessons/lesson",
    "resume": "needs a GPU: tests/cli/test_held_devices.py",
    "my-lesson": "needs a lesson",
    "my-lesson.md": "needs a lesson",
}
# Those of others, by how they begin
ELSEWHERE = {
    "cd": "the shell's own",
    "dask scheduler": "serves until it is stopped",
    "docker compose": "needs Docker: tests/deploy/test_containers.py reads what it is told",
    "echo": "needs openssl",
    "export": "the shell's own",
    "git clone": "needs a network, or an empty folder",
    "git pull": "needs a network",
    "make": "installs: its target exists",
    ". .venv/bin/activate": "the shell's own",
    "pip install": "installs: tests/deploy/test_pythons.py",
    "pip wheel": "run by tests/deploy/conftest.py",
    "python3 -m venv": "makes an environment: tests/deploy/test_pythons.py",
    "python -m": "takes long, or serves: its module exists",
    "sbatch": "needs Slurm",
    "source": "the shell's own",
    "streamlit run app.py": "serves until it is stopped: scripts/app_server.py",
    "sudo": "needs root",
}


def commands_of(text):
    """Return the commands of a guide: lines of its shells, and what stands in its sentences."""
    shells = [(language, re.sub(r"\\\n\s*", "", code)) for language, code in fenced(text)]
    lines = [line for language, code in shells if language == "sh" for line in code.splitlines()]
    typed = [
        line[2:] for language, code in shells if language == "console" for line in code.splitlines() if line[:2] == "$ "
    ]
    prose = re.sub(r"^```.*?^```", "", text, flags=re.M | re.S)
    inline = [" ".join(code.split()) for code in re.findall(r"`([^`]+)`", prose)]
    named = [code for code in inline if plain(code).split(" ")[0] in PROGRAMS and " " in plain(code)]
    return [part for line in (*lines, *typed, *named) for part in re.split(r" && ", plain(line)) if part]


def plain(line):
    """Return a line without its comment, its variables and the environment that its program is in."""
    line = re.sub(r"(^|\s)#.*", "", line).strip()
    line = re.sub(r"^([A-Z_]+=\S* +)+", "", line)
    return re.sub(r"python -m (gpuexplore|pip)(?= |$)", r"\1", line.removeprefix(".venv/bin/"))


COMMANDS_OF_GUIDES = sorted({command for path in GUIDES for command in commands_of(path.read_text(encoding="utf-8"))})
OURS = [shlex.split(command)[1:] for command in COMMANDS_OF_GUIDES if command.startswith("gpuexplore ")]


def why_not(words):
    """Return why a command of ours is not carried out here; None where it is."""
    if all(word.startswith("--") for word in words[1:]):
        return "a sentence names the command, or an option of it"
    if any(PLACEHOLDER.fullmatch(word) for word in words):
        return "needs a value of the reader's"
    return NOT_RUN.get(words[0]) or next((NOT_RUN_WITH[word] for word in words if word in NOT_RUN_WITH), None)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path))
    monkeypatch.delenv("GPUEXPLORE_DATABASE_URL", raising=False)
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("words", [words for words in OURS if words[0] != "NAME"], ids=" ".join)
def test_a_command_of_ours_is_understood(words):
    name, *arguments = words
    parser = parser_of(name)

    assert name in COMMANDS
    if arguments and arguments[-1] in {option for action in parser._actions for option in action.option_strings}:
        arguments = []  # a sentence on that option
    if arguments and "--help" not in arguments:
        assert parser.parse_args(arguments)


@pytest.mark.parametrize("words", [words for words in OURS if not why_not(words)], ids=" ".join)
def test_a_command_that_needs_no_more_than_this_machine_does_what_it_says(words, capsys):
    told = [str(ROOT / word) if (ROOT / word).is_file() else word for word in words]

    assert main(told) != EXIT_UNUSABLE
    assert any(capsys.readouterr())


@pytest.mark.parametrize(
    "command", [command for command in COMMANDS_OF_GUIDES if not command.startswith("gpuexplore ")]
)
def test_a_command_of_others_stands_with_what_it_takes(command):
    whys = [why for beginning, why in ELSEWHERE.items() if f"{command} ".startswith(f"{beginning} ")]

    assert len(whys) == 1, "run it here, or say in ELSEWHERE what it takes"
    if command.startswith("make "):
        assert shlex.split(command)[1] in TARGETS
    if command.startswith("python -m "):
        assert find_spec(shlex.split(command)[2])


def test_what_is_not_run_is_named_in_a_guide_and_covered_where_it_says():
    covered = " ".join([*NOT_RUN.values(), *NOT_RUN_WITH.values(), *ELSEWHERE.values()])

    assert set(NOT_RUN) <= set(COMMANDS)
    assert [path for path in re.findall(r"(?:tests|scripts)/[\w./]+\w", covered) if not (ROOT / path).exists()] == []
    assert [word for word in NOT_RUN_WITH if not any(word in words for words in OURS)] == []


def test_commands_are_found_in_shells_with_prompts_and_in_sentences():
    guide = """`python -m gpuexplore list` and `make it`; `NumPy` is none.
```sh
A=1 .venv/bin/gpuexplore specs \\
  T4  # of a T4
cd x && make test
```
```console
$ gpuexplore devices
cpu
```
"""

    assert commands_of(guide) == [
        "gpuexplore specs T4",
        "cd x",
        "make test",
        "gpuexplore devices",
        "gpuexplore list",
        "make it",
    ]
