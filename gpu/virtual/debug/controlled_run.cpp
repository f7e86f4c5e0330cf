#include "gpu/virtual/debug/controlled_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <limits>
#include <set>
#include <span>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/source_place.h"
#include "gpu/virtual/machine/warp/residents.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostSnapshots = 64;
constexpr std::size_t kRemembered = std::size_t{1} << 17;  // positions
constexpr std::uint64_t kSearchSteps = 1 << 16;            // maximum steps to run past a stop before moving back to it

std::vector<std::byte> bytes_of(const Launch& launch, const DeviceMemory& memory, const Watch& watch) {
  const std::byte* from = nullptr;
  if (watch.space == Space::shared) {
    const Cta* cta = find_cta(launch, watch.cta);
    if (cta != nullptr) from = shared_at(*cta, offset_of(watch.address), watch.bytes);
  } else {
    from = memory.at(watch.address, watch.bytes);
  }
  if (from == nullptr) return {};  // the CTA has not begun, or has been removed
  return {from, from + watch.bytes};
}

std::vector<Writer> writers_of(const LastWriters& writers, const Watch& watch) {
  std::vector<Writer> out;
  for (std::int64_t i = 0; i < watch.bytes; ++i) {
    out.push_back(writers.of(watch.cta, offset_of(watch.address) + static_cast<std::uint64_t>(i)));
  }
  return out;
}

std::string hex(const std::vector<std::byte>& bytes) {
  std::string out;
  for (const std::byte b : bytes) out += fmt::format("{}{:02x}", out.empty() ? "" : " ", static_cast<unsigned>(b));
  return out;
}

std::int64_t size_of(const Launch& launch, const DeviceMemory& memory) {
  std::int64_t bytes = 0;
  for (const Allocation& a : memory.allocations()) bytes += static_cast<std::int64_t>(a.bytes.size());
  for (const Cta& cta : launch.ctas) {
    bytes += static_cast<std::int64_t>(cta.shared.size());
    for (const Warp& warp : cta.warps) {
      for (const Activation& a : warp.activations)
        bytes += static_cast<std::int64_t>(a.registers.size() + a.params.size());
      for (const auto& local : warp.local) bytes += static_cast<std::int64_t>(local.size());
    }
  }
  return bytes;
}

}  // namespace

std::string_view name(StopReason reason) {
  static constexpr std::array<std::string_view, 12> kNames = {"step",     "breakpoint", "watchpoint", "write",
                                                              "line",     "barrier",    "event",      "report",
                                                              "finished", "failed",     "beginning",  "interrupted"};
  return kNames[static_cast<std::size_t>(reason)];
}

// The condition that ends a search, from a given step.
struct ControlledRun::Until {
  std::uint64_t from = 0;
  const std::map<int, std::vector<std::int32_t>>* breakpoints = nullptr;
  const std::map<int, Watch>* watches = nullptr;
  const Watch* written = nullptr;
  bool barrier = false, event = false, report = false;
  // The warp whose next instruction ends the search; if `line` is set, the instruction must be at another line.
  const Position* warp = nullptr;
  bool line = false;
};

// Records which lane group ran at each step, and the first step at which a search condition holds.
class ControlledRun::Watcher final : public Monitor {
 public:
  Watcher(const DeviceMemory& memory, const LastWriters& writers)
      : memory_(memory), writers_(writers), positions_(kRemembered) {}

  void begin(const Until& until, const Launch& launch) {
    until_ = &until;
    hit_ = false;
    breaks_.clear();
    if (until.breakpoints != nullptr) {
      breaks_.assign(launch.program->ops.size(), 0);
      for (const auto& [number, pcs] : *until.breakpoints) {
        for (const std::int32_t pc : pcs) breaks_[static_cast<std::size_t>(pc)] = number;
      }
    }
    seen_.clear();
    if (until.watches != nullptr) {
      for (const auto& [number, watch] : *until.watches) seen_[number] = bytes_of(launch, memory_, watch);
    }
    if (until.written != nullptr) seen_writers_ = writers_of(writers_, *until.written);
  }
  void end() { until_ = nullptr; }
  // At the end of the launch there is no further instruction at which the bytes would be compared.
  void look(const Launch& launch) { look_at_bytes(launch); }

  [[nodiscard]] bool hit() const { return hit_; }
  [[nodiscard]] std::uint64_t step() const { return step_; }
  [[nodiscard]] const Stop& stop() const { return stop_; }
  [[nodiscard]] const Position& at(std::uint64_t step) const { return positions_[step % kRemembered]; }

