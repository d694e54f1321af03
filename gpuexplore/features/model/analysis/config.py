"""Layers of a model from its `config.json`, as Hugging Face's transformers and llm-foundry write it.

What decides the sizes is read, and nothing else; a model that has parts this does not know is refused, not guessed.
"""

import json
from collections.abc import Mapping
from functools import partial
from typing import Any

from gpuexplore.core.errors import InvalidInput, require

LARGEST_FILE = 4_000_000  # characters: configs have 500 to 5,000, those that list quantized weights 3 million
MOST = {"layers": 1000, "tokens": 10**7}
WITH_EXPERTS = (
    *("mixtral", "qwen2_moe", "qwen3_moe", "qwen3_vl_moe_text", "olmoe", "granitemoe", "gpt_oss", "llama4_text"),
    *("phimoe", "glm4_moe", "minimax_m2", "deepseek", "deepseek_v2", "deepseek_v3", "kimi_k2", "dots1"),
)
LIKE_LLAMA = (
    *("llama", "mistral", "ministral3", "gemma", "gemma2", "gemma3_text", "phi3", "granite", "olmo2", "olmo3"),
    *("qwen2", "qwen2_vl", "qwen2_vl_text", "qwen2_5_vl", "qwen2_5_vl_text", "qwen3", "qwen3_vl_text", "glm4"),
    *("cohere", "cohere2", "stablelm", "internlm2", "baichuan", "smollm3", "seed_oss", "mimo", "ernie4_5", "exaone"),
    *("exaone4", "hunyuan_v1_dense", "apertus", "arcee", "nemotron", "qwen", "chatglm", *WITH_EXPERTS),
)
LIKE_GPT = (
    *("gpt2", "gpt_neox", "opt", "mpt", "gpt_bigcode", "starcoder2", "phi", "falcon", "bloom", "gptj", "codegen"),
    *("RefinedWeb", "RefinedWebModel"),  # Falcon as it was first
)
# a denoising step, with the tokens of text that attend jointly with those of the image
DIFFUSION = {"DiTTransformer2DModel": 0, "SD3Transformer2DModel": 333, "FluxTransformer2DModel": 512}
HAVING: Mapping[str, tuple[str, ...]] = {  # kinds, or how their names begin
    "latent attention": ("deepseek_v2", "deepseek_v3", "kimi_k2"),
    "four norms": ("gemma2", "gemma3_text", "glm4"),  # after each part of a block too
    "layer norms": ("stablelm", "phimoe", "nemotron"),  # those of Cohere have no shift
    "no gate": ("apertus", "arcee", "nemotron"),
    "biases of queries, keys and values alone": ("qwen2", "glm4", "stablelm", "seed_oss", "mimo", "chatglm"),
    "norms of queries and keys": (
        *("qwen3", "gemma3", "olmo2", "olmo3", "olmoe", "minimax", "hunyuan", "apertus", "exaone4", "dots1"),
    ),
    "and with a weight for each of all heads": ("olmo", "cohere", "stablelm", "minimax"),
    "parallel parts": ("gpt_neox", "falcon", "phi", "gptj", "codegen"),
    "biased logits": ("phi", "gptj", "codegen"),
    # where a config does not say so, as transformers leaves out what is its default
    "tied tables": ("gemma", "gemma2", "gemma3_text", "smollm3", "cohere", "cohere2"),
    "tables of their own": ("gpt_neox", "phi", "gptj", "codegen"),
}
UNREAD: Mapping[str, tuple[str, ...]] = {  # why a kind is refused, by how its name begins
    "a recurrence, as of state spaces": (
        *("mamba", "falcon_mamba", "falcon_h1", "jamba", "bamba", "zamba", "nemotron_h", "granitemoehybrid", "rwkv"),
        *("recurrent_gemma", "xlstm", "plamo2"),
    ),
    "linear attention or short convolutions": (
        *("qwen3_next", "qwen3_5", "kimi_linear", "minimax_text", "minimax_m1", "bailing_moe_linear", "lfm2"),
    ),
    "sparse attention, to tokens that an index chooses": (
        "deepseek_v32",
        "deepseek_v4",
        "deepseek_ref",
        "glm_moe_dsa",
        "minimax_m3",
    ),
    "an encoder of text next to a decoder": (
        *("t5", "mt5", "umt5", "longt5", "bart", "mbart", "pegasus", "marian", "m2m_100"),
    ),
    "blocks of different sizes": ("gemma3n", "gemma4", "openelm", "nemotron-nas", "mimo_v2", "step3"),
}
READ = (
    *(*LIKE_LLAMA, *LIKE_GPT, "bert", "roberta", "xlm-roberta", "distilbert", "vit"),
    *("whisper", "resnet", *DIFFUSION),
)
NAMES: Mapping[str, tuple[str, ...]] = {  # of a size, in the configs of different models
    "width": ("hidden_size", "n_embd", "n_embed", "d_model", "dim"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "encoder_layers"),
    "heads": ("num_attention_heads", "n_head", "n_heads", "encoder_attention_heads"),
    "kv": ("num_key_value_heads", "num_kv_heads", "kv_n_heads", "n_head_kv", "multi_query_group_num"),
    "head": ("head_dim", "attention_head_dim", "kv_channels"),
    "features": ("intermediate_size", "n_inner", "ffn_dim", "hidden_dim", "encoder_ffn_dim", "ffn_hidden_size"),
    "vocabulary": ("vocab_size", "padded_vocab_size"),
    "tokens": ("max_position_embeddings", "n_positions", "max_seq_len", "max_target_positions", "seq_length"),
    "window": ("sliding_window",),
    "experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "active": ("num_experts_per_tok", "num_experts_per_token"),
    "expert": ("moe_intermediate_size",),
    "dense": ("first_k_dense_replace",),
    "dense_features": ("intermediate_size_mlp",),
    "sparse_step": ("decoder_sparse_step", "interleave_moe_layer_step"),
    "shared": ("shared_expert_intermediate_size",),
    "shared_count": ("n_shared_experts",),
    "latent_head": ("v_head_dim",),
    "rope": ("qk_rope_head_dim",),
    "rank": ("kv_lora_rank",),
    "query_rank": ("q_lora_rank",),
    "ratio": ("expansion_ratio",),
    "image": ("image_size", "sample_size"),
    "patch": ("patch_size",),
    "types": ("type_vocab_size",),
    "decoder_layers": ("decoder_layers",),
    "channels": ("in_channels", "num_mel_bins"),
    "out_channels": ("out_channels",),
    "frames": ("max_source_positions",),
    "labels": ("num_embeds_ada_norm",),
    "text": ("joint_attention_dim",),
    "pooled": ("pooled_projection_dim",),
    "single": ("num_single_layers",),
    "parallel_norms": ("num_ln_in_parallel_attn",),
}


