#include "gpu/virtual/machine/diagnosis/detail/deadlock.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <memory>

#include "gpu/virtual/machine/matrix/detail/warpgroup.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/detail/run_warp.h"
#include "gpu/virtual/machine/warp/residents.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostLines = 40;  // waiting lane groups printed in one report
constexpr int kMostHot = 3;             // branches printed in a RUNAWAY report

std::string place(const Launch& launch, std::int32_t pc) {
  const Statement& s = launch.program->statement(pc);
  return fmt::format("{} at {} (line {})", launch.program->text(pc), launch.program->source_text(pc), s.at.line);
}

std::string warp_list(const std::vector<std::int32_t>& warps) {
  return fmt::format("{}", fmt::join(warps, " "));
}

// The state of a warp that others wait for: "exited", or the places of its lane groups.
std::string whereabouts(const Launch& launch, const Warp& warp, LaneMask of) {
  const LaneMask gone = of & warp.exited;
  std::string out;
  if (gone != 0) out = fmt::format("lanes {:08x} exited", gone);
  for (const LaneGroup& f : warp.lane_groups) {
    if ((f.lanes & of) == 0) continue;
    if (!out.empty()) out += "; ";
    out += fmt::format("lanes {:08x} at {}", f.lanes & of, place(launch, f.instruction()));
  }
  return out;
}

std::string named_barrier_text(const Launch& launch, const Cta& cta, const LaneGroup& f) {
  const NamedBarrier& b = cta.barriers[f.wait.object];
  std::vector<std::int32_t> arrived, missing;
  for (std::size_t w = 0; w < cta.warps.size(); ++w) {
    const bool here = w < b.arrived.size() && b.arrived[w] != 0;
    if (here) arrived.push_back(static_cast<std::int32_t>(w));
    // An exited warp is no longer expected, unless the barrier counts threads.
    if (!here && (!has_ended(cta.warps[w]) || b.expected > 0)) missing.push_back(static_cast<std::int32_t>(w));
  }
  const std::size_t expected =
      b.expected > 0 ? static_cast<std::size_t>(b.expected / kLanes) : arrived.size() + missing.size();
  std::string out = fmt::format("barrier {}: {} of {} warps arrived ({})", f.wait.object, arrived.size(), expected,
                                warp_list(arrived));
  for (const std::int32_t w : missing) {
    out += fmt::format("\n  missing warp {}: {}", w,
                       whereabouts(launch, cta.warps[static_cast<std::size_t>(w)], kAllLanes));
  }
  return out;
}

// "full + 8: parity 0, phase 2, pending 1 of 4, tx -64", and the arrivals. `asked`: "parity 0, " or nothing.
std::string object_text(const Launch& launch, const Cta& cta, std::uint64_t address, const std::string& asked) {
  const std::string name = place_name(name_address(launch, Space::shared, address, 8));
  const auto at = cta.mbarriers.find(offset_of(address));
  if (at == cta.mbarriers.end()) return fmt::format("mbarrier {}: it no longer exists", name);
  const Mbarrier& m = at->second;
  std::string out = fmt::format("mbarrier {}: {}{}", name, asked, m.text());
  if (m.copies > 0) out += fmt::format(", {} copies of {} bytes in total", m.copies, m.copied_bytes);
  const int shown = std::min<int>(m.arrival_count, static_cast<int>(m.arrivals.size()));
  for (int i = 0; i < shown; ++i) {
    const auto& who = m.arrivals[static_cast<std::size_t>(m.arrival_count - shown + i) % m.arrivals.size()];
    out += fmt::format("\n  arrived: thread {}{}", who.thread, who.pc < 0 ? "" : " " + place(launch, who.pc));
  }
  return out;
}

// The object is always in the waiting CTA: waits on objects of other CTAs do not exist.
std::string mbarrier_text(const Launch& launch, const Cta& cta, const LaneGroup& f) {
  return object_text(launch, cta, f.wait.object,
                     fmt::format("{} {}, ", f.wait.parity ? "parity" : "phase", f.wait.value));
}

