// nvcc -arch=sm_90a -ptx -G -I<root> structs.cu -o structs_debug.sm_90a.ptx
#include "tests/gpu/virtual/text/data/structs.h"

union Word {
  int x;
  float y;
};
struct Base {
  int id;
};
struct Derived : Base {
  Word word;
  int low : 4;
  int high : 12;
  Inner* list;
};

__global__ void plain(Params p, float a) {
  const int i = static_cast<int>(threadIdx.x);
  if (i < p.n) p.out[i] = p.q[i] * p.scale * a + static_cast<float>(p.in[1][0].page + p.strides[2]) + p.in[0][1].base[i];
}

namespace ns {
template <int D, class T>
struct Table {
  T* q;
  unsigned rows[D];
};
template <int D>
__global__ void decode(Table<D, float> t, const Derived d, int n) {
  if (static_cast<int>(threadIdx.x) < n) t.q[threadIdx.x] = static_cast<float>(t.rows[0] + d.word.x + d.high);
}
template __global__ void decode<4>(Table<4, float>, const Derived, int);
}  // namespace ns