def layers_of_text(text: str, source: str) -> str:
    """Return the layers of the model that the text of a `config.json` describes.

    Raises:
        InvalidInput: it is no JSON object, or describes what is not known; says why.
    """
    require(len(text) <= LARGEST_FILE, source, f"more than {LARGEST_FILE:,} characters", "a config.json")
    try:
        config = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InvalidInput(f"{source} is not complete JSON ({str(error)[:80]}): expected a config.json") from error
    require(isinstance(config, dict), source, type(config).__name__, "a JSON object, as a config.json is")
    return layers_of(config, source)


def layers_of(config: Mapping[str, Any], source: str) -> str:
    """Return the layers of a config, as `gpuexplore.features.model.analysis.models` reads them.

    Raises:
        InvalidInput: a size is missing or no whole number, or the kind of model is not known; names it.
    """
    kind = config.get("model_type") or config.get("_class_name")
    if why := next((why for why, begun in UNREAD.items() if str(kind).startswith(begun)), None):
        raise InvalidInput.of(f"model_type of {source}", kind, f"a model without {why}, which is not counted here")
    if isinstance(config.get("text_config"), dict) and (kind not in READ or "hidden_size" not in config):
        return layers_of(config["text_config"], source)
    if kind not in READ:
        raise InvalidInput.of(f"model_type of {source}", kind, READ)
    if kind == "resnet":
        return _resnet(config, source)
    sizes = _sizes(kind, config, source)
    if kind in LIKE_LLAMA:
        return _like_llama(kind, config, sizes)
    if kind in LIKE_GPT:
        return _like_gpt(kind, config, sizes)
    if DIFFUSION.get(kind):
        return _with_text(kind, config, sizes)
    return {"whisper": _whisper, "DiTTransformer2DModel": _dit}.get(kind, partial(_encoder, kind))(sizes)


