// Reads rows of paged K or V as doubles or floats: tokens and a KV head in, `head_size` stored values each out. Only
// the reference and its fast path use it; the tiled algorithm locates rows with its own code, so that an error in
// either shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attention/detail/reference_kernels.h"
#include "core/attention/problem.h"

namespace kvscope::attention {

// Consecutive tokens of one KV head: the addresses of their rows. Located once and decoded later, so that the cache
// lines of the next run can be prefetched during a computation.
struct RowRun {
  std::vector<const std::byte*> elements;  // [token]
  std::vector<const std::byte*> scales;    // [token]; empty when not quantized
};

// The loops that read rows of this type where they are; null for types that must be decoded first.
[[nodiscard]] const ExactRowKernels* exact_row_kernels(const ReferenceKernels& kernels, DType dtype);
[[nodiscard]] const FastRowKernels* fast_row_kernels(const ReferenceKernels& kernels, DType dtype);

class RowReader {
 public:
  RowReader(const PagedRows& rows, const ReferenceKernels& kernels);

  // Tokens [first, last) of sequence `sequence`, KV head `head`. Precondition: the problem has passed its checks;
  // nothing is checked again.
  void locate(std::int64_t sequence, std::int64_t first, std::int64_t last, std::int64_t head, RowRun& run) const;

  // From the rows of one KV head to those of the next one.
  void move_to_next_head(RowRun& run) const;

  // Row i of `run` to target + i * stride [elements], head_size values each: element * scale where quantized. T is
  // double or float; a float is rounded when its type or its scale does not fit it.
  template <class T>
  void decode(const RowRun& run, T* target, std::int64_t stride) const;

  // Row `i` of `run` alone.
  template <class T>
  void decode_row(const RowRun& run, std::size_t i, T* target) const;

  [[nodiscard]] std::int64_t row_bytes() const { return rows_.head_size * element_bytes_; }

  // Whether the heads of a token are closer together than its neighbors; then token_bytes() is from its first head to
  // the end of its last.
  [[nodiscard]] bool heads_are_neighbors() const { return rows_.head_stride <= rows_.token_stride; }
  [[nodiscard]] std::int64_t token_bytes() const {
    return ((rows_.heads - 1) * rows_.head_stride + rows_.head_size) * element_bytes_;
  }

  // `count` consecutive elements at `source`, used for queries, which are not in pages.
  static void widen(const ReferenceKernels& kernels, DType dtype, const std::byte* source, std::int64_t count,
                    double* target);
  static void widen(const ReferenceKernels& kernels, DType dtype, const std::byte* source, std::int64_t count,
                    float* target);

 private:
  template <class T>
  void apply_scales(const std::byte* scales, T* target) const;

  const PagedRows& rows_;
  const ReferenceKernels& kernels_;
  std::int64_t element_bytes_;
  std::int64_t scale_bytes_;
};

}  // namespace kvscope::attention
