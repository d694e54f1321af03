"""Layers of a model from its `config.json`, as Hugging Face's transformers and llm-foundry write it.

What decides the sizes is read, and nothing else; a model that has parts this does not know is refused, not guessed.
"""

import json
from collections.abc import Mapping
from typing import Any

from gpuexplore.core.errors import InvalidInput

LARGEST_FILE = 200_000  # characters: configs have 500 to 5,000
MOST = {"layers": 1000, "tokens": 10**7}
LIKE_LLAMA = (
    "llama",
    "mistral",
    "qwen2",
    "qwen3",
    "gemma",
    "phi3",
    "granite",
    "olmo2",
    "smollm3",
    "mixtral",
    "qwen2_moe",
    "qwen3_moe",
    "deepseek_v2",
    "deepseek_v3",
)
LIKE_GPT = ("gpt2", "gpt_neox", "opt", "mpt", "gpt_bigcode")
ENCODERS = ("bert", "roberta", "distilbert", "vit")
READ = (*LIKE_LLAMA, *LIKE_GPT, *ENCODERS)
NAMES: Mapping[str, tuple[str, ...]] = {  # of a size, in the configs of different models
    "width": ("hidden_size", "n_embd", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads"),
    "kv": ("num_key_value_heads",),
    "head": ("head_dim",),
    "features": ("intermediate_size", "n_inner", "ffn_dim", "hidden_dim"),
    "vocabulary": ("vocab_size",),
    "tokens": ("max_position_embeddings", "n_positions", "max_seq_len"),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "active": ("num_experts_per_tok", "num_experts_per_token"),
    "expert": ("moe_intermediate_size",),
    "dense": ("first_k_dense_replace",),
    "shared": ("shared_expert_intermediate_size",),
    "shared_count": ("n_shared_experts",),
    "latent_head": ("v_head_dim",),
    "rope": ("qk_rope_head_dim",),
    "rank": ("kv_lora_rank",),
    "query_rank": ("q_lora_rank",),
    "ratio": ("expansion_ratio",),
    "image": ("image_size",),
    "patch": ("patch_size",),
}


def layers_of_text(text: str, source: str) -> str:
    """Return the layers of the model that the text of a `config.json` describes.

    Raises:
        InvalidInput: it is no JSON object, or describes what is not known; says why.
    """
    if len(text) > LARGEST_FILE:
        raise InvalidInput.of(source, f"more than {LARGEST_FILE:,} characters", "a config.json")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source} is not complete JSON ({str(error)[:80]}): expected a config.json") from error
    if not isinstance(config, dict):
        raise InvalidInput.of(source, type(config).__name__, "a JSON object, as a config.json is")
    return layers_of(config, source)


def layers_of(config: Mapping[str, Any], source: str) -> str:
    """Return the layers of a config, as `gpuexplore.features.model.analysis.models` reads them.

    Raises:
        InvalidInput: a size is missing or no whole number, or the kind of model is not known; names it.
    """
    kind = config.get("model_type")
    if isinstance(config.get("text_config"), dict) and kind not in READ:
        return layers_of(config["text_config"], source)
    if kind not in READ:
        raise InvalidInput.of(f"model_type of {source}", kind, READ)
    sizes = {name: _size(config, name, source) for name in NAMES}
    for name in ("width", "layers", "heads", *(() if kind == "vit" else ("vocabulary",))):
        if not sizes[name]:
            raise InvalidInput(f"{source} has no {' or '.join(NAMES[name])}: expected a whole number from 1")
    if sizes["layers"] > MOST["layers"]:
        raise InvalidInput.of(f"layers of {source}", sizes["layers"], f"at most {MOST['layers']:,}")
    if kind in LIKE_LLAMA:
        return _like_llama(kind, config, sizes)
    return _like_gpt(kind, config, sizes) if kind in LIKE_GPT else _encoder(kind, sizes)


