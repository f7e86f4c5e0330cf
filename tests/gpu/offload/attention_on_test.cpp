// A problem of the model on the virtual GPU: which kernel computes it, how it is converted, which features no kernel
// supports; and that a wrong output is detected.
#include "gpu/offload/attention_on.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <string>
#include <utility>
#include <vector>
#include <xtensor/xview.hpp>

#include "core/attention/reference.h"
#include "core/base/errors.h"
#include "gpu/launch/cuda_gpu.h"
#include "gpu/launch/virtual_gpu.h"
#include "gpu/offload/candidate_check.h"
#include "gpu/verify/cache_fixture.h"

namespace kvscope::gpu::attention_on_test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// A fixture's cache and queries as one problem, with `queries` per sequence.
struct Given {
  CacheFixture cache;
  std::vector<std::byte> q;
  std::vector<std::int64_t> offsets{0};
  attention::Problem problem;

  Given(const CacheShape& shape, const std::vector<std::int64_t>& queries, std::int64_t query_heads, DType q_dtype,
        std::int64_t value_size = 0)
      : cache(shape) {
    for (const std::int64_t n : queries) offsets.push_back(offsets.back() + n);
    q = exact_noise(q_dtype, offsets.back() * query_heads * shape.head_size, 77);
    problem.batch = cache.sequences();
    problem.query_heads = query_heads;
    problem.q = q.data();
    problem.q_dtype = q_dtype;
    problem.query_offsets = offsets;
    problem.key_lengths = cache.shape().lengths;
    problem.k = cache.rows(1, Slot::key);
    problem.v = cache.rows(1, Slot::value, value_size);
    problem.options.scale = 1 / std::sqrt(static_cast<double>(shape.head_size));
  }
  [[nodiscard]] CandidateCheck check() const {
    VirtualGpu device;
    return check_candidate(device, problem, attention::reference(problem));
  }
};

CacheShape shape_of(DType dtype, std::int64_t page_size, std::vector<std::int64_t> lengths) {
  CacheShape shape;
  shape.dtype = dtype;
  shape.page_size = page_size;
  shape.head_size = 64;
  shape.lengths = std::move(lengths);
  return shape;
}

std::string rejection(const Given& setup) {
  VirtualGpu device;
  try {
    (void)attention_on(device, setup.problem);
  } catch (const UnsupportedError& error) {
    return error.what();
  }
  return "taken";
}

TEST(AttentionOn, OneQueryASequenceIsPagedDecodeAsItLies) {
  const Given setup(shape_of(DType::bf16, 16, {1, 16, 17, 70}), {1, 1, 1, 1}, 4, DType::bf16);
  const CandidateCheck check = setup.check();
  EXPECT_EQ(check.candidate.kernel, "paged_decode_bf16_d64");
  EXPECT_THAT(check.candidate.notes, IsEmpty());
  EXPECT_TRUE(check.passed()) << to_text(check);
  EXPECT_GT(check.candidate.outcome.costs->tma_bytes, 0);
}

TEST(AttentionOn, SeveralQueriesArePagedPrefillWithWindowAndCap) {
  Given setup(shape_of(DType::f16, 16, {21, 40, 5}), {5, 17, 0}, 4, DType::f16);
  setup.problem.options.mask = MaskKind::sliding_window;
  setup.problem.options.window_left = 9;
  setup.problem.options.soft_cap = 20.0;
  const CandidateCheck check = setup.check();
  EXPECT_EQ(check.candidate.kernel, "paged_prefill_f16_d64");
  EXPECT_TRUE(check.passed()) << to_text(check);
}

// A window that hides the first keys: they must not be read, so pages before it are not in the kernel's table.
TEST(AttentionOn, OneQueryUnderAWindowIsDecoded) {
  Given setup(shape_of(DType::bf16, 16, {50, 7}), {1, 1}, 2, DType::bf16);
  setup.problem.options.mask = MaskKind::sliding_window;
  setup.problem.options.window_left = 20;
  const CandidateCheck check = setup.check();
  EXPECT_EQ(check.candidate.kernel, "paged_decode_bf16_any");
  EXPECT_THAT(check.candidate.notes, IsEmpty());
  EXPECT_TRUE(check.passed()) << to_text(check);
}

