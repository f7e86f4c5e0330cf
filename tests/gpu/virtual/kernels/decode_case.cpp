#include "tests/gpu/virtual/kernels/decode_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope::ptx::test {
namespace {

constexpr double kScale = 0.088388347648318447;  // 1 / sqrt(128)
constexpr double kLog2e = 1.4426950408889634;

}  // namespace

DecodeCase::DecodeCase(std::int64_t tokens)
    : tokens_(tokens),
      pages_((tokens + kPage - 1) / kPage),
      keys_(bf16_noise(static_cast<std::size_t>((pages_ + 3) * kPage * kHeads * kDim), 11)),
      values_(bf16_noise(keys_.size(), 12)),
      queries_(bf16_noise(static_cast<std::size_t>(kHeads * kGroup * kDim), 13)) {
  // Three blocks more than pages, and adjacent pages of the sequence are far apart.
  for (std::int64_t page = 0; page < pages_; ++page)
    table_.push_back(static_cast<std::int32_t>((page * 5 + 2) % (pages_ + 3)));
  std::vector<std::int32_t> sorted = table_;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    for (std::int64_t page = 0; page < pages_; ++page)
      table_[static_cast<std::size_t>(page)] = static_cast<std::int32_t>(pages_ + 2 - page);

  answer_.resize(queries_.size());
  for (std::int64_t head = 0; head < kHeads; ++head)
    for (std::int64_t g = 0; g < kGroup; ++g) {
      const auto row = static_cast<std::size_t>((head * kGroup + g) * kDim);
      std::vector<double> scores(static_cast<std::size_t>(tokens_));
      for (std::int64_t token = 0; token < tokens_; ++token) {
        double sum = 0;
        for (std::size_t i = 0; i < kDim; ++i)
          sum += static_cast<double>(from_bf16(queries_[row + i])) * from_bf16(keys_[place(token, head) + i]);
        scores[static_cast<std::size_t>(token)] = sum * kScale;
      }
      const double most = *std::max_element(scores.begin(), scores.end());
      double sum = 0;
      for (std::int64_t token = 0; token < tokens_; ++token) {
        const double weight = std::exp(scores[static_cast<std::size_t>(token)] - most);
        sum += weight;
        for (std::size_t i = 0; i < kDim; ++i) answer_[row + i] += weight * from_bf16(values_[place(token, head) + i]);
      }
      for (std::size_t i = 0; i < kDim; ++i) answer_[row + i] /= sum;
    }
}

std::size_t DecodeCase::place(std::int64_t token, std::int64_t head) const {
  const std::int64_t block = table_[static_cast<std::size_t>(token / kPage)];
  return static_cast<std::size_t>(((block * kPage + token % kPage) * kHeads + head) * kDim);
}

DecodeCase::Launch DecodeCase::launch(Gpu& gpu, const std::string& kernel, int bug) const {
  const std::uint64_t keys = gpu.upload("keys", keys_), values = gpu.upload("values", values_);
  const std::uint64_t table = gpu.upload("block_table", table_), queries = gpu.upload("queries", queries_);
  const std::uint64_t out = gpu.zeros("out", answer_.size() * sizeof(float));
  const auto map = [&](std::uint64_t base) {
    return map_bytes(tensor_map(TmaDataType::bf16, base, {kDim, kHeads, kPage, static_cast<std::uint64_t>(pages_ + 3)},
                                {kDim * 2, kHeads * kDim * 2, kPage * kHeads * kDim * 2}, {64, 1, 64, 1},
                                TmaSwizzle::b128));
  };
  Launch launch{{.kernel = kernel,
                 .grid = {kHeads, 1, 1},
                 .block = {128, 1, 1},
                 .values = {map(keys), map(values), table, queries, out, value(tokens_),
                            float_bits(static_cast<float>(kScale * kLog2e))},
                 .dynamic_shared = 2 * 32768 + 16 * 272},
                out};
  if (bug >= 0) launch.run.values.push_back(value(bug));
  return launch;
}

std::vector<float> DecodeCase::output(Gpu& gpu, const Launch& launch) const {
  return gpu.download<float>(launch.out, answer_.size());
}

double DecodeCase::error(const std::vector<float>& output) const {
  double most = 0;
  for (std::size_t i = 0; i < answer_.size(); ++i) {
    if (std::isnan(output[i])) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::abs(static_cast<double>(output[i]) - answer_[i]));
  }
  return most;
}

}  // namespace kvscope::ptx::test