  [[nodiscard]] bool wants_instructions() const override { return true; }
  void instruction(const Exec& exec, const Op& op, LaneMask) override {
    const Position& now = remember(exec, op);
    if (until_ == nullptr || hit_) return;
    look_at_bytes(exec.launch);
    if (hit_ || now.step <= until_->from) return;
    if (!breaks_.empty() && breaks_[static_cast<std::size_t>(now.pc)] != 0) {
      note(now.step, StopReason::breakpoint, fmt::format("breakpoint {}", breaks_[static_cast<std::size_t>(now.pc)]),
           now);
    } else if (until_->warp != nullptr && until_->warp->cta == now.cta && until_->warp->warp == now.warp) {
      if (!until_->line) note(now.step, StopReason::step, {}, now);
      if (until_->line && !same_shown_place(exec.program(), now.pc, until_->warp->pc))
        note(now.step, StopReason::line, {}, now);
    }
  }
  void retried(const Exec& exec, const Op& op, LaneMask) override {
    remember(exec, op);
    if (until_ != nullptr && !hit_) look_at_bytes(exec.launch);
  }

  void stored(const Exec& exec, const Op&, const WarpAccess&) override { happened(exec.launch, true); }
  void exit(const Exec& exec, LaneMask lanes) override {
    happened(exec.launch, true);
    const bool is_warp = until_ != nullptr && !hit_ && until_->warp != nullptr && until_->warp->cta == exec.cta.index &&
                         until_->warp->warp == exec.warp.index;
    if (!is_warp || (exec.warp.exited | lanes) != kAllLanes) return;
    note_behind(exec.launch, true, until_->line ? StopReason::line : StopReason::step,
                fmt::format("warp {} of CTA {} has ended", exec.warp.index, exec.cta.index));
  }
  void printed(const Exec& exec, std::string_view) override { happened(exec.launch, true); }
  void async_moves(Launch& launch, const Cta&, const AsyncOp&, std::span<const ByteRange>,
                   std::span<const ByteRange>) override {
    happened(launch, false);
  }
  void barrier_done(Launch& launch, const Cta&, int barrier, std::span<const LaneMask>,
                    std::span<const LaneMask>) override {
    if (wants(&Until::barrier)) note_behind(launch, true, StopReason::barrier, fmt::format("barrier {}", barrier));
    happened(launch, true);
  }
  void mbarrier(Launch& launch, const Cta&, const Exec* exec, LaneMask, MbarrierEvent event, std::uint64_t address,
                std::int64_t, Order, Scope) override {
    if (event == MbarrierEvent::phase_done && wants(&Until::barrier)) {
      const ReportAddress at = name_address(launch, Space::shared, address, 8);
      note_behind(launch, exec != nullptr, StopReason::barrier,
                  fmt::format("phase of mbarrier {} + {}", at.symbol, at.offset));
    }
    happened(launch, exec != nullptr);
  }
  // Checkers receive each step once, so the stops of their reports are kept for searches that execute the step again.
  void reported(Launch& launch, const Report& report) override {
    reports_.try_emplace(launch.step + 1, Stop{StopReason::report, std::string(name(report.kind)), at(launch.step)});
    if (wants(&Until::report)) note_behind(launch, true, StopReason::report, std::string(name(report.kind)));
  }
  // The first report received so far that is behind position `from`; null: none.
  [[nodiscard]] const std::pair<const std::uint64_t, Stop>* report_behind(std::uint64_t from) const {
    const auto next = reports_.upper_bound(from);
    return next == reports_.end() ? nullptr : &*next;
  }

 private:
  const Position& remember(const Exec& exec, const Op& op) {
    Position& to = positions_[exec.launch.step % kRemembered];
    to = {.step = exec.launch.step,
          .cta = exec.cta.index,
          .warp = exec.warp.index,
          .pc = pc_of(exec, op),
          .lanes = exec.lane_group.lanes};
    return to;
  }
  [[nodiscard]] bool wants(bool Until::*what) const { return until_ != nullptr && !hit_ && until_->*what; }
  void note(std::uint64_t step, StopReason reason, std::string what, const Position& at) {
    hit_ = true;
    step_ = step;
    stop_ = {reason, std::move(what), at};
  }
  // Records a stop after the current instruction, or between two instructions if an engine caused it.
  void note_behind(const Launch& launch, bool in_instruction, StopReason reason, std::string what) {
    const std::uint64_t step = launch.step + (in_instruction ? 1 : 0);
    if (step > until_->from) note(step, reason, std::move(what), at(launch.step));
  }
  void happened(const Launch& launch, bool in_instruction) {
    if (wants(&Until::event)) note_behind(launch, in_instruction, StopReason::event, {});
  }
  void look_at_bytes(const Launch& launch) {
    if (until_ == nullptr || hit_) return;
    if (until_->written != nullptr) look_at_writers(launch);
    if (until_->watches == nullptr) return;
    for (const auto& [number, watch] : *until_->watches) {
      std::vector<std::byte> now = bytes_of(launch, memory_, watch);
      std::vector<std::byte>& before = seen_[number];
      if (now == before) continue;
      if (now.empty() || before.empty()) {  // the CTA began or was removed: no instruction changed the bytes
        before = std::move(now);
        continue;
      }
      const Position by = launch.step > 0 ? at(launch.step - 1) : Position{};
      note(launch.step, StopReason::watchpoint,
           fmt::format("watchpoint {}: {} 0x{:05x}: {} -> {}", number, name(watch.space), watch.address, hex(before),
                       hex(now)),
           by);
      before = std::move(now);
      return;
    }
  }

