// A warp copies one row: adjacent lanes copy adjacent vectors of 16 bytes.
extern "C" __global__ void gather(const unsigned short* pool, const unsigned* table, const int* tokens,
                                  unsigned short* out, int count, int page_size, int row, long long block_stride) {
  const int i = blockIdx.x * 4 + threadIdx.x / 32;
  const int lane = threadIdx.x % 32;
  if (i >= count) return;
  const int token = tokens[i];
  const int vectors = row / 8;
  uint4* to = reinterpret_cast<uint4*>(out + static_cast<long long>(i) * row);
  if (token < 0) {
    for (int v = lane; v < vectors; v += 32) to[v] = make_uint4(0, 0, 0, 0);
    return;
  }
  const int page = token / page_size;
  const int slot = token % page_size;
  const long long block = table[page];
  const long long first = block * block_stride + static_cast<long long>(slot) * row;
  const uint4* from = reinterpret_cast<const uint4*>(pool + first);
  for (int v = lane; v < vectors; v += 32) to[v] = from[v];
}