// Features that paged_prefill does not support: pages of 12, heads of 80, a chunked mask, a right window, ALiBi, sinks.
TEST(AttentionOn, EveryMaskAndScoreIsDecodedQueryByQuery) {
  CacheShape shape = shape_of(DType::f16, 12, {33, 18});
  shape.head_size = 80;
  const std::vector<double> slopes{0.5, 0.25, 0.125, 0.0625}, sinks{-1, 0, 0.5, 2};
  const auto check = [&](const auto& change) {
    Given setup(shape, {7, 18}, 4, DType::f16);
    change(setup.problem.options);
    const CandidateCheck made = setup.check();
    EXPECT_EQ(made.candidate.kernel, "paged_decode_f16_any");
    EXPECT_THAT(made.candidate.notes, ElementsAre("every query is a separate sequence"));
    EXPECT_TRUE(made.passed()) << to_text(made);
  };
  check([](attention::Options& o) { o.mask = MaskKind::chunked, o.chunk = 8; });
  check([](attention::Options& o) { o.mask = MaskKind::sliding_window, o.window_left = 4, o.window_right = 2; });
  check([](attention::Options& o) { o.soft_cap = 3; });
  check([&](attention::Options& o) { o.alibi_slopes = slopes; });
  check([&](attention::Options& o) { o.sinks = sinks; });
  check([&](attention::Options& o) {
    o.alignment = CausalAlignment::top_left, o.alibi_slopes = slopes, o.sinks = sinks, o.soft_cap = 2;
  });
}

TEST(AttentionOn, EveryHeadSizeThatIsAMultipleOf8IsDecoded) {
  for (const std::int64_t head_size : {8, 24, 32, 48, 96, 112, 128, 192, 240, 256}) {
    CacheShape shape = shape_of(DType::bf16, 5, {13});
    shape.head_size = head_size;
    const CandidateCheck check = Given(shape, {1}, 2, DType::bf16).check();
    EXPECT_EQ(check.candidate.kernel, head_size == 128 ? "paged_decode_bf16_d128" : "paged_decode_bf16_any");
    EXPECT_TRUE(check.passed()) << head_size << to_text(check);
  }
}

// One page per sequence: a continuous cache, whose page is as long as the longest sequence.
TEST(AttentionOn, OnePageASequenceIsContinuousDecode) {
  for (const std::int64_t head_size : {64, 40}) {
    CacheShape shape = shape_of(DType::bf16, 45, {45, 1, 30});
    shape.head_size = head_size;
    Given setup(shape, {1, 1, 1}, 4, DType::bf16);
    const xt::xtensor<std::uint32_t, 1> blocks = xt::view(setup.cache.table(), xt::all(), 0);
    setup.problem.k.table = setup.problem.v.table = blocks.data();
    setup.problem.k.table_stride = setup.problem.v.table_stride = 1;
    const CandidateCheck check = setup.check();
    EXPECT_EQ(check.candidate.kernel, head_size == 64 ? "continuous_decode_bf16_d64" : "continuous_decode_bf16_any");
    EXPECT_TRUE(check.passed()) << to_text(check);
  }
}

TEST(AttentionOn, SeveralQueriesOfF32AreAsManySequences) {
  const Given setup(shape_of(DType::f32, 8, {19, 3}), {4, 5}, 4, DType::f32);  // two queries before the first key
  const CandidateCheck check = setup.check();
  EXPECT_EQ(check.candidate.kernel, "paged_decode_f32_any");
  EXPECT_THAT(check.candidate.notes, ElementsAre("every query is a separate sequence"));
  EXPECT_TRUE(check.passed()) << to_text(check);
}

TEST(AttentionOn, ScalesOfEveryGranularityStayE4m3) {
  CacheShape shape = shape_of(DType::e4m3, 16, {33, 18});
  for (const std::int64_t granularity : {64, 16, 12}) {
    shape.granularity = granularity;
    const CandidateCheck check = Given(shape, {1, 1}, 4, DType::bf16).check();
    EXPECT_EQ(check.candidate.kernel, granularity == 64 ? "paged_decode_e4m3_d64" : "paged_decode_e4m3_any");
    EXPECT_THAT(check.candidate.notes, IsEmpty());
    EXPECT_TRUE(check.passed()) << to_text(check);
  }
}

TEST(AttentionOn, MixedTypesAreConvertedToF32) {
  CacheShape shape = shape_of(DType::e4m3, 16, {33, 18});
  shape.granularity = 16;
  const CandidateCheck check = Given(shape, {1, 1}, 4, DType::f16).check();
  EXPECT_EQ(check.candidate.kernel, "paged_decode_f32_any");
  EXPECT_THAT(check.candidate.notes,
              ElementsAre("q is f16, the kernel is given f32", "K is e4m3 with scales, the kernel is given f32",
                          "V is e4m3 with scales, the kernel is given f32"));
  EXPECT_TRUE(check.passed()) << to_text(check);
}

