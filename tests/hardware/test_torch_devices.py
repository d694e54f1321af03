"""Devices that only torch finds: looked for where something speaks for them, asked once, and never believed blindly."""

import json
import os
import sys
from types import SimpleNamespace

import pytest
import torch

from gpuexplore.core.errors import Unsupported
from gpuexplore.core.model import Telemetry
from gpuexplore.hardware import read, torch_devices, torch_probe
from gpuexplore.hardware.torch_devices import (
    AGAIN_S,
    TORCH_KINDS,
    Host,
    _ask_torch,
    _installed_build,
    check_measured_on,
)
from tests.hardware.torch_answers import ANSWERS, ARC, EVERY_BUILD, M3_MAX, MI300X, add, found_on, host_with

find = torch_devices.torch_devices
EACH = pytest.mark.parametrize("kind", TORCH_KINDS)


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(tmp_path / "home"))


def never(*_):
    raise AssertionError("torch did not list")


@pytest.mark.parametrize("host", [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "x86_64"), ("win32", "AMD64")])
def test_a_machine_without_a_hint_is_asked_nothing_and_starts_no_process(tmp_path, host):
    add(tmp_path / "dev/dri/renderD128")
    add(tmp_path / "sys/class/drm/renderD128/device/vendor", "0x10de\n")  # of another maker

    assert find(Host(*host, tmp_path), build=never, ask=never) == ()


@EACH
def test_a_hint_without_torch_or_with_a_build_for_others_starts_no_process(tmp_path, kind):
    host = host_with(tmp_path, kind)

    assert find(host, build=lambda: None, ask=never) == ()
    if kind != "mps":  # builds for macOS do not say
        assert find(host, build=lambda: {"__version__": "2.13.0", "cuda": "13.0"}, ask=never) == ()


@EACH
def test_each_device_is_found_as_torch_describes_it_and_says_first_that_nobody_tried(tmp_path, kind):
    device, said = found_on(tmp_path, kind), ANSWERS[kind][0]

    assert (device.id, device.kind, device.name) == (f"{kind}:0", kind, said["name"])
    assert (device.cores, device.memory_bytes) == (said["multiprocessors"], said["memory_bytes"])
    assert (device.driver, device.uuid) == (said.get("driver"), said.get("uuid"))
    assert device.notes[0].startswith(f"gpuexplore has never been tested on {TORCH_KINDS[kind].title};")
    assert ("gpuexplore.run(...)" if kind == "mps" else f"selftest --device {kind}:0") in device.notes[0]
    assert "include" in device.notes[1]


def test_peaks_are_those_of_the_row_that_nothing_contradicts(tmp_path):
    amd, apple = found_on(tmp_path, "rocm"), found_on(tmp_path, "mps")

    assert (amd.spec_key, amd.compute_capability) == ("mi300x", "gfx942")
    assert amd.peak("bf16", "matrix").flop_per_s == pytest.approx(1307.4e12, rel=1e-3)
    assert amd.cache_bytes == 32 * 2**20 > MI300X["cache_bytes"]
    assert apple.spec_key == "apple-m3-max"
    assert "row apple-m3-max" in apple.notes[2]


@pytest.mark.parametrize(
    ("kind", "said", "doubt"),
    [
        ("rocm", MI300X | {"multiprocessors": 228}, "mi300x: the driver counts 228 multiprocessors, the table 304"),
        ("rocm", MI300X | {"name": ""}, "no row is called 'GPU of AMD ROCm without a name'"),
        ("mps", M3_MAX | {"multiprocessors": 30}, "apple-m3-max: the driver counts 30 multiprocessors, the table 40"),
        ("xpu", ARC, "no row is called 'Intel(R) Arc(TM) B580 Graphics'"),
    ],
)
def test_without_such_a_row_peaks_are_unknown_and_a_note_says_why(tmp_path, kind, said, doubt):
    device = found_on(tmp_path, kind, said)

    assert (device.peaks, device.bandwidth, device.spec_key, device.native) == ((), None, None, ())
    assert device.notes[2] == f"Peaks are unknown: {doubt}."


