#include "core/cache/paged_kv_cache.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <vector>

#include "core/base/checked.h"
#include "core/cache/element_access.h"

namespace kvscope {

namespace {

// Extents and strides of a 4-D view whose blocks hold `page` rows of `heads` x `depth`.
void require_view(std::vector<Fault>& faults, const char* what, const AnyView<4>& view, DType dtype,
                  const Shape<4>& want) {
  if (view.dtype != dtype) {
    faults.push_back({what, fmt::format("dtype is {}, and the cache was made for {}", name(view.dtype), name(dtype))});
  }
  for (const int axis : {1, 2, 3}) {
    if (view.dim(axis) != want[static_cast<std::size_t>(axis)]) {
      faults.push_back(
          {what, fmt::format("extents are [{}], not [any, {}, {}, {}]: page rows, heads and elements must be the "
                             "cache's",
                             fmt::join(view.extents, ", "), want[1], want[2], want[3])});
      return;
    }
  }
  const std::int64_t row = want[2] * want[3];
  if (view.stride(1) != row || view.stride(2) != want[3] || view.stride(3) != 1) {
    faults.push_back({what, fmt::format("strides are [{}], not [any, {}, {}, 1]: rows inside a block are packed",
                                        fmt::join(view.strides, ", "), row, want[3])});
  } else if (view.stride(0) % row != 0 || view.stride(0) < want[1] * row) {
    faults.push_back({what, fmt::format("{} elements from block to block are not whole rows of {} and at least {}",
                                        view.stride(0), row, want[1] * row)});
  }
  if (view.dim(0) < 1) faults.push_back({what, fmt::format("{} blocks: a pool has at least 1", view.dim(0))});
}

void require_table(std::vector<Fault>& faults, const char* what, const LookupTable& table, std::int64_t batch) {
  if (table.dim(0) != batch) {
    faults.push_back({what, fmt::format("{} rows for {} sequences: give one row a sequence", table.dim(0), batch)});
  }
  if (table.stride(1) != 1 || table.stride(0) < table.dim(1)) {
    faults.push_back(
        {what, fmt::format("strides are [{}, {}], not [{} or more, 1]: a kernel reads several columns at once",
                           table.stride(0), table.stride(1), table.dim(1))});
  }
}

// A row in 32 bits, wrapping as a kernel's does.
std::uint32_t wrapped_row(std::int64_t block, std::int64_t stride, std::int64_t slot) {
  return static_cast<std::uint32_t>(block) * static_cast<std::uint32_t>(stride) + static_cast<std::uint32_t>(slot);
}

[[noreturn]] void throw_token(TokIdx tok, std::int64_t page, std::int64_t columns) {
  throw_index_error("PagedKVCache: token", tok.value, page * columns,
                    fmt::format("the lookup table has {} columns of {} tokens", columns, page));
}

}  // namespace

void check_params(std::string_view object, const PagedCacheParams& params) {
  for (const DType dtype : {params.dtype, params.scale_dtype.value_or(params.dtype)}) {
    if (dtype == DType::e2m1) {
      throw UnsupportedError(fmt::format("{}: e2m1 elements have no address: use a type of 8 bits or more", object));
    }
  }
  std::vector<Fault> faults;
  const auto positive = [&faults](const char* where, std::int64_t value) {
    if (value < 1) faults.push_back({where, fmt::format("{} is not positive: give 1 or more", value)});
  };
  positive("num_heads", params.kv_params.num_heads);
  positive("head_size", params.kv_params.head_size);
  positive("page_size", params.page_size);
  positive("quantization_granularity", params.quantization_granularity);
  if (params.scale_dtype && is_integer(*params.scale_dtype)) {
    faults.push_back(
        {"scale_dtype", fmt::format("{} is an integer: scales multiply, use a float", name(*params.scale_dtype))});
  }
  if (!faults.empty()) throw GeometryError(object, std::move(faults));
}

PagedKVCache::PagedKVCache(const PagedCacheParams& params, const PagedLayerTensors& tensors)
    : params_(params), tensors_(tensors) {
  check_params("PagedKVCache", params);
  if (!tensors_.scales_lookup_table) tensors_.scales_lookup_table = tensors_.lookup_table;

  const std::int64_t H = params.kv_params.num_heads;
  const std::int64_t D = params.kv_params.head_size;
  std::vector<Fault> faults;
  require_view(faults, "blocks", tensors.blocks, params.dtype, {0, params.page_size, H, D});
  require_table(faults, "lookup_table", tensors.lookup_table, tensors.cache_lengths.dim(0));
  if (tensors.scales) {
    if (params.scale_dtype) {
      require_view(faults, "scales", *tensors.scales, *params.scale_dtype,
                   {0, params.page_size, H, params.head_dim_granularity()});
    } else {
      faults.push_back({"scales", "given to a cache without a scale dtype: say which, or leave the scales out"});
    }
    require_table(faults, "scales_lookup_table", *tensors_.scales_lookup_table, tensors.cache_lengths.dim(0));
  }
  if (!faults.empty()) throw GeometryError("PagedKVCache", std::move(faults));
  rows_per_block_ = tensors.blocks.stride(0) / (H * D);
}

Shape<4> PagedKVCache::blocks_shape() const {
  return {kUnknownValue, page_size(), kv_params().num_heads, kv_params().head_size};
}

Shape<4> PagedKVCache::blocks_strides() const {
  return {kUnknownValue, kv_params().num_heads * kv_params().head_size, kv_params().head_size, 1};
}

// --- lengths ---------------------------------------------------------------------------------------------------------

std::int64_t PagedKVCache::cache_length(SeqIdx seq) const {
  check_index("PagedKVCache: sequence", seq.value, cache_lengths().dim(0), "the batch has that many rows");
  return cache_lengths().unchecked(seq.value);
}

// --- rows ------------------------------------------------------------------------------------------------------------

std::int64_t PagedKVCache::num_kv_rows() const {
  return checked_add(checked_mul(blocks().dim(0) - 1, rows_per_block_, "rows"), page_size(), "rows");
}

PagedKVCache::Place PagedKVCache::locate(const LookupTable& table, SeqIdx seq, TokIdx tok) const {
  check_index("PagedKVCache: sequence", seq.value, table.dim(0), "the batch has that many rows");
  const std::int64_t column = tok.value / page_size();
  if (tok.value < 0 || column >= table.dim(1)) [[unlikely]]
    throw_token(tok, page_size(), table.dim(1));
  return {table.unchecked(seq.value, column), tok.value - column * page_size()};
}

RowIdx PagedKVCache::row_idx(SeqIdx seq, TokIdx tok) const {
  const Place place = locate(lookup_table(), seq, tok);
  return RowIdx{wrapped_row(place.block, rows_per_block_, place.slot)};
}

std::int32_t PagedKVCache::get_tma_row(std::int32_t encoded) const {
  return static_cast<std::int32_t>(floor_div(encoded, page_size()) * rows_per_block_ + floor_mod(encoded, page_size()));
}

PageCoords PagedKVCache::kv_tma_coords(SeqIdx seq, TokIdx tok) const {
  const Place place = locate(lookup_table(), seq, tok);
  return {static_cast<std::int32_t>(place.slot), static_cast<std::int32_t>(place.block)};
}

namespace {

// The faults of one populate call as text; called only when there is one.
std::vector<Fault> populate_faults(const PopulatePlan& plan, const PopulateTile& tile, std::int64_t page,
                                   std::int64_t base, std::int64_t table_stride) {
  std::vector<Fault> faults;
  const std::int64_t alignment = plan.base_alignment;
  const std::int64_t first = base / page;
  if (base % alignment != 0) {
    faults.push_back({"base", fmt::format("token {} is not a multiple of {}, the alignment guarantee: use {}", base,
                                          alignment, base / alignment * alignment)});
  }
  if (plan.num_pages == 1) {
    if (!plan.whole_pages && base % page + tile.BN > page) {
      faults.push_back(
          {"base", fmt::format("token {} is row {} of its page of {}, and {} rows from there cross its end", base,
                               base % page, page, tile.BN)});
    }
    return faults;
  }
  if (plan.chunk == 0) {
    faults.push_back(
        {"base_alignment",
         fmt::format(
             "{} is less than a page of {}: a tile over several pages begins on a page, guarantee {} or a multiple",
             alignment, page, page)});
  }
  if (base % page != 0) {
    faults.push_back({"base", fmt::format("token {} is not on a page of {}: use {}", base, page, first * page)});
  }
  if (plan.chunk > 0 && table_stride % plan.chunk != 0) {
    faults.push_back(
        {"lookup_table", fmt::format("its row stride {} is not whole reads of {} entries: pad the rows to {}",
                                     table_stride, plan.chunk, round_up(table_stride, plan.chunk))});
  }
  if (plan.chunk > 0 && first % plan.chunk != 0) {
    faults.push_back({"base", fmt::format("page {} is not on a read of {} entries: begin at page {}", first, plan.chunk,
                                          first / plan.chunk * plan.chunk)});
  }
  if (first + plan.num_pages > table_stride) {
    faults.push_back({"lookup_table", fmt::format("pages {} to {} end past its row stride {}: pad the rows", first,
                                                  first + plan.num_pages, table_stride)});
  }
  return faults;
}

}  // namespace

PagedRowIndices PagedKVCache::populate(const PopulateTile& tile, SeqIdx seq, TokIdx base) const {
  const std::int64_t page = page_size();
  const PopulatePlan plan = populate_plan(tile.BN, page, tile.base_alignment);
  const LookupTable& table = lookup_table();
  check_index("PagedKVCache: sequence", seq.value, table.dim(0), "the batch has that many rows");
  if (base.value < 0) [[unlikely]]
    throw_token(base, page, table.dim(1));
  const std::int64_t first = base.value / page;
  const std::int64_t in_page = base.value - first * page;
  const bool promise_kept = base.value % plan.base_alignment == 0;

  PagedRowIndices result(tile, page, plan);
  const std::uint32_t* entries = table.data + seq.value * table.stride(0) + first;
  const auto stride = static_cast<std::uint32_t>(rows_per_block_);
  if (plan.num_pages == 1) {
    if (first >= table.dim(1)) throw_token(base, page, table.dim(1));
    if (!promise_kept || (!plan.whole_pages && in_page + tile.BN > page)) [[unlikely]] {
      throw GeometryError("PagedKVCache.populate", populate_faults(plan, tile, page, base.value, table.stride(0)));
    }
    result.rows()[0] = *entries * stride + static_cast<std::uint32_t>(in_page);
    return result;
  }
  const bool reads_whole = plan.chunk > 0 && ((table.stride(0) | first) & (plan.chunk - 1)) == 0;
  if (!promise_kept || in_page != 0 || !reads_whole || first + plan.num_pages > table.stride(0)) [[unlikely]] {
    throw GeometryError("PagedKVCache.populate", populate_faults(plan, tile, page, base.value, table.stride(0)));
  }
  // The reads are contiguous, so they are one loop here, which the compiler vectorizes.
  std::uint32_t* rows = result.rows().data();
  for (std::int64_t i = 0; i < plan.num_pages; ++i) rows[i] = entries[i] * stride;
  return result;
}

// --- elements --------------------------------------------------------------------------------------------------------

void PagedKVCache::check_element(HeadIdx head, DimIdx dim, std::int64_t width) const {
  check_index("PagedKVCache: head", head.value, kv_params().num_heads, "num_heads of the cache");
  check_index("PagedKVCache: dim", dim.value, kv_params().head_size, "head_size of the cache");
  if (width < 0) throw GeometryError(fmt::format("PagedKVCache: {} elements: give 0 or more", width));
  if (width > kv_params().head_size - dim.value) [[unlikely]] {
    throw IndexError(fmt::format("PagedKVCache: {} elements from dim {} end at {}, past the {} of a head: read fewer",
                                 width, dim.value, dim.value + width, kv_params().head_size));
  }
}

void PagedKVCache::check_granules(DimIdx dim, std::int64_t width) const {
  const std::int64_t first = dim.value / quantization_granularity();
  if (width < 0) throw GeometryError(fmt::format("PagedKVCache: {} scales: give 0 or more", width));
  if (width > head_dim_granularity() - first) [[unlikely]] {
    throw IndexError(fmt::format("PagedKVCache: {} scales from scale {} end at {}, past the {} of a head: read fewer",
                                 width, first, first + width, head_dim_granularity()));
  }
}

std::byte* PagedKVCache::element(Place place, HeadIdx head, DimIdx dim) const {
  const AnyView<4>& view = tensors_.blocks;
  return view.data +
         (place.block * view.stride(0) + place.slot * view.stride(1) + head.value * view.stride(2) + dim.value) *
             size_of(view.dtype);
}

std::byte* PagedKVCache::scale_element(Place place, HeadIdx head, DimIdx dim) const {
  const AnyView<4>& view = *tensors_.scales;
  return view.data + (place.block * view.stride(0) + place.slot * view.stride(1) + head.value * view.stride(2) +
                      dim.value / quantization_granularity()) *
                         size_of(view.dtype);
}

namespace {

[[noreturn]] void throw_unassigned(const char* pool, const char* table, std::int64_t block, std::int64_t blocks,
                                   SeqIdx seq, TokIdx tok, std::int64_t page, const char* next_step) {
  throw IndexError(
      fmt::format("PagedKVCache: {}[{}][{}] is {}, outside the {} pool's [0, {}), so token {} of sequence {} "
                  "has no page: {}",
                  table, seq.value, tok.value / page, block, pool, blocks, tok.value, seq.value, next_step));
}

}  // namespace

std::byte* PagedKVCache::assigned_element(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width) const {
  check_element(head, dim, width);
  const Place place = locate(lookup_table(), seq, tok);
  if (place.block >= blocks().dim(0)) [[unlikely]] {
    throw_unassigned("block", "lookup_table", place.block, blocks().dim(0), seq, tok, page_size(), "allocate one");
  }
  return element(place, head, dim);
}

std::byte* PagedKVCache::assigned_scale(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width) const {
  check_element(head, dim, 1);
  check_granules(dim, width);
  const Place place = locate(scales_lookup_table(), seq, tok);
  if (place.block >= scales()->dim(0)) [[unlikely]] {
    throw_unassigned("scales", "scales_lookup_table", place.block, scales()->dim(0), seq, tok, page_size(),
                     "allocate one");
  }
  return scale_element(place, head, dim);
}

const AnyView<4>& PagedKVCache::scales_or_throw(std::string_view method) const {
  if (!quantization_enabled()) {
    throw UnsupportedError(fmt::format("PagedKVCache.{}: the cache is not quantized: give it a scale dtype", method));
  }
  if (!scales()) {
    throw GeometryError(
        fmt::format("PagedKVCache.{}: the cache is quantized but has no scales: hand them to the "
                    "collection",
                    method));
  }
  return *scales();
}

void PagedKVCache::drop(const char* pool, const char* table, Place place, std::int64_t blocks, SeqIdx seq,
                        TokIdx tok) const {
  if (tensors_.drops == nullptr) return;
  ++tensors_.drops->count;
  if (tensors_.drops->raise) {
    throw_unassigned(pool, table, place.block, blocks, seq, tok, page_size(),
                     "the write was dropped; allocate one before writing");
  }
}

void PagedKVCache::load_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType out_dtype,
                             std::byte* out) const {
  const std::byte* from = assigned_element(seq, head, tok, dim, width);
  if (!quantization_enabled()) return cast_elements(dtype(), from, out_dtype, out, width);

  if (out_dtype == dtype()) {
    throw GeometryError(
        fmt::format("PagedKVCache.load: {} of a quantized cache of {} would lose the scale: load another "
                    "type, or use load_quantized",
                    name(out_dtype), name(dtype())));
  }
  scales_or_throw("load");
  const std::int64_t granule = quantization_granularity();
  if (width > 0 && dim.value / granule != (dim.value + width - 1) / granule) {
    throw GeometryError(
        fmt::format("PagedKVCache.load: elements {} to {} belong to scales {} to {}, and one load applies "
                    "one scale: stay inside {} elements",
                    dim.value, dim.value + width, dim.value / granule, (dim.value + width - 1) / granule, granule));
  }
  const std::byte* scale = assigned_scale(seq, head, tok, dim, 1);
  dequantize_elements(dtype(), from, *scale_dtype(), scale, out_dtype, out, width);
}

