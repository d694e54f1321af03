import re

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Serving, Training
from gpuexplore.features.model.analysis.models import model_named, model_of_text, models, tape_of
from gpuexplore.features.model.analysis.training import cache_bytes, serving_memory, training_memory

# torch's MemTracker under FakeTensorMode, batch 128, fp32, GB
TRACKED = {
    "alexnet-2012": {"sgd": 1.108, "momentum": 1.352, "adamw": 1.596},
    "alexnet": {"sgd": 0.970, "momentum": 1.215, "adamw": 1.459},
    "vgg-16": {"sgd": 10.505, "momentum": 11.058, "adamw": 11.611},
}
# as their makers publish them
PARAMETERS = {
    "alexnet": 61_100_840,
    "vgg-16": 138_357_544,
    "resnet-50": 25_557_032,
    "mlp": 623_290,
    "gpt2": 124_439_808,
    "gpt2-xl": 1_557_611_200,
    "llama-3.2-1b": 1_235_814_400,
    "llama-2-7b": 6_738_415_616,
    "mistral-7b": 7_241_732_096,
    "mistral-7b-v0.3": 7_248_023_552,  # 768 words of 4,096 more, in and out
    "qwen2.5-7b": 7_615_616_512,
    "llama-3-8b": 8_030_261_248,
    "llama-3-70b": 70_553_706_496,
}

# 2 x layers x KV heads x head dimension x 2 bytes
PER_TOKEN = {
    "gpt2": 2 * 12 * 12 * 64 * 2,
    "llama-2-7b": 2 * 32 * 32 * 128 * 2,
    "llama-3-8b": 2 * 32 * 8 * 128 * 2,
    "llama-3-70b": 2 * 80 * 8 * 128 * 2,
    "llama-3.2-1b": 2 * 16 * 8 * 64 * 2,
    "qwen2.5-7b": 2 * 28 * 4 * 128 * 2,
}


@pytest.mark.parametrize(("name", "optimizer"), [(name, kind) for name, row in TRACKED.items() for kind in row])
def test_a_peak_is_what_the_tracker_found(name, optimizer):
    found = training_memory(name, 128, Training(optimizer=optimizer))

    assert found.total_bytes / 1e9 == pytest.approx(TRACKED[name][optimizer], abs=6e-4)


@pytest.mark.parametrize("name", PARAMETERS)
def test_a_model_has_as_many_parameters_as_its_maker_says(name):
    assert training_memory(name, 1).parameter_count == PARAMETERS[name]


def test_every_model_has_the_parameters_that_it_is_described_with():
    for model in models().values():
        count = sum(tape_of(model, Training(tokens=min(model.tokens, 64))).weights)
        said = re.search(r"([0-9.]+) (b|m)illion parameters", model.about)

        assert not said or count / {"b": 1e9, "m": 1e6}[said[2]] == pytest.approx(float(said[1]), rel=0.01)


def test_vgg_with_adamw_takes_16_bytes_a_parameter_before_activations():
    found = training_memory("vgg-16", 128, Training(optimizer="adamw"))

    assert found.most("parameters") + found.most("gradients") + found.most("optimizer state") == 16 * 138_357_544


def test_a_peak_is_less_than_the_bars_on_top_of_each_other():
    found = training_memory("vgg-16", 128, Training(optimizer="adamw"))

    bars = [found.most(kind) for kind in found.peak.bytes_by_kind]
    assert found.total_bytes < 0.9 * sum(bars)


def test_at_small_batches_the_peak_of_adamw_is_in_the_optimizer_step_where_no_activations_are():
    small, large = (training_memory("alexnet-2012", batch, Training(optimizer="adamw")) for batch in (32, 128))

    assert small.peak.moment == "optimizer step"
    assert small.peak.bytes_by_kind["activations"] == 0
    assert large.peak.phase == "backward"


def test_gradients_exist_from_the_start_when_they_are_accumulated():
    alone, accumulated = (training_memory("mlp", 128, Training(accumulation=steps)) for steps in (1, 4))

    assert alone.timeline[0].bytes_by_kind["gradients"] == 0
    assert accumulated.timeline[0].bytes_by_kind["gradients"] == accumulated.most("gradients")


def test_accumulation_has_the_activations_of_a_micro_batch():
    whole, quarter = training_memory("vgg-16", 32), training_memory("vgg-16", 128, Training(accumulation=4))

    assert quarter.most("activations") == whole.most("activations")


def test_checkpoints_recompute_what_they_did_not_keep():
    kept, recomputed = (training_memory("gpt2", 4, Training(checkpoints=count)) for count in (0, 27))

    assert recomputed.most("activations") < 0.6 * kept.most("activations")
    assert {"recomputation"} == {point.phase for point in recomputed.timeline} - {
        point.phase for point in kept.timeline
    }


def test_mixed_precision_keeps_narrow_activations_and_copies_of_weights():
    full, mixed = (training_memory("vgg-16", 128, Training(mixed=dtype)) for dtype in ("none", "bf16"))

    assert mixed.most("weight copies") == 2 * 138_357_544
    assert mixed.most("parameters") == full.most("parameters")
    assert mixed.most("activations") < 0.7 * full.most("activations")


