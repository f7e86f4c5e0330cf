// Undefined values that are passed to a function, or returned by one: the report names the read on one side of the call and
// the use on the other. A line of the PTX text that a report must name has a comment: // read, // use.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/check/undefined_params.h"
#include "gpu/virtual/text/parser.h"
#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::undefined_calls_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr CheckOptions kInit{.race = {.races = false, .proxy = false}};
constexpr CheckOptions kRegisters{.init = false, .race = {.races = false, .proxy = false}, .uninit_regs = true};

struct Called {
  std::string text;
  LaunchResult result;
  [[nodiscard]] std::vector<std::string> reports() const {
    std::vector<std::string> out;
    for (const Report& r : result.reports) {
      std::string parties;
      for (const ReportParty& p : r.parties)
        parties += (parties.empty() ? "" : "; ") + p.action + " " + p.actor + " " + p.source;
      out.push_back(std::string(name(r.kind)) + " " + parties + ": " + r.message);
    }
    return out;
  }
  // "k.ptx:12": the line with this comment.
  [[nodiscard]] std::string place(const std::string& comment) const {
    const std::size_t at = text.find("// " + comment);
    EXPECT_NE(at, std::string::npos) << comment;
    return "k.ptx:" +
           std::to_string(1 + std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(at), '\n'));
  }
  [[nodiscard]] std::string report(int thread, const std::string& read, const std::string& use, const std::string& how,
                                   const std::string& cause) const {
    const std::string who = "thread " + std::to_string(thread) + " (warp " + std::to_string(thread / 32) + " lane " +
                            std::to_string(thread % 32) + ") ";
    return "UNINITIALIZED read " + who + place(read) + "; used " + who + place(use) + ": the value " + how + ": " +
           cause;
  }
};
constexpr const char* kStored = "is stored to global memory";
constexpr const char* kNotWritten = "no thread and no copy had written this byte since the CTA began";

const std::string kStoreOf16 = "setp.eq.u32 %p3, %r0, 16; @%p3 st.global.u32 [out], %r2;";  // by one thread

// `s` has 256 bytes, of which each thread t below 16 has written 4 at 4 * t, all of them 3.
Called run(const std::string& functions, const std::string& body, const CheckOptions& options = kInit) {
  Called out;
  out.text =
      ".version 8.6 .target sm_90a .address_size 64\n.global .align 16 .b8 out[256];\n" + functions +
      "\n.visible .entry k() {\n.reg .b32 %r<16>; .reg .b64 %rd<8>; .reg .pred %p<4>; .shared .align 16 .b8 s[256];\n"
      "mov.u32 %r0, %tid.x; shl.b32 %r9, %r0, 2; mov.u32 %r8, s; add.u32 %r8, %r8, %r9; setp.lt.u32 %p1, %r0, 16;\n"
      "mov.u32 %r7, 3; @%p1 st.shared.u32 [%r8], %r7; bar.warp.sync -1; setp.eq.u32 %p2, %r0, 0;\n" +
      body + "\nret;\n}\n";
  Device device(ProgramOptions{.target = 90});
  const LoadedModule& module = device.load(parse_module(out.text, "k.ptx"));
  LaunchConfig config;
  config.kernel = "k";
  config.block = {32, 1, 1};
  Checks checks(options);
  out.result = device.launch(module, config, checks.monitor());
  EXPECT_EQ(out.result.status, LaunchStatus::finished);
  return out;
}

// Each thread stores x + 1 to its own place of `out`.
constexpr const char* kStore = R"(.func keep(.param .b32 x) {
.reg .b32 %r<4>; .reg .b64 %rd<4>;
ld.param.u32 %r1, [x];
add.u32 %r1, %r1, 1; mov.u32 %r2, %tid.x;
mov.u64 %rd1, out; mad.wide.u32 %rd1, %r2, 4, %rd1;
st.global.u32 [%rd1], %r1; // use
ret;
})";
constexpr const char* kCall =
    "ld.shared.u32 %r1, [%r8]; // read\n{ .param .b32 p; st.param.b32 [p], %r1; call keep, (p); }";

