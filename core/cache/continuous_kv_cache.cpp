#include "core/cache/continuous_kv_cache.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/checked.h"
#include "core/cache/element_access.h"

namespace kvscope {

ContinuousBatchingKVCache::ContinuousBatchingKVCache(const KVCacheStaticParams& kv_params,
                                                     const ContinuousLayerTensors& tensors)
    : kv_params_(kv_params), tensors_(tensors) {
  const AnyView<4>& view = tensors.blocks;
  const std::int64_t H = kv_params.num_heads;
  const std::int64_t D = kv_params.head_size;
  if (view.dtype == DType::e2m1) {
    throw UnsupportedError("ContinuousBatchingKVCache: e2m1 elements have no address: use a type of 8 bits or more");
  }
  std::vector<Fault> faults;
  if (H < 1 || D < 1) {
    faults.push_back({"kv_params", fmt::format("{} heads of {} elements: give 1 or more of both", H, D)});
  } else if (view.dim(2) != H || view.dim(3) != D) {
    faults.push_back(
        {"blocks", fmt::format("extents are [{}, {}, {}, {}], not [any, any, {}, {}]: heads and elements must be the "
                               "cache's",
                               view.dim(0), view.dim(1), view.dim(2), view.dim(3), H, D)});
  } else if (view.stride(1) != H * D || view.stride(2) != D || view.stride(3) != 1 || view.stride(0) % (H * D) != 0 ||
             view.stride(0) < view.dim(1) * H * D) {
    faults.push_back(
        {"blocks", fmt::format("strides are [{}, {}, {}, {}], not [whole rows that hold a block, {}, {}, 1]",
                               view.stride(0), view.stride(1), view.stride(2), view.stride(3), H * D, D)});
  }
  if (view.dim(0) < 1 || view.dim(1) < 1) {
    faults.push_back(
        {"blocks", fmt::format("{} blocks of {} tokens: a pool has at least 1 of both", view.dim(0), view.dim(1))});
  }
  if (tensors.lookup_table.dim(0) != tensors.cache_lengths.dim(0)) {
    faults.push_back({"lookup_table", fmt::format("{} entries for {} sequences: give one a sequence",
                                                  tensors.lookup_table.dim(0), tensors.cache_lengths.dim(0))});
  }
  if (!faults.empty()) throw GeometryError("ContinuousBatchingKVCache", std::move(faults));
  rows_per_block_ = view.stride(0) / (H * D);
}

Shape<4> ContinuousBatchingKVCache::blocks_shape() const {
  return {kUnknownValue, kUnknownValue, kv_params_.num_heads, kv_params_.head_size};
}

Shape<4> ContinuousBatchingKVCache::blocks_stride() const {
  return {kUnknownValue, kv_params_.num_heads * kv_params_.head_size, kv_params_.head_size, 1};
}

std::int64_t ContinuousBatchingKVCache::cache_length(SeqIdx seq) const {
  check_index("ContinuousBatchingKVCache: sequence", seq.value, cache_lengths().dim(0), "the batch has that many rows");
  return cache_lengths().unchecked(seq.value);
}

// --- rows ------------------------------------------------------------------------------------------------------------

std::int64_t ContinuousBatchingKVCache::num_kv_rows() const {
  return checked_add(checked_mul(blocks().dim(0) - 1, rows_per_block_, "rows"), blocks().dim(1), "rows");
}

std::int64_t ContinuousBatchingKVCache::block_of(SeqIdx seq, TokIdx tok) const {
  check_index("ContinuousBatchingKVCache: sequence", seq.value, lookup_table().dim(0), "the batch has that many rows");
  check_index("ContinuousBatchingKVCache: token", tok.value, blocks().dim(1), "a block holds max_seq_len tokens");
  return lookup_table().unchecked(seq.value);
}

RowIdx ContinuousBatchingKVCache::row_idx(SeqIdx seq, TokIdx tok) const {
  const auto block = static_cast<std::uint32_t>(block_of(seq, tok));
  return RowIdx{block * static_cast<std::uint32_t>(rows_per_block_) + static_cast<std::uint32_t>(tok.value)};
}

std::int64_t ContinuousBatchingKVCache::col_idx(HeadIdx head) const {
  check_index("ContinuousBatchingKVCache: head", head.value, kv_params_.num_heads, "num_heads of the cache");
  return head.value * kv_params_.head_size;
}

// --- elements --------------------------------------------------------------------------------------------------------

std::byte* ContinuousBatchingKVCache::element(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim,
                                              std::int64_t width) const {
  check_index("ContinuousBatchingKVCache: head", head.value, kv_params_.num_heads, "num_heads of the cache");
  check_index("ContinuousBatchingKVCache: dim", dim.value, kv_params_.head_size, "head_size of the cache");
  if (width < 0) throw GeometryError(fmt::format("ContinuousBatchingKVCache: {} elements: give 0 or more", width));
  if (width > kv_params_.head_size - dim.value) {
    throw IndexError(
        fmt::format("ContinuousBatchingKVCache: {} elements from dim {} end at {}, past the {} of a head: read "
                    "fewer",
                    width, dim.value, dim.value + width, kv_params_.head_size));
  }
  const std::int64_t block = block_of(seq, tok);
  if (block >= blocks().dim(0)) {
    throw IndexError(
        fmt::format("ContinuousBatchingKVCache: lookup_table[{}] is {}, outside the pool's [0, {}): give the "
                    "sequence a block",
                    seq.value, block, blocks().dim(0)));
  }
  return blocks().data +
         (block * blocks().stride(0) + tok.value * blocks().stride(1) + head.value * blocks().stride(2) + dim.value) *
             size_of(dtype());
}

void ContinuousBatchingKVCache::load_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width,
                                          DType out_dtype, std::byte* out) const {
  cast_elements(dtype(), element(seq, head, tok, dim, width), out_dtype, out, width);
}

