"""Functions of users from Python: measured beside ours, in this process or one of their own, and what is refused."""

import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import gpuexplore as gx
from gpuexplore import api
from gpuexplore.backends import load_backend
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput, Unsupported
from gpuexplore.core.model import Shape
from gpuexplore.features.own_functions import sources
from gpuexplore.features.own_functions.declared import operation_of_arrays, shape_of_arrays
from gpuexplore.features.own_functions.functions import _device_of, _dtype_of
from gpuexplore.features.own_functions.sources import add_functions
from gpuexplore.hardware.cpu import cpu_device
from gpuexplore.operations import operation_named
from gpuexplore.operations.own_code import build_of_function
from tests.made_ceiling import save_made_ceiling
from tests.unchanged import heavy

HERE = {"isolated": False, "budget": 0.01, "threads": 1}
ONES = [np.ones(4)]
ADDED = {"inputs": ONES * 2, "operation": "vector_add"}


@pytest.fixture(scope="module")
def measured_home(tmp_path_factory):
    """Return a home with ceilings of one thread and of all, which take seconds to measure."""
    home = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("GPUEXPLORE_HOME", str(home))
        for threads in {1, cpu_device().cores}:
            save_made_ceiling(threads=threads)
    return home


@pytest.fixture(autouse=True)
def nothing_known(monkeypatch, measured_home):
    monkeypatch.setenv("GPUEXPLORE_HOME", str(measured_home))
    monkeypatch.setenv(sources.VARIABLE, "{}")
    monkeypatch.setattr(sources, "FUNCTIONS_OF_USERS", {})


def numbers(*lengths):
    return np.random.default_rng(1).standard_normal(lengths, np.float32)


def doubled_sum(a, b):
    return (a + b) * np.float32(2)


def by_status(outcome):
    return {result.case.implementation: (result.status.value, result.reason) for result in outcome.results}


@pytest.mark.long
def test_a_function_is_measured_beside_ours_on_the_shape_of_its_inputs():
    outcome = gx.measure(np.matmul, [numbers(24, 16), numbers(16, 40)], operation="matmul", against=["numpy"], **HERE)

    assert by_status(outcome) == {"numpy": ("ok", None), "numpy:matmul": ("ok", None)}
    assert outcome.experiment.shapes == (Shape.of(m=24, k=16, n=40),)
    frame = outcome.to_pandas()
    assert list(frame.flop_count) == [2 * 24 * 16 * 40] * 2
    assert frame.relative_error.max() < frame.tolerance.min()


@pytest.mark.long
def test_anything_is_measured_with_a_reference_of_its_own():
    inputs = [numbers(300), numbers(300)]
    wrong = lambda a, b: a - b  # noqa: E731
    outcome = gx.measure(
        doubled_sum, inputs, reference=lambda a, b: 2 * (a + b), flops=600, bytes=3600, against=[wrong], **HERE
    )

    found = by_status(outcome)
    assert found["numpy:doubled_sum"] == ("ok", None)
    assert found["numpy:lambda"][0] == "incorrect"
    row = outcome.to_pandas().iloc[0]
    assert (row.flop_count, row.byte_count) == (600, 3600)
    assert row.operation.startswith("doubled_sum")
    assert row.flop_per_s == pytest.approx(600 / row.median_s)
    assert "numpy:doubled_sum" in outcome._repr_html_()


@pytest.mark.long
def test_a_right_function_with_a_reference_is_not_fragile_and_a_clamp_is():
    def stable(x):
        return np.tanh(x)

    def clamped(x):
        return np.clip(x, -20, 20)

    right = gx.measure(stable, [numbers(40, 30)], reference=np.tanh, **HERE)
    wrong = gx.measure(clamped, [numbers(40, 30)], reference=lambda x: x, **HERE)

    assert not {"fragile"} & {flag.name for flag in right.results[0].flags}
    (flag,) = [flag for flag in wrong.results[0].flags if flag.name == "fragile"]
    assert "inputs 1,000 times as large" in flag.evidence
    summary = wrong.analyze().summary
    assert "numpy:clamped in fp32 takes" in summary.headline
    assert "is fragile" in summary.details[0]


@pytest.mark.long
def test_a_reference_that_fails_on_other_inputs_blames_nobody():
    def taken(values, places):
        return values[places.astype(int)]

    places = np.arange(300, dtype=np.float32)[::-1].copy()
    outcome = gx.measure(taken, [numbers(300), places], reference=taken, **HERE)

    assert by_status(outcome) == {"numpy:taken": ("ok", None)}
    assert "fragile" not in {flag.name for flag in outcome.results[0].flags}


