// K and V of a problem from a cache that was read: where they are, or as a copy whose rows attention can read.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/golden/layouts/detail/cache_reader.h"

namespace kvscope::golden {
namespace {

// Whether the elements or scales of a head are contiguous, and all strides are whole numbers of them, as PagedRows
// counts them. Fields of packed rows have any byte: in rows of 7 bytes, a stride is 3.5 elements of bf16.
bool has_strides_of_elements(const CachePiece& piece) {
  const CacheWalk& walk = piece.walk;
  const std::int64_t unit = bits(piece.dtype);
  return walk.by_element == unit && walk.offset % unit == 0 && walk.by_block % unit == 0 && walk.by_slot % unit == 0 &&
         walk.by_head % unit == 0;
}

// Whether attention can read the elements of the side where they are.
bool is_readable(const CacheSide& side, bool fnuz) {
  if (side.elements.size() != 1 || fnuz) return false;
  const CachePiece& piece = side.elements.front();
  return is_float(piece.dtype) && bits(piece.dtype) >= 8 && piece.walk.run >= piece.count &&
         has_strides_of_elements(piece);
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

// Calls put(row, piece, d, bit) for element d of each piece. The head's row starts at index `row` of [N, P, H, size].
void each_element(const CacheSizes& s, const std::vector<CachePiece>& pieces, std::int64_t size, const auto& put) {
  std::int64_t row = 0;
  for (std::int64_t block = 0; block < s.blocks; ++block) {
    for (std::int64_t slot = 0; slot < s.page_size; ++slot) {
      for (std::int64_t head = 0; head < s.heads; ++head, row += size) {
        for (const CachePiece& piece : pieces) {
          for (std::int64_t d = 0; d < piece.count; ++d) {
            put(row, piece, d, piece.walk.at(block, slot, head, d));
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
    each_element(s, side.elements, size, [&](std::int64_t row, const CachePiece& piece, std::int64_t d, auto bit) {
      std::memcpy(copy.data() + (row + piece.first + d) * bytes, source(piece) + bit / 8,
                  static_cast<std::size_t>(bytes));
    });
  } else {
    each_element(s, side.elements, size, [&](std::int64_t row, const CachePiece& piece, std::int64_t d, auto bit) {
      const bool own_fnuz = fnuz && piece.dtype == DType::e4m3;
      const auto value = static_cast<float>(decoded(piece.dtype, own_fnuz, source(piece), bit));
      std::memcpy(copy.data() + (row + piece.first + d) * bytes, &value, sizeof value);
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
  if (side.scales.size() == 1 && first.first == 0 && first.walk.order == ScaleOrder::linear &&
      first.count * first.each >= size && has_strides_of_elements(first) &&
      (!by_token || first.walk.by_block == s.page_size * first.walk.by_slot)) {
    const std::int64_t unit = bits(first.dtype);
    rows.granularity = first.each;
    rows.scales = cache.tensors[first.tensor]->bytes.data() + first.walk.offset / 8;
    rows.scale_dtype = first.dtype;
    rows.scale_block_stride = first.walk.by_block / unit;
    rows.scale_token_stride = first.walk.by_slot / unit;
    rows.scale_head_stride = first.walk.by_head / unit;
    return;
  }
  // Each field of a packed row has groups of its own: the copy has the longest groups that fit into all of them. 4
  // elements that share a scale, then 2 that share one, are 3 groups of 2. Elements without a scale have the scale 1.
  std::int64_t each = 0;
  for (const CachePiece& piece : side.scales) each = std::gcd(each, std::gcd(piece.first, piece.each));
  const std::int64_t groups = ceil_div(size, each);
  copy.assign(static_cast<std::size_t>(checked_mul(s.blocks * s.page_size * s.heads, groups)), 1.0);
  each_element(s, side.scales, groups, [&](std::int64_t row, const CachePiece& piece, std::int64_t d, auto bit) {
    const std::int64_t start = piece.first + d * piece.each;  // of the elements that share the scale
    const std::int64_t end = std::min(start + piece.each, size);
    std::fill(copy.begin() + row + start / each, copy.begin() + row + ceil_div(end, each),
              load_as_double(piece.dtype, cache.tensors[piece.tensor]->bytes.data() + bit / 8));
  });
  rows.granularity = each;
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

PoolOfLayers pool_of(const CacheReading& cache) {
  std::vector<bool> present;
  for (const Tensor* tensor : cache.tensors) present.push_back(tensor != nullptr);
  const auto layer = [&](std::int64_t at) { return view_of(cache.form, cache.sizes, at, cache.stored, present); };
  const CacheView first = layer(0), second = layer(1);
  const auto distance = [](const std::vector<CachePiece>& from, const std::vector<CachePiece>& to) {
    return from.empty() ? 0 : (to.front().walk.offset - from.front().walk.offset) / bits(from.front().dtype);
  };
  const std::int64_t k_scales = distance(first.k.scales, second.k.scales);
  const bool alike = first.values_in_keys || k_scales == distance(first.v.scales, second.v.scales);
  return {cache.tensors[first.k.elements.front().tensor]->bytes, cache.sizes.layers, cache.layer,
          distance(first.k.elements, second.k.elements), alike ? k_scales : 0};
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
  const bool one_tensor =
      cache.view.values_in_keys || cache.view.v.elements.front().tensor == cache.view.k.elements.front().tensor;
  if (s.layers > 1 && one_tensor && prepared.k_copy.empty() && prepared.v_copy.empty()) prepared.pool = pool_of(cache);
}

}  // namespace kvscope::golden