  void look_at_writers(const Launch& launch) {
    const Watch& watch = *until_->written;
    std::vector<Writer> now = writers_of(writers_, watch);
    if (now == seen_writers_) return;
    seen_writers_ = std::move(now);
    const std::vector<std::byte> bytes = bytes_of(launch, memory_, watch);
    if (bytes.empty()) return;  // the CTA was removed
    note(launch.step, StopReason::write, fmt::format("{} 0x{:05x}: {}", name(watch.space), watch.address, hex(bytes)),
         launch.step > 0 ? at(launch.step - 1) : Position{});
  }

  const DeviceMemory& memory_;
  const LastWriters& writers_;
  std::vector<Position> positions_;  // [step % kRemembered]
  const Until* until_ = nullptr;
  std::vector<int> breaks_;  // [ops] number of the breakpoint there, or 0
  std::map<int, std::vector<std::byte>> seen_;
  std::vector<Writer> seen_writers_;
  std::map<std::uint64_t, Stop> reports_;  // by the position behind the reported instruction
  bool hit_ = false;
  std::uint64_t step_ = 0;
  Stop stop_;
};

ControlledRun::ControlledRun(Device& device, const LoadedModule& module, const LaunchConfig& config, Monitor* monitor,
                             std::int64_t most_snapshot_bytes)
    : memory_(device.memory()),
      monitor_(monitor),
      watcher_(std::make_unique<Watcher>(device.memory(), writers_)),
      most_snapshot_bytes_(most_snapshot_bytes) {
  for (MonitorChain* chain : {&all_, &again_}) {
    chain->add(*watcher_);
    chain->add(writers_);
  }
  if (monitor_ != nullptr) all_.add(*monitor_);
  launch_ = device.begin(module, config, &all_);
  keep_snapshot();
}

ControlledRun::~ControlledRun() = default;

// --- running ---------------------------------------------------------------------------------------------------------

void ControlledRun::keep_snapshot() {
  if (!snapshots_.empty()) {
    // Too many or too large snapshots: every other one is removed, and the distance doubles. The first one always
    // stays.
    const std::int64_t each = size_of(launch_, memory_) + writers_.bytes();
    while (snapshots_.size() + 1 > kMostSnapshots ||
           each * static_cast<std::int64_t>(snapshots_.size() + 1) > most_snapshot_bytes_) {
      distance_ *= 2;
      if (snapshots_.size() == 1) return;
      std::vector<Snapshot> kept;
      for (std::size_t i = 0; i < snapshots_.size(); i += 2) kept.push_back(std::move(snapshots_[i]));
      snapshots_ = std::move(kept);
      if (launch_.step < snapshots_.back().launch.step + distance_) return;
    }
  }
  snapshots_.push_back({launch_, memory_, writers_});
}

void ControlledRun::advance(std::uint64_t steps) {
  const std::uint64_t end = launch_.step + steps;
  interrupted_ = false;
  while (!ended() && launch_.step < end) {
    interrupted_ = keep_going_ && !keep_going_();
    if (interrupted_) break;
    // The checkers have received all steps before furthest_; after it, all monitors receive them.
    const bool again = launch_.step < furthest_;
    launch_.monitor = again ? &again_ : &all_;
    std::uint64_t stop = again ? std::min(end, furthest_) : end;
    const std::uint64_t last = snapshots_.back().launch.step;
    if (!again) stop = std::min(stop, std::max(launch_.step + 1, last + distance_));
    if (keep_going_) stop = std::min(stop, launch_.step + kSearchSteps);
    const std::uint64_t ran = ptx::run(launch_, stop - launch_.step);
    if (!ended() && !again && launch_.step >= last + distance_) keep_snapshot();
    if (!again) {
      furthest_ = launch_.step;
      furthest_reports_ = launch_.reports;
    } else if (launch_.step >= furthest_) {
      // The repeated steps lack the checkers' reports; without them, a repetition would be reported as new.
      launch_.reports = furthest_reports_;
      if (launch_.reports.full()) launch_.status = LaunchStatus::failed;
    }
    if (ran == 0) break;
  }
  harvest();
}