@pytest.mark.long
def test_what_fills_the_memory_or_crashes_ends_its_worker_and_the_other_is_measured():
    def filling(a):
        kept = []
        while True:
            kept.append(np.ones(10**6))

    def crash(a):
        import ctypes

        return ctypes.string_at(0)

    others = [crash, np.negative]
    outcome = gx.measure(
        filling, [numbers(300)], reference=np.negative, against=others, budget=0.01, memory_limit="1.5GB"
    )

    said = "its process took more than 1.50 GB of memory: --memory-limit sets another limit"
    assert by_status(outcome) == {
        "numpy:filling": ("out_of_memory", said),
        "numpy:crash": ("crashed", "the worker was ended by SIGSEGV"),
        "numpy:negative": ("ok", None),
    }
    assert sources.os.environ[sources.VARIABLE] == "{}"


@pytest.mark.long
def test_a_function_that_never_returns_ends_at_the_limit_and_the_other_is_measured():
    def endless(a):
        while True:
            pass

    outcome = gx.measure(
        endless, [numbers(300)], reference=np.negative, against=[np.negative], budget=0.01, time_limit="1.5s"
    )

    assert by_status(outcome)["numpy:negative"] == ("ok", None)
    status, reason = by_status(outcome)["numpy:endless"]
    assert status == "timeout"
    assert reason.startswith("no result within 1.")


@pytest.mark.long
def test_a_fragile_function_is_not_called_the_fastest():
    def softmax_without_maximum(x):
        with np.errstate(all="ignore"):
            weights = np.exp(x)
            return weights / weights.sum(axis=-1, keepdims=True)

    outcome = gx.measure(softmax_without_maximum, [numbers(64, 64)], operation="softmax", against=["numpy"], **HERE)
    summary = outcome.analyze().summary

    assert "softmax_without_maximum" not in summary.headline
    assert any("is fragile" in sentence and sentence.endswith("It is not ranked.") for sentence in summary.details)


@pytest.mark.long
def test_a_result_that_is_kept_from_an_earlier_call_is_named():
    kept = {}

    def cached(x):
        return kept.setdefault("result", x + 1)

    outcome = gx.measure(cached, [numbers(300)], reference=lambda x: x + 1, **HERE)

    assert by_status(outcome)["numpy:cached"][0] == "incorrect"
    assert "the result of an earlier call" in by_status(outcome)["numpy:cached"][1]


@pytest.mark.long
def test_a_sum_without_an_axis_is_measured_and_without_flops_has_no_rate_of_arithmetic():
    row = gx.measure(lambda x: np.asarray(x.sum()), [numbers(300)], reference=np.sum, **HERE).to_pandas().iloc[0]

    assert row.status == "ok"
    assert not row.mfu
    assert row.bytes_per_s > 0


@pytest.mark.long
def test_functions_of_one_name_are_all_measured(tmp_path):
    (tmp_path / "mine.py").write_text("import numpy\n\ndef add(a, b):\n    return a + b\n")

    def add(a, b):
        return a - b

    every = [add, f"{tmp_path / 'mine.py'}:add", lambda a, b: a + b, lambda a, b: a - b]
    outcome = gx.run("vector_add", sizes=[300], dtypes="fp32", implementations=every, devices="cpu", budget=0.01)

    assert {name: status for name, (status, _) in by_status(outcome).items()} == {
        "numpy:add": "incorrect",
        "numpy:add-2": "ok",
        "numpy:lambda": "ok",
        "numpy:lambda-2": "incorrect",
    }


@pytest.mark.long
def test_an_operation_of_ones_own_is_swept_and_checked():
    @gx.operation("m, n", inputs=lambda m, n: [(m, n)], flops=lambda m, n: m * n)
    def rectified(x):
        return np.maximum(x, 0)

    def right(x):
        return np.maximum(x, 0)

    def negated(x):
        return np.minimum(x, 0)

    outcome = gx.run(
        rectified, sizes=[8, 16], dtypes="fp32", implementations=[right, negated], devices="cpu", budget=0.01
    )

    assert [result.status.value for result in outcome.results] == ["ok", "incorrect", "ok", "incorrect"]
    assert "rectified" in str(outcome) or "right" in str(outcome)


