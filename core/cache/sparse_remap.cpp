#include "core/cache/sparse_remap.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/checked.h"
#include "core/base/convert.h"
#include "core/base/errors.h"

namespace kvscope {

namespace {
constexpr std::int32_t kNothing = -1;

void compact_left(std::span<std::int32_t> row) {
  const auto end = std::remove_if(row.begin(), row.end(), [](std::int32_t encoded) { return encoded < 0; });
  std::fill(end, row.end(), kNothing);
}
}  // namespace

std::int32_t remap_sparse_index(std::int32_t logical, SeqIdx seq, const LookupTable& table, std::int64_t page_size,
                                std::int64_t invalid) {
  if (page_size < 1) {
    throw GeometryError(fmt::format("sparse remap: a page of {} tokens: give 1 or more", page_size));
  }
  if (logical < 0) return logical;
  if (seq.value < 0)
    throw IndexError(fmt::format("sparse remap: sequence {} is negative: they count from 0", seq.value));
  if (seq.value >= table.dim(0)) return kNothing;
  const std::int64_t page = logical / page_size;
  if (page >= table.dim(1)) return kNothing;
  const std::int64_t block = table.unchecked(seq.value, page);
  if (block >= invalid) return kNothing;
  return narrow<std::int32_t>(block * page_size + logical % page_size, "encoded sparse index");
}

void remap_sparse_indices(const SparseRemap& remap, std::span<std::int32_t> out) {
  const std::int64_t rows = remap.logical.dim(0);
  const std::int64_t columns = remap.logical.dim(1);
  const std::int64_t slots = checked_mul(rows, columns, "sparse indices");
  if (slots != static_cast<std::int64_t>(out.size())) {
    throw GeometryError(fmt::format("sparse remap: {} rows of {} indices need an output of {}, not {}", rows, columns,
                                    slots, out.size()));
  }
  if (slots == 0) return;
  const std::int64_t batch = remap.offsets.dim(0) - 1;
  for (std::int64_t b = 0; b < batch; ++b) {
    if (remap.offsets(b + 1) < remap.offsets(b)) {
      throw GeometryError(
          fmt::format("sparse remap: offsets[{}] = {} is less than offsets[{}] = {}: offsets never fall", b + 1,
                      remap.offsets(b + 1), b, remap.offsets(b)));
    }
  }
  std::int64_t seq = 0;
  std::size_t slot = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    while (seq < batch && remap.offsets(seq + 1) <= row) ++seq;
    if (seq >= batch || remap.offsets(seq) > row) {
      throw GeometryError(fmt::format(
          "sparse remap: row {} of {} belongs to no sequence: offsets must run from 0 to {}", row, rows, rows));
    }
    for (std::int64_t column = 0; column < columns; ++column) {
      out[slot++] = remap_sparse_index(remap.logical(row, column), SeqIdx{seq}, remap.lookup_table, remap.page_size,
                                       remap.invalid);
    }
    if (remap.holes == SparseHoles::compacted_left) {
      compact_left(out.subspan(slot - static_cast<std::size_t>(columns), static_cast<std::size_t>(columns)));
    }
  }
}

std::int32_t prefill_tma_row(const PagedKVCache& cache, std::int32_t encoded) {
  return encoded < 0 ? encoded : cache.get_tma_row(encoded);
}

std::int32_t decode_tma_row(const PagedKVCache& cache, std::int32_t encoded) {
  return encoded == kNothing ? kNothing : cache.get_tma_row(encoded);
}

std::int64_t decode_list_position(std::int64_t position, std::int64_t topk) {
  return std::min(position, std::max<std::int64_t>(topk, 1) - 1);
}

double sparse_scale(const PagedKVCache& cache, std::int32_t encoded, std::int64_t granule) {
  const std::int64_t scale_stride = cache.scale_stride();
  if (scale_stride != cache.stride()) {
    throw GeometryError(
        fmt::format("sparse scale: scales have {} rows from block to block and values {}: the row of a value "
                    "names its scale only when both are equal",
                    scale_stride, cache.stride()));
  }
  const std::int64_t per_row = cache.kv_params().num_heads * cache.head_dim_granularity();
  check_index("sparse scale: granule", granule, per_row, "scales of a row, all heads together");
  const std::int64_t blocks = std::min(cache.blocks().dim(0), cache.scales()->dim(0));
  if (encoded < 0 || encoded >= blocks * cache.page_size()) return 0.0;
  const std::int64_t index = std::int64_t{cache.get_tma_row(encoded)} * per_row + granule;
  return load_as_double(*cache.scale_dtype(), cache.scales_raw_ptr() + index * size_of(*cache.scale_dtype()));
}

}  // namespace kvscope
