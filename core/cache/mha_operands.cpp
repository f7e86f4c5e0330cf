#include "core/cache/mha_operands.h"

#include <fmt/format.h>

#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/cache/element_access.h"

namespace kvscope {

void throw_operand_unsupported(std::string_view operand, std::string_view method, std::string_view why) {
  throw UnsupportedError(fmt::format("{}.{} does not exist: {}", operand, method, why));
}

void require_operand_depth(std::string_view object, std::int64_t depth, std::int64_t head_size) {
  if (depth != head_size) {
    throw GeometryError(fmt::format("{}: depth {} is not the {} elements of a head: a ragged map spans whole heads",
                                    object, depth, head_size));
  }
}

namespace {

constexpr std::string_view kNoRopeRows = "there are no rope-aware rows outside a paged cache";

// Extents of a buffer that maps and pointers rely on.
template <int Rank>
void require_extents(std::vector<Fault>& faults, const char* what, const AnyView<Rank>& view) {
  for (std::size_t axis = 0; axis < view.extents.size(); ++axis) {
    if (view.extents[axis] < 1) {
      faults.push_back({what, fmt::format("extent {} is {}: give 1 or more", axis, view.extents[axis])});
    }
  }
}

void require_addressable(std::string_view object, DType dtype) {
  if (dtype == DType::e2m1) {
    throw UnsupportedError(fmt::format("{}: e2m1 elements have no address: use a type of 8 bits or more", object));
  }
}

template <int Rank>
void require_packed(std::string_view object, const AnyView<Rank>& view, int from_axis) {
  const Shape<Rank> packed = row_major<Rank>(view.extents);
  for (int axis = from_axis; axis < Rank; ++axis) {
    if (view.stride(axis) != packed[static_cast<std::size_t>(axis)]) {
      throw GeometryError(
          fmt::format("{}: stride of axis {} is {}, not the packed {}: copy the tensor into row-major order", object,
                      axis, view.stride(axis), packed[static_cast<std::size_t>(axis)]));
    }
  }
}

}  // namespace

// --- a plain tensor --------------------------------------------------------------------------------------------------

LayoutTensorMHAOperand::LayoutTensorMHAOperand(const AnyView<4>& buffer, const std::optional<AnyView<4>>& scales)
    : buffer_(buffer), scales_(scales) {
  require_addressable("LayoutTensorMHAOperand", buffer.dtype);
  std::vector<Fault> faults;
  require_extents(faults, "buffer", buffer);
  if (scales) {
    require_addressable("LayoutTensorMHAOperand scales", scales->dtype);
    require_extents(faults, "scales", *scales);
    for (int axis = 0; axis < 3; ++axis) {
      if (scales->dim(axis) != buffer.dim(axis)) {
        faults.push_back(
            {"scales", fmt::format("extent {} is {}, and the buffer's is {}: both cover the same tokens and heads",
                                   axis, scales->dim(axis), buffer.dim(axis))});
      }
    }
  }
  if (!faults.empty()) throw GeometryError("LayoutTensorMHAOperand", std::move(faults));
}

std::int64_t LayoutTensorMHAOperand::quantization_granularity() const {
  return ceil_div(buffer_.dim(3), scales_ ? scales_->dim(3) : 1);
}

void LayoutTensorMHAOperand::check_place(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
  check_index("LayoutTensorMHAOperand: sequence", seq.value, buffer_.dim(0), "first extent of the buffer");
  check_index("LayoutTensorMHAOperand: token", tok.value, buffer_.dim(1), "second extent of the buffer");
  check_index("LayoutTensorMHAOperand: head", head.value, buffer_.dim(2), "third extent of the buffer");
  check_index("LayoutTensorMHAOperand: dim", dim.value, buffer_.dim(3), "last extent of the buffer");
}

std::byte* LayoutTensorMHAOperand::block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
  check_place(seq, tok, head, dim);
  return buffer_.at(seq.value, tok.value, head.value, dim.value);
}

std::byte* LayoutTensorMHAOperand::scales_block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
  check_place(seq, tok, head, dim);
  return scales_ ? scales_->at(seq.value, tok.value, head.value, dim.value / quantization_granularity()) : nullptr;
}

void LayoutTensorMHAOperand::load_scale_into(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim, std::int64_t width,
                                             DType out_dtype, std::byte* out) const {
  if (!scales_) throw_operand_unsupported(get_type_name(), "load_scale", "the operand was made without scales");
  check_place(seq, tok, head, dim);
  const std::int64_t first = dim.value / quantization_granularity();
  for (std::int64_t i = 0; i < width; ++i) {
    check_index("LayoutTensorMHAOperand: scale", first + i, scales_->dim(3), "last extent of the scales");
    cast_elements(scales_->dtype, scales_->at(seq.value, tok.value, head.value, first + i), out_dtype,
                  out + i * size_of(out_dtype), 1);
  }
}

