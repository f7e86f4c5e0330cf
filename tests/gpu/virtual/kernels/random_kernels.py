#!/usr/bin/env python3
"""Random small kernels: nvcc's PTX on the virtual GPU compared with the host compiler's evaluation, bit for bit.

  random_kernels.py --runner <ptx_random_kernels> [--count 200] [--seed 1] [--keep folder]

One random program tree is written as CUDA (random.cu) and as C++ that executes all lanes of a warp statement by statement
(random_host.cpp): integer and float expressions, divergent ifs and loops, shuffles and votes with full and partial masks. Without nvcc or a host compiler nothing is done, exit 77. Fixed seeds: every run tests the same kernels.
"""
import argparse
import os
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import build

INTS, FLOATS, THREADS = 4, 3, 64

# The same names on both sides. The expressions keep divisors and shift amounts valid; conversions saturate.
DEVICE = r'''
#include <cstdint>
#define BOTH __device__ __forceinline__
BOTH uint32_t popc(uint32_t a) { return __popc(a); }
BOTH uint32_t clz(uint32_t a) { return __clz(a); }
BOTH uint32_t brev(uint32_t a) { return __brev(a); }
BOTH uint32_t umulhi(uint32_t a, uint32_t b) { return __umulhi(a, b); }
BOTH uint32_t f2i(float x) { return static_cast<uint32_t>(__float2int_rz(x)); }
BOTH float fused(float a, float b, float c) { return fmaf(a, b, c); }
BOTH float smaller(float a, float b) { return fminf(a, b); }
BOTH float larger(float a, float b) { return fmaxf(a, b); }
BOTH float root(float a) { return sqrtf(fabsf(a)); }
BOTH uint32_t bits(float x) { return x != x ? 0x7fffffffu : __float_as_uint(x); }
'''
HOST = r'''
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#define BOTH static inline
BOTH uint32_t popc(uint32_t a) { return std::popcount(a); }
BOTH uint32_t clz(uint32_t a) { return std::countl_zero(a); }
BOTH uint32_t brev(uint32_t a) { uint32_t r = 0; for (int i = 0; i < 32; ++i) r |= (a >> i & 1u) << (31 - i); return r; }
BOTH uint32_t umulhi(uint32_t a, uint32_t b) { return static_cast<uint64_t>(a) * b >> 32; }
BOTH uint32_t f2i(float x) {
  if (x != x) return 0;
  if (x >= 2147483648.0f) return 0x7fffffffu;
  if (x < -2147483648.0f) return 0x80000000u;
  return static_cast<uint32_t>(static_cast<int32_t>(x));
}
BOTH float fused(float a, float b, float c) { return std::fma(a, b, c); }
BOTH float smaller(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  return a == b ? (std::signbit(a) ? a : b) : a < b ? a : b;
}
BOTH float larger(float a, float b) {
  if (a != a || b != b) return a != a ? b : a;
  return a == b ? (std::signbit(a) ? b : a) : a < b ? b : a;
}
BOTH float root(float a) { return std::sqrt(std::fabs(a)); }
BOTH uint32_t bits(float x) { return x != x ? 0x7fffffffu : std::bit_cast<uint32_t>(x); }
'''
SHARED = r'''
BOTH uint32_t sdiv(uint32_t a, uint32_t b) { return static_cast<uint32_t>(static_cast<int32_t>(a >> 1) / static_cast<int32_t>(b >> 2 | 1)); }
BOTH uint32_t srem(uint32_t a, uint32_t b) { return static_cast<uint32_t>(-static_cast<int32_t>(a >> 1) % static_cast<int32_t>(b >> 2 | 1)); }
BOTH uint32_t sar(uint32_t a, uint32_t b) { return static_cast<uint32_t>(static_cast<int32_t>(a) >> (b & 31)); }
BOTH float i2f(uint32_t a) { return static_cast<float>(static_cast<int32_t>(a)); }
BOTH float u2f(uint32_t a) { return static_cast<float>(a); }
'''


