"""Whatever is typed on whatever route: an experiment, or every problem named at once with what is accepted."""

import argparse
import re
import shlex
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpuexplore.backends import load_backend
from gpuexplore.cli import _parser
from gpuexplore.cli.experiment_arguments import add_experiment_arguments, request_from
from gpuexplore.core.dtypes import DTYPES
from gpuexplore.core.errors import InvalidInput
from gpuexplore.core.model import (
    ALIGNMENTS,
    CACHE_MODES,
    DATA_MODES,
    LAYOUTS,
    MOST_PROCESSES,
    Device,
    Experiment,
    Options,
    Shape,
)
from gpuexplore.core.naming import default_title
from gpuexplore.core.serialization import decode, encode
from gpuexplore.hardware.discovery import first_dtypes
from gpuexplore.operations import OPERATIONS
from gpuexplore.request import (
    SHORT_NAMES,
    Request,
    as_command,
    as_python,
    fields_in,
    from_experiment,
    problems_by_field,
    resolve,
    shapes_of,
    to_query,
    with_defaults,
)
from gpuexplore.shapes import MOST_SHAPES, parse_shape, parse_sizes, split
from tests.operations.shapes import awkward_shapes

HERE = ("cpu", "cuda:0", "cuda:1")
NOT_WHOLE = ["1_", "_1", "1__0", "_", "__", "0", "-1", "+5", "1.5", "1.5e3", "0x10", "9" * 20]
NOT_WHOLE += ["abc", "True", "1 2", "٣", "²", "\uff11\uff12"]
NO_RANGE = ["1:2", "1:2:3:4", "1:8:2", "1:8:*2", "1:8:x", "1:8:", "1:8:x0", "1:8:x1", "1:8:+0", "1:8:x-2", "1:8:x1.5"]
NO_RANGE += ["8:1:x2", "0:8:x2", ":8:x2", "1::x2", "a:b:xc", "::"]


def resolved(**fields):
    return resolve(Request(**fields), HERE)


def problems(**fields):
    return problems_by_field(with_defaults(Request(**fields), HERE), HERE)


@pytest.mark.parametrize(
    ("text", "sizes"),
    [
        ("64", (64,)),
        (" 64 , 128,", (64, 128)),
        ("128,64,128", (64, 128)),
        ("1_000", (1000,)),
        ("256:8192:x2", (256, 512, 1024, 2048, 4096, 8192)),
        ("100:500:+100", (100, 200, 300, 400, 500)),
        ("100:550:+100", (100, 200, 300, 400, 500)),
        ("100:999:x3", (100, 300, 900)),
        ("7:7:x2", (7,)),
        ("7:7:+1", (7,)),
        (" 1 : 4 : x2 , 3", (1, 2, 3, 4)),
        ("1:64:+1", tuple(range(1, 65))),
    ],
)
def test_sizes_are_a_list_or_a_range(text, sizes):
    assert parse_sizes(text) == sizes


@pytest.mark.parametrize("text", [text for text in NOT_WHOLE if " " not in text])
def test_size_that_is_no_whole_number_from_1_is_named(text):
    with pytest.raises(InvalidInput, match="expected") as error:
        parse_sizes(f"64,{text}")
    assert f"{text[:60]!r}: expected whole numbers from 1" in str(error.value)


@pytest.mark.parametrize("text", NO_RANGE)
def test_bad_range_is_refused_with_what_is_accepted(text):
    with pytest.raises(InvalidInput, match=r"range '.*': expected (start:stop:x2|whole numbers)"):
        parse_sizes(text)


@pytest.mark.parametrize("text", ["1:65:+1", "1:1000000000:+1", ",".join(map(str, range(1, 70)))])
def test_more_shapes_than_a_chart_can_show_are_refused(text):
    with pytest.raises(InvalidInput, match=f"at most {MOST_SHAPES} of them"):
        parse_sizes(text)


@pytest.mark.parametrize("text", ["", " ", ",", " , ,"])
def test_no_size_asks_for_one(text):
    with pytest.raises(InvalidInput, match="no size: give at least one, like 64,128,256"):
        parse_sizes(text)