TEST(UndefinedCalls, AnArgumentIsReportedWhereTheFunctionUsesIt) {
  const Called all = run(kStore, kCall);
  EXPECT_THAT(all.reports(), ElementsAre(all.report(16, "read", "use", kStored, kNotWritten)));
  // The same by an address, and by some of the lanes.
  const std::string by_address =
      "P: .callprototype _ (.param .b32 _);\nmov.u64 %rd1, keep;\nld.shared.u32 %r1, [%r8]; // read\n"
      "{ .param .b32 p; st.param.b32 [p], %r1; call %rd1, (p), P; }";
  const Called indirect = run(kStore, by_address);
  EXPECT_THAT(indirect.reports(), ElementsAre(indirect.report(16, "read", "use", kStored, kNotWritten)));
  const std::string guarded = "ld.shared.u32 %r1, [%r8]; // read\n{ .param .b32 p; st.param.b32 [p], %r1; @";
  EXPECT_THAT(run(kStore, guarded + "%p1 call keep, (p); }").reports(), IsEmpty());
  const Called rest = run(kStore, guarded + "!%p1 call keep, (p); }");
  EXPECT_THAT(rest.reports(), ElementsAre(rest.report(16, "read", "use", kStored, kNotWritten)));
  // Once each: two groups of lanes in one activation.
  const Called both = run(kStore, guarded + "%p1 bra CALL;\nadd.u32 %r2, %r2, 1;\nCALL: call keep, (p); }");
  EXPECT_THAT(both.reports(), ElementsAre(both.report(16, "read", "use", kStored, kNotWritten)));
}

TEST(UndefinedCalls, AnArgumentThatTheFunctionDropsIsClean) {
  const char* const dropped = R"(.func keep(.param .b32 x) {
.reg .b32 %r<4>;
ld.param.u32 %r1, [x]; and.b32 %r1, %r1, 0; st.global.u32 [out], %r1;
ret;
})";
  EXPECT_THAT(run(dropped, kCall).reports(), IsEmpty());
  // A later call passes a defined value in the same place.
  EXPECT_THAT(run(kStore,
                  "mov.u32 %r2, 0;\nld.shared.u32 %r1, [%r8];\nLOOP: { .param .b32 p; st.param.b32 [p], %r1;\n"
                  "setp.eq.u32 %p3, %r2, 0;\n@%p3 bra NEXT;\ncall keep, (p); }\nNEXT: mov.u32 %r1, 5;\n"
                  "add.u32 %r2, %r2, 1;\nsetp.lt.u32 %p3, %r2, 3;\n@%p3 bra LOOP;")
                  .reports(),
              IsEmpty());
}

// The .param variable keeps its value after a call.
TEST(UndefinedCalls, AnArgumentThatIsPassedAgainIsStillUndefined) {
  const std::string functions = std::string(kStore) + R"(
.func drop(.param .b32 x) {
.reg .b32 %r<4>;
ld.param.u32 %r1, [x];
ret;
}
.func second(.param .b32 n, .param .b32 x) {
.reg .b32 %r<4>; .reg .pred %p<2>;
ld.param.u32 %r1, [n];
setp.ne.u32 %p1, %r1, 2;
@%p1 bra END;
ld.param.u32 %r2, [x]; mov.u32 %r1, %tid.x;
setp.eq.u32 %p1, %r1, 16;
@%p1 st.global.u32 [out], %r2; // in the third turn
END: ret;
})";
  const std::string load = "ld.shared.u32 %r1, [%r8]; // read\n";
  const Called twice =
      run(functions, load + "{ .param .b32 p; st.param.b32 [p], %r1; call drop, (p); call keep, (p); }");
  EXPECT_THAT(twice.reports(), ElementsAre(twice.report(16, "read", "use", kStored, kNotWritten)));
  const Called loop = run(functions, load + R"(mov.u32 %r2, 0;
{ .param .b32 n; .param .b32 x; st.param.b32 [x], %r1;
LOOP: st.param.b32 [n], %r2;
call second, (n, x);
add.u32 %r2, %r2, 1;
setp.lt.u32 %p3, %r2, 4;
@%p3 bra LOOP; })");
  EXPECT_THAT(loop.reports(), ElementsAre(loop.report(16, "read", "in the third turn", kStored, kNotWritten)));
  const std::string back = "{ .param .b32 p; st.param.b32 [p], %r1; call drop, (p);\n";
  const Called read = run(functions, load + back + "ld.param.b32 %r2, [p]; }\n" + kStoreOf16 + " // back");
  EXPECT_THAT(read.reports(), ElementsAre(read.report(16, "read", "back", kStored, kNotWritten)));
  // A defined value in its place.
  EXPECT_THAT(run(functions, load + back + "st.param.b32 [p], %r9; call keep, (p); }").reports(), IsEmpty());
}

