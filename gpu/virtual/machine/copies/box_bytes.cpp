#include "gpu/virtual/machine/copies/detail/box_bytes.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kLineBytes = 128;
constexpr std::int64_t kMaxRowBytes = 2048;  // 256 elements of 8

std::size_t byte_count(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

// Most rows are a line of 128 bytes: a size that is known here needs no call.
void move_run(std::byte* to, const std::byte* from, std::int64_t bytes) {
  if (bytes == kLineBytes) {
    std::memcpy(to, from, kLineBytes);
  } else {
    std::memcpy(to, from, byte_count(bytes));
  }
}

// Bytes [0, count) of a row, in one piece, to or from their places in the window. kUnit: the bytes that the swizzle
// leaves together.
template <std::int64_t kUnit>
void scatter_row(const TensorBox& box, const BoxRow& row, const std::byte* from, std::byte* window) {
  const auto change = static_cast<std::int64_t>(box.swizzle.change(static_cast<std::uint64_t>(row.shared)));
  if (box.size.inner == kLineBytes) {  // the row is a line: its first address has no bits that a swizzle changes
    std::byte* const line = window + (row.shared - box.shared);
    for (std::int64_t c = 0; c < kLineBytes; c += kUnit) std::memcpy(line + (c ^ change), from + c, kUnit);
    return;
  }
  for (std::int64_t c = 0; c < box.size.inner; c += kUnit) {
    std::memcpy(window + (((row.shared + c) ^ change) - box.shared), from + c, kUnit);
  }
}
void gather_row(const TensorBox& box, const BoxRow& row, const std::byte* window, std::int64_t count, std::byte* to) {
  const auto change = static_cast<std::int64_t>(box.swizzle.change(static_cast<std::uint64_t>(row.shared)));
  if (count == kLineBytes) {
    const std::byte* const line = window + (row.shared - box.shared);
    for (std::int64_t c = 0; c < kLineBytes; c += kCopyChunk) std::memcpy(to + c, line + (c ^ change), kCopyChunk);
    return;
  }
  for (std::int64_t c = 0; c < count; c += kCopyChunk) {
    std::memcpy(to + c, window + (((row.shared + c) ^ change) - box.shared),
                byte_count(std::min(kCopyChunk, count - c)));
  }
}

// Rows that follow one another without a gap on both sides, collected into one move.
class RunCopier {
 public:
  ~RunCopier() { flush(); }
  void add(std::byte* to, const std::byte* from, std::int64_t bytes) {
    if (to == to_ + bytes_ && from == from_ + bytes_) {
      bytes_ += bytes;
      return;
    }
    flush();
    to_ = to;
    from_ = from;
    bytes_ = bytes;
  }
  void flush() {
    if (bytes_ > 0) move_run(to_, from_, bytes_);
    bytes_ = 0;
  }

 private:
  std::byte* to_ = nullptr;
  const std::byte* from_ = nullptr;
  std::int64_t bytes_ = 0;
};

// The bytes that a load stores where the tensor has none: zeros, or 0x7ff7 in every 16-bit half, which fused
// multiply-add with the out-of-bounds modifier takes for zero and other arithmetic for a NaN.
void fill_row(std::byte* row, std::int64_t bytes, bool nan) {
  for (std::int64_t b = 0; b < bytes; ++b) row[b] = !nan ? std::byte{0} : std::byte(b % 2 == 0 ? 0xf7 : 0x7f);
}

// The data of one row, chunk by chunk: the allocations around it are not one.
bool fetch_row(const CopyMap& map, const TensorBox& box, const BoxRow& row, const DeviceMemory& memory, std::byte* to) {
  return each_chunk(box, row, map.element_bytes(), [&](const CopyChunk& chunk) {
    if (chunk.filled()) return true;
    const std::byte* const from = memory.at(chunk.global, chunk.data_bytes);
    if (from == nullptr) return false;
    const auto offset = static_cast<std::int64_t>(chunk.global - row.global);
    std::memcpy(to + offset, from, byte_count(chunk.data_bytes));
    return true;
  });
}

// put(row, its bytes in one piece) for every row.
template <class Put>
bool load_rows_of(const CopyMap& map, const TensorBox& box, const DeviceMemory& memory, const Put& put) {
  const std::byte* const hull = box.has_data() ? memory.at(box.lowest, box.hull) : nullptr;
  const bool nan = map.fill != 0, whole = box.begin == 0 && box.end == box.size.inner;
  std::array<std::byte, kMaxRowBytes> edge, empty;  // rows with fill, made when the first one is needed
  bool edge_made = false, empty_made = false, good = true;
  const auto make = [&](std::array<std::byte, kMaxRowBytes>& bytes, bool& made) {
    if (!made) fill_row(bytes.data(), box.size.inner, nan);
    made = true;
    return bytes.data();
  };
  box.each_row([&](const BoxRow& row) {
    if (!good) return;
    if (!row.inside) {
      put(row, make(empty, empty_made));
      return;
    }
    const std::byte* const data = hull != nullptr ? hull + (row.global - box.lowest) : nullptr;
    if (data != nullptr && whole) {
      put(row, data);
      return;
    }
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

}  // namespace

bool load_bytes(const CopyMap& map, const TensorBox& box, const DeviceMemory& memory, std::byte* window) {
  if (box.swizzle.halves != 0) {
    return load_rows_of(map, box, memory,
                        [&](const BoxRow& row, const std::byte* from) { scatter_row<8>(box, row, from, window); });
  }
  if (box.swizzle.active()) {
    return load_rows_of(map, box, memory,
                        [&](const BoxRow& row, const std::byte* from) { scatter_row<16>(box, row, from, window); });
  }
  return load_rows_of(map, box, memory, [&](const BoxRow& row, const std::byte* from) {
    move_run(window + (row.shared - box.shared), from, box.size.inner);
  });
}

bool store_bytes(const CopyMap& map, const TensorBox& box, DeviceMemory& memory, const std::byte* window) {
  if (!box.has_data()) return true;
  const std::int64_t stored = (box.end + kCopyChunk - 1) & -kCopyChunk;
  if (std::byte* const hull = memory.at(box.lowest, box.hull + stored - box.end); hull != nullptr) {
    RunCopier runs;
    box.each_row([&](const BoxRow& row) {
      if (!row.inside) return;
      std::byte* const to = hull + (row.global - box.lowest);
      if (box.swizzle.active()) {
        gather_row(box, row, window, stored, to);
      } else {
        runs.add(to, window + (row.shared - box.shared), stored);
      }
    });
    return true;
  }
  bool good = true;
  box.each_row([&](const BoxRow& row) {
    good = good && each_chunk(box, row, map.element_bytes(), [&](const CopyChunk& chunk) {
             if (chunk.filled()) return true;
             std::int64_t bytes = kCopyChunk;
             std::byte* to = memory.at(chunk.global, bytes);
             if (to == nullptr) to = memory.at(chunk.global, bytes = chunk.data_bytes);
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
             std::byte* const to = memory.at(chunk.global, chunk.data_bytes);
             if (to == nullptr) return false;
             const std::byte* const from = window + (chunk.shared - box.shared);
             for (std::int64_t b = 0; b < chunk.data_bytes; b += size) reduce(to + b, from + b, nullptr, true);
             return true;
           }));
  });
  return good;
}

}  // namespace kvscope::ptx