def test_what_cannot_be_sent_is_told_with_what_can_be_done(tmp_path):
    with (tmp_path / "open").open("w") as file:

        def holding(a, b):
            file.write("")
            return a + b

        with pytest.raises(
            InvalidInput, match=r"numpy:holding cannot be sent .*: isolated=False measures it in this one"
        ):
            gx.measure(holding, [numbers(8)] * 2, operation="vector_add")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "inputs: give them"),
        ({"inputs": [[1.0, 2.0]], "operation": "copy"}, "inputs 'list': expected numeric arrays of NumPy, torch"),
        ({"inputs": [np.ones(0)], "reference": np.sin}, "inputs 'ndarray': expected numeric arrays"),
        ({"inputs": [np.array(1.0)], "reference": np.sin}, "inputs '1 of them'"),
        ({"inputs": ONES, "reference": np.sin, "flops": -1}, "flops of a call '-1': expected whole numbers"),
        ({"inputs": ONES, "reference": np.sin, "bytes": 2.5}, "bytes of a call '2.5'"),
        ({"inputs": ONES, "reference": lambda x: None}, "what the reference of doubled_sum returns 'object'"),
        ({"inputs": ONES, "reference": lambda x: x / "a"}, "the reference of doubled_sum fails on float64"),
        (
            {"inputs": ONES, "reference": np.sin, "against": ["torch"]},
            "'torch': expected functions; names need operation=",
        ),
        ({"inputs": ONES, "operation": "copy", "dtypes": "fp32"}, "dtypes: the inputs already determine it"),
        ({"operation": "copy", "against": "numpy"}, "against 'numpy': expected a list"),
        ({"operation": 3}, "operation '3': expected a name"),
        ({"inputs": [np.ones(4, np.float32)]}, "reference: give them, .* a wrong kernel is never timed"),
        (
            {"inputs": [np.ones(4, np.int64)], "operation": "copy"},
            "dtype of the inputs 'int64': expected arrays of one",
        ),
        ({"inputs": [np.ones(4), np.ones(4, np.float32)], "operation": "vector_add"}, "'float32, float64'"),
        ({"inputs": [np.ones((4, 3)), np.ones((4, 5))], "operation": "matmul"}, "shapes of the inputs of matmul"),
        ({"inputs": ONES * 2, "operation": "addition"}, "operation 'addition': expected"),
        ({**ADDED, "flops": 4}, "flops: vector_add defines its own"),
        ({**ADDED, "against": ["cublas"]}, "'cublas': expected numpy"),
        ({**ADDED, "against": [3]}, "implementation '3': expected names"),
        *(
            ({**ADDED, "isolated": True, "time_limit": time}, f"time limit '{time}': expected times like 500ms")
            for time in ("soon", "4", "0s")
        ),
        *(
            ({**ADDED, "isolated": True, "memory_limit": size}, f"memory limit '{size}': expected sizes")
            for size in ("lots", "4", "0GB")
        ),
        ({**ADDED, "memory_limit": "1GB"}, "memory_limit: it needs a separate process; leave out isolated=False"),
        ({**ADDED, "time_limit": "1s"}, "time_limit: it needs a separate process; leave out isolated=False"),
    ],
)
def test_what_does_not_fit_is_named_with_what_is_accepted(given, said):
    with pytest.raises(InvalidInput, match=said):
        gx.measure(doubled_sum, **{"isolated": False, **given})


@pytest.mark.parametrize(
    ("axes", "inputs", "about", "said"),
    [
        ("m, m", lambda m: [(m,)], {}, "axes 'm, m'"),
        ("m", lambda m: [(m,)], {"size": [3]}, "setting of an operation 'size': expected sizes, terms, title"),
        ("m", lambda n: [(n,)], {}, "its shapes cannot be computed at m=3"),
        ("m", lambda m: [(m,)], {"output": lambda m: (m, 1)}, r"output of same at m=3 .*\(3,\): give output="),
        ("m", lambda m: [(m,)], {"flops": lambda m: 1.5}, "FLOPs of same at m=3 '1.5'"),
    ],
)
def test_an_operation_that_does_not_fit_together_is_refused_as_it_is_declared(axes, inputs, about, said):
    def same(x):
        return x

    with pytest.raises(InvalidInput, match=said):
        gx.operation(axes, inputs, **about)(same)


