"""Operations of torch that are known by name: their kinds, which the headline sums up, and how attention is called.

Names and positions of arguments are those of `aten/src/ATen/native/native_functions.yaml` and of the packages' schemas.
"""

import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain
from typing import Any, NamedTuple


class Attention(NamedTuple):
    """The positions of the arguments of an attention.

    Attributes:
        causal: of the flag, or of the type of mask as a number.
        query: key and value follow it.
        mask: of a tensor of scores that are added, or that are let through.
        window: of the keys seen to the left of a query's own position; those to the right follow.
        band: where the number of keys may stand that a query sees up to its own position, that one among them.
        lengths: of the starts of packed sequences, of queries and of keys, and of the longest of both, two numbers.
        unknown: of tensors that say how many keys there are, or where they lie: with one the work is unknown.
        by_tokens: tokens come before heads.
        is_backward: five products instead of two, as the scores are computed again.
        last_rows: a causal mask lets the last query see the last key, where their numbers differ.
    """

    causal: int
    query: int = 0
    mask: int | None = None
    window: int | None = None
    band: tuple[int, ...] = ()
    lengths: tuple[int, int, int] | None = None
    unknown: tuple[int, ...] = ()
    by_tokens: bool = False
    is_backward: bool = False
    last_rows: bool = False


def of_torch(table: Mapping[str, Any]) -> dict[str, Any]:
    """Return a table by names of torch's own operations with the prefix that these have in a trace."""
    return {f"aten::{name}": value for name, value in table.items()}


_PACKAGED = Attention(5, window=6, by_tokens=True, last_rows=True)  # flash-attn, whose order others took over
_PACKED = _PACKAGED._replace(causal=9, window=10, lengths=(3, 4, 5), unknown=(15, 16, 17))
_FLASH_3 = _PACKAGED._replace(causal=24, window=25, lengths=(7, 8, 12), unknown=(3, 10, 11, 14, 16))
_XFORMERS = _PACKAGED._replace(causal=10, window=11, lengths=(3, 4, 6), unknown=(5, 14))
_BACKWARD = _PACKAGED._replace(causal=11, query=1, window=12, is_backward=True)
ATTENTION: Mapping[str, Attention] = (
    of_torch(
        {
            **dict.fromkeys(
                ("scaled_dot_product_attention", "_scaled_dot_product_attention_math"), Attention(5, mask=3)
            ),
            "_scaled_dot_product_flash_attention": Attention(4, last_rows=True),
            "_scaled_dot_product_flash_attention_for_cpu": Attention(4, mask=5),
            "_scaled_dot_product_efficient_attention": Attention(6, mask=3),
            "_scaled_dot_product_cudnn_attention": Attention(6, mask=3),
            "_scaled_dot_product_fused_attention_overrideable": Attention(5, mask=3),
            "_cudnn_attention_forward": Attention(10, mask=3, lengths=(4, 5, 6)),
            "_scaled_dot_product_flash_attention_backward": Attention(
                11, 1, lengths=(6, 7, 8), is_backward=True, last_rows=True
            ),
            "_scaled_dot_product_flash_attention_for_cpu_backward": Attention(7, 1, mask=8, is_backward=True),
            "_scaled_dot_product_efficient_attention_backward": Attention(11, 1, mask=4, is_backward=True),
            "_scaled_dot_product_cudnn_attention_backward": Attention(
                14, 1, mask=8, lengths=(9, 10, 11), is_backward=True
            ),
            "_scaled_dot_product_fused_attention_overrideable_backward": Attention(13, 1, mask=4, is_backward=True),
            "_cudnn_attention_backward": Attention(14, 1, mask=8, lengths=(9, 10, 11), is_backward=True),
            # the kernels inside those above
            "_flash_attention_forward": _PACKAGED._replace(causal=8, window=11, lengths=(3, 4, 5), unknown=(13, 15)),
            "_efficient_attention_forward": Attention(
                9, mask=3, band=(13,), lengths=(4, 5, 6), unknown=(12,), by_tokens=True
            ),
            "_flash_attention_backward": _BACKWARD._replace(window=15, lengths=(6, 7, 8)),
            "_efficient_attention_backward": Attention(
                14, 1, mask=4, band=(18,), lengths=(6, 7, 8), by_tokens=True, is_backward=True
            ),
        }
    )
    | {
        f"{package}::{name}": positions
        for package in ("flash_attn", "flashattn")
        for name, positions in {
            "_flash_attn_forward": _PACKAGED,
            "_flash_attn_varlen_forward": _PACKED,
            "_flash_attn_backward": _BACKWARD,
            "_flash_attn_varlen_backward": _BACKWARD._replace(causal=15, window=16, lengths=(9, 10, 11)),
        }.items()
    }
    | {
        **dict.fromkeys(("aiter::_flash_attn_forward", "aiter::mha_fwd", "aiter::fmha_v3_fwd"), _PACKAGED),
        **dict.fromkeys(("flash_attn_3::fwd", "flash_attn_3::_flash_attn_forward", "_vllm_fa3_C::fwd"), _FLASH_3),
        "flash_attn_3::bwd": _BACKWARD._replace(causal=16, window=17, lengths=(9, 10, 13), unknown=(11, 12)),
        "flash_attn_3::_flash_attn_backward": _BACKWARD._replace(
            causal=16, window=17, lengths=(6, 7, 10), unknown=(8, 9)
        ),
        **dict.fromkeys(("xformers_flash::flash_fwd", "xformers_flash3::flash_fwd"), _XFORMERS),
        "xformers_flash::flash_bwd": _BACKWARD._replace(causal=12, window=13, lengths=(6, 7, 8)),
        "_vllm_fa2_C::varlen_fwd": _PACKED._replace(causal=15, window=16, lengths=(4, 5, 10), unknown=(6, 7, 8)),
        "aiter::_flash_attn_backward": _BACKWARD._replace(causal=12, window=13),
        "xformers::efficient_attention_forward_cutlass": Attention(
            9,
            mask=3,
            band=(12, 13),
            lengths=(4, 5, 6),
            unknown=(11, 12),
            by_tokens=True,  # of two schemas
        ),
        "FlashAttnFunc": _PACKAGED._replace(window=None),
        "FlashAttnVarlenFunc": _PACKED._replace(window=None, unknown=()),
        # of TransformerEngine 2, whose mask is a word, which is in no trace
        "FusedAttnFunc": Attention(18, 9, mask=12, lengths=(3, 4, 1), unknown=(7, 8), by_tokens=True),
    }
)
FUSED_FORWARD = tuple(
    name for name, positions in ATTENTION.items() if not (positions.by_tokens or positions.is_backward)
)
_NAMED_LIKE: Mapping[str, re.Pattern[str]] = {  # operations of other packages, and kernels that no operation launched
    kind: re.compile(
        r"^(?!aten::(?!\w*conv)|autograd::|triton_(poi|red|per)_|.*(?:reorder|prepack|unpack|(?-i:Backward)))"
        rf"(?>.*?(?:{marks}))",
        re.IGNORECASE,
    )
    for kind, marks in {
        "attention": r"attn|attention|fmha|\bmha_|flash_(fwd|bwd)|paged_?kv",
        "communication": "[hnr]ccl|gloo:|c10d|param_comms|symm_mem|all_?(reduce|gather|to_?all)|reduce_?scatter",
        "convolutions": "conv(?!er)|fprop|[dw]grad|winograd|igemm_(fwd|bwd|wrw)",
        "matrix products": r"(?<!fb)gemm|gemv|matmul|^cijk_|nvjet|splitk(?!v)|fused_moe_kernel|triton_tem_\w{0,40}mm",
        "copies": "^mem(cpy|set) |^copy(host|device)|^fillbuffer|fillfunctor|copy_kernel|catarraybatched",
        "softmax and normalisation": "softmax|(layer|rms|batch)_?norm",
        "element-wise operations": "elementwise_kernel",
    }.items()
}

