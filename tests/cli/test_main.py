"""The command line in this process: what it prints, what it writes, and its exit codes."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import pytest

import gpuexplore
from gpuexplore import cli
from gpuexplore.cli import app_command, devices_command, main, run_command
from gpuexplore.cli.output import EXIT_FAILED, EXIT_OK, EXIT_UNUSABLE, FAILED, ProgressLine, exit_code, print_columns
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.model import Result, Status
from gpuexplore.operations import OPERATIONS
from tests.analysis.made import failed
from tests.hardware.torch_answers import found_on
from tests.measure.fakes import case, measurement


def test_devices_as_json_and_as_text_name_the_cpu_with_kind_and_source_of_every_peak(answered, capsys):
    code, (cpu, *_) = answered("devices", "--json")

    assert code == EXIT_OK
    assert (cpu["id"], cpu["kind"]) == ("cpu", "cpu")
    assert cpu["peaks"]
    assert all(peak["kind"] == "measured_ceiling" and peak["source"] for peak in cpu["peaks"])
    assert main(["devices"]) == EXIT_OK

    printed = capsys.readouterr().out
    assert printed.startswith("cpu  ")
    assert "measured_ceiling: " in printed
    assert "Peaks were measured here" in printed


def test_devices_says_of_those_that_torch_alone_finds_that_nobody_tried(monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(devices_command, "discover", lambda: (found_on(tmp_path, "rocm"),))

    assert main(["devices"]) == EXIT_OK
    printed = capsys.readouterr().out
    assert printed.startswith("rocm:0  AMD Instinct MI300X  304 cores")
    assert "gpuexplore has never been tested on AMD ROCm" in printed
    assert "so a time may include a launch" in printed


def test_devices_measures_again_when_asked(monkeypatch, capsys):
    asked = []
    monkeypatch.setattr(devices_command, "ensure_ceiling", lambda device, again: asked.append(again) or device)

    assert main(["devices", "--measure"]) == EXIT_OK
    assert set(asked) == {True}


def test_list_as_json_has_every_operation_dtype_and_support_cell(answered):
    code, told = answered("list", "--json")

    assert code == EXIT_OK
    assert [one["name"] for one in told["operations"]] == list(OPERATIONS)
    assert list(told["dtypes"]) == list(DTYPES)
    for one in told["operations"]:
        cells = [cell for cell in one["support"] if cell["device"] == "cpu"]
        assert len(cells) == len(one["implementations"]) * len(DTYPES)


def test_list_as_text_names_every_operation_implementation_and_dtype(capsys):
    assert main(["list"]) == EXIT_OK

    printed = capsys.readouterr().out
    for operation in OPERATIONS.values():
        assert f"{operation.name}: {operation.title}" in printed
        assert all(implementation.about in printed for implementation in operation.implementations)
    assert all(row.about in printed for row in DTYPES.values())


def test_specs_of_a_known_accelerator(answered):
    code, told = answered("specs", "NVIDIA A100-SXM4-80GB", "--json")

    assert code == EXIT_OK
    assert {"query", "key", "kind", "peaks", "bandwidth_bytes_per_s", "confidence", "notes"} <= set(told)
    assert told["query"] == "NVIDIA A100-SXM4-80GB"
    assert told["key"]
    assert set(told["peaks"]["bf16"]) == {"flop_per_s", "unit", "kind", "source"}
    assert told["peaks"]["bf16"]["flop_per_s"] == pytest.approx(312e12)


def test_specs_of_an_unknown_accelerator_has_no_key_and_fails(answered):
    code, told = answered("specs", "NVIDIA Nonsense 9000", "--json")

    assert code == EXIT_FAILED
    assert told["query"] == "NVIDIA Nonsense 9000"
    assert told["key"] is told["kind"] is told["bandwidth_bytes_per_s"] is told["confidence"] is None
    assert told["peaks"] == {}


def test_specs_as_text(answered, capsys):
    code, told = answered("specs", "--json")
    assert main(["specs"]) == code == EXIT_OK
    assert len(capsys.readouterr().out.splitlines()) == len(told) + 1 > 10
    assert main(["specs", "NVIDIA A100-SXM4-80GB"]) == EXIT_OK
    assert "312 TFLOP/s" in capsys.readouterr().out
    assert main(["specs", "A100X"]) == EXIT_FAILED
    assert "'A100X' is not in the table of accelerators, near: A100 SXM4 80GB" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["run matmul", "record matmul --out x.jsonl"])
@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("--size 0", "size '0': expected whole numbers from 1"),
        (
            "--size 99999999999999999999",
            "size '99999999999999999999': expected whole numbers from 1 to 2^40, like 4096, 4k or 2^12",
        ),
        (
            "--size 2x3",
            "size '2x3': expected whole numbers from 1 to 2^40, like 4096, 4k or 2^12; lengths of several axes are",
        ),
        (
            "--size m=8,k=8,n=8",
            "size 'm=8': expected whole numbers from 1 to 2^40, like 4096, 4k or 2^12; lengths of several axes are a "
            "shape (--shape), like m=512,k=64,n=512",
        ),
        ("--size 8 --dtype fp8", "dtype 'fp8': expected fp64, fp32"),
        ("--size 8 --impl jax", "implementation of matmul 'jax': expected numpy"),
        ("--size 8 --device cuda:9", "device 'cuda:9': expected cpu"),
        ("--shape m=1", "shape of matmul 'm=1': expected lengths like m=128,k=128,n=128"),
        ("--size 8 --cache hot", "cache 'hot': expected cold, warm"),
        ("--size 8 --budget 0", "budget '0.0': expected above 0"),
        ("--size 8 --threads 1.5", "threads '1.5': expected whole numbers"),
    ],
)
def test_bad_value_is_named_and_nothing_is_written(tmp_path, monkeypatch, home, capsys, command, words, text):
    monkeypatch.chdir(tmp_path)
    before = sorted(home.rglob("*"))

    assert main([*command.split(), *words.split()]) == EXIT_UNUSABLE

    told = capsys.readouterr()
    assert told.err.startswith(f"gpuexplore: {text}")
    assert told.out == ""
    assert sorted(home.rglob("*")) == before
    assert not (tmp_path / "x.jsonl").exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("run fft --out x.csv", "operation 'fft': expected matmul, batched_matmul, linear, matvec"),
        ("record fft --out x.jsonl", "operation 'fft': expected matmul, batched_matmul, linear, matvec"),
        ("run matmul --out x.xlsx", "file type '.xlsx': expected .html, .json, .csv, .parquet"),
        ("run matmul --out x", "file type 'x': expected .html, .json, .csv, .parquet"),
        ("record matmul --out x.json", "file type '.json': expected .jsonl"),
        ("record matmul --out x", "file type 'x': expected .jsonl"),
        ("run matmul --out missing/x.csv", "folder 'missing'"),
        ("record matmul --out missing/x.jsonl", "folder 'missing'"),
    ],
)
def test_unknown_operation_or_file_is_refused_before_anything_is_measured(words, text, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    assert main([*words.split(), "--size", "8"]) == EXIT_UNUSABLE
    assert text in capsys.readouterr().err
    assert list(tmp_path.glob("x*")) == []


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["fly"],
        ["record", "matmul"],
        ["run", "matmul", "--sise", "8"],
        ["memory", "gpt2", "--batch=--"],
        ["train", "--steps=--"],
    ],
)
def test_unknown_words_are_unusable_arguments(words, capsys):
    with pytest.raises(SystemExit) as end:
        main(words)

    assert end.value.code == EXIT_UNUSABLE
    assert "usage: gpuexplore" in capsys.readouterr().err


def test_version_is_that_of_the_package(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--version"])

    assert end.value.code == EXIT_OK
    assert capsys.readouterr().out.strip() == gpuexplore.__version__


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_every_command_has_help(command, capsys):
    with pytest.raises(SystemExit) as end:
        main([command, "--help"])

    assert end.value.code == EXIT_OK
    assert cli.COMMANDS[command] in " ".join(capsys.readouterr().out.split())


def test_interrupt_is_a_failure_and_no_traceback(monkeypatch, capsys):
    def interrupt(arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr(devices_command, "execute", interrupt)

    assert main(["devices"]) == EXIT_FAILED
    assert capsys.readouterr().err == "gpuexplore: interrupted\n"


def test_app_serves_the_launcher_on_this_machine_only(monkeypatch):
    called = []
    server = SimpleNamespace(wait=lambda: 3)
    monkeypatch.setattr(app_command.subprocess, "Popen", lambda command, **options: called.append(command) or server)

    assert main(["app", "--port", "9000"]) == 3
    assert called[0][1:] == [
        *["-m", "streamlit", "run", "app.py"],
        *["--server.port", "9000", "--server.address", "127.0.0.1"],
    ]


@pytest.mark.parametrize(
    ("words", "settings", "told"),
    [
        ("--port 99999", {}, "--port '99999': expected whole numbers from 1 to 65,535"),
        ("--port 0", {}, "--port '0': expected whole numbers from 1"),
        ("--address 999.1.1.1", {}, "--address '999.1.1.1': expected addresses and names of this machine"),
        ("--address 192.0.2.1", {}, "--address '192.0.2.1': expected addresses and names of this machine"),
        ("", {"SUPERVISOR": "maybe"}, "GPUEXPLORE_SUPERVISOR 'maybe': expected own, external"),
        (
            "",
            {"LEADER_KEY": "short"},
            "GPUEXPLORE_LEADER_KEY: a value of 5 characters; expected tokens",
        ),
        ("", {"TRUSTED_PROXIES": "127.0.0.1,foo"}, "GPUEXPLORE_TRUSTED_PROXIES 'foo': expected addresses and"),
        ("", {"TRUSTED_PROXIES": "10.0.0.1/8"}, "GPUEXPLORE_TRUSTED_PROXIES '10.0.0.1/8'"),
        ("", {"FRAMED_BY": "foo"}, "GPUEXPLORE_FRAMED_BY 'foo': expected origins, like https://lab.example.org"),
        ("", {"FRAMED_BY": "https://a.org; script-src *"}, "GPUEXPLORE_FRAMED_BY 'https://a.org; script-src *'"),
        ("", {"SCHEDULER": "nonsense"}, "GPUEXPLORE_SCHEDULER 'nonsense': expected addresses of a Dask scheduler"),
        ("", {"METRICS": "abc"}, "GPUEXPLORE_METRICS: a value of 3 characters; expected off, on, and tokens of"),
    ],
)
def test_what_a_server_cannot_start_with_is_named_before_it_starts(monkeypatch, capsys, words, settings, told):
    monkeypatch.setattr(app_command.subprocess, "Popen", None)
    for name, value in settings.items():
        monkeypatch.setenv(f"GPUEXPLORE_{name}", value)

    assert main(["app", *words.split()]) == EXIT_UNUSABLE
    said = capsys.readouterr().err
    assert said.startswith(f"gpuexplore: {told}")
    assert said.count("\n") == 1


def test_app_prints_a_leaders_link_whose_key_the_server_knows(monkeypatch, capsys):
    keys = []
    server = SimpleNamespace(wait=lambda: 0)
    monkeypatch.delenv("GPUEXPLORE_LEADER_KEY", raising=False)
    monkeypatch.setattr(
        app_command.subprocess,
        "Popen",
        lambda command, env, **_: keys.append(env["GPUEXPLORE_LEADER_KEY"]) or server,
    )

    assert [main(["app", "--address", "0.0.0.0"]), main(["app"])] == [0, 0]
    told = capsys.readouterr().err
    assert all(f"http://127.0.0.1:8501/lessons?key={key}\n" in told for key in keys)
    assert len(set(keys)) == 2
    monkeypatch.setenv("GPUEXPLORE_LEADER_KEY", "chosen-by-an-administrator")
    assert main(["app"]) == 0
    assert keys[-1] == "chosen-by-an-administrator"
    assert "chosen" not in capsys.readouterr().err


@pytest.mark.parametrize(("own", "allowed"), [("", None), ("lab.example.org", "lab.example.org,app.example.org")])
def test_app_answers_under_the_name_of_its_proxy_too(monkeypatch, own, allowed):
    called = {}
    server = SimpleNamespace(wait=lambda: 0)
    monkeypatch.setenv("GPUEXPLORE_ALLOWED_HOSTS", own)
    monkeypatch.setattr(
        app_command.subprocess, "Popen", lambda command, **options: called.update(options, command=command) or server
    )

    assert main(["app", "--behind-proxy", "App.example.org"]) == 0
    assert called["command"][-2:] == ["--browser.serverAddress", "app.example.org"]
    assert (called["env"]["GPUEXPLORE_ALLOWED_HOSTS"] or None) == allowed


@pytest.mark.parametrize("host", ["https://app.example.org", "app.example.org/", "a b", "*.example.org", "-x", "a:80"])
def test_a_proxy_is_the_name_of_a_host(capsys, host):
    assert main(["app", f"--behind-proxy={host}"]) == EXIT_UNUSABLE
    assert f"--behind-proxy {host!r}: expected a host name" in capsys.readouterr().err


def test_app_names_the_extra_that_it_needs(monkeypatch, capsys):
    monkeypatch.setattr(app_command, "find_spec", lambda name: None)

    assert main(["app"]) == EXIT_FAILED
    assert capsys.readouterr().err == "gpuexplore: streamlit is not installed: pip install 'gpuexplore[app]'\n"


@pytest.mark.parametrize("status", list(Status))
def test_exit_code_is_1_for_what_failed_and_where_nothing_was_measured(status):
    if status is Status.OK:
        result = Result(case(), status, measurement=measurement())
    else:
        result = Result(case(), status, "a reason")

    measured = Result(case(), Status.OK, measurement=measurement())
    assert exit_code([result]) == (EXIT_OK if status is Status.OK else EXIT_FAILED)
    assert exit_code([result, measured]) == (EXIT_FAILED if status in FAILED else EXIT_OK)
    assert (status in FAILED) == (status not in (Status.OK, Status.SKIPPED, Status.UNSUPPORTED))


def test_columns_are_aligned(capsys):
    print_columns([("a", "long"), ("longer", "b")])

    assert capsys.readouterr().out == "a       long\nlonger  b\n"


def test_progress_is_a_line_a_result_where_nobody_watches(capsys):
    progress = ProgressLine(2)

    progress.show(case())
    progress.show(Result(case(), Status.OK, measurement=measurement(1e-3)))
    progress.show(Result(replace(case(), dtype="fp64"), Status.SKIPPED, "too slow"))

    assert capsys.readouterr().err == (
        "[1/2] vector_add n=8 fp32 fake on cpu  1.00 ms\n[2/2] vector_add n=8 fp64 fake on cpu  skipped: too slow\n"
    )


@pytest.mark.parametrize("is_terminal", [False, True])
def test_progress_tells_the_first_pass_and_then_what_is_refined(monkeypatch, capsys, is_terminal):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: is_terminal, raising=False)
    cases = [replace(case(), implementation=name) for name in ("one", "two")]
    results = [Result(each, Status.OK, measurement=measurement(1e-3)) for each in cases]
    progress = ProgressLine(2)

    for event in (*(replace(result, provisional=True) for result in results), *results):
        progress.show(event)

    told = capsys.readouterr().err
    point = "vector_add n=8 fp32 {} on cpu  1.00 ms"
    if is_terminal:
        heads = ["[1/2]", "2 of 2 measured, refining 2", "2 of 2 measured, refining 1", "[2/2]"]
        assert [line.split("  ")[0].split(" vector")[0] for line in told.split("\r\x1b[K")[1:]] == heads
    else:
        lines = ["2 of 2 measured, refining 2", f"[1/2] {point.format('one')}", f"[2/2] {point.format('two')}"]
        assert told.splitlines() == lines


def test_progress_is_one_rewritten_line_on_a_terminal(monkeypatch, capsys):
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True, raising=False)
    progress = ProgressLine(1)

    progress.show(case())
    progress.show(Result(case(), Status.SKIPPED, "too slow"))

    told = capsys.readouterr().err
    assert told.count("\n") == 1
    assert told.endswith("skipped: too slow\n")
    assert told.count("\r") == 2


def test_unknown_baseline_is_refused_before_anything_is_measured(capsys):
    words = ["run", "matmul", "--size", "8", "--dtype", "fp32", "--impl", "numpy", "--baseline", "abacus"]

    assert main(words) == EXIT_UNUSABLE
    assert "baseline 'abacus': expected numpy, fp32" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["run matmul --impl numpy", "predict matmul --gpu t4"])
@pytest.mark.parametrize(
    ("url", "words"),
    [
        (None, "The database cannot be used now: its file is damaged"),
        ("nonsense:secret", "expected one that can be opened and written"),
        ("postgresql+nothere://me:secret@127.0.0.1/x", "expected one that can be opened and written"),
        ("postgresql+psycopg://me:secret@127.0.0.1:1/x", "the database server does not respond"),
    ],
    ids=["a file that is no database", "a url that is none", "a driver that is not here", "a server that is not there"],
)
def test_a_broken_database_is_named_before_anything_is_measured(home, monkeypatch, capsys, command, url, words):
    monkeypatch.setattr(run_command, "measure", lambda *_: pytest.fail("nothing may be measured"))
    if url:
        monkeypatch.setenv("GPUEXPLORE_DATABASE_URL", url)
    else:
        (home / "gpuexplore.sqlite3").write_text("this is no database, however long it is" * 9)

    assert main([*command.split(), "--size", "8", "--dtype", "fp32"]) == EXIT_UNUSABLE
    told = capsys.readouterr().err
    assert words in told
    assert "secret" not in told


def test_what_was_measured_is_printed_even_when_it_cannot_be_kept(monkeypatch, capsys):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(run_command, "measure", lambda *_: [failed()])
    monkeypatch.setattr(run_command, "save", full)

    assert main(["run", "matmul", "--size", "8", "--dtype", "fp32", "--impl", "numpy"]) == EXIT_FAILED
    told = capsys.readouterr()
    assert "skipped: too slow" in told.out
    assert "gpuexplore: [Errno 28] No space left on device" in told.err
