from dataclasses import replace

import pytest

from gpuexplore.core.errors import TooSlow, Unsupported
from gpuexplore.core.model import Experiment, Options, Result, Shape, Status
from gpuexplore.features.machine_code.analysis.ladder import kernels, libraries
from gpuexplore.features.machine_code.ui import VIEWS, facts, interpreter, machine_code
from gpuexplore.measure.check.interpreted import interpreted
from gpuexplore.operations import OPERATIONS
from gpuexplore.operations.compiled import recorded, recorded_elsewhere
from gpuexplore.ui import session, shared
from gpuexplore.ui.shared import later
from tests.analysis.made import device, ok
from tests.hardware.torch_answers import found_on
from tests.measure.made_block import adding, block_run, request
from tests.pages.conftest import OWNER, compiled, compiler, home, only, page, store, texts

OWN = [
    pytest.param(operation, implementation, id=f"{operation.name}-{implementation.name}")
    for operation in OPERATIONS.values()
    for implementation in operation.implementations
    if implementation.backend.startswith("numba")
]
WITH_KERNELS = {each.values[0].name: None for each in OWN}  # of the others no ladder is there
LADDERS = {(each.values[0].name, each.values[1].backend): each for each in OWN}  # by the last rung of each
MATMUL = OPERATIONS["matmul"]
ON_CPU = ("ladder", "code")  # the views of a kernel without a launch
ON_GPU = {
    operation.name: implementation.name
    for operation, implementation in (each.values for each in reversed(OWN))
    if implementation.geometry
}


def metrics(app):
    return {one.label: one.value for one in app.metric}


def tabs(app):
    """Return the view that is shown, and the names of all that are offered."""
    views = app.segmented_control(key="kernels.tab")
    return views.value, views.options


def every_view(page, names=tuple(VIEWS), **query):
    """Open the page once for each of its views, and return them by their names."""
    return {name: page("kernels", **query, tab=name) for name in names}


def one_ladder_of_each_operation():
    """Return ladders of the CPU and of CUDA in turn: sources and launches of all are looked at below."""
    for place, name in enumerate(OPERATIONS):
        found = [ladder for (operation, _), ladder in LADDERS.items() if operation == name]
        yield from found[place % 2 :][:1] or found[:1]


@pytest.mark.parametrize(("operation", "implementation"), list(one_ladder_of_each_operation()))
def test_a_kernel_has_its_page_with_source_and_ladder(page, operation, implementation):
    names = ("launch", *ON_CPU) if implementation.geometry else ON_CPU
    views = every_view(page, names, op=operation.name, impl=implementation.name)

    for name, app in views.items():
        assert not app.exception
        assert not app.error
        assert tabs(app)[0] == name
        assert implementation.about[1:] in texts(app.caption)
        assert ("Occupancy" in metrics(app)) == (name == "launch")
        assert ("The ladder: " in texts(app.subheader)) == (name == "ladder")
    assert any("def " in one.value for one in views["code"].code)


@pytest.mark.parametrize(("operation", "implementation"), list(ON_GPU.items()))
def test_a_kernel_of_every_operation_can_be_run_in_the_interpreter(page, operation, implementation):
    app = page("kernels", op=operation, impl=implementation, tab="interpreter")

    assert not app.exception
    assert not app.error
    assert f"Run {implementation}" in [button.label for button in app.button]


@pytest.mark.parametrize(("operation", "implementation"), OWN)
def test_every_kernel_has_a_source_that_defines_it_and_a_launch_of_its_usual_shape(operation, implementation):
    texts_of_files = machine_code._sources(operation, implementation).values()
    shape = operation.shape_of_size(operation.default_sizes[-1])
    geometry = implementation.geometry

    assert any("def " in text for text in texts_of_files)
    assert implementation.about
    assert geometry is None or geometry.launch(operation.output(shape), None).uncovered == 0


def test_the_ladder_is_that_which_a_recording_has_of_the_gpu(page, asked):
    app = page("kernels", tab="ladder")

    assert (tabs(app), asked) == (("ladder", list(VIEWS.values())), [])
    assert "on **NVIDIA H100 80GB HBM3**, 2026-11-28" in texts(app.caption)
    assert "The fastest step, numba-cuda, reaches 92.9 % of the library's speed." in texts(app.markdown)
    assert "Bars: measured in fp32 at 2,048 × 2,048 × 2,048 on NVIDIA H100 80GB HBM3" in texts(app.caption)
    assert "Bars:" not in texts(page("kernels", op="matvec", gpu="t4", tab="ladder").caption)


