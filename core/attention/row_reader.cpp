#include "core/attention/detail/row_reader.h"

#include <algorithm>
#include <array>
#include <span>

#include "core/base/convert.h"

namespace kvscope::attention {
namespace {

using Table = std::array<double, 256>;

Table decode_all(DType dtype) {
  Table table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto byte = static_cast<std::byte>(i);
    table[i] = load_as_double(dtype, &byte);
  }
  return table;
}

void look_up(const Table& table, const std::byte* source, std::int64_t count, double* target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = table[static_cast<std::size_t>(source[i])];
}

}  // namespace

RowReader::RowReader(const PagedRows& rows, const ReferenceKernels& kernels)
    : rows_(rows), kernels_(kernels), element_bytes_(size_of(rows.dtype)), scale_bytes_(size_of(rows.scale_dtype)) {}

void RowReader::widen(const ReferenceKernels& kernels, DType dtype, const std::byte* source, std::int64_t count,
                      double* target) {
  static const Table kE4m3 = decode_all(DType::e4m3);
  static const Table kE5m2 = decode_all(DType::e5m2);
  switch (dtype) {
    case DType::f32:
      kernels.widen_f32(source, count, target);
      break;
    case DType::f16:
      kernels.widen_f16(source, count, target);
      break;
    case DType::bf16:
      kernels.widen_bf16(source, count, target);
      break;
    case DType::e4m3:
      look_up(kE4m3, source, count, target);
      break;
    case DType::e5m2:
      look_up(kE5m2, source, count, target);
      break;
    default:
      to_doubles(dtype, source, std::span<double>(target, static_cast<std::size_t>(count)));
  }
}

void RowReader::locate(std::int64_t sequence, std::int64_t first, std::int64_t last, std::int64_t head,
                       RowRun& run) const {
  run.elements.clear();
  run.scales.clear();
  const std::uint32_t* table = rows_.table + sequence * rows_.table_stride;
  const std::int64_t scales_stride = rows_.scales_table_stride != 0 ? rows_.scales_table_stride : rows_.table_stride;
  const std::uint32_t* scales_table =
      rows_.scales_table != nullptr ? rows_.scales_table + sequence * scales_stride : table;
  std::int64_t page = first / rows_.page_size;
  std::int64_t slot = first % rows_.page_size;
  for (std::int64_t token = first; token < last; ++page, slot = 0) {
    for (; slot < rows_.page_size && token < last; ++slot, ++token) {
      const std::int64_t offset =
          table[page] * rows_.block_stride + slot * rows_.token_stride + head * rows_.head_stride;
      run.elements.push_back(rows_.data + offset * element_bytes_);
      if (rows_.scales == nullptr) continue;
      const std::int64_t scale = scales_table[page] * rows_.scale_block_stride + slot * rows_.scale_token_stride +
                                 head * rows_.scale_head_stride;
      run.scales.push_back(rows_.scales + scale * scale_bytes_);
    }
  }
}

void RowReader::decode(const RowRun& run, double* target, std::int64_t stride) const {
  for (std::size_t i = 0; i < run.elements.size(); ++i, target += stride) {
    widen(kernels_, rows_.dtype, run.elements[i], rows_.head_size, target);
    if (!run.scales.empty()) apply_scales(run.scales[i], target);
  }
}

void RowReader::apply_scales(const std::byte* scales, double* target) const {
  for (std::int64_t dim = 0; dim < rows_.head_size; dim += rows_.granularity, scales += scale_bytes_) {
    const double scale = load_as_double(rows_.scale_dtype, scales);
    const std::int64_t end = std::min(rows_.head_size, dim + rows_.granularity);
    for (std::int64_t d = dim; d < end; ++d) target[d] *= scale;
  }
}

}  // namespace kvscope::attention
