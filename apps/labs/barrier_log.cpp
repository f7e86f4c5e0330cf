#include "apps/labs/barrier_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "core/base/report.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::labs {
namespace {

constexpr std::size_t kPhasesShown = 6;

bool party_executes(const ptx::Report& report, std::string_view opcode) {
  return std::ranges::any_of(
      report.parties, [&](const ptx::ReportParty& party) { return party.opcode.find(opcode) != std::string::npos; });
}

}  // namespace

void BarrierLog::instruction(const ptx::Exec& exec, const ptx::Op& op, ptx::LaneMask lanes) {
  if (!exec.program().instr(op).has(ptx::Mod::parity)) return;
  for (ptx::LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
    const std::uint64_t parity = ptx::lane_value(exec, op.at[2], 4, std::countr_zero(rest));
    largest_parity_ = std::max(largest_parity_, parity);
  }
}

void BarrierLog::mbarrier(ptx::Launch& /*launch*/, const ptx::Cta& /*cta*/, const ptx::Exec* exec, ptx::LaneMask lanes,
                          ptx::MbarrierEvent event, std::uint64_t /*address*/, std::int64_t count, ptx::Order /*order*/,
                          ptx::Scope /*scope*/) {
  using Event = ptx::MbarrierEvent;
  if (event == Event::init) {
    asked_ = count;
    maker_ = exec->warp.index * ptx::kLanes + std::countr_zero(lanes);
    phases_.emplace_back();
    return;
  }
  if (phases_.empty()) return;
  switch (event) {
    case Event::arrive:
      phases_.back().arrivals += count;
      break;
    case Event::expect_tx:
      phases_.back().announced += count;
      break;
    case Event::complete_tx:
      phases_.back().landed += count;
      break;
    case Event::phase_done:
      phases_.emplace_back();
      break;
    case Event::wait_true:
    case Event::wait_false:
      for (ptx::LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
        const std::int64_t thread = exec->warp.index * ptx::kLanes + std::countr_zero(rest);
        waited_.insert(thread);
        if (event == Event::wait_false) continue;
        // `count` is the phase that is complete: -1 before phase 0, which a wait for parity 1 finds.
        began_with_parity_1_ |= count < 0;
        const auto before = passed_.find(thread);
        passed_twice_ |= before != passed_.end() && before->second == count;
        passed_[thread] = count;
      }
      break;
    default:
      break;
  }
}

std::string BarrierLog::cause_of_early_read(std::int64_t threads) const {
  const auto waiting = static_cast<std::int64_t>(waited_.size());
  if (waiting == 0) return "no thread waits for the copies: call barrier_wait before the buffer is read";
  if (began_with_parity_1_) {
    return "the first wait has parity 1, which returns at once: the first phase has parity 0, so wait for tile n with "
           "parity n % 2";
  }
  if (passed_twice_) {
    return "a wait returns for the phase of an earlier tile: wait for tile n with parity n % 2";
  }
  if (waiting < threads) {
    return fmt::format(
        "{} of {} threads wait for the copies: every thread that reads the buffer waits, or "
        "__syncthreads follows the wait",
        waiting, threads);
  }
  for (const Phase& phase : phases_) {
    if (phase.announced < phase.landed) {
      return fmt::format("a phase completes before all copies have landed: {} bytes are announced, {} land",
                         phase.announced, phase.landed);
    }
  }
  return {};
}

std::string BarrierLog::cause_of_deadlock() const {
  if (phases_.empty()) return {};
  const Phase& last = phases_.back();
  const std::string phase = phases_.size() == 1 ? "the phase" : fmt::format("phase {}", phases_.size() - 1);
  if (last.arrivals == 0 && last.landed > 0) {
    return fmt::format("{} never completes: no thread calls barrier_arrive_expect", phase);
  }
  if (last.arrivals > 0 && last.arrivals < asked_) {
    return fmt::format(
        "barrier_init asks for {} arrivals, and {} arrive{}: its count is the number of calls of "
        "barrier_arrive_expect in a phase, 1 here",
        asked_, last.arrivals, last.arrivals == 1 ? "s" : "");
  }
  if (last.announced > last.landed) {
    return fmt::format("{} never completes: {} bytes are announced, and {} land", phase, last.announced, last.landed);
  }
  if (last.arrivals == 0 && !passed_.empty()) {
    return fmt::format("threads wait for phase {}, in which no thread arrives and no copy is issued",
                       phases_.size() - 1);
  }
  return {};
}