@pytest.mark.parametrize("query", [{"interpret": "yes"}, {"small": "8"}, {"step": "2"}, {"warp": "1", "at": "0,0,0"}])
def test_a_link_with_a_step_of_the_interpreter_leads_there(page, asked, query):
    app = page("kernels", **query)

    assert tabs(app) == ("interpreter", list(VIEWS.values()))
    assert "nothing here is a time" in texts(app.caption)


def test_the_ladder_is_the_first_view_of_a_cpus_kernel(page):
    app = page("kernels", impl="numba-cpu")

    assert tabs(app) == ("ladder", [VIEWS[name] for name in ON_CPU])
    assert "tab" not in app.query_params
    assert "The ladder: matrix multiplication in fp32" in texts(app.subheader)


@pytest.mark.parametrize(
    ("query", "view"),
    [
        ({"run": "gone"}, "ladder"),
        ({"sweep": "gone"}, "launch"),
        ({"sweep": "gone", "run": "gone"}, "launch"),
        ({"run": "gone", "tab": "code"}, "code"),
        ({"sweep": "gone", "tab": "ladder"}, "ladder"),
    ],
)
def test_a_link_with_a_run_leads_to_the_view_that_shows_it_unless_it_names_another(page, query, view):
    app = page("kernels", impl="numba-cuda-naive", **query)

    assert not app.error
    assert tabs(app)[0] == view


def test_another_view_is_in_the_link_and_shows_the_same_choices(page):
    app = page("kernels", impl="numba-cuda-shared", gpu="t4", shape="64")
    app.segmented_control(key="kernels.tab").set_value("launch").run()

    assert (only(app.query_params["tab"]), metrics(app)["Grid"]) == ("launch", "4 × 4")
    app.segmented_control(key="kernels.tab").set_value("interpreter").run()
    assert "tab" not in app.query_params
    assert only(app.query_params["impl"]) == "numba-cuda-shared"


def test_registers_lead_to_occupancy_waves_and_what_limits_them(page):
    app = page("kernels", impl="numba-cuda-naive", gpu="a100-sxm4-80gb", shape="4096", tab="launch")
    told = texts(app.markdown)

    assert (metrics(app)["Registers"], metrics(app)["Occupancy"]) == ("40", "75.0 %")
    assert metrics(app)["Grid"] == "256 × 256"
    assert "6 blocks per multiprocessor, 48 of 64 warps" in told
    assert "limited by registers" in told
    assert "108 multiprocessors run 648 blocks at once: 102 waves, 101 full and a last one of 88 blocks" in told


def test_grid_that_does_not_cover_the_output_is_shown_explained_and_never_timed(page):
    views = every_view(page, impl="numba-cuda-naive", shape="64", grid="2,4")
    app = views["launch"]

    assert "2,048 of 4,096 elements (50.0 %) would never be written" in texts(app.error)
    assert "never timed" in texts(app.error)
    assert not any(one.label.startswith("Measure") for view in views.values() for one in view.button)


@pytest.mark.parametrize(
    "named",
    [
        {"op": ("abacus", "op 'abacus'"), "tab": ("attic", "tab 'attic': expected interpreter, launch, ladder, code")},
        {"impl": ("numpy", "impl 'numpy'"), "dtype": ("fp8", "dtype 'fp8'"), "block": ("7,7", "block '7,7'")},
        {"shape": ("0", "'0'"), "gpu": ("voodoo2", "gpu 'voodoo2'")},
        {"grid": ("-1", "grid '-1'")},
        {"gpu": ("own", ""), "cc": ("9.9", "cc '9.9'"), "sm": ("many", "multiprocessors 'many'")},
        {"gpu": ("own", ""), "sm": ("0", "multiprocessors '0': expected whole numbers from 1 to 1,024")},
        {"grid": ("many", "one to three whole numbers")},
        {"tab": ("launch", "tab 'launch': expected ladder, code"), "impl": ("numba-cpu", "")},
    ],
)
def test_bad_value_in_the_url_is_named_with_what_is_accepted(page, named):
    app = page("kernels", **{name: value for name, (value, _) in named.items()})

    assert not app.exception
    assert [said for _, said in named.values() if said not in texts(app.error)] == []