@pytest.mark.parametrize(
    "text",
    [
        "256 512 1024",
        "256,512,1024",
        "256;512;1024",
        "256, 512; 1k",
        "[256, 512, 1024]",
        "256:1K:x2",
        "256 : 1024 : x2",
    ],
)
def test_sizes_are_separated_as_people_do_and_k_is_1024(text):
    assert parse_sizes(text) == (256, 512, 1024)
    assert [shape["m"] for shape in resolved(sizes=text).shapes] == [256, 512, 1024]


def test_axes_take_k_and_m_too():
    assert resolved(shapes="m=4k,k=1Ki,n=128K").shapes == (Shape.of(m=4096, k=1024, n=131072),)
    assert resolved(operation="vector_add", sizes="1M 16m").shapes == (Shape.of(n=2**20), Shape.of(n=2**24))


REAL = {
    "matmul": "m=73728,k=8192,n=28672;m=8192,k=4096,n=262144",
    "linear": "b=1048576,d=5120,k=152064",
    "batched_matmul": "outer=64,inner=512,m=128,k=128,n=4096,right=32768;outer=1,inner=1024,m=32k,k=64,n=32k,right=1k",
    "attention": "b=2048,h=512,s=8k,d=128",
    "conv2d": "b=1024,c=3,h=224,w=224,o=64,r=7",
    "multiply": "m=131072,n=28672",
}


@pytest.mark.parametrize(("operation", "shapes"), REAL.items())
def test_shapes_of_large_models_are_within_the_limits(operation, shapes):
    assert resolved(operation=operation, shapes=shapes).shapes


@pytest.mark.parametrize(
    ("operation", "shapes"),
    [
        ("attention", "b=1,h=64,s=1M,d=128"),
        ("optimizer_step", "n=70000000000,arrays=4"),
        ("matmul", "m=2097152,k=8k,n=256k"),
    ],
)
def test_shapes_too_large_to_be_measured_are_predicted(operation, shapes):
    with pytest.raises(InvalidInput, match=f"of {operation} '"):
        resolved(operation=operation, shapes=shapes)
    assert shapes_of(Request(operation, shapes=shapes), OPERATIONS[operation], measured=False)


def test_limit_is_that_of_the_operation():
    assert resolved(operation="vector_add", sizes="1000000000").shapes == (Shape.of(n=10**9),)
    assert "1 to 2147483648" in problems(operation="vector_add", sizes="9000000000")["sizes"]


@pytest.mark.parametrize(
    ("text", "shapes"),
    [
        ("m=1,k=2,n=3", [(1, 2, 3)]),
        (" n=3 , m = 1,k=2 ", [(1, 2, 3)]),
        ("m=1,k=2,n=3;m=4,k=5,n=6", [(1, 2, 3), (4, 5, 6)]),
        ("m=1,k=2,n=3;m=1,k=2,n=3;", [(1, 2, 3)]),
    ],
)
def test_shapes_name_every_axis_in_any_order(text, shapes):
    found = resolved(shapes=text).shapes

    assert [tuple(one) for one in found] == shapes
    assert all([axis for axis, _ in one.axes] == ["m", "k", "n"] for one in found)


@pytest.mark.parametrize("text", ["m=1", "m=1,k=2", "m=1,k=2,n=3,q=4", "m=1,m=2,k=3,n=4", "1,2,3", "m:1,k:2,n:3", "m="])
def test_shape_with_other_axes_is_refused_with_an_example(text):
    with pytest.raises(InvalidInput, match=r"expected (lengths like m=128,k=128,n=128|whole numbers)"):
        resolved(shapes=text)


@pytest.mark.parametrize("text", NOT_WHOLE)
def test_axis_that_is_no_whole_number_from_1_is_named(text):
    with pytest.raises(InvalidInput, match=re.escape(f"axis k {text!r}: expected whole numbers from 1")):
        resolved(shapes=f"m=1,k={text},n=1")


MANY = ";".join(f"m={size},k=8,n=8" for size in range(1, 102))