TEST(UndefinedCalls, AResultIsReportedWhereTheCallerUsesIt) {
  const char* const loads = R"(.func (.param .b32 r) value(.param .b32 at) {
.reg .b32 %r<4>;
ld.param.u32 %r1, [at];
ld.shared.u32 %r2, [%r1]; // read
st.param.b32 [r], %r2;
ret;
})";
  const std::string call =
      "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r8; call (q), value, (p); ld.param.b32 %r1, [q]; }\n";
  EXPECT_THAT(run(loads, call).reports(), IsEmpty());
  const Called used = run(loads, call + "add.u32 %r2, %r1, 1;\nsetp.gt.u32 %p3, %r2, 7;\n@%p3 bra E; // use\nE:");
  EXPECT_THAT(used.reports(), ElementsAre(used.report(16, "read", "use", "decides a branch", kNotWritten)));
  // A second call of the function returns a defined value in the same place.
  const std::string again =
      "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r8; call (q), value, (p);\nmov.u32 %r3, s;\n"
      "st.param.b32 [p], %r3; call (q), value, (p); ld.param.b32 %r1, [q]; }\n";
  EXPECT_THAT(run(loads, again + "setp.gt.u32 %p3, %r1, 7;\n@%p3 bra E;\nE:").reports(), IsEmpty());
}

// A function without registers, or without any of its own, keeps the undefined bytes of its parameters and results.
TEST(UndefinedCalls, AFunctionWithoutRegistersPassesValuesOn) {
  const std::string functions = R"(.func (.param .b32 r) inner(.param .b32 x) {
.reg .b32 %r<4>;
ld.param.u32 %r1, [x]; add.u32 %r1, %r1, 1; st.param.b32 [r], %r1;
ret;
}
.func (.param .b32 r) wrap(.param .b32 x) {
call (r), inner, (x);
ret;
})";
  const Called used = run(functions,
                          "ld.shared.u32 %r1, [%r8]; // read\n"
                          "{ .param .b32 p; .param .b32 q; st.param.b32 [p], %r1; call (q), wrap, (p);\n"
                          "ld.param.b32 %r2, [q]; }\n" +
                              kStoreOf16 + " // use");
  EXPECT_THAT(used.reports(), ElementsAre(used.report(16, "read", "use", kStored, kNotWritten)));
}

// struct { char c; int n; } as nvcc passes and returns it: words that contain the padding.
TEST(UndefinedCalls, PaddingOfAStructIsReportedOnlyIfItIsUsed) {
  const std::string head = ".func (.param .align 4 .b8 r[8]) twice(.param .align 4 .b8 x[8]) {\n.reg .b32 %r<4>;\n";
  const std::string tail =
      "ld.param.b32 %r3, [x]; st.param.b32 [r], %r3; ld.param.b32 %r3, [x+4]; st.param.b32 [r+4], %r3;\nret;\n}";
  const std::string fields = head +
                             "ld.param.u8 %r1, [x]; ld.param.u32 %r2, [x+4]; add.u32 %r1, %r1, %r2; "
                             "st.global.u32 [out+128], %r1;\n" +
                             tail;
  const std::string word = head + "ld.param.b32 %r1, [x]; st.global.u32 [out+128], %r1; // use\n" + tail;
  const std::string last = head + "ld.param.u8 %r1, [x+3]; st.global.u32 [out+128], %r1; // use\n" + tail;
  const std::string call =
      "add.u32 %r5, %r8, 64;\n@%p2 st.shared.u8 [%r5], 1; @%p2 st.shared.u32 [%r5+4], 2;\n"
      "@!%p2 bra E;\nld.shared.b32 %r1, [%r5]; // read\nld.shared.b32 %r2, [%r5+4];\n"
      "{ .param .align 4 .b8 p[8]; .param .align 4 .b8 q[8]; st.param.b32 [p], %r1; st.param.b32 [p+4], %r2;\n"
      "call (q), twice, (p); ld.param.b32 %r3, [q]; ld.param.b32 %r4, [q+4]; }\n";
  const std::string uses_fields = "and.b32 %r3, %r3, 255; add.u32 %r3, %r3, %r4; st.global.u32 [out], %r3;\nE:";
  EXPECT_THAT(run(fields, call + uses_fields).reports(), IsEmpty());
  for (const std::string& function : {word, last}) {
    const Called padding = run(function, call + uses_fields);
    EXPECT_THAT(padding.reports(), ElementsAre(padding.report(0, "read", "use", kStored, kNotWritten)));
  }
  const Called returned = run(fields, call + "st.global.u32 [out], %r3; // use\nE:");
  EXPECT_THAT(returned.reports(), ElementsAre(returned.report(0, "read", "use", kStored, kNotWritten)));
}

