// Counters of small kernels: one instruction for each entry of the tables of accesses, sums by line, and totals against
// a count by hand of the events.
#include "gpu/virtual/check/counters.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/state.h"
#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::counters_test {
namespace {

// Creates its Counters when the launch begins and its program is available. Counts a second time with sets and loops.
class Counted final : public Monitor {
 public:
  explicit Counted(bool watches) : watches_(watches) {}  // false: it is not told of instructions, as Counters alone

  std::unique_ptr<Counters> counters;
  std::int64_t runs = 0, lanes = 0, sectors = 0, wavefronts = 0, ideal = 0, waits = 0, retries = 0;

  std::vector<RunCounts::Of> by_op;

  [[nodiscard]] bool wants_instructions() const override { return watches_; }
  [[nodiscard]] bool wants_run_counts() const override { return true; }
  void launch_begins(Launch& launch) override {
    counters = std::make_unique<Counters>(*launch.program);
    kept_ = launch.program;
  }
  void launch_ends(Launch& launch) override { counters->launch_ends(launch); }
  void instruction(const Exec& exec, const Op& op, LaneMask mask) override {
    ++runs;
    for (LaneMask left = mask; left != 0; left &= left - 1) ++lanes;
    const auto pc = static_cast<std::size_t>(&op - exec.program().ops.data());
    by_op.resize(exec.program().ops.size());
    by_op[pc].runs += 1;
    by_op[pc].lanes += std::popcount(mask);
    by_op[pc].divergent += exec.lane_group.lanes != ~exec.warp.exited;
  }
  void retried(const Exec&, const Op&, LaneMask) override { ++retries; }
  void split(const Exec& exec, LaneMask taken, std::int32_t pc) override { counters->split(exec, taken, pc); }
  void park(const Exec& exec, const Op& op) override {
    ++waits;
    counters->park(exec, op);
  }
  void access(const Exec& exec, const Op& op, const WarpAccess& a) override {
    counters->access(exec, op, a);
    if (a.space == Space::shared) {
      const Wavefronts cost =
          shared_wavefronts(a.addresses, a.lanes, a.matrix_rows ? 16 : a.bytes, a.kind == AccessKind::atomic);
      wavefronts += cost.wavefronts;
      ideal += cost.ideal;
    }
    if (a.space != Space::global) return;
    std::set<std::uint64_t> touched;
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if ((a.lanes >> lane & 1) == 0) continue;
      for (std::int32_t b = 0; b < a.bytes; ++b)
        touched.insert((a.addresses[lane] + static_cast<std::uint64_t>(b)) / 32);
    }
    sectors += static_cast<std::int64_t>(touched.size());
  }
  void async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                   std::span<const ByteRange> writes) override {
    counters->async_issue(exec, op, reads, writes);
    for (const ByteRange& range : reads) {
      for (std::int64_t b = 0; b < range.bytes; ++b) {
        const std::uint64_t sector = (range.address + static_cast<std::uint64_t>(b)) / 32;
        if (copied_.insert({exec.launch.step, sector}).second) ++sectors;
      }
    }
  }

 private:
  bool watches_;
  std::shared_ptr<const Program> kept_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> copied_;  // step, sector
};

OpCounts counts_of(const std::string& body, std::int64_t threads = 32, std::int64_t* retries = nullptr) {
  Counted counted(true), unwatched(false);
  const Seen seen =
      watch({.body = body, .threads = threads, .checks = {.init = false, .race = {.races = false}}, .also = &counted});
  static_cast<void>(watch({.body = body,
                           .threads = threads,
                           .checks = {.init = false, .race = {.races = false}, .wgmma = false},
                           .also = &unwatched}));
  EXPECT_EQ(unwatched.counters->ops(), counted.counters->ops());
  if (retries != nullptr) *retries = counted.retries;
  const OpCounts total = counted.counters->total();
  for (std::size_t pc = 0; pc < counted.by_op.size(); ++pc) {
    const OpCounts& of = counted.counters->ops()[pc];
    EXPECT_EQ(of.runs, counted.by_op[pc].runs) << pc;
    EXPECT_EQ(of.lanes, counted.by_op[pc].lanes) << pc;
    EXPECT_EQ(of.divergent, counted.by_op[pc].divergent) << pc;
  }
  EXPECT_EQ(total.runs, counted.runs);
  EXPECT_EQ(total.lanes, counted.lanes);
  EXPECT_EQ(total.sectors, counted.sectors);
  if (total.copies == 0) {  // whose destinations are no accesses of the warp
    EXPECT_EQ(total.wavefronts, counted.wavefronts);
    EXPECT_EQ(total.ideal_wavefronts, counted.ideal);
  }
  EXPECT_EQ(total.waits, counted.waits);
  OpCounts lines;
  for (const LineCounts& line : counted.counters->by_line()) lines += line.counts;
  EXPECT_EQ(lines, total);
  std::int64_t classes = 0;
  for (const std::int64_t of_class : counted.counters->by_class()) classes += of_class;
  EXPECT_EQ(classes, total.runs);
  return total;
}