def test_shapes_replace_the_sizes():
    assert resolved(sizes="64", shapes="m=1,k=2,n=3").shapes == (Shape.of(m=1, k=2, n=3),)


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("operation", "fft", "operation 'fft': expected matmul, batched_matmul, linear, matvec"),
        ("operation", "", "operation '': expected matmul"),
        ("sizes", "1000000000", "m of matmul '1000000000': expected 1 to 1048576"),
        ("sizes", "1048577", "m of matmul '1048577': expected 1 to 1048576"),
        ("shapes", "m=1,k=1000000000,n=1", "k of matmul '1000000000': expected 1 to 1048576"),
        ("shapes", " ", "no shape of matmul: give at least one: lengths like m=128,k=128,n=128"),
        ("shapes", " ; ;", "no shape of matmul: give at least one: lengths like m=128,k=128,n=128"),
        ("shapes", ",", "shape of matmul ',': expected"),
        ("shapes", MANY, "shapes '101 of them': expected at most 100"),
        ("shapes", "m=64:256,k=32,n=1", "range '64:256': expected start:stop:x2"),
        ("shapes", "m=256:64:x2,k=32,n=1", "range '256:64:x2'"),
        ("shapes", "m=1:64:+1,k=32,n=1:64:+1", "shapes '4096 of them': expected at most 100"),
        ("shapes", "m=1:60:+1,k=32,n=1;m=1:60:+1,k=32,n=2", "shapes '120 of them': expected at most 100"),
        ("shapes", "m=64:128:x2,k=32", "shape of matmul 'm=64,k=32'"),
        ("shapes", "m=64:128:x2,q=32,n=1", "shape of matmul"),
        ("layout", "TT", "layout of matmul 'TT': expected NN, NT, TN"),
        ("layout", "", "layout of matmul '': expected NN, NT, TN"),
        ("align", "64", "align '64': expected library, pages"),
        ("dtypes", "fp8", "dtype 'fp8': expected fp64, fp32, tf32, bf16, fp16"),
        ("dtypes", "FP31", "dtype 'FP31': expected"),
        ("dtypes", "", "no dtype: give at least one of fp64, fp32, tf32, bf16, fp16"),
        ("dtypes", " , ", "no dtype: give at least one of"),
        ("implementations", "jax", "implementation of matmul 'jax': expected numpy, numba-cpu"),
        ("implementations", ",", "no implementation: give at least one of numpy"),
        ("devices", "cuda:7", "device 'cuda:7': expected cpu, cuda:0, cuda:1"),
        ("devices", "gpu", "device 'gpu': expected cpu, cuda:0, cuda:1"),
        ("devices", ",", "no device: give at least one of cpu"),
        ("cache", "lukewarm", "cache 'lukewarm': expected cold, warm"),
        ("data", "random", "data 'random': expected normal, zeros, ones"),
        ("data", "", "data '': expected normal, zeros, ones"),
        ("threads", "0", "threads '0': expected whole numbers from 1"),
        ("threads", "1.5", "threads '1.5': expected whole numbers from 1"),
        ("threads", "many", "threads 'many': expected whole numbers from 1"),
        ("threads", "٣", "threads '٣': expected whole numbers from 1"),
        ("threads", "1000000000", "threads '1000000000': expected 1 to 1024"),
        ("budget", "0", "budget '0.0': expected above 0, up to 60 seconds"),
        ("budget", "-1", "budget '-1.0': expected above 0, up to 60 seconds"),
        ("budget", "61", "budget '61.0': expected above 0, up to 60 seconds"),
        ("budget", "1000000000", "budget '1000000000.0': expected"),
        ("budget", "nan", "budget 'nan': expected a number of seconds above 0"),
        ("budget", "inf", "budget 'inf': expected a number of seconds above 0"),
        ("budget", "soon", "budget 'soon': expected a number of seconds above 0, up to 60"),
    ],
)
def test_bad_value_is_named_with_the_accepted_ones(field, value, text):
    found = problems(**{field: value})

    assert list(found) == [field]
    assert found[field].startswith(text)
    with pytest.raises(InvalidInput, match=re.escape(text)):
        resolved(**{field: value})


@pytest.mark.parametrize("field", ["threads", "sizes"])
def test_very_long_value_is_cut_in_the_message(field):
    assert len(problems(**{field: "7" * 10_000})[field]) < 200


def test_every_problem_is_named_at_once_and_each_once():
    fields = {"sizes": "0", "dtypes": "fp8", "implementations": "jax", "devices": "tpu", "cache": "x", "data": "y"}
    fields |= {"threads": "-1", "budget": "0"}

    found = problems(**fields)
    with pytest.raises(InvalidInput) as error:
        resolved(**fields)

    assert set(found) == set(fields)
    assert str(error.value).splitlines() == list(found.values())