TEST(AttentionOn, OneRowForKAndVIsMlaDecode) {
  CacheShape shape = shape_of(DType::bf16, 16, {20, 5});
  shape.kv_heads = 1;
  shape.head_size = 576;
  shape.mla = true;
  const CandidateCheck check = Given(shape, {3, 1}, 8, DType::bf16, 512).check();
  EXPECT_EQ(check.candidate.kernel, "mla_decode_bf16");
  EXPECT_TRUE(check.passed()) << to_text(check);
}

TEST(AttentionOn, OneRowOfE4m3WithOneScalePerTokenIsMlaDecodeAndWithSeveralIsRejected) {
  CacheShape shape = shape_of(DType::e4m3, 16, {20, 5});
  shape.kv_heads = 1;
  shape.head_size = 576;
  shape.mla = true;
  for (const std::int64_t granularity : {0, 576}) {
    shape.granularity = granularity;
    const CandidateCheck check = Given(shape, {3, 1}, 8, DType::bf16, 512).check();
    EXPECT_EQ(check.candidate.kernel, "mla_decode_e4m3");
    EXPECT_THAT(check.candidate.notes, ElementsAre("every query is a separate sequence"));
    EXPECT_TRUE(check.passed()) << to_text(check);
  }
  shape.granularity = 128;
  EXPECT_THAT(rejection(Given(shape, {3, 1}, 8, DType::bf16, 512)),
              HasSubstr("mla_decode does not support several scales a token (granularity 128): one, granularity 576 or "
                        "more"));
}

// [block, head, slot, dim], the layout of other engines: the kernels require the heads of a token to be contiguous.
TEST(AttentionOn, SeparateHeadsAreRepacked) {
  Given setup(shape_of(DType::bf16, 16, {40}), {1}, 4, DType::bf16);
  std::vector<std::byte> apart[2];
  for (auto* rows : {&setup.problem.k, &setup.problem.v}) {
    std::vector<std::byte>& to = apart[rows == &setup.problem.v];
    to.resize(static_cast<std::size_t>(rows->blocks * 16 * 2 * 64 * 2));
    for (std::int64_t block = 0; block < rows->blocks; ++block)
      for (std::int64_t slot = 0; slot < 16; ++slot)
        for (std::int64_t head = 0; head < 2; ++head)
          std::memcpy(to.data() + ((block * 2 + head) * 16 + slot) * 128,
                      rows->data + (block * rows->block_stride + slot * rows->token_stride + head * 64) * 2, 128);
    rows->data = to.data();
    rows->block_stride = 2 * 16 * 64;
    rows->head_stride = 16 * 64;
    rows->token_stride = 64;
  }
  const CandidateCheck check = setup.check();
  EXPECT_THAT(check.candidate.notes,
              ElementsAre("K is repacked: [block, slot, head, dim]", "V is repacked: [block, slot, head, dim]"));
  EXPECT_TRUE(check.passed()) << to_text(check);
}

TEST(AttentionOn, LogarithmsAreInTheProblemsBaseAndEmptyRowsAsItNamesThem) {
  Given setup(shape_of(DType::bf16, 16, {0, 30}), {1, 1}, 2, DType::bf16);
  setup.problem.options.lse_base = attention::LseBase::two;
  setup.problem.options.empty_row = attention::EmptyRow::plus_infinity;
  VirtualGpu device;
  const OffloadResult got = attention_on(device, setup.problem);
  EXPECT_EQ(got.lse.at(0), INFINITY);
  const attention::Result golden = attention::reference(setup.problem);
  EXPECT_NEAR(static_cast<double>(got.lse.at(2)), golden.lse(1, 0), 1e-3);
  EXPECT_TRUE(setup.check().passed());
}

TEST(AttentionOn, NoQueryNoLaunch) {
  const Given setup(shape_of(DType::bf16, 16, {7}), {0}, 2, DType::bf16);
  VirtualGpu device;
  const OffloadResult got = attention_on(device, setup.problem);
  EXPECT_EQ(got.kernel, "");
  EXPECT_THAT(got.notes, ElementsAre(HasSubstr("no query")));
}