void ContinuousBatchingKVCache::store_from(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width,
                                           DType in_dtype, const std::byte* in) const {
  cast_elements(in_dtype, in, dtype(), element(seq, head, tok, dim, width), width);
}

std::byte* ContinuousBatchingKVCache::block_paged_ptr(std::int64_t tile, SeqIdx seq, TokIdx tok, HeadIdx head,
                                                      DimIdx dim) const {
  std::byte* address = element(seq, head, tok, dim, 1);
  if (tile < 1 || tile > blocks().dim(1) - tok.value) {
    throw GeometryError(
        fmt::format("ContinuousBatchingKVCache.block_paged_ptr: {} tokens from token {} end at {}, past the "
                    "{} of a block: use 1 to {}",
                    tile, tok.value, tok.value + tile, blocks().dim(1), blocks().dim(1) - tok.value));
  }
  return address;
}

// --- tensor maps -----------------------------------------------------------------------------------------------------

TmaRows ContinuousBatchingKVCache::tma_rows(std::string_view object) const {
  return {object, blocks().data, dtype(), num_kv_rows(), kv_params_.num_heads, kv_params_.head_size};
}

TmaTile ContinuousBatchingKVCache::create_tma_tile(const TileOptions& options) const {
  return make_tma_tile(tma_rows("ContinuousBatchingKVCache.create_tma_tile"), options);
}

TmaTile ContinuousBatchingKVCache::create_tma_tile(std::int64_t tile_m, std::int64_t tile_n, SwizzleMode mode,
                                                   bool is_k_major) const {
  return make_matrix_tma_tile(tma_rows("ContinuousBatchingKVCache.create_tma_tile"), tile_m, tile_n, mode, is_k_major);
}

TmaTile ContinuousBatchingKVCache::create_ragged_tma_tile(const TileOptions& options) const {
  return make_ragged_tma_tile(tma_rows("ContinuousBatchingKVCache.create_ragged_tma_tile"), options);
}

TmaTile ContinuousBatchingKVCache::create_gather4_tma_tile(const Gather4Options& options) const {
  return make_gather4_tma_tile(tma_rows("ContinuousBatchingKVCache.create_gather4_tma_tile"), options);
}

namespace {

[[noreturn]] void throw_unsupported(const char* method, const char* why) {
  throw UnsupportedError(fmt::format("ContinuousBatchingKVCache.{}: {}: use a PagedKVCache", method, why));
}
constexpr const char* kNoPages = "a continuous cache has no pages";
constexpr const char* kNoRope = "a continuous cache has no rope-aware rows";
constexpr const char* kNoScales = "a continuous cache is never quantized";

}  // namespace

TmaTile ContinuousBatchingKVCache::create_paged_tma_tile(const TileOptions&) const {
  throw_unsupported("create_paged_tma_tile", kNoPages);
}
TmaTile ContinuousBatchingKVCache::create_rope_tma_tile(const RopeOptions&) const {
  throw_unsupported("create_rope_tma_tile", kNoRope);
}
TmaTile ContinuousBatchingKVCache::create_rope_gather4_tma_tile(const RopeGather4Options&) const {
  throw_unsupported("create_rope_gather4_tma_tile", kNoRope);
}
TmaTile ContinuousBatchingKVCache::create_index_scale_tma_tile(std::int64_t) const {
  throw_unsupported("create_index_scale_tma_tile", kNoScales);
}
PageCoords ContinuousBatchingKVCache::kv_tma_coords(SeqIdx, TokIdx) const {
  throw_unsupported("kv_tma_coords", kNoPages);
}
std::int64_t ContinuousBatchingKVCache::scale_stride() const {
  throw_unsupported("scale_stride", kNoScales);
}
RowIdx ContinuousBatchingKVCache::scale_row_idx(SeqIdx, TokIdx) const {
  throw_unsupported("scale_row_idx", kNoScales);
}
PageCoords ContinuousBatchingKVCache::scale_tma_coords(SeqIdx, TokIdx) const {
  throw_unsupported("scale_tma_coords", kNoScales);
}
std::int64_t ContinuousBatchingKVCache::num_scale_rows() const {
  throw_unsupported("num_scale_rows", kNoScales);
}

}  // namespace kvscope
