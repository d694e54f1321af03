import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.tensors.analysis.evaluate import StepRefused, evaluate
from gpuexplore.features.tensors.analysis.expression import MOST_STATEMENTS

SIX = "x = tensor([[1, 2, 3], [4, 5, 6]])"


def values_of(chain):
    return chain.values_of(chain.result)


def test_the_element_1_2_of_4x4_is_cell_6_and_a_column_is_a_view_that_begins_at_its_cell():
    """The notebook's first example: strides 4 and 1."""
    view = evaluate("x = 4x4").result

    assert (view.shape, view.strides, view.offset) == ((4, 4), (4, 1), 0)
    assert view.cells[1, 2] == evaluate("x = 4x4; x[1, 2]").result.offset == 6

    chain = evaluate("x = 4x4; x[:, 1]")
    view = chain.result

    assert (view.shape, view.strides, view.offset) == ((4,), (4,), 1)
    assert chain.values_of(view) == (1, 5, 9, 13)
    assert chain.is_view
    assert not view.is_contiguous


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        (".view(3, 2)", "view"), (".t()", "view"), ("[0]", "view"), (".reshape(6)", "view"), (".clone()", "copy"),
        (".contiguous()", "same"), (".t().reshape(6)", "copy"),
    ],
)  # fmt: skip
def test_a_step_copies_only_when_it_must(call, kind):
    chain = evaluate(f"{SIX}; x{call}")

    assert chain.steps[-1].kind == kind
    assert chain.is_view is (kind != "copy")


def test_a_write_is_seen_through_the_transpose_and_not_by_a_copy():
    chain = evaluate(f"{SIX}; y = x.t(); z = x.clone(); x[0][1] = 100")
    (write,) = chain.writes

    assert chain.values_of(chain.names["y"]) == (1, 4, 100, 5, 3, 6)
    assert chain.values_of(chain.names["z"]) == (1, 2, 3, 4, 5, 6)
    assert chain.seen_of(write) == {"x": ((0, 1),), "y": ((1, 0),), "z": None}


def test_view_of_a_transpose_fails_and_its_repair_has_new_storage():
    """The notebook's second example."""
    with pytest.raises(StepRefused, match="axes 0 and 1") as caught:
        evaluate(f"{SIX}; x.t().view(2, 3)")
    repaired = evaluate(caught.value.repaired(".contiguous().view(2, 3)"))

    assert caught.value.chain.result.strides == (1, 3)
    assert (values_of(repaired), repaired.is_view, repaired.storage.name) == ((1, 4, 2, 5, 3, 6), False, "B")


def test_a_broadcast_axis_has_stride_0_and_cannot_be_written_to():
    chain = evaluate("x = 1x3; x.expand(2, 3)")

    assert chain.result.strides == (0, 1)
    assert chain.result.cells.tolist() == [[0, 1, 2], [0, 1, 2]]
    with pytest.raises(StepRefused, match="broadcast axis"):
        evaluate("x = 1x3; x.expand(2, 3)[:] = 5")


def test_squeeze_takes_each_axis_once_as_torch_does():
    assert evaluate("x = 2x1x3x1; x.squeeze((1, -1))").result.shape == (2, 3)
    with pytest.raises(StepRefused, match="each axis once"):
        evaluate("x = 2x1x3x1; x.squeeze((1, -3))")


def test_the_notebooks_product_has_new_storage():
    chain = evaluate("x = 1000x500; y = 500x200; x.matmul(y)")

    assert (chain.result.shape, chain.is_view, values_of(chain)) == ((1000, 200), False, None)
    assert values_of(evaluate("x = 2x2; y = ones(2, 1); x.matmul(y)")) == (1, 5)
    assert values_of(evaluate("x = zeros(2, 0); y = zeros(0, 3); x.matmul(y)")) == (0,) * 6


@pytest.mark.parametrize(
    ("expression", "values"),
    [("arange(2, 4)", [2, 3]), ("1x2", [0.0, 1.0]), ("x = arange(2); x[0] = 1.5; x", [1.5, 1])],
)
def test_whole_numbers_stay_whole(expression, values):
    assert repr(list(values_of(evaluate(expression)))) == repr(values)


def test_large_tensors_and_few_cells_far_apart_are_arithmetic_on_strides():
    chain = evaluate("11000x11000[::10999, 0] = 1")

    assert chain.writes[0].view.cells.tolist() == [0, 120_989_000]

    chain = evaluate("x = 2000x2000; y = x.t(); x[0] = 1")

    assert chain.names["y"].strides == (1, 2000)
    assert chain.seen_of(chain.writes[0]) is None


