import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.memory.analysis import Serving, serving_memory
from gpuexplore.features.memory.analysis.models import model_named, model_of_text
from gpuexplore.features.memory.analysis.training import cache_bytes_per_token

# 2 x layers x KV heads x head dimension x 2 bytes
PER_TOKEN = {
    "gpt2": 2 * 12 * 12 * 64 * 2,
    "llama-2-7b": 2 * 32 * 32 * 128 * 2,
    "llama-3-8b": 2 * 32 * 8 * 128 * 2,
    "llama-3-70b": 2 * 80 * 8 * 128 * 2,
    "llama-3.2-1b": 2 * 16 * 8 * 64 * 2,
    "qwen2.5-7b": 2 * 28 * 4 * 128 * 2,
}


@pytest.mark.parametrize("name", PER_TOKEN)
def test_a_token_takes_keys_and_values_of_every_layer(name):
    assert cache_bytes_per_token(model_named(name)) == PER_TOKEN[name]


def test_the_cache_grows_with_tokens_and_batch_and_the_weights_do_not():
    found = serving_memory("llama-3-8b", 4, Serving(tokens=2048))

    assert found.cache_bytes == 4 * 2048 * PER_TOKEN["llama-3-8b"]
    assert found.parameters_bytes == 2 * 8_030_261_248
    assert (found.gradients_bytes, found.optimizer_bytes) == (0, 0)
    assert found.peak_moment == "decoding, token 2,048"
    assert found.total_bytes == sum(found.peak.bytes_by_kind.values())


def test_a_narrow_cache_is_half():
    wide, narrow = (serving_memory("gpt2", 1, Serving(cache_dtype=dtype)).cache_bytes for dtype in ("", "fp8"))

    assert wide == 2 * narrow


@pytest.mark.parametrize("name", ["vgg-16", "mlp"])
def test_a_model_without_attention_is_not_served(name):
    with pytest.raises(InvalidInput, match=f"model '{name}': accepted are models that read tokens"):
        serving_memory(name, 1)


def test_pasted_decoders_can_be_served():
    text = "input tokens=128;embedding 64 vocabulary=100;attention heads=4 kv=2;linear 100"

    assert serving_memory(model_of_text(text), 1).cache_bytes == 2 * 2 * 16 * 128 * 2


@pytest.mark.parametrize("settings", [{"dtype": "int4"}, {"cache_dtype": "nope"}, {"tokens": -1}])
def test_a_setting_that_cannot_be_is_named(settings):
    with pytest.raises(InvalidInput, match="accepted are"):
        Serving(**settings)
