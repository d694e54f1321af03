from gpuexplore.features.tensors.analysis.evaluate import evaluate
from gpuexplore.features.tensors.chart import COLORS, can_draw, tensor_picture
from tests.charts.conftest import _checked_once


def drawn(expression):
    chain = evaluate(expression)
    return tensor_picture("x", chain.result, chain.storage).to_dict()


def boxes(expression):
    """Return the boxes of the elements and those of the cells."""
    spec = drawn(expression)
    rows = spec["datasets"][spec["layer"][0]["data"]["name"]]
    return [row for row in rows if row["what"].startswith("element") or row["what"] == "the scalar"], [
        row for row in rows if row["what"] == "a cell of the storage"
    ]


def test_every_element_prints_its_value_and_its_cell():
    elements, cells = boxes("x = tensor([[1, 2, 3], [4, 5, 6]]); x.t()")

    assert [box["value"] + box["index"] for box in elements] == ["10", "43", "21", "54", "32", "65"]
    assert [box["value"] for box in cells] == ["1", "2", "3", "4", "5", "6"]


def test_a_cell_has_the_colour_of_its_element_and_none_where_nothing_touches_it():
    elements, cells = boxes("x = 4x4; x[1:3]")

    assert {box["cell"]: box["row"] for box in elements}.items() <= {box["cell"]: box["row"] for box in cells}.items()
    assert [box["cell"] for box in cells if box["row"] is None] == [0, 1, 2, 3, 12, 13, 14, 15]


def test_a_broadcast_axis_shows_the_same_cell_again():
    elements, cells = boxes("x = 1x3; x.expand(2, 3)")

    assert [box["cell"] for box in elements] == [0, 1, 2, 0, 1, 2]
    assert [box["row"] for box in cells] == ["0", "0", "0"]


def test_hovering_frames_all_that_are_the_same_cell():
    spec = drawn("x = 1x3; x.expand(2, 3)")
    (selection,) = spec["params"]

    assert selection["select"]["fields"] == ["cell"]
    assert spec["layer"][0]["encoding"]["strokeWidth"]["condition"]["param"] == selection["name"]


def test_boxes_lie_beside_each_other_and_inside_the_picture():
    for expression in ("x = 2x3x4; x.permute(2, 0, 1)", "arange(40)", "x = 4x4; x[1, 2]", "2x2x2x2"):
        elements, cells = boxes(expression)
        places = [(box["x"], box["y"]) for box in (*elements, *cells)]
        height = drawn(expression)["layer"][0]["encoding"]["y"]["scale"]["domain"][0]

        assert len(set(places)) == len(places), expression
        assert max(box["bottom"] for box in cells) <= height
        assert max(box["bottom"] for box in elements) < min(box["y"] for box in cells)


def test_what_it_shows_is_told_in_words():
    assert drawn("x = 2x3; x.t()")["description"] == (
        "x of shape (3, 2), strides (1, 3), offset 0 over 6 cells of storage A: its elements in row order are the "
        "cells 0, 3, 1, 4, 2, 5"
    )
    assert "and 24 more" in drawn("arange(40)")["description"]


def test_what_is_empty_is_drawn_as_its_storage():
    elements, cells = boxes("x = 2x3; x[2:]")

    assert (len(elements), len(cells)) == (0, 6)
    assert can_draw(evaluate("randn(3, 4)").result, evaluate("randn(3, 4)").storage)
    assert can_draw(evaluate("arange(0)").result, evaluate("arange(0)").storage) is False


def test_what_would_be_too_small_to_read_is_not_drawn():
    for expression, expected in (("16x16", True), ("17x16", False), ("2x17", False), ("arange(200)", True)):
        chain = evaluate(expression)
        assert can_draw(chain.result, chain.storage) is expected, expression


def test_rows_beyond_the_colours_begin_again():
    elements, _ = boxes("16x1")

    assert [int(box["row"]) for box in elements] == [row % COLORS for row in range(16)]