def test_everything_is_let_go_by_the_optimizer_step():
    for name in ("vgg-16", "resnet-50", "gpt2", "llama-3.2-1b"):
        for setup in (Training(), Training(mixed="bf16", checkpoints=5)):
            last = training_memory(name, 2, setup).timeline[-1]
            left = {kind: last.bytes_by_kind[kind] for kind in ("activations", "weight copies", "temporary")}
            assert left == {"activations": 0, "weight copies": 0, "temporary": 0}, name


def test_the_softmax_of_unfused_attention_is_stored():
    text = "input tokens=1024;embedding 64 vocabulary=100;attention heads=4 fused={};linear 100"
    fused, stored = (training_memory(model_of_text(text.format(word)), 1) for word in ("yes", "no"))

    assert stored.total_bytes - fused.total_bytes > 2 * 4 * 1024**2 * 4, "scores and their softmax"


@pytest.mark.parametrize("batch", [0, -1, 10**10, True, 1.5])
def test_a_batch_that_cannot_be_is_named(batch):
    with pytest.raises(InvalidInput, match=r"batch .* whole numbers from 1"):
        training_memory("mlp", batch)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dtype": "int3"}, "dtype 'int3': expected fp32"),
        ({"optimizer": "lion"}, "optimizer 'lion': expected sgd"),
        ({"mixed": "fp8"}, "mixed 'fp8'"),
        ({"mixed": "bf16", "dtype": "bf16"}, "autocast needs fp32"),
        ({"accumulation": 0}, "accumulation '0'"),
        ({"checkpoints": -1}, "checkpoints '-1'"),
        ({"tokens": 10**12}, "tokens"),
    ],
)
def test_a_setting_that_cannot_be_is_named(settings, message):
    with pytest.raises(InvalidInput, match=message):
        Training(**settings)


@pytest.mark.parametrize(
    ("name", "batch", "setup", "message"),
    [
        ("mlp", 128, Training(accumulation=3), "batch '128': expected multiples of the 3"),
        ("mlp", 8, Training(checkpoints=9), "checkpoints '9': expected whole numbers from 0 to 3"),
        ("__import__", 8, Training(), r"model '__import__': expected a known model .*784-512-10"),
        ("vgg-16", 10**9, Training(dtype="fp64"), r"batch '1000000000': expected .* 100 PB at most"),
        ("9000000-9000000-10", 1, Training(), r"9000000-9000000-10, line 2: 'linear 9000000': .* parameters"),
        ("vgg-16", 1, Training(tokens=64), "tokens '64': expected none"),
        ("gpt2", 1, Training(tokens=2048), r"gpt2, line 2: .* at most 1,024 tokens"),
    ],
)
def test_a_training_that_cannot_be_is_named_with_what_is_accepted(name, batch, setup, message):
    with pytest.raises(InvalidInput, match=message):
        training_memory(name, batch, setup)


@pytest.mark.parametrize("name", PER_TOKEN)
def test_a_token_takes_keys_and_values_of_every_layer(name):
    assert cache_bytes(model_named(name), 1000) == 1000 * PER_TOKEN[name]


def test_the_cache_grows_with_tokens_and_batch_and_the_weights_do_not():
    found = serving_memory("llama-3-8b", 4, Serving(tokens=2048))

    assert found.most("KV cache") == 4 * 2048 * PER_TOKEN["llama-3-8b"]
    assert found.most("parameters") == 2 * 8_030_261_248
    assert (found.most("gradients"), found.most("optimizer state")) == (0, 0)
    assert found.peak.moment == "decoding, token 2,048"
    assert found.total_bytes == sum(found.peak.bytes_by_kind.values())


def test_a_narrow_cache_is_half():
    wide, narrow = (serving_memory("gpt2", 1, Serving(cache_dtype=dtype)).most("KV cache") for dtype in ("", "fp8"))

    assert wide == 2 * narrow


@pytest.mark.parametrize(("name", "file_gb"), [("llama-3-8b", 5.73), ("llama-2-7b", 3.89)])
def test_weights_of_4_bits_are_as_large_as_files_of_awq(name, file_gb):
    # https://huggingface.co/casperhansen/llama-3-8b-instruct-awq and https://huggingface.co/TheBloke/Llama-2-7B-AWQ
    found = serving_memory(name, 1, Serving("int4"))

    assert found.most("parameters") / 1e9 == pytest.approx(file_gb, rel=0.02)
    assert found.most("KV cache") == serving_memory(name, 1).most("KV cache")


@pytest.mark.parametrize("name", ["vgg-16", "mlp"])
def test_a_model_without_attention_is_not_served(name):
    with pytest.raises(InvalidInput, match=f"model '{name}': expected models that read tokens"):
        serving_memory(name, 1)


def test_pasted_decoders_can_be_served():
    text = "input tokens=128;embedding 64 vocabulary=100;attention heads=4 kv=2;linear 100"

    assert serving_memory(model_of_text(text), 1).most("KV cache") == 2 * 2 * 16 * 128 * 2


@pytest.mark.parametrize("settings", [{"dtype": "int3"}, {"cache_dtype": "nope"}, {"tokens": -1}])
def test_a_setting_of_serving_that_cannot_be_is_named(settings):
    with pytest.raises(InvalidInput, match="expected"):
        Serving(**settings)
