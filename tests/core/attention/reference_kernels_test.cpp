// Loops of the reference alone, for each instruction set of this machine, against the same numbers computed one by one.
#include "core/attention/detail/reference_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "core/attention/reference.h"
#include "core/base/convert.h"
#include "core/base/dtype.h"

namespace kvscope::attention::reference_kernels_test {
namespace {

constexpr double kInfinite = std::numeric_limits<double>::infinity();

using Row = std::vector<std::byte>;
using Larger = double(double largest, const std::byte* const* rows, std::int64_t keys, std::int64_t padded);

struct OfType {
  std::string what;
  DType dtype;
  std::int64_t step;  // rows are a multiple of so many elements
  Larger* larger;
};

std::vector<const ReferenceKernels*> all_kernels() {
  std::vector<const ReferenceKernels*> all;
  for (const InstructionSet set : {InstructionSet::baseline, InstructionSet::avx2, InstructionSet::avx512}) {
    if (const ReferenceKernels* kernels = reference_kernels(set)) all.push_back(kernels);
  }
  return all;
}

std::vector<OfType> all_types() {
  std::vector<OfType> all;
  for (const ReferenceKernels* kernels : all_kernels()) {
    const std::string set = std::to_string(all.size());
    const auto exact = [&](DType dtype, const ExactRowKernels& rows) {
      if (rows.larger != nullptr)
        all.push_back({set + " exact " + std::string(name(dtype)), dtype, kLanes, rows.larger});
    };
    const auto fast = [&](DType dtype, const FastRowKernels& rows) {
      all.push_back({set + " fast " + std::string(name(dtype)), dtype, kFastStep, rows.larger});
    };
    exact(DType::f64, kernels->exact.f64);
    exact(DType::f32, kernels->exact.f32);
    exact(DType::bf16, kernels->exact.bf16);
    fast(DType::f32, kernels->fast.f32);
    fast(DType::bf16, kernels->fast.bf16);
    fast(DType::f16, kernels->fast.f16);
    fast(DType::e4m3, kernels->fast.e4m3);
    fast(DType::e5m2, kernels->fast.e5m2);
  }
  return all;
}

// Infinite if an element is not finite.
double one_by_one(DType dtype, const std::vector<Row>& rows, std::int64_t count) {
  double largest = 0;
  for (const Row& row : rows) {
    for (std::int64_t d = 0; d < count; ++d) {
      const double x = std::fabs(load_as_double(dtype, row.data() + d * size_of(dtype)));
      if (!std::isfinite(x)) return kInfinite;
      largest = std::max(largest, x);
    }
  }
  return largest;
}

// Any bits: NaNs and infinities too, and rows without them. The element behind the last one is a large finite one.
TEST(LargerOfRows, IsThatOfTheElementsOneByOne) {
  std::mt19937_64 random(5);
  for (const OfType& type : all_types()) {
    const std::int64_t size = size_of(type.dtype);
    int infinite = 0, finite = 0;
    for (int turn = 0; turn < 400; ++turn) {
      const std::int64_t count = type.step * (1 + turn % 4);
      std::vector<Row> rows(1 + random() % 9, Row(static_cast<std::size_t>((count + 1) * size)));
      std::vector<const std::byte*> at;
      for (Row& row : rows) {
        for (std::byte& b : row) b = static_cast<std::byte>(random());
        for (std::int64_t d = 0; d < count && turn % 2 == 0; ++d) {  // small numbers of both signs
          row[static_cast<std::size_t>((d + 1) * size - 1)] &= std::byte{0xbf};
        }
        row[static_cast<std::size_t>(count * size + size - 1)] = std::byte{0x7b};
        at.push_back(row.data());
      }
      const double expected = one_by_one(type.dtype, rows, count);
      ASSERT_EQ(type.larger(0, at.data(), std::ssize(at), count), expected) << type.what << ", " << count;
      ++(expected == kInfinite ? infinite : finite);
    }
    EXPECT_GT(infinite, 10) << type.what;
    EXPECT_GT(finite, 100) << type.what;
  }
}

TEST(LargerOfRows, KeepsALargerOneOfEarlierRows) {
  const std::vector<double> row(32, -0.5);
  const auto* const at = reinterpret_cast<const std::byte*>(row.data());
  for (const ReferenceKernels* kernels : all_kernels()) {
    EXPECT_EQ(kernels->exact.f64.larger(3, &at, 1, 32), 3);
    EXPECT_EQ(kernels->exact.f64.larger(0.25, &at, 1, 32), 0.5);
    EXPECT_EQ(kernels->exact.f64.larger(kInfinite, &at, 1, 32), kInfinite);
  }
}

// The sums of partial_sums.h, written from its definition.
PartialRowSums partial_sums_one_by_one(const std::vector<double>& e, double sink, double row_sum) {
  PartialRowSums sums;
  double before = 0;
  for (std::size_t first = 0; first < e.size(); first += 16) {
    const std::size_t last = std::min(first + 16, e.size());
    double block = 0;
    for (std::size_t t = first; t < last; ++t) block += e[t];
    const double so_far[2] = {sink + before + block, std::max(row_sum - sink - before, block) + sink};
    before += block;
    for (int direction = 0; direction < 2; ++direction) {
      const double sum = so_far[direction];
      sums.squares[direction] += static_cast<double>(last - first) * sum * sum;
      for (std::size_t type = 0; type < kClumpTypes; ++type) {
        const double fine = std::ldexp(sum, kClumpKeptBits[type] + 1 - 23);
        int below = 0, products = 0;
        for (std::size_t t = first; t < last; ++t) {
          below += e[t] > 0 && e[t] < fine;
          products += e[t] > 0 && e[t] < fine / 4;
        }
        if (below > 0) sums.cut[direction][type] += sum * std::ceil(static_cast<double>(last - first) / 8) * 0x1p-24;
        sums.cut[direction][type] += sum * products * 0x1p-26;
      }
    }
  }
  return sums;
}

// Of all instruction sets the same bits, also of floats, and to rounding those of the definition.
TEST(PartialRowSumsOfALoop, AreThoseOfTheDefinition) {
  std::mt19937_64 random(9);
  std::normal_distribution<double> normal;
  for (std::size_t keys = 0; keys <= 5000; keys = keys < 40 ? keys + 1 : keys * 3) {
    for (const double width : {0.0, 1.0, 3.0}) {
      std::vector<float> floats(keys);
      for (float& e : floats) e = random() % 8 == 0 ? 0 : static_cast<float>(std::exp(width * normal(random) - 4));
      const std::vector<double> e(floats.begin(), floats.end());
      for (const double sink : {0.0, 0.5, 1e5}) {
        double row_sum = sink;
        for (const double x : e) row_sum += x;
        const PartialRowSums expected = partial_sums_one_by_one(e, sink, row_sum);
        PartialRowSums first;
        for (const ReferenceKernels* kernels : all_kernels()) {
          PartialRowSums exact, fast;
          kernels->exact.partial(e.data(), std::ssize(e), sink, row_sum, &exact);
          kernels->fast.partial(floats.data(), std::ssize(floats), sink, row_sum, &fast);
          if (kernels == all_kernels().front()) first = exact;
          for (int direction = 0; direction < 2; ++direction) {
            const auto near = [&](double have, double want) { EXPECT_NEAR(have, want, 1e-12 * want) << keys; };
            near(exact.squares[direction], expected.squares[direction]);
            EXPECT_EQ(exact.squares[direction], first.squares[direction]);
            EXPECT_EQ(exact.squares[direction], fast.squares[direction]);
            for (std::size_t type = 0; type < kClumpTypes; ++type) {
              near(exact.cut[direction][type], expected.cut[direction][type]);
              EXPECT_EQ(exact.cut[direction][type], first.cut[direction][type]);
              EXPECT_EQ(exact.cut[direction][type], fast.cut[direction][type]);
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::attention::reference_kernels_test