void PagedKVCache::load_quantized_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width,
                                       DType out_dtype, std::byte* out) const {
  if (!quantization_enabled()) {
    throw UnsupportedError("PagedKVCache.load_quantized: the cache is not quantized: use load");
  }
  cast_elements(dtype(), assigned_element(seq, head, tok, dim, width), out_dtype, out, width);
}

void PagedKVCache::load_scale_into(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width,
                                   DType out_dtype, std::byte* out) const {
  scales_or_throw("load_scale");
  cast_elements(*scale_dtype(), assigned_scale(seq, head, tok, dim, width), out_dtype, out, width);
}

void PagedKVCache::store_from(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width, DType in_dtype,
                              const std::byte* in) const {
  check_element(head, dim, width);
  const Place place = locate(lookup_table(), seq, tok);
  if (place.block >= blocks().dim(0)) return drop("block", "lookup_table", place, blocks().dim(0), seq, tok);
  cast_elements(in_dtype, in, dtype(), element(place, head, dim), width);
}

void PagedKVCache::store_scale_from(SeqIdx seq, HeadIdx head, TokIdx tok, DimIdx dim, std::int64_t width,
                                    DType in_dtype, const std::byte* in) const {
  const AnyView<4>& view = scales_or_throw("store_scale");
  if (in_dtype != *scale_dtype()) {
    throw GeometryError(fmt::format("PagedKVCache.store_scale: {} given, and scales are {}: convert them first",
                                    name(in_dtype), name(*scale_dtype())));
  }
  check_element(head, dim, 1);
  check_granules(dim, width);
  const Place place = locate(scales_lookup_table(), seq, tok);
  if (place.block >= view.dim(0)) return drop("scales", "scales_lookup_table", place, view.dim(0), seq, tok);
  cast_elements(in_dtype, in, in_dtype, scale_element(place, head, dim), width);
}

