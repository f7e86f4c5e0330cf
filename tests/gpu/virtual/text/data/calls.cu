// Calls: recursion, a table of functions, a struct by value, a switch, printf and assert.
#include <cassert>
#include <cstdio>

struct Pair {
  int a[4];
  double b;
};

__device__ __noinline__ int fib(int n) { return n < 2 ? n : fib(n - 1) + fib(n - 2); }
__device__ __noinline__ int twice(int a, float b) { return a * 2 + (int)b; }
__device__ __noinline__ int less(int a, float b) { return a - (int)b; }
__device__ int (*table[2])(int, float) = {twice, less};
__device__ __noinline__ Pair add(Pair p, char c) {
  p.a[0] += c;
  return p;
}

__global__ void calls(Pair p, int* out, int k) {
  int r = fib(k) + table[k & 1](3, 4.0f);
  p = add(p, 'a');
  switch (k) {
    case 0: r += out[1] * 3; break;
    case 1: r += out[5] / 7; break;
    case 2: r ^= out[2]; break;
    case 3: r -= out[k * 3]; break;
    case 4: r = out[9] - 2; break;
    case 5: r *= out[11]; break;
    default: r = -1;
  }
  printf("%d %f\n", r, p.b);
  assert(r > p.a[0]);
  out[0] = r;
}
