import pytest

from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.models import model_named, tape_of
from gpuexplore.features.model.ui import _countings, _layer_rows

GB = {
    "alexnet-2012": [1.108, 1.352, 1.596, 0.400, 0.888, 1.185, 1.225, 1.288],
    "vgg-16": [10.505, 11.058, 11.611, 7.725, 8.831, 12.120, 15.772, 16.556],
}


@pytest.mark.parametrize("name", GB)
def test_each_counting_is_what_its_rule_says(name):
    found = [sizes[name] / 1e9 for sizes in _countings().values()]

    assert found == pytest.approx(GB[name], abs=6e-4)


def test_none_is_exactly_what_the_notebook_says():
    vgg = [sizes["vgg-16"] for sizes in _countings().values()]

    assert min(abs(size - 14e9) for size in vgg) > 1e9


def test_vgg_has_15_million_outputs_an_image():
    outputs = next(sizes for rule, sizes in _countings().items() if rule.endswith("once"))

    assert outputs["vgg-16"] / 4 / 128 / 1e6 == pytest.approx(15.09, abs=0.005)


@pytest.mark.parametrize("name", ["vgg-16", "resnet-50", "gpt2"])
def test_the_rows_of_layers_add_up_to_parameters_and_what_is_kept(name):
    model, setup = model_named(name), Training()
    tape = tape_of(model, setup)
    kept = {buffer for step in tape.steps for buffer in step.kept} - {0}

    rows = _layer_rows(model, setup, 2)

    assert sum(row["Parameters"] for row in rows) == sum(tape.weights)
    assert sum(row["Kept for backward"] for row in rows) == sum(tape.buffers[buffer].at(2) for buffer in kept)