// --- pointers --------------------------------------------------------------------------------------------------------

std::byte* PagedKVCache::block_paged_ptr(std::int64_t tile, SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
  if (tile < 1 || page_size() % tile != 0) {
    throw GeometryError(
        fmt::format("PagedKVCache.block_paged_ptr: a tile of {} tokens does not divide a page of {}: use a "
                    "divisor of {}",
                    tile, page_size(), page_size()));
  }
  if (const std::int64_t page_row = floor_mod(tok.value, page_size()); page_row > page_size() - tile) {
    throw GeometryError(
        fmt::format("PagedKVCache.block_paged_ptr: a tile of {} tokens from token {}, row {} of its page, leaves the "
                    "page of {}: begin at token {} at the latest",
                    tile, tok.value, page_row, page_size(), tok.value - page_row + page_size() - tile));
  }
  return assigned_element(seq, head, tok, dim, 1);
}

std::byte* PagedKVCache::scales_block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
  scales_or_throw("scales_block_paged_ptr");
  return assigned_scale(seq, head, tok, dim, 1);
}

std::byte* PagedKVCache::scales_raw_ptr() const {
  return quantization_enabled() && scales() ? scales()->data : nullptr;
}

// --- rows of the scales ----------------------------------------------------------------------------------------------

std::int64_t PagedKVCache::scale_stride() const {
  const AnyView<4>& view = scales_or_throw("scale_stride");
  return view.stride(0) / (kv_params().num_heads * head_dim_granularity());
}