def test_what_the_compiler_cannot_do_is_said_and_nothing_is_made_up(page, monkeypatch):
    reason = "the CUDA 13.5 toolkit installed here does not compile for compute capability 6.0"
    monkeypatch.setattr(facts, "compiled_kernels", lambda targets: [reason] * len(targets))
    app = page("kernels", impl="numba-cuda-naive", gpu="p100-pcie-16gb", tab="launch")

    assert "does not compile for compute capability 6.0" in texts(app.warning).replace("\\", "")
    assert metrics(app)["Occupancy"] == metrics(app)["Registers"] == "–"
    for tab in ("interpreter", "code"):
        app = page("kernels", impl="numba-cuda-naive", gpu="p100-pcie-16gb", tab=tab)
        assert "does not compile for compute capability 6.0" in texts(app.warning).replace("\\", "")


def test_what_is_still_compiled_is_said_and_the_rest_is_there(page, monkeypatch):
    monkeypatch.setattr(later.Later, "get", lambda *_: None)
    default = page("kernels", op="matvec", impl="numba-cuda-naive", gpu="t4", tab="launch")
    made = recorded("matvec", "numba-cuda-naive", "fp32", "7.5")
    assert metrics(default)["Registers"] == str(made.registers_per_thread)
    assert "Recorded when the kernels were last compiled" in texts(default.caption)

    views = every_view(page, op="matvec", impl="numba-cuda-naive", gpu="t4", block="1024")
    told = {name: [one.value for one in app.info] for name, app in views.items()}

    assert not any(app.exception for app in views.values())
    assert (metrics(views["launch"])["Registers"], metrics(views["launch"])["Grid"]) == ("–", "98")
    assert any("def " in one.value for one in views["code"].code)
    assert "Compiling for compute capability 7.5: registers and occupancy follow in some seconds." in told["launch"]
    assert "Compiling every block shape: their comparison follows in some seconds." in told["launch"]
    assert "Compiling: the machine code follows in some seconds." in told["code"]
    assert "Compiling: the kernel is run in some seconds." in told["interpreter"]


def test_what_another_toolkit_makes_of_the_kernels_is_told(page):
    app = page("kernels", gpu="rtx-5090", tab="ladder")
    (said,) = [one.value for one in app.caption if "compiles these differently" in one.value]
    made = recorded_elsewhere("matmul", "numba-cuda-naive", "fp32", "12.0")["13.0"]

    assert said.startswith("CUDA 13.0 compiles these differently: ")
    assert f"numba-cuda-naive ({made.registers_per_thread} registers, main loop of " in said


def test_machine_code_is_shown_with_the_rate_it_allows_and_all_of_it_and_ptx_on_demand(page):
    app = page("kernels", impl="numba-cuda-naive", gpu="h100-sxm5-80gb", tab="code")
    shown = next(one.value for one in app.code if "FFMA" in one.value)

    assert (metrics(app)["Upper bound"], metrics(app)["Of its units' peak"]) == ("59.5 TFLOP/s", "88.9 %")
    assert (metrics(app)["Main loop"], metrics(app)["Multiply-adds"]) == ("9", "8 (88.9 %)")
    assert "**First bottleneck:** Instruction issue: 9 instructions" in texts(app.markdown)
    assert shown.splitlines()[1] == "   9     2     y     .    . ......  /*0010*/       FFMA R0, R90, R91, R0"
    for toggle, said in (("sass", "MOV R1, R9"), ("ptx", "made_up")):
        assert said not in texts(app.code)
        app.toggle(key=f"kernels.{toggle}").set_value(True).run()
        assert said in texts(app.code)


def test_without_a_disassembler_the_page_says_how_to_get_it(page, monkeypatch):
    def refuse(_):
        raise Unsupported('machine code needs NVIDIA\'s disassembler, nvdisasm: pip install "gpuexplore[sass]"')

    monkeypatch.setattr(machine_code, "lines_of_ours", refuse)
    views = every_view(page, ("launch", "code"), impl="numba-cuda-shared", gpu="t4")

    assert "nvdisasm" in texts(views["code"].warning)
    assert metrics(views["launch"])["Registers"] == "40"