std::string warp_sync_text(const Launch& launch, const Warp& warp, const LaneGroup& f) {
  const bool all = f.wait.kind == WaitKind::warp_aligned;
  const LaneMask mask = all ? live_lanes(warp) : static_cast<LaneMask>(f.wait.object);
  LaneMask present = f.lanes;
  for (const LaneGroup& other : warp.lane_groups) {
    if (other.state == LaneGroupState::waiting && other.wait.kind == f.wait.kind &&
        other.wait.object == f.wait.object && (all ? other.pc == f.pc : other.wait.value == f.wait.value)) {
      present |= other.lanes;
    }
  }
  // Exited lanes are not waited for, but the diagnosis lists them too.
  const LaneMask missing = mask & ~present;
  return fmt::format("{} {:08x}: lanes {:08x} are here; missing {}", all ? "all lanes" : "mask", mask, present,
                     whereabouts(launch, warp, missing));
}

std::string warpgroup_text(const Launch& launch, const Cta& cta, const Warp& warp, const LaneGroup& f) {
  const auto first = static_cast<std::size_t>(warp.index / kGroupWarps * kGroupWarps);
  std::string out = fmt::format("warps {} to {}, all at this instruction", first, first + kGroupWarps - 1);
  for (std::size_t w = first; w < first + kGroupWarps; ++w) {
    const Warp& other = cta.warps[w];
    const bool here = std::any_of(other.lane_groups.begin(), other.lane_groups.end(), [&](const LaneGroup& o) {
      return o.lanes != 0 && o.wait.kind == WaitKind::warpgroup && o.pc == f.pc;
    });
    if (!here) out += fmt::format("\n  missing warp {}: {}", w, whereabouts(launch, other, kAllLanes));
  }
  return out;
}

std::string wait_text(const Launch& launch, const Cta& cta, const Warp& warp, const LaneGroup& f,
                      const std::string& polled) {
  if (f.state == LaneGroupState::ready) return polled;
  switch (f.wait.kind) {
    case WaitKind::warp_sync:
    case WaitKind::warp_aligned:
      return warp_sync_text(launch, warp, f);
    case WaitKind::warpgroup:
      return warpgroup_text(launch, cta, warp, f);
    case WaitKind::named_barrier:
      if (f.retries) {
        return fmt::format("barrier {}: the rest of its warp: {}", f.wait.object,
                           whereabouts(launch, warp, live_lanes(warp) & ~f.lanes));
      }
      return named_barrier_text(launch, cta, f);
    case WaitKind::mbarrier:
      return mbarrier_text(launch, cta, f);
    case WaitKind::cluster_barrier: {
      std::string out = "the cluster's barrier";
      for (const Cta& other : launch.ctas) {
        if (cluster_of(launch, other) != cluster_of(launch, cta)) continue;
        for (std::size_t w = 0; w < other.warps.size(); ++w) {
          const LaneMask missing = live_lanes(other.warps[w]) & ~other.cluster_arrived[w];
          if (missing == 0) continue;
          out += fmt::format("\n  missing rank {} warp {}: {}", other.cluster_rank, w,
                             whereabouts(launch, other.warps[w], missing));
        }
      }
      return out;
    }
    case WaitKind::tensor_room: {
      std::string out = "free columns of tensor memory; allocated:";
      for (const TensorAllocation& a : cta.tensor.allocations()) {
        if (!a.live()) continue;
        out += fmt::format("\n  columns {} to {} by warp {}: {}", a.column, a.column + a.columns - 1, a.warp,
                           place(launch, a.pc));
      }
      return out;
    }
    case WaitKind::tensor_peer:
      return "the same instruction in the peer CTA, whose rank differs in bit 0";
    case WaitKind::none:
      return "nothing known";
  }
  return "";
}

// The likely cause of an mbarrier that does not complete.
std::string mbarrier_hint(const Cta& cta, const LaneGroup& f) {
  const auto at = cta.mbarriers.find(offset_of(f.wait.object));
  if (at == cta.mbarriers.end()) return "";
  const Mbarrier& m = at->second;
  if (m.tx < 0 && m.pending > 0) {
    return fmt::format("copies completed {} bytes but no thread arrived: missing arrive.expect_tx", -m.tx);
  }
  if (m.pending == 0 && m.tx > 0) return fmt::format("{} bytes expected but not copied", m.tx);
  if (f.wait.parity && m.phase > 0 && m.pending == m.current && m.tx == 0) return "waited with the wrong parity";
  return "";
}