RowIdx PagedKVCache::scale_row_idx(SeqIdx seq, TokIdx tok) const {
  scales_or_throw("scale_row_idx");
  const Place place = locate(scales_lookup_table(), seq, tok);
  return RowIdx{wrapped_row(place.block, scale_stride(), place.slot)};
}

PageCoords PagedKVCache::scale_tma_coords(SeqIdx seq, TokIdx tok) const {
  scales_or_throw("scale_tma_coords");
  const Place place = locate(scales_lookup_table(), seq, tok);
  const std::int64_t chunk = index_scale_align(*scale_dtype());
  return {static_cast<std::int32_t>(place.slot / chunk * chunk), static_cast<std::int32_t>(place.block)};
}

std::int64_t PagedKVCache::num_scale_rows() const {
  const AnyView<4>& view = scales_or_throw("num_scale_rows");
  return checked_add(checked_mul(view.dim(0) - 1, scale_stride(), "scale rows"), page_size(), "scale rows");
}

// --- tensor maps -----------------------------------------------------------------------------------------------------

TmaRows PagedKVCache::tma_rows(std::string_view object) const {
  return {object, blocks().data, dtype(), num_kv_rows(), kv_params().num_heads, kv_params().head_size};
}

TmaTile PagedKVCache::create_tma_tile(const TileOptions& options) const {
  return make_tma_tile(tma_rows("PagedKVCache.create_tma_tile"), options);
}

