// The undefined bits of results, compared with all values that the undefined bits of an operand can have; and random
// programs, whose outputs may depend on unwritten bytes only where a report says so.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx::test::undefined_results_test {
namespace {

constexpr int kThreads = 256;

struct Outputs {
  std::vector<std::uint32_t> out;  // [word][thread]
  std::set<int> reported;          // words whose store was reported
};

// The body is line 1; each register of `stores` is then stored, on a line of its own.
Outputs run(const std::string& body, const std::vector<std::string>& stores) {
  std::string text =
      ".version 8.6 .target sm_90a .address_size 64 .visible .entry k(.param .u64 p0) { .reg .b16 %h<8>; .reg .b32 "
      "%r<80>; .reg .b64 %rd<32>; .reg .pred %p<8>; .shared .align 16 .b8 s[4096]; ld.param.u64 %rd0, [p0]; "
      "mov.u32 %r0, %tid.x; cvt.u64.u32 %rd1, %r0; shl.b64 %rd2, %rd1, 2; add.u64 %rd0, %rd0, %rd2; mov.u32 %r60, s; "
      "add.u32 %r61, %r60, %r0; shl.b32 %r62, %r0, 2; add.u32 %r62, %r62, %r60;" +
      body;
  for (std::size_t i = 0; i < stores.size(); ++i)
    text += fmt::format("\nst.global.b32 [%rd0+{}], {};", i * 4 * kThreads, stores[i]);
  text += "\nret; }\n";
  Device device(ProgramOptions{.target = 90});
  const LoadedModule& module = device.load(parse_module(text, "k.ptx"));
  const std::size_t bytes = stores.size() * 4 * kThreads;
  const std::uint64_t memory = device.memory().allocate(static_cast<std::int64_t>(bytes), "x");
  device.memory().write(memory, std::vector<std::byte>(bytes));
  LaunchConfig config;
  config.kernel = "k";
  config.block = {kThreads, 1, 1};
  config.options.max_reports = 1000;
  config.params = pack_params(module, "k", {memory});
  Checks checks({.init = true, .race = {.races = false, .proxy = false}, .wgmma = false});
  const LaunchResult result = device.launch(module, config, checks.monitor());
  Outputs out;
  for (const Report& report : result.reports) {
    EXPECT_EQ(report.kind, ReportKind::uninitialized) << to_text(report);
    const std::string& source = report.parties.back().source;
    out.reported.insert(std::stoi(source.substr(source.find(':') + 1)) - 2);
  }
  out.out.resize(stores.size() * kThreads);
  std::memcpy(out.out.data(), device.memory().at(memory, static_cast<std::int64_t>(bytes)), bytes);
  return out;
}

// %r10 is a byte: thread t's is t, or nothing has written it. %r20 is the result.
constexpr const char* kWrite = "st.shared.u8 [%r61], %r0;";
constexpr const char* kRead = "ld.shared.u8 %r10, [%r61];";

std::uint32_t bits_that_depend(const std::string& op) {
  const Outputs all = run(std::string(kWrite) + kRead + op, {"%r20"});
  EXPECT_TRUE(all.reported.empty()) << op;
  std::uint32_t out = 0;
  for (const std::uint32_t value : all.out) out |= value ^ all.out[0];
  return out;
}
// Each bit is stored alone, 16 bits in a launch.
std::uint32_t bits_reported(const std::string& op) {
  std::uint32_t out = 0;
  for (int half = 0; half < 2; ++half) {
    std::string masked = std::string(kRead) + op;
    std::vector<std::string> sixteen;
    for (int bit = 0; bit < 16; ++bit) {
      masked += fmt::format("and.b32 %r{}, %r20, {};", 30 + bit, std::uint32_t{1} << (16 * half + bit));
      sixteen.push_back(fmt::format("%r{}", 30 + bit));
    }
    for (const int bit : run(masked, sixteen).reported) out |= std::uint32_t{1} << (16 * half + bit);
  }
  return out;
}

class ExactOps : public ::testing::TestWithParam<const char*> {};
TEST_P(ExactOps, ReportTheBitsThatDependOnUnwrittenOnes) {
  EXPECT_EQ(bits_reported(GetParam()), bits_that_depend(GetParam())) << GetParam();
}
INSTANTIATE_TEST_SUITE_P(
    UndefinedResults, ExactOps,
    ::testing::Values(
        "and.b32 %r20, %r10, 0x3c;", "or.b32 %r20, %r10, 0x3c;", "xor.b32 %r20, %r10, 0xff00;", "not.b32 %r20, %r10;",
        "xor.b32 %r20, %r10, %r10;", "lop3.b32 %r20, %r10, 0x5a, 0xf0f, 0xca;",
        "lop3.b32 %r20, 0x5a, %r10, 0xf0f, 0x96;", "lop3.b32 %r20, 0x5a, 0x33, %r10, 0xe8;", "shl.b32 %r20, %r10, 5;",
        "shl.b32 %r20, %r10, 28;", "shr.u32 %r20, %r10, 3;", "shl.b32 %r12, %r10, 24; shr.s32 %r20, %r12, 4;",
        "shf.l.wrap.b32 %r20, %r10, 0x77, 9;", "shf.r.clamp.b32 %r20, 0x77, %r10, 9;", "bfe.u32 %r20, %r10, 2, 3;",
        "bfe.s32 %r20, %r10, 4, 4;", "bfi.b32 %r20, %r10, 0xffff, 8, 6;", "bfi.b32 %r20, 0x3, %r10, 2, 2;",
        "prmt.b32 %r20, %r10, 0x1234567, 0x3050;", "prmt.b32 %r20, %r10, 0x1234567, 0x5678;",
        "prmt.b32 %r20, 0x7, %r10, 0xc4f4;", "brev.b32 %r20, %r10;", "mov.b32 %r20, %r10;", "cvt.s32.s8 %r20, %r10;",
        "cvt.u32.u16 %r20, %r10;", "mov.b32 {%h0, %h1}, %r10; mov.b32 %r20, {%h1, %h0};",
        "setp.ne.u32 %p0, %r0, 999; selp.b32 %r20, %r10, 7, %p0;",
        "setp.eq.u32 %p0, %r0, 999; selp.b32 %r20, %r10, 7, %p0;",
        "setp.lt.u32 %p0, %r10, 9; selp.b32 %r20, 0x55, 0x57, %p0;", "add.u32 %r20, %r10, 0x0f;",
        "add.u32 %r20, %r10, 0x100;", "sub.u32 %r20, 0x1ff, %r10;", "shl.b32 %r12, %r10, 4; add.u32 %r20, %r12, 0xf;",
        "setp.eq.u32 %p0, %r10, 0x1ff; selp.b32 %r20, 1, 0, %p0;",
        "setp.eq.u32 %p0, %r10, 0x1f; selp.b32 %r20, 1, 0, %p0;",
        "setp.lt.u32 %p0, %r10, 0x100; selp.b32 %r20, 1, 0, %p0;",
        "setp.lt.u32 %p0, %r10, 0xff; selp.b32 %r20, 1, 0, %p0;",
        "setp.le.u32 %p0, %r10, 0xff; selp.b32 %r20, 1, 0, %p0;",
        "setp.gt.u32 %p0, %r10, 0xff; selp.b32 %r20, 1, 0, %p0;", "setp.ge.u32 %p0, %r10, 0; selp.b32 %r20, 1, 0, %p0;",
        "setp.gt.s32 %p0, %r10, -1; selp.b32 %r20, 1, 0, %p0;", "setp.gt.u32 %p0, %r10, -1; selp.b32 %r20, 1, 0, %p0;",
        "setp.eq.u32 %p1, %r0, 999; setp.lt.and.u32 %p0|%p2, %r10, 9, %p1; selp.b32 %r20, 1, 0, %p0;",
        "setp.eq.u32 %p1, %r0, 999; setp.lt.or.u32 %p0|%p2, %r10, 9, %p1; selp.b32 %r20, 1, 0, %p2;",
        "setp.lt.u32 %p1, %r10, 9; setp.eq.and.u32 %p0, %r0, 999, %p1; selp.b32 %r20, 1, 0, %p0;",
        "setp.lt.u32 %p1, %r10, 9; setp.eq.u32 %p2, %r0, 999; or.pred %p0, %p1, %p2; selp.b32 %r20, 1, 0, %p0;",
        "setp.lt.u32 %p1, %r10, 9; setp.eq.u32 %p2, %r0, 999; and.pred %p0, %p1, %p2; selp.b32 %r20, 1, 0, %p0;"));

class OtherOps : public ::testing::TestWithParam<const char*> {};
TEST_P(OtherOps, ReportAtLeastTheBitsThatDependOnUnwrittenOnes) {
  const std::uint32_t depend = bits_that_depend(GetParam());
  EXPECT_EQ(bits_reported(GetParam()) & depend, depend) << GetParam();
}
INSTANTIATE_TEST_SUITE_P(
    UndefinedResults, OtherOps,
    ::testing::Values("mul.lo.u32 %r20, %r10, 6;", "mul.lo.u32 %r20, %r10, 0;", "mad.lo.u32 %r20, %r10, 6, 5;",
                      "mad.lo.u32 %r20, 2, 3, %r10;", "mul.hi.u32 %r20, %r10, 0x10000000;", "neg.s32 %r20, %r10;",
                      "min.u32 %r20, %r10, 9;", "popc.b32 %r20, %r10;", "clz.b32 %r20, %r10;", "rem.u32 %r20, %r10, 7;",
                      "shl.b32 %r20, 3, %r10;", "prmt.b32 %r20, 0x1234567, 0x89abcdef, %r10;",
                      "cvt.rn.f32.u32 %r12, %r10; add.f32 %r20, %r12, 0f3f800000;",
                      "cvt.rn.f32.u32 %r12, %r10; fma.rn.f32 %r20, %r12, 0f00000000, 0f3f800000;",
                      "cvt.rn.f32.u32 %r12, %r10; cvt.rn.f16x2.f32 %r20, 0f3f800000, %r12;",
                      "cvt.rn.f32.u32 %r12, %r10; cvt.rn.f16x2.f32 %r20, %r12, 0f3f800000;",
                      "mov.b32 %r12, 0x3c003c00; add.rn.f16x2 %r20, %r10, %r12;",
                      "add.cc.u32 %r12, %r10, -1; addc.u32 %r20, 0, 0;",
                      "cvt.s32.s8 %r12, %r10; setp.lt.s32 %p0, %r12, 128; selp.b32 %r20, 1, 0, %p0;",
                      "dp4a.u32.u32 %r20, %r10, 0x01010101, 0;", "mul.wide.u32 %rd4, %r10, 5; cvt.u32.u64 %r20, %rd4;",
                      "cvt.rn.f32.u32 %r12, %r10; setp.lt.f32 %p0, %r12, 0f3f800000; selp.b32 %r20, 1, 0, %p0;"));

// Two numbers in a register: the half without an undefined bit is defined.
TEST(UndefinedResults, PackedNumbersAreSeparate) {
  EXPECT_EQ(bits_reported("mov.b32 %r13, 0x3c003c00; add.rn.f16x2 %r20, %r10, %r13;"), 0x0000ffffU);
  EXPECT_EQ(bits_reported("mov.b32 %r13, 0x3c003c00; shl.b32 %r12, %r10, 16; add.rn.f16x2 %r20, %r12, %r13;"),
            0xffff0000U);
  EXPECT_EQ(bits_reported("cvt.rn.f32.u32 %r12, %r10; cvt.rn.f16x2.f32 %r20, %r12, 0f3f800000;"), 0xffff0000U);
  EXPECT_EQ(bits_reported("mul.lo.u32 %r20, %r10, 0;"), 0U);
}

// A random program of 14 operations on eight registers, three of them loaded from shared memory. It runs with those
// bytes unwritten, and with six contents: a word of the output that differs between two contents must be reported.
TEST(UndefinedResults, AnOutputThatDependsOnUnwrittenBytesIsReported) {
  const std::vector<const char*> ops = {"and.b32 {d}, {a}, {b};",
                                        "or.b32 {d}, {a}, {b};",
                                        "xor.b32 {d}, {a}, {b};",
                                        "not.b32 {d}, {a};",
                                        "lop3.b32 {d}, {a}, {b}, {c}, 0xe8;",
                                        "shl.b32 {d}, {a}, 7;",
                                        "shr.u32 {d}, {a}, {b};",
                                        "shr.s32 {d}, {a}, 9;",
                                        "shf.l.wrap.b32 {d}, {a}, {b}, {c};",
                                        "bfe.s32 {d}, {a}, 5, 9;",
                                        "bfi.b32 {d}, {a}, {b}, 4, 11;",
                                        "prmt.b32 {d}, {a}, {b}, 0x2569;",
                                        "brev.b32 {d}, {a};",
                                        "add.u32 {d}, {a}, {b};",
                                        "sub.u32 {d}, {a}, {b};",
                                        "mul.lo.u32 {d}, {a}, {b};",
                                        "mad.lo.u32 {d}, {a}, {b}, {c};",
                                        "mul.hi.u32 {d}, {a}, {b};",
                                        "min.s32 {d}, {a}, {b};",
                                        "popc.b32 {d}, {a};",
                                        "setp.lt.s32 %p1, {a}, {b};",
                                        "setp.eq.u32 %p2, {a}, {b};",
                                        "setp.ge.and.u32 %p3, {a}, {b}, %p1;",
                                        "xor.pred %p1, %p2, %p3;",
                                        "or.pred %p2, %p1, %p3;",
                                        "selp.b32 {d}, {a}, {b}, %p1;",
                                        "@%p2 mov.b32 {d}, {a};",
                                        "@!%p3 add.u32 {d}, {a}, 1;",
                                        "and.b32 {d}, {a}, 0xff;",
                                        "or.b32 {d}, {a}, 0xffff0000;",
                                        "add.f32 {d}, {a}, {b};",
                                        "add.rn.f16x2 {d}, {a}, {b};",
                                        "shfl.sync.bfly.b32 {d}, {a}, 5, 0x1f, -1;",
                                        "vote.sync.ballot.b32 {d}, %p1, -1;",
                                        "mov.b32 {{%h0, %h1}}, {a}; mov.b32 {d}, {{%h1, %h0}};",
                                        "cvt.s32.s16 {d}, {a};",
                                        "slct.b32.s32 {d}, {a}, {b}, {c};",
                                        "redux.sync.or.b32 {d}, {a}, -1;",
                                        "st.shared.b32 [%r62+1024], {a}; ld.shared.b32 {d}, [%r62+1024];"};
  std::mt19937 random(7);
  const auto pick = [&random](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
  int dependent = 0, clean = 0;
  for (int program = 0; program < 60; ++program) {
    std::string body = "setp.eq.u32 %p1, 0, 1; setp.lt.u32 %p2, %r0, 77; setp.ge.u32 %p3, %r0, 200;";
    for (int i = 0; i < 8; ++i) {
      body += i < 2    ? fmt::format("ld.shared.b32 %r{}, [%r62+{}];", 10 + i, 2048 * i)
              : i == 2 ? fmt::format("ld.shared.u8 %r{}, [%r62+3];", 10 + i)
                       : fmt::format("mad.lo.u32 %r{}, %r0, {}, {};", 10 + i, random(), random());
    }
    for (int i = 0; i < 14; ++i) {
      const auto reg = [&] { return fmt::format("%r{}", 10 + pick(8)); };
      body += fmt::format(fmt::runtime(ops[pick(ops.size())]), fmt::arg("d", reg()), fmt::arg("a", reg()),
                          fmt::arg("b", reg()), fmt::arg("c", reg()));
    }
    std::vector<std::string> stores;
    for (int i = 0; i < 8; ++i) stores.push_back(fmt::format("%r{}", 10 + i));
    const Outputs unwritten = run(body, stores);
    std::vector<Outputs> written;
    for (int content = 0; content < 6; ++content) {
      std::string fill;
      for (const int offset : {0, 2048}) {
        fill += fmt::format(
            "mad.lo.u32 %r70, %r0, {}, {}; xor.b32 %r71, %r70, {}; mul.lo.u32 %r70, %r70, %r71; "
            "st.shared.b32 [%r62+{}], %r70;",
            random(), content < 2 ? 0xffffffffU * static_cast<unsigned>(content) : random(), random(), offset);
      }
      written.push_back(run(fill + body, stores));
      EXPECT_TRUE(written.back().reported.empty()) << body;
    }
    for (int word = 0; word < 8; ++word) {
      bool differs = false;
      for (const Outputs& other : written) {
        differs = differs || std::memcmp(&other.out[static_cast<std::size_t>(word) * kThreads],
                                         &written[0].out[static_cast<std::size_t>(word) * kThreads], 4 * kThreads) != 0;
      }
      if (differs) {
        ++dependent;
        EXPECT_TRUE(unwritten.reported.contains(word)) << "word " << word << " of\n" << body;
      } else if (!unwritten.reported.contains(word)) {
        ++clean;
      }
    }
  }
  EXPECT_GT(dependent, 100);
  EXPECT_GT(clean, 50);
}

}  // namespace
}  // namespace kvscope::ptx::test::undefined_results_test
