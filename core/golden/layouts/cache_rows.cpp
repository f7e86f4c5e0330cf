// K and V of a problem from a cache that was read: where they are, or as a copy whose rows attention can read.
#include <algorithm>
#include <cstring>
#include <limits>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/golden/layouts/detail/cache_reader.h"

namespace kvscope::golden {
namespace {

// Whether attention can read the elements of the side where they are.
bool is_readable(const CacheSide& side, bool fnuz) {
  if (side.elements.size() != 1 || fnuz) return false;
  const CachePiece& piece = side.elements.front();
  const CacheWalk& walk = piece.walk;
  const std::int64_t unit = bits(piece.dtype);
  return is_float(piece.dtype) && unit >= 8 && walk.by_element == unit && walk.run >= piece.count &&
         walk.offset % unit == 0 && walk.by_block % unit == 0 && walk.by_slot % unit == 0 && walk.by_head % unit == 0;
}

double decoded(DType dtype, bool fnuz, const std::byte* bytes, std::int64_t bit) {
  if (dtype == DType::e2m1) {
    std::byte nibble{};
    copy_bits(bytes, bit, &nibble, 0, 4);
    return to_double(e2m1{std::to_integer<std::uint8_t>(nibble)});
  }
  const std::byte* at = bytes + bit / 8;
  if (!fnuz) return load_as_double(dtype, at);
  // e4m3fnuz: the exponent's bias is 8 instead of 7, 80 is NaN, and 7f and ff are finite.
  const int code = std::to_integer<int>(*at);
  if (code == 0x80) return std::numeric_limits<double>::quiet_NaN();
  if ((code & 0x7f) == 0x7f) return code < 0x80 ? 240.0 : -240.0;
  return load_as_double(DType::e4m3, at) / 2;
}

// Calls put(index of the element in [N, P, H, size], piece, bit) for each element of the side.
void each_element(const CacheSizes& s, const std::vector<CachePiece>& pieces, std::int64_t size, const auto& put) {
  std::int64_t row = 0;
  for (std::int64_t block = 0; block < s.blocks; ++block) {
    for (std::int64_t slot = 0; slot < s.page_size; ++slot) {
      for (std::int64_t head = 0; head < s.heads; ++head, row += size) {
        for (const CachePiece& piece : pieces) {
          for (std::int64_t d = 0; d < piece.count; ++d) {
            put(row + piece.first + d, piece, piece.walk.at(block, slot, head, d));
          }
        }
      }
    }
  }
}

void set_strides(attention::PagedRows& rows, std::int64_t row, const CacheSizes& s) {
  rows.head_stride = row;
  rows.token_stride = s.heads * row;
  rows.block_stride = s.page_size * rows.token_stride;
}

// [N, P, H, D] of the side's own type, or of f32.
void copy_rows(const CacheReading& cache, const CacheSide& side, bool fnuz, std::int64_t size,
               attention::PagedRows& rows, std::vector<std::byte>& copy) {
  const CacheSizes& s = cache.sizes;
  const DType dtype = side.elements.front().dtype;
  const bool same = !fnuz && is_float(dtype) && dtype != DType::e2m1 &&
                    std::ranges::all_of(side.elements, [&](const CachePiece& p) { return p.dtype == dtype; });
  rows.dtype = same ? dtype : DType::f32;
  const std::int64_t bytes = size_of(rows.dtype);
  copy.resize(static_cast<std::size_t>(checked_mul(s.blocks * s.page_size * s.heads * size, bytes)));
  const auto source = [&](const CachePiece& piece) { return cache.tensors[piece.tensor]->bytes.data(); };
  if (same) {
    each_element(s, side.elements, size, [&](std::int64_t at, const CachePiece& piece, std::int64_t bit) {
      std::memcpy(copy.data() + at * bytes, source(piece) + bit / 8, static_cast<std::size_t>(bytes));
    });
  } else {
    each_element(s, side.elements, size, [&](std::int64_t at, const CachePiece& piece, std::int64_t bit) {
      const auto value = static_cast<float>(decoded(piece.dtype, fnuz && bits(piece.dtype) == 8, source(piece), bit));
      std::memcpy(copy.data() + at * bytes, &value, sizeof value);
    });
  }
  rows.data = copy.data();
  set_strides(rows, size, s);
}

void set_group_scales(const CacheReading& cache, const CacheSide& side, std::int64_t size, bool by_token,
                      attention::PagedRows& rows, std::vector<double>& copy) {
  if (side.scales.empty()) return;
  const CacheSizes& s = cache.sizes;
  const CachePiece& first = side.scales.front();
  const std::int64_t unit = bits(first.dtype);
  rows.granularity = first.each;
  if (side.scales.size() == 1 && first.first == 0 && first.walk.order == ScaleOrder::linear &&
      first.count * first.each >= size && first.walk.by_element == unit && first.walk.offset % unit == 0 &&
      first.walk.by_block % unit == 0 && first.walk.by_slot % unit == 0 &&
      (!by_token || first.walk.by_block == s.page_size * first.walk.by_slot)) {
    rows.scales = cache.tensors[first.tensor]->bytes.data() + first.walk.offset / 8;
    rows.scale_dtype = first.dtype;
    rows.scale_block_stride = first.walk.by_block / unit;
    rows.scale_token_stride = first.walk.by_slot / unit;
    rows.scale_head_stride = first.walk.by_head / unit;
    return;
  }
  // Elements without a scale have the scale 1.
  const std::int64_t groups = ceil_div(size, first.each);
  copy.assign(static_cast<std::size_t>(checked_mul(s.blocks * s.page_size * s.heads, groups)), 1.0);
  std::vector<CachePiece> pieces = side.scales;
  for (CachePiece& piece : pieces) piece.first /= piece.each;
  each_element(s, pieces, groups, [&](std::int64_t at, const CachePiece& piece, std::int64_t bit) {
    copy[static_cast<std::size_t>(at)] =
        load_as_double(piece.dtype, cache.tensors[piece.tensor]->bytes.data() + bit / 8);
  });
  rows.scales = reinterpret_cast<const std::byte*>(copy.data());
  rows.scale_dtype = DType::f64;
  rows.scale_head_stride = groups;
  rows.scale_token_stride = s.heads * groups;
  rows.scale_block_stride = s.page_size * rows.scale_token_stride;
}

// The same rows as blocks of one token: block b * page_size + slot.
void use_tokens(attention::PagedRows& rows) {
  rows.blocks *= rows.page_size;
  rows.block_stride = rows.token_stride;
  rows.scale_block_stride = rows.scale_token_stride;
  rows.page_size = 1;
}

}  // namespace

void set_cache_rows(const CacheReading& cache, bool fnuz, bool by_token, PreparedProblem& prepared) {
  const CacheSizes& s = cache.sizes;
  const auto set = [&](const CacheSide& side, std::int64_t size, attention::PagedRows& rows,
                       std::vector<std::byte>& copy, std::vector<double>& scales) {
    rows.blocks = s.blocks;
    rows.page_size = s.page_size;
    rows.heads = s.heads;
    rows.head_size = size;
    const CacheWalk& walk = side.elements.front().walk;
    if (is_readable(side, fnuz) && (!by_token || walk.by_block == s.page_size * walk.by_slot)) {
      const CachePiece& piece = side.elements.front();
      const std::int64_t unit = bits(piece.dtype);
      rows.data = cache.tensors[piece.tensor]->bytes.data() + walk.offset / 8;
      rows.dtype = piece.dtype;
      rows.block_stride = walk.by_block / unit;
      rows.token_stride = walk.by_slot / unit;
      rows.head_stride = walk.by_head / unit;
    } else {
      copy_rows(cache, side, fnuz, size, rows, copy);
    }
    set_group_scales(cache, side, size, by_token, rows, scales);
    if (by_token) use_tokens(rows);
  };
  attention::Problem& problem = prepared.problem;
  set(cache.view.k, s.head_size, problem.k, prepared.k_copy, prepared.k_scales);
  if (cache.view.values_in_keys) {
    problem.v = problem.k;
    problem.v.head_size = s.value_size;
  } else {
    set(cache.view.v, s.value_size, problem.v, prepared.v_copy, prepared.v_scales);
  }
}

}  // namespace kvscope::golden
