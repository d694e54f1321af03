import pytest

from gpuexplore.core.model import Experiment, Shape
from gpuexplore.core.naming import LONGEST_TITLE, default_title

SQUARE = [Shape.of(m=size, k=size, n=size) for size in (64, 128, 384)]
TALL = Shape.of(m=128, n=4096)


@pytest.mark.parametrize(
    ("operation", "shapes", "dtypes", "title"),
    [
        ("matmul", SQUARE, ("fp32", "bf16", "fp16"), "matmul 64 to 384, fp32 bf16 fp16"),
        ("matmul", SQUARE[:1], ("fp32",), "matmul 64, fp32"),
        ("softmax", [TALL], ("fp64",), "softmax m=128,n=4096, fp64"),
        ("softmax", [TALL, Shape.of(m=64, n=64)], ("fp64",), "softmax 2 shapes, fp64"),
    ],
)
def test_a_title_says_what_was_measured(operation, shapes, dtypes, title):
    assert default_title(Experiment(operation, tuple(shapes), dtypes, ("numpy",))) == title


def test_a_title_has_an_end():
    many = tuple(f"dtype{number}" for number in range(40))

    title = default_title(Experiment("matmul", tuple(SQUARE), many, ("numpy",)))

    assert len(title) == LONGEST_TITLE
    assert title.startswith("matmul 64 to 384, dtype0 dtype1")
    assert title.endswith(" …")
