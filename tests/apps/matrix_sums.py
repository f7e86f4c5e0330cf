"""A matrix product that the three ways of adding give three different bits, and the three ways, written with fractions.

The option sum of every program that launches kernels is tested with it: KERNEL stores 1 + 16 * (1.75 * 2^-24) from each of 32 lanes.
"""
from fractions import Fraction

import numpy as np

NAMES = ("seq", "exact", "hopper")

# A is 1.75 * 2^-12 everywhere, B is 2^-12, C is 1.
KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry product(.param .u64 out) {
  .reg .b32 %r<4>; .reg .b64 %rd<3>; .reg .f32 %f<6>;
  mov.b32 %r1, 0x0f000f00; mov.b32 %r2, 0x0c000c00; mov.f32 %f5, 0f3f800000;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r1, %r1, %r1}, {%r2, %r2}, {%f5, %f5, %f5, %f5};
  ld.param.u64 %rd1, [out]; mov.u32 %r3, %tid.x; mul.wide.u32 %rd2, %r3, 4; add.u64 %rd1, %rd1, %rd2;
  st.global.f32 [%rd1], %f1;
  ret;
}
"""

# The same for any numbers: words[0..7] are the 16 numbers of each row of A, words[8..15] those of each column of B, words[16] is C.
# Lane l holds columns 2 (l % 4), + 1, + 8 and + 9 (PTX ISA, "Matrix fragments for mma.m16n8k16").
ANY_KERNEL = """.version 8.0
.target sm_90a
.address_size 64
.visible .entry product(.param .u64 out, .param .u64 words) {
  .reg .b32 %r<8>; .reg .b64 %rd<5>; .reg .f32 %f<6>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [words]; mov.u32 %r7, %tid.x;
  and.b32 %r1, %r7, 3; mul.wide.u32 %rd3, %r1, 4; add.u64 %rd3, %rd3, %rd2;
  ld.global.b32 %r2, [%rd3]; ld.global.b32 %r3, [%rd3+16]; ld.global.b32 %r4, [%rd3+32]; ld.global.b32 %r5, [%rd3+48];
  ld.global.f32 %f5, [%rd2+64];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r2, %r2, %r3, %r3}, {%r4, %r5}, {%f5, %f5, %f5, %f5};
  mul.wide.u32 %rd3, %r7, 4; add.u64 %rd1, %rd1, %rd3;
  st.global.f32 [%rd1], %f1;
  ret;
}
"""


def words_of(a, b, c):
    """The array `words` of ANY_KERNEL."""
    return np.concatenate([np.float16(a).view(np.uint32), np.float16(b).view(np.uint32), np.float32([c]).view(np.uint32)])


def exponent(x):
    """floor(log2 |x|) of an f32 number that is not 0 (Fraction or float)."""
    x, e = abs(Fraction(x)), 0
    while x >= 2:
        x, e = x / 2, e + 1
    while x < 1:
        x, e = x * 2, e - 1
    return e


def truncated(x, unit):
    """x as a multiple of 2^unit, toward zero."""
    quotient = abs(x) / Fraction(2) ** unit
    return (1 if x >= 0 else -1) * int(quotient) * Fraction(2) ** unit


def nearest(x):
    """An exact sum as f32, to nearest even (normal numbers)."""
    if x == 0:
        return np.float32(0)
    unit = exponent(x) - 23
    return np.float32(float(round(x / Fraction(2) ** unit) * Fraction(2) ** unit))


def summed(how, c, a, b):
    """c + a[0] b[0] + ... + a[15] b[15] as f32, for normal f16 numbers and results.

    seq: each sum is rounded to nearest. exact: the sum is rounded once. hopper: the addends are multiples of 2^-25 times the
    largest power of two among C and the products of powers of two, toward zero; their sum is truncated to 24 bits.
    """
    a, b, c = [Fraction(float(x)) for x in a], [Fraction(float(x)) for x in b], Fraction(float(c))
    products = [x * y for x, y in zip(a, b)]
    if how == "seq":
        total = np.float32(float(c))
        for p in products:
            total = nearest(Fraction(float(total)) + p)
        return total
    if how == "exact":
        return nearest(c + sum(products))
    powers = [exponent(x) + exponent(y) for x, y in zip(a, b) if x and y] + ([exponent(c)] if c else [])
    unit = max(powers) - 25
    total = truncated(c, unit) + sum(truncated(p, unit) for p in products)
    return np.float32(float(truncated(total, exponent(total) - 23))) if total else np.float32(0)


def of_kernel(how):
    """What KERNEL stores."""
    return summed(how, 1.0, [1.75 * 2.0**-12] * 16, [2.0**-12] * 16)
