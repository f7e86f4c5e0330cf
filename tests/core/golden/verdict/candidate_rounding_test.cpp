// What the values of a candidate tell about its kernel: the type that it wrote, and whether its row sums were exact.
#include "core/golden/verdict/candidate_rounding.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/base/convert.h"
#include "tests/core/golden/support.h"

namespace kvscope::golden::candidate_rounding_test {
namespace {

constexpr std::int64_t kRows = 48;
constexpr double kOver = std::numeric_limits<double>::infinity();

Tensor constant(std::vector<std::int64_t> shape, double value) {
  Tensor tensor = make_tensor(DType::f64, std::move(shape));
  for (double& x : values<double>(tensor)) x = value;
  return tensor;
}

// One head of 4 dims, 4,096 keys of which none has much weight, and an lse of its own for each row.
Bundle golden() {
  Bundle bundle;
  bundle.tensors["o"] = constant({kRows, 1, 4}, 0);
  std::uint64_t n = 0;
  for (double& x : values<double>(bundle.tensors["o"])) x = 1 + 0.5 * std::sin(static_cast<double>(++n));
  bundle.tensors["a1"] = constant({kRows, 1, 4}, 2);
  bundle.tensors["a2"] = constant({kRows, 1, 4}, 0.01);
  bundle.tensors["running"] = constant({kRows, 1, 4}, 1);
  bundle.tensors["smax"] = bundle.tensors["p2"] = constant({kRows, 1}, 0.01);
  bundle.tensors["key_counts"] = constant({kRows, 1}, 4096);
  bundle.tensors["repeats"] = constant({kRows, 1}, 0);
  bundle.tensors["clump"] = bundle.tensors["faint"] = constant({kRows, 1, 3}, 0);
  bundle.tensors["lse"] = constant({kRows, 1}, 0);
  for (double& x : values<double>(bundle.tensors["lse"])) x = 8 + 0.01 * static_cast<double>(++n);
  return bundle;
}

// Whether the sums count as exact if each lse is off by `error`, after `change` of the golden and of the errors.
bool exact(double error, const std::function<void(Bundle&, std::vector<double>&)>& change = {}) {
  Bundle bundle = golden();
  std::vector<double> have;
  for (const double lse : values<double>(bundle.tensors["lse"])) have.push_back(lse + error);
  if (change) change(bundle, have);
  attention::Rounding rounding = attention::rounding_of(DType::bf16);
  const GoldenTerms terms(bundle);
  return sums_are_exact(rounding, terms, have, values<double>(bundle.tensors.at("lse")));
}

// Rounded probabilities of bf16 leave lse 2.3e-5 away (u * p2 / sqrt 3): errors of 1e-6 are those of exact sums.
TEST(CandidateRounding, SumsNearTheGoldenAreExact) {
  EXPECT_TRUE(exact(0));
  EXPECT_TRUE(exact(1e-6));
  EXPECT_FALSE(exact(1e-4));
}

// Nine rows in ten are enough, which 43 of 48 are not.
TEST(CandidateRounding, AFewRowsMayBeFarther) {
  const auto far = [](std::size_t rows) {
    return [rows](Bundle&, std::vector<double>& have) {
      for (std::size_t row = 0; row < rows; ++row) have[row] += 1e-4;
    };
  };
  EXPECT_TRUE(exact(0, far(4)));
  EXPECT_FALSE(exact(0, far(5)));
}

// Rows that tell nothing do not count, and 24 distinct ones are needed.
TEST(CandidateRounding, RowsWithoutEvidenceDoNotCount) {
  const auto set = [](const char* term, std::size_t width, std::size_t column, double value, std::size_t rows) {
    return [=](Bundle& bundle, std::vector<double>&) {
      for (std::size_t row = 0; row < rows; ++row) values<double>(bundle.tensors[term])[row * width + column] = value;
    };
  };
  EXPECT_FALSE(exact(0, set("p2", 1, 0, 0.31, 25)));
  EXPECT_TRUE(exact(0, set("p2", 1, 0, 0.31, 24)));
  for (std::size_t type = 0; type < 3; ++type) {
    EXPECT_FALSE(exact(0, set("clump", 3, type, 0.26, 25))) << type;
    EXPECT_TRUE(exact(0, set("clump", 3, type, 0.26, 24))) << type;
  }
  EXPECT_FALSE(exact(0, set("lse", 1, 0, -kOver, 25)));
  EXPECT_FALSE(exact(0, [](Bundle&, std::vector<double>& have) { std::fill_n(have.begin(), 25, kOver); }));
  EXPECT_TRUE(exact(0, [](Bundle&, std::vector<double>& have) { std::fill_n(have.begin(), 24, kOver); }));
  // 48 rows of 23 different values.
  EXPECT_FALSE(exact(0, [](Bundle& bundle, std::vector<double>& have) {
    for (std::size_t row = 0; row < kRows; ++row) {
      have[row] = values<double>(bundle.tensors["lse"])[row] = 8 + 0.01 * static_cast<double>(row % 23);
    }
  }));
}

// A sink makes p2 small although one key has all of the keys' weight. Its probability is 1, which every type has, so that
// the row sum has no error in kernels that round P either.
TEST(CandidateRounding, ASinkDoesNotMakeARowOfOneKeyCount) {
  const auto one_key = [](std::size_t rows, bool sinks) {
    return [=](Bundle& bundle, std::vector<double>&) {
      bundle.manifest.set("conventions", json::Object{{"sinks", sinks}});
      std::ranges::copy_n(values<double>(bundle.tensors["a1"]).begin(), static_cast<std::ptrdiff_t>(rows) * 4,
                          values<double>(bundle.tensors["a2"]).begin());
    };
  };
  EXPECT_FALSE(exact(0, one_key(25, true)));
  EXPECT_TRUE(exact(0, one_key(24, true)));
  EXPECT_TRUE(exact(0, one_key(25, false)));  // without sinks, p2 tells how many keys have weight
}

// --- the type of o -----------------------------------------------------------------------------------------------------

// o of `golden` rounded to `type`, in a file of f32.
Bundle rounded(const Bundle& golden, DType type) {
  const Tensor& o = golden.tensors.at("o");
  const auto count = static_cast<std::int64_t>(values<double>(o).size());
  Tensor narrow = make_tensor(type, o.shape), wide = make_tensor(DType::f32, o.shape);
  convert(DType::f64, o.bytes.data(), type, narrow.bytes.data(), count, Overflow::non_saturating);
  convert(type, narrow.bytes.data(), DType::f32, wide.bytes.data(), count, Overflow::non_saturating);
  Bundle candidate;
  candidate.tensors["o"] = std::move(wide);
  return candidate;
}

// An element past f32 is an infinity in every type: it neither proves nor disproves one.
TEST(CandidateRounding, AnElementPastTheFilesTypeProvesNothing) {
  Bundle g = golden();
  values<double>(g.tensors["o"])[0] = 1e300;
  const FoundRounding found = find_rounding(g, rounded(g, DType::bf16), {}, "c");
  EXPECT_EQ(found.output_text, "f32 holding bf16 values");
  EXPECT_EQ(found.rounding.output, DType::bf16);
  EXPECT_EQ(find_rounding(g, rounded(g, DType::f32), {}, "c").output_text, "f32");
}

// The stated type is taken if each value is of it, and the rest of the statement with it.
TEST(CandidateRounding, IsTakenAsStated) {
  const Bundle g = golden();
  StatedRounding stated;
  stated.output = DType::f16;
  stated.probabilities = DType::e4m3;
  stated.partials = DType::bf16;
  stated.inputs = DType::e5m2;
  stated.ex2_error = 0.25;
  stated.tile_keys = 64;
  stated.accumulator_bits = 14;
  stated.row_sum = attention::RowSum::exact;
  const FoundRounding found = find_rounding(g, rounded(g, DType::f16), stated, "c");
  EXPECT_EQ(found.output_text, "f32 holding f16 values");
  EXPECT_EQ(found.rounding.output, DType::f16);
  EXPECT_EQ(found.rounding.probabilities, DType::e4m3);
  EXPECT_EQ(found.rounding.partials, DType::bf16);
  EXPECT_EQ(found.rounding.inputs, DType::e5m2);
  EXPECT_EQ(found.rounding.ex2_error, 0.25);
  EXPECT_EQ(found.rounding.tile_keys, 64);
  EXPECT_EQ(found.rounding.accumulator_bits, 14);
  EXPECT_EQ(found.rounding.row_sum, attention::RowSum::exact);
  EXPECT_EQ(find_rounding(g, rounded(g, DType::f16), {}, "c").rounding.ex2_error, 0x1p-22);
  const std::string message =
      message_of([&] { static_cast<void>(find_rounding(g, rounded(g, DType::bf16), stated, "c.npz")); });
  EXPECT_EQ(message.substr(0, message.find(", but")), "(no InputError)");  // 8 bits of a bf16 number fit 11 of f16
}

}  // namespace
}  // namespace kvscope::golden::candidate_rounding_test
