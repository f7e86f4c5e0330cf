// What a submission in Triton leaves in the sandbox is text of the student: each fact is checked before a launch.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "apps/labs/kernel_run.h"
#include "apps/labs/triton.h"

namespace kvscope::labs::triton_product_test {
namespace {

using testing::HasSubstr;

constexpr std::string_view kFine = R"({"name": "copy", "num_warps": 4, "num_ctas": 1, "shared": 512, "scratch": 0})";

TritonTask task() {
  return {"copy", {{"x", "*i32", 16}, {"n", "i32"}}};
}

std::string fault_of_line(std::string_view facts) {
  return read_triton_product(fmt::format("{}\n.version 8.4\n", facts), task()).fault;
}

// The facts with one of them replaced.
std::string fault_of_fact(std::string_view from, std::string_view to) {
  std::string facts(kFine);
  const std::size_t at = facts.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return fault_of_line(facts.replace(at, from.size(), to));
}

TEST(TritonProduct, HasThePtxBehindTheLineOfFacts) {
  const TritonKernel kernel = read_triton_product(fmt::format("{}\n.version 8.4\n// end\n", kFine), task());
  EXPECT_EQ(kernel.fault, "");
  EXPECT_EQ(kernel.ptx, ".version 8.4\n// end\n");
  EXPECT_EQ(kernel.shared, 512);
}

TEST(TritonProduct, TheMostSharedMemoryIsThatOfTheTarget) {
  EXPECT_EQ(fault_of_fact("512", "232448"), "");
  EXPECT_EQ(fault_of_fact("512", "232449"),
            "the kernel needs 232449 bytes of shared memory, more than 232448: take smaller blocks");
  EXPECT_EQ(fault_of_fact("512", "0"), "");
}

TEST(TritonProduct, AFactOfAnotherTypeOrRangeIsMissing) {
  for (const std::string_view value :
       {"-1", "1.5", "1e300", "\"512\"", "[512]", "null", "true", "18446744073709551615"}) {
    EXPECT_EQ(fault_of_fact("512", value), "the compiled kernel has no number 'shared'") << value;
  }
  EXPECT_EQ(fault_of_fact("\"copy\"", "7"), "the compiled kernel has no name");
  EXPECT_EQ(fault_of_fact("\"copy\"", "\"copy2\""), "the compiled kernel is not named 'copy'");
}

TEST(TritonProduct, ALaunchThatTheLabDoesNotMakeIsAFault) {
  EXPECT_EQ(fault_of_fact("\"num_warps\": 4", "\"num_warps\": 8"),
            "the kernel is compiled for 8 warps, and the launch has 4 warps: remove warp specialization");
  EXPECT_EQ(fault_of_fact("\"num_warps\": 4", "\"num_warps\": 1"),
            "the kernel is compiled for 1 warp, and the launch has 4 warps: remove warp specialization");
  EXPECT_EQ(fault_of_fact("\"num_ctas\": 1", "\"num_ctas\": 2"),
            "the kernel is compiled for clusters of 2 CTAs, and the launch has none");
  EXPECT_THAT(fault_of_fact("\"scratch\": 0", "\"scratch\": 128"),
              HasSubstr("needs 128 bytes of global scratch memory"));
}

TEST(TritonProduct, ALineThatIsNoObjectIsAFault) {
  constexpr std::string_view kNoFacts = "the compiled kernel does not begin with a line of its facts";
  EXPECT_EQ(fault_of_line(""), kNoFacts);
  EXPECT_EQ(fault_of_line("{"), kNoFacts);
  EXPECT_EQ(fault_of_line(std::string(900, '[')), kNoFacts);
  EXPECT_EQ(fault_of_line(std::string(4, '\0')), kNoFacts);
  EXPECT_EQ(fault_of_line(std::string(kFine) + std::string(1024, ' ')), kNoFacts);  // a line that is too long
  EXPECT_EQ(fault_of_line("[1, 2]"), "the compiled kernel has no name");
  EXPECT_EQ(read_triton_product(kFine, task()).fault, kNoFacts);  // no end of line, so no PTX
  EXPECT_EQ(read_triton_product("", task()).fault, kNoFacts);
}

TEST(TritonProduct, PtxIsAsLongAsAKernelOfALabMayBe) {
  const auto limit = static_cast<std::size_t>(LabLimits().ptx_bytes);
  EXPECT_EQ(read_triton_product(fmt::format("{}\n{}", kFine, std::string(limit, ' ')), task()).ptx.size(), limit);
  const TritonKernel longer = read_triton_product(fmt::format("{}\n{}", kFine, std::string(limit + 1, ' ')), task());
  EXPECT_THAT(longer.fault, HasSubstr("has 1048577 bytes of PTX, more than 1048576"));
  EXPECT_EQ(longer.ptx, "");
}

// A pointer of Triton's own behind the parameters of the call is null; three would be another kernel.
TEST(TritonKernelRun, UpToTwoMoreParametersAreNull) {
  const auto run = [](std::string_view more, bool triton) {
    LabKernel kernel;
    kernel.file = "copy.py";
    kernel.triton = triton;
    kernel.shared = 64;
    kernel.ptx = fmt::format(
        ".version 8.4\n.target sm_90a\n.address_size 64\n.extern .shared .align 16 .b8 memory[];\n"
        ".visible .entry copy(.param .u64 x{}) {{\n.reg .u64 %rd<4>; .reg .u32 %r<3>;\n"
        "ld.param.u64 %rd1, [x];\nmov.u32 %r1, 7;\nst.shared.u32 [memory+60], %r1;\nld.shared.u32 %r2, [memory+60];\n"
        "st.global.u32 [%rd1], %r2;\nret;\n}}\n",
        more);
    LabCall call;
    call.entry = "copy";
    call.arrays = {{"x", std::vector<std::byte>(4, kUnwritten), false}};
    call.params = {AddressOf{0}};
    return run_kernel(kernel, call);
  };
  for (const std::string_view more : {"", ", .param .u64 a", ", .param .u64 a, .param .u64 b"}) {
    const KernelRun done = run(more, true);
    EXPECT_EQ(done.failure, "") << more;
    EXPECT_TRUE(done.finished && done.reports.empty()) << more;
    EXPECT_THAT(lab_values<std::uint32_t>(done.arrays.at(0)), testing::ElementsAre(7U)) << more;
  }
  EXPECT_THAT(run(", .param .u64 a, .param .u64 b, .param .u64 c", true).failure,
              HasSubstr("1 values: the kernel has 4"));
  EXPECT_THAT(run(", .param .u64 a", false).failure, HasSubstr("1 values: the kernel has 2"));
}

}  // namespace
}  // namespace kvscope::labs::triton_product_test
