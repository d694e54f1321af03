"""What a command may find when it starts or ends: no home, no terminal, no package, Ctrl-C. It says so in a line."""

import io
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from gpuexplore import __main__ as entry
from gpuexplore import cli
from gpuexplore.cli import main, run_command
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE
from gpuexplore.cli.run_command import INTERRUPTED, _Interrupted
from gpuexplore.core.errors import EXTRAS
from gpuexplore.core.model import Experiment, Measurement, Result, Shape, Status
from gpuexplore.store import open_store
from tests.analysis.made import failed, ok
from tests.features.trace.analysis.made import DATA
from tests.waiting import DEADLINE_S

WITHOUT_EXTRAS = (
    "run matmul --size 8 --dtype fp32 --device cpu",
    "predict matmul --gpu t4 --size 8",
    "check matmul --gpu t4 --size 64 --time 1ms",
    "lesson list",
    "memory vgg-16 --batch 8",
    f"trace {DATA}",
    "runs",
)
RUN = ("run", "matmul", "--size", "100", "--dtype", "fp32", "--impl", "numpy,torch", "--device", "cpu")
HOOK = """
import os, sys

MISSING = os.environ["MISSING"].split(",")


class Without:
    def __init__(self, finder):
        self.finder = finder

    def __getattr__(self, name):
        return getattr(self.finder, name)

    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in MISSING else self.finder.find_spec(name, path, target)


sys.meta_path[:] = [Without(finder) for finder in sys.meta_path]
"""