std::string BarrierLog::cause(const ptx::Report& report, std::int64_t threads) const {
  using Kind = ptx::ReportKind;
  switch (report.kind) {
    case Kind::mbarrier_touched:
      if (!party_executes(report, "mbarrier.init")) {
        return "the 8 bytes of the barrier are used as data: only the functions of tma.h may access them";
      }
      return report.parties.front().thread == maker_
                 ? "barrier_init is called again: call it once, before the loop; the next phase begins by itself"
                 : "barrier_init is called by more than one thread: thread 0 calls it, once";
    case Kind::no_mbarrier:
      return "the barrier is used before barrier_init has made it: thread 0 makes it, and __syncthreads follows";
    case Kind::mbar_underflow:
      return fmt::format(
          "barrier_arrive_expect is called more often than the {} that barrier_init asks for: call it "
          "once for a tile, with all of its bytes",
          counted(asked_, "time"));
    case Kind::mbar_tx:
      return "bytes land that no thread has announced: call barrier_arrive_expect once, with all bytes of the tile";
    case Kind::deadlock:
      return party_executes(report, "mbarrier") ? cause_of_deadlock() : std::string();
    case Kind::exit_in_flight:
      return "the kernel ends before the copies have landed: call barrier_wait before the buffer is read";
    case Kind::uninitialized:
      return cause_of_early_read(threads);
    case Kind::race_wr:
    case Kind::race_ww:
    case Kind::race_rw:
      if (party_executes(report, "mbarrier.init")) {
        return "threads use the barrier while thread 0 makes it: call __syncthreads after barrier_init";
      }
      if (std::string early = cause_of_early_read(threads); !early.empty()) return early;
      return report.kind == Kind::race_rw ? "copies of the next tile overwrite the buffer while threads still read it: "
                                            "__syncthreads before they "
                                            "are issued"
                                          : std::string();
    default:
      return {};
  }
}

std::string BarrierLog::text(std::int64_t threads) const {
  if (phases_.empty()) return "barrier_init was not called";
  std::string text;
  for (std::size_t p = 0; p < std::min(phases_.size(), kPhasesShown); ++p) {
    const Phase& phase = phases_[p];
    if (p > 0 && phase.arrivals + phase.announced + phase.landed == 0) break;  // of no tile
    text += fmt::format("phase {}: {} of {} arrivals; {} bytes announced, {} landed\n", p, phase.arrivals, asked_,
                        phase.announced, phase.landed);
  }
  return text + fmt::format("{} of {} threads waited", waited_.size(), threads);
}

PictureGrid BarrierLog::grid(std::int64_t threads) const {
  PictureGrid grid{"the barrier when the virtual GPU stopped, by phases", {}, {}};
  grid.columns = {"arrivals", "bytes announced", "bytes landed"};
  for (std::size_t p = 0; p < std::min(phases_.size(), kPhasesShown); ++p) {
    const Phase& phase = phases_[p];
    if (p > 0 && phase.arrivals + phase.announced + phase.landed == 0) break;  // of no tile
    const auto cell = [](std::string text, bool right) {
      return PictureCell{std::move(text), right ? CellMark::plain : CellMark::wrong};
    };
    grid.rows.push_back({fmt::format("phase {}", p),
                         {cell(fmt::format("{} of {}", phase.arrivals, asked_), phase.arrivals == asked_),
                          cell(fmt::format("{}", phase.announced), phase.announced == phase.landed),
                          cell(fmt::format("{}", phase.landed), phase.announced == phase.landed)}});
  }
  const auto waiting = static_cast<std::int64_t>(waited_.size());
  grid.rows.push_back(
      {"threads that waited",
       {{fmt::format("{} of {}", waiting, threads), waiting == threads ? CellMark::plain : CellMark::wrong}}});
  return grid;
}

}  // namespace kvscope::labs
