#include "gpu/virtual/machine/copies/async.h"

#include <fmt/format.h>

#include <algorithm>
#include <string_view>

#include "gpu/virtual/machine/barriers/detail/mbarrier_handlers.h"
#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/tensor/detail/tensor_handlers.h"
#include "gpu/virtual/machine/warp/detail/random_schedule.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

bool is_store(AsyncKind kind) {
  return kind == AsyncKind::bulk_store || kind == AsyncKind::bulk_reduce || kind == AsyncKind::tensor_store ||
         kind == AsyncKind::tensor_reduce;
}

// st.async and red.async send registers to another CTA, so the memory of their own CTA may be released.
bool uses_own_memory(AsyncKind kind) {
  return kind != AsyncKind::st_async && kind != AsyncKind::red_async;
}

void perform_at(Launch& launch, Cta& cta, std::size_t index) {
  auto& queue = cta.async.queue;
  const PendingOp op = std::move(queue[index]);
  queue.erase(queue.begin() + static_cast<std::ptrdiff_t>(index));
  perform(launch, cta, op);
}

void make_arrival(Launch& launch, Cta& cta, std::size_t index) {
  auto& arrivals = cta.async.arrivals;
  const CpAsyncArrival arrival = arrivals[index];
  arrivals.erase(arrivals.begin() + static_cast<std::ptrdiff_t>(index));
  perform_copies(launch, cta, arrival.op.thread, arrival.last);
  arrive_by_engine(launch, cta, offset_of(arrival.op.mbarrier), arrival.op);
}

// Reports stores whose source was not waited for before their CTA ended.
void report_unread(Launch& launch, Cta& cta) {
  for (const ThreadGroups& t : cta.async.bulk) {
    if (t.last.number <= t.read) continue;
    engine_fault(launch, cta, t.last, ReportKind::exit_in_flight,
                 fmt::format("thread {} ended the kernel while a {} may still read shared memory", t.last.thread,
                             name(t.last.kind)),
                 "cp.async.bulk.commit_group, then cp.async.bulk.wait_group.read 0 before the end");
  }
}

void report_copies(Launch& launch, Cta& cta) {
  for (std::size_t thread = 0; thread < cta.async.cp_async.size(); ++thread) {
    const auto& copies = cta.async.cp_async[thread].copies;
    if (copies.empty()) continue;
    const AsyncOp op{copies.back().number,
                     AsyncKind::cp_async,
                     cta.index,
                     static_cast<std::int32_t>(thread),
                     copies.back().pc,
                     0,
                     0};
    // A copy that an arrival covers can be waited for at its barrier.
    const auto& arrivals = cta.async.arrivals;
    const bool arrives = std::any_of(arrivals.begin(), arrivals.end(), [&](const CpAsyncArrival& a) {
      return a.op.thread == op.thread && a.last >= op.number;
    });
    engine_note(launch, cta, op, ReportKind::exit_in_flight,
                fmt::format("thread {} ended the kernel with {} cp.async not waited for", thread, copies.size()),
                arrives ? "a wait for the mbarrier of its cp.async.mbarrier.arrive, before the end"
                        : "cp.async.wait_all, or cp.async.wait_group, before the end");
    return;  // one report for all threads
  }
}

void report_barriers(Launch& launch, Cta& cta) {
  for (const auto& [offset, b] : cta.mbarriers) {
    if (b.tx == 0) continue;
    const std::uint64_t address = shared_address(static_cast<std::uint64_t>(cta.cluster_rank), offset);
    const ReportAddress at = name_address(launch, Space::shared, address, 8);
    AsyncOp op;
    op.cta = cta.index;
    op.kind = AsyncKind::bulk_load;
    op.mbarrier = address;
    engine_fault(launch, cta, op, ReportKind::mbar_tx,
                 b.tx < 0 ? fmt::format("{} bytes arrived at {} that no thread announced (tx {}, phase {})", -b.tx,
                                        place_name(at), b.tx, b.phase)
                          : fmt::format("{} bytes were expected at {} and did not land (tx {}, phase {})", b.tx,
                                        place_name(at), b.tx, b.phase),
                 "expect_tx must name exactly the bytes of the copies" + announced_and_landed(launch, b), at);
  }
}

}  // namespace

std::string_view name(AsyncKind kind) {
  constexpr std::string_view kNames[] = {"cp.async",
                                         "bulk load",
                                         "bulk store",
                                         "bulk reduction",
                                         "tensor load",
                                         "tensor store",
                                         "tensor reduction",
                                         "bulk copy to the cluster",
                                         "st.async",
                                         "red.async",
                                         "wgmma",
                                         "tcgen05"};
  return kNames[static_cast<std::size_t>(kind)];
}

AsyncOp new_operation(Exec& exec, const Op& op, int lane, AsyncKind kind) {
  return {exec.launch.next_async++, kind, exec.cta.index, thread_of(exec, lane), pc_of(exec, op), 0, 0};
}

std::int64_t in_flight(const AsyncState& async) {
  std::size_t count = async.queue.size() + async.arrivals.size() + async.tensor.size();
  for (const ThreadCopies& t : async.cp_async) count += t.copies.size() + t.groups.size();
  for (const ThreadGroups& t : async.bulk) {
    count += t.open.size() + t.groups.size();
    for (const auto& group : t.groups) count += group.size();
  }
  for (const WarpProducts& w : async.wgmma) count += w.ops.size() + w.groups.size();
  return static_cast<std::int64_t>(count);
}

