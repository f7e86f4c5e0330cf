"""Reference computations that are longer than one expression. Everything in __all__ may be used in recipes."""
from __future__ import annotations

import functools

import numpy as np

__all__ = ["sigmoid", "silu", "gelu", "gelu_tanh", "softmax", "log_softmax", "erf", "rms", "standard", "attention", "e4m3_numbers"]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def silu(x):
    return x * sigmoid(x)


def erf(x):
    import math
    return np.vectorize(math.erf, otypes=[float])(x)


def gelu(x):
    return x * (1 + erf(x / np.sqrt(2))) / 2


def gelu_tanh(x):
    return x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3))) / 2


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def log_softmax(x, axis=-1):
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=axis, keepdims=True))


def rms(x, eps=0.0, axis=-1):
    """1 / root mean square, with one element along the axis."""
    return 1 / np.sqrt((x * x).mean(axis=axis, keepdims=True) + eps)


def standard(x, eps=0.0, axis=-1):
    """x without its mean, divided by its standard deviation."""
    centered = x - x.mean(axis=axis, keepdims=True)
    return centered / np.sqrt((centered * centered).mean(axis=axis, keepdims=True) + eps)


def attention(q, k, v, scale, causal=False):
    """q [n, d], k [m, d], v [m, e] -> [n, e]; causal: query i sees keys up to m - n + i."""
    scores = scale * (q @ k.T)
    if causal:
        n, m = scores.shape
        scores = np.where(np.arange(m)[None, :] <= np.arange(n)[:, None] + m - n, scores, -np.inf)
    return softmax(scores) @ v


@functools.lru_cache(None)
def e4m3_numbers():
    """[256] the number of each bit pattern: OCP 8-bit floating point specification 1.0, E4M3."""
    bits = np.arange(256)
    exponent, fraction = bits >> 3 & 15, bits & 7
    size = np.where(exponent == 0, fraction / 8 * 2.0**-6, (1 + fraction / 8) * 2.0**(exponent - 7.0))
    size = np.where(bits & 127 == 127, np.nan, size)
    return np.where(bits & 128, -size, size)


def to_e4m3(numbers):
    """Round to nearest even, saturating at 448."""
    table = e4m3_numbers()[:127]
    size = np.minimum(np.abs(numbers), 448.0)
    above = np.searchsorted(table, size).clip(1, 126)
    low, high = table[above - 1], table[above]
    down = (size - low < high - size) | ((size - low == high - size) & ((above - 1) % 2 == 0))
    return (np.where(down, above - 1, above) | np.where(np.signbit(numbers), 128, 0)).astype(np.uint8)
