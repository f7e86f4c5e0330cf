#include "gpu/virtual/check/global_races.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "gpu/virtual/check/detail/global_cells.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/lane_loops.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

bool writes_global(AsyncKind kind) {
  return kind == AsyncKind::bulk_store || kind == AsyncKind::bulk_reduce || kind == AsyncKind::tensor_store ||
         kind == AsyncKind::tensor_reduce;
}
bool reduces(AsyncKind kind) {
  return kind == AsyncKind::bulk_reduce || kind == AsyncKind::tensor_reduce;
}

std::string cta_text(const Launch& launch, std::int32_t cta) {
  const auto& grid = launch.config.grid;
  return fmt::format("cta ({},{},{})", cta % grid[0], cta / grid[0] % grid[1], cta / (grid[0] * grid[1]));
}

ReportParty party_of(const Exec& exec, const GlobalTouch& touch, int lane, bool write) {
  const Program& program = exec.program();
  ReportParty out;
  out.action = write ? "write" : "read";
  out.pc = touch.pc;
  out.source = program.source_text(touch.pc);
  const std::string cta = cta_text(exec.launch, touch.cta);
  if (touch.lanes == 0) {
    out.actor = fmt::format("{} issued by thread {} of {}", name(touch.kind), touch.thread, cta);
    return out;
  }
  out.warp = touch.thread / kLanes;
  out.thread = out.warp * kLanes + lane;
  out.lanes = touch.lanes;
  out.actor = fmt::format("thread {} (warp {} lane {}) of {}", out.thread, out.warp, lane, cta);
  out.opcode = program.statement(touch.pc).opcode;
  return out;
}

// Whether what was touched is ordered before this lane of `warp` continues. `seen`: what threads saw by relaxed reads
// before a barrier counts, without a fence.
bool is_ordered(const HappensBefore& order, const WarpViews& warp, int lane, const GlobalTouch& touch,
                bool seen = false) {
  const ActorKey actor = order.key(static_cast<std::uint32_t>(touch.cta), touch.number);
  const auto is_before = [&](ActorKey one) {
    return warp.is_ordered(lane, one, touch.step) || (seen && warp.is_seen(lane, one, touch.step));
  };
  if (touch.lanes == 0) return is_before(actor);
  if (warp.ordered(lane).covers_warp(actor, touch.step)) return true;
  for (LaneMask left = touch.lanes; left != 0; left &= left - 1) {
    if (!is_before(actor + static_cast<ActorKey>(std::countr_zero(left)))) return false;
  }
  return true;
}

// A weak read may return an old value although a relaxed read before the barrier has seen the flag: only a fence after
// the relaxed read completes the acquire pattern.
bool needs_fence(ReportKind kind, const GlobalTouch& now) {
  return kind == ReportKind::race_wr && !now.strong && now.lanes != 0;
}

// What is missing between two accesses of different CTAs: the half of the writer, or the half of the reader.
std::string cta_order_hint(const Exec& exec, const HappensBefore& order, const WarpViews& warp, int lane,
                           const GlobalTouch& before, int other, const GlobalTouch& now) {
  if (!order.has_fences() && order.flag_count() == 0) {
    return "CTAs are ordered by a release and an acquire at gpu scope, or by a fence, an atomic or volatile access, "
           "and a fence";
  }
  const std::uint32_t number = before.number + (before.lanes != 0 ? static_cast<std::uint32_t>(other) : 0);
  const bool reader = warp.is_pending(lane, order.key(static_cast<std::uint32_t>(before.cta), number), before.step);
  const std::int32_t cta = reader ? now.cta : before.cta;
  const std::string who = cta_text(exec.launch, cta);
  std::string text =
      reader
          ? fmt::format(
                "the half of {} is missing: a fence at gpu scope (__threadfence) after the atomic or volatile access\n"
                "that saw the other CTA, and before this access",
                who)
          : fmt::format(
                "the half of {} is missing: a fence at gpu scope (__threadfence) after its access, and before\n"
                "the atomic or volatile access that tells the other CTA",
                who);
  if (const std::int32_t narrow = order.narrow_fence(static_cast<std::uint32_t>(cta)); narrow >= 0)
    text += fmt::format("\nits fence at {} orders the threads of one CTA or cluster only",
                        exec.program().source_text(narrow));
  return text;
}

}  // namespace

