#include "apps/labs/wave_search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "core/base/errors.h"

namespace kvscope::labs {
namespace {

// The number of statements that each wave has executed, 16 bits a wave. With copies that land as late as possible
// this is the whole state.
using WaveState = std::uint64_t;
constexpr int kStateBits = 16;

std::size_t executed(WaveState state, std::size_t wave) {
  return state >> (kStateBits * wave) & 0xffff;
}
WaveState advanced(WaveState state, std::size_t wave) {
  return state + (WaveState{1} << (kStateBits * wave));
}

// The last load of a wave into one stage of K or V, before a point of its program.
struct LastLoad {
  std::int64_t tile = -1;  // -1: none
  std::int64_t first_copy = 0, end_copy = 0;
};

// What a wave has done before each point of its program.
struct WaveHistory {
  std::int64_t issued = 0, landed = 0;                      // copies, counted from the start of the program
  std::array<std::array<LastLoad, kLdsStages>, 2> loads{};  // [K or V][stage]
};

std::vector<WaveHistory> history_of(const std::vector<WaveOp>& ops) {
  std::vector<WaveHistory> history(1);
  for (const WaveOp& op : ops) {
    WaveHistory next = history.back();
    if (op.kind == WaveOpKind::issue) {
      next.loads[op.of_v ? 1 : 0][static_cast<std::size_t>(op.stage)] = {op.tile, next.issued, next.issued + op.count};
      next.issued += op.count;
    } else if (op.kind == WaveOpKind::wait) {
      next.landed = std::max(next.landed, next.issued - op.count);
    }
    history.push_back(next);
  }
  return history;
}

class InterleavingSearch {
 public:
  // Computations change nothing that the search looks at, so they are left out.
  explicit InterleavingSearch(std::span<const std::vector<WaveOp>> ops) {
    KVSCOPE_ASSERT(!ops.empty() && ops.size() <= 4);
    for (std::vector<WaveOp> of_wave : ops) {
      std::erase_if(of_wave, [](const WaveOp& op) { return op.kind == WaveOpKind::compute; });
      KVSCOPE_ASSERT(of_wave.size() < (std::size_t{1} << kStateBits));
      history_.push_back(history_of(of_wave));
      ops_.push_back(std::move(of_wave));
    }
  }

  // Breadth first, so that the first fault of a kind has a shortest interleaving.
  WaveSearch run() {
    WaveSearch result;
    std::deque<WaveState> open{0};
    before_.emplace(0, 0);
    while (!open.empty()) {
      if (static_cast<std::int64_t>(before_.size()) > kMostWaveStates) {
        result.complete = false;
        break;
      }
      const WaveState state = open.front();
      open.pop_front();
      for (const WaveState next : next_states(state, result)) {
        if (before_.emplace(next, state).second) open.push_back(next);
      }
    }
    result.states = static_cast<std::int64_t>(before_.size());
    return result;
  }

 private:
  [[nodiscard]] const WaveOp* op_at(WaveState state, std::size_t wave) const {
    const std::size_t at = executed(state, wave);
    return at < ops_[wave].size() ? &ops_[wave][at] : nullptr;
  }
  [[nodiscard]] const WaveHistory& history_at(WaveState state, std::size_t wave) const {
    return history_[wave][executed(state, wave)];
  }

  std::vector<WaveState> next_states(WaveState state, WaveSearch& result) const {
    std::vector<WaveState> next;
    std::size_t ended = 0, arrived = 0, first_arrived = 0;
    WaveState past_barrier = state;
    for (std::size_t w = 0; w < ops_.size(); ++w) {
      const WaveOp* op = op_at(state, w);
      if (op == nullptr) {
        ++ended;
      } else if (op->kind == WaveOpKind::barrier) {
        if (arrived++ == 0) first_arrived = w;
        past_barrier = advanced(past_barrier, w);
      } else {
        if (op->kind == WaveOpKind::read) check_read(state, w, *op, result);
        next.push_back(advanced(state, w));
      }
    }
    if (arrived == ops_.size()) next.push_back(past_barrier);
    if (next.empty() && arrived > 0) {
      std::size_t w = 0;
      while (op_at(state, w) != nullptr) ++w;
      note(result, WaveFaultKind::stuck, state, {},
           fmt::format("wave {} waits at the barrier of line {} for ever: wave {} has ended", first_arrived,
                       op_at(state, first_arrived)->line, w));
    }
    return next;
  }