class Program:
    """A random tree of statements, written twice."""

    def __init__(self, rng):
        self.rng = rng
        self.names = 0
        self.body = [self.statement(depth=2, top=True) for _ in range(rng.randint(5, 9))]

    # Expressions: text with placeholders {i0} {f0} {lane}, which each side replaces by its names.

    def integer(self, depth):
        r = self.rng
        if depth == 0 or r.random() < 0.15:
            return r.choice(['{i%d}' % r.randrange(INTS), '{i%d}' % r.randrange(INTS), '{lane}', '%du' % r.getrandbits(32),
                             '%du' % r.randrange(40)])
        a, b = self.integer(depth - 1), self.integer(depth - 1)
        kind = r.randrange(17)
        if kind < 6:
            return f'({a} {"+-*&|^"[kind]} {b})'
        return [f'({a} << ({b} & 31))', f'({a} >> ({b} & 31))', f'sar({a}, {b})', f'({a} / ({b} | 1))', f'({a} % ({b} | 1))',
                f'sdiv({a}, {b})', f'srem({a}, {b})', f'umulhi({a}, {b})', f'(popc({a}) + clz({b}))',
                f'({self.condition(depth - 1)} ? {a} : {b})', f'f2i({self.real(depth - 1)})'][kind - 6]

    def real(self, depth):
        r = self.rng
        if depth == 0 or r.random() < 0.15:
            return r.choice(['{f%d}' % r.randrange(FLOATS), '{f%d}' % r.randrange(FLOATS), '%.6ff' % r.uniform(-8, 8)])
        a, b = self.real(depth - 1), self.real(depth - 1)
        return r.choice([f'({a} + {b})', f'({a} - {b})', f'({a} * {b})', f'({a} / {b})', f'fused({a}, {b}, {self.real(depth - 1)})',
                         f'smaller({a}, {b})', f'larger({a}, {b})', f'root({a})', f'(-({a}))', f'i2f({self.integer(depth - 1)})',
                         f'u2f({self.integer(depth - 1)})', f'({self.condition(depth - 1)} ? {a} : {b})'])

    def condition(self, depth):
        r = self.rng
        if r.random() < 0.4:
            return f'({self.real(depth)} {r.choice(["<", "<=", ">", ">=", "==", "!="])} {self.real(depth)})'
        sign = r.choice(['', 'static_cast<int32_t>'])
        return f'({sign}({self.integer(depth)}) {r.choice(["<", "<=", ">", "==", "!="])} {sign}({self.integer(depth)}))'

    # Statements: (kind, ...).

    def block(self, depth):
        return [self.statement(depth, top=False) for _ in range(self.rng.randint(1, 3))]

    def statement(self, depth, top):
        r = self.rng
        kind = r.random()
        if top and kind < 0.3:
            return self.exchange()
        if depth > 0 and kind < 0.5:
            return 'if', self.condition(2), self.block(depth - 1), self.block(depth - 1) if r.random() < 0.6 else []
        if depth > 0 and kind < 0.65:
            self.names += 1
            return 'loop', f't{self.names}', f'({self.integer(1)} & 7)', self.block(depth - 1)
        if r.random() < 0.55:
            return 'set', f'i{r.randrange(INTS)}', self.integer(3)
        return 'set', f'f{r.randrange(FLOATS)}', self.real(3)

    def exchange(self):
        """Lanes of a mask read each other; with a partial mask only lanes in it are read."""
        r = self.rng
        partial = r.random() < 0.5
        mask = (r.getrandbits(32) | 1 << r.randrange(32)) if partial else 0xffffffff
        to, of = f'i{r.randrange(INTS)}', f'i{r.randrange(INTS)}'
        members = [lane for lane in range(32) if mask >> lane & 1]
        return r.choice([('idx', mask, to, of, r.choice(members)), ('ballot', mask, to, self.condition(1), None),
                         ('sum', mask, to, of, None)] +
                        ([] if partial else [(kind, mask, to, of, n) for kind, n in
                                             [('xor', r.randrange(1, 32)), ('up', r.randrange(1, 32)), ('down', r.randrange(1, 32))]]))


def on_device(text):
    return text.format(lane='lane', **{f'i{k}': f'i{k}' for k in range(INTS)}, **{f'f{k}': f'f{k}' for k in range(FLOATS)})