TmaTile PagedKVCache::create_paged_tma_tile(const TileOptions& options) const {
  return make_paged_tma_tile("PagedKVCache.create_paged_tma_tile", blocks(), options);
}

TmaTile PagedKVCache::create_ragged_tma_tile(const TileOptions& options) const {
  return make_ragged_tma_tile(tma_rows("PagedKVCache.create_ragged_tma_tile"), options);
}

TmaTile PagedKVCache::create_gather4_tma_tile(const Gather4Options& options) const {
  return make_gather4_tma_tile(tma_rows("PagedKVCache.create_gather4_tma_tile"), options);
}

TmaTile PagedKVCache::create_rope_tma_tile(const RopeOptions& options) const {
  return make_rope_tma_tile(tma_rows("PagedKVCache.create_rope_tma_tile"), options);
}

TmaTile PagedKVCache::create_rope_gather4_tma_tile(const RopeGather4Options& options) const {
  return make_rope_gather4_tma_tile(tma_rows("PagedKVCache.create_rope_gather4_tma_tile"), options);
}

TmaTile PagedKVCache::create_index_scale_tma_tile(std::int64_t tile) const {
  return make_paged_index_scale_tma_tile("PagedKVCache.create_index_scale_tma_tile",
                                         scales_or_throw("create_index_scale_tma_tile"), tile);
}

}  // namespace kvscope
