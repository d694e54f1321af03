"""Models from their config.json: what is read, and the sentence for a hostile, truncated or unknown one."""

import json

import pytest

from gpuexplore.core import LONGEST_LIST, InvalidInput
from gpuexplore.features.model.analysis import Training
from gpuexplore.features.model.analysis.config import LARGEST_FILE, READ, WITH_EXPERTS, layers_of, layers_of_text
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
LAYERED = {"vocab_size": 32, "num_hidden_layers": 4, "hidden_size": 64, "num_attention_heads": 4}
LATENT = {"kv_lora_rank": 512, "qk_rope_head_dim": 64, "v_head_dim": 128}
ROUTED = {"n_routed_experts": 64, "num_experts_per_tok": 6, "n_shared_experts": 2, "first_k_dense_replace": 1}
FEW = {"num_local_experts": 32, "num_experts_per_tok": 4, "head_dim": 64, "num_key_value_heads": 8}
MAVERICK = {"num_local_experts": 128, "num_experts_per_tok": 1, "head_dim": 128, "num_key_value_heads": 8}
REFINED_WEB = {"multi_query": True, "parallel_attn": True, "bias": False, "alibi": False}
PHI_MOE = {"num_key_value_heads": 8, "num_local_experts": 16, "num_experts_per_tok": 2}
PHI_MOE |= {"attention_bias": True, "lm_head_bias": True}
STABLE_LM = {"num_key_value_heads": 8, "use_parallel_residual": True, "qk_layernorm": True}
QWEN_MOE = {"moe_intermediate_size": 1408, "shared_expert_intermediate_size": 5632}
QWEN_MOE |= {"num_experts": 60, "num_experts_per_tok": 4}
SEED = {"num_key_value_heads": 8, "head_dim": 128, "attention_bias": True}
ERNIE = {"num_key_value_heads": 2, "head_dim": 128, "tie_word_embeddings": True}
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
# weights of files on Hugging Face, exactly: parts of one norm, norms of queries and keys, biases of the logits
WEIGHTS = [
    ("gptj", (4096, 28, 16, 16384, 50400), {}, 6_050_882_784),
    ("phi", (2560, 32, 32, 10240, 51200), {}, 2_779_683_840),
    ("phimoe", (4096, 32, 32, 6400, 32064), PHI_MOE, 41_873_153_344),
    ("bloom", (1024, 24, 16, 0, 250880), {}, 559_214_592),
    ("mpt", (4096, 32, 32, 0, 50432), {"no_bias": True, "attn_config": {"alibi": True}}, 6_649_286_656),
    ("cohere", (12288, 64, 96, 33792, 256000), {"num_key_value_heads": 8, "use_qk_norm": True}, 103_810_674_688),
    ("stablelm", (5120, 40, 32, 13824, 100352), STABLE_LM, 12_143_185_920),
    ("olmo2", (4096, 32, 32, 11008, 100352), {}, 7_298_617_344),
    ("olmoe", (2048, 16, 16, 1024, 50304), {"num_experts": 64, "num_experts_per_tok": 8}, 6_919_161_856),
    ("qwen2_moe", (2048, 24, 16, 5632, 151936), QWEN_MOE, 14_315_784_192),
    ("seed_oss", (5120, 64, 80, 27648, 155136), SEED, 36_151_104_512),
    ("exaone", (4096, 32, 32, 14336, 102400), {"num_key_value_heads": 8}, 7_818_448_896),
    ("ernie4_5", (1024, 18, 16, 3072, 103424), ERNIE, 360_748_032),
    ("qwen", (4096, 32, 32, 22016, 151936), {"no_bias": True, "kv_channels": 128}, 7_721_324_544),
    ("RefinedWebModel", (4544, 32, 71, 0, 65024), REFINED_WEB, 6_921_720_704),
    ("RefinedWeb", (8192, 60, 128, 0, 65024), {**REFINED_WEB, "multi_query": None, "n_head_kv": 8}, 41_303_293_952),
    ("gemma3_text", (2560, 34, None, 10240, None), {}, 3_880_263_168),
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


@pytest.mark.parametrize(("kind", "sizes", "rest", "count"), WEIGHTS)
def test_a_config_has_exactly_the_weights_of_its_file(kind, sizes, rest, count):
    untied = {"tie_word_embeddings": kind in ("bloom", "mpt", "cohere", "RefinedWebModel", "RefinedWeb", "gemma3_text")}

    assert weights_of({"model_type": kind, **dict(zip(SIZES, sizes, strict=True)), **untied, **rest}) == count


@pytest.mark.parametrize(
    ("kind", "rest", "norms"),
    [
        ("gpt_neox", {}, 2),
        ("gpt_neox", {"use_parallel_residual": False}, 0),
        ("gptj", {}, 1),
        ("falcon", {}, 1),
        ("falcon", {"new_decoder_architecture": True}, 2),
        ("falcon", {"new_decoder_architecture": True, "num_ln_in_parallel_attn": 1}, 1),
        ("falcon", {"parallel_attn": False}, 0),
        ("cohere", {}, 1),
        ("stablelm", {}, 0),
    ],
)
def test_attention_and_perceptron_are_of_one_input_where_the_model_has_them_side_by_side(kind, rest, norms):
    layers = model_of_text(layers_of({"model_type": kind, **LAYERED, **rest}, "config.json")).layers
    kinds = [layer.kind for layer in layers]

    assert kinds.count("shortcut") == (4 if norms else 0)
    assert sum(kind.endswith("_norm") for kind in kinds) == 4 * (norms or 2) + 1


def test_a_norm_of_queries_has_a_weight_for_each_number_of_a_head_or_of_all_heads():
    plain, shared, whole = (weights_of({"model_type": kind, **LAYERED}) for kind in ("llama", "qwen3", "olmo2"))

    assert (shared - plain, whole - plain) == (4 * 2 * 16, 4 * 2 * 64)


@pytest.mark.parametrize("odd", ["1e9", {"alibi": 1}, [1], 10**400, None, 2])
@pytest.mark.parametrize("key", ["use_parallel_residual", "attn_config", "tie_word_embeddings", "multi_query"])
def test_values_that_no_config_has_are_read_as_something_or_refused(key, odd):
    assert weights_of({"model_type": "gpt_bigcode", **LAYERED, key: odd}) > 10**5


def test_a_config_of_chatglm_has_names_of_its_own():
    named = {"hidden_size": 4096, "num_layers": 28, "num_attention_heads": 32, "ffn_hidden_size": 13696}
    named |= {"padded_vocab_size": 65024, "kv_channels": 128, "multi_query_group_num": 2, "add_qkv_bias": True}

    assert weights_of({"model_type": "chatglm", "tie_word_embeddings": False, **named}) == 6_243_584_000
    with pytest.raises(InvalidInput, match="ffn_hidden_size"):  # of the first ChatGLM, whose blocks are others
        weights_of({"model_type": "chatglm", **named, "ffn_hidden_size": None, "inner_hidden_size": 16384})


def test_the_language_part_of_a_config_of_several_is_read():
    whole = {"model_type": "llava", "vision_config": {"hidden_size": 1024}, "text_config": LLAMA}

    assert layers_of_text(json.dumps(whole), "config.json") == layers_of_text(json.dumps(LLAMA), "config.json")


def test_a_file_of_layers_may_be_a_config(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps(LLAMA), encoding="utf-8-sig")

    assert read_layers_file(str(path))[1].sizes == (4096,)


def test_a_config_may_be_longer_than_layers_are(tmp_path):
    path = tmp_path / "config.json"
    path.write_text(json.dumps({**LLAMA, "quantization_config": {"ignore": ["model.layers.0.mlp"] * 1000}}))

    assert path.stat().st_size > LONGEST_LIST
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
        pytest.param("{" + " " * LARGEST_FILE + "}", "characters", id="long"),
        ("[1, 2]", "JSON object"),
        ("{}", "model_type"),
        (json.dumps({**LLAMA, "model_type": "mamba2"}), "'mamba2': expected a model without a recurrence"),
        (json.dumps({**LLAMA, "model_type": "qwen3_next"}), "without linear attention"),
        (
            json.dumps({**LLAMA, "model_type": "deepseek_v32"}),
            "without sparse attention, to tokens that an index chooses",
        ),
        (json.dumps({"model_type": "t5", "d_model": 512}), "without an encoder of text next to a decoder"),
        (json.dumps({"model_type": "x", "text_config": {"model_type": "gemma3n_text"}}), "blocks of different sizes"),
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
