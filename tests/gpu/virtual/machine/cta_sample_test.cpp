// Sampled launches: which CTAs a list means, which run, and the launches that are rejected.
#include "gpu/virtual/machine/cta_sample.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "core/base/errors.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test::cta_sample_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Extents = std::array<std::int64_t, 3>;

std::vector<std::int64_t> clusters(const char* list, const Extents& grid, const Extents& cluster = {1, 1, 1}) {
  const CtaSample out = sample_ctas(list, grid, cluster);
  EXPECT_EQ(out.fault, "") << list;
  return out.clusters;
}

TEST(CtaSample, ListsNumbersRangesTheLastOneAndCoordinates) {
  const Extents grid{5, 4, 3};
  EXPECT_THAT(clusters("0-3,last", grid), ElementsAre(0, 1, 2, 3, 59));
  EXPECT_THAT(clusters("57-last", grid), ElementsAre(57, 58, 59));
  EXPECT_THAT(clusters("(1,2,0),(4,3,2),7", grid), ElementsAre(7, 11, 59));
  EXPECT_THAT(clusters("3,1-3,3", grid), ElementsAre(1, 2, 3));
  EXPECT_THAT(clusters("58-70,99,(5,0,0)", grid), ElementsAre(58, 59)) << "past the end is ignored";
  EXPECT_THAT(clusters("0-last", grid), IsEmpty()) << "all CTAs run";
  EXPECT_THAT(clusters("0-29,30-59", grid), IsEmpty());
  EXPECT_THAT(clusters("0-last", {2147483647, 65535, 65535}), IsEmpty());
}

TEST(CtaSample, WholeClustersAreTaken) {
  // 3 x 2 clusters of 2 x 2 CTAs: CTA 7 is at (1, 1), in cluster 0; CTA 16 at (4, 2), in cluster 5.
  EXPECT_THAT(clusters("7", {6, 4, 1}, {2, 2, 1}), ElementsAre(0));
  EXPECT_THAT(clusters("16,(5,3,0)", {6, 4, 1}, {2, 2, 1}), ElementsAre(5));
}

TEST(CtaSample, FaultsNameTheItemAndTheGrid) {
  const auto fault = [](const char* list) { return sample_ctas(list, {5, 4, 3}, {1, 1, 1}).fault; };
  for (const char* const list : {"", "x", "3-", "-3", "7-3", "(1,2)", "(1,2,x)", "(1,2,-1)", "1,,2", "1;2", "(1,2,0"})
    EXPECT_THAT(fault(list), HasSubstr("is not a CTA: write a number")) << list;
  EXPECT_EQ(fault("60,last-9"),
            "'last-9' is not a CTA: write a number, a range such as 0-3, last, or coordinates such as (1,2,0)");
  EXPECT_EQ(fault("60-70"), "'60-70' names no CTA of this grid, which has CTAs 0 to 59");
  EXPECT_THAT(sample_ctas("1-last", {2147483647, 65535, 65535}, {1, 1, 1}).fault, HasSubstr("write a smaller range"));
}

// out[cta] = 100 * grid + cta.
OneKernel numbered(std::string ctas) {
  OneKernel kernel{.body =
                       "mov.u32 %r1, %ctaid.x; mov.u32 %r2, %nctaid.x; mad.lo.u32 %r3, %r2, 100, %r1;\n"
                       "mad.wide.u32 %rd2, %r1, 4, %rd0; st.global.u32 [%rd2], %r3;",
                   .grid = 10};
  kernel.options.ctas = std::move(ctas);
  return kernel;
}

TEST(CtaSample, OnlyTheseCtasRunAndTheResultTells) {
  for (const Policy policy : {Policy::late, Policy::early, Policy::seeded}) {
    OneKernel kernel = numbered("1-2,last");
    kernel.options.policy = policy;
    kernel.options.seed = 3;
    const Ran ran = run(kernel);
    for (std::size_t cta = 0; cta < 10; ++cta)
      EXPECT_EQ(ran.word(cta), cta == 1 || cta == 2 || cta == 9 ? 1000 + cta : 0) << cta;
    EXPECT_EQ(ran.result.sample_text(), "sampled: 3 of 10 CTAs ran");
    EXPECT_EQ(ran.result.steps, run(numbered("0")).result.steps * 3);
  }
  EXPECT_EQ(run(numbered("0-9")).result.sample_text(), "");
  OneKernel pairs = numbered("5");
  pairs.cluster = {2, 1, 1};
  const Ran ran = run(pairs);
  EXPECT_EQ(ran.word(4), 1004U);
  EXPECT_EQ(ran.word(5), 1005U);
  EXPECT_EQ(ran.word(3), 0U);
  EXPECT_EQ(ran.result.ctas, 2);
}

std::string fault_of(const OneKernel& kernel) {
  try {
    static_cast<void>(run(kernel));
  } catch (const GeometryError& error) {
    return error.what();
  }
  return "";
}

TEST(CtaSample, KernelsWhoseCtasWaitForOneAnotherAreRejected) {
  OneKernel kernel = numbered("0");
  kernel.options.cooperative = true;
  EXPECT_THAT(fault_of(kernel), HasSubstr("the CTAs of a cooperative launch wait for one another"));
  kernel.options.ctas = "0-last";
  EXPECT_EQ(fault_of(kernel), "");

  const auto polls = [](const std::string& load) {
    OneKernel out{.body = "WAIT: " + load + "; setp.eq.u32 %p0, %r1, 7; @%p0 bra WAIT;", .grid = 2};
    out.options.ctas = "0";
    return fault_of(out);
  };
  for (const char* const load : {"ld.acquire.gpu.global.u32 %r1, [%rd0]", "ld.volatile.global.u32 %r1, [%rd0]",
                                 "ld.relaxed.sys.u32 %r1, [%rd0]"})
    EXPECT_THAT(polls(load), HasSubstr("CTAs of this kernel can wait for one another: a loop reads ld.")) << load;
  for (const char* const load :
       {"ld.global.u32 %r1, [%rd0]", "ld.volatile.shared.u32 %r1, [s]", "ld.acquire.cta.global.u32 %r1, [%rd0]"})
    EXPECT_EQ(polls(load), "") << load;
  // Without a loop, nothing waits.
  OneKernel once{.body = "ld.acquire.gpu.global.u32 %r1, [%rd0];", .grid = 2};
  once.options.ctas = "0";
  EXPECT_EQ(fault_of(once), "");
}

}  // namespace
}  // namespace kvscope::ptx::test::cta_sample_test
