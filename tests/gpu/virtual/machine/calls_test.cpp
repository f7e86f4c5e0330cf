// Device functions, and functions that the machine implements.
#include <gtest/gtest.h>

#include "core/base/errors.h"
#include "gpu/virtual/machine/warp/detail/builtins.h"
#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::calls_test {
namespace {

// A separate module: `text` after the header, a kernel "k" with one pointer.
struct Called {
  LaunchResult result;
  std::vector<std::uint32_t> out;
};
Called call(const std::string& text, std::int64_t threads = 32) {
  Device device;
  const LoadedModule& module =
      device.load(parse_module(".version 9.0\n.target sm_90a\n.address_size 64\n" + text, "calls.ptx"));
  const std::uint64_t out = device.memory().allocate(512, "out");
  LaunchConfig config;
  config.kernel = "k";
  config.block = {threads, 1, 1};
  config.params = pack_params(module, "k", {out});
  Called called{.result = device.launch(module, config), .out = std::vector<std::uint32_t>(128)};
  const std::vector<std::byte> bytes = device.memory().read(out, 512);
  std::memcpy(called.out.data(), bytes.data(), bytes.size());
  return called;
}

constexpr const char* kSum = R"(
.func (.param .b32 r) sum(.param .b32 n) {
  .reg .b32 %a<4>; .reg .pred %p;
  ld.param.u32 %a0, [n];
  setp.eq.u32 %p, %a0, 0;
  @%p bra ZERO;
  add.u32 %a1, %a0, -1;
  { .param .b32 q; .param .b32 back;
    st.param.b32 [q], %a1;
    call.uni (back), sum, (q);
    ld.param.b32 %a2, [back]; }
  add.u32 %a3, %a2, %a0;
  st.param.b32 [r], %a3;
  ret;
ZERO: st.param.b32 [r], 0;
  ret;
}
)";

// Lanes recurse to different depths and reconverge at one place, each with its own frames.
TEST(Calls, EveryLaneRecursesToItsOwnDepth) {
  const auto called = call(std::string(kSum) + R"(
.visible .entry k(.param .u64 p0) {
  .reg .b32 %r<4>; .reg .b64 %d<4>;
  ld.param.u64 %d0, [p0];
  mov.u32 %r0, %tid.x;
  { .param .b32 q; .param .b32 back;
    st.param.b32 [q], %r0;
    call.uni (back), sum, (q);
    ld.param.b32 %r1, [back]; }
  mad.wide.u32 %d1, %r0, 4, %d0;
  st.global.u32 [%d1], %r1;
  ret;
})");
  EXPECT_TRUE(called.result.clean());
  for (std::uint32_t i = 0; i < 32; ++i) EXPECT_EQ(called.out[i], i * (i + 1) / 2) << i;
}

TEST(Calls, TooManyOfOneAnotherOverflowTheStack) {
  const auto called = call(std::string(kSum) + R"(
.visible .entry k(.param .u64 p0) {
  .reg .b32 %r<2>;
  { .param .b32 q; .param .b32 back;
    st.param.b32 [q], 300;
    call.uni (back), sum, (q);
    ld.param.b32 %r1, [back]; }
  ret;
})");
  ASSERT_EQ(called.result.reports.size(), 1u);
  EXPECT_EQ(called.result.reports[0].kind, ReportKind::stack);
  EXPECT_EQ(called.result.reports[0].message, "256 nested calls are the limit: 'sum' exceeds it");
}

// A table of functions in memory, one address per lane: each group calls its own function, and all reconverge.
TEST(Calls, AFunctionPointerTakesEachLaneToItsFunction) {
  const auto called = call(R"(
.func (.param .b32 r) twice(.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, [n]; shl.b32 %a, %a, 1; st.param.b32 [r], %a; ret; }
.func (.param .b32 r) plus(.param .b32 n) { .reg .b32 %a; ld.param.b32 %a, [n]; add.u32 %a, %a, 100; st.param.b32 [r], %a; ret; }
.global .align 8 .u64 table[2] = {twice, plus};
.visible .entry k(.param .u64 p0) {
  .reg .b32 %r<6>; .reg .b64 %d<6>;
  ld.param.u64 %d0, [p0];
  mov.u32 %r0, %tid.x;
  and.b32 %r1, %r0, 1;
  mov.u64 %d1, table;
  mad.wide.u32 %d1, %r1, 8, %d1;
  ld.global.u64 %d2, [%d1];
  { .param .b32 q; .param .b32 back;
    st.param.b32 [q], %r0;
    proto: .callprototype (.param .b32 _) _ (.param .b32 _);
    call (back), %d2, (q), proto;
    ld.param.b32 %r2, [back]; }
  activemask.b32 %r3;
  mad.wide.u32 %d1, %r0, 8, %d0;
  st.global.v2.u32 [%d1], {%r2, %r3};
  ret;
})");
  EXPECT_TRUE(called.result.clean()) << (called.result.reports.empty() ? "" : to_text(called.result.reports[0]));
  EXPECT_EQ(called.out[2 * 6], 12u);
  EXPECT_EQ(called.out[2 * 7], 107u);
  EXPECT_EQ(called.out[1], 0xffffffffu);
}