def test_ladder_tells_what_the_machine_code_of_each_rung_allows(page):
    app = page("kernels", impl="numba-cuda-naive", gpu="h100-sxm5-80gb", tab="ladder")

    said = "Upper bounds at the rated clock of H100 SXM5 80GB, unless the arrays stay in the caches"
    assert said in texts(app.caption)
    assert "Not measured" in texts(app.caption)
    own = page("kernels", impl="numba-cuda-naive", gpu="own", cc="9.0", sm="8", tab="ladder")
    assert "The ladder: matrix multiplication in fp32" in texts(own.subheader)
    assert "Upper bounds at the rated clock" not in texts(own.caption)


def test_ladder_of_the_cpu_is_measured_at_a_click_with_the_libraries_in_the_same_rounds(page, store):
    app = page("kernels", impl="numba-cpu", shape="64")
    next(one for one in app.button if one.label.startswith("Measure the ladder")).click().run()
    run = store.load(only(app.query_params["run"]))

    assert tabs(app)[0] == "ladder"
    assert run.owner == OWNER
    assert run.experiment.shapes == (Shape.of(m=64, k=64, n=64),)
    assert set(run.experiment.implementations) == {
        library.name for library in (*libraries(MATMUL, "numba_cpu"), *kernels(MATMUL, "numba_cpu"))
    }


def test_measured_ladder_shows_shares_of_the_fastest_library(page, store):
    names = [library.name for library in (*libraries(MATMUL, "numba_cpu"), *kernels(MATMUL, "numba_cpu"))]
    experiment = Experiment("matmul", (Shape.of(m=64, k=64, n=64),), ("fp32",), tuple(names))
    times = {"numpy": 2e-3, "torch": 1e-3, "numba-cpu-naive": 1e-2}
    results = [
        ok(times[case.implementation], size=64, implementation=case.implementation)
        if case.implementation in times
        else Result(case, Status.SKIPPED, "too slow")
        for case in experiment.cases()
    ]
    app = page("kernels", impl="numba-cpu", run=store.record(experiment, OWNER, results=results))
    table = app.dataframe[-1].value.set_index("Kernel")

    assert list(table.loc["numba-cpu-naive", ["Share", "Of"]]) == [pytest.approx(10), "torch"]  # %
    assert table.loc["numba-cpu-reordered", "Status"] == "too slow"
    assert "numba-cpu-naive 10.0 %" in str(app.get("vega_lite_chart")[0].proto.spec)
    assert next(one for one in app.selectbox if one.label == "Result").value == "64 × 64 × 64, torch in fp32"
    assert "torch in fp32 reaches" in texts(app.markdown)
    assert "Bars: measured in fp32 at 64 × 64 × 64 on a made-up processor, in the same rounds." in texts(app.caption)


@pytest.mark.parametrize("maker", [None, "rocm"])
def test_without_a_gpu_of_cuda_the_page_says_what_can_be_measured_here(page, monkeypatch, tmp_path, maker):
    found = (device(), found_on(tmp_path, maker)) if maker else (device(),)
    monkeypatch.setattr(session, "discover", lambda: found)
    app = page("kernels", impl="numba-cuda-naive", tab="ladder")

    assert not app.exception
    assert "No CUDA device was found" in texts(app.caption)
    assert "Grey ticks: published results for comparable kernels" in texts(app.markdown)


@pytest.fixture
def a100(monkeypatch):
    made = device(device_id="cuda:0", memory_bytes=2**36)
    found = replace(made, spec_key="a100-sxm4-80gb", compute_capability="8.0", native=("fp32",))
    monkeypatch.setattr(session, "discover", lambda: (found,))
    return found


def test_block_shapes_are_measured_where_the_gpu_is_here(page, store, a100):
    app = page("kernels", impl="numba-cuda-naive", shape="64", tab="launch")
    next(one for one in app.button if one.label.startswith("Measure every block")).click().run()
    runs = [store.load(word) for word in only(app.query_params["sweep"]).split(".")]
    blocks = next(
        implementation for implementation in MATMUL.implementations if implementation.name == "numba-cuda-naive"
    ).geometry.blocks

    assert [run.experiment.options for run in runs] == [Options(block=block) for block in blocks]
    assert {run.experiment.implementations for run in runs} == {("numba-cuda-naive",)}


