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
#include "gpu/virtual/check/detail/global_order.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

using By = GlobalTouch::By;

constexpr std::uint64_t kSharedFlag = std::uint64_t{1} << 63;  // a flag's key: shared memory of a cluster

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
  if (touch.by != By::threads) {
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

}  // namespace

struct GlobalRaces::Grid {
  // A plain store over a plain store that it is not ordered behind: harmless when the bytes are equal.
  struct Suspect {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    GlobalTouch before, now;
    int lane = 0;
    std::array<std::byte, GlobalCells::kBytes> old{};
  };

  explicit Grid(const GlobalRaceOptions& o) : options(o), cells(o.most_cells, o.most_reads) {}

  // Lanes `lanes` of a warp (all alike), or an engine for its issuer `lane`, against what was there before.
  void look(const Exec& exec, const GlobalOrder::Who& who, int lane, const GlobalTouch& now, bool write,
            const GlobalCell& cell, std::uint64_t address, std::uint64_t bytes);
  void conflict(const Exec& exec, ReportKind kind, const GlobalTouch& before, const GlobalTouch& now, int lane,
                std::uint64_t address, std::uint64_t bytes);
  void tell(const Exec& exec, ReportKind kind, const GlobalTouch& before, const GlobalTouch& now, int lane,
            std::uint64_t address, std::uint64_t bytes, std::string_view more);
  void touch_range(const Exec& exec, const GlobalOrder::Who& who, int lane, const GlobalTouch& now, bool write,
                   const ByteRange& range);
  void tell_limit(const Exec& exec, const Op& op);

  const GlobalRaceOptions& options;
  GlobalOrder order;
  GlobalCells cells;
  std::set<std::tuple<ReportKind, std::int32_t, std::int32_t>> told;
  std::vector<Suspect> suspects;
  bool told_limit = false;
  // An order could be missed: nothing is a race for certain any more.
  [[nodiscard]] bool blind() const { return order.flags() >= options.most_flags; }
};

GlobalRaces::GlobalRaces(GlobalRaceOptions options) : options_(options), grid_(std::make_unique<Grid>(options_)) {}
GlobalRaces::~GlobalRaces() = default;

void GlobalRaces::launch_begins(Launch& launch) {
  grid_ = std::make_unique<Grid>(options_);
  grid_->order.begin(launch);
}

void GlobalRaces::launch_ends(Launch&) {
  grid_->order.end();
  grid_->cells.clear();
}

void GlobalRaces::cta_begins(Launch& launch, const Cta& cta) {
  grid_->order.begin_cta(launch, cta);
}

void GlobalRaces::cta_ends(Launch&, const Cta& cta) {
  grid_->order.end_cta(cta);
}

// --- touches ---------------------------------------------------------------------------------------------------------

void GlobalRaces::Grid::look(const Exec& exec, const GlobalOrder::Who& who, int lane, const GlobalTouch& now,
                             bool write, const GlobalCell& cell, std::uint64_t address, std::uint64_t bytes) {
  const auto against = [&](const GlobalTouch& before, ReportKind kind) {
    if (before.by == By::nobody || (before.strong && now.strong)) return;
    if (before.by != By::threads && before.same_actor(now)) return;  // an engine does one thing after the other
    LaneMask lanes = now.by == By::threads ? now.lanes : LaneMask{1} << lane;
    for (; lanes != 0; lanes &= lanes - 1) {
      const int i = std::countr_zero(lanes);
      if (!order.ordered(who, i, before)) return conflict(exec, kind, before, now, i, address, bytes);
    }
  };
  against(cell.write, write ? ReportKind::race_ww : ReportKind::race_wr);
  if (write) cells.each_read(cell, [&](const GlobalTouch& t) { against(t, ReportKind::race_rw); });
}