def _size(config: Mapping[str, Any], name: str, source: str) -> int:
    """Return a size of a config; 0 where it has none."""
    key = next((key for key in NAMES[name] if config.get(key) is not None), None)
    if key is None:
        return 0
    value = config[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 10**9:
        raise InvalidInput.of(f"{key} of {source}", value, "whole numbers from 0 to 1,000,000,000")
    return value


def _tokens(sizes: Mapping[str, int]) -> int:
    """Return how many tokens a sequence has by default: as many as the model reads, at most 4,096."""
    return min(sizes["tokens"] or 2048, 4096)


def _like_llama(kind: str, config: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Return a decoder with RMS norms and gated blocks, dense or with experts, its attention plain or latent."""
    biases = "yes" if kind.startswith("qwen2") or config.get("attention_bias") else "no"
    attention = f"attention heads={sizes['heads']} kv={sizes['kv'] or sizes['heads']} bias={biases} rotary=yes"
    if kind.startswith("qwen2"):
        attention += " out_bias=no"
    if sizes["head"]:
        attention += f" head={sizes['head']}"
    if sizes["rank"]:
        head = sizes["latent_head"] or 128
        rope = sizes["rope"] or 64
        attention = f"latent heads={sizes['heads']} rank={sizes['rank']} query_rank={sizes['query_rank']}"
        attention += f" head={head} rope={rope}"
    dense = f"gated {sizes['features'] or 4 * sizes['width']}"
    experts = dense
    if sizes["experts"] and sizes["active"]:
        features = sizes["expert"] or sizes["features"]
        shared = sizes["shared"] or features * sizes["shared_count"]
        experts = f"experts {features} count={sizes['experts']} active={sizes['active']} shared={shared}"
    first = sizes["dense"] if experts != dense else 0
    blocks = [
        _block(first, "rms_norm", attention, dense),
        _block(sizes["layers"] - first, "rms_norm", attention, experts),
    ]
    tied = "yes" if config.get("tie_word_embeddings", kind == "gemma") else "no"
    return "\n".join(
        (
            f"input tokens={_tokens(sizes)}",
            f"embedding {sizes['width']} vocabulary={sizes['vocabulary']}",
            *filter(None, blocks),
            "rms_norm",
            f"linear {sizes['vocabulary']} bias=no tied={tied}",
        )
    )


def _block(count: int, norm: str, attention: str, feed_forward: str) -> str:
    """Return so many blocks of attention and a feed-forward part, each with its norm and its residual sum."""
    if count < 1:
        return ""
    lines = ["split", norm, attention, "add", "split", norm, *feed_forward.split("\n"), "add"]
    return "\n".join((f"repeat {count}", *(f"  {line}" for line in lines), "end"))


def _like_gpt(kind: str, config: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Return a decoder with layer norms and a perceptron of two layers."""
    bias = "no" if config.get("no_bias") or config.get("use_bias") is False else "yes"
    has_positions = kind in ("gpt2", "opt", "gpt_bigcode") or (kind == "mpt" and config.get("learned_pos_emb", True))
    features = sizes["features"] or (sizes["ratio"] or 4) * sizes["width"]
    groups = 1 if config.get("multi_query") else sizes["kv"] or sizes["heads"]
    rotary = "no" if has_positions or kind == "mpt" else "yes"
    attention = f"attention heads={sizes['heads']} kv={groups} bias={bias} rotary={rotary}"
    perceptron = f"linear {features} bias={bias}\ngelu\nlinear {sizes['width']} bias={bias}"
    is_tied = config.get("tie_word_embeddings", kind != "gpt_neox")
    positions = f" positions={sizes['tokens'] or _tokens(sizes)}" if has_positions else ""
    return "\n".join(
        (
            f"input tokens={_tokens(sizes)}",
            f"embedding {sizes['width']} vocabulary={sizes['vocabulary']}{positions}",
            _block(sizes["layers"], "layer_norm", attention, perceptron),
            "layer_norm",
            f"linear {sizes['vocabulary']} bias=no tied={'yes' if is_tied else 'no'}",
        )
    )


def _encoder(kind: str, sizes: Mapping[str, int]) -> str:
    """Return an encoder, whose tokens attend to all others: of text, or of the squares of an image."""
    attention = f"attention heads={sizes['heads']} bias=yes causal=no"
    perceptron = f"linear {sizes['features'] or 4 * sizes['width']}\ngelu\nlinear {sizes['width']}"
    blocks = _block(sizes["layers"], "layer_norm", attention, perceptron)
    if kind == "vit":
        image = sizes["image"] or 224
        first = [f"input 3x{image}x{image}", f"patches {sizes['width']} size={sizes['patch'] or 16}"]
        return "\n".join((*first, blocks, "layer_norm", "first", "linear 1000"))
    tokens = min(sizes["tokens"] or 512, 4096)
    first = [
        f"input tokens={tokens}",
        f"embedding {sizes['width']} vocabulary={sizes['vocabulary']} positions={tokens}",
    ]
    return "\n".join((*first, "layer_norm", blocks, f"linear {sizes['vocabulary']} tied=yes"))