def test_link_to_a_sweep_of_another_server_says_so(page, a100):
    app = page("kernels", impl="numba-cuda-naive", sweep="gone")

    assert "no run 'gone'" in texts(app.warning)


def test_block_shapes_too_large_for_the_gpu_are_refused_before_they_are_queued(page, store, a100, monkeypatch):
    monkeypatch.setattr(session, "discover", lambda: (replace(a100, memory_bytes=2**16),))
    app = page("kernels", impl="numba-cuda-naive", shape="1024", tab="launch")
    next(button for button in app.button if button.label.startswith("Measure every block")).click().run()

    assert "the largest case needs" in texts(app.error)
    assert store.history() == ()


@pytest.mark.parametrize(("tab", "operations"), [("launch", ON_GPU), *((name, WITH_KERNELS) for name in ON_CPU)])
def test_another_operation_brings_a_shape_of_its_own(page, tab, operations):
    app = page("kernels", tab=tab)
    for operation in reversed(operations):
        next(box for box in app.selectbox if box.label == "Operation").set_value(operation).run()

        assert not app.error, operation
        assert "op" not in app.query_params or "shape" not in app.query_params
        assert only(app.query_params["tab"]) == tab


def test_the_ladder_of_a_gpu_lists_what_is_recorded_of_every_rung(page):
    app = page("kernels", impl="numba-cuda-naive", gpu="a100-sxm4-80gb", tab="ladder")
    table = app.dataframe[-1].value.set_index("Kernel")

    assert list(table.index) == [kernel.name for kernel in kernels(MATMUL, "numba_cuda")]
    assert (
        table.loc["numba-cuda-naive", "Registers"]
        == recorded("matmul", "numba-cuda-naive", "fp32", "8.0").registers_per_thread
    )
    assert set(table["Spills"].dropna()) == {0}
    assert "Share" not in table
    assert "recorded with numba-cuda" in texts(app.caption)


ADDING = {"op": "vector_add", "impl": "numba-cuda-naive", "small": "128", "block": "128"}
RUN = "Run numba-cuda-naive"


@pytest.fixture
def asked(monkeypatch):
    """Answer for the interpreter with what a kernel of two warps does, and return what it was asked."""
    requests = []

    def answer(request):
        requests.append(request)
        return block_run(pitch=8)

    monkeypatch.setattr(interpreter, "interpret", answer)
    interpreter.RUNS.forget()
    return requests


def clicked(page, **query):
    """Open the page by a link, and press the button that runs the kernel, where it can be run."""
    app = page("kernels", **query, tab="interpreter")
    for button in app.button:
        if button.label == RUN:
            button.click().run()
    return app


def test_the_page_opened_by_its_name_alone_runs_its_first_kernel_once_for_all_and_without_a_click(
    page, asked, monkeypatch
):
    monkeypatch.setattr(interpreter, "kept_block", lambda _: block_run(pitch=8) if asked else None)
    for visitor in ("ada", "bob"):
        app = page("kernels", owner=visitor, tab="interpreter").run()

        assert [(one.operation, one.dtype, one.block) for one in asked] == [("matmul", "fp32", (0, 0, 0))]
        assert "No race and no error." in texts(app.markdown)
        assert RUN not in [button.label for button in app.button]


@pytest.mark.parametrize("tab", ["launch", "ladder", "code"])
def test_no_other_view_runs_a_kernel(page, asked, tab):
    app = page("kernels", tab=tab)

    assert asked == []
    assert RUN not in [button.label for button in app.button]


def test_what_somebody_just_ran_is_there_for_the_next_who_comes_by_the_link(page, asked, monkeypatch):
    monkeypatch.setattr(shared, "LOOK_S", 1000.0)  # one look for both
    kept = []
    monkeypatch.setattr(interpreter, "kept_block", lambda _: kept[0] if kept else None)
    page("kernels", **ADDING)
    kept.append(block_run(pitch=8))

    assert "No race and no error." in texts(page("kernels", **ADDING).markdown)
    assert asked == []


