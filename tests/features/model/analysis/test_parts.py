"""Operations of a model against torch's counter of FLOPs, and against what its makers publish of it."""

from dataclasses import replace

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.models import model_named, model_of_text, tape_of
from gpuexplore.features.model.analysis.parts import backward_parts, forward_pass
from gpuexplore.features.model.analysis.plan import ModelPlan
from gpuexplore.features.model.analysis.prediction import predict_model
from gpuexplore.hardware import target_named
from tests.features.model.analysis.torch_models import counted_flops

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
MODELS = {
    "decoder": model_of_text(DECODER.format(fused="yes", kv=2)),
    "decoder that stores its scores": model_of_text(DECODER.format(fused="no", kv=8)),
    "resnet-50": model_named("resnet-50"),
    "vit-b-16": model_named("vit-b-16"),
    "gpt2": model_named("gpt2"),
    "mlp": model_named("784-512-10"),
    "strides": model_of_text("input 16x33x33; conv 32 kernel=3 stride=2 padding=1; flatten; linear 10"),
}
LANGUAGE = ("decoder", "decoder that stores its scores", "gpt2")
H100 = target_named("h100-sxm5-80gb", ())


def flops(parts):
    return sum(part.flop_count * part.count for part in parts)


@pytest.mark.parametrize(("task", "context"), [("train", 0), ("prefill", 0), ("decode", 70)])
@pytest.mark.parametrize("fused", ["yes", "no"])
def test_repeated_layers_are_counted_as_often_as_those_that_are_written_out(task, context, fused):
    start, rest = DECODER.format(fused=fused, kv=2).split("repeat 2\n")
    block, end = rest.split("end\n")
    plan = ModelPlan(task, batch=3, tokens=60, gpus=2, tensor_parallel=2)
    repeated = forward_pass(model_of_text(f"{start}repeat 7\n{block}end\n{end}"), plan, context=context)

    assert repeated == forward_pass(model_of_text(start + 7 * block + end), plan, context=context)


@pytest.mark.parametrize("name", MODELS)
def test_flops_of_a_training_step_are_those_of_torchs_counter(name):
    model = MODELS[name]
    forward = list(forward_pass(model, ModelPlan("train", batch=2, dtype="fp32", execution="eager")).parts)
    # the counter knows no fused attention of a CPU; what stores its scores is two products, which it does count
    fused = [part for part in forward if part.operation == "attention"]
    counted = [part for part in forward if part not in fused]
    ours = flops([*counted, *backward_parts(counted)])
    # the input of a model without an embedding has no gradient, so its first product has one product less
    first = 0 if name in LANGUAGE else next(part.flop_count for part in forward if part.flop_count)

    assert bool(fused) == ("stores" not in name and ("vit" in name or name in LANGUAGE))
    assert ours - first == pytest.approx(counted_flops(model, 2, Training()), rel=1e-3)


@pytest.mark.parametrize(
    ("name", "billions", "active"),
    [
        ("mixtral-8x7b", 46.7, 12.9),
        ("qwen3-30b-a3b", 30.5, 3.35),
        ("deepseek-v3", 671, 37.6),
        ("llama-3.1-405b", 405.9, 405.9),
        ("qwen2.5-14b", 14.77, 14.77),
    ],
)
def test_models_have_the_weights_their_makers_say(name, billions, active):
    found = predict_model(model_named(name), ModelPlan("decode", gpus=8, tensor_parallel=8, batch=1, tokens=100), H100)

    assert found.weights / 1e9 == pytest.approx(billions, rel=2e-3)
    assert found.active / 1e9 == pytest.approx(active, rel=2e-2)


@pytest.mark.parametrize("gpus", [2, 4, 8])
@pytest.mark.parametrize("name", ["llama-3-8b", "gpt2", "mixtral-8x7b"])
def test_gpus_that_share_each_layer_compute_it_together(name, gpus):
    model = replace(model_named(name))
    if name == "gpt2":
        gpus = min(gpus, 4)  # its 12 heads
    alone, shared = (
        forward_pass(model, ModelPlan("prefill", gpus=n, tensor_parallel=n, batch=2, tokens=256)) for n in (1, gpus)
    )

    assert gpus * flops(shared.parts) == pytest.approx(flops(alone.parts), rel=2e-3)
    assert gpus * shared.weights == pytest.approx(alone.weights, rel=3e-2)  # norms and positions are with each
    assert not alone.reduced_bytes
    # after attention, and after the feed-forward part, of each block
    assert sum(count for _, count in shared.reduced_bytes) == 2 * shared.layers
    assert {size for size, _ in shared.reduced_bytes} == {2 * 256 * model.layers[1].sizes[0] * 2}


def test_a_token_more_reads_the_cache_and_makes_one_row_of_logits():
    model = model_named("llama-3-8b")
    found = forward_pass(model, ModelPlan("decode", batch=4, tokens=1000), context=1000)
    (cache,) = (part for part in found.parts if part.group == "attention")
    logits = [part for part in found.parts if part.operation == "linear"][-1]

    assert cache.byte_count == 4 * 1001 * 2 * 8 * 128 * 2
    assert cache.count == 32
    assert (logits.shape["b"], logits.shape["k"]) == (4, 128_256)


def test_latent_attention_caches_a_short_vector():
    tape = tape_of(model_named("deepseek-v3"), Training(tokens=1))
    cached = sum(step.work.cached_count for step in tape.steps if step.work)

    assert cached == 61 * (512 + 64)


def test_few_rows_read_the_experts_they_go_to():
    model = model_named("mixtral-8x7b")
    one, many = (
        sum(
            part.weight_bytes * part.count
            for part in forward_pass(model, ModelPlan("decode", batch=batch, tokens=9), context=9).parts
        )
        for batch in (1, 64)
    )

    assert one / 1e9 == pytest.approx(2 * 12.75, rel=0.01)
    assert many / 1e9 == pytest.approx(2 * 46.57, rel=0.01)


@pytest.mark.parametrize(
    ("name", "given", "said"),
    [
        ("llama-3-8b", {"tensor_parallel": 5, "gpus": 5}, "divides the 32 heads, not 5"),
        ("resnet-50", {"task": "decode"}, "ResNet-50 generates no tokens"),
        ("bert-base", {"task": "serve"}, "train and prefill: BERT base generates no tokens"),
    ],
)
def test_what_cannot_be_run_is_named(name, given, said):
    with pytest.raises(InvalidInput, match=said):
        predict_model(model_named(name), ModelPlan(**{"task": "prefill", **given}), H100)


@pytest.mark.parametrize("name", ["llama-3-8b", "llama-3-70b"])
def test_only_the_logits_of_a_server_with_fewer_bits_stay_in_16(name):
    model = model_named(name)
    plan = ModelPlan("decode", batch=1, tokens=9, weights="int4")
    read = sum(part.weight_bytes * part.count for part in forward_pass(model, plan, context=9).parts)
    table = model.layers[1].sizes[0] * model.layers[1].settings["vocabulary"]
    rest = sum(tape_of(model, Training()).weights) - 2 * table

    assert read == pytest.approx(rest * 4.25 / 8 + 2 * table, rel=2e-3)