def _sizes(kind: str, config: Mapping[str, Any], source: str) -> dict[str, int]:
    """Return the sizes of a config, those that its kind needs among them."""
    nested = config.get("attn_config")  # of MPT
    flat = {**nested, **config} if isinstance(nested, dict) else config
    # what a config of Gemma 3 leaves out
    usual = {"heads": 8, "kv": 4, "head": 256, "vocabulary": 262208} if kind == "gemma3_text" else {}
    sizes = {name: _size(flat, name, source) or usual.get(name, 0) for name in NAMES}
    if kind in DIFFUSION:
        sizes["width"] = sizes["heads"] * sizes["head"]
        sizes["vocabulary"] = sizes["labels"]
    inputs = ("text", "pooled") if DIFFUSION.get(kind) else () if kind == "vit" else ("vocabulary",)
    needed = [
        *("width", "layers", "heads", *inputs, *(("features",) if kind == "chatglm" else ())),
        *(("experts", "active") if kind in WITH_EXPERTS else ()),
        *(("rank",) if kind in HAVING["latent attention"] else ()),
    ]
    for name in needed:
        if not sizes[name]:
            raise InvalidInput(f"{source} has no {' or '.join(NAMES[name])}: expected a whole number from 1")
    require(sizes["layers"] <= MOST["layers"], f"layers of {source}", sizes["layers"], f"at most {MOST['layers']:,}")
    projected = config.get("word_embed_proj_dim", sizes["width"])
    require(projected == sizes["width"], f"word_embed_proj_dim of {source}", projected, (str(sizes["width"]),))
    return sizes


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


def _with(line: str, settings: Mapping[str, object]) -> str:
    """Return a line with those settings that apply."""
    return " ".join((line, *(text for text, applies in settings.items() if applies)))


