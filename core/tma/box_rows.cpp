#include "core/tma/box_rows.h"

#include <algorithm>
#include <cstring>

#include "core/base/checked.h"
#include "core/layout/swizzle.h"
#include "core/tma/tma_swizzle.h"

namespace kvscope {
namespace {

constexpr std::int64_t kLine = 128;         // [bytes] and the row of most swizzled boxes
constexpr std::int64_t kLongestRow = 2048;  // [bytes] 256 elements of 8

std::size_t to_size(std::int64_t bytes) {
  return static_cast<std::size_t>(bytes);
}

// The rows in runs: fill(row, end) for rows outside, data(row, end, offset of the first one's data in the hull) for
// rows inside, which are step[1] apart there.
template <class Fill, class Data>
void for_each_run(const BoxRows& b, const Fill& fill, const Data& data) {
  const auto inside = [&](std::size_t i, std::int64_t j) { return j >= b.first[i] && j < b.end[i]; };
  const auto offset = [&](std::size_t i, std::int64_t j) { return (j - b.first[i]) * b.step[i]; };
  const auto& t = b.shape.extents;
  std::int64_t row = 0;
  for (std::int64_t j4 = 0; j4 < t[4]; ++j4) {
    for (std::int64_t j3 = 0; j3 < t[3]; ++j3) {
      for (std::int64_t j2 = 0; j2 < t[2]; ++j2, row += t[1]) {
        if (b.data == 0 || !inside(4, j4) || !inside(3, j3) || !inside(2, j2)) {
          fill(row, row + t[1]);
          continue;
        }
        fill(row, row + b.first[1]);
        data(row + b.first[1], row + b.end[1], offset(4, j4) + offset(3, j3) + offset(2, j2));
        fill(row + b.end[1], row + t[1]);
      }
    }
  }
}

// The value that the swizzle XORs into the offsets of a row's chunks, computed from the row's start address.
class RowXor {
 public:
  explicit RowXor(const BoxRows& b) : lines_(b.span / b.atom), atom_(b.atom) {}
  std::int64_t operator()(std::int64_t start) const { return (start / kLine & (lines_ - 1)) * atom_; }