// down(n, x) = n == 0 ? x : down(n - 1, x) + 0 * n. Each level has its own parameters.
TEST(UndefinedCalls, RecursionKeepsTheValuesOfEachLevel) {
  const char* const down = R"(.func (.param .b32 r) down(.param .b32 n, .param .b32 x) {
.reg .b32 %r<6>; .reg .pred %p<2>;
ld.param.u32 %r1, [n]; ld.param.u32 %r2, [x];
setp.eq.u32 %p1, %r1, 0;
@%p1 bra END;
sub.u32 %r3, %r1, 1;
{ .param .b32 a; .param .b32 b; .param .b32 c;
st.param.b32 [a], %r3; st.param.b32 [b], %r2;
call (c), down, (a, b);
ld.param.b32 %r2, [c]; }
END: st.param.b32 [r], %r2;
ret;
})";
  const std::string call =
      "ld.shared.u32 %r1, [%r8]; // read\nmov.u32 %r2, 4;\n"
      "{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %r2; st.param.b32 [b], %r1;\n"
      "call (c), down, (a, b); ld.param.b32 %r3, [c]; }\n";
  const Called through = run(down, call + "shl.b32 %r4, %r3, 1;\nsetp.ne.u32 %p3, %r4, 6;\n@%p3 bra E; // use\nE:");
  EXPECT_THAT(through.reports(), ElementsAre(through.report(16, "read", "use", "decides a branch", kNotWritten)));
  EXPECT_THAT(run(down, call).reports(), IsEmpty());
  // A function that calls another one with a defined value, and then uses its own parameter.
  const std::string nested = std::string(down) + R"(
.func outer(.param .b32 x) {
.reg .b32 %r<4>; .reg .pred %p<2>;
mov.u32 %r1, 1;
{ .param .b32 a; .param .b32 b; .param .b32 c; st.param.b32 [a], %r1; st.param.b32 [b], %r1; call (c), down, (a, b);
ld.param.b32 %r2, [c]; }
setp.eq.u32 %p1, %r2, 1;
@%p1 bra NEXT;
NEXT: ld.param.u32 %r3, [x];
setp.eq.u32 %p1, %r3, 1;
@%p1 bra END; // use
END: ret;
})";
  const Called kept =
      run(nested, "ld.shared.u32 %r1, [%r8]; // read\n{ .param .b32 p; st.param.b32 [p], %r1; call outer, (p); }");
  EXPECT_THAT(kept.reports(), ElementsAre(kept.report(16, "read", "use", "decides a branch", kNotWritten)));
}

TEST(UndefinedCalls, ParametersInRegistersAreFollowedToo) {
  const char* const add = R"(.func (.reg .u32 %sum) add(.reg .u32 %a, .reg .u32 %b) {
add.u32 %sum, %a, %b;
ret;
})";
  const std::string call = "ld.shared.u32 %r1, [%r8]; // read\ncall (%r2), add, (%r1, 5);\n";
  EXPECT_THAT(run(add, call).reports(), IsEmpty());
  // The result is written to the register of the argument.
  const Called same = run(add,
                          "ld.shared.u32 %r1, [%r8]; // read\ncall (%r1), add, (%r1, 5);\nsetp.eq.u32 %p3, %r1, 8;\n"
                          "@%p3 bra E; // use\nE:");
  EXPECT_THAT(same.reports(), ElementsAre(same.report(16, "read", "use", "decides a branch", kNotWritten)));
  const Called used = run(add, call + "setp.eq.u32 %p3, %r2, 8;\n@%p3 bra E; // use\nE:");
  EXPECT_THAT(used.reports(), ElementsAre(used.report(16, "read", "use", "decides a branch", kNotWritten)));
  EXPECT_THAT(
      run(add, call + "@%p1 bra E;\ncall (%r2), add, (5, 5);\nE: setp.eq.u32 %p3, %r2, 8;\n@%p3 bra F;\nF:").reports(),
      IsEmpty());
}