void ControlledRun::go_to(std::uint64_t step) {
  interrupted_ = false;
  if (step < launch_.step) {
    const auto behind = std::upper_bound(snapshots_.begin(), snapshots_.end(), step,
                                         [](std::uint64_t s, const Snapshot& kept) { return s < kept.launch.step; });
    const Snapshot& from = *std::prev(behind);
    launch_ = from.launch;
    memory_.restore(from.memory);
    writers_ = from.writers;
  }
  if (step > launch_.step) advance(step - launch_.step);
}

void ControlledRun::harvest() {
  for (const Report& report : launch_.reports.all()) {
    const bool known = std::any_of(reports_.begin(), reports_.end(), [&](const Report& r) {
      return r.step == report.step && r.kind == report.kind && r.message == report.message;
    });
    if (known) continue;
    const auto place = std::upper_bound(reports_.begin(), reports_.end(), report.step,
                                        [](std::uint64_t s, const Report& r) { return s < r.step; });
    reports_.insert(place, report);
  }
}

Stop ControlledRun::end_stop() const {
  return {launch_.status == LaunchStatus::finished ? StopReason::finished : StopReason::failed, {}, {}};
}

Stop ControlledRun::search(const Until& until) {
  interrupted_ = false;
  watcher_->begin(until, launch_);
  // A report of an earlier search, which went past it: the checkers do not repeat it.
  const auto* known = until.report && !ended() ? watcher_->report_behind(until.from) : nullptr;
  const std::uint64_t end = known != nullptr ? known->first : std::numeric_limits<std::uint64_t>::max();
  std::uint64_t chunk = 256;
  while (!ended() && !watcher_->hit() && launch_.step < end) {
    advance(std::min(chunk, end - launch_.step));
    if (interrupted_ && !watcher_->hit()) break;
    chunk = std::min(chunk * 2, kSearchSteps);
  }
  if (ended() && known == nullptr) watcher_->look(launch_);
  watcher_->end();
  if (watcher_->hit() && watcher_->step() < end) {
    go_to(watcher_->step());
    return interrupted_ ? arrived() : watcher_->stop();
  }
  if (interrupted_) return arrived();
  return known != nullptr ? known->second : end_stop();
}

// --- current position ------------------------------------------------------------------------------------------------

Position ControlledRun::position() {
  const std::uint64_t here = launch_.step;
  if (ended()) return {.step = here};
  if (furthest_ <= here || watcher_->at(here).step != here) {
    // No movement: it is not interrupted.
    const std::function<bool()> keep_going = std::exchange(keep_going_, nullptr);
    advance(1);
    const bool ran = launch_.step > here;
    go_to(here);
    keep_going_ = keep_going;
    if (!ran) return {.step = here};
  }
  return watcher_->at(here);
}

std::vector<Report> ControlledRun::reports() const {
  std::vector<Report> out;
  for (const Report& report : reports_) {
    // A report at the current step is one of the next instruction, unless it is of the end of the launch.
    if (report.step < launch_.step || (ended() && report.step == launch_.step)) out.push_back(report);
  }
  return out;
}

// --- forward and backward --------------------------------------------------------------------------------------------

Stop ControlledRun::run() {
  return search({.from = launch_.step, .breakpoints = &breakpoints_, .watches = &watches_, .report = true});
}

// Behind a movement to a step.
Stop ControlledRun::arrived() const {
  if (interrupted_) return {StopReason::interrupted, {}, {}};
  return ended() ? end_stop() : Stop{};
}

Stop ControlledRun::steps(std::uint64_t count) {
  advance(count);
  return arrived();
}

Stop ControlledRun::warp_step() {
  const Position now = position();
  return search({.from = launch_.step, .warp = &now});
}

Stop ControlledRun::to_write(const Watch& watch) {
  return search({.from = launch_.step, .written = &watch});
}

Stop ControlledRun::line() {
  const Position now = position();
  return search({.from = launch_.step, .breakpoints = &breakpoints_, .watches = &watches_, .warp = &now, .line = true});
}