def test_what_is_declared_again_is_another_operation_and_takes_no_name_of_ours():
    def twice(x):
        return 2 * x

    def matmul(x):
        return x

    first, second = (gx.operation("m", lambda m: [(m,)])(twice) for _ in range(2))

    assert second.name == f"{first.name}_2"
    assert operation_named(first.name) is first
    with pytest.raises(InvalidInput, match="name of an operation 'matmul'"):
        gx.operation("m", lambda m: [(m,)])(matmul)


def test_an_operation_has_the_sweep_it_was_declared_with_and_no_prediction():
    def shifted(x):
        return x + 1

    declared = gx.operation("m", lambda m: [(m,)], sizes=[8, 16])(shifted)
    experiment, _ = api.experiment_asked(declared, {"implementations": [shifted], "devices": "cpu", "dtypes": "fp32"})

    assert [tuple(shape) for shape in experiment.shapes] == [(8,), (16,)]
    with pytest.raises(InvalidInput, match=f"{declared.name} is declared by a user: no vendor library"):
        gx.predict(declared.name, "H100 SXM5 80GB", sizes=16)


def test_other_inputs_hold_the_same_numbers_in_another_order():
    given = [np.arange(1.0, 7.0).reshape(2, 3)]
    made = operation_of_arrays("logs", given, np.log)
    order = np.random.default_rng(0).standard_normal((2, 3))

    (other,) = made.prepared((order,))

    assert sorted(other.ravel()) == sorted(given[0].ravel())
    assert (other != given[0]).any()
    assert made.halved(Shape.of(a0=2, a1=3)) == Shape.of(a0=2, a1=3)


def test_the_shape_of_an_operation_is_found_by_those_of_its_inputs():
    attention = operation_named("attention")
    shape = attention.shape_of_size(16)

    assert shape_of_arrays(operation_named("layer_norm"), [(4, 7), (7,), (7,)]) == Shape.of(m=4, n=7)
    assert shape_of_arrays(attention, attention.inputs(shape)) == shape


def test_functions_get_names_of_their_own_and_tell_whose_arrays_they_take():
    torch = pytest.importorskip("torch")
    given = {"arrays": [np.ones(2)]}
    by_torch, through_numpy = lambda x: torch.relu(x) + 1, lambda x: torch.from_numpy(x).numpy()

    for functions, others, names in (
        ([lambda x: x + 1, lambda x: np.add(x, 1)], {}, ["numpy:lambda", "numpy:lambda-2"]),
        ([torch.softmax, np.matmul, by_torch], {}, ["torch:softmax", "numpy:matmul", "torch:lambda"]),
        ([lambda x: x], {"arrays": [torch.ones(2)]}, ["torch:lambda"]),
        ([lambda x: x], {"library": "jax"}, ["jax:lambda"]),
        ([torch.softmax, by_torch, lambda x: x], given, ["torch:softmax", "torch:lambda", "numpy:lambda"]),
        ([through_numpy, lambda x: np.exp(torch.e) * x], given, ["numpy:lambda", "numpy:lambda-2"]),
    ):
        assert list(add_functions(functions, **others)) == names
    assert (_dtype_of([torch.ones(2, dtype=torch.bfloat16)]), _device_of([torch.ones(2)])) == ("bf16", "cpu")


@pytest.mark.parametrize(
    ("hip", "called", "device"),
    [(None, "cuda:1", "cuda:1"), ("6.4", "cuda:1", "rocm:1"), (None, "mps:0", "mps:0"), (None, "xpu:2", "xpu:2")],
)
def test_tensors_are_on_the_device_that_their_torch_means(monkeypatch, hip, called, device):
    torch = pytest.importorskip("torch")
    monkeypatch.setattr(torch.version, "hip", hip)
    tensor = type("Tensor", (), {"__module__": "torch", "device": torch.device(called)})()

    assert _device_of([tensor]) == device


@pytest.mark.long
@pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=heavy("gpuexplore.operations.*", "gpuexplore.backends.*"))]
)
def test_tensors_and_modules_are_measured(compiled):
    torch = pytest.importorskip("torch")
    layer = torch.nn.Linear(16, 16)
    weight = layer.weight.detach().double().numpy()
    bias = layer.bias.detach().double().numpy()
    function = torch.compile(layer, backend="eager") if compiled else layer

    outcome = gx.measure(function, [torch.randn(8, 16)], reference=lambda x: x @ weight.T + bias, flops=4096, **HERE)

    assert [status for status, _ in by_status(outcome).values()] == ["ok"]