struct GlobalRaces::Grid {
  // A plain store over an unordered plain store: only a note if the bytes are equal.
  struct Suspect {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    GlobalTouch before{}, now{};
    int lane = 0;
    std::array<std::byte, GlobalCells::kBytes> old{};
  };

  Grid(const GlobalRaceOptions& o, const Launch& launch)
      : options(o), order(Space::global, launch), cells(o.most_cells, o.most_reads) {}

  // Checks `now`, by lanes of the warp or by an engine on behalf of `lane`, against the accesses of the cell.
  void look(const Exec& exec, const WarpViews& warp, int lane, const GlobalTouch& now, const GlobalCell& cell,
            std::uint64_t address, std::uint64_t bytes);
  void conflict(const Exec& exec, ReportKind kind, const GlobalTouch& before, const GlobalTouch& now, int lane,
                std::uint64_t address, std::uint64_t bytes);
  void tell(const Exec& exec, ReportKind kind, const GlobalTouch& before, const GlobalTouch& now, int lane,
            std::uint64_t address, std::uint64_t bytes, std::string_view more);
  // Records what touches cells of a chunk that is not split, if a quick test shows that it conflicts with nothing. Otherwise returns
  // false: each cell has to be checked.
  [[nodiscard]] bool touch_chunk(const WarpViews& warp, int lane, const GlobalTouch& now, GlobalChunk& chunk);
  [[nodiscard]] bool is_behind(const WarpViews& warp, int lane, const GlobalTouch& before,
                               const GlobalTouch& now) const;
  void touch_cell(const Exec& exec, const WarpViews& warp, int lane, const GlobalTouch& now, GlobalCell& cell,
                  std::uint64_t address, std::uint64_t bytes);
  void touch_cells(const Exec& exec, const WarpViews& warp, int lane, GlobalTouch now, std::uint64_t address,
                   std::int64_t bytes);
  void touch_lanes(const Exec& exec, const WarpViews& warp, GlobalTouch now, const WarpAccess& access);
  void touch_groups(const Exec& exec, const WarpViews& warp, GlobalTouch now, const WarpAccess& access);
  void touch_range(const Exec& exec, const WarpViews& warp, int lane, GlobalTouch now, std::uint64_t address,
                   std::int64_t bytes);
  void tell_limit(const Exec& exec, const Op& op);

  const GlobalRaceOptions& options;
  HappensBefore order;
  GlobalCells cells;
  std::set<std::tuple<ReportKind, std::int32_t, std::int32_t>> told;
  std::vector<Suspect> suspects;
  bool told_limit = false;
  // Whether an order could be missed, so that no race is certain any more.
  [[nodiscard]] bool blind() const { return order.flag_count() >= options.most_flags; }
};

GlobalRaces::GlobalRaces(GlobalRaceOptions options) : OrderMonitor(options.collectives_order), options_(options) {}
GlobalRaces::~GlobalRaces() = default;

std::unique_ptr<Monitor> GlobalRaces::fork(std::int64_t parts) {
  const auto share = static_cast<std::size_t>(parts);
  GlobalRaceOptions options = options_;
  options.most_cells /= share;
  options.most_reads /= share;
  options.most_flags /= share;
  return std::make_unique<GlobalRaces>(options);
}

void GlobalRaces::launch_begins(Launch& launch) {
  grid_ = std::make_unique<Grid>(options_, launch);
}

void GlobalRaces::launch_ends(Launch&) {
  grid_.reset();
}

HappensBefore* GlobalRaces::order_of(const Cta&) {
  return grid_ == nullptr ? nullptr : &grid_->order;
}

void GlobalRaces::cta_begins(Launch&, const Cta& cta) {
  grid_->order.begin(cta);
}

void GlobalRaces::cta_ends(Launch&, const Cta& cta) {
  grid_->order.end(cta);
}

// --- touches ---------------------------------------------------------------------------------------------------------

