#include "tests/gpu/virtual/kernels/plain_case.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace kvscope::ptx::test {
namespace {

constexpr double kPlainScale = 0.125;  // 1 / sqrt(64)

// Numbers in [-2, 2).
std::vector<float> floats(std::size_t count, std::uint64_t seed) {
  std::vector<float> out;
  for (const std::uint16_t bits : bf16_noise(count, seed)) out.push_back(from_bf16(bits));
  return out;
}

double largest_difference(const std::vector<float>& output, const std::vector<double>& answer) {
  double most = 0;
  for (std::size_t i = 0; i < answer.size(); ++i) {
    if (std::isnan(output[i])) return std::numeric_limits<double>::infinity();
    most = std::max(most, std::abs(static_cast<double>(output[i]) - answer[i]));
  }
  return most;
}

}  // namespace

PlainGemmCase::PlainGemmCase() : a_(floats(kRows * kDepth, 21)), b_(floats(kDepth * kColumns, 22)) {
  answer_.resize(kRows * kColumns);
  for (std::size_t i = 0; i < kRows; ++i)
    for (std::size_t j = 0; j < kColumns; ++j)
      for (std::size_t k = 0; k < kDepth; ++k)
        answer_[i * kColumns + j] += static_cast<double>(a_[i * kDepth + k]) * b_[k * kColumns + j];
}

PlainLaunch PlainGemmCase::launch(Gpu& gpu) const {
  const std::uint64_t a = gpu.upload("a", a_), b = gpu.upload("b", b_);
  const std::uint64_t c = gpu.zeros("c", answer_.size() * sizeof(float));
  return {{.kernel = "plain_gemm",
           .grid = {kColumns / 16, kRows / 16, 1},
           .block = {16, 16, 1},
           .values = {c, a, b, value(kColumns), value(kDepth)}},
          c};
}

double PlainGemmCase::error(Gpu& gpu, const PlainLaunch& launch) const {
  return largest_difference(gpu.download<float>(launch.out, answer_.size()), answer_);
}

PlainFlashCase::PlainFlashCase()
    : queries_(floats(kHeads * kRows * kDim, 23)),
      keys_(floats(queries_.size(), 24)),
      values_(floats(queries_.size(), 25)) {
  answer_.resize(queries_.size());
  for (std::size_t row = 0; row < kHeads * kRows; ++row) {
    const std::size_t head = row / kRows * kRows;
    std::vector<double> scores(kRows);
    for (std::size_t j = 0; j < kRows; ++j) {
      for (std::size_t i = 0; i < kDim; ++i)
        scores[j] += static_cast<double>(queries_[row * kDim + i]) * keys_[(head + j) * kDim + i];
      scores[j] *= kPlainScale;
    }
    const double most = *std::max_element(scores.begin(), scores.end());
    double sum = 0;
    for (std::size_t j = 0; j < kRows; ++j) {
      const double weight = std::exp(scores[j] - most);
      sum += weight;
      for (std::size_t i = 0; i < kDim; ++i) answer_[row * kDim + i] += weight * values_[(head + j) * kDim + i];
    }
    for (std::size_t i = 0; i < kDim; ++i) answer_[row * kDim + i] /= sum;
  }
}

PlainLaunch PlainFlashCase::launch(Gpu& gpu) const {
  const std::uint64_t q = gpu.upload("queries", queries_), k = gpu.upload("keys", keys_),
                      v = gpu.upload("values", values_);
  const std::uint64_t out = gpu.zeros("out", answer_.size() * sizeof(float));
  return {{.kernel = "plain_flash",
           .grid = {kHeads, 1, 1},
           .block = {32, 1, 1},
           .values = {out, q, k, v, value(kRows), float_bits(static_cast<float>(kPlainScale))}},
          out};
}

double PlainFlashCase::error(Gpu& gpu, const PlainLaunch& launch) const {
  return largest_difference(gpu.download<float>(launch.out, answer_.size()), answer_);
}

}  // namespace kvscope::ptx::test
