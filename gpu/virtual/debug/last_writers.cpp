#include "gpu/virtual/debug/last_writers.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstddef>

#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/warp/residents.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kMbarrierBytes = 8;

// Whether both bytes were written by one instruction; such bytes are printed on one line, regardless of the lane.
bool same_instruction(const Writer& a, const Writer& b) {
  return a.pc == b.pc && a.step == b.step && a.engine == b.engine && a.copy == b.copy &&
         a.thread / kLanes == b.thread / kLanes;
}

std::string lanes_of(int first, int last) {
  return first == last ? fmt::format("lane {}", first) : fmt::format("lanes {}-{}", first, last);
}

}  // namespace

Writer LastWriters::of(std::int32_t cta, std::uint64_t offset) const {
  const auto found = ctas_.find(cta);
  if (found == ctas_.end() || offset < kSharedBase || offset - kSharedBase >= found->second.size()) return {};
  return found->second[offset - kSharedBase];
}

std::int64_t LastWriters::bytes() const {
  std::int64_t bytes = 0;
  for (const auto& [cta, writers] : ctas_) bytes += static_cast<std::int64_t>(writers.size() * sizeof(Writer));
  return bytes;
}

void LastWriters::cta_begins(Launch&, const Cta& cta) {
  ctas_.erase(cta.index);
}

void LastWriters::cta_ends(Launch&, const Cta& cta) {
  ctas_.erase(cta.index);
}

void LastWriters::write(const Launch& launch, const Cta& by, std::uint64_t address, std::int64_t bytes,
                        const Writer& writer) {
  const Cta* to = &by;
  if (rank_of(address) != static_cast<std::uint64_t>(by.cluster_rank)) {
    const auto found = std::find_if(launch.ctas.begin(), launch.ctas.end(), [&](const Cta& other) {
      return cluster_of(launch, other) == cluster_of(launch, by) &&
             rank_of(address) == static_cast<std::uint64_t>(other.cluster_rank);
    });
    if (found == launch.ctas.end()) return;
    to = &*found;
  }
  std::vector<Writer>& writers = ctas_[to->index];
  if (writers.empty()) writers.resize(to->shared.size());
  const std::uint64_t first = offset_of(address) - kSharedBase;
  if (first >= writers.size()) return;
  const auto from = writers.begin() + static_cast<std::ptrdiff_t>(first);
  std::fill_n(from, std::min<std::ptrdiff_t>(bytes, writers.end() - from), writer);
}

void LastWriters::stored(const Exec& exec, const Op& op, const WarpAccess& access) {
  if (access.space != Space::shared) return;
  Writer writer;
  writer.step = exec.launch.step;
  writer.pc = pc_of(exec, op);
  writer.whole_warp = access.matrix_rows;
  for (LaneMask rest = access.lanes; rest != 0; rest &= rest - 1) {
    const int lane = std::countr_zero(rest);
    writer.thread = static_cast<std::int16_t>(thread_of(exec, access.matrix_rows ? 0 : lane));
    write(exec.launch, exec.cta, access.addresses[static_cast<std::size_t>(lane)], access.bytes, writer);
  }
}

void LastWriters::mbarrier(Launch& launch, const Cta& cta, const Exec* exec, LaneMask lanes, MbarrierEvent event,
                           std::uint64_t address, std::int64_t, Order, Scope) {
  if (event != MbarrierEvent::init || exec == nullptr) return;
  Writer writer;
  writer.step = launch.step;
  writer.pc = exec->lane_group.pc;
  writer.thread = static_cast<std::int16_t>(thread_of(*exec, std::countr_zero(lanes)));
  write(launch, cta, address, kMbarrierBytes, writer);
}

void LastWriters::async_moves(Launch& launch, const Cta& cta, const AsyncOp& op, std::span<const ByteRange>,
                              std::span<const ByteRange> writes) {
  Writer writer;
  writer.step = launch.step;
  writer.pc = op.pc;
  writer.thread = static_cast<std::int16_t>(op.thread);
  writer.engine = true;
  writer.copy = op.kind;
  for (const ByteRange& range : writes) {
    if (range.space == Space::shared) write(launch, cta, range.address, range.bytes, writer);
  }
}

std::string writers_text(const LastWriters& writers, const Program& program, std::int32_t cta, std::uint64_t address,
                         std::int64_t count) {
  std::string out;
  const auto at = [&](std::int64_t i) { return writers.of(cta, offset_of(address + static_cast<std::uint64_t>(i))); };
  for (std::int64_t begin = 0, end = 0; begin < count; begin = end) {
    const Writer first = at(begin);
    int lowest = first.thread % kLanes, highest = lowest;
    for (end = begin + 1; end < count && same_instruction(at(end), first); ++end) {
      lowest = std::min(lowest, at(end).thread % kLanes);
      highest = std::max(highest, at(end).thread % kLanes);
    }
    out += fmt::format("0x{:05x}-0x{:05x}  ", address + static_cast<std::uint64_t>(begin),
                       address + static_cast<std::uint64_t>(end - 1));
    if (first.pc < 0) {
      out += "not written\n";
      continue;
    }
    const std::string warp = fmt::format("warp {}", first.thread / kLanes);
    if (first.engine) {
      out += fmt::format("{} issued by {} {}", name(first.copy), warp, lanes_of(lowest, highest));
    } else {
      out += first.whole_warp ? warp : warp + " " + lanes_of(lowest, highest);
    }
    out += fmt::format("  {}  {}  step {}\n", program.statement(first.pc).opcode, program.source_text(first.pc),
                       first.step);
  }
  return out;
}

}  // namespace kvscope::ptx
