// The purpose of the bound: every kernel bug of this list must fail it, on a batch whose lengths are 1, page - 1, page,
// page + 1 and several pages, and a correct kernel must pass. The mutants are the reference on a modified problem. A
// swizzle on element indices is not among them, because this comparison does not model shared memory.
#include <gtest/gtest.h>

#include <functional>

#include "core/attention/reference.h"
#include "core/attention/tiled.h"
#include "core/base/convert.h"
#include "core/golden/golden_bundle.h"
#include "core/golden/verdict/compare.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden::mutations_test {
namespace {

using attention::Problem;

Tensor in_type(DType dtype, const auto& array) {
  std::vector<std::int64_t> shape;
  for (const auto extent : array.shape()) shape.push_back(static_cast<std::int64_t>(extent));
  Tensor tensor = make_tensor(dtype, std::move(shape));
  convert(DType::f64, reinterpret_cast<const std::byte*>(array.data()), dtype, tensor.bytes.data(),
          static_cast<std::int64_t>(array.size()), Overflow::non_saturating);
  return tensor;
}

Bundle candidate_of(const auto& result, DType dtype) {
  return {{{"o", in_type(dtype, result.o)}, {"lse", in_type(DType::f32, result.lse)}}, {}};
}

// The batch with every slot filled, so that a wrong read returns a plausible number and not poison.
Bundle full_batch() {
  Bundle bundle = SmallBatch().in("max");
  std::uint64_t n = 0;
  for (float& x : values<float>(bundle.tensors["blocks"])) {
    if (std::isnan(x)) x = static_cast<float>(CounterRng(6, 0).bell(n));
    ++n;
  }
  return bundle;
}

struct Case {
  Bundle bundle = full_batch();
  PreparedProblem prepared = prepare_problem(bundle, SmallBatch::options("max"), "batch");
  Problem& problem = prepared.problem;
  float* blocks = values<float>(bundle.tensors["blocks"]).data();
  // The table's entry of a page of the longest sequence, which has five.
  std::uint32_t& entry(std::int64_t page) {
    return prepared.table[static_cast<std::size_t>(4 * problem.k.table_stride + page)];
  }
  // Row of K or V of a slot in a block, both heads.
  float* row(int kv, std::int64_t block, std::int64_t slot) {
    return blocks + SmallBatch::at({{block, SmallBatch::kBlocks},
                                    {kv, 2},
                                    {SmallBatch::kLayer, SmallBatch::kLayers},
                                    {slot, SmallBatch::kPage},
                                    {0, SmallBatch::kHeads},
                                    {0, SmallBatch::kDims}});
  }
};
constexpr std::int64_t kRow = SmallBatch::kHeads * SmallBatch::kDims;

struct Mutation {
  const char* name;
  std::function<void(Case&)> apply;
};

void PrintTo(const Mutation& mutation, std::ostream* os) {
  *os << mutation.name;
}

class Mutations : public testing::TestWithParam<Mutation> {};

TEST_P(Mutations, FailTheBoundInEveryOutputType) {
  Case right;
  const Bundle golden = golden_bundle(right.problem, attention::reference(right.problem), {});
  Case wrong;
  GetParam().apply(wrong);
  const attention::Result result = attention::reference(wrong.problem);
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_FALSE(compare(golden, candidate_of(result, dtype)).passed) << name(dtype);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Kernel, Mutations,
    testing::Values(
        Mutation{"LastTokenDropped", [](Case& c) { c.prepared.key_lengths[3] -= 1; }},
        Mutation{"OneTokenTooMany", [](Case& c) { c.prepared.key_lengths[1] += 1; }},
        Mutation{"StaleLastPage", [](Case& c) { c.entry(4) = 6; }},
        Mutation{"ZeroFilledLastPage",
                 [](Case& c) {
                   for (int kv = 0; kv < 2; ++kv) std::fill_n(c.row(kv, 4, 0), SmallBatch::kPage * kRow, 0.f);
                 }},
        Mutation{"OneWrongPage", [](Case& c) { c.entry(2) = 8; }},
        Mutation{"TwoValueRowsSwapped",
                 [](Case& c) { std::swap_ranges(c.row(1, 12, 1), c.row(1, 12, 1) + kRow, c.row(1, 12, 2)); }},
        Mutation{"TwoValuePagesSwapped",
                 [](Case& c) {
                   std::swap_ranges(c.row(1, 12, 0), c.row(1, 12, 0) + SmallBatch::kPage * kRow, c.row(1, 1, 0));
                 }},
        Mutation{"KeysAndValuesSwapped", [](Case& c) { std::swap(c.problem.k.data, c.problem.v.data); }},
        Mutation{"ScaleOffByOnePercent", [](Case& c) { c.problem.options.scale *= 1.01; }},
        Mutation{"ScaleOneOverD", [](Case& c) { c.problem.options.scale = 1.0 / SmallBatch::kDims; }},
        Mutation{"LseInBaseTwo", [](Case& c) { c.problem.options.lse_base = attention::LseBase::two; }},
        Mutation{"CausalFromTheTopLeft", [](Case& c) { c.problem.options.alignment = CausalAlignment::top_left; }},
        Mutation{"NhdReadAsHnd",
                 [](Case& c) {
                   for (attention::PagedRows* rows : {&c.problem.k, &c.problem.v}) {
                     rows->token_stride = SmallBatch::kDims;
                     rows->head_stride = SmallBatch::kPage * SmallBatch::kDims;
                   }
                 }},
        Mutation{"LayerStrideForgotten",
                 [](Case& c) {
                   for (attention::PagedRows* rows : {&c.problem.k, &c.problem.v})
                     rows->block_stride = SmallBatch::kPage * kRow;
                 }}),
    [](const auto& param) { return std::string(param.param.name); });

TEST(MutationsControl, CorrectKernelsPassInEveryOutputType) {
  const Case c;
  const Bundle golden = golden_bundle(c.problem, attention::reference(c.problem), {});
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    for (const std::int64_t splits : {1, 3}) {
      const CompareResult result = compare(
          golden,
          candidate_of(
              attention::tiled(c.problem, {.tile_keys = 8, .splits = splits, .probabilities = dtype, .output = dtype}),
              dtype));
      EXPECT_TRUE(result.passed) << name(dtype);
    }
  }
}

