#include "core/smem/shared_image.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <string_view>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr std::int64_t kMostBytes = std::int64_t{1} << 31;

std::int64_t checked_size(std::int64_t bytes) {
  if (bytes < 0 || bytes > kMostBytes) {
    throw GeometryError(fmt::format("shared memory of {} B is outside [0, {}]", bytes, kMostBytes));
  }
  return bytes;
}

// address + count is never formed: it may not fit.
void check_range(std::string_view what, std::int64_t address, std::int64_t count, std::int64_t size) {
  if (address >= 0 && count >= 0 && address <= size && count <= size - address) return;
  throw IndexError(fmt::format(
      "{} of {} B at address {} leaves the shared memory of {} B: use addresses of the CTA's window, in bytes", what,
      count, address, size));
}

}  // namespace

SharedImage::SharedImage(std::int64_t bytes, std::byte poison)
    : bytes_(static_cast<std::size_t>(checked_size(bytes)), poison),
      writers_(static_cast<std::size_t>(ceil_div(bytes, kChunkBytes)), static_cast<std::int32_t>(kNoCopy.value)) {}

void SharedImage::write(std::int64_t address, std::span<const std::byte> bytes, CopyIdx copy) {
  const std::span<std::byte> to = overwrite(address, static_cast<std::int64_t>(bytes.size()), copy);
  std::copy(bytes.begin(), bytes.end(), to.begin());
}

std::span<std::byte> SharedImage::overwrite(std::int64_t address, std::int64_t count, CopyIdx copy) {
  check_range("write", address, count, size());
  if (copy < kNoCopy) throw IndexError(fmt::format("copy {}: number copies from 0 on", copy.value));
  mark(address, count, narrow<std::int32_t>(copy.value, "copy"));
  return std::span(bytes_).subspan(static_cast<std::size_t>(address), static_cast<std::size_t>(count));
}

// Part of a chunk, whole chunks, part of a chunk.
void SharedImage::mark(std::int64_t address, std::int64_t count, std::int32_t writer) {
  const std::int64_t end = address + count;
  const std::int64_t first_whole = ceil_div(address, kChunkBytes), end_whole = end / kChunkBytes;
  if (first_whole > end_whole) {
    mark_part(end_whole, address, end, writer);
    return;
  }
  if (address < first_whole * kChunkBytes)
    mark_part(first_whole - 1, address, std::min(first_whole * kChunkBytes, end), writer);
  std::int32_t* each = writers_.data() + first_whole;
  std::int32_t* const past = writers_.data() + end_whole;
  for (; past - each >= 16; each += 16) std::fill_n(each, 16, writer);  // twice as fast with a constant length
  std::fill(each, past, writer);
  if (end_whole * kChunkBytes < end) mark_part(end_whole, end_whole * kChunkBytes, end, writer);
}

// Bytes [from, to) of one chunk.
void SharedImage::mark_part(std::int64_t chunk, std::int64_t from, std::int64_t to, std::int32_t writer) {
  std::int32_t& whole = writers_[static_cast<std::size_t>(chunk)];
  if (whole == writer || from == to) return;
  std::array<std::int32_t, kChunkBytes>& each = several_[chunk];
  if (whole != kSeveral) each.fill(whole);
  whole = kSeveral;
  std::fill(each.begin() + (from - chunk * kChunkBytes), each.begin() + (to - chunk * kChunkBytes), writer);
}

std::int32_t SharedImage::writer_of(std::int64_t address) const {
  const std::int32_t whole = writers_[static_cast<std::size_t>(address / kChunkBytes)];
  return whole != kSeveral ? whole
                           : several_.at(address / kChunkBytes)[static_cast<std::size_t>(address % kChunkBytes)];
}

std::span<const std::byte> SharedImage::read(std::int64_t address, std::int64_t count) const {
  check_range("read", address, count, size());
  return std::span(bytes_).subspan(static_cast<std::size_t>(address), static_cast<std::size_t>(count));
}

CopyIdx SharedImage::writer(std::int64_t address) const {
  check_range("writer", address, 1, size());
  return CopyIdx{writer_of(address)};
}

std::int64_t SharedImage::unwritten(std::int64_t address, std::int64_t count) const {
  check_range("unwritten", address, count, size());
  const std::int64_t end = address + count;
  std::int64_t found = 0;
  const auto one_by_one = [&](std::int64_t to) {
    for (; address < to; ++address) found += writer_of(address) == kNoCopy.value ? 1 : 0;
  };
  one_by_one(std::min(end, round_up(address, kChunkBytes)));
  const auto first = writers_.begin() + address / kChunkBytes,
             past = std::max(first, writers_.begin() + end / kChunkBytes);
  found += kChunkBytes * std::count(first, past, static_cast<std::int32_t>(kNoCopy.value));
  for (auto chunk = several_.empty() ? past : first; chunk < past; ++chunk) {
    if (*chunk != kSeveral) continue;
    const auto& each = several_.at(chunk - writers_.begin());
    found += std::count(each.begin(), each.end(), static_cast<std::int32_t>(kNoCopy.value));
  }
  address = std::max(address, end / kChunkBytes * kChunkBytes);
  one_by_one(end);
  return found;
}

std::vector<std::int32_t> SharedImage::writers() const {
  std::vector<std::int32_t> all(bytes_.size());
  for (std::size_t address = 0; address < all.size(); ++address) {
    all[address] = writer_of(static_cast<std::int64_t>(address));
  }
  return all;
}

}  // namespace kvscope
