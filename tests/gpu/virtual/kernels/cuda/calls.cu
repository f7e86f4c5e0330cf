// K14: uses of a thread's stack: arrays with run-time indices, recursion, functions selected at run time, structs by
// value, alloca.
#include <alloca.h>

#include <cstdint>

#include "gpu/kernels/common/instructions.cuh"

using namespace kvscope::gpu;  // instructions

// Sum of the first n Fibonacci numbers' parities, by an array in local memory.
KERNEL local_array(int* out, const int* picks) {
  int fibonacci[24];
  fibonacci[0] = 0;
  fibonacci[1] = 1;
  for (int i = 2; i < 24; ++i) fibonacci[i] = fibonacci[i - 1] + fibonacci[i - 2];
  const int t = static_cast<int>(threadIdx.x);
  fibonacci[picks[t] % 24] += 1000;
  int sum = 0;
  for (int i = 0; i < 24; ++i) sum += fibonacci[(i * picks[t]) % 24];
  out[t] = sum;
}

// Different lanes recurse to different depths.
__device__ __noinline__ int collatz_like(int n, int depth) {
  if (depth == 0) return n;
  const int deeper = collatz_like(n % 2 == 0 ? n / 2 : 3 * n + 1, depth - 1);
  return deeper + depth * (n & 3);
}
KERNEL recursion(int* out) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = collatz_like(t + 1, t % 21);
}

__device__ __noinline__ int twice(int x) {
  return 2 * x;
}
__device__ __noinline__ int square(int x) {
  return x * x;
}
__device__ __noinline__ int negative(int x) {
  return -x;
}
using Function = int (*)(int);
__device__ Function functions[3] = {twice, square, negative};
KERNEL function_table(int* out, const int* picks) {
  const int t = static_cast<int>(threadIdx.x);
  out[t] = functions[picks[t] % 3](t + 5);
}

struct Pair {
  int key;
  float weight;
  short tags[5];
  double sum;
};
__device__ __noinline__ Pair combined(Pair a, Pair b) {
  Pair c;
  c.key = a.key * 10 + b.key;
  c.weight = a.weight + b.weight;
  for (int i = 0; i < 5; ++i) c.tags[i] = static_cast<short>(a.tags[i] - b.tags[4 - i]);
  c.sum = a.sum * b.sum + static_cast<double>(c.tags[a.key % 5]);
  return c;
}
KERNEL struct_by_value(double* out) {
  const int t = static_cast<int>(threadIdx.x);
  Pair a{t, 0.5f, {1, 2, 3, 4, static_cast<short>(t)}, 1.5}, b{7, 2.0f, {9, 8, 7, 6, 5}, 2.0 + t};
  const Pair c = combined(combined(a, b), a);
  out[t] = c.sum + c.key + c.weight;
}

// A different amount of memory per lane.
KERNEL stack_memory(int* out) {
  const int t = static_cast<int>(threadIdx.x), count = 1 + t % 7;
  int* values = static_cast<int*>(alloca(sizeof(int) * count));
  for (int i = 0; i < count; ++i) values[i] = t * 100 + i;
  int sum = 0;
  for (int i = 0; i < count; ++i) sum += values[count - 1 - i] * (i + 1);
  out[t] = sum;
}
