#include "gpu/virtual/machine/barriers/mbarrier.h"

#include <fmt/format.h>

namespace kvscope::ptx {

std::string Mbarrier::text() const {
  return fmt::format("phase {}, pending {} of {}, tx {}", phase, pending, current, tx);
}

bool Mbarrier::add_tx(std::int64_t bytes) {
  const std::int64_t sum = tx + bytes;
  if (sum > kMost || sum < -kMost) return false;
  tx = sum;
  return true;
}

void Mbarrier::end_phase_if_complete() {
  if (pending != 0 || tx != 0) return;
  ++phase;
  current = pending = expected;
  arrivals = {};
  arrival_count = 0;
}

void Mbarrier::remember_bytes(const Bytes& entry) {
  if (bytes_count > 0 && entry.number != 0) {
    Bytes& last = last_bytes[static_cast<std::size_t>(bytes_count - 1) % last_bytes.size()];
    if (last.number == entry.number && last.pc == entry.pc) {
      last.bytes += entry.bytes;
      last.phase = entry.phase;
      return;
    }
  }
  last_bytes[static_cast<std::size_t>(bytes_count++) % last_bytes.size()] = entry;
}

bool Mbarrier::complete_tx(std::int64_t bytes) {
  // An engine completes in pieces. If too few bytes were announced, the phase completes when those have landed, and the
  // remaining bytes count in the next phase.
  const std::int64_t before = tx;
  const bool ends_early = pending == 0 && tx > 0 && bytes > tx;
  if (!add_tx(ends_early ? -tx : -bytes)) return false;
  if (ends_early) {
    const std::int64_t rest = bytes - before;
    end_phase_if_complete();
    return complete_tx(rest);
  }
  end_phase_if_complete();
  return true;
}

bool Mbarrier::arrive(std::int64_t count) {
  if (count > pending) return false;
  pending -= count;
  end_phase_if_complete();
  return true;
}

bool Mbarrier::arrive_and_drop(std::int64_t count) {
  if (count > pending || count > expected) return false;
  expected -= count;  // before the phase completes: the next phase is already without them
  return arrive(count);
}

bool Mbarrier::raise_pending() {
  if (pending == kMost) return false;
  ++pending;
  ++current;
  return true;
}

}  // namespace kvscope::ptx