def test_what_torch_does_not_know_is_unknown_and_several_are_numbered_as_torch_does(tmp_path):
    device = found_on(tmp_path, "xpu", {"name": "a", "memory_bytes": 0, "multiprocessors": None, "cache_bytes": "many"})

    assert (device.cores, device.memory_bytes, device.cache_bytes, device.driver, device.uuid) == (None,) * 5
    host = host_with(tmp_path / "another", "rocm")
    found = find(host, build=lambda: EVERY_BUILD, ask=lambda _: [MI300X, MI300X | {"uuid": "b"}])

    assert [(device.id, device.uuid) for device in found] == [("rocm:0", "9a"), ("rocm:1", "b")]


def test_torch_is_asked_once_and_again_for_another_torch_or_other_visible_devices(tmp_path, monkeypatch):
    asked, host = [], host_with(tmp_path, "rocm")

    def ask(kind):
        asked.append(kind)
        return ANSWERS[kind]

    def look(version="2.13.0"):
        return find(host, build=lambda: {"__version__": version, "hip": "6.4"}, ask=ask)

    assert look() == look()
    assert asked == ["rocm"]
    look("2.14.0")
    monkeypatch.setenv("HIP_VISIBLE_DEVICES", "1")
    look()
    assert asked == ["rocm"] * 3


def test_where_torch_does_not_answer_there_is_no_device_until_it_is_asked_again_later(tmp_path):
    asked, host = [], host_with(tmp_path, "xpu")

    def look():
        return find(host, build=lambda: EVERY_BUILD, ask=asked.append)

    assert (look(), look(), len(asked)) == ((), (), 1)
    (kept,) = (tmp_path / "home/cache").glob("torch-xpu-*.json")
    long_ago = kept.stat().st_mtime - AGAIN_S - 1
    os.utime(kept, (long_ago, long_ago))
    look()
    assert len(asked) == 2


def test_a_file_that_cannot_be_read_is_written_again(tmp_path):
    host = host_with(tmp_path, "rocm")

    def look():
        return find(host, build=lambda: EVERY_BUILD, ask=ANSWERS.get)

    devices = look()
    (kept,) = (tmp_path / "home/cache").glob("torch-rocm-*.json")
    for text in ("half of [", '{"name": "x"}', "[1]"):
        kept.write_text(text, encoding="utf-8")
        assert look() == devices, text
    assert json.loads(kept.read_text(encoding="utf-8")) == [MI300X]


@pytest.mark.parametrize(
    ("code", "answer"),
    [
        ("print('a warning'); print('[{\"name\": \"a\"}]')", [{"name": "a"}]),
        ("raise SystemExit(1)", None),
        ("import os; os.abort()", None),
        ("import time; time.sleep(60)", None),
        ("print('nonsense')", None),
        ("print('{}')", None),
        ("print('[1]')", None),
        ("pass", None),
    ],
)
def test_a_process_that_fails_hangs_or_answers_nonsense_is_no_answer(code, answer):
    limit_s = 0.3 if "sleep" in code else 30.0

    assert _ask_torch("rocm", [sys.executable, "-S", "-c", code], limit_s) == answer


def test_a_python_that_cannot_be_started_is_no_answer():
    assert _ask_torch("rocm", ["/nowhere/python"]) is None


@pytest.mark.long
def test_the_torch_that_is_here_is_asked_in_a_process_of_its_own():
    if torch.xpu.is_available():
        pytest.skip("a GPU of Intel is here")
    assert _ask_torch("xpu") == []


def test_the_file_of_the_installed_torch_tells_its_version_and_what_it_is_built_for():
    build = _installed_build()

    assert build["__version__"] == torch.__version__
    assert {name for name in ("cuda", "hip", "xpu") if name in build} == {
        name for name in ("cuda", "hip", "xpu") if getattr(torch.version, name, None)
    }