def test_shapes_that_are_wrong_are_a_problem_of_the_shapes_alone():
    assert set(problems(sizes="0", shapes="m=1")) == {"shapes"}


def test_nothing_is_wrong_with_the_defaults():
    for name in OPERATIONS:
        assert problems(operation=name) == {}
        experiment = resolved(operation=name)
        assert experiment.devices == HERE
        assert experiment.dtypes == ("fp32", "bf16", "fp16")
        assert experiment.options == Options()
        assert len(experiment.shapes) == len(OPERATIONS[name].default_sizes)


@pytest.mark.parametrize(
    ("devices", "implementations"),
    [
        (("cpu",), ("numpy", "numba-cpu", "torch")),
        (("cuda:0",), ("numba-cuda", "torch")),
        (("lab1/cuda:0",), ("numba-cuda", "torch")),
        (HERE, ("numpy", "numba-cpu", "numba-cuda", "torch")),
    ],
)
def test_default_implementations_are_those_that_fit_a_device(devices, implementations):
    assert resolve(Request(), devices).implementations == implementations


def test_words_are_split_at_commas_and_each_is_kept_once():
    assert split(" a, b ,,a,") == ("a", "b")
    assert resolved(dtypes="fp32, bf16,fp32").dtypes == ("fp32", "bf16")


def test_a_library_that_is_not_installed_is_no_default(monkeypatch):
    monkeypatch.setattr(load_backend("torch"), "is_available", lambda: False)

    assert with_defaults(Request("matmul"), ["cpu"]).implementations == "numpy,numba-cpu"
    assert with_defaults(Request("matmul", implementations="torch"), ["cpu"]).implementations == "torch"


def test_defaults_of_an_unknown_operation_are_left_alone():
    assert with_defaults(Request("fft"), HERE) == Request("fft", devices="cpu,cuda:0,cuda:1")


@st.composite
def experiments(draw):
    operation = draw(st.sampled_from(list(OPERATIONS.values())))
    lengths = st.tuples(*(st.integers(1, operation.limits[axis]) for axis in operation.axes))
    squares = st.integers(1, min(operation.limits.values())).map(operation.shape_of_size)
    others = lengths.map(lambda one: with_a_meaning(operation, Shape(tuple(zip(operation.axes, one, strict=True)))))
    shapes = draw(st.one_of(some(squares, 5), some(others, 5)))
    return Experiment(
        operation.name,
        tuple(shapes),
        tuple(draw(some(st.sampled_from(list(DTYPES)), 5))),
        tuple(draw(some(st.sampled_from([implementation.name for implementation in operation.implementations]), 4))),
        tuple(draw(some(st.sampled_from(HERE), 3))),
        Options(
            draw(st.sampled_from((None, *CACHE_MODES))),
            draw(st.sampled_from(DATA_MODES)),
            draw(st.none() | st.integers(1, 1024)),
            draw(st.sampled_from((0.2, 0.01, 1.5, 60.0, 1e-5)) | st.floats(1e-6, 60.0)),
            repeat=draw(st.integers(1, MOST_PROCESSES)),
        ),
    )


def with_a_meaning(operation, shape):
    return awkward_shapes(operation)[-1] if operation.problem(shape) else shape


def some(values, most):
    return st.lists(values, min_size=1, max_size=most, unique=True)


@given(experiments())
def test_experiment_survives_its_request_its_url_its_command_and_its_lines_of_python(experiment):
    request = from_experiment(experiment)
    program, *words = shlex.split(as_command(request))
    arguments = _parser("run").parse_args(words)
    asked = []
    lines = as_python(request).replace("import gpuexplore as gx", "")
    exec(compile(lines, "a notebook", "exec"), {"gx": Recorder(asked)})
    ((operation, fields),) = asked

    assert resolve(request, HERE) == experiment
    assert Request(**fields_in(to_query(request))) == request
    assert set(to_query(request)) <= set(SHORT_NAMES.values())
    assert program == "gpuexplore"
    assert resolve(request_from(arguments, arguments.operation), HERE) == experiment
    assert resolve(Request(operation, **fields), HERE) == experiment