def device(statements, indent):
    pad = ' ' * indent
    for s in statements:
        if s[0] == 'set':
            yield f'{pad}{s[1]} = {on_device(s[2])};'
        elif s[0] == 'if':
            yield f'{pad}if ({on_device(s[1])}) {{'
            yield from device(s[2], indent + 2)
            yield f'{pad}}} else {{'
            yield from device(s[3], indent + 2)
            yield f'{pad}}}'
        elif s[0] == 'loop':
            yield f'{pad}for (uint32_t {s[1]} = 0, n{s[1]} = {on_device(s[2])}; {s[1]} < n{s[1]}; ++{s[1]}) {{'
            yield from device(s[3], indent + 2)
            yield f'{pad}}}'
        else:
            kind, mask, to, of, n = s
            call = {'idx': f'__shfl_sync({mask:#x}u, {of}, {n})', 'xor': f'__shfl_xor_sync({mask:#x}u, {of}, {n})',
                    'up': f'__shfl_up_sync({mask:#x}u, {of}, {n})', 'down': f'__shfl_down_sync({mask:#x}u, {of}, {n})',
                    'sum': f'__reduce_add_sync({mask:#x}u, {of})'}
            value = f'__ballot_sync({mask:#x}u, {on_device(of)})' if kind == 'ballot' else call[kind]
            yield f'{pad}if ({mask:#x}u >> lane & 1) {to} = {value};'


def on_host(text):
    return text.format(lane='l', **{f'i{k}': f'i{k}[l]' for k in range(INTS)}, **{f'f{k}': f'f{k}[l]' for k in range(FLOATS)})


LANES = 'for (uint32_t l = 0; l < 32; ++l)'


def host(statements, active, names):
    """`active`: the variable with the active lanes."""
    for s in statements:
        if s[0] == 'set':
            yield f'  {LANES} if ({active} >> l & 1) {s[1]}[l] = {on_host(s[2])};'
        elif s[0] == 'if':
            mask = f'm{next(names)}'
            yield f'  uint32_t {mask} = 0; {LANES} if ({active} >> l & 1 && {on_host(s[1])}) {mask} |= 1u << l;'
            other = f'm{next(names)}'
            yield f'  const uint32_t {other} = {active} & ~{mask};'
            yield from host(s[2], mask, names)
            yield from host(s[3], other, names)
        elif s[0] == 'loop':
            mask, count = f'm{next(names)}', f'n{next(names)}'
            yield f'  uint32_t {count}[32] = {{}}; {LANES} if ({active} >> l & 1) {count}[l] = {on_host(s[2])};'
            yield f'  for (uint32_t {s[1]} = 0; {s[1]} < 8; ++{s[1]}) {{'
            yield f'  uint32_t {mask} = 0; {LANES} if ({active} >> l & 1 && {s[1]} < {count}[l]) {mask} |= 1u << l;'
            yield from host(s[3], mask, names)
            yield '  }'
        else:
            kind, mask, to, of, n = s
            yield f'  {{ uint32_t old[32], all = 0, sum = 0; {LANES} old[l] = {"0" if kind == "ballot" else of + "[l]"};'
            if kind == 'ballot':
                yield f'  {LANES} if ({mask:#x}u >> l & 1 && {on_host(of)}) all |= 1u << l;'
            yield f'  {LANES} if ({mask:#x}u >> l & 1) sum += old[l];'
            value = {'idx': f'old[{n}]', 'xor': f'old[l ^ {n}]', 'up': f'old[l < {n} ? l : l - {n}]',
                     'down': f'old[l + {n} > 31 ? l : l + {n}]', 'sum': 'sum', 'ballot': 'all'}[kind]
            yield f'  {LANES} if ({mask:#x}u >> l & 1) {to}[l] = {value}; (void)all; (void)sum; }}'


