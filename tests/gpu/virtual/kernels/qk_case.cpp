#include "tests/gpu/virtual/kernels/qk_case.h"

#include <bit>

namespace kvscope::ptx::test {
namespace {

constexpr std::int64_t kSharedBytes = 64 * 256 + 64 * 272;  // keys, queries

}  // namespace

QkCase::QkCase() : keys_(bf16_noise(kRows * kDim, 1)), queries_(bf16_noise(kRows * kDim, 2)), scores_(kRows * kRows) {
  for (std::size_t q = 0; q < kRows; ++q)
    for (std::size_t k = 0; k < kRows; ++k) {
      float sum = 0;
      for (std::size_t i = 0; i < kDim; ++i) sum += from_bf16(queries_[q * kDim + i]) * from_bf16(keys_[k * kDim + i]);
      scores_[q * kRows + k] = sum;
    }
}

QkCase::Launch QkCase::by_tensor_copies(Gpu& gpu, const std::string& kernel, int bug) const {
  const std::uint64_t keys = gpu.upload("keys", keys_), queries = gpu.upload("queries", queries_);
  const std::uint64_t scores = gpu.zeros("scores", kRows * kRows * sizeof(float));
  const TensorMap map = tensor_map(TmaDataType::bf16, keys, {kDim, kRows}, {kDim * 2}, {64, kRows}, TmaSwizzle::b128);
  Launch launch{{.kernel = kernel,
                 .block = {128, 1, 1},
                 .values = {map_bytes(map), queries, scores},
                 .dynamic_shared = kSharedBytes},
                scores};
  if (bug >= 0) launch.run.values.push_back(value(bug));
  return launch;
}

QkCase::Launch QkCase::by_cp_async(Gpu& gpu, const std::string& kernel, int bug) const {
  const std::uint64_t keys = gpu.upload("keys", keys_), queries = gpu.upload("queries", queries_);
  const std::uint64_t scores = gpu.zeros("scores", kRows * kRows * sizeof(float));
  Launch launch{
      {.kernel = kernel, .block = {128, 1, 1}, .values = {keys, queries, scores}, .dynamic_shared = kSharedBytes},
      scores};
  if (bug >= 0) launch.run.values.push_back(value(bug));
  return launch;
}

int QkCase::differences(Gpu& gpu, const Launch& launch) const {
  const std::vector<float> got = gpu.download<float>(launch.scores, kRows * kRows);
  int count = 0;
  for (std::size_t i = 0; i < got.size(); ++i)
    count += std::bit_cast<std::uint32_t>(got[i]) != std::bit_cast<std::uint32_t>(scores_[i]) ? 1 : 0;
  return count;
}

}  // namespace kvscope::ptx::test
