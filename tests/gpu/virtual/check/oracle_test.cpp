// Random programs of loads, stores, atomics, barriers, fences, flags and copies, in shared and in global memory: the checkers find exactly
// the races that the brute-force oracle finds.
#include "tests/gpu/virtual/check/oracle.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "tests/gpu/virtual/check/watched.h"
#include "tests/property.h"

namespace kvscope::ptx::test::oracle_test {
namespace {

constexpr std::int64_t kThreads = 80;  // the last warp has 16 lanes
constexpr int kWarps = 3, kObjects = 12;

int below(int n) {
  return prop::uniform<int>(0, n);
}

// Programs are straight-line code, so every thread that others wait for arrives.
struct RandomProgram {
  std::string text;
  int objects = 0, barriers = 0;
  bool in_cluster_barrier = false;  // all threads have arrived, and none has waited
  // Rows of this program, in bytes: lane i of a warp begins at row_at + i * row.
  int row = 16 << below(3), row_at = below(3) * 36;

  // %p3: the lanes that do the next operation.
  void choose() {
    const int warp = below(kWarps);
    const unsigned masks[] = {0xffffffffu, 1u << below(16), 0xffffu,
                              0x55555555u, 0xff00ffu,       prop::uniform<unsigned>(1u, 0xffffu)};
    const unsigned mask = masks[below(6)];
    if (below(4) == 0) {
      text += "setp.ge.u32 %p3, %r0, 0;\n";
    } else {
      text += fmt::format(
          "setp.eq.u32 %p4, %r2, {}; shr.u32 %r10, {}, %r1; and.b32 %r10, %r10, 1; setp.ne.and.u32 %p3, "
          "%r10, 0, %p4;\n",
          warp, mask);
    }
  }
  // %r11: where each lane touches `size` bytes of a small range, or of a column of one lane in each 16, 32, or 2 * size bytes.
  void place(int size) {
    const int at = below(4) * 64;
    switch (below(7)) {
      case 5:  // two lanes in each 16 bytes
        text += fmt::format("shr.u32 %r11, %r1, 1; mad.lo.u32 %r11, %r11, {}, %r60; and.b32 %r16, %r1, 1;\n",
                            std::max(16, 2 * size));
        text += fmt::format("mad.lo.u32 %r11, %r16, {0}, %r11; add.u32 %r11, %r11, {1};\n", size, below(3) * size);
        break;
      case 0:
        text += fmt::format("add.u32 %r11, %r60, {};\n", at);  // one place
        break;
      case 1:
        text += fmt::format("xor.b32 %r11, %r1, {}; mad.lo.u32 %r11, %r11, {}, %r60;\n", below(8), size);
        break;
      case 2:
        text +=
            fmt::format("and.b32 %r11, %r1, 15; mad.lo.u32 %r11, %r11, {}, %r60; add.u32 %r11, %r11, {};\n", size, at);
        break;
      case 3:
        text +=
            fmt::format("mul.lo.u32 %r11, %r1, 5; and.b32 %r11, %r11, 31; mad.lo.u32 %r11, %r11, {}, %r60;\n", size);
        break;
      case 4: {
        const int stride = below(3) == 0 ? 2 * size : 16 << below(2);
        text += fmt::format("mad.lo.u32 %r11, %r1, {}, %r60; add.u32 %r11, %r11, {};\n", stride,
                            below(stride / size) * size);
        break;
      }
      default:
        text += fmt::format("mad.lo.u32 %r11, %r1, {}, %r60; add.u32 %r11, %r11, {};\n", size, below(2) * size);
    }
  }
  // All lanes of a warp, or of all warps, go through their rows.
  void go_through_rows() {
    if (below(4) == 0) row = 4 * (4 + below(13));
    text += below(4) == 0 ? "setp.ge.u32 %p3, %r0, 0;\n" : fmt::format("setp.eq.u32 %p3, %r2, {};\n", below(kWarps));
    text += fmt::format("mad.lo.u32 %r11, %r1, {}, %r60; add.u32 %r11, %r11, {}; mad.lo.u32 %r11, %r2, {}, %r11;\n",
                        row, row_at, below(3) == 0 ? 0 : 20 * row);
    for (int i = 1 + below(6); i > 0; --i) {
      const bool wide = row_at % 8 == 0 && row % 8 == 0 && below(3) == 0;
      // Sometimes a few bytes into the next lane's row.
      const int at = wide ? 8 * below(row / 8) : 4 * below(row / 4 + below(2));
      text += below(5) < 2
                  ? fmt::format("@%p3 ld.shared.u{} {}, [%r11+{}];\n", wide ? 64 : 32, wide ? "%rd9" : "%r12", at)
                  : fmt::format("@%p3 st.shared.u{} [%r11+{}], {};\n", wide ? 64 : 32, at, wide ? "%rd0" : "%r0");
      if (below(8) == 0) text += "bar.warp.sync 0xffffffff;\n";
    }
  }
  void one() {
    if (below(6) == 0) return go_through_rows();
    const int sizes[] = {1, 2, 4, 4, 8, 16};
    const int size = sizes[below(6)];
    switch (below(18)) {
      case 0:
      case 1:
      case 2:
      case 3:
        choose();
        place(size);
        text += size == 16  ? "@%p3 ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r11];\n"
                : size == 8 ? "@%p3 ld.shared.u64 %rd9, [%r11];\n"
                            : fmt::format("@%p3 ld.shared.u{} %r12, [%r11];\n", 8 * size);
        break;
      case 4:
      case 5:
      case 6:
        choose();
        place(size);
        text += size == 16  ? "@%p3 st.shared.v4.u32 [%r11], {%r0, %r0, %r0, %r0};\n"
                : size == 8 ? "@%p3 st.shared.u64 [%r11], %rd0;\n"
                            : fmt::format("@%p3 st.shared.u{} [%r11], %r0;\n", 8 * size);
        break;
      case 7:
        choose();
        place(4);
        text +=
            below(2) == 0 ? "@%p3 red.shared.add.u32 [%r11], 1;\n" : "@%p3 ld.relaxed.cta.shared.u32 %r12, [%r11];\n";
        break;
      case 8:
        text += "bar.sync 0;\n";
        break;
      case 9:
        if (barriers == 15) break;  // each once: an arrival may run far ahead of the waiting warp
        ++barriers;
        text += fmt::format("@%p2 bar.arrive {0}, 64;\nsetp.eq.u32 %p4, %r2, 1;\n@%p4 bar.sync {0}, 64;\n", barriers);
        break;
      case 10:
        text += below(2) == 0 ? fmt::format("setp.eq.u32 %p4, %r2, {};\n@%p4 bar.warp.sync 0xffffffff;\n", below(2))
                              : fmt::format(
                                    "setp.eq.u32 %p4, %r2, {}; setp.lt.and.u32 %p3, %r1, 16, %p4;\n@%p3 "
                                    "bar.warp.sync 0xffff;\n",
                                    below(3));
        break;
      case 11:  // one thread arrives, some threads wait
        if (objects == kObjects) break;
        text += fmt::format("setp.eq.u32 %p4, %r0, {};\n@%p4 mbarrier.arrive.{}shared::cta.b64 _, [n+{}];\n",
                            below(kThreads), below(4) == 0 ? "relaxed.cta." : "", 8 * objects);
        wait();
        break;
      case 12:  // the copies of one thread arrive
        if (objects == kObjects) break;
        text += fmt::format("setp.eq.u32 %p4, %r0, {};\n@%p4 cp.async.mbarrier.arrive.noinc.shared.b64 [n+{}];\n",
                            below(kThreads), 8 * objects);
        wait();
        break;
      case 13: {
        const int bytes = 4 << below(3);
        choose();
        place(bytes);
        text += fmt::format("@%p3 cp.async.ca.shared.global [%r11], [%rd0], {};\n@%p3 cp.async.commit_group;\n", bytes);
        break;
      }
      case 14:
        choose();
        text += fmt::format("@%p3 cp.async.wait_group {};\n", below(3));
        break;
      case 15:
        choose();
        text += "@%p3 fence.acq_rel.cta;\n";
        break;
      case 16:
        cluster_barrier();
        break;
      default:
        choose();
        text += fmt::format("add.u32 %r11, %r60, {};\n@%p3 {};\n", 256 + 4 * below(2),
                            below(2) == 0 ? (below(2) == 0 ? "st.release.cta.shared.u32 [%r11], %r0"
                                                           : "st.relaxed.cta.shared.u32 [%r11], %r0")
                                          : (below(2) == 0 ? "ld.acquire.cta.shared.u32 %r12, [%r11]"
                                                           : "ld.relaxed.cta.shared.u32 %r12, [%r11]"));
    }
  }
  // An arrival, or the wait for it, with other operations in between.
  void cluster_barrier() {
    text += in_cluster_barrier ? "barrier.cluster.wait;\n"
            : below(4) == 0    ? "barrier.cluster.arrive.relaxed;\n"
                               : "barrier.cluster.arrive;\n";
    in_cluster_barrier = !in_cluster_barrier;
  }
  // The same kinds of accesses in global memory; %r58 is 0.
  void one_in_global() {
    const auto access = [&](int size, const std::string& form) {
      const std::size_t begin = text.size();
      if (below(4) == 0) {
        text += fmt::format("mad.lo.u32 %r11, %r1, {}, {}; mad.lo.u32 %r11, %r2, {}, %r11;\n", size, 16 * below(4),
                            below(2) * 32 * size);  // rows
      } else {
        place(size);
        for (std::size_t at = text.find("%r60", begin); at != std::string::npos; at = text.find("%r60", at))
          text.replace(at, 4, "%r58");
      }
      text += "cvt.u64.u32 %rd11, %r11; add.u64 %rd11, %rd0, %rd11;\n@%p3 " + form + ";\n";
    };
    const int sizes[] = {1, 2, 4, 4, 8, 16};
    const int size = sizes[below(6)];
    choose();
    switch (below(12)) {
      case 0:
      case 1:
      case 2:
      case 3:
        access(size, size == 16  ? "ld.global.v4.u32 {%r12, %r13, %r14, %r15}, [%rd11]"
                     : size == 8 ? "ld.global.v2.u32 {%r12, %r13}, [%rd11]"
                                 : fmt::format("ld.global.u{} %r12, [%rd11]", 8 * size));
        break;
      case 4:
      case 5:
      case 6:
        access(size, size == 16  ? "st.global.v4.u32 [%rd11], {%r0, %r0, %r0, %r0}"
                     : size == 8 ? "st.global.v2.u32 [%rd11], {%r0, %r0}"
                                 : fmt::format("st.global.u{} [%rd11], %r0", 8 * size));
        break;
      case 7:
        access(4, below(2) == 0 ? "red.global.add.u32 [%rd11], 1" : "ld.relaxed.gpu.global.u32 %r12, [%rd11]");
        break;
      case 8:
        text += "bar.sync 0;\n";
        break;
      case 9:
        text += fmt::format("setp.eq.u32 %p4, %r2, {};\n@%p4 bar.warp.sync 0xffffffff;\n", below(2));
        break;
      case 10:
        text += "@%p3 fence.acq_rel.gpu;\n";
        break;
      default:
        text += below(2) == 0 ? fmt::format("@%p3 st.release.gpu.global.u32 [%rd0+{}], %r0;\n", 3968 + 4 * below(2))
                              : fmt::format("@%p3 ld.acquire.gpu.global.u32 %r12, [%rd0+{}];\n", 3968 + 4 * below(2));
    }
  }
  void wait() {
    choose();
    const int object = objects++;
    text += fmt::format(
        "W{0}: @%p3 mbarrier.try_wait.parity.{2}shared::cta.b64 %p5, [n+{1}], 0;\n@!%p3 setp.ge.u32 %p5, "
        "%r0, 0;\n@!%p5 bra W{0};\n",
        object, 8 * object, below(5) == 0 ? "relaxed.cta." : "");
  }
};

// Runs the program under the checkers and the oracle.
void compare(const RandomProgram& program, const CheckOptions& checks, Oracle& oracle) {
  Watched kernel{.body = program.text, .threads = kThreads};
  kernel.launch.policy = below(3) == 0 ? Policy::late : below(2) == 0 ? Policy::early : Policy::seeded;
  if (kernel.launch.policy == Policy::seeded) kernel.launch.seed = static_cast<std::uint64_t>(1 + below(1000));
  kernel.launch.max_reports = 10'000;
  kernel.checks = checks;
  kernel.also = &oracle;
  const Seen seen = watch(kernel);
  std::set<Oracle::Race> found;
  for (const Report& r : seen.result.reports) {
    if (name(r.kind).starts_with("RACE")) found.insert({std::string(name(r.kind)), r.parties[0].pc, r.parties[1].pc});
    if (r.kind == ReportKind::deadlock || r.kind == ReportKind::diverged) RC_FAIL(program.text + to_text(r));
  }
  // No report that is not a race.
  for (const Oracle::Race& race : found) {
    if (oracle.races().count(race) == 0)
      RC_FAIL(program.text +
              fmt::format("{} {} {} is no race", std::get<0>(race), std::get<1>(race), std::get<2>(race)));
  }
  // Each access that races is reported, though not with every earlier access if these are ordered before one another.
  for (const Oracle::Race& race : oracle.certain()) {
    const bool named = std::any_of(found.begin(), found.end(), [&](const Oracle::Race& f) {
      return std::get<0>(f) == std::get<0>(race) && std::get<2>(f) == std::get<2>(race);
    });
    if (!named)
      RC_FAIL(program.text +
              fmt::format("{} {} {} is missing", std::get<0>(race), std::get<1>(race), std::get<2>(race)));
  }
}

TEST(RaceChecker, FindsTheRacesThatTheBruteForceOracleFinds) {
  EXPECT_TRUE(prop::check("the same races", [] {
    for (int i = 0; i < 10; ++i) {
      RandomProgram program;
      for (int object = 0; object < kObjects; ++object)
        program.text += fmt::format("@%p0 mbarrier.init.shared.b64 [n+{}], 1;\n", 8 * object);
      program.text += "bar.sync 0;\n";
      for (int length = 4 + below(40); length > 0; --length) program.one();
      if (program.in_cluster_barrier) program.cluster_barrier();
      Oracle oracle(kThreads);
      compare(program,
              {.init = false, .race = {.same_value = SameValue::error, .init_fence = false}, .nc_modified = false},
              oracle);
    }
  }));
}

TEST(GlobalRaces, AreThoseThatTheBruteForceOracleFinds) {
  EXPECT_TRUE(prop::check("the same races", [] {
    for (int i = 0; i < 10; ++i) {
      RandomProgram program;
      program.text = "mov.u32 %r58, 0;\n";
      for (int length = 4 + below(40); length > 0; --length) program.one_in_global();
      Oracle oracle(kThreads, Space::global);
      compare(program,
              {.init = false,
               .race = {.races = false, .proxy = false, .same_value = SameValue::error},
               .nc_modified = false,
               .global_race = true},
              oracle);
    }
  }));
}

}  // namespace
}  // namespace kvscope::ptx::test::oracle_test