 private:
  std::int64_t lines_, atom_;  // powers of two
};

void put_chunk(std::byte* to, const std::byte* from) {
  std::memcpy(to, from, kChunkBytes);
}

// Calls put(row, its bytes) for each row: the bytes in memory, or a buffer here when some of them are fill.
template <class Put>
void for_each_row(const BoxRows& b, const std::byte* source, const BoxBytes& fill, const Put& put) {
  std::array<std::byte, kLongestRow> filled, edge;  // one row each, used when there is fill
  if (b.filled_bytes() > 0) {
    for (std::int64_t c = 0; c < b.shape.inner; c += kChunkBytes) {
      put_chunk(filled.data() + c, fill.data());
      put_chunk(edge.data() + c, fill.data());
    }
  }
  const std::int64_t step = b.step[1];
  for_each_run(
      b,
      [&](std::int64_t row, std::int64_t end) {
        for (; row < end; ++row) put(row, filled.data());
      },
      [&](std::int64_t row, std::int64_t end, std::int64_t offset) {
        if (b.data == b.shape.inner) {
          for (; row < end; ++row, offset += step) put(row, source + offset);
          return;
        }
        for (; row < end; ++row, offset += step) {
          std::memcpy(edge.data() + b.lead, source + offset, to_size(b.data));
          put(row, edge.data());
        }
      });
}

}  // namespace

std::int64_t BoxRows::rows_inside() const {
  if (data == 0) return 0;
  std::int64_t rows = 1;
  for (std::size_t i = 1; i < first.size(); ++i) rows *= end[i] - first[i];
  return rows;
}

std::optional<std::span<const std::byte>> BoxRows::source(const GlobalMemory& memory) const {
  if (data == 0) return std::span<const std::byte>{};
  return memory.read_if(base, hull_bytes);
}

std::optional<BoxRows> box_rows(const TensorMap& map, const TmaCoord& at, std::int64_t dst,
                                const BoxSwitches& switches) {
  BoxRows b;
  b.shape = box_shape(map, switches);
  b.dst = dst;
  b.span = swizzle_span(map.swizzle);
  b.atom = swizzle_atom(map.swizzle);
  if (map.swizzle == TmaSwizzle::b128_atom32_flip8) return std::nullopt;
  if (map.swizzle != TmaSwizzle::none && (b.shape.pitch != b.span || dst % b.span != 0)) return std::nullopt;

  bool past = false;
  b.base = map.base;
  const auto move_base = [&](std::int64_t index, std::uint64_t stride) {
    std::uint64_t bytes = 0;
    past = __builtin_mul_overflow(static_cast<std::uint64_t>(index), stride, &bytes) || past;
    past = __builtin_add_overflow(b.base, bytes, &b.base) || past;
  };
  // Tile indices j with 0 <= at + j * stride < dim, of those below `extent`: [first, end).
  const auto steps = [](std::int64_t distance, std::int64_t stride) {
    return stride == 1 ? distance : ceil_div(distance, stride);
  };
  const auto bound = [&](std::size_t i, std::int64_t stride, std::int64_t extent) {
    const std::int64_t start = at.at[i], left = static_cast<std::int64_t>(map.dims[i]) - start;
    b.first[i] = start < 0 ? steps(-start, stride) : 0;
    b.end[i] = left > 0 ? std::min(extent, steps(left, stride)) : 0;
    return b.first[i] < b.end[i];
  };
  const std::int64_t size = size_of(map.data_type);
  bool any = bound(0, 1, b.shape.extents[0]);
  const std::int64_t lead = b.first[0] * size, data = (b.end[0] - b.first[0]) * size;
  for (std::size_t i = 1; i < static_cast<std::size_t>(map.rank); ++i) {
    any = bound(i, map.element_strides[i], b.shape.extents[i]) && any;
  }
  if (!any) return b;  // only fill

  b.lead = lead;
  b.data = data;
  b.hull_bytes = data;
  move_base(at.at[0] + b.first[0], static_cast<std::uint64_t>(size));
  for (std::size_t i = 1; i < static_cast<std::size_t>(map.rank); ++i) {
    const std::int64_t stride = map.element_strides[i];
    move_base(at.at[i] + b.first[i] * stride, map.strides[i - 1]);
    b.step[i] = static_cast<std::int64_t>(map.strides[i - 1]) * stride;  // below 2^43
    b.hull_bytes += (b.end[i] - b.first[i] - 1) * b.step[i];
  }
  if (past) return std::nullopt;
  return b;
}

void load_rows(const BoxRows& b, std::span<const std::byte> source, const BoxBytes& fill,
               std::span<std::byte> window_bytes) {
  const RowXor row_xor(b);
  const std::int64_t pitch = b.shape.pitch, inner = b.shape.inner, dst = b.dst;
  std::byte* const window = window_bytes.data();
  if (b.span == kChunkBytes && pitch == kLine) {  // constant size: the compiler needs no call of memcpy
    for_each_row(b, source.data(), fill,
                 [=](std::int64_t row, const std::byte* from) { std::memcpy(window + row * kLine, from, kLine); });
  } else if (b.span == kChunkBytes) {
    for_each_row(b, source.data(), fill, [=](std::int64_t row, const std::byte* from) {
      std::memcpy(window + row * pitch, from, to_size(pitch));
    });
  } else if (inner == kLine) {
    for_each_row(b, source.data(), fill, [=](std::int64_t row, const std::byte* from) {
      std::byte* const line = window + row * kLine;
      const std::int64_t x = row_xor(dst + row * kLine);
      for (std::int64_t c = 0; c < kLine; c += kChunkBytes) put_chunk(line + (c ^ x), from + c);
    });
  } else {  // bytes between short rows are unchanged
    for_each_row(b, source.data(), fill, [=](std::int64_t row, const std::byte* from) {
      std::byte* const start = window + row * pitch;
      const std::int64_t x = row_xor(dst + row * pitch);
      for (std::int64_t c = 0; c < inner; c += kChunkBytes) put_chunk(start + (c ^ x), from + c);
    });
  }
}

void load_rows(const BoxRows& b, std::span<const std::byte> source, const BoxBytes& fill, SharedImage& image,
               CopyIdx copy) {
  const std::int64_t pitch = b.shape.pitch, inner = b.shape.inner;
  if (inner == pitch) {
    load_rows(b, source, fill, image.overwrite(b.dst, b.shape.window_bytes, copy));
    return;
  }
  const RowXor row_xor(b);  // bytes between the rows keep their writers
  for_each_row(b, source.data(), fill, [&](std::int64_t row, const std::byte* from) {
    const std::int64_t start = b.dst + row * pitch, x = row_xor(start);
    for (std::int64_t c = 0; c < inner; c += kChunkBytes) {
      put_chunk(image.overwrite(start + (c ^ x), kChunkBytes, copy).data(), from + c);
    }
  });
}

namespace {

// Calls put(row, destination of its data) for each inside row.
template <class Put>
void for_each_stored(const BoxRows& b, std::byte* target, const Put& put) {
  const std::int64_t step = b.step[1];
  for_each_run(
      b, [](std::int64_t, std::int64_t) {},
      [&](std::int64_t row, std::int64_t end, std::int64_t offset) {
        for (; row < end; ++row, offset += step) put(row, target + offset);
      });
}

}  // namespace

void store_rows(const BoxRows& b, std::span<const std::byte> window_bytes, std::int64_t row_bytes,
                std::span<std::byte> target) {
  const RowXor row_xor(b);
  const std::int64_t pitch = b.shape.pitch, dst = b.dst;
  const std::byte* const window = window_bytes.data();
  if (row_bytes == kLine && pitch == kLine) {
    for_each_stored(b, target.data(), [=](std::int64_t row, std::byte* to) {
      const std::byte* const line = window + row * kLine;
      const std::int64_t x = row_xor(dst + row * kLine);
      for (std::int64_t c = 0; c < kLine; c += kChunkBytes) put_chunk(to + c, line + (c ^ x));
    });
  } else if (b.span == kChunkBytes) {
    for_each_stored(b, target.data(), [=](std::int64_t row, std::byte* to) {
      std::memcpy(to, window + row * pitch, to_size(row_bytes));
    });
  } else {
    for_each_stored(b, target.data(), [=](std::int64_t row, std::byte* to) {
      const std::int64_t start = row * pitch, x = row_xor(dst + start);
      for (std::int64_t c = 0; c < row_bytes; c += kChunkBytes) {
        std::memcpy(to + c, window + start + (c ^ x), to_size(std::min(kChunkBytes, row_bytes - c)));
      }
    });
  }
}

std::int64_t store_rows(const BoxRows& b, const SharedImage& image, std::int64_t row_bytes,
                        std::span<std::byte> target) {
  const RowXor row_xor(b);
  const std::int64_t pitch = b.shape.pitch, dst = b.dst;
  store_rows(b, image.read(dst, b.shape.window_bytes), row_bytes, target);
  if (row_bytes == pitch && b.rows_inside() == b.shape.rows) return image.unwritten(dst, b.shape.window_bytes);
  std::int64_t poison = 0;
  for_each_stored(b, target.data(), [&](std::int64_t row, std::byte*) {
    const std::int64_t start = dst + row * pitch, x = row_xor(start);
    if (b.span == kChunkBytes || row_bytes == pitch) {
      poison += image.unwritten(start, row_bytes);
      return;
    }
    for (std::int64_t c = 0; c < row_bytes; c += kChunkBytes) {
      poison += image.unwritten(start + (c ^ x), std::min(kChunkBytes, row_bytes - c));
    }
  });
  return poison;
}

}  // namespace kvscope
