// Lab 12: a schedule of waves that bring K and V through LDS. It must be correct in every interleaving; then the copies
// that overlap computations are counted.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "apps/labs/graders.h"
#include "apps/labs/wave_picture.h"
#include "apps/labs/wave_program.h"
#include "apps/labs/wave_search.h"
#include "core/base/errors.h"
#include "core/base/report.h"

namespace kvscope::labs {
namespace {

constexpr std::string_view kSchedule = "schedule.txt";
constexpr std::int64_t kBarriersPerTile = 2;

// Smallest first: the first failing block is shown.
std::vector<WaveBlock> make_blocks(const Seed& seed) {
  const CounterRng random = seed.random(0);
  std::uint64_t at = 0;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  const auto even = [](std::int64_t waves, std::int64_t copies) {
    return std::vector<std::int64_t>(static_cast<std::size_t>(waves), copies);
  };
  const auto uneven = [&](std::int64_t waves) {
    std::vector<std::int64_t> copies = even(waves, 2 * pick(2, 3));
    for (std::size_t w = 1 + static_cast<std::size_t>(pick(0, waves - 2)); w < copies.size(); ++w) copies[w] /= 2;
    return copies;
  };
  const std::int64_t k = pick(1, 3);
  std::vector<WaveBlock> blocks{{1, even(2, 1), even(2, 1)},
                                {2, even(2, 1), even(2, 1)},
                                {3, even(2, k), even(2, k + pick(1, 3))},  // more copies of V than of K
                                {pick(3, 4), even(3, k + pick(1, 3)), even(3, k)}};
  for (const std::int64_t waves : {std::int64_t{2}, pick(3, 4)}) {
    std::vector<std::int64_t> copies = uneven(waves), of_v = copies;
    for (std::int64_t& each : of_v) each += pick(0, 1);
    blocks.push_back({pick(2, 3), std::move(copies), std::move(of_v)});
  }
  return blocks;
}

std::string block_text(const WaveBlock& block) {
  return fmt::format("{} waves, {}; copies of each wave: {} of K, {} of V", block.waves(), counted(block.tiles, "tile"),
                     fmt::join(block.k_copies, " "), fmt::join(block.v_copies, " "));
}

// The last wait of the wave that reads, if it had nothing to wait for: fewer copies were in flight than it leaves.
std::string idle_wait_text(const WaveFault& fault) {
  if (fault.steps.empty() || fault.steps.back().op.kind != WaveOpKind::read) return {};
  const auto reader = static_cast<std::size_t>(fault.steps.back().wave);
  for (std::size_t i = fault.steps.size() - 1; i-- > 1;) {
    const WaveStep& step = fault.steps[i];
    if (step.wave != fault.steps.back().wave || step.op.kind != WaveOpKind::wait) continue;
    const std::int64_t before = fault.steps[i - 1].in_flight[reader];
    if (before > step.op.count) return {};
    return fmt::format("\nstep {}: the wait in line {} waits for nothing: {} in flight, and it leaves {}", i + 1,
                       step.op.line, before, step.op.count);
  }
  return {};
}

// A program on one block.
struct ScheduledBlock {
  WaveBlock block;
  std::vector<std::vector<WaveOp>> ops;  // [wave]
  WaveSearch search;
};

struct ScheduleRemark {
  std::string message, case_text;
};

// The first statement that a wave needs and does not execute in this order: for each tile read K, compute scores,
// softmax, read V, compute output.
std::optional<ScheduleRemark> fault_of_order(const ScheduledBlock& run) {
  struct Need {
    WaveOpKind kind;
    bool of_v;
    WaveCompute computed;
    std::string_view text;
  };
  constexpr std::array<Need, 5> kOrder{{{WaveOpKind::read, false, WaveCompute::scores, "read K"},
                                        {WaveOpKind::compute, false, WaveCompute::scores, "compute scores"},
                                        {WaveOpKind::compute, false, WaveCompute::softmax, "compute softmax"},
                                        {WaveOpKind::read, true, WaveCompute::scores, "read V"},
                                        {WaveOpKind::compute, false, WaveCompute::output, "compute output"}}};
  for (std::size_t w = 0; w < run.ops.size(); ++w) {
    std::size_t at = 0;
    const std::size_t all = kOrder.size() * static_cast<std::size_t>(run.block.tiles);
    for (const WaveOp& op : run.ops[w]) {
      if (op.kind != WaveOpKind::read && op.kind != WaveOpKind::compute) continue;
      const Need& need = kOrder[at % kOrder.size()];
      const auto tile = static_cast<std::int64_t>(at / kOrder.size());
      const bool fits = op.kind == need.kind && op.tile == tile &&
                        (op.kind == WaveOpKind::read ? op.of_v == need.of_v : op.computed == need.computed);
      if (at == all || !fits) {
        const std::string wanted = at == all ? "nothing more" : fmt::format("{} of tile {}", need.text, tile);
        return ScheduleRemark{fmt::format("wave {} executes '{}' in line {}, for tile {}; its next step is {}", w,
                                          to_text(op), op.line, op.tile, wanted),
                              block_text(run.block)};
      }
      ++at;
    }
    if (at < all) {
      return ScheduleRemark{
          fmt::format("wave {} ends without '{}' of tile {}", w, kOrder[at % kOrder.size()].text, at / kOrder.size()),
          block_text(run.block)};
    }
  }
  return std::nullopt;
}

std::optional<ScheduleRemark> fault_of_counter(const ScheduledBlock& run) {
  for (std::size_t w = 0; w < run.ops.size(); ++w) {
    std::int64_t in_flight = 0;
    for (const WaveOp& op : run.ops[w]) {
      if (op.kind == WaveOpKind::issue) in_flight += op.count;
      if (op.kind == WaveOpKind::wait) in_flight = std::min(in_flight, op.count);
      if (in_flight > kMostInFlight) {
        return ScheduleRemark{fmt::format("wave {} has {} copies in flight after line {}, more than the {} that its "
                                          "counter holds",
                                          w, in_flight, op.line, kMostInFlight),
                              block_text(run.block)};
      }
    }
  }
  return std::nullopt;
}

// Copies that may be in flight during a computation, of those that could be.
struct Overlap {
  std::int64_t in_flight = 0, possible = 0;
  std::string worst;  // the first computation with fewer
  void add(std::int64_t flying, std::int64_t all, const std::string& where) {
    in_flight += flying;
    possible += all;
    if (flying < all && worst.empty()) worst = fmt::format("{}: {} of {} copies", where, flying, all);
  }
  [[nodiscard]] double share() const {
    return possible == 0 ? 1 : static_cast<double>(in_flight) / static_cast<double>(possible);
  }
};

struct Overlaps {
  Overlap v_under_scores, next_tile;
};

// Copies land as late as the waits allow, as in the search.
void add_overlaps(const ScheduledBlock& run, Overlaps& overlaps) {
  struct Load {
    bool of_v;
    std::int64_t tile, first, end;
  };
  for (std::size_t w = 0; w < run.ops.size(); ++w) {
    std::vector<Load> loads;
    std::int64_t issued = 0, landed = 0;
    const auto flying = [&](bool of_v, std::int64_t tile) {
      std::int64_t count = 0;
      for (const Load& load : loads) {
        if (load.of_v == of_v && load.tile == tile) count = load.end - std::clamp(landed, load.first, load.end);
      }
      return count;
    };
    for (const WaveOp& op : run.ops[w]) {
      if (op.kind == WaveOpKind::issue) {
        loads.push_back({op.of_v, op.tile, issued, issued + op.count});
        issued += op.count;
      } else if (op.kind == WaveOpKind::wait) {
        landed = std::max(landed, issued - op.count);
      }
      if (op.kind != WaveOpKind::compute || op.tile + 1 == run.block.tiles) continue;  // the last tile may wait for all
      const std::string where =
          fmt::format("{}\nwave {}, line {}, {} of tile {}", block_text(run.block), w, op.line, to_text(op), op.tile);
      if (op.computed == WaveCompute::scores) {
        overlaps.v_under_scores.add(flying(true, op.tile), run.block.v_copies[w], where);
      } else {
        overlaps.next_tile.add(flying(false, op.tile + 1) + flying(true, op.tile + 1),
                               run.block.k_copies[w] + run.block.v_copies[w], where);
      }
    }
  }
}

class ThroughLdsGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    std::vector<ScheduledBlock> runs;
    try {
      const WaveProgram program = WaveProgram::parse(submission.file(kSchedule), kSchedule);
      for (WaveBlock& block : make_blocks(seed)) {
        ScheduledBlock run{std::move(block), {}, {}};
        for (std::int64_t w = 0; w < run.block.waves(); ++w) run.ops.push_back(program.unroll(run.block, w));
        runs.push_back(std::move(run));
      }
    } catch (const InputError& error) {
      std::vector<TestResult> rejected = all_failed(lab(), "not tested: schedule.txt is rejected", {}, 1);
      rejected.front().message = error.what();
      return rejected;
    }
    std::vector<TestResult> results{first_remark("order", runs, fault_of_order, 1)};
    if (!results.front().passed()) return rest_not_tested(std::move(results), "the order of the steps is not right");
    for (ScheduledBlock& run : runs) {
      run.search = search_interleavings(run.ops);
      if (!run.search.complete) break;  // the later blocks are larger
    }
    results.push_back(first_fault("barriers", runs, WaveFaultKind::stuck, 2));
    if (results.back().passed()) results.back() = first_remark("barriers", runs, fault_of_counter, 2);
    results.push_back(first_fault("own_copies", runs, WaveFaultKind::own_copy, 2));
    results.push_back(first_fault("other_copies", runs, WaveFaultKind::other_copy, 2));
    results.push_back(first_fault("reuse", runs, WaveFaultKind::reuse, 3));
    if (!std::ranges::all_of(results, &TestResult::passed)) {
      return rest_not_tested(std::move(results), "speed counts when every interleaving is correct");
    }
    Overlaps overlaps;
    for (const ScheduledBlock& run : runs) add_overlaps(run, overlaps);
    results.push_back(overlap_result("overlap_v", "V's copies while the scores are computed", overlaps.v_under_scores));
    results.push_back(
        overlap_result("overlap_next", "the next tile's copies during softmax and output", overlaps.next_tile));
    results.push_back(budget_result(runs));
    return results;
  }