def write_sources(folder, programs):
    words = INTS + FLOATS
    cuda = [DEVICE, SHARED]
    cpu = [HOST, SHARED]
    for number, program in enumerate(programs):
        cuda.append(f'extern "C" __global__ void k{number}(uint32_t* out, const uint32_t* in) {{')
        cuda.append(f'  const uint32_t lane = threadIdx.x % 32;\n  const uint32_t* mine = in + threadIdx.x * {words};')
        cuda += [f'  uint32_t i{k} = mine[{k}];' for k in range(INTS)]
        cuda += [f'  float f{k} = i2f(mine[{INTS + k}]) / 65536.0f;' for k in range(FLOATS)]
        cuda += device(program.body, 2)
        cuda.append(f'  uint32_t* to = out + threadIdx.x * {words};')
        cuda += [f'  to[{k}] = i{k};' for k in range(INTS)] + [f'  to[{INTS + k}] = bits(f{k});' for k in range(FLOATS)]
        cuda.append('}')

        cpu.append(f'static void k{number}(uint32_t* out, const uint32_t* in) {{')
        cpu += [f'  uint32_t i{k}[32]; {LANES} i{k}[l] = in[l * {words} + {k}];' for k in range(INTS)]
        cpu += [f'  float f{k}[32]; {LANES} f{k}[l] = i2f(in[l * {words} + {INTS + k}]) / 65536.0f;' for k in range(FLOATS)]
        cpu.append('  const uint32_t every = 0xffffffffu;')
        cpu += host(program.body, 'every', iter(range(10000)))
        cpu += [f'  {LANES} out[l * {words} + {k}] = i{k}[l];' for k in range(INTS)]
        cpu += [f'  {LANES} out[l * {words} + {INTS + k}] = bits(f{k}[l]);' for k in range(FLOATS)]
        cpu.append('}')
    size = THREADS * words
    cpu.append(f'''
int main() {{
  static uint32_t in[{size}], out[{size}];
  uint32_t state = 12345;
  for (uint32_t& v : in) v = (state = state * 1664525u + 1013904223u) ^ state >> 15;
  std::fwrite(in, 4, {size}, stdout);
  void (*const kernels[])(uint32_t*, const uint32_t*) = {{{", ".join(f"k{n}" for n in range(len(programs)))}}};
  for (const auto kernel : kernels) {{
    for (int warp = 0; warp < {THREADS // 32}; ++warp) kernel(out + warp * 32 * {words}, in + warp * 32 * {words});
    std::fwrite(out, 4, {size}, stdout);
  }}
}}''')
    (folder / 'random.cu').write_text('\n'.join(cuda) + '\n')
    (folder / 'random_host.cpp').write_text('\n'.join(cpu) + '\n')


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--runner', required=True, help='the program that runs PTX and compares')
    parser.add_argument('--count', type=int, default=200)
    parser.add_argument('--seed', type=int, default=1)
    parser.add_argument('--keep', help='a folder for the sources and the PTX')
    arguments = parser.parse_args()
    nvcc, cxx = build.find_nvcc(), os.environ.get('CXX') or shutil.which('g++') or shutil.which('clang++')
    if nvcc is None or cxx is None:
        print('SKIPPED: ' + ('no nvcc in $CUDA_HOME/bin, PATH or /usr/local/cuda/bin' if nvcc is None else 'no host compiler') +
              ', so random kernels cannot be compiled')
        return 77
    programs = [Program(random.Random(arguments.seed * 1000003 + n)) for n in range(arguments.count)]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(arguments.keep or temporary)
        folder.mkdir(parents=True, exist_ok=True)
        write_sources(folder, programs)
        subprocess.run([nvcc, '-ptx', '-std=c++20', '-arch=sm_90a', '-fmad=false', '-diag-suppress=186', 'random.cu', '-o', 'random.ptx'], cwd=folder,
                       check=True)
        subprocess.run([cxx, '-std=c++20', '-O0', '-ffp-contract=off', '-w', 'random_host.cpp', '-o', 'random_host'], cwd=folder,
                       check=True)
        with open(folder / 'expected.bin', 'wb') as out:
            subprocess.run(['./random_host'], cwd=folder, stdout=out, check=True)
        return subprocess.run([arguments.runner, folder / 'random.ptx', folder / 'expected.bin', str(len(programs)), str(THREADS),
                               str(INTS + FLOATS)]).returncode


if __name__ == '__main__':
    sys.exit(main())