void GlobalRaces::Grid::look(const Exec& exec, const WarpViews& warp, int lane, const GlobalTouch& now,
                             const GlobalCell& cell, std::uint64_t address, std::uint64_t bytes) {
  const auto against = [&](const GlobalTouch& before, ReportKind kind) {
    // An engine executes its operations in order, and so does a lane.
    if (before.is_by_nobody() || (before.strong && now.strong) || before.meets_itself(now)) return;
    LaneMask lanes = now.lanes != 0 ? now.lanes : LaneMask{1} << lane;
    for (; lanes != 0; lanes &= lanes - 1) {
      const int i = std::countr_zero(lanes);
      if (!is_ordered(order, warp, i, before, !needs_fence(kind, now)))
        return conflict(exec, kind, before, now, i, address, bytes);
    }
  };
  against(cell.write, now.write ? ReportKind::race_ww : ReportKind::race_wr);
  if (now.write) cells.each_read(cell, [&](const GlobalTouch& t) { against(t, ReportKind::race_rw); });
}

void GlobalRaces::Grid::conflict(const Exec& exec, ReportKind kind, const GlobalTouch& before, const GlobalTouch& now,
                                 int lane, std::uint64_t address, std::uint64_t bytes) {
  if (kind == ReportKind::race_ww && before.plain_store && now.plain_store) {
    if (told.contains({kind, before.pc, now.pc})) return;
    Suspect suspect{address, bytes, before, now, lane, {}};
    // Memory still has the bytes of the earlier store. stored() compares them with the new ones.
    const std::byte* at = exec.launch.memory->at(address, static_cast<std::int64_t>(bytes));
    if (at != nullptr) std::memcpy(suspect.old.data(), at, bytes);
    suspects.push_back(suspect);
    return;
  }
  tell(exec, kind, before, now, lane, address, bytes, "");
}

void GlobalRaces::Grid::tell(const Exec& exec, ReportKind kind, const GlobalTouch& before, const GlobalTouch& now,
                             int lane, std::uint64_t address, std::uint64_t bytes, std::string_view more) {
  if (!told.emplace(kind, before.pc, now.pc).second) return;
  Report r;
  r.kind = kind;
  r.severity = severity_of(kind);
  r.address = name_address(exec.launch, Space::global, address, static_cast<std::int64_t>(bytes));
  const bool was_write = kind != ReportKind::race_rw, is_write = kind != ReportKind::race_wr;
  int other = before.lanes != 0 ? std::countr_zero(before.lanes) : 0;
  // The first lane of the earlier access that is not ordered before this one.
  for (LaneMask left = before.lanes; left != 0; left &= left - 1) {
    GlobalTouch one = before;
    one.lanes = left & (~left + 1);
    if (is_ordered(order, order.warp(exec), lane, one, !needs_fence(kind, now))) continue;
    other = std::countr_zero(left);
    break;
  }
  r.parties = {party_of(exec, before, other, was_write), party_of(exec, now, lane, is_write)};
  r.message = fmt::format("nothing orders them{}", more);
  if (before.cta != now.cta && r.severity == Severity::error)
    r.hint = cta_order_hint(exec, order, order.warp(exec), lane, before, other, now);
  Exec copy = exec;
  static_cast<void>(report(copy, std::move(r)));
}

void GlobalRaces::Grid::tell_limit(const Exec& exec, const Op& op) {
  if (told_limit || (!cells.full() && !blind())) return;
  told_limit = true;
  Report r;
  r.kind = ReportKind::watch_limit;
  r.severity = severity_of(r.kind);
  r.parties = {lane_party(exec, op, std::countr_zero(exec.lane_group.lanes), exec.lane_group.lanes, "at")};
  r.message = fmt::format(
      "global_race keeps {} cells of 4 bytes and {} reads beside the first of each: from here on "
      "races of more than that are not found",
      options.most_cells, options.most_reads);
  r.hint = "watch a smaller grid";
  Exec copy = exec;
  static_cast<void>(report(copy, std::move(r)));
}