@pytest.mark.parametrize(
    ("query", "operation", "shape"),
    [
        (ADDING, "vector_add", Shape.of(n=128)),
        ({"op": "vector_add", "impl": "numba-cuda-naive"}, "vector_add", Shape.of(n=256)),
        ({"impl": "numba-cuda-naive"}, "matmul", None),
        ({"shape": "64"}, "matmul", None),
        ({"interpret": "yes"}, "matmul", None),
    ],
)
def test_link_alone_does_not_run_the_interpreter_and_a_click_does(page, asked, query, operation, shape):
    app = page("kernels", **query, tab="interpreter")
    assert asked == []
    assert "Not run yet" in texts(app.caption)
    assert not app.warning

    next(button for button in app.button if button.label == RUN).click().run()
    (request,) = asked
    assert (request.operation, request.dtype, request.block) == (operation, "fp32", (0, 0, 0))
    assert shape in (None, request.shape)
    assert "No race and no error." in texts(app.markdown)


def test_block_is_told_with_its_result_and_what_a_step_costs(page, asked):
    app = clicked(page, **ADDING)
    told = texts(app.markdown)

    assert not app.exception
    assert "**Correct**: relative error" in told
    assert "against the float64 reference (tolerance" in told
    assert "No race and no error." in told
    assert "take 8 wavefronts; without bank conflicts, 4." in told
    assert "#### Warp 0 reads 32 elements of A in 4 sectors of 32 bytes: 128 of 128 bytes moved are useful" in told
    table = next(one.value for one in app.dataframe if "Effect" in one.value)
    assert list(table["Effect"])[:3] == [
        "reads A, 4 sectors",
        "writes shared, 2 wavefronts",
        "barrier: 1 of 2 warps are there",
    ]
    assert list(table["Step"]) == [1, 2, 3, 7, 8, 9]
    assert "A, 128" in str([chart.proto.spec for chart in app.get("vega_lite_chart")])


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ("2", "lanes 0, 16 want different words of bank 0"),
        ("3", "Warp 0 waits at the barrier: 1 of 2 warps have arrived, warp 1 has not."),
    ],
)
def test_link_leads_to_a_step(page, asked, step, said):
    assert said in texts(clicked(page, **ADDING, step=step).markdown)


def test_buttons_lead_to_what_is_worth_a_look(page, asked):
    app = clicked(page, **ADDING, warp="1")
    next(one for one in app.button if one.label == "Worst bank conflict").click().run()

    assert only(app.query_params["step"]) == "2"
    assert "Warp 1 writes 32 words of shared memory in 2 wavefronts" in texts(app.markdown)
    next(one for one in app.button if one.label == "Next").click().run()
    assert "Warp 1 is the last to arrive at the barrier" in texts(app.markdown)


def test_step_that_another_choice_does_not_have_gives_way_without_a_word(page, asked, monkeypatch):
    app = clicked(page, **ADDING, step="6")
    assert "Warp 0 writes 32 elements of out" in texts(app.markdown)

    shorter = replace(block_run(pitch=8), steps=block_run(pitch=8).steps[:7])
    monkeypatch.setattr(interpreter, "interpret", lambda _: shorter)
    app.text_input(key="kernels.small").set_value("256").run()

    assert not app.error
    assert "Warp 0 reads 32 elements of A" in texts(app.markdown)
    assert "The first 7 of the block's 12 steps." in texts(app.caption)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"small": "0"}, "'0'"),
        ({"small": "10000000"}, "arrays of 120,000,000 bytes are more than the interpreter's limit of 4,194,304"),
        ({"at": "9,9,9"}, "at '9,9,9'"),
        ({"warp": "77"}, "warp '77'"),
        ({"step": "many"}, "step 'many'"),
        ({"step": "0"}, "step '0': expected whole numbers from 1 to 6"),
    ],
)
def test_bad_value_of_the_interpreter_is_named_with_what_is_accepted(page, monkeypatch, query, said):
    monkeypatch.setattr(interpreter, "kept_block", lambda _: block_run(pitch=8))
    app = page("kernels", **ADDING | query)

    assert not app.exception
    assert said in texts(app.error).replace("\\", "")


def test_what_is_too_large_to_be_run_is_refused_with_the_estimate(page, asked, monkeypatch):
    def refuse(_):
        raise TooSlow("30,000,000 thread instructions (4 blocks like the first) exceed the limit of 20,000,000")

    monkeypatch.setattr(interpreter, "interpret", refuse)
    app = clicked(page, **ADDING)

    assert "Not run: 30,000,000 thread instructions" in texts(app.warning).replace("\\", "")


