// What a golden bundle states next to its tensors: conventions, the errors of a fast computation, and why rows are not
// finite. Other programs read the tensors themselves in tests/apps.
#include "core/golden/golden_bundle.h"

#include <gtest/gtest.h>

#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/reference.h"
#include "core/golden/verdict/measures.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();

TEST(Conventions, NameTheMaskAndOnlyItsSizes) {
  const std::pair<MaskKind, const char*> cases[] = {
      {MaskKind::none, " mask=none alignment=bottom_right"},
      {MaskKind::causal, " mask=causal alignment=bottom_right"},
      {MaskKind::sliding_window, " mask=sliding_window alignment=bottom_right window_left=7 window_right=2"},
      {MaskKind::chunked, " mask=chunked alignment=bottom_right chunk=5"}};
  for (const auto& [mask, text] : cases) {
    attention::Options options;
    options.mask = mask;
    options.window_left = 7;
    options.window_right = 2;
    options.chunk = 5;
    options.scale = 0.5;
    EXPECT_EQ(conventions_text(options),
              std::string(text) + " scale=0.5 alibi=false sinks=false lse_base=natural empty_row=-inf");
  }
}

// A fast computation leaves some rows to the reference: they have no error, so their error of a sum is 0 too.
TEST(GoldenBundle, HasTheErrorsOfTheRowsThatTheFastPathComputed) {
  const Bundle bundle = SmallBatch().in("nhd");
  const PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("nhd"), "nhd");
  attention::Result result = attention::reference(prepared.problem);
  EXPECT_FALSE(golden_bundle(prepared.problem, result, {"test", "nhd", {}}).tensors.contains("golden_error"));
  result.score_error = xt::zeros<double>(result.lse.shape());
  result.score_error(0, 1) = 3e-9;
  result.sum_error = 2e-12;
  const Bundle golden = golden_bundle(prepared.problem, result, {"test", "nhd", {}});
  EXPECT_EQ(*golden.manifest.find("accuracy")->as_string(), "fast");
  const Tensor& errors = golden.tensors.at("golden_error");
  EXPECT_EQ(errors.shape, (std::vector<std::int64_t>{8, SmallBatch::kQueryHeads, 2}));
  std::vector<double> expected(8 * SmallBatch::kQueryHeads * 2);
  expected[2] = 3e-9;
  expected[3] = 2e-12;
  EXPECT_EQ(as_doubles(errors), expected);
}

TEST(NonFiniteRows, NameTheFirstRowAndWhatIsNotFinite) {
  struct Case {
    const char* what;
    std::vector<std::pair<std::size_t, double>> of_o;
    std::optional<std::vector<double>> lse;
    const char* text;
  };
  const std::vector<double> finite(6), infinite{0, 0, 0, kInf, 0, 0};
  const Case cases[] = {
      {"finite", {}, finite, ""},
      {"the largest finite value", {{0, std::numeric_limits<double>::max()}}, finite, ""},
      {"V",
       {{14, kInf}, {20, -kInf}},
       finite,
       "2 of 6 rows of o are NaN or infinite, the first at query 1, head 1: V of a token that it sees is"},
      {"a score",
       {{14, std::numeric_limits<double>::quiet_NaN()}},
       infinite,
       "1 of 6 rows of o are NaN or infinite, the first at query 1, head 1: q is, or K of a token that it sees is"},
      {"unknown without lse",
       {{14, kInf}},
       std::nullopt,
       "1 of 6 rows of o are NaN or infinite, the first at query 1, head 1: q is, or K of a token that it sees is"}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    std::vector<double> o(24);
    for (const auto& [at, value] : c.of_o) o[at] = value;
    Bundle golden;
    golden.tensors["o"] = tensor_of<double>({3, 2, 4}, std::span<const double>(o));
    if (c.lse) golden.tensors["lse"] = tensor_of<double>({3, 2}, std::span<const double>(*c.lse));
    EXPECT_EQ(non_finite_rows(golden), c.text);
  }
}

TEST(NonFiniteRows, AreThoseOfAnAttentionOutputInDouble) {
  const std::vector<double> nan(8, std::numeric_limits<double>::quiet_NaN());
  Bundle golden;
  EXPECT_EQ(non_finite_rows(golden), "");
  golden.tensors["o"] = tensor_of<double>({4, 2}, std::span<const double>(nan));  // of another computation
  EXPECT_EQ(non_finite_rows(golden), "");
  golden.tensors["o"] = make_tensor(DType::f64, {2, 0, 4});
  EXPECT_EQ(non_finite_rows(golden), "");
  golden.tensors["o"] = make_tensor(DType::f64, {2, 4, 0});
  EXPECT_EQ(non_finite_rows(golden), "");
  const std::vector<float> floats(8, std::numeric_limits<float>::quiet_NaN());
  golden.tensors["o"] = tensor_of<float>({1, 2, 4}, std::span<const float>(floats));
  EXPECT_EQ(non_finite_rows(golden), "");
}

}  // namespace
}  // namespace kvscope::golden