// Whether each actor of `now`, lanes of the warp or an engine on behalf of `lane`, is the only one in `before` that touched its cell, or is
// ordered after all of them; false means that each has to be checked.
bool GlobalRaces::Grid::is_behind(const WarpViews& warp, int lane, const GlobalTouch& before,
                                  const GlobalTouch& now) const {
  if (before.meets_itself(now)) return true;
  if (now.lanes != 0 && !warp.uniform()) return false;
  const ActorKey actor = order.key(static_cast<std::uint32_t>(before.cta), before.number);
  return before.lanes == 0 ? warp.is_ordered(lane, actor, before.step)
                           : warp.ordered(lane).covers_warp(actor, before.step);
}

inline bool GlobalRaces::Grid::touch_chunk(const WarpViews& warp, int lane, const GlobalTouch& now,
                                           GlobalChunk& chunk) {
  if (chunk.touches[0].is_by_nobody()) {
    chunk.touches[0] = now;
    return true;
  }
  GlobalTouch* place = nullptr;  // one of nobody, or one that this touch replaces
  GlobalTouch* other = nullptr;  // another one that it replaces
  for (GlobalTouch& before : chunk.touches) {
    if (before.is_by_nobody()) {
      if (place == nullptr) place = &before;
      continue;
    }
    if ((before.cells & now.cells) == 0) continue;
    if (before.write || now.write) {
      if (!(before.strong && now.strong) && !is_behind(warp, lane, before, now)) return false;
      if (!now.write) continue;
    } else {  // whether it replaces the earlier read (GlobalCells::read)
      const bool within = now.cells_each == 0 && before.is_within(now);
      if ((now.strong && !before.strong) || (!within && !is_behind(warp, lane, before, now))) return false;
    }
    if ((before.cells & ~now.cells) != 0) return false;
    (place == nullptr ? place : other) = &before;
  }
  if (place == nullptr) return false;
  if (other != nullptr) *other = GlobalTouch{};
  *place = now;
  return true;
}

// Lanes at one address, the first of which is `lane`, or one engine.
void GlobalRaces::Grid::touch_cell(const Exec& exec, const WarpViews& warp, int lane, const GlobalTouch& now,
                                   GlobalCell& cell, std::uint64_t address, std::uint64_t bytes) {
  if (!cell.write.is_by_nobody() || (now.write && !cell.read.is_by_nobody()))
    look(exec, warp, lane, now, cell, address, bytes);
  if (now.write) {
    cells.write(cell, now);
  } else {
    cells.read(cell, now, [&](const GlobalTouch& t) { return is_ordered(order, warp, lane, t); });
  }
}

void GlobalRaces::Grid::touch_cells(const Exec& exec, const WarpViews& warp, int lane, GlobalTouch now,
                                    std::uint64_t address, std::int64_t bytes) {
  now.set_cells(0, 0);
  cells.each(address, bytes, [&](GlobalCell& cell, std::uint64_t at, std::uint64_t count) {
    touch_cell(exec, warp, lane, now, cell, at, count);
  });
}

// All lanes. The bytes of each lie behind those of the lane before.
void GlobalRaces::Grid::touch_lanes(const Exec& exec, const WarpViews& warp, GlobalTouch now,
                                    const WarpAccess& access) {
  static constexpr std::uint64_t kChunk = GlobalCells::kChunk, kBytes = GlobalCells::kBytes;
  const auto at = [&](int lane) { return access.addresses[static_cast<std::size_t>(lane)]; };
  const auto bytes = static_cast<std::uint64_t>(access.bytes);
  const auto cells_at = [&](std::uint64_t address) { return GlobalCells::cells_of(address, bytes); };
  const int each = bytes >= kBytes && bytes <= kChunk ? static_cast<int>(kChunk / bytes) : 0;  // lanes of a full chunk
  for (int lane = 0, next = 0; lane < kLanes; lane = next) {
    const std::uint64_t address = at(lane), number = address / kChunk;
    unsigned all = GlobalCells::kAllCells;
    next = lane + each;
    if (each == 0 || address % kChunk != 0 || next > kLanes || at(next - 1) - address != kChunk - bytes) {
      all = cells_at(address);
      for (next = lane + 1; all != 0 && next < kLanes && at(next) / kChunk == number && cells_at(at(next)) != 0; ++next)
        all |= cells_at(at(next));
    }
    now.lanes = (kAllLanes >> (kLanes - (next - lane))) << lane;
    now.set_cells(all, next - lane > 1 ? static_cast<unsigned>(bytes / kBytes) : 0);
    GlobalChunk* const chunk = all != 0 ? cells.chunk(address) : nullptr;
    if (chunk == nullptr) {
      touch_cells(exec, warp, lane, now, address, access.bytes);
    } else if (chunk->cells != nullptr || !touch_chunk(warp, lane, now, *chunk)) {
      cells.each_of(*chunk, all, number * kChunk,
                    [&](GlobalCell& cell, int i, std::uint64_t where, std::uint64_t count) {
                      const GlobalTouch one = now.of_cell(i);
                      touch_cell(exec, warp, std::countr_zero(one.lanes), one, cell, where, count);
                    });
      if (now.write && all == GlobalCells::kAllCells) cells.write(*chunk, now);
    }
  }
}