  void check_read(WaveState state, std::size_t reader, const WaveOp& op, WaveSearch& result) const {
    const std::string stage = fmt::format("{} stage {}", op.of_v ? "V" : "K", op.stage);
    for (std::size_t w = 0; w < ops_.size(); ++w) {
      const bool own = w == reader;
      const WaveFaultKind early = own ? WaveFaultKind::own_copy : WaveFaultKind::other_copy;
      const std::string whose = own ? "its" : fmt::format("wave {}'s", w);
      const WaveHistory& history = history_at(state, w);
      const LastLoad& load = history.loads[op.of_v ? 1 : 0][static_cast<std::size_t>(op.stage)];
      if (load.tile > op.tile) {
        note(result, WaveFaultKind::reuse, state, reader,
             fmt::format("wave {} reads tile {} from {} after {} copy {}, of tile {}, was issued into it", reader,
                         op.tile, stage, whose, load.first_copy, load.tile));
      } else if (load.tile < op.tile) {
        note(result, early, state, reader,
             fmt::format("wave {} reads tile {} from {} before {} copies of that tile are issued into it", reader,
                         op.tile, stage, whose));
      } else if (history.landed < load.end_copy) {
        note(result, early, state, reader,
             fmt::format("wave {} reads {} before {} copy {} has landed", reader, stage, whose,
                         std::max(history.landed, load.first_copy)));
      }
    }
  }

  void note(WaveSearch& result, WaveFaultKind kind, WaveState state, std::optional<std::size_t> reader,
            std::string message) const {
    std::optional<WaveFault>& fault = result.faults[static_cast<std::size_t>(kind)];
    if (fault) return;
    std::vector<WaveState> path{state};
    while (path.back() != 0) path.push_back(before_.at(path.back()));
    std::ranges::reverse(path);
    if (reader) path.push_back(advanced(state, *reader));
    fault = WaveFault{std::move(message), steps_of(path)};
  }

  [[nodiscard]] std::vector<WaveStep> steps_of(const std::vector<WaveState>& path) const {
    std::vector<WaveStep> steps;
    for (std::size_t i = 1; i < path.size(); ++i) {
      WaveStep step;
      std::size_t moved = 0;
      for (std::size_t w = 0; w < ops_.size(); ++w) {
        if (executed(path[i], w) != executed(path[i - 1], w)) {
          step.wave = static_cast<std::int64_t>(w);
          step.op = ops_[w][executed(path[i - 1], w)];
          ++moved;
        }
        const WaveHistory& history = history_at(path[i], w);
        step.in_flight.push_back(history.issued - history.landed);
      }
      if (moved > 1) step.wave = -1;
      steps.push_back(std::move(step));
    }
    return steps;
  }

  std::vector<std::vector<WaveOp>> ops_;  // [wave]
  std::vector<std::vector<WaveHistory>> history_;
  std::unordered_map<WaveState, WaveState> before_;  // visited states, with the one they were reached from
};

}  // namespace

bool WaveSearch::correct() const {
  return complete && std::ranges::none_of(faults, [](const auto& fault) { return fault.has_value(); });
}

WaveSearch search_interleavings(std::span<const std::vector<WaveOp>> ops) {
  return InterleavingSearch(ops).run();
}

std::string steps_text(const WaveFault& fault, std::size_t most) {
  const std::size_t first = fault.steps.size() > most ? fault.steps.size() - most : 0;
  std::string text =
      fmt::format("{:>4}  {:>4}  {:>4}  {:<20}  in flight, by wave", "step", "wave", "line", "statement");
  if (first > 0) text += fmt::format("\n{} steps before these", first);
  for (std::size_t i = first; i < fault.steps.size(); ++i) {
    const WaveStep& step = fault.steps[i];
    text += fmt::format("\n{:>4}  {:>4}  {:>4}  {:<20}  {}", i + 1, step.wave < 0 ? "all" : std::to_string(step.wave),
                        step.op.line, to_text(step.op), fmt::join(step.in_flight, " "));
  }
  return text;
}

}  // namespace kvscope::labs
