#include "core/attention/detail/row_reader.h"

#include <algorithm>
#include <array>

#include "core/base/convert.h"

namespace kvscope::attention {
namespace {

template <class T>
using Table = std::array<T, 256>;

template <class T>
Table<T> decode_all(DType dtype) {
  Table<T> table{};
  for (std::size_t i = 0; i < table.size(); ++i) {
    const auto byte = static_cast<std::byte>(i);
    table[i] = static_cast<T>(load_as_double(dtype, &byte));
  }
  return table;
}

template <class T>
void look_up(const Table<T>& table, const std::byte* source, std::int64_t count, T* target) {
  for (std::int64_t i = 0; i < count; ++i) target[i] = table[static_cast<std::size_t>(source[i])];
}

const RowKernels<double>& kernels_for(const ReferenceKernels& kernels, const double*) {
  return kernels.exact;
}
const RowKernels<float>& kernels_for(const ReferenceKernels& kernels, const float*) {
  return kernels.fast;
}

}  // namespace

RowReader::RowReader(const PagedRows& rows, const ReferenceKernels& kernels)
    : rows_(rows), kernels_(kernels), element_bytes_(size_of(rows.dtype)), scale_bytes_(size_of(rows.scale_dtype)) {}

template <class T>
void RowReader::widen(const ReferenceKernels& all, DType dtype, const std::byte* source, std::int64_t count,
                      T* target) {
  static const Table<T> kE4m3 = decode_all<T>(DType::e4m3);
  static const Table<T> kE5m2 = decode_all<T>(DType::e5m2);
  const RowKernels<T>& kernels = kernels_for(all, target);
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
      for (std::int64_t i = 0; i < count; ++i) {
        target[i] = static_cast<T>(load_as_double(dtype, source + i * size_of(dtype)));
      }
  }
}

template void RowReader::widen(const ReferenceKernels&, DType, const std::byte*, std::int64_t, double*);
template void RowReader::widen(const ReferenceKernels&, DType, const std::byte*, std::int64_t, float*);

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

template <class T>
void RowReader::decode(const RowRun& run, T* target, std::int64_t stride) const {
  for (std::size_t i = 0; i < run.elements.size(); ++i, target += stride) {
    widen(kernels_, rows_.dtype, run.elements[i], rows_.head_size, target);
    if (!run.scales.empty()) apply_scales(run.scales[i], target);
  }
}

template void RowReader::decode(const RowRun&, double*, std::int64_t) const;
template void RowReader::decode(const RowRun&, float*, std::int64_t) const;

template <class T>
void RowReader::apply_scales(const std::byte* scales, T* target) const {
  for (std::int64_t dim = 0; dim < rows_.head_size; dim += rows_.granularity, scales += scale_bytes_) {
    const double scale = load_as_double(rows_.scale_dtype, scales);
    const std::int64_t end = std::min(rows_.head_size, dim + rows_.granularity);
    for (std::int64_t d = dim; d < end; ++d) target[d] = static_cast<T>(static_cast<double>(target[d]) * scale);
  }
}

}  // namespace kvscope::attention