// Any lanes. All writes are checked before any is recorded: lanes of one instruction do not conflict here. Those at one address share a
// touch; reads do so in any case (GlobalCells::read).
void GlobalRaces::Grid::touch_groups(const Exec& exec, const WarpViews& warp, GlobalTouch now,
                                     const WarpAccess& access) {
  const auto address_of = [&](int lane) { return access.addresses[static_cast<std::size_t>(lane)]; };
  const auto groups = [&](auto visit) {
    for (LaneMask left = access.lanes; left != 0; left &= ~now.lanes) {
      const int lead = std::countr_zero(left);
      now.lanes = access.one ? left : left & (~left + 1);
      for (LaneMask l = left & ~now.lanes; now.write && l != 0; l &= l - 1) {
        if (address_of(std::countr_zero(l)) == address_of(lead)) now.lanes |= l & (~l + 1);
      }
      visit(lead);
    }
  };
  if (!now.write) {
    return groups([&](int lead) {
      const std::uint64_t address = address_of(lead);
      if (!cells.reads_again(address, access.bytes, now)) touch_range(exec, warp, lead, now, address, access.bytes);
    });
  }
  groups([&](int lead) {
    cells.each(address_of(lead), access.bytes, [&](GlobalCell& cell, std::uint64_t at, std::uint64_t bytes) {
      look(exec, warp, lead, now, cell, at, bytes);
    });
  });
  groups([&](int lead) {
    cells.each(address_of(lead), access.bytes,
               [&](GlobalCell& cell, std::uint64_t, std::uint64_t) { cells.write(cell, now); });
  });
}

void GlobalRaces::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  Grid& g = *grid_;
  if (g.blind()) return g.tell_limit(exec, op);
  WarpViews& warp = g.order.warp(exec);
  const bool strong = access.kind == AccessKind::atomic || access.order != Order::weak;
  const bool write = access.kind != AccessKind::load;
  if (access.space == Space::global) {
    GlobalTouch now{};
    now.cta = exec.cta.index;
    now.number = number_of(warp.lane0());
    now.pc = pc_of(exec, op);
    now.step = warp.act(access.lanes);
    now.thread = static_cast<std::uint16_t>(thread_of(warp.lane0()));
    now.somebody = true;
    now.write = write;
    now.strong = strong;
    now.plain_store = access.kind == AccessKind::store && !strong;
    if (access.row || (access.lanes == kAllLanes &&
                       lane_loops().apart(access.addresses.data(), static_cast<std::uint64_t>(access.bytes)))) {
      g.touch_lanes(exec, warp, now, access);
    } else {
      g.touch_groups(exec, warp, now, access);
    }
    g.tell_limit(exec, op);
  }
  if (access.space != Space::global && access.space != Space::shared) return;
  if (strong || (write && g.order.flag_count() > 0)) g.order.flags(exec, access);
}

void GlobalRaces::stored(const Exec& exec, const Op&, const WarpAccess&) {
  Grid& g = *grid_;
  for (const Grid::Suspect& s : g.suspects) {
    const std::byte* at = exec.launch.memory->at(s.address, static_cast<std::int64_t>(s.bytes));
    const bool equal = at != nullptr && std::memcmp(at, s.old.data(), s.bytes) == 0;
    if (equal && options_.same_value == SameValue::ignore) continue;
    const bool note = equal && options_.same_value == SameValue::note;
    g.tell(exec, note ? ReportKind::same_value : ReportKind::race_ww, s.before, s.now, s.lane, s.address, s.bytes,
           note ? "; both wrote the same bytes" : "");
  }
  g.suspects.clear();
}