class Recorder:
    """Stands in for the package: writes down what `run` is called with."""

    def __init__(self, asked):
        self.asked = asked

    def run(self, operation, **fields):
        self.asked.append((operation, fields))
        return self

    def to_pandas(self):
        return None


@given(st.text(max_size=30), st.sampled_from(sorted(SHORT_NAMES)))
def test_any_text_in_any_field_is_an_experiment_or_a_reason(text, field):
    request = Request(**fields_in({SHORT_NAMES[field]: text}))
    problems = problems_by_field(with_defaults(request, HERE), HERE)

    if problems:
        assert all(problems.values())
        with pytest.raises(InvalidInput):
            resolve(request, HERE)
    else:
        assert resolve(request, HERE).cases()


def test_url_of_the_defaults_is_empty_and_parameters_of_others_are_left_alone():
    assert to_query(Request()) == {}
    assert Request(**fields_in({"run": "abc", "page": "2"})) == Request()


def test_long_names_are_read_as_short_ones_which_win_over_them():
    assert Request(**fields_in({"sizes": "32", "operation": "copy"})) == Request(operation="copy", sizes="32")
    assert fields_in({"size": "64", "sizes": "32"}) == fields_in({"sizes": "32", "size": "64"}) == {"sizes": "64"}


def test_every_field_has_its_short_name():
    assert list(SHORT_NAMES) == list(Request.__dataclass_fields__)
    assert len(set(SHORT_NAMES.values())) == len(SHORT_NAMES)


def test_command_and_python_name_what_is_swept_and_what_differs():
    request = Request(sizes="64,128", implementations="numpy", devices="cpu", threads="2")

    assert as_command(request) == (
        "gpuexplore run matmul --size 64,128 --dtype fp32,bf16,fp16 --impl numpy --device cpu --threads 2"
    )
    assert as_python(request).splitlines()[2] == (
        "run = gx.run('matmul', sizes='64,128', dtypes='fp32,bf16,fp16', implementations='numpy', devices='cpu', "
        "threads='2')"
    )


@pytest.mark.parametrize(("cache", "data"), list(product(("", *CACHE_MODES), DATA_MODES)))
def test_conditions_become_options(cache, data):
    options = resolved(cache=cache, data=data, threads=" 3 ", budget=" 1.5 ").options

    assert options == Options(cache or None, data, 3, 1.5)


def test_the_name_of_a_preset_is_a_shape():
    experiment = resolve(Request(operation="linear", shapes="notebook-linear-cpu;b=2,d=3,k=4"), ["cpu"])

    assert experiment.shapes == (Shape.of(b=1024, d=256, k=64), Shape.of(b=2, d=3, k=4))


def test_an_unknown_preset_is_answered_with_the_known_ones():
    with pytest.raises(InvalidInput, match=r"notebook-linear-gpu.*notebook-linear, notebook-linear-cpu"):
        resolve(Request(operation="linear", shapes="notebook-linear-gpu"), ["cpu"])


def test_rungs_and_extras_run_by_name_and_never_by_default():
    rows = OPERATIONS["matmul"].implementations
    usual = {row.name for row in rows if not (row.rung or row.optional)}

    assert set(resolve(Request(), ["cpu", "cuda:0"]).implementations) <= usual
    named = resolve(Request(implementations="numba-cpu-naive"), ["cpu"])
    assert named.implementations == ("numba-cpu-naive",)


HOW_ARRAYS_LIE = [
    *(("layout", layout, "" if layout == "NN" else f"layout {layout}") for layout in LAYOUTS),
    *(("align", align, "" if align == "library" else "arrays on 2 MiB boundaries") for align in ALIGNMENTS),
]