std::string shared_load(const std::string& type, int stride, const std::string& to) {
  return "mad.lo.u32 %r4, %r1, " + std::to_string(stride) + ", %r60;\nld.shared." + type + " " + to + ", [%r4];";
}

TEST(Counters, WavefrontsOfRealLoadsAreThoseOfTheTable) {
  struct Row {
    const char* type;
    const char* to;
    int stride, wavefronts, ideal;
  };
  const Row rows[] = {{"u32", "%r5", 4, 1, 1},
                      {"u32", "%r5", 8, 2, 1},
                      {"u32", "%r5", 12, 1, 1},
                      {"u32", "%r5", 128, 32, 1},
                      {"u32", "%r5", 0, 1, 1},
                      {"u8", "%r5", 1, 1, 1},
                      {"u16", "%h0", 2, 1, 1},
                      {"u16", "%h0", 66, 1, 1},
                      {"u8", "%r5", 128, 32, 1},
                      {"u64", "%rd5", 8, 2, 2},
                      {"u64", "%rd5", 16, 4, 2},
                      {"u64", "%rd5", 0, 2, 2},
                      {"v4.u32", "{%r5,%r6,%r7,%r8}", 16, 4, 4},
                      {"v4.u32", "{%r5,%r6,%r7,%r8}", 32, 8, 4},
                      {"v4.u32", "{%r5,%r6,%r7,%r8}", 112, 4, 4}};
  for (const Row& row : rows) {
    const OpCounts counts = counts_of(shared_load(row.type, row.stride, row.to));
    EXPECT_EQ(counts.wavefronts, row.wavefronts) << row.type << " stride " << row.stride;
    EXPECT_EQ(counts.ideal_wavefronts, row.ideal) << row.type << " stride " << row.stride;
  }
}

TEST(Counters, SectorsOfRealLoadsAreThoseOfTheTable) {
  struct Row {
    const char* type;
    const char* to;
    int stride, from, sectors, ideal, lines;
  };
  const Row rows[] = {{"u32", "%r5", 4, 0, 4, 4, 1},     {"u32", "%r5", 4, 4, 5, 4, 2},
                      {"u32", "%r5", 4, 16, 5, 4, 2},    {"u32", "%r5", 8, 0, 8, 4, 2},
                      {"u32", "%r5", 120, 0, 32, 4, 30}, {"u64", "%rd5", 8, 0, 8, 8, 2},
                      {"u16", "%h0", 2, 0, 2, 2, 1},     {"u8", "%r5", 1, 0, 1, 1, 1},
                      {"u32", "%r5", 0, 0, 1, 1, 1},     {"v4.u32", "{%r5,%r6,%r7,%r8}", 16, 0, 16, 16, 4}};
  for (const Row& row : rows) {
    const OpCounts counts =
        counts_of("mul.wide.u32 %rd1, %r1, " + std::to_string(row.stride) + ";\nadd.u64 %rd1, %rd1, %rd0;\nld.global." +
                  row.type + " " + row.to + ", [%rd1+" + std::to_string(row.from) + "];");
    EXPECT_EQ(counts.sectors, row.sectors) << row.type << " stride " << row.stride << " from " << row.from;
    EXPECT_EQ(counts.ideal_sectors, row.ideal) << row.type << " stride " << row.stride;
    EXPECT_EQ(counts.lines, row.lines) << row.type << " stride " << row.stride;
    EXPECT_EQ(counts.requests, 1);
  }
}

