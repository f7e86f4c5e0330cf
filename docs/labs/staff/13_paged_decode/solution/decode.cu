// Four warps: a warp computes the score of one key at a time, the threads keep the keys' weights in shared memory, and
// the first 64 threads add up the columns of V. Adjacent lanes read adjacent elements throughout.
static __device__ float value(unsigned bits) {
  return __uint_as_float(bits << 16);
}

extern "C" __global__ void decode(const unsigned short* q, const unsigned short* k, const unsigned short* v,
                                  const unsigned* table, const int* lengths, float* out, int heads, int kv_heads,
                                  int page_size, int columns, long long block_stride, float scale) {
  __shared__ float scores[128];
  __shared__ long long places[128];
  __shared__ float sums[2][64];
  const int t = threadIdx.x;
  const int warp = t / 32;
  const int lane = t % 32;
  const int sequence = blockIdx.x / heads;
  const int head = blockIdx.x % heads;
  const int kv_head = head / (heads / kv_heads);
  const int length = lengths[sequence];
  if (t < length) {
    const long long block = table[sequence * columns + t / page_size];
    places[t] = block * block_stride + (t % page_size * kv_heads + kv_head) * 64;
  }
  __syncthreads();

  const unsigned pair = reinterpret_cast<const unsigned*>(q + static_cast<long long>(blockIdx.x) * 64)[lane];
  const float q0 = value(pair & 0xffff), q1 = value(pair >> 16);
  for (int key = warp; key < length; key += 4) {
    const unsigned two = reinterpret_cast<const unsigned*>(k + places[key])[lane];
    float dot = q0 * value(two & 0xffff) + q1 * value(two >> 16);
    for (int step = 16; step > 0; step /= 2) dot += __shfl_xor_sync(0xffffffff, dot, step);
    if (lane == 0) scores[key] = scale * dot;
  }
  __syncthreads();

  float largest = scores[0];
  for (int key = 1; key < length; ++key) largest = fmaxf(largest, scores[key]);
  __syncthreads();
  if (t < length) scores[t] = expf(scores[t] - largest);
  __syncthreads();
  float total = 0;
  for (int key = 0; key < length; ++key) total += scores[key];

  const int column = t % 64;
  const int part = t / 64;
  float sum = 0;
  for (int key = part; key < length; key += 2) sum += scores[key] * value(v[places[key] + column]);
  sums[part][column] = sum;
  __syncthreads();
  if (part == 0) out[static_cast<long long>(blockIdx.x) * 64 + column] = (sums[0][column] + sums[1][column]) / total;
}
