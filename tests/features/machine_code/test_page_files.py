"""The page Kernels with a file dropped onto its machine code: none, good ones, and what is refused."""

import pytest

from gpuexplore.core.errors import Unsupported
from gpuexplore.features.machine_code.ui import machine_code
from gpuexplore.jobs.reading import read_apart
from gpuexplore.kernels.files import read_kernel_file
from gpuexplore.kernels.files.machine_code import MachineCode
from tests.features.machine_code.test_page import metrics
from tests.kernels.files.kept import CUBIN, MATMUL, SAXPY_CUBIN, TRITON, TWO
from tests.pages.conftest import LINES, compiler, home, page, texts

H100, A100 = "h100-sxm5-80gb", "a100-sxm4-80gb"
ASSEMBLED = MachineCode(
    "reversed", "sm_90", 32, 0, 0, (512, 1, 1), LINES, toolkit="13.5", spill_bytes=8, has_open_array=True
)

pytestmark = pytest.mark.long


@pytest.fixture
def dropped(page, monkeypatch):
    """Return the page with a file dropped onto it, which is read in this process."""
    monkeypatch.setattr(machine_code, "read_apart", lambda _, content: read_kernel_file(content))

    def drop(path, gpu=H100, content=None):
        app = page("kernels", gpu=gpu, tab="code")
        app.segmented_control(key="kernels.code_of").set_value(machine_code.FILE).run()
        file = (path.name, path.read_bytes() if content is None else content, "application/octet-stream")
        return app.file_uploader(key="kernels.file").set_value(file).run()

    return drop


def test_without_a_file_one_is_asked_for(page):
    app = page("kernels", gpu=H100, tab="code")
    app.segmented_control(key="kernels.code_of").set_value(machine_code.FILE).run()

    assert not app.exception
    assert "Drop a file to see its machine code" in texts(app.info)
    assert "Upper bound" not in metrics(app)


@pytest.mark.usefixtures("nvdisasm")
def test_a_cubin_shows_what_our_kernels_show_but_for_the_roofline(dropped):
    app = dropped(SAXPY_CUBIN)
    shown = next(one.value for one in app.code if one.value.startswith("live stall"))

    assert not app.exception
    assert not app.error
    assert (metrics(app)["Live registers"], metrics(app)["Upper bound"]) == ("10", "5.58 TFLOP/s")
    assert "Roofline" not in metrics(app)
    assert "Blocks of 256 threads: the default, as the file states none. 64 of 64 warps" in texts(app.markdown)
    assert "   9     7     .     .    0 ......  /*0150*/       STG.E desc[UR6][R4.64], R11" in shown
    assert "LDC R1" not in shown
    app.toggle(key="kernels.file_sass").set_value(True).run()
    assert any("LDC R1" in one.value for one in app.code)


@pytest.mark.usefixtures("nvdisasm")
def test_the_block_can_be_named(dropped, monkeypatch):
    monkeypatch.setattr(machine_code, "read_apart", read_apart)  # in a process of its own
    app = dropped(SAXPY_CUBIN)
    app.text_input(key="kernels.file_block").set_value("32").run()

    assert "Blocks of 32 threads: as requested. 32 of 64 warps" in texts(app.markdown)


def test_ptx_with_several_kernels_offers_them_and_asks_for_shared_memory(dropped, monkeypatch):
    monkeypatch.setattr(machine_code, "machine_code_of", lambda *_: ASSEMBLED)
    app = dropped(TWO)

    assert app.selectbox(key="kernels.file_kernel").options == [MATMUL, "reversed"]
    assert "declares dynamic shared memory" in texts(app.warning)
    assert (metrics(app)["Spills"], metrics(app)["Occupancy"]) == ("8 B", "100 %")
    app.text_input(key="kernels.file_shared").set_value("116000").run()
    assert "declares dynamic shared memory" not in texts(app.warning)
    assert (metrics(app)["Shared memory"], metrics(app)["Occupancy"]) == ("113 KiB", "25.0 %")
    assert "assembled by CUDA 13.5" in texts(app.caption)


@pytest.mark.parametrize(
    ("path", "gpu", "content", "said"),
    [
        (CUBIN, H100, None, "this cubin is for compute capability 8.0, but the GPU has 9.0"),
        (TRITON, A100, None, "this PTX is for sm_90a, but the GPU has compute capability 8.0"),
        (TWO, H100, b"no kernel", "this is not PTX"),
        (CUBIN, H100, b"", "this file is empty"),
    ],
)
def test_a_file_that_cannot_be_used_is_a_sentence(dropped, path, gpu, content, said):
    app = dropped(path, gpu, content)

    assert not app.exception
    assert said in texts(app.error).replace("\\", "")


@pytest.mark.parametrize(("field", "typed", "said"), [("block", "7,,", "block '7,,'"), ("shared", "x", "memory 'x'")])
def test_a_busy_compiler_is_a_warning_and_a_launch_that_cannot_be_a_sentence(dropped, monkeypatch, field, typed, said):
    monkeypatch.setattr(machine_code, "machine_code_of", _busy)
    app = dropped(SAXPY_CUBIN)
    assert "other kernels are being compiled" in texts(app.warning)
    app.text_input(key=f"kernels.file_{field}").set_value(typed).run()

    assert not app.exception
    assert said in texts(app.error).replace("\\", "")


def _busy(*_):
    raise Unsupported("other kernels are being compiled: try again in a minute")
