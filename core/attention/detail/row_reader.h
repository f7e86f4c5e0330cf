// Reads rows of paged K or V as doubles: tokens and a KV head in, `head_size` stored values each out. The reference's
// way of finding a row; the tiled flow has its own, so that a wrong one shows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/attention/detail/reference_kernels.h"
#include "core/attention/problem.h"

namespace kvscope::attention {

// Consecutive tokens of one KV head: where their rows stand in memory. Located once, decoded later, so that the lines
// of the next run can be fetched while this one is computed on.
struct RowRun {
  std::vector<const std::byte*> elements;  // [token]
  std::vector<const std::byte*> scales;    // [token]; empty when not quantized
};

class RowReader {
 public:
  RowReader(const PagedRows& rows, const ReferenceKernels& kernels);

  // Tokens [first, last) of sequence `sequence`, KV head `head`. The problem's checks have
  // passed; nothing is checked again.
  void locate(std::int64_t sequence, std::int64_t first, std::int64_t last, std::int64_t head, RowRun& run) const;

  // Row i of `run` to target + i * stride [doubles], head_size values each: element * scale where quantized.
  void decode(const RowRun& run, double* target, std::int64_t stride) const;

  [[nodiscard]] std::int64_t row_bytes() const { return rows_.head_size * element_bytes_; }

  // `count` consecutive elements at `source`: how queries, which are in no page, are read.
  static void widen(const ReferenceKernels& kernels, DType dtype, const std::byte* source, std::int64_t count,
                    double* target);

 private:
  void apply_scales(const std::byte* scales, double* target) const;

  const PagedRows& rows_;
  const ReferenceKernels& kernels_;
  std::int64_t element_bytes_;
  std::int64_t scale_bytes_;
};

}  // namespace kvscope::attention
