#include "core/attention/detail/row_reader.h"

#include <algorithm>
#include <array>

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

const ExactRowKernels* exact_row_kernels(const ReferenceKernels& kernels, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return &kernels.exact.f64;
    case DType::f32:
      return &kernels.exact.f32;
    case DType::bf16:
      return &kernels.exact.bf16;
    default:
      return nullptr;
  }
}

const FastRowKernels* fast_row_kernels(const ReferenceKernels& kernels, DType dtype) {
  switch (dtype) {
    case DType::f32:
      return &kernels.fast.f32;
    case DType::f16:
      return &kernels.fast.f16;
    case DType::bf16:
      return &kernels.fast.bf16;
    case DType::e4m3:
      return &kernels.fast.e4m3;
    case DType::e5m2:
      return &kernels.fast.e5m2;
    default:
      return nullptr;
  }
}

RowReader::RowReader(const PagedRows& rows, const ReferenceKernels& kernels)
    : rows_(rows), kernels_(kernels), element_bytes_(size_of(rows.dtype)), scale_bytes_(size_of(rows.scale_dtype)) {}

void RowReader::widen(const ReferenceKernels& all, DType dtype, const std::byte* source, std::int64_t count,
                      double* target) {
  static const Table kE4m3 = decode_all(DType::e4m3);
  static const Table kE5m2 = decode_all(DType::e5m2);
  switch (dtype) {
    case DType::f32:
      all.exact.widen_f32(source, count, target);
      break;
    case DType::f16:
      all.exact.widen_f16(source, count, target);
      break;
    case DType::bf16:
      all.exact.widen_bf16(source, count, target);
      break;
    case DType::e4m3:
      look_up(kE4m3, source, count, target);
      break;
    case DType::e5m2:
      look_up(kE5m2, source, count, target);
      break;
    default:
      for (std::int64_t i = 0; i < count; ++i) target[i] = load_as_double(dtype, source + i * size_of(dtype));
  }
}

void RowReader::widen(const ReferenceKernels& all, DType dtype, const std::byte* source, std::int64_t count,
                      float* target) {
  if (const FastRowKernels* kernels = fast_row_kernels(all, dtype)) {
    kernels->widen(source, count, target);
    return;
  }
  for (std::int64_t i = 0; i < count; ++i) {
    target[i] = static_cast<float>(load_as_double(dtype, source + i * size_of(dtype)));
  }
}

void RowReader::locate(std::int64_t sequence, std::int64_t first, std::int64_t last, std::int64_t head,
                       RowRun& run) const {
  run.elements.resize(static_cast<std::size_t>(last - first));
  run.scales.resize(rows_.scales == nullptr ? 0 : run.elements.size());
  const std::byte** element = run.elements.data();
  const std::byte** scale = run.scales.data();
  const std::uint32_t* table = rows_.table + sequence * rows_.table_stride;
  const std::int64_t scales_stride = rows_.scales_table_stride != 0 ? rows_.scales_table_stride : rows_.table_stride;
  const std::uint32_t* scales_table =
      rows_.scales_table != nullptr ? rows_.scales_table + sequence * scales_stride : table;
  std::int64_t slot = first % rows_.page_size;
  for (std::int64_t page = first / rows_.page_size, token = first; token < last; ++page, slot = 0) {
    const std::int64_t count = std::min(rows_.page_size - slot, last - token);
    const std::int64_t offset = table[page] * rows_.block_stride + slot * rows_.token_stride + head * rows_.head_stride;
    const std::byte* row = rows_.data + offset * element_bytes_;
    for (std::int64_t i = 0; i < count; ++i) *element++ = row + i * rows_.token_stride * element_bytes_;
    token += count;
    if (rows_.scales == nullptr) continue;
    const std::int64_t scale_offset = scales_table[page] * rows_.scale_block_stride + slot * rows_.scale_token_stride +
                                      head * rows_.scale_head_stride;
    row = rows_.scales + scale_offset * scale_bytes_;
    for (std::int64_t i = 0; i < count; ++i) *scale++ = row + i * rows_.scale_token_stride * scale_bytes_;
  }
}

void RowReader::move_to_next_head(RowRun& run) const {
  for (const std::byte*& element : run.elements) element += rows_.head_stride * element_bytes_;
  for (const std::byte*& scale : run.scales) scale += rows_.scale_head_stride * scale_bytes_;
}

template <class T>
void RowReader::decode(const RowRun& run, T* target, std::int64_t stride) const {
  for (std::size_t i = 0; i < run.elements.size(); ++i, target += stride) decode_row(run, i, target);
}

template void RowReader::decode(const RowRun&, double*, std::int64_t) const;
template void RowReader::decode(const RowRun&, float*, std::int64_t) const;

template <class T>
void RowReader::decode_row(const RowRun& run, std::size_t i, T* target) const {
  widen(kernels_, rows_.dtype, run.elements[i], rows_.head_size, target);
  if (!run.scales.empty()) apply_scales(run.scales[i], target);
}

template void RowReader::decode_row(const RowRun&, std::size_t, double*) const;
template void RowReader::decode_row(const RowRun&, std::size_t, float*) const;

template <class T>
void RowReader::apply_scales(const std::byte* scales, T* target) const {
  for (std::int64_t dim = 0; dim < rows_.head_size; dim += rows_.granularity, scales += scale_bytes_) {
    const double scale = load_as_double(rows_.scale_dtype, scales);
    const std::int64_t end = std::min(rows_.head_size, dim + rows_.granularity);
    for (std::int64_t d = dim; d < end; ++d) target[d] = static_cast<T>(static_cast<double>(target[d]) * scale);
  }
}

}  // namespace kvscope::attention
