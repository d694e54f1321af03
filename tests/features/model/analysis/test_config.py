"""Models from their config.json: what is read, and the sentence for a hostile, truncated or unknown one."""

import json

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.config import LARGEST_FILE, READ, layers_of_text
from gpuexplore.features.model.analysis.models import model_named, model_of_text, read_layers_file, tape_of

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 8192,
    "rope_scaling": {"factor": 8.0},
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}


def weights(model):
    return sum(tape_of(model, Training(tokens=64)).weights)


@pytest.mark.parametrize(("config", "name"), [(LLAMA, "llama-3-8b"), (GPT2, "gpt2")])
def test_a_config_has_the_weights_of_the_model_by_name(config, name):
    assert weights(model_of_text(layers_of_text(json.dumps(config), "config.json"))) == weights(model_named(name))


def test_the_language_part_of_a_config_of_several_is_read():
    whole = {"model_type": "llava", "vision_config": {"hidden_size": 1024}, "text_config": LLAMA}

    assert layers_of_text(json.dumps(whole), "config.json") == layers_of_text(json.dumps(LLAMA), "config.json")


def test_a_file_of_layers_may_be_a_config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8-sig")

    assert read_layers_file(str(path))[1].sizes == (4096,)


@pytest.mark.parametrize("kind", READ)
def test_every_kind_of_model_that_is_read_computes_something(kind):
    config = {**LLAMA, "model_type": kind, "num_hidden_layers": 2, "image_size": 224, "patch_size": 16}

    assert weights_of(config) > 10**7


def weights_of(config):
    model = model_of_text(layers_of_text(json.dumps(config), "config.json"))
    return sum(tape_of(model, Training()).weights)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "complete JSON"),
        (json.dumps(LLAMA)[:100], "complete JSON"),
        ("[" * 100_000, "JSON"),
        ("{" + " " * LARGEST_FILE + "}", "characters"),
        ("[1, 2]", "JSON object"),
        ("{}", "model_type"),
        (json.dumps({**LLAMA, "model_type": "mamba2"}), "mamba2"),
        (json.dumps({**LLAMA, "model_type": ["llama"]}), "model_type"),
        (json.dumps({**LLAMA, "hidden_size": -1}), "hidden_size"),
        (json.dumps({**LLAMA, "hidden_size": "4096; import os"}), "hidden_size"),
        (json.dumps({**LLAMA, "num_hidden_layers": 10**8}), "layers"),
        (json.dumps({**LLAMA, "num_attention_heads": None}), "num_attention_heads"),
        (json.dumps({**LLAMA, "vocab_size": 10**400}), "vocab_size"),
        (json.dumps({**LLAMA, "num_key_value_heads": 5}), "heads"),
        (json.dumps({**LLAMA, "text_config": {"model_type": "llama"}, "model_type": "x"}), "hidden_size"),
    ],
)
def test_a_file_that_describes_no_model_gets_a_sentence(text, said):
    with pytest.raises(InvalidInput, match=said):
        weights_of_text(text)


def weights_of_text(text):
    return tape_of(model_of_text(layers_of_text(text, "config.json")), Training(tokens=8))
