// Matrices of f64 in every rounding, compared with the processor's fused multiply-adds in that rounding. An H100
// computes the bits of the forms that round to nearest (docs/hardware). These forms check the oracle itself: the order
// of the sums, the places of the numbers in the registers, and which NaN a result repeats. The forms in the other
// directions were not measured.
#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cfenv>
#include <cmath>
#include <string>
#include <string_view>
#include <vector>

#include "gpu/hardware/instruction_results.h"
#include "gpu/launch/virtual_gpu.h"

namespace kvscope::gpu::double_matrices_test {
namespace {

constexpr int kLanes = 32;

struct Shape {
  int m = 8, n = 8, k = 4;
};
Shape shape_of(std::string_view word) {
  for (const Shape shape : {Shape{16, 8, 4}, Shape{16, 8, 8}, Shape{16, 8, 16}}) {
    const std::string name =
        ".m" + std::to_string(shape.m) + "n" + std::to_string(shape.n) + "k" + std::to_string(shape.k) + ".";
    if (word.find(name) != word.npos) return shape;
  }
  return {};
}

int direction_of(std::string_view word) {
  if (word.find(".rz.") != word.npos) return FE_TOWARDZERO;
  if (word.find(".rm.") != word.npos) return FE_DOWNWARD;
  return word.find(".rp.") != word.npos ? FE_UPWARD : FE_TONEAREST;
}

// a b + c by the processor, which is in the wanted rounding. A NaN result repeats the NaN in b, c or a, in this order.
double fused(double a, double b, double c) {
  volatile double x = a, y = b, z = c;
  const double result = std::fma(x, y, z);
  if (!std::isnan(result)) return result;
  for (const double operand : {b, c, a}) {
    const auto bits = std::bit_cast<std::uint64_t>(operand);
    if ((bits & 0x7fffffffffffffff) > 0x7ff0000000000000) return std::bit_cast<double>(bits | 0x0008000000000000);
  }
  return std::bit_cast<double>(0xfff8000000000000);
}

// All results of the instruction in one rounding, [register of D][set]; `operands` as operand_sets has them.
std::vector<std::uint64_t> expected_results(const Shape& shape, int direction,
                                            const std::vector<std::uint64_t>& operands) {
  const int halves = shape.m / 8, of_a = halves * shape.k / 4, of_b = shape.k / 4, of_d = 2 * halves;
  std::vector<std::uint64_t> results(static_cast<std::size_t>(of_d) * kOperandSets);
  std::fesetround(direction);
  for (int warp = 0; warp < kOperandSets / kLanes; ++warp) {
    const auto number = [&](int reg, int lane) {
      return std::bit_cast<double>(operands[static_cast<std::size_t>(reg * kOperandSets + warp * kLanes + lane)]);
    };
    for (int i = 0; i < of_d; ++i) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const int group = lane / 4, column = 2 * (lane % 4) + i % 2;
        double sum = number(of_a + of_b + i, lane);
        for (int k = 0; k < shape.k; ++k) {
          const double a = number(i / 2 + halves * (k / 4), 4 * group + k % 4);
          sum = fused(a, number(of_a + k / 4, 4 * column + k % 4), sum);
        }
        results[static_cast<std::size_t>(i * kOperandSets + warp * kLanes + lane)] = std::bit_cast<std::uint64_t>(sum);
      }
    }
  }
  std::fesetround(FE_TONEAREST);
  return results;
}

TEST(DoubleMatrices, EachFusedMultiplyAddIsRoundedInTheDirectionOfTheInstruction) {
  VirtualGpu device({.architecture = "sm_90a", .checks = false, .counters = false});
  int words = 0;
  for (const std::string& word : measured_words()) {
    if (word.find(".f64.f64.f64.f64") == word.npos) continue;
    ++words;
    const InstructionKernel kernel = *instruction_kernel(word);
    const std::vector<std::uint64_t> operands = operand_sets(kernel);
    const Shape shape = shape_of(word);
    const int direction = direction_of(word);
    const std::vector<std::uint64_t> expected = expected_results(shape, direction, operands);
    const std::vector<std::uint64_t> results = run_instructions(device, {&kernel, 1})[0];
    ASSERT_EQ(results.size(), expected.size()) << word;
    for (std::size_t i = 0; i < results.size(); ++i)
      ASSERT_EQ(results[i], expected[i]) << word << " register " << i / kOperandSets << " set " << i % kOperandSets;
    // Every other direction would have been noticed.
    for (const int other : {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD}) {
      if (other == direction) continue;
      const std::vector<std::uint64_t> others = expected_results(shape, other, operands);
      int differing = 0;
      for (std::size_t i = 0; i < others.size(); ++i) differing += others[i] != expected[i] ? 1 : 0;
      EXPECT_GT(differing, 100) << word << " in direction " << other;
    }
  }
  EXPECT_EQ(words, 40);  // four shapes of mma and four layouts of wmma, each with four roundings and without one
}

}  // namespace
}  // namespace kvscope::gpu::double_matrices_test
