"""Reference computations that are longer than one expression. Everything in __all__ may be used in recipes."""
from __future__ import annotations

import functools

import numpy as np

__all__ = ["sigmoid", "silu", "gelu", "gelu_tanh", "softmax", "log_softmax", "erf", "rms", "standard", "attention",
           "e4m3_numbers", "fastdiv", "hadamard", "q8_1"]


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


def fastdiv(d):
    """ggml's divisor: multiplier, shift and divisor of an unsigned division, three uint32."""
    shift = (d - 1).bit_length()
    return np.array([((1 << 32) * ((1 << shift) - d)) // d + 1, shift, d], np.uint32).tobytes()


def hadamard(n):
    """Sylvester's matrix [n, n]."""
    h = np.ones((1, 1))
    while len(h) < n:
        h = np.block([[h, h], [h, -h]])
    return h


def q8_1(x):
    """ggml's blocks of 32: f16 scale, f16 sum, 32 int8. x [rows, n] f32 -> [rows, n / 32, 36] bytes."""
    blocks = x.reshape(len(x), -1, 32)
    scale = np.abs(blocks).max(-1, keepdims=True) / np.float32(127)
    q = blocks / scale
    q = np.copysign(np.floor(np.abs(q) + np.float32(0.5)), q).astype(np.int8)
    total = blocks.astype(np.float32)
    for step in (16, 8, 4, 2, 1):  # the order of a warp's butterfly
        total = total + total[..., np.arange(32) ^ step]
    head = np.concatenate([scale, total[..., :1]], -1).astype(np.float16)
    return np.concatenate([head.view(np.uint8), q.view(np.uint8)], -1).astype(np.int64)
