#include "gpu/virtual/machine/copies/detail/box_bytes.h"

#include <array>
#include <cstring>

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kLineBytes = 128;
constexpr std::int64_t kMaxRowBytes = 2048;  // 256 elements of 8

std::size_t byte_count(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

// Most rows are a line of 128 bytes: with a compile-time size, memcpy is inlined.
void move_run(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == kLineBytes) {
    std::memcpy(to, from, kLineBytes);
  } else {
    std::memcpy(to, from, byte_count(bytes));
  }
}

// Row addresses in the window. The members are copies of the box's numbers: the bytes moved cannot alias them.
struct Window {
  Window(const TensorBox& box, std::int64_t count) : swizzle(box.swizzle), first(box.shared), bytes(count) {}
  SwizzleBits swizzle;
  std::int64_t first;  // [byte address] of the window
  std::int64_t bytes;  // bytes of a row that are moved, from its beginning

  // Calls move(byte of the row, its place in the window) for each kUnit bytes, which the swizzle keeps together.
  // kLine: the row is a line of 128 bytes, and the swizzle changes no bit of its first address.
  template <std::int64_t kUnit, bool kLine, class Byte, class Move>
  void each_unit(std::int64_t shared, Byte* window, const Move& move) const {
    const auto change = static_cast<std::int64_t>(swizzle.change(static_cast<std::uint64_t>(shared)));
    if constexpr (kLine) {
      Byte* const line = window + (shared - first);
      for (std::int64_t c = 0; c < kLineBytes; c += kUnit) move(c, line + (c ^ change));
    } else {
      for (std::int64_t c = 0; c < bytes; c += kUnit) move(c, window + (((shared + c) ^ change) - first));
    }
  }
};

// Fills bytes outside the tensor as a load does: zeros, or 0x7ff7 in every 16-bit half. Fused multiply-add with the
// .oob modifier treats 0x7ff7 as zero; other arithmetic treats it as a NaN.
void fill_row(std::byte* row, std::int64_t bytes, bool nan) {
  for (std::int64_t b = 0; b < bytes; ++b) row[b] = !nan ? std::byte{0} : std::byte(b % 2 == 0 ? 0xf7 : 0x7f);
}

// A load of TF32 rounds f32 to 10 bits of fraction, to nearest, ties to even. Infinities stay as they are, and a NaN
// becomes 7fffe000, as an H100 does (docs/hardware, probe H13). With _FTZ, subnormal numbers become zeros of their sign.
//   0x3f801000 -> 0x3f800000 (tie)   0x3f803000 -> 0x3f804000 (tie)   0x3fffffff -> 0x40000000
std::uint32_t rounded_to_tf32(std::uint32_t number, bool flushes) {
  constexpr std::uint32_t kExponent = 0x7f80'0000, kSign = 0x8000'0000, kDropped = 0x1fff, kNan = 0x7fff'e000;
  if ((number & kExponent) == kExponent) return (number & ~(kExponent | kSign)) == 0 ? number : kNan;
  if (flushes && (number & kExponent) == 0) return number & kSign;
  const std::uint32_t odd = number >> 13 & 1;
  return (number + 0xfff + odd) & ~kDropped;
}
void round_to_tf32(std::byte* values, std::int64_t bytes, bool flushes) {
  for (std::int64_t b = 0; b < bytes; b += 4) {
    std::uint32_t number = 0;
    std::memcpy(&number, values + b, sizeof number);
    number = rounded_to_tf32(number, flushes);
    std::memcpy(values + b, &number, sizeof number);
  }
}

// Whether the box may be accessed as one range from its lowest byte on. A part of a launch records each row by itself: the
// bytes between two rows are not accessed.
bool has_hull(const TensorBox& box, const DeviceMemory& memory) {
  return box.has_data() && !memory.is_part();
}

// Fetches the data of one row, chunk by chunk if it is in several allocations.
bool fetch_row(const CopyMap& map, const TensorBox& box, const BoxRow& row, const DeviceMemory& memory, std::byte* to) {
  if (const std::byte* const whole = memory.at(row.global, box.end - box.begin); whole != nullptr) {
    std::memcpy(to, whole, byte_count(box.end - box.begin));
    return true;
  }
  return each_chunk(box, row, map.element_bytes(), [&](const CopyChunk& chunk) {
    if (chunk.filled()) return true;
    const std::byte* const from = memory.at(chunk.global, chunk.data_bytes);
    if (from == nullptr) return false;
    const auto offset = static_cast<std::int64_t>(chunk.global - row.global);
    std::memcpy(to + offset, from, byte_count(chunk.data_bytes));
    return true;
  });
}

