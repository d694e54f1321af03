import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.layer_kinds import KINDS
from gpuexplore.features.model.analysis.models import _parse_layers, model_of_text, read_layers_file
from gpuexplore.features.model.analysis.training import training_memory

FIRST_LINES = ("input 3x8x8", "input 8", "input tokens=8\nembedding 8 vocabulary=9")
LINES = (
    *("relu", "gelu", "dropout", "softmax", "flatten", "batch_norm", "layer_norm", "rms_norm", "linear 8", "gated 8"),
    *(
        "conv 3 kernel=3 padding=1",
        "max_pool 2",
        "avg_pool 2",
        "attention heads=2 rotary=yes",
        "attention heads=2 fused=no",
    ),
    *("split", "shortcut", "add", "repeat 2", "end", "split\nrelu\nlinear 8\nadd"),
)
SETUPS = (
    Training(),
    Training(mixed="bf16"),
    Training(checkpoints=1, accumulation=2),
    Training(mixed="fp16", checkpoints=2, optimizer="adamw"),
)


def test_layers_are_read_line_by_line_with_their_defaults():
    first, conv, relu = _parse_layers("input 3x8x8\n\nconv 16 kernel=3 bias=no  # a comment\nrelu")

    assert (first.kind, first.sizes) == ("input", (3, 8, 8))
    assert (conv.line, conv.sizes, conv.settings["padding"], conv.settings["bias"]) == (3, (16,), 0, 0)
    assert relu.label == "relu"


def test_repeated_layers_come_as_often_as_they_say():
    layers = _parse_layers("input 8;repeat 2;linear 8;repeat 3;relu;end;end;linear 1")

    assert [layer.kind for layer in layers] == ["input", *2 * ["linear", "relu", "relu", "relu"], "linear"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "layers, line 1"),
        ("linear 10", "layers, line 1: 'linear 10': expected a first line like `input 3x224x224`"),
        ("input 8\n__import__", "line 2: '__import__': expected input, conv, linear"),
        ("input 8\nlinear", "line 2: 'linear': expected `linear 4096"),
        ("input 8\nlinear 0", "whole numbers from 1"),
        ("input 8\nlinear 1e999", "whole numbers from 1"),
        ("input 8\nlinear -3", "whole numbers from 1"),
        ("input 8\nlinear 8 colour=red", "expected `linear 4096"),
        ("input 8\nlinear 8 bias=no bias=yes", "expected `linear 4096"),
        ("input 3x8x8\nconv 8", "kernel is missing"),
        ("input 8\nrepeat 2\nlinear 8", "line 2: 'repeat 2': expected layers after `repeat`"),
        ("input 8\nrepeat 2\nend", "expected layers after `repeat`"),
        ("input 8\nend", "`end` after a `repeat`"),
        ("input 8\nrepeat 999999\nrelu\nend", "N from 1 to 5,000"),
        ("input 8\nrepeat 5000\nrepeat 5000\nrelu\nend\nend", "at most 5,000 layers"),
        ("input 8\n" + "repeat 2\n" * 5 + "relu\n" + "end\n" * 5, "at most 4 deep"),
        ("input 8\nrelu \x00", "characters that can be shown"),
        ("x" * 10_000_000, "at most 12,800"),
        ("input 8\n" + "x" * 300, "at most 200"),
    ],
)
def test_text_that_is_no_layers_is_named_with_its_line(text, message):
    with pytest.raises(InvalidInput) as caught:
        _parse_layers(text)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("input 8;conv 8 kernel=3", "line 2: 'conv 8': expected an input of channels x height x width"),
        ("input 3x8x8;conv 8 kernel=9", "a kernel from 1 to the size of the map"),
        ("input 3x8x8;conv 8 kernel=0", "a kernel from 1"),
        ("input 3x8x8;conv 8 kernel=1 stride=0", "a stride from 1"),
        ("input 3x8x8;conv 8 kernel=1 padding=1000000000", "100 PB at most"),
        ("input 3x8x8;conv 8 kernel=3 groups=2", "groups that divide 3 and 8"),
        ("input 8;split;linear 9;add", "two maps of one shape"),
        ("input 8;add", "a `split` before it"),
        ("input 8;split;linear 8", "an `add` for each `split`"),
        ("input 8;split;shortcut;shortcut;add", "one `shortcut` at most"),
        ("input 8;relu", "at least one layer with parameters"),
        ("input 8;embedding 8 vocabulary=10", "tokens, from a first line like `input tokens=1024`"),
        ("input tokens=8;embedding 8 vocabulary=10;attention heads=3", "heads that divide the width 8"),
        ("input tokens=8;embedding 8 vocabulary=10;attention heads=0", "heads that divide the width 8"),
        ("input 8;linear 10 tied=yes", "as many features as the embedding has entries"),
        ("input 1000000000;linear 1000000000", "fewer than 10,000,000,000,000 parameters"),
        ("input", "`input 3x224x224`"),
    ],
)
def test_a_layer_that_cannot_follow_is_named_with_its_line(text, message):
    with pytest.raises(InvalidInput) as caught:
        training_memory(model_of_text(text), 1)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"input 8\nnonsense", r"net\.txt, line 2: 'nonsense'"),
        (b"\xff\xfe\x00", "expected readable files of layers"),
        (b"relu\n" * 2_000_000, "expected at most 12,800"),
        (None, "No such file"),
    ],
)
def test_a_file_that_cannot_be_used_is_named(tmp_path, content, message):
    path = tmp_path / "net.txt"
    if content is not None:
        path.write_bytes(content)

    with pytest.raises(InvalidInput, match=message):
        read_layers_file(str(path))


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=12), st.sampled_from(FIRST_LINES), st.sampled_from(SETUPS))
def test_whatever_is_pasted_is_computed_or_refused_in_words(lines, first, setup):
    try:
        found = training_memory(model_of_text("\n".join([first, *lines, "linear 8"])), 2, setup)
    except InvalidInput:
        return
    assert all(size >= 0 for point in found.timeline for size in point.bytes_by_kind.values())
    last = found.timeline[-1].bytes_by_kind
    assert (last["activations"], last["weight copies"]) == (0, 0)


@pytest.mark.parametrize("name", KINDS)
def test_the_syntax_of_a_kind_is_an_example_of_it(name):
    text = KINDS[name].syntax.partition(" (")[0].partition(", or")[0]

    assert _parse_layers(f"input 8;{text}")[1].kind == name


def test_a_file_of_an_editor_on_windows_is_read(tmp_path):
    path = tmp_path / "net.txt"
    path.write_bytes("\ufeffinput 8\r\nlinear 4\r\n".encode())

    assert [layer.kind for layer in read_layers_file(str(path))] == ["input", "linear"]