// Of the warps that a barrier waits for: the first exited one and the first that waits at another barrier.
std::string barrier_hint(const Cta& cta, const LaneGroup& f) {
  const NamedBarrier& b = cta.barriers[f.wait.object];
  std::string left, elsewhere;
  for (std::size_t w = 0; w < cta.warps.size(); ++w) {
    if (w < b.arrived.size() && b.arrived[w] != 0) continue;
    const Warp& warp = cta.warps[w];
    if (has_ended(warp) && b.expected > 0 && left.empty()) left = fmt::format("warp {} is missing: it has exited", w);
    for (const LaneGroup& other : warp.lane_groups) {
      if (other.lanes == 0 || other.state != LaneGroupState::waiting || !elsewhere.empty()) continue;
      if (other.wait.kind == WaitKind::named_barrier && other.wait.object != f.wait.object) {
        elsewhere = fmt::format("warp {} is missing: it waits at barrier {}", w, other.wait.object);
      }
    }
  }
  return elsewhere + (elsewhere.empty() || left.empty() ? "" : "\n") + left;
}

std::string hint_of(const Cta& cta, const LaneGroup& f) {
  if (f.wait.kind == WaitKind::mbarrier) return mbarrier_hint(cta, f);
  if (f.wait.kind == WaitKind::named_barrier) return barrier_hint(cta, f);
  return "";
}

// Lanes of one warp wait only for lanes of the same warp, so no other warp can release them.
bool is_diverged(const Warp& warp) {
  bool any = false;
  for (const LaneGroup& f : warp.lane_groups) {
    if (f.lanes == 0) continue;
    const bool within = f.state == LaneGroupState::waiting &&
                        (f.wait.kind == WaitKind::warp_sync || f.wait.kind == WaitKind::warp_aligned ||
                         (f.wait.kind == WaitKind::named_barrier && f.retries));
    if (!within) return false;
    any = true;
  }
  return any;
}

// A warp waits for the others of its warpgroup, and no lane group can continue.
bool misses_its_group(const Cta& cta) {
  return !has_ready(cta) && std::any_of(cta.warps.begin(), cta.warps.end(), [](const Warp& warp) {
    return std::any_of(warp.lane_groups.begin(), warp.lane_groups.end(), [](const LaneGroup& f) {
      return f.lanes != 0 && f.state == LaneGroupState::waiting && f.wait.kind == WaitKind::warpgroup;
    });
  });
}

struct Text {
  std::string message;
  std::size_t left_out = 0;
  std::vector<std::string> hints;
  std::size_t lines = 0;

  void line(const std::string& text) {
    if (lines++ >= kMostLines) {
      ++left_out;
      return;
    }
    if (!message.empty()) message += '\n';
    message += text;
  }
  void hint(const std::string& text) {
    if (!text.empty() && std::find(hints.begin(), hints.end(), text) == hints.end()) hints.push_back(text);
  }
};

ReportParty party_of(const Launch& launch, const Warp& warp, const LaneGroup& f) {
  return lanes_party(launch, warp, f.lanes, f.instruction(), f.state == LaneGroupState::ready ? "polls" : "waits");
}

std::vector<const Warp*> unfinished(const Cta& cta) {
  std::vector<const Warp*> out;
  for (const Warp& warp : cta.warps) {
    if (!has_ended(warp)) out.push_back(&warp);
  }
  return out;
}

std::uint64_t mix(std::uint64_t h, std::uint64_t v) {
  h ^= v;
  h *= 0x9fb21c651e98df25u;
  return h ^ (h >> 32);
}

// A hash of the positions of the warp's lanes. Comparing register contents takes a thousand times as long.
std::uint64_t places_of(const Warp& warp) {
  std::uint64_t h = 1;
  for (const LaneGroup& f : warp.lane_groups) {
    if (f.lanes == 0) continue;
    h = mix(mix(mix(h, static_cast<std::uint64_t>(f.pc)), f.lanes), static_cast<std::uint64_t>(f.activation));
  }
  return h;
}
std::uint64_t registers_of(const Warp& warp) {
  std::uint64_t h = 1;
  for (const LaneGroup& f : warp.lane_groups) {
    if (f.lanes == 0) continue;
    const RegisterBuffer& registers = warp.activations[static_cast<std::size_t>(f.activation)].registers;
    for (std::size_t i = 0; i + 8 <= registers.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, registers.data() + i, sizeof word);
      h = mix(h, word);
    }
  }
  return h;
}