void GlobalRaces::Grid::conflict(const Exec& exec, ReportKind kind, const GlobalTouch& before, const GlobalTouch& now,
                                 int lane, std::uint64_t address, std::uint64_t bytes) {
  if (kind == ReportKind::race_ww && before.plain_store && now.plain_store) {
    if (told.contains({kind, before.pc, now.pc})) return;
    Suspect suspect{address, bytes, before, now, lane, {}};
    // What is there now is the earlier store's: stored() compares.
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
  int other = before.by == By::threads ? std::countr_zero(before.lanes) : 0;
  // Of several lanes the first that this one is not ordered behind.
  for (LaneMask left = before.by == By::threads ? before.lanes : 0; left != 0; left &= left - 1) {
    GlobalTouch one = before;
    one.lanes = left & (~left + 1);
    if (order.ordered(order.who(exec), lane, one)) continue;
    other = std::countr_zero(left);
    break;
  }
  r.parties = {party_of(exec, before, other, was_write), party_of(exec, now, lane, is_write)};
  r.message = fmt::format("nothing orders them{}", more);
  if (before.cta != now.cta && r.severity == Severity::error) {
    r.hint =
        "CTAs are ordered by a release and an acquire at gpu scope, or by a fence, an atomic or volatile access, "
        "and a fence";
  }
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
      "races of more than that are not seen",
      options.most_cells, options.most_reads);
  r.hint = "watch a smaller grid";
  Exec copy = exec;
  static_cast<void>(report(copy, std::move(r)));
}

