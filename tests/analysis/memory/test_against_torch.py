"""Our arithmetic against torch's own MemTracker, which sees every tensor that torch makes."""

import pytest

from gpuexplore.analysis.memory import Training, training_memory
from gpuexplore.analysis.memory.models import model_named, model_of_text
from gpuexplore.analysis.memory.setup import OPTIMIZERS
from tests.analysis.memory.torch_models import tracked_peak

TOLERANCE = 0.1
EVERYTHING = Training(optimizer="adamw", mixed="bf16", checkpoints=3, accumulation=2)
SETUPS = (
    Training(optimizer="momentum"),
    Training(optimizer="adamw", dtype="bf16"),
    Training(optimizer="adamw", mixed="bf16"),
    Training(checkpoints=3),
    Training(accumulation=2),
    EVERYTHING,
)
DECODER = """
input tokens=256
embedding 256 vocabulary=2000
repeat 3
  split
  rms_norm
  attention heads=8 kv={kv} rotary=yes fused={fused}
  add
  split
  rms_norm
  gated 1024
  add
end
rms_norm
linear 2000 bias=no
"""
SMALL_RESNET = """
input 3x64x64
conv 32 kernel=7 stride=2 padding=3 bias=no
batch_norm
relu
max_pool 3 stride=2 padding=1
split
conv 32 kernel=1 bias=no
batch_norm
relu
conv 128 kernel=3 stride=2 padding=1 bias=no
batch_norm
shortcut
conv 128 kernel=1 stride=2 bias=no
batch_norm
add
relu
avg_pool 1
flatten
linear 100
"""
EVERY_OTHER_KIND = (
    "input 3x32x32;conv 32 kernel=3;sigmoid;conv 64 kernel=3;tanh;conv 64 kernel=3;gelu;conv 64 kernel=3;silu;flatten;"
    "linear 512;layer_norm;dropout;softmax;linear 10"
)
PASTED = {
    "decoder with a KV head each": DECODER.format(kv=8, fused="yes"),
    "decoder with few KV heads": DECODER.format(kv=2, fused="yes"),
    "decoder that stores its scores": DECODER.format(kv=8, fused="no"),
    "residual net": SMALL_RESNET,
    "every other kind": EVERY_OTHER_KIND,
}


def agrees(model, batch, setup):
    tracked, parameters, _ = tracked_peak(model, batch, setup)
    found = training_memory(model, batch, setup)
    assert found.parameter_count == parameters
    assert found.total_bytes == pytest.approx(tracked, rel=TOLERANCE)


@pytest.mark.long
@pytest.mark.parametrize("setup", SETUPS, ids=str)
@pytest.mark.parametrize(("name", "batch"), [("alexnet-2012", 128), ("alexnet", 32), ("vgg-16", 8), ("mlp", 128)])
def test_a_model_peaks_where_torch_does(name, batch, setup):
    agrees(model_named(name), batch, setup)


@pytest.mark.long
@pytest.mark.parametrize("setup", SETUPS, ids=str)
@pytest.mark.parametrize("name", PASTED)
def test_pasted_layers_peak_where_torch_does(name, setup):
    agrees(model_of_text(PASTED[name]), 4, setup)


@pytest.mark.long
@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_an_optimizer_needs_what_torch_s_needs(optimizer):
    agrees(model_named("784-2048-10"), 8, Training(optimizer=optimizer))


@pytest.mark.slow
@pytest.mark.parametrize("setup", [Training(optimizer="adamw"), EVERYTHING], ids=str)
@pytest.mark.parametrize(("name", "batch"), [("resnet-50", 16), ("transformer", 4), ("gpt2", 2), ("vgg-16", 128)])
def test_a_large_model_peaks_where_torch_does(name, batch, setup):
    agrees(model_named(name), batch, setup)


@pytest.mark.slow
def test_a_tied_embedding_is_within_the_tolerance_although_fake_gradients_are_added_out_of_place():
    agrees(model_named("llama-3.2-1b"), 2, Training(tokens=512))