 private:
  [[nodiscard]] std::vector<TestResult> rest_not_tested(std::vector<TestResult> results, std::string_view why) const {
    for (std::size_t i = results.size(); i < lab().tests.size(); ++i) {
      results.push_back(failed(lab(), lab().tests[i].name, fmt::format("not tested: {}", why), {}, 0));
    }
    return results;
  }

  template <class Check>
  [[nodiscard]] TestResult first_remark(std::string_view test, const std::vector<ScheduledBlock>& runs, Check check,
                                        int hint) const {
    for (const ScheduledBlock& run : runs) {
      if (auto remark = check(run)) return failed(lab(), test, remark->message, remark->case_text, hint);
    }
    return passed(lab(), test);
  }

  [[nodiscard]] TestResult first_fault(std::string_view test, const std::vector<ScheduledBlock>& runs,
                                       WaveFaultKind kind, int hint) const {
    for (const ScheduledBlock& run : runs) {
      if (const auto& fault = run.search.faults[static_cast<std::size_t>(kind)]) {
        return with_picture(
            failed(lab(), test, fault->message,
                   block_text(run.block) + "\n" + steps_text(*fault) +
                       (kind == WaveFaultKind::own_copy || kind == WaveFaultKind::other_copy ? idle_wait_text(*fault)
                                                                                             : std::string()),
                   hint),
            wave_picture(run.block, *fault));
      }
      if (!run.search.complete) {
        return failed(lab(), test, fmt::format("more than {} states of the waves: use barriers", kMostWaveStates),
                      block_text(run.block), hint);
      }
    }
    return passed(lab(), test);
  }

  [[nodiscard]] TestResult overlap_result(std::string_view test, std::string_view what, const Overlap& overlap) const {
    if (overlap.in_flight == overlap.possible) return passed(lab(), test);
    return failed(lab(), test,
                  fmt::format("{} of {} copies may be in flight: {}, added up over all blocks, waves and tiles",
                              overlap.in_flight, overlap.possible, what),
                  overlap.worst, 3, std::floor(overlap.share() * 100) / 100);
  }

  [[nodiscard]] TestResult budget_result(const std::vector<ScheduledBlock>& runs) const {
    for (const ScheduledBlock& run : runs) {
      const auto count = std::ranges::count(run.ops.front(), WaveOpKind::barrier, &WaveOp::kind);
      if (count <= kBarriersPerTile * run.block.tiles) continue;
      return failed(lab(), "barrier_budget",
                    fmt::format("{} barriers for {}: {} are enough", count, counted(run.block.tiles, "tile"),
                                kBarriersPerTile * run.block.tiles),
                    block_text(run.block), 3);
    }
    return passed(lab(), "barrier_budget");
  }
};

}  // namespace

std::unique_ptr<Grader> through_lds_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<ThroughLdsGrader>(lab, options);
}

}  // namespace kvscope::labs