std::int64_t LayoutTensorMHAOperand::cache_length(SeqIdx seq) const {
  check_index("LayoutTensorMHAOperand: sequence", seq.value, buffer_.dim(0), "first extent of the buffer");
  return buffer_.dim(1);
}

RowIdx LayoutTensorMHAOperand::row_idx(SeqIdx seq, TokIdx tok) const {
  check_place(seq, tok, HeadIdx{0}, DimIdx{0});
  return RowIdx{static_cast<std::uint32_t>(seq.value * buffer_.dim(1) + tok.value)};
}

std::int64_t LayoutTensorMHAOperand::col_idx(HeadIdx head) const {
  check_index("LayoutTensorMHAOperand: head", head.value, buffer_.dim(2), "third extent of the buffer");
  return head.value * buffer_.dim(3);
}

TmaTile LayoutTensorMHAOperand::create_tma_tile(std::int64_t depth, const TileOptions& options) const {
  return make_tma_tile(
      {"LayoutTensorMHAOperand.create_tma_tile", buffer_.data, dtype(), num_kv_rows(), buffer_.dim(2), depth}, options);
}

TmaTile LayoutTensorMHAOperand::create_ragged_tma_tile(std::int64_t depth, const TileOptions& options) const {
  require_operand_depth("LayoutTensorMHAOperand.create_ragged_tma_tile", depth, buffer_.dim(3));
  return make_ragged_tma_tile(
      {"LayoutTensorMHAOperand.create_ragged_tma_tile", buffer_.data, dtype(), num_kv_rows(), buffer_.dim(2), depth},
      options);
}

TmaTile LayoutTensorMHAOperand::create_gather4_tma_tile(const Gather4Options& options) const {
  return make_gather4_tma_tile({"LayoutTensorMHAOperand.create_gather4_tma_tile", buffer_.data, dtype(), num_kv_rows(),
                                buffer_.dim(2), buffer_.dim(3)},
                               options);
}

TmaTile LayoutTensorMHAOperand::create_scale_tma_tile(std::int64_t BMN) const {
  if (!scales_)
    throw_operand_unsupported(get_type_name(), "create_scale_tma_tile", "the operand was made without scales");
  require_packed("LayoutTensorMHAOperand.create_scale_tma_tile", *scales_, 0);
  return make_scale_tma_tile("LayoutTensorMHAOperand.create_scale_tma_tile", scales_->data, scales_->dtype,
                             count_of(scales_->extents), BMN);
}

TmaTile LayoutTensorMHAOperand::create_rope_tma_tile(const RopeOptions&) const {
  throw_operand_unsupported(get_type_name(), "create_rope_tma_tile", kNoRopeRows);
}
TmaTile LayoutTensorMHAOperand::create_rope_gather4_tma_tile(const RopeGather4Options&) const {
  throw_operand_unsupported(get_type_name(), "create_rope_gather4_tma_tile", kNoRopeRows);
}
TmaTile LayoutTensorMHAOperand::create_index_scale_tma_tile(std::int64_t) const {
  throw_operand_unsupported(get_type_name(), "create_index_scale_tma_tile", "use create_scale_tma_tile");
}

// --- ragged rows -----------------------------------------------------------------------------------------------------

RaggedMHAOperand::RaggedMHAOperand(const AnyView<3>& buffer,
                                   const StridedView<const std::uint32_t, 1>& cache_row_offsets)
    : buffer_(buffer), offsets_(cache_row_offsets) {
  check_buffer();
}

RaggedMHAOperand::RaggedMHAOperand(const AnyView<3>& buffer, const RankedTensor& scales,
                                   const StridedView<const std::uint32_t, 1>& cache_row_offsets)
    : buffer_(buffer),
      offsets_(cache_row_offsets),
      has_scales_(true),
      scales_(scales.data),
      scales_dtype_(scales.dtype),
      scales_rank_(static_cast<int>(scales.extents.size())) {
  check_buffer();
  require_addressable("RaggedMHAOperand scales", scales.dtype);
  if (scales_rank_ <= 3) {
    for (std::size_t axis = 0; axis < scales.extents.size(); ++axis) scales_extents_[axis] = scales.extents[axis];
  }
}

void RaggedMHAOperand::check_buffer() const {
  require_addressable("RaggedMHAOperand", buffer_.dtype);
  std::vector<Fault> faults;
  require_extents(faults, "buffer", buffer_);
  if (offsets_.dim(0) < 1)
    faults.push_back({"cache_row_offsets", "there is none: give one for each sequence and the end"});
  for (std::int64_t b = 0; b + 1 < offsets_.dim(0); ++b) {
    if (offsets_(b + 1) < offsets_(b)) {
      faults.push_back(
          {"cache_row_offsets", fmt::format("entry {} is {}, less than the {} before it: offsets never fall", b + 1,
                                            offsets_(b + 1), offsets_(b))});
    }
  }
  if (offsets_.dim(0) > 0 && offsets_(offsets_.dim(0) - 1) > buffer_.dim(0)) {
    faults.push_back({"cache_row_offsets", fmt::format("the last is {}, past the buffer's {} rows",
                                                       offsets_(offsets_.dim(0) - 1), buffer_.dim(0))});
  }
  if (!faults.empty()) throw GeometryError("RaggedMHAOperand", std::move(faults));
}