// A register that was never written, by the option: it is read where it is passed.
TEST(UndefinedCalls, AnUnwrittenRegisterIsNamedWhereItIsPassed) {
  const Called passed = run(kStore, "{ .param .b32 p; st.param.b32 [p], %r11; // read\ncall keep, (p); }", kRegisters);
  EXPECT_THAT(passed.reports(),
              ElementsAre(passed.report(0, "read", "use", kStored, "nothing had written %r11 in this lane")));
}

// A result that the function did not write in some of the lanes: the function's register, at its return.
TEST(UndefinedCalls, AnUnwrittenResultIsNamedInTheFunction) {
  const char* const some = R"(.func (.reg .u32 %sum) some(.reg .u32 %a) {
.reg .pred %p<2>;
setp.lt.u32 %p1, %a, 16;
@%p1 mov.u32 %sum, %a;
ret; // read
})";
  const Called result = run(some, "call (%r2), some, (%r0);\n" + kStoreOf16 + " // use", kRegisters);
  EXPECT_THAT(result.reports(),
              ElementsAre(result.report(16, "read", "use", kStored, "nothing had written %sum in this lane")));
}

// Marked and defined ranges of two lanes, against one entry for each byte.
TEST(UndefinedParams, AreThoseOfASetOfBytes) {
  UndefinedParams params;
  std::map<std::pair<int, std::int64_t>, std::uint32_t> all;
  std::uint32_t state = 1;
  const auto draw = [&state](std::uint32_t below) {
    state = state * 1664525 + 1013904223;
    return (state >> 8) % below;
  };
  constexpr std::int64_t kSize = 200;
  for (std::uint32_t turn = 0; turn < 3000; ++turn) {
    const int lane = 30 + static_cast<int>(draw(2));
    const std::int64_t at = static_cast<std::int64_t>(draw(kSize + 20)) - 10;
    const std::int64_t bytes = draw(150);
    if (turn % 2 == 0) {  // words: those have one origin
      for (std::int64_t i = at / 4 * 4; i < at / 4 * 4 + 4; ++i) {
        params.mark(lane, i, turn, kSize);
        if (i >= 0 && i < kSize) all[{lane, i}] = turn;
      }
    } else {
      params.define(lane, at, bytes);
      std::erase_if(all, [&](const auto& e) {
        return e.first.first == lane && e.first.second >= at && e.first.second < at + bytes;
      });
    }
    ASSERT_EQ(params.count(), std::ssize(all)) << turn;
    const std::int64_t from = draw(kSize);
    for (std::int64_t i = 0; i < 64; ++i) {
      const auto known = all.find({lane, from + i});
      ASSERT_EQ(params.mask(lane, from, 64) >> i & 1, known == all.end() ? 0U : 1U) << turn << " byte " << from + i;
      if (known == all.end()) continue;
      ASSERT_EQ(params.origin(lane, from + i), known->second) << turn;
    }
  }
}

TEST(UndefinedParams, TakeNoMemoryForDefinedBytes) {
  constexpr std::int64_t kSize = std::int64_t{1} << 50;
  UndefinedParams params;
  params.mark(31, kSize - 1, 5, kSize);
  EXPECT_EQ(params.mask(31, kSize - 2, 4), 2U);
  EXPECT_EQ(params.origin(31, kSize - 1), 5U);
  params.define(31, 0, kSize);
  EXPECT_EQ(params.count(), 0);
}

// malloc, free, printf and the failed assertion belong to the machine: an argument is used by the call.
TEST(UndefinedCalls, AFunctionOfTheMachineUsesItsArguments) {
  const Called size =
      run(".extern .func (.param .b64 r) malloc(.param .b64 n);",
          "ld.shared.u32 %r1, [%r8+64]; // read\ncvt.u64.u32 %rd1, %r1;\n{ .param .b64 n; .param .b64 r; "
          "st.param.b64 [n], %rd1;\n@%p2 call (r), malloc, (n); // use\n}");
  EXPECT_THAT(size.reports(), ElementsAre(size.report(0, "read", "use", "is passed to a function", kNotWritten)));
}

}  // namespace
}  // namespace kvscope::ptx::test::undefined_calls_test