TEST(AttentionOn, EveryUnsupportedFeatureOfEveryKernelIsNamedAtOnce) {
  CacheShape shape = shape_of(DType::f16, 12, {30});
  shape.head_size = 36;
  Given setup(shape, {3}, 2, DType::f16);
  const std::vector<double> slopes{0.5, 0.25};
  setup.problem.options.alibi_slopes = slopes;
  setup.problem.options.sinks = slopes;
  setup.problem.options.mask = MaskKind::chunked;
  setup.problem.options.chunk = 8;
  EXPECT_THAT(rejection(setup),
              AllOf(HasSubstr("no kernel computes this attention, 6 reasons:"),
                    HasSubstr("\n  paged_decode does not support head_size 36: multiples of 8 up to 256"),
                    HasSubstr("\n  paged_prefill does not support ALiBi slopes"),
                    HasSubstr("\n  paged_prefill does not support attention sinks"),
                    HasSubstr("\n  paged_prefill does not support head_size 36: 64 and 128"),
                    HasSubstr("\n  paged_prefill does not support page_size 12: a divisor or a multiple of 128"),
                    HasSubstr("\n  paged_prefill does not support a chunked mask")));
}

TEST(AttentionOn, AWindowToTheRightAndASecondTableAreRejected) {
  Given setup(shape_of(DType::bf16, 16, {30}), {3}, 2, DType::bf16);
  setup.problem.options.mask = MaskKind::sliding_window;
  setup.problem.options.window_left = 4;
  setup.problem.options.window_right = 2;
  xt::xtensor<std::uint32_t, 2> other = setup.cache.table();
  std::swap(other(0, 0), other(0, 1));
  setup.problem.v.table = other.data();
  EXPECT_THAT(rejection(setup), AllOf(HasSubstr("a window of 2 keys after the own: none of them or all"),
                                      HasSubstr("paged_decode does not support a table for K and another for V"),
                                      HasSubstr("paged_prefill does not support a table for K and another for V")));
}

// The kernel computes a different problem than the golden reference: simulates the output of a wrong kernel.
TEST(CandidateCheck, AWrongPageAWrongScaleAndOtherQueriesAreFound) {
  const Given right(shape_of(DType::bf16, 16, {40, 70}), {1, 1}, 4, DType::bf16);
  const attention::Result golden = attention::reference(right.problem);
  const auto verdict = [&](const auto& change) {
    Given wrong(right.cache.shape(), {1, 1}, 4, DType::bf16);
    change(wrong);
    VirtualGpu device;
    return check_candidate(device, wrong.problem, golden);
  };
  EXPECT_TRUE(verdict([](Given&) {}).passed());
  xt::xtensor<std::uint32_t, 2> table = right.cache.table();
  const CandidateCheck page = verdict([&](Given& s) {
    table(0, 0) = table(0, 1);  // one page of the sequence twice, another one missing
    s.problem.k.table = s.problem.v.table = table.data();
  });
  EXPECT_FALSE(page.passed());
  EXPECT_THAT(to_text(page), AllOf(HasSubstr("FAILS"), HasSubstr("FAIL o: bound"), HasSubstr("sequence 0")));
  EXPECT_FALSE(verdict([](Given& s) { s.problem.options.scale *= 1.05; }).passed());
  EXPECT_FALSE(
      verdict([](Given& s) { s.q = exact_noise(DType::bf16, 2 * 4 * 64, 78), s.problem.q = s.q.data(); }).passed());
}

// Through the driver's calls, as on hardware: 132 multiprocessors, so the keys of one sequence are split into runs.
TEST(CandidateCheck, OverTheDriversCallsTheVerdictIsTheSameAndNothingIsCounted) {
  const Given setup(shape_of(DType::bf16, 16, {200}), {1}, 4, DType::bf16);
  CudaGpu device({.ordinal = 0, .library = KVSCOPE_FAKE_DRIVER});
  const CandidateCheck check = check_candidate(device, setup.problem, attention::reference(setup.problem));
  EXPECT_TRUE(check.passed()) << to_text(check);
  EXPECT_FALSE(check.candidate.outcome.costs);
  EXPECT_THAT(to_text(check), HasSubstr("\ncandidate of Imitation H200, kernel paged_decode_bf16_d64: within"));
}

// Faults of the kernel decide the verdict, and the outputs are not compared.
TEST(CandidateCheck, ReportsOfTheCheckersFailTheVerdict) {
  const Given setup(shape_of(DType::bf16, 16, {20}), {1}, 2, DType::bf16);
  VirtualGpu device({.most_instructions = 50});
  const CandidateCheck check = check_candidate(device, setup.problem, attention::reference(setup.problem));
  EXPECT_FALSE(check.passed());
  EXPECT_FALSE(check.candidate.outcome.faults.empty());
  EXPECT_TRUE(check.comparison.criteria.empty());
  EXPECT_THAT(json::dump(to_json(check)), HasSubstr("\"passed\": false"));
}

}  // namespace
}  // namespace kvscope::gpu::attention_on_test