std::int64_t RaggedMHAOperand::cache_length(SeqIdx seq) const {
  check_index("RaggedMHAOperand: sequence", seq.value, offsets_.dim(0) - 1, "one less than the offsets");
  return std::int64_t{offsets_(seq.value + 1)} - offsets_(seq.value);
}

std::int64_t RaggedMHAOperand::max_context_length() const {
  throw_operand_unsupported(get_type_name(), "max_context_length", "take the largest cache_length");
}

std::int64_t RaggedMHAOperand::token_row(SeqIdx seq, TokIdx tok) const {
  check_index("RaggedMHAOperand: token", tok.value, cache_length(seq), "rows of the sequence");
  return offsets_(seq.value) + tok.value;
}

RowIdx RaggedMHAOperand::row_idx(SeqIdx seq, TokIdx tok) const {
  return RowIdx{static_cast<std::uint32_t>(token_row(seq, tok))};
}

std::byte* RaggedMHAOperand::block_paged_ptr(SeqIdx seq, TokIdx tok, HeadIdx head, DimIdx dim) const {
  check_index("RaggedMHAOperand: head", head.value, buffer_.dim(1), "second extent of the buffer");
  check_index("RaggedMHAOperand: dim", dim.value, buffer_.dim(2), "last extent of the buffer");
  return buffer_.at(token_row(seq, tok), head.value, dim.value);
}

TmaTile RaggedMHAOperand::create_tma_tile(std::int64_t depth, const TileOptions& options) const {
  return make_tma_tile(
      {"RaggedMHAOperand.create_tma_tile", buffer_.data, dtype(), num_kv_rows(), buffer_.dim(1), depth}, options);
}

TmaTile RaggedMHAOperand::create_ragged_tma_tile(std::int64_t depth, const TileOptions& options) const {
  require_operand_depth("RaggedMHAOperand.create_ragged_tma_tile", depth, buffer_.dim(2));
  return make_ragged_tma_tile(
      {"RaggedMHAOperand.create_ragged_tma_tile", buffer_.data, dtype(), num_kv_rows(), buffer_.dim(1), depth},
      options);
}

TmaTile RaggedMHAOperand::create_gather4_tma_tile(const Gather4Options& options) const {
  return make_gather4_tma_tile({"RaggedMHAOperand.create_gather4_tma_tile", buffer_.data, dtype(), num_kv_rows(),
                                buffer_.dim(1), buffer_.dim(2)},
                               options);
}

TmaTile RaggedMHAOperand::create_scale_tma_tile(std::int64_t BMN) const {
  constexpr std::string_view kObject = "RaggedMHAOperand.create_scale_tma_tile";
  if (!has_scales_)
    throw_operand_unsupported(get_type_name(), "create_scale_tma_tile", "the operand was made without scales");
  if (scales_rank_ == 2) {
    return make_scale_tma_tile(kObject, scales_, scales_dtype_,
                               checked_mul(scales_extents_[0], scales_extents_[1], "scales"), BMN);
  }
  if (scales_rank_ == 3) {
    if (scales_extents_[2] != 1) {
      throw GeometryError(
          fmt::format("{}: the third extent of the scales is {}, and a row must be contiguous: make it 1", kObject,
                      scales_extents_[2]));
    }
    return make_scale_lines_tma_tile(kObject, scales_, scales_dtype_, scales_extents_[0], scales_extents_[1],
                                     scales_extents_[1], BMN);
  }
  throw_operand_unsupported(get_type_name(), "create_scale_tma_tile",
                            fmt::format("scales of rank {} have no map: use rank 2 or 3", scales_rank_));
}

TmaTile RaggedMHAOperand::create_index_scale_tma_tile(std::int64_t tile) const {
  constexpr std::string_view kObject = "RaggedMHAOperand.create_index_scale_tma_tile";
  if (buffer_.dim(1) * buffer_.dim(2) != 1) {
    throw GeometryError(fmt::format("{}: {} x {} elements a token: the window is over one scale a token", kObject,
                                    buffer_.dim(1), buffer_.dim(2)));
  }
  return make_index_scale_tma_tile(kObject, buffer_.data, dtype(), num_kv_rows(), tile);
}

TmaTile RaggedMHAOperand::create_rope_tma_tile(const RopeOptions&) const {
  throw_operand_unsupported(get_type_name(), "create_rope_tma_tile", kNoRopeRows);
}
TmaTile RaggedMHAOperand::create_rope_gather4_tma_tile(const RopeGather4Options&) const {
  throw_operand_unsupported(get_type_name(), "create_rope_gather4_tma_tile", kNoRopeRows);
}

}  // namespace kvscope