// Calls put(row, its bytes, contiguous) for each row.
template <class Put>
bool load_rows_of(const CopyMap& map, const TensorBox& box, const DeviceMemory& memory, const Put& put_bytes) {
  const ElementFormat::Rounds rounds = map.element().rounds;
  std::array<std::byte, kMaxRowBytes> rounded;
  const auto put = [&, rounds](const BoxRow& row, const std::byte* from) {
    if (rounds == ElementFormat::Rounds::never || !row.inside) {
      put_bytes(row, from);
      return;
    }
    std::memcpy(rounded.data(), from, byte_count(box.size.inner));
    round_to_tf32(rounded.data() + box.begin, box.end - box.begin, rounds == ElementFormat::Rounds::to_tf32_flushed);
    put_bytes(row, rounded.data());
  };
  const std::byte* const hull = has_hull(box, memory) ? memory.at(box.lowest, box.hull) : nullptr;
  const bool nan = map.fill != 0, whole = box.begin == 0 && box.end == box.size.inner;
  std::array<std::byte, kMaxRowBytes> edge, empty;  // rows with fill, built at the first use
  bool edge_made = false, empty_made = false, good = true;
  const auto make = [&](std::array<std::byte, kMaxRowBytes>& bytes, bool& made) {
    if (!made) fill_row(bytes.data(), box.size.inner, nan);
    made = true;
    return bytes.data();
  };
  const std::uint64_t lowest = box.lowest;
  if (whole && hull != nullptr) {
    box.each_row([&, hull, lowest](const BoxRow row) {
      put(row, row.inside ? hull + (row.global - lowest) : make(empty, empty_made));
    });
    return true;
  }
  box.each_row([&](const BoxRow& row) {
    if (!good) return;
    if (!row.inside) {
      put(row, make(empty, empty_made));
      return;
    }
    const std::byte* const data = hull != nullptr ? hull + (row.global - box.lowest) : nullptr;
    std::byte* const bytes = make(edge, edge_made);
    if (data != nullptr) {
      std::memcpy(bytes + box.begin, data, byte_count(box.end - box.begin));
    } else {
      good = fetch_row(map, box, row, memory, bytes + box.begin);
    }
    if (good) put(row, bytes);
  });
  return good;
}

template <std::int64_t kUnit, bool kLine>
bool load_swizzled(const CopyMap& map, const TensorBox& box, const DeviceMemory& memory, std::byte* window) {
  const Window place(box, box.size.inner);
  return load_rows_of(map, box, memory, [=](const BoxRow& row, const std::byte* from) {
    place.each_unit<kUnit, kLine>(row.shared, window,
                                  [=](std::int64_t c, std::byte* at) { std::memcpy(at, from + c, kUnit); });
  });
}

template <bool kLine>
void store_swizzled(const TensorBox& box, std::int64_t stored, std::byte* hull, const std::byte* window) {
  const Window place(box, stored);
  const std::uint64_t lowest = box.lowest;
  box.each_row([=](const BoxRow& row) {
    if (!row.inside) return;
    std::byte* const to = hull + (row.global - lowest);
    place.each_unit<kCopyChunk, kLine>(
        row.shared, window, [=](std::int64_t c, const std::byte* at) { std::memcpy(to + c, at, kCopyChunk); });
  });
}

}  // namespace

bool load_bytes(const CopyMap& map, const TensorBox& box, const DeviceMemory& memory, std::byte* window) {
  const bool line = box.size.inner == kLineBytes;
  if (box.swizzle.halves != 0) return load_swizzled<8, false>(map, box, memory, window);
  if (box.swizzle.active()) {
    return line ? load_swizzled<kCopyChunk, true>(map, box, memory, window)
                : load_swizzled<kCopyChunk, false>(map, box, memory, window);
  }
  const Window place(box, box.size.inner);
  return load_rows_of(map, box, memory, [=](const BoxRow& row, const std::byte* from) {
    move_run(window + (row.shared - place.first), from, place.bytes);
  });
}

bool store_bytes(const CopyMap& map, const TensorBox& box, DeviceMemory& memory, const std::byte* window) {
  if (!box.has_data()) return true;
  const std::int64_t stored = (box.end + kCopyChunk - 1) & -kCopyChunk;
  std::byte* const hull = has_hull(box, memory) ? memory.writable_at(box.lowest, box.hull + stored - box.end) : nullptr;
  if (hull != nullptr) {
    if (box.swizzle.active()) {
      stored == kLineBytes ? store_swizzled<true>(box, stored, hull, window)
                           : store_swizzled<false>(box, stored, hull, window);
      return true;
    }
    const Window place(box, stored);
    const std::uint64_t lowest = box.lowest;
    box.each_row([=](const BoxRow& row) {
      if (row.inside) move_run(hull + (row.global - lowest), window + (row.shared - place.first), place.bytes);
    });
    return true;
  }
  bool good = true;
  box.each_row([&](const BoxRow& row) {
    good = good && each_chunk(box, row, map.element_bytes(), [&](const CopyChunk& chunk) {
             if (chunk.filled()) return true;
             std::int64_t bytes = kCopyChunk;
             std::byte* to = memory.writable_at(chunk.global, bytes);
             if (to == nullptr) to = memory.writable_at(chunk.global, bytes = chunk.data_bytes);
             if (to == nullptr) return false;
             std::memcpy(to, window + (chunk.shared - box.shared), byte_count(bytes));
             return true;
           });
  });
  return good;
}

bool reduce_bytes(const CopyMap& map, const TensorBox& box, DeviceMemory& memory, const std::byte* window,
                  Reduce reduce) {
  const std::int64_t size = map.element_bytes();
  bool good = true;
  box.each_row([&](const BoxRow& row) {
    good = good && (!row.inside || each_chunk(box, row, size, [&](const CopyChunk& chunk) {
             if (chunk.filled()) return true;
             std::byte* const to = memory.writable_at(chunk.global, chunk.data_bytes);
             if (to == nullptr) return false;
             const std::byte* const from = window + (chunk.shared - box.shared);
             for (std::int64_t b = 0; b < chunk.data_bytes; b += size) reduce(to + b, from + b, nullptr, true);
             return true;
           }));
  });
  return good;
}

}  // namespace kvscope::ptx