ELEMENT_WISE: Mapping[tuple[int, str], tuple[str, ...]] = {  # by inputs, and the type of the output
    (1, "as the first"): (
        *("abs", "neg", "relu", "gelu", "silu", "leaky_relu", "elu", "hardtanh", "sign", "square", "floor"),
        *("ceil", "round", "trunc", "hardswish", "mish", "softplus", "bitwise_not", "nan_to_num"),
    ),
    (1, "floating"): (
        *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "rsqrt", "reciprocal", "sin", "cos"),
        *("tan", "tanh", "sigmoid", "erf", "erfc", "atan"),
    ),
    (1, "bool"): ("logical_not", "isnan", "isinf", "isfinite"),
    (2, "promoted"): (
        *("add", "sub", "rsub", "mul", "maximum", "minimum", "fmax", "fmin", "remainder", "fmod", "floor_divide"),
        *("pow", "bitwise_and", "bitwise_or", "bitwise_xor", "clamp_min", "clamp_max", "threshold_backward"),
        *("gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward", "hardtanh_backward"),
    ),
    (2, "floating"): ("div", "true_divide", "atan2", "xlogy", "logaddexp"),
    (2, "bool"): ("eq", "ne", "lt", "le", "gt", "ge", "logical_and", "logical_or", "logical_xor"),
    (3, "promoted"): ("addcmul", "addcdiv", "lerp", "clamp"),
    (3, "of the last two"): ("where",),
    (3, "as the first"): ("masked_fill",),
}
BY_ROWS = ("_softmax", "_log_softmax", "native_layer_norm", "_softmax_backward_data", "_log_softmax_backward_data")


def _named(names: Iterable[str]) -> frozenset[str]:
    return frozenset(of_torch(dict.fromkeys(names)))


KINDS: Mapping[str, frozenset[str]] = {
    "matrix products": _named(
        (
            *("mm", "addmm", "addmm_", "_addmm_activation", "bmm", "baddbmm", "baddbmm_", "linear"),
            *("mkldnn_linear", "_scaled_mm", "_int_mm", "mv", "addmv", "addmv_"),
        )
    ),
    "attention": frozenset(ATTENTION),
    "element-wise operations": _named(
        name for names in ELEMENT_WISE.values() for each in names for name in (each, f"{each}_")
    ),
    "softmax and normalisation": _named((*BY_ROWS, "native_layer_norm_backward", "native_batch_norm")),
    "copies": _named(("copy_", "fill_", "zero_", "clone", "cat")),
    "sums": _named(("sum", "mean", "amax", "amin")),
}
MULTIPLIES = ("matrix products", "attention", "convolutions")  # what matrix units can compute


@lru_cache(maxsize=10_000)
def kind_of(name: str) -> str | None:
    """Return the kind of an operation or a kernel; None where it is of none."""
    known = (kind for kind, names in KINDS.items() if name in names)
    return next(chain(known, (kind for kind, marks in _NAMED_LIKE.items() if marks.search(name))), None)
