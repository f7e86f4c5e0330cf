// Decode attention over vLLM's cache [block, 2, slot, head, dim], f32, head size 64: one query per sequence, one warp
// per query head. Each lane has two elements of the head.
constexpr int kDims = 64;

extern "C" __global__ void decode(const float* q, const float* cache, const int* table, const int* lengths, float* out,
                                  float* lse, int page, int columns, int heads, float scale) {
  const int sequence = blockIdx.x, query_head = blockIdx.y, query_heads = gridDim.y, lane = threadIdx.x;
  const int head = query_head * heads / query_heads;
  const float* row = q + (sequence * query_heads + query_head) * kDims;
  const float q0 = row[lane], q1 = row[lane + 32];
  const int length = lengths[sequence];
  float maximum = -INFINITY, sum = 0, o0 = 0, o1 = 0;
  for (int token = 0; token < length; ++token) {
    const long long block = table[sequence * columns + token / page];
    const float* k = cache + (((block * 2) * page + token % page) * heads + head) * kDims;
    const float* v = k + (long long)page * heads * kDims;
    float score = q0 * k[lane] + q1 * k[lane + 32];
    for (int mask = 16; mask > 0; mask /= 2) score += __shfl_xor_sync(0xffffffffu, score, mask);
    score *= scale;
    const float larger = fmaxf(maximum, score);
    const float old = expf(maximum - larger), weight = expf(score - larger);
    sum = sum * old + weight;
    o0 = o0 * old + weight * v[lane];
    o1 = o1 * old + weight * v[lane + 32];
    maximum = larger;
  }
  float* to = out + (sequence * query_heads + query_head) * kDims;
  to[lane] = length > 0 ? o0 / sum : 0;
  to[lane + 32] = length > 0 ? o1 / sum : 0;
  if (lane == 0) lse[sequence * query_heads + query_head] = length > 0 ? maximum + logf(sum) : -INFINITY;
}
