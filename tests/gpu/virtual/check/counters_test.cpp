// Counters of small kernels: one instruction for each entry of the tables of accesses, sums by line, and totals against
// a count by hand of the events.
#include "gpu/virtual/check/counters.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "gpu/virtual/machine/state.h"
#include "tests/gpu/virtual/check/watched.h"

namespace kvscope::ptx::test::counters_test {
namespace {

// Creates its Counters when the launch begins and its program is available. Counts a second time with sets and loops.
class Counted final : public Monitor {
 public:
  std::unique_ptr<Counters> counters;
  std::int64_t runs = 0, lanes = 0, sectors = 0, waits = 0;

  [[nodiscard]] bool wants_instructions() const override { return true; }
  void launch_begins(Launch& launch) override {
    counters = std::make_unique<Counters>(*launch.program);
    kept_ = launch.program;
  }
  void launch_ends(Launch& launch) override { counters->launch_ends(launch); }
  void instruction(const Exec& exec, const Op& op, LaneMask mask) override {
    ++runs;
    for (LaneMask left = mask; left != 0; left &= left - 1) ++lanes;
    counters->instruction(exec, op, mask);
  }
  void split(const Exec& exec, LaneMask taken, std::int32_t pc) override { counters->split(exec, taken, pc); }
  void park(const Exec& exec, const Op& op) override {
    ++waits;
    counters->park(exec, op);
  }
  void access(const Exec& exec, const Op& op, const WarpAccess& a) override {
    counters->access(exec, op, a);
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
  std::shared_ptr<const Program> kept_;
  std::set<std::pair<std::uint64_t, std::uint64_t>> copied_;  // step, sector
};

OpCounts counts_of(const std::string& body, std::int64_t threads = 32) {
  Counted counted;
  const Seen seen =
      watch({.body = body, .threads = threads, .checks = {.init = false, .race = {.races = false}}, .also = &counted});
  const OpCounts total = counted.counters->total();
  EXPECT_EQ(total.runs, counted.runs);
  EXPECT_EQ(total.lanes, counted.lanes);
  EXPECT_EQ(total.sectors, counted.sectors);
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

}  // namespace
}  // namespace kvscope::ptx::test::counters_test