void GlobalRaces::access(const Exec& exec, const Op& op, const WarpAccess& access) {
  Grid& g = *grid_;
  if (g.blind()) return g.tell_limit(exec, op);
  const GlobalOrder::Who who = g.order.who(exec);
  const bool strong = access.kind == AccessKind::atomic || access.order != Order::weak;
  const bool write = access.kind != AccessKind::load;
  const auto address_of = [&](int lane) { return access.addresses[static_cast<std::size_t>(lane)]; };
  if (access.space == Space::global) {
    GlobalTouch now{.cta = who.cta,
                    .pc = pc_of(exec, op),
                    .step = g.order.act(who),
                    .thread = static_cast<std::uint16_t>(who.warp * kLanes),
                    .by = By::threads,
                    .strong = strong,
                    .plain_store = access.kind == AccessKind::store && !strong};
    // Lanes at one address are one touch.
    const auto groups = [&](auto visit) {
      for (LaneMask left = access.lanes; left != 0;) {
        const int lead = std::countr_zero(left);
        now.lanes = 0;
        for (LaneMask l = left; l != 0; l &= l - 1) {
          if (address_of(std::countr_zero(l)) == address_of(lead)) now.lanes |= l & (~l + 1);
        }
        left &= ~now.lanes;
        visit(lead);
      }
    };
    // All are looked at before any is kept: lanes of one instruction are not held against each other here.
    groups([&](int lead) {
      g.cells.each(address_of(lead), access.bytes, [&](GlobalCell& cell, std::uint64_t at, std::uint64_t bytes) {
        g.look(exec, who, lead, now, write, cell, at, bytes);
        if (write) return;
        g.cells.read(cell, now, [&](const GlobalTouch& t) { return g.order.ordered(who, lead, t); });
      });
    });
    if (write) {
      groups([&](int lead) {
        g.cells.each(address_of(lead), access.bytes,
                     [&](GlobalCell& cell, std::uint64_t, std::uint64_t) { g.cells.write(cell, now); });
      });
    }
    g.tell_limit(exec, op);
  }
  if (access.space != Space::global && access.space != Space::shared) return;
  if (!strong && (!write || g.order.flags() == 0)) return;
  const std::uint64_t mark =
      access.space == Space::shared ? kSharedFlag | static_cast<std::uint64_t>(who.cluster) << 32 : 0;
  for (LaneMask left = access.lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const Order order = access.order == Order::volatile_ ? Order::relaxed : access.order;
    g.order.flag(who, lane, mark | address_of(lane), access.kind, order, access.scope);
  }
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

void GlobalRaces::Grid::touch_range(const Exec& exec, const GlobalOrder::Who& who, int lane, const GlobalTouch& now,
                                    bool write, const ByteRange& range) {
  if (range.space != Space::global) return;
  cells.each(range.address, range.bytes, [&](GlobalCell& cell, std::uint64_t at, std::uint64_t bytes) {
    look(exec, who, lane, now, write, cell, at, bytes);
    if (write) {
      cells.write(cell, now);
    } else {
      cells.read(cell, now, [&](const GlobalTouch& t) { return order.ordered(who, lane, t); });
    }
  });
}

// --- order -----------------------------------------------------------------------------------------------------------

void GlobalRaces::barrier_arrive(const Exec& exec, int barrier, LaneMask lanes, bool) {
  grid_->order.barrier_arrive(grid_->order.who(exec), barrier, lanes);
}

void GlobalRaces::barrier_done(Launch&, const Cta& cta, int barrier, std::span<const LaneMask>,
                               std::span<const LaneMask> waiting) {
  grid_->order.barrier_done(cta, barrier, waiting);
}

void GlobalRaces::cluster_arrive(const Exec& exec, LaneMask lanes, Order order) {
  grid_->order.cluster_arrive(grid_->order.who(exec), lanes, order);
}

void GlobalRaces::cluster_wait(const Exec& exec, LaneMask lanes, Order order) {
  grid_->order.cluster_wait(grid_->order.who(exec), lanes, order);
}

void GlobalRaces::warp_barrier(const Exec& exec, LaneMask lanes) {
  grid_->order.meet(grid_->order.who(exec), lanes);
}

void GlobalRaces::collective(const Exec& exec, const Op&, LaneMask lanes) {
  if (options_.collectives_order) grid_->order.meet(grid_->order.who(exec), lanes);
}

void GlobalRaces::fence(const Exec& exec, LaneMask lanes, Order, Scope scope) {
  grid_->order.fence(grid_->order.who(exec), lanes, scope);
}

void GlobalRaces::mbarrier(Launch&, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                           std::uint64_t address, std::int64_t, Order order, Scope) {
  GlobalOrder& o = grid_->order;
  const std::int32_t cluster = o.who(cta, 0).cluster;
  switch (event) {
    case MbarrierEvent::init:
      return o.mbarrier_init(cluster, address);
    case MbarrierEvent::phase_done:
      return o.mbarrier_phase_done(cluster, address);
    case MbarrierEvent::arrive:
      return exec == nullptr ? o.mbarrier_arrive_copies(cluster, address)
                             : o.mbarrier_arrive(o.who(*exec), lanes, address, order);
    case MbarrierEvent::wait_true:
      if (exec != nullptr) o.mbarrier_waited(o.who(*exec), lanes, address, order);
      return;
    default:
      return;
  }
}

// --- engines ---------------------------------------------------------------------------------------------------------

void GlobalRaces::async_issue(const Exec& exec, const AsyncOp& op, std::span<const ByteRange> reads,
                              std::span<const ByteRange> writes) {
  Grid& g = *grid_;
  if (g.blind()) return;
  const GlobalOrder::Who who = g.order.who(exec);
  const int lane = op.thread % kLanes;
  GlobalTouch now{.cta = who.cta,
                  .pc = op.pc,
                  .step = step_of(op.number),
                  .thread = static_cast<std::uint16_t>(op.thread),
                  .by = By::engine,
                  .kind = op.kind};
  if (op.kind == AsyncKind::cp_async) {
    now.by = By::copy;
    g.order.issued_copy(who, lane, op.number);
  } else if (writes_global(op.kind)) {
    now.by = By::bulk;
    now.strong = reduces(op.kind);
  } else if (op.mbarrier != 0) {
    now.lanes = static_cast<std::uint32_t>(op.mbarrier);
    g.order.issued_load(who, op.mbarrier, op.number, bytes_of(writes));
  } else {
    return;
  }
  const bool update = reduces(op.kind);
  for (const ByteRange& range : reads) {
    if (!update) g.touch_range(exec, who, lane, now, false, range);
  }
  for (const ByteRange& range : writes) g.touch_range(exec, who, lane, now, true, range);
  g.tell_limit(exec, exec.program().ops[static_cast<std::size_t>(op.pc)]);
}

void GlobalRaces::async_moves(Launch&, const Cta& cta, const AsyncOp& op, std::span<const ByteRange>,
                              std::span<const ByteRange> writes) {
  if (op.mbarrier == 0 || op.kind == AsyncKind::cp_async) return;
  grid_->order.moved_load(grid_->order.who(cta, 0).cluster, op.mbarrier, op.number, bytes_of(writes));
}

void GlobalRaces::group_wait(const Exec& exec, AsyncKind kind, LaneMask lanes, bool reads_only,
                             std::span<const std::uint64_t, kLanes> last) {
  GlobalOrder& o = grid_->order;
  if (kind == AsyncKind::cp_async) o.waited_for_copies(o.who(exec), lanes, last);
  // A store whose source has been read has not yet been seen by anybody.
  if (kind == AsyncKind::bulk_store && !reads_only) o.waited_for_stores(o.who(exec), lanes, last);
}

void GlobalRaces::cp_async_arrive(const Exec& exec, LaneMask lanes, std::uint64_t mbarrier) {
  grid_->order.copies_arrive(grid_->order.who(exec), lanes, mbarrier);
}

}  // namespace kvscope::ptx
