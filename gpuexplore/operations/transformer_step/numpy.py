"""The transformer in NumPy, forward and backward by hand, each result newly allocated; in fp64 it is the reference.

Each function of forward returns its result and what its counterpart needs to turn the gradient of the result into those
of its inputs and parameters.
"""

from typing import Any

import numpy as np

from gpuexplore.operations.contract import Array
from gpuexplore.operations.training import cross_entropy, functional

OF_A_BLOCK = 12  # parameters, of which the first two are those of a norm
EPSILON = 1e-5  # torch's, added to the variance
SCALE = 0.7978845608028654
CUBIC = 0.044715  # of GELU's tangent; the root of 2/π
Kept = tuple[Any, ...]


def forward(batch: Array, targets: Array, *parameters: Array) -> tuple[float, Kept]:
    """Return the loss, and what backward needs."""
    values = batch.reshape(-1, batch.shape[-1])
    kept = []
    for start in range(0, len(parameters) - 4, OF_A_BLOCK):
        block = parameters[start : start + OF_A_BLOCK]
        values, of_attention = _attention(values, block[:6], batch.shape[1])
        values, of_mlp = _mlp(values, block[6:])
        kept.append((of_attention, of_mlp))
    gain, bias, weights, last = parameters[-4:]
    normed, of_norm = _norm(values, gain, bias)
    loss, error = cross_entropy(normed @ weights + last, targets.reshape(-1, targets.shape[-1]))
    return loss, (kept, normed, of_norm, weights, error)


def backward(kept: Kept) -> list[Array]:
    """Return the gradients of all parameters, in their order."""
    blocks, normed, of_norm, weights, error = kept
    given, *of_gains = _norm_back(error @ weights.T, of_norm)
    gradients = [*of_gains, normed.T @ error, error.sum(axis=0)]
    for of_attention, of_mlp in reversed(blocks):
        given, *of_block = _mlp_back(given, of_mlp)
        gradients = of_block + gradients
        given, *of_block = _attention_back(given, of_attention)
        gradients = of_block + gradients
    return gradients


def _norm(values: Array, gain: Array, bias: Array) -> tuple[Array, Kept]:
    centred = values - values.mean(axis=1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(axis=1, keepdims=True) + EPSILON)
    scaled = centred * inverse
    return scaled * gain + bias, (scaled, inverse, gain)


def _norm_back(given: Array, kept: Kept) -> list[Array]:
    scaled, inverse, gain = kept
    back = given * gain
    means = back.mean(axis=1, keepdims=True) + scaled * (back * scaled).mean(axis=1, keepdims=True)
    return [inverse * (back - means), (given * scaled).sum(axis=0), given.sum(axis=0)]


def _attention(values: Array, parameters: tuple[Array, ...], tokens: int) -> tuple[Array, Kept]:
    """Return (rows, width) after attention over sequences of `tokens` rows."""
    gain, norm_bias, of_qkv, bias, of_out, out_bias = parameters
    width, _, heads, depth = of_qkv.shape
    normed, of_norm = _norm(values, gain, norm_bias)
    flat = normed @ of_qkv.reshape(width, -1) + bias.ravel()
    q, k, v = flat.reshape(-1, tokens, 3, heads, depth).transpose(2, 0, 3, 1, 4)
    scores = q @ k.swapaxes(2, 3) / np.sqrt(depth).astype(values.dtype)
    shares = np.exp(scores - scores.max(axis=3, keepdims=True))
    shares /= shares.sum(axis=3, keepdims=True)
    mixed = (shares @ v).transpose(0, 2, 1, 3).reshape(values.shape)
    return values + mixed @ of_out + out_bias, (normed, of_norm, of_qkv, q, k, v, shares, mixed, of_out)


def _attention_back(given: Array, kept: Kept) -> list[Array]:
    normed, of_norm, of_qkv, q, k, v, shares, mixed, of_out = kept
    sequences, heads, tokens, depth = q.shape
    back = (given @ of_out.T).reshape(sequences, tokens, heads, depth).transpose(0, 2, 1, 3)
    of_shares = back @ v.swapaxes(2, 3)
    of_scores = shares * (of_shares - (of_shares * shares).sum(axis=3, keepdims=True))
    of_scores /= np.sqrt(depth).astype(given.dtype)
    of_heads = np.stack([of_scores @ k, of_scores.swapaxes(2, 3) @ q, shares.swapaxes(2, 3) @ back])
    flat = of_heads.transpose(1, 3, 0, 2, 4).reshape(len(given), -1)
    below, *of_gains = _norm_back(flat @ of_qkv.reshape(len(of_qkv), -1).T, of_norm)
    of_weights = (normed.T @ flat).reshape(of_qkv.shape)
    of_bias = flat.sum(axis=0).reshape(of_qkv.shape[1:])
    return [given + below, *of_gains, of_weights, of_bias, mixed.T @ given, given.sum(axis=0)]


def _mlp(values: Array, parameters: tuple[Array, ...]) -> tuple[Array, Kept]:
    gain, norm_bias, first, first_bias, second, second_bias = parameters
    normed, of_norm = _norm(values, gain, norm_bias)
    inner = normed @ first + first_bias
    tangent = np.tanh(SCALE * (inner + CUBIC * inner**3))
    bent = inner / 2 * (1 + tangent)
    return values + bent @ second + second_bias, (normed, of_norm, first, inner, tangent, bent, second)


def _mlp_back(given: Array, kept: Kept) -> list[Array]:
    normed, of_norm, first, inner, tangent, bent, second = kept
    slope = (1 + tangent) / 2 + inner / 2 * (1 - tangent**2) * SCALE * (1 + 3 * CUBIC * inner**2)
    back = (given @ second.T) * slope
    below, *of_gains = _norm_back(back @ first.T, of_norm)
    return [given + below, *of_gains, normed.T @ back, back.sum(axis=0), bent.T @ given, given.sum(axis=0)]


build = functional(forward, backward)