// Two calls of one function whose lanes wait for each other inside: each half returns to its own call.
TEST(Calls, LanesThatMeetInAFunctionGoBackToWhereTheyCameFrom) {
  const auto called = call(R"(
.func meet() { bar.warp.sync -1; ret; }
.visible .entry k(.param .u64 p0) {
  .reg .b32 %r<4>; .reg .b64 %d<4>; .reg .pred %p<2>;
  ld.param.u64 %d0, [p0];
  mov.u32 %r0, %tid.x;
  setp.lt.u32 %p1, %r0, 16;
  @!%p1 bra ELSE;
  call meet;
  mov.u32 %r1, 1;
  bra JOIN;
ELSE: call meet;
  mov.u32 %r1, 2;
JOIN: mad.wide.u32 %d1, %r0, 4, %d0;
  st.global.u32 [%d1], %r1;
  ret;
})");
  EXPECT_TRUE(called.result.clean());
  EXPECT_EQ(called.out[0], 1u);
  EXPECT_EQ(called.out[31], 2u);
}

TEST(Calls, AnAddressWhereNoFunctionIsIsATrap) {
  const auto called = call(R"(
.visible .entry k(.param .u64 p0) {
  .reg .b64 %d<2>;
  mov.u64 %d1, 64;
  proto: .callprototype _ ();
  call %d1, proto;
  ret;
})");
  ASSERT_EQ(called.result.reports.size(), 1u);
  EXPECT_EQ(called.result.reports[0].message, "a call of 0x40, which is not the address of a function");
}

TEST(Calls, AnUndefinedFunctionIsAnErrorAtItsFirstCall) {
  const auto called = call(R"(
.extern .func absent();
.visible .entry k(.param .u64 p0) {
  call.uni absent;
  ret;
})");
  ASSERT_EQ(called.result.reports.size(), 1u);
  EXPECT_EQ(to_text(called.result.reports[0]),
            "UNSUPPORTED calls.ptx:7:3 'call.uni' kernel k: function 'absent' is declared but not defined, and the "
            "machine does not implement it");
}

// malloc returns one block per lane, and 0 when memory is exhausted; blocks that are not freed are reported as a note.
TEST(Calls, MallocGivesBlocksAndLeaksAreNoted) {
  const auto called = call(R"(
.extern .func (.param .b64 r) malloc(.param .b64 n);
.extern .func free(.param .b64 p);
.visible .entry k(.param .u64 p0) {
  .reg .b32 %r<4>; .reg .b64 %d<6>; .reg .pred %p<2>;
  ld.param.u64 %d0, [p0];
  mov.u32 %r0, %tid.x;
  { .param .b64 q; .param .b64 back;
    st.param.b64 [q], 64;
    call.uni (back), malloc, (q);
    ld.param.b64 %d1, [back]; }
  st.u32 [%d1+60], %r0;
  ld.u32 %r1, [%d1+60];
  mad.wide.u32 %d2, %r0, 4, %d0;
  st.global.u32 [%d2], %r1;
  setp.eq.u32 %p1, %r0, 3;
  @%p1 bra KEEP;
  { .param .b64 q;
    st.param.b64 [q], %d1;
    call.uni free, (q); }
KEEP: ret;
})");
  ASSERT_EQ(called.result.reports.size(), 1u);
  EXPECT_EQ(called.result.reports[0].kind, ReportKind::leak);
  EXPECT_EQ(called.result.reports[0].message, "1 malloc blocks are not freed, 64 bytes");
  EXPECT_EQ(called.out[31], 31u);
}

// `k` prints with the pointers that it is given: the format, the values, and the text of %s at the beginning of `out`.
std::vector<std::string> messages_of_printf(const std::string& format, const std::string& values,
                                            const std::string& text) {
  const auto called = call(R"(
.extern .func (.param .b32 r) vprintf (.param .b64 f, .param .b64 v);
.global .align 1 .b8 fmt[4] = {37, 115, 10, 0};
.visible .entry k(.param .u64 p0) {
  .reg .b32 %r<4>; .reg .b64 %d<8>;
  ld.param.u64 %d0, [p0];
  mov.u64 %d1, fmt;
  cvta.global.u64 %d1, %d1;
  mov.u64 %d5, 0x7fffffff0000;
  mov.u64 %d2, )" + text + R"(;
  st.global.u64 [%d0], %d2;
  mov.u64 %d3, )" + format + R"(;
  mov.u64 %d4, )" + values + R"(;
  { .param .b64 f; .param .b64 v; .param .b32 back;
    st.param.b64 [f], %d3;
    st.param.b64 [v], %d4;
    call.uni (back), vprintf, (f, v);
    ld.param.b32 %r0, [back]; }
  ret;
})",
                           1);
  std::vector<std::string> out;
  for (const Report& report : called.result.reports) {
    EXPECT_EQ(report.kind, ReportKind::out_of_bounds);
    out.push_back(report.message);
  }
  return out;
}