// Query head h must use KV head h / group. With h % (KV heads), heads 1 and 2 of 4 are exchanged: swap
// them before and after.
TEST(MutationsControl, KvHeadTakenModuloFailsTheBound) {
  Case c;
  const Bundle golden = golden_bundle(c.problem, attention::reference(c.problem), {});
  auto q = values<float>(c.bundle.tensors["q"]);
  for (std::size_t t = 0; t < 8; ++t) {
    std::swap_ranges(&q[(t * 4 + 1) * 6], &q[(t * 4 + 2) * 6], &q[(t * 4 + 2) * 6]);
  }
  attention::Result result = attention::reference(c.problem);
  for (std::size_t t = 0; t < 8; ++t) {
    for (std::size_t d = 0; d < 6; ++d) std::swap(result.o(t, 1, d), result.o(t, 2, d));
    std::swap(result.lse(t, 1), result.lse(t, 2));
  }
  EXPECT_FALSE(compare(golden, candidate_of(result, DType::bf16)).passed);
}

// A conversion that turns values past the largest e4m3 into NaN: detected by the bytes and by the mask of o.
TEST(MutationsControl, NonSaturatingFp8FailsBytesAndMasks) {
  Case c;
  for (float& x : values<float>(c.bundle.tensors["blocks"])) x *= 300;
  LayoutOptions options = SmallBatch::options("max");
  const auto in_fp8 = [&](Overflow overflow) {
    Bundle bundle = c.bundle;
    const Tensor& from = c.bundle.tensors["blocks"];
    Tensor to = make_tensor(DType::e4m3, from.shape);
    convert(DType::f32, from.bytes.data(), DType::e4m3, to.bytes.data(), static_cast<std::int64_t>(to.bytes.size()),
            overflow);
    bundle.tensors["blocks"] = std::move(to);
    return bundle;
  };
  const Bundle right = in_fp8(Overflow::saturate);
  const Bundle wrong = in_fp8(Overflow::non_saturating);
  EXPECT_FALSE(compare({{{"blocks", right.tensors.at("blocks")}}, {}}, wrong).passed);
  const PreparedProblem problem = prepare_problem(right, options, "right");
  const Bundle golden = golden_bundle(problem.problem, attention::reference(problem.problem), {});
  const PreparedProblem mutant = prepare_problem(wrong, options, "wrong");
  const CompareResult result = compare(golden, candidate_of(attention::reference(mutant.problem), DType::bf16));
  EXPECT_EQ(result.criteria[0].name, "o: masks");
  EXPECT_FALSE(result.criteria[0].passed);
}

// 4096 tokens, 64 dims, bf16, page 16: one page of 256 belongs to another sequence. The fixed tolerances of most
// suites accept it.
TEST(MutationsControl, AWrongPageAt4096TokensPassesFixedTolerancesAndFailsTheBound) {
  constexpr std::int64_t kTokens = 4096;
  constexpr std::int64_t kPage = 16;
  constexpr std::int64_t kBlocks = kTokens / kPage + 1;
  Bundle bundle;
  std::uint64_t n = 0;
  for (const auto& [tensor_name, shape] : std::vector<std::pair<std::string, std::vector<std::int64_t>>>{
           {"k_cache", {kBlocks, kPage, 1, 64}}, {"v_cache", {kBlocks, kPage, 1, 64}}, {"q", {1, 1, 64}}}) {
    Tensor tensor = make_tensor(DType::bf16, shape);
    for (bf16& x : values<bf16>(tensor)) x = from_double<bf16>(CounterRng(8, 0).bell(n++), Overflow::saturate);
    bundle.tensors[tensor_name] = std::move(tensor);
  }
  std::vector<std::int64_t> table;
  for (std::int64_t page = 0; page < kTokens / kPage; ++page) table.push_back(page);
  bundle.tensors["block_table"] = SmallBatch::ints<std::int32_t>({1, kTokens / kPage}, table);
  bundle.tensors["cache_seqlens"] = SmallBatch::ints<std::int32_t>({1}, {kTokens});
  const PreparedProblem right = prepare_problem(bundle, SmallBatch::options("nhd"), "right");
  const Bundle golden = golden_bundle(right.problem, attention::reference(right.problem), {});
  const auto tiled_bf16 = [](const Problem& problem) {
    return candidate_of(attention::tiled(problem, {.probabilities = DType::bf16, .output = DType::bf16}), DType::bf16);
  };
  EXPECT_TRUE(compare(golden, tiled_bf16(right.problem)).passed);

  PreparedProblem wrong = prepare_problem(bundle, SmallBatch::options("nhd"), "wrong");
  wrong.table[100] = kBlocks - 1;
  Bundle candidate = tiled_bf16(wrong.problem);
  candidate.tensors.erase("lse");
  EXPECT_FALSE(compare(golden, candidate).passed);
  for (const char* suite : {"flashattention", "flashinfer", "vllm"}) {
    EXPECT_TRUE(compare(golden, candidate, {suite, {}, "g", "c"}).passed) << suite;
  }
}

}  // namespace
}  // namespace kvscope::golden::mutations_test