// Functions that have been called and not returned, and the depth of inlined functions in the innermost of them, without
// library wrappers.
std::pair<int, int> ControlledRun::depth_at(const Position& at) const {
  int calls = 0, inlined = 0;
  const Cta* const cta = find_cta(launch_, at.cta);  // null: it starts with this instruction
  if (cta != nullptr) {
    for (const LaneGroup& group : cta->warps[static_cast<std::size_t>(at.warp)].lane_groups) {
      if ((group.lanes & at.lanes) != 0) calls = group.depth;
    }
  }
  const Module& module = *launch_.program->module;
  for (std::int32_t f = shown_frame(*launch_.program, at.pc); f >= 0; ++inlined) {
    f = module.frames[static_cast<std::size_t>(f)].outer;
  }
  return {calls, inlined};
}

Stop ControlledRun::over() {
  const Position from = position();
  if (from.pc < 0) return line();
  const std::pair<int, int> depth = depth_at(from);
  for (;;) {
    const Stop stop = line();
    if (stop.reason != StopReason::line) return stop;
    const Position now = position();
    const bool is_same_warp = now.pc >= 0 && now.cta == from.cta && now.warp == from.warp;
    if (!is_same_warp || depth_at(now) <= depth) return stop;
  }
}

Stop ControlledRun::to(StopReason reason) {
  return search({.from = launch_.step,
                 .barrier = reason == StopReason::barrier,
                 .event = reason == StopReason::event,
                 .report = reason == StopReason::report});
}

Stop ControlledRun::seek(std::uint64_t step) {
  go_to(step);
  return arrived();
}

Stop ControlledRun::back(std::uint64_t count) {
  if (launch_.step == 0) return {StopReason::beginning, {}, {}};
  go_to(launch_.step - std::min(count, launch_.step));
  return arrived();
}

Stop ControlledRun::back_line() {
  const Position now = position();
  if (now.pc < 0 && launch_.step > 0) return back(1);
  for (std::uint64_t at = launch_.step; at > 0 && now.pc >= 0;) {
    // The latest steps are recorded in memory; for earlier ones the run is repeated.
    if (--at >= furthest_ || watcher_->at(at).step != at) go_to(at);
    if (interrupted_) return arrived();
    const Position there = watcher_->at(at).step == at ? watcher_->at(at) : position();
    if (there.cta != now.cta || there.warp != now.warp) continue;
    if (same_shown_place(*launch_.program, there.pc, now.pc)) continue;
    go_to(at);
    return interrupted_ ? arrived() : Stop{StopReason::line, {}, there};
  }
  go_to(0);
  return interrupted_ ? arrived() : Stop{StopReason::beginning, {}, {}};
}

// --- stop conditions -------------------------------------------------------------------------------------------------

namespace {

// visit(file, line) for each place of the op in the sources, the innermost first; true ends it.
template <class Visit>
bool any_place(const Program& program, std::int32_t pc, Visit visit) {
  const Statement& s = program.statement(pc);
  if (s.frame < 0) return visit(std::string_view(program.module->file), s.at.line);
  for (std::int32_t f = s.frame; f >= 0;) {
    const Frame& frame = program.module->frames[static_cast<std::size_t>(f)];
    if (visit(program.module->file_of(frame), frame.line)) return true;
    f = frame.outer;
  }
  return false;
}

}  // namespace

std::vector<std::int32_t> ControlledRun::pcs_of(std::string_view file, std::int32_t line) const {
  const Program& program = *launch_.program;
  std::vector<std::int32_t> pcs;
  bool inside = false;
  for (std::int32_t pc = 0; pc < static_cast<std::int32_t>(program.ops.size()); ++pc) {
    const bool there =
        any_place(program, pc, [&](std::string_view of, std::int32_t at) { return at == line && of.ends_with(file); });
    if (there && !inside) pcs.push_back(pc);
    inside = there;
  }
  return pcs;
}

std::vector<std::int32_t> ControlledRun::lines_of(std::string_view file) const {
  const Program& program = *launch_.program;
  std::set<std::int32_t> lines;
  for (std::int32_t pc = 0; pc < static_cast<std::int32_t>(program.ops.size()); ++pc) {
    any_place(program, pc, [&](std::string_view of, std::int32_t at) {
      if (of.ends_with(file)) lines.insert(at);
      return false;
    });
  }
  return {lines.begin(), lines.end()};
}

int ControlledRun::add_breakpoint(std::vector<std::int32_t> pcs) {
  breakpoints_[next_number_] = std::move(pcs);
  return next_number_++;
}

int ControlledRun::add_watch(const Watch& watch) {
  watches_[next_number_] = watch;
  return next_number_++;
}

bool ControlledRun::remove(int number) {
  return breakpoints_.erase(number) + watches_.erase(number) > 0;
}

}  // namespace kvscope::ptx
