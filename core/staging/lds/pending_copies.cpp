#include "core/staging/lds/pending_copies.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"

namespace kvscope {

namespace {

constexpr std::int64_t kCopyBytes = kWaveLanes * kLdsVectorBytes;  // of one instruction

}  // namespace

std::string to_text(const Race& race) {
  return fmt::format(
      "wave {} reads byte {:#06x} before copy {} of wave {} has written it ({}, tile at token {}, stage {})",
      race.reader.value, race.byte, race.copy.value, race.writer.value, race.origin.operand == KOrV::k ? "K" : "V",
      race.origin.tile_start.value, race.origin.stage.value);
}

PendingCopies::PendingCopies(SharedImage& image, std::int64_t waves) : image_(&image) {
  if (waves < 1) throw GeometryError(fmt::format("PendingCopies: {} waves: give 1 or more", waves));
  queues_.resize(static_cast<std::size_t>(waves));
  pending_chunks_.resize(static_cast<std::size_t>(image.size() / kLdsVectorBytes + 1));
}

std::deque<PendingCopies::Entry>& PendingCopies::queue_of(WaveIdx wave) {
  check_index("wave", wave.value, waves(), "waves of the block");
  return queues_[static_cast<std::size_t>(wave.value)];
}

const std::deque<PendingCopies::Entry>& PendingCopies::queue_of(WaveIdx wave) const {
  check_index("wave", wave.value, waves(), "waves of the block");
  return queues_[static_cast<std::size_t>(wave.value)];
}

CopyIdx PendingCopies::issue(const CopyOrigin& origin, const CopyInstruction& instruction, std::int64_t region,
                             const std::byte* dram) {
  std::deque<Entry>& queue = queue_of(instruction.wave);
  const std::int64_t first = region + instruction.lanes[0].lds_byte;
  (void)image_->read(first, kCopyBytes);  // inside the image, or an IndexError
  Entry entry{CopyIdx{static_cast<std::int64_t>(records_.size())}, {}};
  for (std::size_t lane = 0; lane < instruction.lanes.size(); ++lane) {
    const CopyVector& vector = instruction.lanes[lane];
    KVSCOPE_ASSERT(region + vector.lds_byte == first + kLdsVectorBytes * static_cast<std::int64_t>(lane));
    if (!vector.zero) std::memcpy(entry.bytes.data() + 16 * lane, dram + vector.dram_byte, 16);
  }
  for (std::int64_t byte = first; byte < first + kCopyBytes; byte += kLdsVectorBytes) {
    ++pending_chunks_[static_cast<std::size_t>(byte / kLdsVectorBytes)];
  }
  records_.push_back({instruction.wave, origin, first});
  queue.push_back(entry);
  return entry.copy;
}

bool PendingCopies::land_oldest(WaveIdx wave) {
  std::deque<Entry>& queue = queue_of(wave);
  if (queue.empty()) return false;
  const Entry& entry = queue.front();
  const std::int64_t first = record(entry.copy).first_byte;
  image_->write(first, entry.bytes, entry.copy);
  for (std::int64_t byte = first; byte < first + kCopyBytes; byte += kLdsVectorBytes) {
    --pending_chunks_[static_cast<std::size_t>(byte / kLdsVectorBytes)];
  }
  queue.pop_front();
  return true;
}

void PendingCopies::wait(WaveIdx wave, std::int64_t count) {
  if (count < 0 || count > kMaxVmCount) {
    throw GeometryError(
        fmt::format("vmcnt({}) is outside [0, {}], the 6 bits of its field: wait for fewer", count, kMaxVmCount));
  }
  while (outstanding(wave) > count) land_oldest(wave);
}

std::int64_t PendingCopies::outstanding(WaveIdx wave) const {
  return static_cast<std::int64_t>(queue_of(wave).size());
}

std::span<const std::byte> PendingCopies::read(WaveIdx reader, std::int64_t byte, std::int64_t count) {
  const std::span<const std::byte> bytes = image_->read(byte, count);
  for (std::int64_t chunk = byte / kLdsVectorBytes; chunk * kLdsVectorBytes < byte + count; ++chunk) {
    if (pending_chunks_[static_cast<std::size_t>(chunk)] > 0) {
      report(reader, byte, count);
      break;
    }
  }
  return bytes;
}

void PendingCopies::report(WaveIdx reader, std::int64_t byte, std::int64_t count) {
  for (const std::deque<Entry>& queue : queues_) {
    for (const Entry& entry : queue) {
      const CopyRecord& to_come = record(entry.copy);
      if (to_come.first_byte >= byte + count || to_come.first_byte + kCopyBytes <= byte) continue;
      const bool known = std::any_of(races_.begin(), races_.end(), [&](const Race& race) {
        return race.reader == reader && race.copy == entry.copy;
      });
      if (known) continue;
      races_.push_back({reader, to_come.wave, entry.copy, std::max(byte, to_come.first_byte), to_come.origin});
    }
  }
}

const CopyRecord& PendingCopies::record(CopyIdx copy) const {
  check_index("copy", copy.value, static_cast<std::int64_t>(records_.size()), "copies issued so far");
  return records_[static_cast<std::size_t>(copy.value)];
}

}  // namespace kvscope