class Unwritable(io.StringIO):
    """A stream that takes nothing."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error

    def flush(self):
        raise self.error


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_names_a_home_that_is_a_file(command, tmp_path, monkeypatch, capsys):
    (tmp_path / "file").touch()
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path / "file"))

    assert main([command]) == EXIT_UNUSABLE
    told = capsys.readouterr()
    assert told.err.startswith(f"gpuexplore: GPUEXPLORE_HOME {str(tmp_path / 'file')[:60]!r}: expected directories")
    assert told.out == ""


@pytest.mark.parametrize("home", ["/dev/null/x", "/proc/x", "~a-user-who-is-not-here/x"])
def test_a_home_that_cannot_be_made_is_named_with_the_reason(home, monkeypatch, capsys):
    monkeypatch.setenv("GPUEXPLORE_HOME", home)

    assert main(["list"]) == EXIT_UNUSABLE
    assert f"GPUEXPLORE_HOME '{home}': expected directories that can be made and written (" in capsys.readouterr().err


@pytest.mark.parametrize(
    "words",
    [
        ["list"],
        ["specs"],
        ["devices"],
        ["lesson", "list"],
        ["memory", "gpt2"],
        ["mistake"],
        ["factcheck"],
        ["tensor", "x = 4x4; y = x.t()"],
        ["predict", "matmul", "--gpu", "t4", "--size", "8"],
        ["atlas"],
        ["atlas", "matmul"],
        ["atlas", "matmul", "--which", "--size", "4096"],
        ["trace", str(DATA)],
    ],
    ids=lambda words: words[0],
)
def test_a_terminal_of_few_signs_gets_every_line(words, monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))

    assert main(words) == EXIT_OK
    assert len(printed.getvalue().decode("ascii").splitlines()) > 1


def test_units_and_factors_are_spelled_out_where_their_signs_are_missing(monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))
    monkeypatch.setattr(run_command, "measure", lambda *_: [ok(3e-6)])

    assert main([*RUN, "--no-save"]) == EXIT_OK
    assert b"3.00 us" in printed.getvalue()
    assert b"100 x 100" in printed.getvalue()


def test_json_keeps_every_sign_on_a_terminal_of_few(monkeypatch):
    printed = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(printed, encoding="ascii"))

    assert main(["list", "--json"]) == EXIT_OK
    assert "→" in str(json.loads(printed.getvalue()))


@pytest.mark.parametrize(
    ("error", "code"), [(OSError(28, "No space left on device"), EXIT_FAILED), (BrokenPipeError(), EXIT_OK)]
)
def test_what_cannot_be_printed_is_kept_all_the_same(error, code, monkeypatch, capsys):
    saved = []
    monkeypatch.setattr(run_command, "measure", lambda *_: [failed()])
    monkeypatch.setattr(run_command, "save", lambda _, results: saved.extend(results))
    monkeypatch.setattr(sys, "stdout", Unwritable(error))

    assert main(RUN) == code
    assert saved == [failed()]
    assert ("No space left on device" in capsys.readouterr().err) == (code == EXIT_FAILED)


def test_a_command_without_streams_does_its_work(monkeypatch):
    monkeypatch.setattr(sys, "stdout", None)
    monkeypatch.setattr(sys, "stderr", None)

    assert main(["list"]) == EXIT_OK
    for stream in (sys.stdout, sys.stderr):
        stream.close()


def test_interrupted_run_prints_and_keeps_what_was_measured(monkeypatch, capsys, home):
    def measure(experiment, devices, engine):
        first, *others = experiment.cases()
        raise _Interrupted(
            [Result(first, Status.SKIPPED, "slow"), *(Result(case, Status.CANCELLED, "x") for case in others)]
        )

    monkeypatch.setattr(run_command, "measure", measure)

    assert main(RUN) == EXIT_FAILED
    told = capsys.readouterr()
    assert "skipped: slow" in told.out
    assert "cancelled: x" in told.out
    with open_store() as store:
        assert [run.progress.done for run in store.history(run_command.OWNER)] == [2]


def test_cases_that_an_interrupt_left_out_are_cancelled(monkeypatch, capsys):
    class Engine:
        def __init__(self, devices):
            self.open = True

        def measure(self, cases, on_event, cancelled):
            on_event(Result(cases[0], Status.SKIPPED, "slow"))
            on_event(Result(cases[1], Status.OK, measurement=Measurement((1.0,), 2.0), provisional=True))
            raise KeyboardInterrupt

        def close(self):
            self.open = False

    experiment = Experiment("matmul", (Shape.of(m=8, k=8, n=8),), ("fp32",), ("numpy", "torch", "numba"), ("cpu",))

    with pytest.raises(_Interrupted) as caught:
        run_command.measure(experiment, [], Engine(()))

    assert [(result.status, result.reason) for result in caught.value.results] == [
        (Status.SKIPPED, "slow"),
        (Status.OK, None),
        (Status.CANCELLED, INTERRUPTED),
    ]
    assert not any(result.provisional for result in caught.value.results)
    assert "interrupted: 2 of 3 cases were measured" in capsys.readouterr().err


def test_interrupt_before_anything_was_measured_is_a_line(monkeypatch, capsys):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "measure", interrupted)

    assert main([*RUN, "--no-save"]) == EXIT_FAILED
    told = capsys.readouterr()
    assert (told.out, told.err) == ("", "gpuexplore: interrupted\n")


def test_interrupt_while_a_class_is_defined_is_a_line(monkeypatch, capsys):
    class Slow:
        def __set_name__(self, owner, name):
            raise KeyboardInterrupt

    monkeypatch.setattr(run_command, "measure", lambda *_: type("Defined", (), {"field": Slow()}))

    assert main([*RUN, "--no-save"]) == EXIT_FAILED
    assert capsys.readouterr().err == "gpuexplore: interrupted\n"


def test_second_interrupt_ends_the_command_without_a_word(monkeypatch, capsys):
    def interrupted():
        raise KeyboardInterrupt

    monkeypatch.setattr(cli, "main", interrupted)
    before = signal.getsignal(signal.SIGINT)
    try:
        assert entry.start() == 130
    finally:
        signal.signal(signal.SIGINT, before)
    assert capsys.readouterr() == ("", "")


@pytest.mark.long
def test_interrupt_while_a_command_is_loaded_leaves_no_traceback():
    heard = "import runpy, signal; signal.signal(signal.SIGINT, signal.default_int_handler); print(flush=True); "
    command = [
        sys.executable,
        "-c",
        f"{heard}runpy.run_module('gpuexplore', run_name='__main__', alter_sys=True)",
        *RUN,
        *("--size", "4000,4100,4200,4300", "--no-save"),  # not over before the last interrupt, on any machine
    ]
    for delay_s in (0.2, 0.5, 1.0):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()  # it listens
        time.sleep(delay_s)
        process.send_signal(signal.SIGINT)
        assert b"Traceback" not in process.communicate(timeout=DEADLINE_S)[1]
        assert process.returncode in (EXIT_FAILED, -signal.SIGINT)


@pytest.mark.long
@pytest.mark.parametrize(
    ("missing", "words", "code", "told"),
    [
        (
            "sqlalchemy,alembic",
            "predict matmul --gpu t4 --size 8",
            EXIT_OK,
            "earlier results of this machine are not used: sqlalchemy is not installed",
        ),
        ("sqlalchemy,alembic", "run matmul --size 8", EXIT_UNUSABLE, "or measure with --no-save"),
        (
            "pandas",
            "run matmul --size 8 --out x.csv",
            EXIT_FAILED,
            "pandas is not installed: pip install 'gpuexplore[app]'",
        ),
        ("streamlit", "app", EXIT_FAILED, "streamlit is not installed: pip install 'gpuexplore[app]'"),
        ("torch", "transfer", EXIT_UNUSABLE, "torch is not installed: pip install 'gpuexplore[torch]'"),
        ("altair,pandas,streamlit,sqlalchemy,alembic,torch", "devices", EXIT_OK, ""),
    ],
)
def test_missing_package_is_named_where_it_is_needed(missing, words, code, told, tmp_path):
    done = run_without(missing, tmp_path, "-m", "gpuexplore", *words.split())

    assert done.returncode == code, done.stderr
    assert told in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_commands_that_need_no_extra_work_without_all_of_them(tmp_path):
    script = "import sys; from gpuexplore.cli import main; print([main(words.split()) for words in sys.argv[1:]])"
    done = run_without(",".join((*EXTRAS["app"], *EXTRAS["torch"])), tmp_path, "-c", script, *WITHOUT_EXTRAS)

    assert done.stdout.splitlines()[-1:] == [str([EXIT_OK] * len(WITHOUT_EXTRAS))], done.stderr


def run_without(missing, folder, *words):
    """Run a new interpreter in which packages are missing."""
    (folder / "sitecustomize.py").write_text(HOOK, encoding="utf8")
    path = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, *words],
        env={**os.environ, "PYTHONPATH": path, "MISSING": missing},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
        check=False,
    )