def test_a_build_for_rocm_is_known_by_that_file(tmp_path, monkeypatch):
    add(tmp_path / "version.py", "from typing import Optional\n__version__ = '2.13.0+rocm6.4'\n")
    add(tmp_path / "version.py", (tmp_path / "version.py").read_text() + "cuda: Optional[str] = None\nhip = '6.4.4'\n")
    monkeypatch.setattr(torch_devices, "find_spec", lambda _: SimpleNamespace(origin=str(tmp_path / "__init__.py")))

    build = _installed_build()

    assert (build["__version__"], "hip" in build, "cuda" in build) == ("2.13.0+rocm6.4", True, False)


def amd(architecture):
    return SimpleNamespace(
        name="AMD", total_memory=1, multi_processor_count=48, gcnArchName=architecture, L2_cache_size=2, uuid="u"
    )


def torch_with(**there):
    """Return a torch that finds one device of each kind named."""
    one = {"is_available": lambda: True, "device_count": lambda: 1}
    none = SimpleNamespace(is_available=lambda: False)
    xpu = SimpleNamespace(name="Arc", total_memory=3, gpu_subslice_count=20, driver_version="1.6")
    parts = {
        "rocm": SimpleNamespace(**one, get_device_properties=lambda _: amd(there.get("rocm"))),
        "xpu": SimpleNamespace(**one, get_device_properties=lambda _: xpu),
        "mps": SimpleNamespace(is_available=lambda: True, get_name=lambda: "Apple M3", get_core_count=lambda: 10),
    }
    return SimpleNamespace(
        version=SimpleNamespace(hip="6.4" if "rocm" in there else None),
        cuda=parts["rocm"],  # of a build for CUDA it is NVIDIA's
        xpu=parts["xpu"] if "xpu" in there else none,
        backends=SimpleNamespace(mps=parts["mps"] if "mps" in there else none),
        mps=SimpleNamespace(recommended_max_memory=lambda: 7),
    )


@pytest.mark.parametrize(
    ("kind", "said", "facts"),
    [
        ("rocm", "gfx90a:sramecc+:xnack-", {"architecture": "gfx90a", "multiprocessors": 48, "driver": "HIP 6.4"}),
        ("rocm", "gfx1100", {"architecture": "gfx1100", "multiprocessors": None, "cache_bytes": 2}),
        ("mps", True, {"name": "Apple M3", "multiprocessors": 10, "memory_bytes": 7}),
        ("xpu", True, {"name": "Arc", "multiprocessors": 20, "driver": "1.6", "cache_bytes": None}),
    ],
)
def test_the_process_writes_what_torch_says(monkeypatch, capsys, kind, said, facts):
    monkeypatch.setitem(sys.modules, "torch", torch_with(**{kind: said}))
    monkeypatch.setattr(sys, "argv", ["torch_probe", kind])
    torch_probe.main()
    (told,) = json.loads(capsys.readouterr().out)

    assert {name: told[name] for name in facts} == facts


@EACH
def test_the_process_writes_an_empty_list_where_torch_finds_none(monkeypatch, capsys, kind):
    monkeypatch.setitem(sys.modules, "torch", torch_with())  # its cuda is there, and NVIDIA's
    monkeypatch.setattr(sys, "argv", ["torch_probe", kind])
    torch_probe.main()

    assert json.loads(capsys.readouterr().out) == []


@EACH
def test_nvml_is_not_asked_about_the_state_of_such_a_device(tmp_path, monkeypatch, kind):
    monkeypatch.setattr("gpuexplore.hardware.telemetry.load_nvml", never)

    assert read(found_on(tmp_path, kind)) == Telemetry()


def test_what_is_not_done_on_such_a_device_says_what_is():
    for device in ("cpu", "cuda:0", "lab/cuda:1", "simulated:0"):
        check_measured_on(device, "a training")
    with pytest.raises(Unsupported, match="a training needs a CPU or an NVIDIA GPU, but lab/mps:0 is Apple MPS, where"):
        check_measured_on("lab/mps:0", "a training")