// Records the last location (memory or an mbarrier) that each CTA and warp read: the target of a polling loop.
class PollWatcher final : public Monitor {
 public:
  void access(const Exec& exec, const Op&, const WarpAccess& a) override {
    const auto lane = static_cast<std::size_t>(std::countr_zero(a.lanes));
    Poll& poll = polls_[{exec.cta.index, exec.warp.index}];
    poll = {.space = a.space, .address = a.addresses[lane], .bytes = std::min<std::int32_t>(a.bytes, 8)};
  }
  void mbarrier(Launch&, const Cta&, const Exec* exec, LaneMask, MbarrierEvent event, std::uint64_t address,
                std::int64_t, Order, Scope) override {
    if (exec == nullptr || event != MbarrierEvent::wait_false) return;
    polls_[{exec->cta.index, exec->warp.index}] = {.address = address, .mbarrier = true};
  }
  [[nodiscard]] std::string text(const Launch& launch, const Cta& cta, const Warp& warp) const {
    const auto at = polls_.find({cta.index, warp.index});
    if (at == polls_.end()) return "goes round and looks at nothing";
    const Poll& poll = at->second;
    if (poll.mbarrier) return "goes round and asks " + object_text(launch, cta, poll.address, "");
    std::uint64_t value = 0;
    const std::byte* from = nullptr;
    if (poll.space == Space::global) from = launch.memory->at(poll.address, poll.bytes);
    if (poll.space == Space::shared) from = shared_at(cta, offset_of(poll.address), poll.bytes);
    if (from != nullptr) std::memcpy(&value, from, static_cast<std::size_t>(poll.bytes));
    const std::string place = place_name(name_address(launch, poll.space, poll.address, poll.bytes));
    return fmt::format("loops and polls {} {}, which is 0x{:x}", name(poll.space), place, value);
  }

 private:
  struct Poll {
    Space space = Space::global;
    std::uint64_t address = 0;
    std::int32_t bytes = 4;
    bool mbarrier = false;
  };
  std::map<std::pair<std::int32_t, std::int32_t>, Poll> polls_;
};

// Brent's cycle detection: the stored state is replaced at powers of two.
bool comes_back(Launch& launch, Cta& cta, Warp& warp) {
  constexpr int kMost = 1 << 13;
  const std::uint64_t events = launch.events;
  if (!has_ready(warp)) return true;
  std::uint64_t places = places_of(warp), registers = registers_of(warp);
  int next = 1;
  for (int i = 1; i <= kMost; ++i) {
    launch.turn.warp_left = 1;
    run_warp(launch, cta, warp, 1);
    if (launch.events != events || launch.status != LaunchStatus::running) return false;
    if (!has_ready(warp)) return true;
    if (places_of(warp) == places && registers_of(warp) == registers) return true;
    if (i != next) continue;
    places = places_of(warp), registers = registers_of(warp);
    next *= 2;
  }
  return false;
}

// A copy of the machine with its own memory: running it has no effect on the original.
struct Trial {
  explicit Trial(const Launch& from) : launch(from), memory(*from.memory) {
    launch.memory = &memory;
    launch.monitor = &watcher;
  }
  // Runs every ready warp until its state repeats.
  bool all_come_back() {
    for (Cta& cta : launch.ctas) {
      if (cta.state == CtaState::done) continue;
      for (Warp& warp : cta.warps) {
        if (!comes_back(launch, cta, warp)) return false;
      }
    }
    return true;
  }
  Launch launch;
  DeviceMemory memory;
  PollWatcher watcher;
};