// Rows, single places and neither, of every size, by all lanes and by some: counts_of() compares them with those of each access alone.
TEST(Counters, OfRowsAndSinglePlacesAreThoseOfTheRule) {
  for (const std::string guard : {"", "@%p3 "}) {
    for (const int bytes : {1, 2, 4, 8, 16}) {
      const std::string type = bytes == 16 ? "v4.u32" : "u" + std::to_string(8 * bytes);
      const std::string to = bytes == 16 ? "{%r20, %r21, %r22, %r23}" : bytes == 8 ? "%rd9" : "%r20";
      for (const char* place : {"mul.lo.u32 %r11, %r1, ", "and.b32 %r11, %r1, 0; mul.lo.u32 %r11, %r11, ",
                                "xor.b32 %r11, %r1, 1; mul.lo.u32 %r11, %r11, "}) {
        const std::string body =
            "and.b32 %r12, %r1, 5; setp.ne.u32 %p3, %r12, 4;\n" + std::string(place) + std::to_string(bytes) +
            "; add.u32 %r13, %r11, %r60; cvt.u64.u32 %rd10, %r11; add.u64 %rd11, %rd0, %rd10;\n" + guard +
            "ld.shared." + type + " " + to + ", [%r13];\n" + guard + "ld.global." + type + " " + to + ", [%rd11];\n";
        const OpCounts counts = counts_of(body);
        EXPECT_EQ(counts.requests, 1) << body;
        EXPECT_EQ(counts.degrees[0], 1) << body;
      }
    }
  }
  const OpCounts atomics = counts_of("red.shared.add.u32 [s], 1;\nred.shared.add.u32 [%r3], 1;");
  EXPECT_EQ(atomics.wavefronts, 33);
}

// Lanes of one generic load in two spaces: the lanes in shared memory have addresses that are no sectors.
TEST(Counters, LanesInAnotherSpaceAreNoSectors) {
  const OpCounts counts = counts_of(
      "cvt.u64.u32 %rd9, %r60; cvta.shared.u64 %rd9, %rd9; and.b32 %r12, %r1, 3; setp.ne.u32 %p3, %r12, 0;\n"
      "mul.wide.u32 %rd10, %r1, 64; add.u64 %rd10, %rd10, %rd0; selp.u64 %rd11, %rd9, %rd10, %p3; ld.u32 %r20, "
      "[%rd11];");
  EXPECT_EQ(counts.sectors, 8);
}

TEST(Counters, CountSplitsWaitsAndCopies) {
  const OpCounts counts = counts_of(
      "@%p0 bra L;\nadd.u32 %r5, %r5, 1;\nL:\nbar.sync 0;\nmul.wide.u32 %rd1, %r0, 4; add.u64 %rd1, %rd1, %rd0;\n"
      "cp.async.ca.shared.global [%r3], [%rd1], 4;\ncp.async.wait_all;",
      64);
  EXPECT_EQ(counts.splits, 1);
  EXPECT_EQ(counts.waits, 1);  // the first of two warps at the barrier
  EXPECT_EQ(counts.copies, 64);
  EXPECT_EQ(counts.copied_bytes, 256);
  EXPECT_EQ(counts.wavefronts, 2);
}

// Guards, branches of some lanes, loops of different lengths, a call, lanes that exit early, and barriers that park: each op is
// compared with a count of each instruction.
TEST(Counters, RunsAndLanesOfEachInstructionAreThoseOfItsEvents) {
  const OpCounts counts = counts_of(
      "and.b32 %r5, %r0, 3; mov.u32 %r6, 0;\n"
      "next: add.u32 %r6, %r6, 1; setp.le.u32 %p1, %r6, %r5; @%p1 bra next;\n"
      "setp.lt.u32 %p2, %r5, 2; @%p2 add.u32 %r6, %r6, 7; @!%p2 bra odd; add.u32 %r6, %r6, 1; bra.uni met;\n"
      "odd: sub.u32 %r6, %r6, 1;\n"
      "met: bar.sync 0; @%p1 bra other; bar.warp.sync 0xffffffff; bra.uni both; other: bar.warp.sync 0xffffffff; "
      "both:\n"
      " setp.eq.u32 %p3, %r5, 3; @%p3 exit; bar.warp.sync 0x77777777; add.u32 %r6, %r6, 2;\n"
      "setp.gt.u32 %p4, %r0, 200; @%p4 add.u32 %r6, %r6, 9; @%p4 bra next;",
      96);
  EXPECT_GT(counts.divergent, 0);
  EXPECT_GT(counts.splits, 6);
}

// Warp 1 parks at the wait, and executes it again after warp 0 has arrived.
TEST(Counters, AnInstructionThatIsExecutedAgainCountsOnce) {
  std::int64_t retries = 0;
  static_cast<void>(
      counts_of("mov.u32 %r5, m; @%p0 mbarrier.init.shared.b64 [%r5], 1; bar.sync 0; @%p2 bra arrive;\n"
                "wait: mbarrier.try_wait.parity.shared.b64 %p3, [%r5], 0; @!%p3 bra wait; bra.uni met;\n"
                "arrive: @%p0 mbarrier.arrive.shared.b64 %rd1, [%r5];\n"
                "met: bar.sync 0;",
                64, &retries));
  EXPECT_GE(retries, 1);
}

}  // namespace
}  // namespace kvscope::ptx::test::counters_test
