"""Our arithmetic against torch's own MemTracker, which sees every tensor that torch makes."""

import pytest

from gpuexplore.features.model.analysis import OPTIMIZERS, Training
from gpuexplore.features.model.analysis.models import model_named, model_of_text
from gpuexplore.features.model.analysis.training import training_memory
from tests.features.model.analysis.torch_models import allocated_peak, tracked_peak
from tests.unchanged import PACKAGE, heavy

pytestmark = pytest.mark.long
MEMORY = heavy(f"{PACKAGE}.features.model.*")
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
input tokens=64
embedding 256 vocabulary=2000
repeat 2
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
CHECKPOINTED_BLOCKS = (
    "input 3x32x32;conv 16 kernel=3 padding=1;repeat 6;split;conv 8 kernel=1;conv 16 kernel=1;add;end;flatten;linear 10"
)
TIED = (
    "input tokens=32;embedding 256 vocabulary=8000;split;layer_norm;linear 1024;gelu;linear 256;add;layer_norm;"
    "linear 8000 bias=no tied=yes"
)
PASTED = {
    "pool of the data": "input 3x48x48;max_pool 3 stride=2 padding=1;flatten;linear 2",
    "mean of what nothing else keeps": "input 3x33x33;conv 16 kernel=3 padding=1;avg_pool 1;flatten;linear 2",
    "segments that end in a sum": CHECKPOINTED_BLOCKS,
    "one attention that stores its scores": (
        "input tokens=64;embedding 128 vocabulary=500;attention heads=4 fused=no;linear 100"
    ),
    "decoder with a KV head each": DECODER.format(kv=8, fused="yes"),
    "decoder with few KV heads": DECODER.format(kv=2, fused="yes"),
    "decoder that stores its scores": DECODER.format(kv=8, fused="no"),
    "residual net": SMALL_RESNET,
    "every other kind": EVERY_OTHER_KIND,
}


def compared(model, batch, setup):
    """Return our peak over the tracker's, and whether both count the same parameters."""
    tracked, parameters, _ = tracked_peak(model, batch, setup)
    found = training_memory(model, batch, setup)
    return found.total_bytes / tracked, found.parameter_count == parameters


CASES = (  # every model, setting and kind of layer once at least; the whole table takes minutes
    *(("alexnet-2012", 128, setup) for setup in SETUPS),
    ("alexnet", 128, Training(optimizer="adamw")),
    ("vgg-16", 128, Training(optimizer="adamw")),
    ("vgg-16", 8, EVERYTHING),
    ("mlp", 128, Training(dtype="bf16")),
    *(("784-2048-10", 8, Training(optimizer=optimizer)) for optimizer in OPTIMIZERS),
)
EXACT = 0.01  # one rule each, which nothing else in the model hides
EXACT_CASES = (
    ("pool of the data", Training(accumulation=4)),
    ("mean of what nothing else keeps", Training(mixed="bf16")),
    ("segments that end in a sum", Training(checkpoints=3)),
)
REAL_CASES = (  # fake tensors are never added in place, real ones are
    (TIED, Training()),
    (TIED, Training(accumulation=2)),
    (TIED, Training(mixed="bf16")),
    (TIED, Training(mixed="bf16", accumulation=2)),
    ("input 784;linear 2048;relu;linear 2048;relu;linear 10", Training(mixed="bf16")),
)
PASTED_CASES = (
    ("one attention that stores its scores", Training()),
    ("one attention that stores its scores", Training(mixed="bf16")),
    ("residual net", Training(optimizer="adamw", dtype="fp64")),
    ("residual net", Training(checkpoints=3)),
    ("residual net", EVERYTHING),
    ("every other kind", Training(mixed="fp16")),
    ("every other kind", Training(accumulation=2)),
    ("decoder with a KV head each", Training(dtype="bf16")),
    ("decoder with few KV heads", Training(mixed="bf16")),
    ("decoder with few KV heads", EVERYTHING),
    ("decoder that stores its scores", Training(dtype="bf16")),
    ("decoder that stores its scores", Training(mixed="bf16", checkpoints=6)),
)


@MEMORY
@pytest.mark.parametrize(("name", "batch", "setup"), CASES, ids=str)
def test_a_model_peaks_where_torch_does(name, batch, setup):
    ratio, same_parameters = compared(model_named(name), batch, setup)

    assert ratio == pytest.approx(1, abs=TOLERANCE)
    assert same_parameters


@MEMORY
@pytest.mark.parametrize(("name", "setup"), PASTED_CASES, ids=str)
def test_pasted_layers_peak_where_torch_does(name, setup):
    ratio, same_parameters = compared(model_of_text(PASTED[name]), 8, setup)

    assert ratio == pytest.approx(1, abs=TOLERANCE)
    assert same_parameters


@MEMORY
def test_a_language_model_peaks_where_torch_does():
    ratio, same_parameters = compared(model_named("transformer"), 2, Training(optimizer="adamw", tokens=64))

    assert ratio == pytest.approx(1, abs=TOLERANCE)
    assert same_parameters


@MEMORY
@pytest.mark.parametrize(("name", "setup"), EXACT_CASES, ids=str)
def test_a_rule_of_autograd_that_nothing_hides_is_exact(name, setup):
    ratio, _ = compared(model_of_text(PASTED[name]), 32, setup)

    assert ratio == pytest.approx(1, abs=EXACT)


@MEMORY
@pytest.mark.parametrize(("layers", "setup"), REAL_CASES, ids=str)
def test_real_tensors_take_what_we_say(layers, setup):
    model = model_of_text(layers)

    found = training_memory(model, 4, setup).total_bytes

    assert found / allocated_peak(model, 4, setup) == pytest.approx(1, abs=EXACT)
