"""What operations of torch are of one kind: which take part in the headline as one, and which write what they read.

Names are those of `aten/src/ATen/native/native_functions.yaml`, without their overload.
"""

from collections.abc import Iterable, Mapping
from types import MappingProxyType

PRODUCTS = ("mm", "addmm", "_addmm_activation", "bmm", "baddbmm", "linear", "mkldnn_linear", "_scaled_mm")
ATTENTION_FORWARD = (
    "scaled_dot_product_attention",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_flash_attention_for_cpu",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_cudnn_attention_forward",
)
ATTENTION_BACKWARD = (
    "_scaled_dot_product_flash_attention_backward",
    "_scaled_dot_product_flash_attention_for_cpu_backward",
    "_scaled_dot_product_efficient_attention_backward",
    "_scaled_dot_product_cudnn_attention_backward",
)
ATTENTION_BY_TOKENS = (  # (batch, tokens, heads, head dimension): the kernels inside those above
    "_flash_attention_forward",
    "_efficient_attention_forward",
)
ATTENTION_BACKWARD_BY_TOKENS = ("_flash_attention_backward", "_efficient_attention_backward")
CONVOLUTIONS = (
    "conv1d",
    "conv2d",
    "conv3d",
    "convolution",
    "_convolution",
    "cudnn_convolution",
    "mkldnn_convolution",
    "_slow_conv2d_forward",
    "convolution_backward",
)
SAME_AS_INPUT = (  # one input, an output of its shape
    *("abs", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal", "sin", "cos", "tanh", "sigmoid", "erf", "pow"),
    *("relu", "gelu", "silu", "leaky_relu", "elu", "hardtanh", "clamp", "clamp_min", "clamp_max", "clone"),
)
BROADCAST = (  # several inputs, an output of the shape they broadcast to
    *("add", "sub", "mul", "div", "maximum", "minimum", "where", "addcmul", "addcdiv", "lerp"),
    *("threshold_backward", "gelu_backward", "silu_backward", "tanh_backward", "sigmoid_backward"),
)
BY_ROWS = ("_softmax", "_log_softmax", "native_layer_norm", "_softmax_backward_data", "_log_softmax_backward_data")
ONLY_MOVES = ("copy_", "fill_", "zero_")  # nothing of the first argument is read
REDUCTIONS = ("sum", "mean", "amax", "amin")  # the output is small beside the input
PREFIX = "aten::"


def _named(names: Iterable[str]) -> frozenset[str]:
    return frozenset(f"{PREFIX}{name}" for name in names)


def _and_in_place(names: Iterable[str]) -> frozenset[str]:
    return _named(names) | _named(f"{name}_" for name in names)


KINDS: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "matrix products": _named(PRODUCTS),
        "attention": _named(
            (*ATTENTION_FORWARD, *ATTENTION_BACKWARD, *ATTENTION_BY_TOKENS, *ATTENTION_BACKWARD_BY_TOKENS)
        ),
        "convolutions": _named(CONVOLUTIONS),
        "element-wise operations": _and_in_place((*SAME_AS_INPUT, *BROADCAST)) - _named(("clone",)),
        "softmax and normalisation": _named((*BY_ROWS, "native_layer_norm_backward", "native_batch_norm")),
        "copies": _named((*ONLY_MOVES, "clone", "cat")),
        "sums": _named(REDUCTIONS),
    }
)
MULTIPLIES = KINDS["matrix products"] | KINDS["attention"] | KINDS["convolutions"]  # what matrix units can compute


def kind_of(name: str) -> str | None:
    """Return the kind of an operation; None where it is of none."""
    return next((kind for kind, names in KINDS.items() if name in names), None)