@pytest.mark.parametrize(
    ("expression", "named"),
    [
        ("__import__('os').system('ls')", ("character 1:", "__import__", "names that begin with a letter")),
        ("x = 4x4; x.__class__", ("character 12", "__class__")),
        ("eval('1')", ("'", "names, whole numbers")),
        ("x" * 10_000, ("10,000 characters", "at most 200")),
        ("x = 4x4; x[1, 2", ("character 16", "the end", "]")),
        ("x = 4x4; x[1]]", ("character 14", "]", "or the end")),
        ("x = 4x4; x.view((2, 8)", ("character 23", "the end", ")")),
        ("x = 4x4; x.foo()", ("character 12", "foo", "contiguous")),
        ("x = 4x4; x[0:99999999999999999999]", ("character 14", "99999999999999999999", "1,000,000,000")),
        ("arange(1e12)", ("character 8", "1e12", "1,000,000,000")),
        ("1000000x1000000", ("1,000,000,000,000 elements", "at most 134,217,728")),
        ("x = 1x1; x.expand(1000000, 1000000)", ("1,000,000,000,000 elements", "at most 134,217,728")),
        ("x = 4x4; x[::-1]", ("step '-1'", "from 1")),
        ("x = 4x4; x[::0]", ("step '0'", "from 1")),
        ("x = 4x4; y", ("name 'y'", "expected x")),
        ("x", ("name 'x'", "name a tensor first")),
        ("x = 4x4; x[4]", ("index of axis 0 '4'", "-4 to 3")),
        ("x = 4x4; x[0, 0, 0]", ("3 items", "at most 2")),
        ("x = 4x4; x.view(5, 5)", ("(5, 5)", "16 elements")),
        ("x = 4x4; x.transpose(0)", ("1 arguments", ".transpose(axis, axis)")),
        ("x = 4x4; x.t() = 5", ("character 16", "=", "index")),
        ("x = 4x4; x[0] = y", ("character 17", "y", "a number")),
        ("x = tensor([[1, 2], [3]])", ("rows are of one length",)),
        ("x = 4x4; x[..., ...]", ("[..., ...]", "one ... at most")),
        ("arange(3, 1)", ("(3, 1)", "not above the end")),
        ("1x1x1x1x1x1x1x1x1", ("9 axes", "at most 8")),
        ("None = 4x4", ("None", "already functions or keywords")),
        ("4x4;" * (MOST_STATEMENTS + 1), ("at most 12",)),
        (";".join(["4x4" + ".t()" * 20] * 4), ("more than 64 steps",)),
        ("", ("character 1", "the end", "a shape like 4x4")),
        ("x = \uff14x4", ("character 5", "\uff14")),
        ("x = 4x4; x[1 2]", ("character 14: '2'", "steps like")),
        ("x = 4x4; x.T()", ("character 13: '('", "or the end")),
        ("x = 4x4; x - 4x4", ("character 10: 'x - 4x4'", "one chain of steps")),
        ("torch.x", ("character 7: 'x'", "contiguous")),
        ("tensor(1, 2)", ("character 8: '1'", "one list")),
        ("lambda: 4x4", ("character 1: 'lambda'", "after a name or a shape")),
    ],
)
def test_what_is_no_expression_is_refused_where_it_stands(expression, named):
    with pytest.raises(InvalidInput) as caught:
        evaluate(expression)

    assert [words for words in named if words not in str(caught.value)] == []


def test_a_function_may_be_called_torchs():
    step = evaluate("x = torch.arange(4) ; x .t()").steps[0]

    assert (step.text, step.view.shape) == ("torch.arange(4)", (4,))


def test_a_deep_nesting_of_brackets_is_a_message():
    with pytest.raises(InvalidInput, match="character 201: 'the end'"):
        evaluate("tensor(" + "[" * 193)


def test_random_and_empty_tensors_have_a_layout_and_unknown_values():
    for function in ("rand", "randn", "empty"):
        chain = evaluate(f"x = torch.{function}(3, 4); x.T.contiguous().view(2, 6)")
        assert (chain.result.shape, chain.result.storage, values_of(chain)) == ((2, 6), "B", None)
        written = evaluate(f"x = {function}(2, 3); x[0] = 5")
        assert written.writes
        assert values_of(written) is None
