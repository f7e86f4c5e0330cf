// Thread 0 announces the bytes of a tile and issues its boxes; all threads wait, and undo the swizzle as they read.
#include "tma.h"

extern "C" __global__ void tile(const __grid_constant__ TensorMap map, const int* rows, unsigned short* out, int tiles,
                                int pages) {
  __shared__ __align__(1024) unsigned char buffer[16384];
  __shared__ Barrier full;
  const int t = threadIdx.x;
  const int page_rows = 64 / pages;
  if (t == 0) barrier_init(&full, 1);
  __syncthreads();
  for (int n = 0; n < tiles; ++n) {
    if (t == 0) {
      barrier_arrive_expect(&full, 16384);
      for (int page = 0; page < pages; ++page) {
        const int row = rows[n * pages + page];
        for (int half = 0; half < 2; ++half) {
          tensor_load(buffer + half * 8192 + page * page_rows * 128, &map, half * 64, row, &full);
        }
      }
    }
    barrier_wait(&full, n % 2);
    for (int i = t; i < 1024; i += 128) {
      const int r = i / 16;
      const int half = i % 16 / 8;
      const int chunk = i % 8 ^ r % 8;
      const unsigned char* from = buffer + half * 8192 + r * 128 + chunk * 16;
      reinterpret_cast<uint4*>(out)[n * 1024 + i] = *reinterpret_cast<const uint4*>(from);
    }
    __syncthreads();
  }
}
