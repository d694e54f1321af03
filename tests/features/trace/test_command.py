"""`trace` prints where the time goes and how the same is measured here, and names what it cannot read."""

import pytest

from gpuexplore.cli import main
from gpuexplore.cli.output import EXIT_OK, EXIT_UNUSABLE
from tests.cli.conftest import answered, home
from tests.features.trace.analysis.made import DATA, as_bytes, event, gpu_trace


@pytest.fixture
def on_gpu(tmp_path):
    path = tmp_path / "gpu.json"
    path.write_bytes(as_bytes(gpu_trace()))
    return str(path)


def test_the_headline_comes_first_then_the_table_and_the_commands(on_gpu, capsys):
    assert main(("trace", on_gpu)) == EXIT_OK
    lines = capsys.readouterr().out.splitlines()

    assert lines[0].startswith("50.0 % of 400 µs of kernel time on H100 SXM5 80GB is in matrix products (aten::addmm)")
    (heading,) = (line for line in lines if line.startswith("operation"))
    assert heading.split()[:5] == ["operation", "shapes", "dtype", "calls", "time"]
    (product,) = (line for line in lines if line.startswith("aten::addmm"))
    assert "4096×4096" in product
    assert product.endswith("compute")
    assert "  gpuexplore run linear --shape b=4096,d=4096,k=4096 --dtype bf16" in lines
    assert any(line.startswith("  gpuexplore predict linear --gpu h100-sxm5-80gb") for line in lines)


def test_every_command_that_is_printed_is_taken(on_gpu, capsys):
    main(("trace", on_gpu))
    predicts = [line.split()[1:] for line in capsys.readouterr().out.splitlines() if " predict " in line]

    assert len(predicts) == 2
    assert [main(words) for words in predicts] == [EXIT_OK, EXIT_OK]


def test_top_says_how_many_rows_are_left_and_json_has_every_one(capsys, answered):
    assert main(("trace", str(DATA), "--top", "3")) == EXIT_OK
    told = capsys.readouterr().out

    assert "more rows took less" in told
    assert "- To get roofs, state where it was taken: --device cpu." in told
    assert len([line for line in told.splitlines() if line.startswith("aten::")]) == 3

    code, told = answered("trace", str(DATA), "--top", "3", "--json")

    assert code == EXIT_OK
    assert len(told["rows"]) > 100
    assert told["time_of"] == "cpu"
    assert told["device"]["name"] is None
    assert sum(row["share"] for row in told["rows"]) == pytest.approx(1)
    assert {row["roof_share"] for row in told["rows"]} == {None}


def test_the_roof_of_this_cpu_is_used_where_the_user_says_so(answered):
    _, told = answered("trace", str(DATA), "--device", "cpu", "--json")
    products = [row for row in told["rows"] if row["operation"] == "aten::mm"]

    assert all(0 < row["roof_share"] < 1 for row in products)
    assert "as chosen" in told["notes"][0]


def test_without_shapes_it_says_how_to_have_them(tmp_path, capsys):
    path = tmp_path / "bare.json"
    path.write_bytes(as_bytes({"traceEvents": [event("cpu_op", "aten::mm", 0.0, 5.0)]}))

    assert main(("trace", str(path))) == EXIT_OK
    assert "profile with record_shapes=True" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("missing.json",), "file 'missing.json': expected a readable file"),
        (("/",), "expected a readable file"),
        (("README.md",), "README.md: invalid JSON at line 1"),
        ((str(DATA), "--top", "0"), "top '0': expected whole numbers from 1"),
        ((str(DATA), "--gpu", "t4"), "this trace has no GPU kernels"),
        ((str(DATA), "--device", "tpu"), "device 'tpu': expected cpu"),
    ],
)
def test_what_cannot_be_used_is_named_and_nothing_is_printed(words, message, capsys, repository, monkeypatch):
    monkeypatch.chdir(repository)

    assert main(("trace", *words)) == EXIT_UNUSABLE
    told = capsys.readouterr()
    assert message in told.err
    assert not told.out
