"""Links to pages with names of GPUs that the table lacks: those near to them are named, as the commands do."""

import pytest

from tests.pages.conftest import texts


@pytest.mark.parametrize(
    ("name", "parameters", "near"),
    [
        ("what-if", {"gpus": "titan v"}, "near: TITAN RTX"),
        ("roofline", {"device": "rtx 6000"}, "near: Quadro RTX 6000, RTX 6000 Ada Generation, RTX PRO 6000 Blackwell"),
        ("transfers", {"gpu": "rtx 2060"}, "near: GeForce RTX 2070, GeForce RTX 2080 Ti, GeForce RTX 2080"),
        ("kernels", {"gpu": "m5"}, ""),
        ("memory", {"gpu": "rtx4090ti"}, "near: GeForce RTX 4090, GeForce RTX 4090 D"),
    ],
)
def test_a_gpu_that_no_row_is_called_is_refused_with_those_near_to_it_that_the_page_offers(
    page, name, parameters, near
):
    told = texts(page(name, **parameters).error)

    assert "expected a name in the list below" in told
    assert near in told
    assert bool(near) == ("near" in told)