def _like_llama(kind: str, config: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Return a decoder with RMS norms and gated blocks, dense or with experts, its attention plain or latent."""
    is_biased = kind.startswith("qwen2") or next(
        (config[key] for key in ("attention_bias", "use_qkv_bias", "add_qkv_bias") if config.get(key) is not None),
        kind in ("qwen", "gpt_oss"),
    )
    is_normed = kind.startswith(HAVING["norms of queries and keys"])
    attention = _with(
        f"attention heads={sizes['heads']} kv={sizes['kv'] or sizes['heads']} rotary=yes",
        {
            "bias=yes": is_biased,
            "out_bias=no": kind == "qwen" or kind.startswith(HAVING["biases of queries, keys and values alone"]),
            f"head={sizes['head']}": sizes["head"],
            f"qk_norm={1 + kind.startswith(HAVING['and with a weight for each of all heads'])}": kind != "llama4_text"
            and config.get("qk_layernorm", config.get("use_qk_norm", is_normed)),  # those of Llama 4 have no weights
            "sinks=yes": kind == "gpt_oss",
        },
    )
    if sizes["rank"]:
        ranks = f"rank={sizes['rank']} query_rank={sizes['query_rank']} rope={sizes['rope'] or 64}"
        attention = f"latent heads={sizes['heads']} {ranks} head={sizes['latent_head'] or 128}"
    features = (sizes["dense_features"] or sizes["features"] or 4 * sizes["width"]) // (1 + (kind == "qwen"))  # of both
    dense = f"gated {features} bias={'yes' if config.get('mlp_bias') else 'no'}"
    if kind in HAVING["no gate"]:
        dense = f"linear {features} bias=no\nrelu\nlinear {sizes['width']} bias=no"
    experts = dense
    if sizes["experts"] and sizes["active"]:
        features = sizes["expert"] or sizes["features"]
        shared = sizes["shared"] or features * (sizes["shared_count"] or kind == "llama4_text")
        experts = _with(
            f"experts {features} count={sizes['experts']} active={sizes['active']} shared={shared}",
            {"bias=yes": kind == "gpt_oss", "gated=yes": sizes["shared"]},
        )
    sparse = sizes["layers"] // max(1, sizes["sparse_step"])
    only = config.get("mlp_only_layers")
    first = max(sizes["dense"], sizes["layers"] - sparse, len(only) if isinstance(only, list) else 0)
    first = min(first, sizes["layers"]) if experts != dense else 0
    norm = "layer_norm" if kind in HAVING["layer norms"] else "rms_norm"
    norms = norm, int(kind.startswith("cohere") or bool(config.get("use_parallel_residual")))
    if kind in HAVING["four norms"]:
        attention, dense, experts = (f"{part}\n{norm}" for part in (attention, dense, experts))
    every, window = _windows(kind, config, sizes)
    local = attention.replace("attention ", f"attention window={window} ") if window else attention
    period = "".join(_block(1, norms, part, experts) + "\n" for part in (*[local] * (every - 1), attention))
    rest = sizes["layers"] - first
    return "\n".join(
        filter(
            None,
            (
                f"input tokens={_tokens(sizes)}",
                f"embedding {sizes['width']} vocabulary={sizes['vocabulary']}",
                _block(first, norms, attention, dense),
                f"repeat {rest // every}\n{period}end" if every > 1 and rest >= every else "",
                _block(rest % every if every else rest, norms, local, experts),
                norm,
                _logits(kind, config, sizes, is_tied=kind in HAVING["tied tables"]),
            ),
        )
    )


def _logits(kind: str, config: Mapping[str, Any], sizes: Mapping[str, int], *, is_tied: bool) -> str:
    """Return the last product, of a table that is by default tied to the embedding or not."""
    is_biased = config.get("lm_head_bias", kind in HAVING["biased logits"])
    tied = "yes" if config.get("tie_word_embeddings", is_tied) else "no"
    return f"linear {sizes['vocabulary']} bias={'yes' if is_biased else 'no'} tied={tied}"


def _windows(kind: str, config: Mapping[str, Any], sizes: Mapping[str, int]) -> tuple[int, int]:
    """Return which layer, of how many, attends to all tokens, 0 for none, and the window of the others; 0 without."""
    kinds = config.get("layer_types")
    every = {"gemma2": 2, "gpt_oss": 2, "gemma3_text": 6, "cohere2": 4, "olmo3": 4, "exaone4": 4}.get(kind, 0)
    if isinstance(kinds, list) and "full_attention" in kinds:
        every = kinds.index("full_attention") + 1
    is_used = config.get("use_sliding_window", not kind.startswith("qwen")) and kind not in ("mixtral", "phi3")
    return (every, sizes["window"]) if is_used and sizes["window"] else (0, 0)


def _block(count: int, norms: tuple[str, int], attention: str, feed_forward: str) -> str:
    """Return so many blocks of attention and a feed-forward part, each with its norm and its residual sum.

    Args:
        norms: their kind, and how many a block has where both parts are of one input: 1 or 2; 0 where they follow.
    """
    if count < 1:
        return ""
    norm, parallel = norms
    parts = attention.split("\n"), feed_forward.split("\n")
    lines = ["split", norm, *parts[0], "add", "split", norm, *parts[1], "add"]
    if parallel:
        own = [norm] * (parallel - 1)
        both = ["split", *own, *parts[0], "shortcut", *own, *parts[1], "add"]
        lines = ["split", *[norm] * (2 - parallel), *both, "add"]
    return "\n".join((f"repeat {count}", *(f"  {line}" for line in lines), "end"))


def _like_gpt(kind: str, config: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Return a decoder with layer norms and a perceptron of two layers."""
    is_bare = config.get("no_bias") or not config.get("use_bias", config.get("bias", kind != "falcon"))
    nested = config.get("attn_config")  # of MPT
    has_alibi = kind == "bloom" or (nested if isinstance(nested, dict) else config).get("alibi")
    has_positions = kind in ("gpt2", "opt", "gpt_bigcode", "mpt") and not has_alibi and config.get("learned_pos_emb", 1)
    features = sizes["features"] or (sizes["ratio"] or 4) * sizes["width"]
    is_new = config.get(
        "new_decoder_architecture", kind == "RefinedWeb"
    )  # of Falcon: without it all heads share one of keys
    has_one = config.get("multi_query", kind in ("falcon", "gpt_bigcode")) and not is_new
    norm = "rms_norm" if kind == "mpt" and is_bare else "layer_norm"  # without a shift, as of MPT
    attention = _with(
        f"attention heads={sizes['heads']} kv={1 if has_one else sizes['kv'] or sizes['heads']}",
        {
            "bias=yes": not is_bare and kind not in ("gptj", "codegen"),
            "rotary=yes": not (has_positions or has_alibi or kind == "mpt"),
            f"window={sizes['window']}": kind == "starcoder2" and sizes["window"],
        },
    )
    perceptron = "\ngelu\n".join(
        f"linear {each} bias={'no' if is_bare else 'yes'}" for each in (features, sizes["width"])
    )
    own = 2 if kind == "gpt_neox" or is_new else 1
    is_parallel = config.get("parallel_attn", config.get("use_parallel_residual", kind in HAVING["parallel parts"]))
    positions = f" positions={(sizes['tokens'] or _tokens(sizes)) + 2 * (kind == 'opt')}" if has_positions else ""
    return "\n".join(
        (
            f"input tokens={_tokens(sizes)}",
            f"embedding {sizes['width']} vocabulary={sizes['vocabulary']}{positions}",
            *["layer_norm"] * (kind == "bloom"),
            _block(
                sizes["layers"], (norm, (sizes["parallel_norms"] or own) if is_parallel else 0), attention, perceptron
            ),
            norm,
            _logits(kind, config, sizes, is_tied=kind not in HAVING["tables of their own"]),
        )
    )


def _encoder(kind: str, sizes: Mapping[str, int]) -> str:
    """Return an encoder, whose tokens attend to all others: of text, or of the squares of an image."""
    attention = f"attention heads={sizes['heads']} bias=yes causal=no"
    perceptron = f"linear {sizes['features'] or 4 * sizes['width']}\ngelu\nlinear {sizes['width']}"
    blocks = _block(sizes["layers"], ("layer_norm", 0), attention, perceptron)
    if kind == "vit":
        image = sizes["image"] or 224
        first = [f"input 3x{image}x{image}", f"patches {sizes['width']} size={sizes['patch'] or 16}"]
        return "\n".join((*first, blocks, "layer_norm", "first", "linear 1000"))
    tokens = min(sizes["tokens"] or 512, 4096)
    first = [
        f"input tokens={tokens}",
        f"embedding {sizes['width']} vocabulary={sizes['vocabulary']} positions={tokens} types={sizes['types']}",
    ]
    head = f"linear {sizes['width']} whole=yes\ngelu"
    return "\n".join((*first, "layer_norm", blocks, head, f"layer_norm\nlinear {sizes['vocabulary']} tied=yes"))


def _whisper(sizes: Mapping[str, int]) -> str:
    """Return an encoder of 30 s of sound, and a decoder that attends to what it made.

    https://arxiv.org/abs/2212.04356
    """
    width = sizes["width"]
    attention = f"attention heads={sizes['heads']} bias=yes key_bias=no"
    perceptron = f"linear {sizes['features'] or 4 * width}\ngelu\nlinear {width}"
    crossed = f"{attention}\nadd\nsplit\nlayer_norm\n{attention} cross=yes"
    return "\n".join(
        (
            f"input tokens={_tokens(sizes)}",
            f"encode {2 * (sizes['frames'] or 1500)}x{sizes['channels'] or 80}",
            f"conv1d {width} kernel=3\ngelu\nconv1d {width} kernel=3 stride=2\ngelu\npositions",
            _block(sizes["layers"], ("layer_norm", 0), f"{attention} causal=no", perceptron),
            "layer_norm\ndecode",
            f"embedding {width} vocabulary={sizes['vocabulary']} positions={sizes['tokens'] or _tokens(sizes)}",
            _block(sizes["decoder_layers"] or sizes["layers"], ("layer_norm", 0), crossed, perceptron),
            f"layer_norm\nlinear {sizes['vocabulary']} bias=no tied=yes",
        )
    )


def _dit(sizes: Mapping[str, int]) -> str:
    """Return a diffusion transformer, one step of it: squares of an image, a time step and a class as a vector."""
    width = sizes["width"]
    side = sizes["image"] or 32
    patch = sizes["patch"] or 2
    out = patch**2 * (sizes["out_channels"] or 2 * (sizes["channels"] or 4))
    attention = f"attention heads={sizes['heads']} bias=yes causal=no"
    return "\n".join(
        (
            f"input {sizes['channels'] or 4}x{side}x{side}",
            f"encode 256\nlinear {width}\nsilu\nlinear {width}\nlabels {sizes['labels'] + 1}\ndecode",
            f"patches {width} size={patch} extra=0",
            _block(sizes["layers"], ("adaptive_norm 3", 0), attention, f"linear {4 * width}\ngelu\nlinear {width}"),
            f"adaptive_norm 2\nlinear {out}",
        )
    )


def _with_text(kind: str, config: Mapping[str, Any], sizes: Mapping[str, int]) -> str:
    """Return a diffusion transformer whose image and text attend to each other, one step of it.

    https://arxiv.org/abs/2403.03206; with single blocks of both as one sequence, FLUX.1.
    """
    width = sizes["width"]
    side = sizes["image"] or 128
    is_flux = kind == "FluxTransformer2DModel"
    patch = 2 if is_flux else sizes["patch"] or 2
    channels = (sizes["channels"] or 64) // 4 if is_flux else sizes["channels"] or 16
    is_normed = is_flux or config.get("qk_norm")
    how = _with(f"heads={sizes['heads']}", {"rotary=yes": is_flux, "qk_norm=yes": is_normed})
    guidance = f"labels {256 + width + 2}\n" if config.get("guidance_embeds") else ""
    single = (
        f"repeat {sizes['single']}\nsplit\nadaptive_norm 3\nsplit\nattention {how} bias=yes out_bias=no causal=no\n"
        f"shortcut\nlinear {4 * width}\ngelu\nlinear {width}\nadd\nadd\nend"
    )
    return "\n".join(
        (
            f"input {channels}x{side}x{side}",
            # perceptrons of the time step, of the text as a whole, and of the strength of guidance
            f"encode 256\nlinear {width}\nsilu\nlinear {width}\nlabels {sizes['pooled'] + width + 2}\n{guidance}decode",
            f"encode {DIFFUSION[kind]}x{sizes['text']}\nconv1d {width} kernel=1\ndecode",
            f"patches {width} size={patch} extra=0 positions=no",
            f"repeat {sizes['layers'] - (not is_flux)}\njoint {4 * width} {how}\nend",
            f"join\n{single}" if sizes["single"] else f"joint {4 * width} {how} last=yes",
            f"adaptive_norm 2\nlinear {patch**2 * (sizes['out_channels'] or channels)}",
        )
    )


def _resnet(config: Mapping[str, Any], source: str) -> str:
    """Return a residual network of basic or bottleneck blocks, their stride in the first 3 x 3 convolution.

    Raises:
        InvalidInput: its depths or widths are no four whole numbers; names them.
    """
    given = {name: config.get(name) for name in ("depths", "hidden_sizes")}
    for name, found in given.items():
        if not isinstance(found, list) or len(found) != 4 or not all(each in range(1, 100_000) for each in found):
            raise InvalidInput.of(f"{name} of {source}", str(found)[:60], "four whole numbers from 1")
    stem = "conv 64 kernel=7 stride=2 padding=3 bias=no\nbatch_norm\nrelu\nmax_pool 3 stride=2 padding=1"
    lines = ["input 3x224x224", stem]
    before = 64
    for depth, width in zip(*given.values(), strict=True):
        is_basic = config.get("layer_type") == "basic"
        stride = 1 if len(lines) == 2 else 2
        long = [(width // 4, 1, 1), (width // 4, 3, stride), (width, 1, 1)]
        convs = [(width, 3, stride), (width, 3, 1)] if is_basic else long
        first = "\nrelu\n".join(
            f"conv {out} kernel={kernel} stride={step} padding={kernel // 2} bias=no\nbatch_norm"
            for out, kernel, step in convs
        )
        shortcut = f"shortcut\nconv {width} kernel=1 stride={stride} bias=no\nbatch_norm\n" if before != width else ""
        again = f"repeat {depth - 1}\nsplit\n{first.replace('stride=2', 'stride=1')}\nadd\nrelu\nend"
        lines += [f"split\n{first}\n{shortcut}add\nrelu", *([again] if depth > 1 else [])]
        before = width
    return "\n".join((*lines, "avg_pool 1\nflatten\nlinear 1000"))
