#include "apps/labs/wave_search.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "core/base/random.h"
#include "tests/whole_grid.h"

namespace kvscope::labs::wave_search_test {
namespace {

using testing::HasSubstr;
using Programs = std::vector<std::vector<WaveOp>>;

// The machine with memory: each copy of a wave has a cell in each stage, which holds the tile that landed there last.
// Copies land one by one, at any time.
class FreeLanding {
 public:
  explicit FreeLanding(const Programs& programs)
      : programs_(programs), at_(programs.size()), landed_(programs.size()) {}

  // Whether every read of every execution finds its tile in all cells.
  bool every_read_is_right() {
    if (!visited_.insert({at_, landed_}).second) return true;
    for (std::size_t w = 0; w < programs_.size(); ++w) {
      if (landed_[w] < copies(w).size()) {
        ++landed_[w];
        const bool right = every_read_is_right();
        --landed_[w];
        if (!right) return false;
      }
      if (at_[w] == programs_[w].size()) continue;
      const WaveOp& op = programs_[w][at_[w]];
      if (op.kind == WaveOpKind::barrier) continue;
      if (op.kind == WaveOpKind::wait && std::cmp_greater(copies(w).size() - landed_[w], op.count)) continue;
      if (op.kind == WaveOpKind::read && !holds_tile(op)) return false;
      ++at_[w];
      const bool right = every_read_is_right();
      --at_[w];
      if (!right) return false;
    }
    return after_barrier();
  }

 private:
  struct Copy {
    bool of_v;
    std::int64_t stage, cell, tile;
  };
  [[nodiscard]] std::vector<Copy> copies(std::size_t w) const {
    std::vector<Copy> result;
    for (std::size_t i = 0; i < at_[w]; ++i) {
      const WaveOp& op = programs_[w][i];
      for (std::int64_t c = 0; op.kind == WaveOpKind::issue && c < op.count; ++c) {
        result.push_back({op.of_v, op.stage, c, op.tile});
      }
    }
    return result;
  }
  [[nodiscard]] bool holds_tile(const WaveOp& read) const {
    for (std::size_t w = 0; w < programs_.size(); ++w) {
      std::map<std::int64_t, std::int64_t> cells;
      const std::vector<Copy> issued = copies(w);
      for (std::size_t i = 0; i < landed_[w]; ++i) {
        if (issued[i].of_v == read.of_v && issued[i].stage == read.stage) cells[issued[i].cell] = issued[i].tile;
      }
      for (std::int64_t c = 0; c < kCopies[w]; ++c) {
        const auto cell = cells.find(c);
        if (cell == cells.end() || cell->second != read.tile) return false;
      }
    }
    return true;
  }
  bool after_barrier() {
    for (std::size_t w = 0; w < programs_.size(); ++w) {
      if (at_[w] == programs_[w].size() || programs_[w][at_[w]].kind != WaveOpKind::barrier) return true;
    }
    for (std::size_t& at : at_) ++at;
    const bool right = every_read_is_right();
    for (std::size_t& at : at_) --at;
    return right;
  }

 public:
  static constexpr std::array<std::int64_t, 2> kCopies{2, 1};  // of each wave per load

