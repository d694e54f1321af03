"""The blocks in torch: layer_norm, addmm, scaled_dot_product_attention and gelu, and autograd's gradients of them."""

from collections.abc import Sequence

import torch
from torch.nn.functional import gelu, layer_norm, scaled_dot_product_attention

from gpuexplore.operations.torch_steps import Layers
from gpuexplore.operations.transformer_step.numpy import OF_A_BLOCK

Tensor = torch.Tensor


def _block(values: Tensor, *parameters: Tensor) -> Tensor:
    """Return (batch, tokens, width) after attention and an MLP, each added to what went in."""
    gain, norm_bias, of_qkv, qkv_bias, of_out, out_bias, *of_mlp = parameters
    normed = layer_norm(values, values.shape[-1:], gain, norm_bias)
    heads = _linear(normed, of_qkv.flatten(1), qkv_bias.flatten()).unflatten(-1, of_qkv.shape[1:])
    q, k, v = heads.permute(2, 0, 3, 1, 4).unbind()
    mixed = scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
    return _mlp(values + _linear(mixed, of_out, out_bias), *of_mlp)


def _last(values: Tensor, *parameters: Tensor) -> Tensor:
    """Return the logits of each token."""
    gain, norm_bias, weights, bias = parameters
    return _linear(layer_norm(values, values.shape[-1:], gain, norm_bias), weights, bias)


def network(parameters: Sequence[Tensor]) -> Layers:
    """Return the blocks and the head, each with the number of its parameters."""
    return [*[(_block, OF_A_BLOCK)] * (len(parameters) // OF_A_BLOCK), (_last, 4)]


def _mlp(values: Tensor, gain: Tensor, norm_bias: Tensor, *layers: Tensor) -> Tensor:
    first, first_bias, second, second_bias = layers
    inner = _linear(layer_norm(values, values.shape[-1:], gain, norm_bias), first, first_bias)
    return values + _linear(gelu(inner, approximate="tanh"), second, second_bias)


def _linear(values: Tensor, weights: Tensor, bias: Tensor) -> Tensor:
    """Return values @ weights + bias, the last axis replaced."""
    rows = torch.addmm(bias, values.flatten(0, -2), weights)
    return rows.view(*values.shape[:-1], -1)