@pytest.mark.parametrize(("name", "value", "title"), HOW_ARRAYS_LIE)
def test_how_arrays_lie_goes_all_the_way_and_back(name, value, title):
    experiment = resolve(Request(**{name: value}), ["cpu"])
    again = from_experiment(experiment)

    assert getattr(experiment.options, name) == getattr(again, name) == value
    assert resolve(Request(**fields_in(to_query(again))), ["cpu"]) == experiment
    assert (f"--{name} {value}" in as_command(again)) == bool(title)
    assert default_title(experiment).endswith(f"fp16{f', {title}' if title else ''}")
    assert decode(Options, encode(experiment.options)) == experiment.options


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        (Request(operation="softmax", layout="NT"), "layout of softmax 'NT': expected NN"),
        (Request(implementations="numba-cuda-naive", block="16"), "block '16': expected 16,16"),
        (Request(implementations="numba-cuda-naive", block="x"), "block 'x': expected whole numbers from 1"),
        (Request(implementations="numba-cuda-naive", block="16,-1"), "block '-1': expected whole numbers from 1"),
        (Request(implementations="torch", block="16,16"), "none of torch is a CUDA kernel of gpuexplore"),
    ],
)
def test_layout_or_block_that_what_is_asked_for_does_not_take_is_named(request_, said):
    with pytest.raises(InvalidInput) as caught:
        resolve(request_, ["cpu"])
    assert said in str(caught.value)


def test_block_survives_the_way_through_the_url_and_back():
    asked = Request(implementations="numba-cuda-naive", sizes="64", devices="cuda:0", block="32,8")
    experiment = resolve(Request(**fields_in(to_query(asked))), ["cuda:0"])

    assert experiment.options.block == (32, 8)
    assert from_experiment(experiment).block == "32,8"
    assert "--block 32,8" in as_command(asked)


@pytest.mark.parametrize(
    ("text", "shape"),
    [("64", Shape.of(m=64, k=64, n=64)), ("m=1,k=2,n=3", Shape.of(m=1, k=2, n=3)), ("notebook-1000", None)],
)
def test_one_field_takes_a_size_axes_or_a_preset(text, shape):
    assert parse_shape(text, OPERATIONS["matmul"]) == (shape or Shape.of(m=1000, k=1000, n=1000))


@pytest.mark.parametrize("text", ["0", "-5", "1.5", "many", "m=1", "99999999999999999999999", "1048577"])
def test_what_is_no_shape_is_named(text):
    with pytest.raises(InvalidInput, match=text):
        parse_shape(text, OPERATIONS["matmul"])


@pytest.mark.parametrize("name", OPERATIONS)
def test_the_shape_that_a_refusal_names_is_accepted(name):
    operation = OPERATIONS[name]
    with pytest.raises(InvalidInput) as refused:
        parse_shape("text", operation)
    (example,) = re.findall(r"expected lengths like (\S+?)(?:, |$)", str(refused.value))

    assert parse_shape(example, operation) == operation.shape_of_size(128)


def test_a_size_is_a_shape_of_equal_axes():
    experiment = resolve(Request(shapes="64; m=1,k=2,n=3; 0_128"), ["cpu"])

    assert experiment.shapes == (Shape.of(m=64, k=64, n=64), Shape.of(m=1, k=2, n=3), Shape.of(m=128, k=128, n=128))


@pytest.mark.parametrize("option", ["size", "shape", "impl", "dtype", "device"])
def test_a_selection_of_nothing_is_refused_with_what_is_accepted(option):
    parser = argparse.ArgumentParser()
    add_experiment_arguments(parser)
    with pytest.raises(InvalidInput, match="give at least one"):
        resolve(request_from(parser.parse_args([f"--{option}", ""]), "matmul"), HERE)


@pytest.mark.parametrize(
    ("native", "expected"),
    [
        (("fp64", "fp32"), "fp64,fp32,bf16"),
        (("fp64", "fp32", "bf16"), "fp64,fp32,bf16"),
        (("fp64", "fp32", "bf16", "fp16"), "fp32,bf16,fp16"),
    ],
)
def test_who_asks_for_no_dtype_gets_native_ones_and_bf16(native, expected):
    assert first_dtypes([Device("cpu", "cpu", "made", native=native)]) == expected


def test_ranges_in_a_shape_are_swept_together_small_shapes_first():
    experiment = resolve(Request(shapes="m=64:256:x2,k=32,n=100:200:+100"), ["cpu"])

    assert [str(shape) for shape in experiment.shapes] == [
        "m=64,k=32,n=100",
        "m=64,k=32,n=200",
        "m=128,k=32,n=100",
        "m=128,k=32,n=200",
        "m=256,k=32,n=100",
        "m=256,k=32,n=200",
    ]
