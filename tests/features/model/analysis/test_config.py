"""Models from their config.json: what is read, and the sentence for a hostile, truncated or unknown one."""

import json

import pytest

from gpuexplore.core.errors import InvalidInput
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.config import LARGEST_FILE, READ, WITH_EXPERTS, layers_of_text
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
SIZES = ("hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size")
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128}
ROUTED = {"n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1}
FEW = {"num_local_experts": 32, "num_experts_per_tok": 4, "head_dim": 64, "num_key_value_heads": 8}
MAVERICK = {"num_local_experts": 128, "num_experts_per_tok": 1, "head_dim": 128, "num_key_value_heads": 8}
# billions of weights as their makers or the files on Hugging Face say
BILLIONS = [
    ("gemma", (3072, 28, 16, 24576, 256000), {"head_dim": 256}, 8.538),
    ("gemma2", (3584, 42, 16, 14336, 256000), {"head_dim": 256, "num_key_value_heads": 8}, 9.242),
    ("gemma3_text", (5376, 62, 32, 21504, 262208), {"head_dim": 128, "num_key_value_heads": 16}, 27.009),
    ("phi", (2560, 32, 32, 10240, 51200), {}, 2.78),
    ("phi3", (5120, 40, 40, 17920, 100352), {"num_key_value_heads": 10}, 14.66),
    ("gpt_oss", (2880, 24, 64, 2880, 201088), FEW, 20.91),
    ("falcon", (8192, 60, 128, 0, 65024), {"num_kv_heads": 8, "new_decoder_architecture": True}, 41.3),
    ("bloom", (14336, 70, 112, 0, 250880), {}, 176.25),
    ("gpt_neox", (6144, 44, 64, 24576, 50432), {}, 20.55),
    ("opt", (4096, 32, 32, 16384, 50272), {"max_position_embeddings": 2048}, 6.658),
    ("bert", (1024, 24, 16, 4096, 30522), {"max_position_embeddings": 512}, 0.3352),
    ("cohere", (12288, 64, 96, 33792, 256000), {"num_key_value_heads": 8}, 103.8),
    (
        "llama4_text",
        (5120, 48, 40, 8192, 202048),
        {**MAVERICK, "intermediate_size_mlp": 16384, "interleave_moe_layer_step": 2},
        400.7,
    ),
    ("deepseek_v2", (2048, 27, 16, 10944, 102400), {**LATENT, **ROUTED, "moe_intermediate_size": 1408}, 15.71),
    ("smollm3", (2048, 36, 16, 11008, 128256), {"num_key_value_heads": 4}, 3.075),
]
GPT2 = {"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12, "vocab_size": 50257, "n_positions": 1024}


def weights(model):
    return sum(tape_of(model, Training(tokens=64)).weights)


@pytest.mark.parametrize(("config", "name"), [(LLAMA, "llama-3-8b"), (GPT2, "gpt2")])
def test_a_config_has_the_weights_of_the_model_by_name(config, name):
    assert weights(model_of_text(layers_of_text(json.dumps(config), "config.json"))) == weights(model_named(name))


@pytest.mark.parametrize(("kind", "sizes", "rest", "billions"), BILLIONS)
def test_a_config_has_as_many_weights_as_its_makers_say(kind, sizes, rest, billions):
    config = {"model_type": kind, **dict(zip(SIZES, sizes, strict=True)), **rest}

    assert weights_of(config) / 1e9 == pytest.approx(billions, rel=2e-3)


def test_the_language_part_of_a_config_of_several_is_read():
    whole = {"model_type": "llava", "vision_config": {"hidden_size": 1024}, "text_config": LLAMA}

    assert layers_of_text(json.dumps(whole), "config.json") == layers_of_text(json.dumps(LLAMA), "config.json")


def test_a_file_of_layers_may_be_a_config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8-sig")

    assert read_layers_file(str(path))[1].sizes == (4096,)


def test_windows_follow_the_pattern_of_a_config_and_qwen_does_not_use_its_own():
    types = [*2 * (["sliding_attention"] * 2 + ["full_attention"]), "sliding_attention"]
    config = {**LLAMA, "num_hidden_layers": 7, "sliding_window": 64}

    def windows(config):
        layers = model_of_text(layers_of_text(json.dumps(config), "config.json")).layers
        return [layer.settings["window"] for layer in layers if layer.kind == "attention"]

    assert windows({**config, "model_type": "gemma3_text", "layer_types": types}) == [64, 64, 0, 64, 64, 0, 64]
    config |= {"num_local_experts": 4, "num_experts_per_tok": 2}
    assert windows({**config, "model_type": "gpt_oss"}) == [64, 0, 64, 0, 64, 0, 64]
    assert windows({**config, "model_type": "mistral"}) == [64] * 7
    assert windows({**config, "model_type": "qwen2"}) == [0] * 7
    assert windows({**config, "model_type": "qwen2", "use_sliding_window": True}) == [64] * 7


@pytest.mark.parametrize("kind", READ)
def test_every_kind_of_model_that_is_read_computes_something(kind):
    config = {**LLAMA, "model_type": kind, "num_hidden_layers": 2, "image_size": 224, "patch_size": 16}
    config |= {"depths": [2, 2, 2, 2], "hidden_sizes": [64, 128, 256, 512], "layer_type": "basic"}
    config |= {"attention_head_dim": 64, "num_embeds_ada_norm": 1000, "encoder_layers": 2}
    config |= {"joint_attention_dim": 96, "pooled_projection_dim": 32, "num_single_layers": 2}
    config |= {"num_experts": 4, "num_experts_per_tok": 2, "kv_lora_rank": 64} if kind in WITH_EXPERTS else {}

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
        (json.dumps({"model_type": "resnet", "depths": [2, 2]}), "depths"),
        (json.dumps({"model_type": "resnet", "depths": [2, 2, 2, 2], "hidden_sizes": [0, "1", 2, 3]}), "hidden_sizes"),
        (json.dumps({**LLAMA, "model_type": "gpt_oss", "sliding_window": "128"}), "sliding_window"),
        (json.dumps({**LLAMA, "model_type": "deepseek_v2"}), "num_local_experts or num_experts or n_routed_experts"),
        (json.dumps({**LLAMA, "model_type": "opt", "word_embed_proj_dim": 512}), "word_embed_proj_dim"),
        (json.dumps({**LLAMA, "text_config": {"model_type": "llama"}, "model_type": "x"}), "hidden_size"),
    ],
)
def test_a_file_that_describes_no_model_gets_a_sentence(text, said):
    with pytest.raises(InvalidInput, match=said):
        weights_of_text(text)


def weights_of_text(text):
    return tape_of(model_of_text(layers_of_text(text, "config.json")), Training(tokens=8))