// Real printf ends the context or prints bytes of other memory.
TEST(Printf, WildPointersAreReported) {
  using Messages = std::vector<std::string>;
  EXPECT_EQ(messages_of_printf("%d1", "%d0", "%d1"), Messages{});
  EXPECT_EQ(messages_of_printf("%d1", "%d0", "0"), Messages{}) << "(null)";
  EXPECT_EQ(messages_of_printf("%d5", "%d0", "%d1"),
            Messages{"printf reads its format at 0x7fffffff0000, where no memory is allocated"});
  EXPECT_EQ(messages_of_printf("0", "%d0", "%d1"),
            Messages{"printf reads its format at 0x0, where no memory is allocated"});
  EXPECT_EQ(messages_of_printf("%d1", "%d5", "%d1"),
            Messages{"printf reads its values at 0x7fffffff0000, where no memory is allocated"});
  EXPECT_EQ(messages_of_printf("%d1", "%d0", "%d5"),
            Messages{"printf reads the text of %s at 0x7fffffff0000, where no memory is allocated"});
}

class NoStrings final : public PrintfStrings {
 public:
  [[nodiscard]] std::string at(std::uint64_t address) const override { return address == 16 ? "text" : "?"; }
};

// Each argument is aligned by its type: the double after an int begins at byte 8.
TEST(Printf, ArgumentsAreAlignedByTheirType) {
  std::vector<std::byte> bytes(40);
  const std::int32_t i = -7;
  const double d = 1.5;
  const std::uint64_t s = 16;
  const std::int64_t wide = -5'000'000'000;
  std::memcpy(bytes.data(), &i, 4);
  std::memcpy(bytes.data() + 8, &d, 8);
  std::memcpy(bytes.data() + 16, &s, 8);
  std::memcpy(bytes.data() + 24, &wide, 8);
  EXPECT_EQ(printf_text("%d %f %s %lld %%\n", bytes, NoStrings{}, 100), "-7 1.500000 text -5000000000 %\n");
  EXPECT_EQ(printf_text("[%5d|%-8.2f|%x]", bytes, NoStrings{}, 100), "[   -7|1.50    |10]");
  EXPECT_EQ(printf_text("no end %", bytes, NoStrings{}, 100), "no end ");
}

TEST(Printf, AWidthOrATextAboveItsLimitIsRejected) {
  const auto overflow = [](std::string_view format, std::int64_t most) {
    try {
      return printf_text(format, {}, NoStrings{}, most);
    } catch (const OverflowError& error) {
      return std::string(error.what());
    }
  };
  EXPECT_EQ(overflow("%4096d", 10'000).size(), 4096u);
  EXPECT_EQ(overflow("%4097d", 10'000), "'%4097d' has a width or precision of 4097: at most 4096");
  EXPECT_EQ(overflow("%.2000000000f", 10'000), "'%.2000000000f' has a width or precision of 2000000000: at most 4096");
  EXPECT_EQ(overflow("%99999999999999999999d", 10'000),
            "'%99999999999999999999d' has a width or precision of 1099511627776 or more: at most 4096");
  EXPECT_EQ(overflow("12345", 5), "12345");
  EXPECT_EQ(overflow("123456", 5), "6 bytes or more of one call");
  EXPECT_EQ(overflow("%6d", 5), "6 bytes or more of one call");
}

TEST(Calls, RulesOfALaunchAreAllToldAtOnce) {
  Device device;
  const LoadedModule& module = device.load(parse_module(R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 p0) .maxntid 64, 1, 1
{ .shared .b8 s[40000]; .reg .b32 %r<2>; mov.u32 %r1, s; ret; }
)",
                                                        "k.ptx"));
  LaunchConfig config;
  config.kernel = "k";
  config.grid = {3, 70000, 1};
  config.block = {32, 32, 2};
  config.dynamic_shared = 10000;
  config.params.resize(4);
  try {
    static_cast<void>(device.begin(module, config));
    FAIL();
  } catch (const GeometryError& e) {
    EXPECT_STREQ(e.what(),
                 "launch of 'k' rejected, 5 faults:\n"
                 "  block: 2048 threads: 1 to 1024\n"
                 "  block: 2048 threads: the kernel's .maxntid is 64\n"
                 "  grid: y is 70000: 1 to 65535\n"
                 "  shared: 40000 static + 10000 dynamic bytes = 50000: at most 49152; opt in for up to 232448\n"
                 "  params: 4 bytes: the kernel's block has 8");
  }
  config.grid = {3, 1, 1};
  config.block = {32, 1, 1};
  config.cluster = {2, 1, 1};
  config.dynamic_shared = 0;
  config.params.resize(8);
  EXPECT_THROW(static_cast<void>(device.begin(module, config)), GeometryError);
  config.cluster = {};
  EXPECT_EQ(device.launch(module, config).status, LaunchStatus::finished);
  config.kernel = "q";
  try {
    static_cast<void>(device.begin(module, config));
    FAIL();
  } catch (const GeometryError& e) {
    EXPECT_STREQ(e.what(), "launch of 'q' rejected: kernel: no kernel 'q' in k.ptx: there are 'k'");
  }
}

}  // namespace
}  // namespace kvscope::ptx::calls_test