void report_of(Launch& launch, Cta& cta, ReportKind kind, const std::vector<const Warp*>& warps) {
  Report r;
  r.kind = kind;
  Text text;
  std::unique_ptr<Trial> trial;
  if (kind == ReportKind::global_spin) {
    trial = std::make_unique<Trial>(launch);
    static_cast<void>(trial->all_come_back());
  }
  for (const Warp* warp : warps) {
    const std::string polled = trial == nullptr ? "" : trial->watcher.text(launch, cta, *warp);
    for (const LaneGroup& f : warp->lane_groups) {
      if (f.lanes == 0) continue;
      if (r.parties.size() < 2) r.parties.push_back(party_of(launch, *warp, f));
      text.line(fmt::format("warp {} lanes {:08x} {}: {}", warp->index, f.lanes, place(launch, f.instruction()),
                            wait_text(launch, cta, *warp, f, polled)));
      text.hint(hint_of(cta, f));
    }
  }
  if (kind == ReportKind::global_spin) {
    if (!launch.sample.empty())
      text.hint("the launch is sampled: the CTA that writes what they poll may be none of those that run");
    text.hint(launch.next_cta < launch.ctas_to_run()
                  ? fmt::format("needs co-resident CTAs: {} of {} could not start beside them (resident limit {})",
                                launch.ctas_to_run() - launch.next_cta, launch.ctas_to_run(),
                                launch.config.options.resident_limit)
                  : "needs co-resident CTAs, or no thread writes what they poll");
  }
  if (text.left_out > 0) text.message += fmt::format("\nand {} more", text.left_out);
  r.message = std::move(text.message);
  r.hint = fmt::format("{}", fmt::join(text.hints, "\n"));
  static_cast<void>(add_report(launch, cta, std::move(r)));
}

}  // namespace

bool spins_in_vain(const Launch& launch) {
  return Trial(launch).all_come_back();
}

void report_deadlock(Launch& launch) {
  for (Cta& cta : launch.ctas) {
    if (cta.state == CtaState::done) continue;
    std::vector<const Warp*> diverged;
    for (const Warp* warp : unfinished(cta)) {
      if (is_diverged(*warp)) diverged.push_back(warp);
    }
    if (!diverged.empty()) return report_of(launch, cta, ReportKind::diverged, diverged);
  }
  for (Cta& cta : launch.ctas) {
    if (cta.state == CtaState::done || !misses_its_group(cta)) continue;
    return report_of(launch, cta, ReportKind::diverged_warpgroup, unfinished(cta));
  }
  for (Cta& cta : launch.ctas) {
    if (cta.state == CtaState::done) continue;
    const bool spins = has_ready(cta);
    report_of(launch, cta, spins ? ReportKind::global_spin : ReportKind::deadlock, unfinished(cta));
    // The waits of the other CTAs of its cluster are part of the cause.
    for (Cta& other : launch.ctas) {
      if (spins || &other == &cta || other.state == CtaState::done) continue;
      if (cluster_size(launch) > 1 && cluster_of(launch, other) == cluster_of(launch, cta)) {
        report_of(launch, other, ReportKind::deadlock, unfinished(other));
      }
    }
    return;
  }
}

void report_runaway(Launch& launch) {
  std::vector<std::int32_t> hot;
  for (std::size_t pc = 0; pc < launch.backward_taken.size(); ++pc) {
    if (launch.backward_taken[pc] > 0) hot.push_back(static_cast<std::int32_t>(pc));
  }
  const auto count = [&](std::int32_t pc) { return launch.backward_taken[static_cast<std::size_t>(pc)]; };
  std::stable_sort(hot.begin(), hot.end(), [&](std::int32_t a, std::int32_t b) { return count(a) > count(b); });
  if (hot.size() > kMostHot) hot.resize(kMostHot);
  Report r;
  r.kind = ReportKind::runaway;
  r.message = fmt::format("the limit of {} warp instructions is reached", launch.config.options.limits.instructions);
  for (const std::int32_t pc : hot) {
    r.message += fmt::format("\n{} backward branches at {}", count(pc), place(launch, pc));
    ReportParty party;
    party.action = "loops";
    party.actor = "branch";
    party.pc = pc;
    party.opcode = launch.program->statement(pc).opcode;
    party.source = launch.program->source_text(pc);
    if (r.parties.empty()) r.parties.push_back(std::move(party));
  }
  r.hint = "a loop that does not end, or one that needs a larger limit: --max-instructions";
  const Cta none;
  Cta* const cta = find_cta(launch, launch.turn.cta);
  static_cast<void>(add_report(launch, cta != nullptr ? *cta : none, std::move(r)));
}

}  // namespace kvscope::ptx