// Lanes that touch the same bytes, the first of which is `lane`, or one engine.
void GlobalRaces::Grid::touch_range(const Exec& exec, const WarpViews& warp, int lane, GlobalTouch now,
                                    std::uint64_t address, std::int64_t bytes) {
  static constexpr std::uint64_t kChunk = GlobalCells::kChunk;
  const std::uint64_t end = address + static_cast<std::uint64_t>(bytes);
  for (std::uint64_t at = address; at < end;) {
    const std::uint64_t next = std::min((at / kChunk + 1) * kChunk, end);
    const bool whole = next - at == kChunk;
    now.set_cells(whole ? GlobalCells::kAllCells : GlobalCells::cells_of(at, next - at), 0);
    const std::span<GlobalChunk> chunks =
        now.cells != 0 ? cells.chunks(at, whole ? (end - at) / kChunk : 1) : std::span<GlobalChunk>();
    if (chunks.empty()) {
      touch_cells(exec, warp, lane, now, at, static_cast<std::int64_t>(next - at));
      at = next;
    }
    for (GlobalChunk& chunk : chunks) {
      const std::uint64_t count = whole ? kChunk : next - at;
      if (chunk.cells != nullptr || !touch_chunk(warp, lane, now, chunk)) {
        touch_cells(exec, warp, lane, now, at, static_cast<std::int64_t>(count));
        if (now.write && whole) cells.write(chunk, now);
      }
      at += count;
    }
  }
}

// --- engines ---------------------------------------------------------------------------------------------------------

void GlobalRaces::async_issue(const Exec& exec, const AsyncOp& op, ByteRanges reads, ByteRanges writes) {
  Grid& g = *grid_;
  if (g.blind()) return;
  WarpViews& warp = g.order.warp(exec);
  const int lane = op.thread % kLanes;
  GlobalTouch now{};
  now.cta = exec.cta.index;
  now.pc = op.pc;
  now.step = step_of(op.number);
  now.thread = static_cast<std::uint16_t>(op.thread);
  now.kind = op.kind;
  now.somebody = true;
  // Stores of all kinds by one thread are one engine, and so are loads of all kinds on one barrier.
  if (op.kind == AsyncKind::cp_async) {
    now.number = kCopiesOf + static_cast<std::uint32_t>(op.thread);
    now.step = warp.issue_copy(op.number, exec.launch.step, op.pc);
  } else if (writes_global(op.kind)) {
    now.number = engine_of_thread(AsyncKind::bulk_store, op.thread);
    now.strong = reduces(op.kind);
    warp.issue_grouped(AsyncKind::bulk_store);
  } else if (op.mbarrier != 0) {
    now.number = engine_of_barrier(AsyncKind::bulk_load, op.mbarrier);
    g.order.issue(g.order.key(warp.cta(), now.number), op.number, bytes_of(writes));
  } else {
    return;
  }
  const auto touch = [&](ByteRanges ranges, bool write) {
    now.write = write;
    for (const ByteRange& range : ranges) {
      if (range.space == Space::global) g.touch_range(exec, warp, lane, now, range.address, range.bytes);
    }
  };
  if (!reduces(op.kind)) touch(reads, false);
  touch(writes, true);
  g.tell_limit(exec, exec.program().ops[static_cast<std::size_t>(op.pc)]);
}

void GlobalRaces::async_moves(Launch&, const Cta& cta, const AsyncOp& op, ByteRanges, ByteRanges writes) {
  if (op.mbarrier == 0 || op.kind == AsyncKind::cp_async) return;
  HappensBefore& order = grid_->order;
  const std::uint32_t engine = engine_of_barrier(AsyncKind::bulk_load, op.mbarrier);
  order.moved(order.key(order.number_of_cta(cta), engine), op.number, bytes_of(writes));
}

}  // namespace kvscope::ptx