void issue(Exec& exec, PendingOp op) {
  if (exec.launch.monitor != nullptr) exec.launch.monitor->copy_issued(exec, op);
  issue_part(exec, std::move(op));
}

void issue_part(Exec& exec, PendingOp op) {
  if (exec.launch.monitor != nullptr) exec.launch.monitor->async_issue(exec, op.op, op.reads, op.writes);
  if (exec.launch.config.options.policy == Policy::early) {
    perform(exec.launch, exec.cta, op);
  } else {
    exec.cta.async.queue.push_back(std::move(op));
    ++exec.cta.async.pushed;
  }
}

void perform(Launch& launch, Cta& cta, const PendingOp& op) {
  if (launch.monitor != nullptr) launch.monitor->async_moves(launch, cta, op.op, op.reads, op.writes);
  if (launch.monitor != nullptr && op.op.kind == AsyncKind::tensor_load) launch.monitor->box_moves(launch, cta, op);
  switch (op.op.kind) {
    case AsyncKind::tensor_load:
    case AsyncKind::tensor_store:
    case AsyncKind::tensor_reduce:
      perform_tensor(launch, cta, op);
      break;
    default:
      perform_bulk(launch, cta, op);
      break;
  }
  event(launch, cta);
}

// Takes all of them from the queue in one pass: a wait for many copies takes time in proportion to the queue, once.
void perform_all(Launch& launch, Cta& cta, const std::vector<std::uint64_t>& numbers) {
  auto& queue = cta.async.queue;
  std::vector<std::size_t> taken;  // places in the queue, which is ordered by number
  for (const std::uint64_t number : numbers) {
    const auto found = std::lower_bound(queue.begin(), queue.end(), number,
                                        [](const PendingOp& p, std::uint64_t n) { return p.op.number < n; });
    if (found != queue.end() && found->op.number == number)
      taken.push_back(static_cast<std::size_t>(found - queue.begin()));
  }
  if (taken.size() == 1) return perform_at(launch, cta, taken.front());
  if (taken.empty()) return;
  std::vector<PendingOp> ops;
  ops.reserve(taken.size());
  for (const std::size_t i : taken) ops.push_back(std::move(queue[i]));
  std::sort(taken.begin(), taken.end());
  std::size_t to = taken.front();
  for (std::size_t from = to, next = 0; from < queue.size(); ++from) {
    if (next < taken.size() && taken[next] == from) {
      ++next;
    } else {
      queue[to++] = std::move(queue[from]);
    }
  }
  queue.resize(to);
  for (const PendingOp& op : ops) perform(launch, cta, op);
}

bool perform_next(Launch& launch, Cta& cta) {
  auto& a = cta.async;
  if (launch.config.options.policy == Policy::seeded) {
    const std::uint64_t copies = waiting_copies(cta), tensor = a.tensor.empty() ? 0 : 1,
                        all = a.queue.size() + a.arrivals.size() + copies + tensor;
    if (all == 0) return false;
    std::uint64_t chosen = next_random(launch, all);
    if (chosen + tensor == all) {
      perform_tensor_op(launch, cta);
    } else if (chosen < a.queue.size()) {
      perform_at(launch, cta, chosen);
    } else if ((chosen -= a.queue.size()) < a.arrivals.size()) {
      make_arrival(launch, cta, chosen);
    } else {
      perform_one_copy(launch, cta, chosen - a.arrivals.size());
    }
    return true;
  }
  // In issue order. A cp.async of a group is performed at its wait, or at its arrival.
  const auto first = [](const auto& ops) { return ops.empty() ? ~std::uint64_t{0} : ops.front().op.number; };
  if (first(a.tensor) < std::min(first(a.queue), first(a.arrivals))) {
    perform_tensor_op(launch, cta);
    return true;
  }
  if (a.queue.empty() && a.arrivals.empty()) return false;
  if (a.queue.empty() || (!a.arrivals.empty() && a.arrivals.front().op.number < a.queue.front().op.number)) {
    make_arrival(launch, cta, 0);
  } else {
    perform_at(launch, cta, 0);
  }
  return true;
}

void check_ended(Launch& launch, Cta& cta) {
  report_unread(launch, cta);
  report_copies(launch, cta);
  auto& queue = cta.async.queue;
  for (const PendingOp& p : queue) {
    // Already reported, or nothing is lost.
    if (is_store(p.op.kind) || !uses_own_memory(p.op.kind) || p.bytes == 0) continue;
    engine_fault(launch, cta, p.op, ReportKind::exit_in_flight,
                 fmt::format("the CTA ended with {} bytes of this copy in flight", p.bytes),
                 "wait for its mbarrier before the end");
  }
  while (!queue.empty()) perform_at(launch, cta, 0);
  end_tensor_memory(launch, cta);
  report_barriers(launch, cta);
}

MachineHandler find_copy(const Instr& instr) {
  for (const auto find : {find_cp_async, find_bulk_copy, find_tensor_copy, find_fence, find_cluster_launch}) {
    if (const MachineHandler handler = find(instr)) return handler;
  }
  return nullptr;
}

}  // namespace kvscope::ptx