 private:
  const Programs& programs_;
  std::vector<std::size_t> at_, landed_;
  std::set<std::pair<std::vector<std::size_t>, std::vector<std::size_t>>> visited_;
};

WaveOp random_op(const CounterRng& random, std::uint64_t& at) {
  WaveOp op;
  switch (random.integer(at++, 0, 5)) {
    case 0:
      op.kind = WaveOpKind::barrier;
      break;
    case 1:
      op.kind = WaveOpKind::wait;
      op.count = random.integer(at++, 0, 3);
      break;
    case 2:
    case 3:
      op.kind = WaveOpKind::read;
      break;
    default:
      op.kind = WaveOpKind::issue;
  }
  op.tile = random.integer(at++, 0, 1);
  op.stage = random.integer(at++, 0, 1);
  op.of_v = random.integer(at++, 0, 3) == 0;
  return op;
}

// Two tiles that are loaded and read in order, from which a few statements are missing: often correct.
std::vector<WaveOp> nearly_right(const CounterRng& random, std::uint64_t& at) {
  std::vector<WaveOp> ops;
  const std::int64_t other_stage = random.integer(at++, 0, 1);
  const auto add = [&](WaveOpKind kind, std::int64_t tile, std::int64_t count = 0) {
    WaveOp op;
    op.kind = kind;
    op.tile = tile;
    op.stage = tile * other_stage;
    op.count = count;
    if (random.integer(at++, 0, 11) != 0) ops.push_back(op);
  };
  const bool early = random.integer(at++, 0, 1) == 0;
  add(WaveOpKind::issue, 0);
  if (early) add(WaveOpKind::issue, 1);
  add(WaveOpKind::wait, 0, early ? random.integer(at++, 0, 2) : 0);
  add(WaveOpKind::barrier, 0);
  add(WaveOpKind::read, 0);
  if (random.integer(at++, 0, 1) == 0) add(WaveOpKind::barrier, 0);
  if (!early) add(WaveOpKind::issue, 1);
  add(WaveOpKind::wait, 0, random.integer(at++, 0, 3) == 0 ? 1 : 0);
  add(WaveOpKind::barrier, 0);
  add(WaveOpKind::read, 1);
  return ops;
}

// Both waves execute one random program, as a program of the lab does, or two different ones. No tile is issued twice
// into one stage: the search then asks for the second load, the memory holds the right tile after the first.
Programs random_programs(std::uint64_t seed) {
  const CounterRng random(seed, 12);
  std::uint64_t at = 0;
  Programs programs(2);
  const bool one_program = random.integer(at++, 0, 3) != 0;
  for (std::size_t w = 0; w < programs.size(); ++w) {
    if (w == 1 && one_program) {
      programs[1] = programs[0];
    } else if (seed % 2 == 0) {
      programs[w] = nearly_right(random, at);
    } else {
      std::set<std::array<std::int64_t, 3>> issued;
      const std::int64_t length = random.integer(at++, 2, 8);
      while (std::cmp_less(programs[w].size(), length)) {
        const WaveOp op = random_op(random, at);
        if (op.kind == WaveOpKind::issue && !issued.insert({op.of_v ? 1 : 0, op.tile, op.stage}).second) continue;
        programs[w].push_back(op);
      }
    }
    for (WaveOp& op : programs[w]) {
      if (op.kind == WaveOpKind::issue) op.count = FreeLanding::kCopies[w];
    }
  }
  return programs;
}

std::vector<WaveOp> unrolled(const std::string& text, const WaveBlock& block, std::int64_t wave) {
  return WaveProgram::parse(text, "p").unroll(block, wave);
}

WaveSearch searched(const std::string& text, const WaveBlock& block) {
  Programs programs;
  for (std::int64_t w = 0; w < block.waves(); ++w) programs.push_back(unrolled(text, block, w));
  return search_interleavings(programs);
}

const WaveFault& fault_of(const WaveSearch& search, WaveFaultKind kind) {
  static const WaveFault kNone{"no fault", {}};
  const auto& fault = search.faults[static_cast<std::size_t>(kind)];
  return fault ? *fault : kNone;
}

// Landing as late as possible is enough: the search with memory and free landing agrees on every program.
TEST(WaveSearch, AgreesWithFreeLanding) {
  int right = 0, wrong = 0;
  const std::int64_t programs = test::size_for_sanitizers(600, 6000);
  for (std::int64_t seed = 0; seed < programs; ++seed) {
    const Programs random = random_programs(static_cast<std::uint64_t>(seed));
    const WaveSearch search = search_interleavings(random);
    bool correct = true;
    for (const WaveFaultKind kind : {WaveFaultKind::own_copy, WaveFaultKind::other_copy, WaveFaultKind::reuse}) {
      correct = correct && !search.faults[static_cast<std::size_t>(kind)];
    }
    ASSERT_EQ(correct, FreeLanding(random).every_read_is_right()) << "seed " << seed;
    bool reads = false;
    for (const WaveOp& op : random[0]) reads = reads || op.kind == WaveOpKind::read;
    if (reads) ++(correct ? right : wrong);
  }
  EXPECT_GT(right, programs / 100);
  EXPECT_GT(wrong, programs / 10);
}

constexpr const char* kOneStage = "tile\n issue K i into 0\n wait vmcnt(0)\n barrier\n read K i from 0\n barrier\n";

TEST(WaveSearch, AcceptsALoopOfOneStage) {
  const WaveSearch search = searched(kOneStage, {3, {2, 2, 2}, {1, 1, 1}});
  EXPECT_TRUE(search.correct());
  EXPECT_GT(search.states, 30);
}

// Copies are counted from 0 over the whole program: tile 1 of a wave with 3 copies a load begins with copy 3.
TEST(WaveSearch, NamesTheWaveTheStageAndTheCopy) {
  const WaveBlock block{2, {3, 3}, {1, 1}};
  const auto without = [](std::string line) {
    std::string text = kOneStage;
    return text.erase(text.find(line), line.size());
  };
  EXPECT_EQ(fault_of(searched(without(" wait vmcnt(0)\n"), block), WaveFaultKind::own_copy).message,
            "wave 0 reads K stage 0 before its copy 0 has landed");
  EXPECT_EQ(
      fault_of(searched("tile\n issue K i into i\n wait vmcnt(2) when i == 1\n wait vmcnt(0) when i == 0\n barrier\n"
                        " read K i from i\n",
                        block),
               WaveFaultKind::own_copy)
          .message,
      "wave 0 reads K stage 1 before its copy 4 has landed");
  EXPECT_EQ(fault_of(searched(without(" barrier\n"), block), WaveFaultKind::other_copy).message,
            "wave 0 reads tile 0 from K stage 0 before wave 1's copies of that tile are issued into it");
}

// Without the last barrier a fast wave overwrites what a slow one has yet to read. The shortest way there: both waves
// issue, wait and pass the barrier (5 steps), wave 0 reads and issues tile 1, wave 1 reads.
TEST(WaveSearch, FindsAShortestInterleaving) {
  const WaveSearch search =
      searched("tile\n issue K i into 0\n wait vmcnt(0)\n barrier\n read K i from 0\n", {2, {1, 1}, {1, 1}});
  const WaveFault& fault = fault_of(search, WaveFaultKind::reuse);
  EXPECT_EQ(fault.message, "wave 1 reads tile 0 from K stage 0 after wave 0's copy 1, of tile 1, was issued into it");
  ASSERT_EQ(fault.steps.size(), 8U);
  EXPECT_EQ(fault.steps[4].wave, -1);
  EXPECT_EQ(to_text(fault.steps.back().op), "read K 0 from 0");
  EXPECT_EQ(fault.steps.back().wave, 1);
  EXPECT_THAT(steps_text(fault), HasSubstr("   5   all     4  barrier               0 0"));
  EXPECT_THAT(steps_text(fault, 2), HasSubstr("6 steps before these"));
}

TEST(WaveSearch, FindsABarrierThatOneWaveDoesNotReach) {
  const WaveSearch search = searched("tile\n barrier when wave == 0\n", {1, {1, 1}, {1, 1}});
  EXPECT_EQ(fault_of(search, WaveFaultKind::stuck).message,
            "wave 0 waits at the barrier of line 2 for ever: wave 1 has ended");
}

// Three waves of 200 statements without a barrier have 8 million states.
TEST(WaveSearch, StopsWhenThereAreTooManyStates) {
  std::string text = "tile\n";
  for (int i = 0; i < 200; ++i) text += " wait vmcnt(0)\n";
  const WaveSearch search = searched(text, {1, {1, 1, 1}, {1, 1, 1}});
  EXPECT_FALSE(search.complete);
  EXPECT_FALSE(search.correct());
}

}  // namespace
}  // namespace kvscope::labs::wave_search_test