def test_kernel_that_goes_wrong_is_shown_with_its_faults(page, asked, monkeypatch):
    wrong = interpreted(request(adding(stride=8)))
    monkeypatch.setattr(interpreter, "interpret", lambda _: wrong)
    app = clicked(page, **ADDING)

    assert "out of bounds" in texts(app.error)
    assert "**Incorrect**: relative error" in texts(app.markdown)


def test_step_that_touches_one_memory_twice_is_shown_with_both(page, asked, monkeypatch):
    run = block_run(pitch=8)
    halves = tuple(
        replace(access, lanes=access.lanes[part], addresses=access.addresses[part])
        for access in (run.steps[0].accesses[0], run.steps[1].accesses[0])
        for part in (slice(16), slice(16, 28))
    )
    twice = replace(run.steps[0], accesses=halves)
    monkeypatch.setattr(interpreter, "interpret", lambda _: replace(run, steps=(twice, *run.steps[1:])))
    app = clicked(page, **ADDING, step="1")
    specs = str([chart.proto.spec for chart in app.get("vega_lite_chart")])

    assert not app.exception
    for said in ("16 elements in 2 sectors", "12 elements in 2 sectors", "16 words in", "12 words in"):
        assert said in specs


@pytest.mark.parametrize(
    ("faults", "said"),
    [((), "No race and no error."), (("a race",), "1 race or error."), (("a race", "an error"), "2 races or errors.")],
)
def test_races_and_errors_are_counted(faults, said):
    assert said in interpreter.outcome(replace(block_run(), faults=faults))


OWN_GPU = {"op": "vector_add", "impl": "numba-cuda-naive", "block": "1024", "gpu": "own"}


@pytest.mark.parametrize(
    ("multiprocessors", "said"),
    [
        ("16", "16 multiprocessors run 16 blocks at once: 7 waves, 6 full and a last one of 2 blocks"),
        ("14", "14 multiprocessors run 14 blocks at once: 7 full waves, no idle tail"),
    ],
)
def test_a_gpu_of_ones_own_has_its_waves(page, monkeypatch, multiprocessors, said):
    monkeypatch.setattr(facts, "compiled_kernels", lambda targets: [small(target) for target in targets])
    app = page("kernels", **OWN_GPU, cc="7.5", sm=multiprocessors, shape="100000", tab="launch")

    assert not app.exception
    assert not app.error
    assert metrics(app)["Grid"] == "98"
    assert said in texts(app.markdown)
    assert f"GPU of {multiprocessors} multiprocessors, compute capability 7.5" in texts(app.caption)


def test_a_gpu_of_ones_own_is_compiled_for_its_compute_capability(page, compiler):
    for tab in ("interpreter", "launch", "code"):
        compiler.clear()
        app = page("kernels", **OWN_GPU, cc="8.6", shape="5466", tab=tab)

        assert not app.exception
        assert {target.compute_capability for target in compiler} == {"8.6"}
        assert metrics(app).get("Grid") == ("6" if tab == "launch" else None)


def test_the_notebooks_kernel_is_shown_as_wrong_beside_ours_and_compiled_but_never_run(page, compiler, store):
    kernel = {"op": "matvec", "impl": "numba-cuda-naive", "block": "1024", "shape": "notebook-matvec"}
    app = page("kernels", **kernel, gpu="own", tab="launch")

    assert not app.exception
    assert "As in the notebook (B4)" in texts(app.header)
    assert "Wrong, so it is shown and never run: `tmp = 0.` is a float64" in texts(app.warning)
    assert any("            tmp += a[i, j] * b[j]" in code.value for code in app.code)
    assert "notebook-matvec" in {target.implementation for target in compiler}
    table = app.dataframe[-1].value
    assert list(table["Kernel"]) == ["The notebook's", "numba-cuda-naive in fp32"]
    assert list(table["Blocks"]) == [98, 98]
    assert store.history() == ()


def small(target):
    return replace(compiled(target), registers_per_thread=16)


def test_an_operation_without_kernels_is_named_until_another_one_is_chosen(page):
    app = page("kernels", op="cnn_step")
    said = "op 'cnn_step': expected matmul, "
    assert said in texts(app.error)
    assert said in texts(app.run().error)  # as the page redraws itself once a kernel is compiled
    app.selectbox(key="kernels.op").set_value("softmax").run()
    assert said not in texts(app.error)
    app.selectbox(key="kernels.op").set_value("matmul").run()

    assert not app.error
