// Reads rows of paged K or V as doubles: token and KV head in, `head_size` stored values out. The reference's way of
// finding a row; the tiled flow has its own, so that a wrong one shows.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/attention/problem.h"
#include "core/attention/reference_kernels.h"

namespace kvscope::attention {

class RowReader {
 public:
  RowReader(const PagedRows& rows, const ReferenceKernels& kernels);

  // Elements of token `token` of sequence `sequence`, KV head `head`, to target[0, head_size): element * scale where
  // quantized. The problem's checks have passed; nothing is checked again.
  void read(std::int64_t sequence, std::int64_t token, std::int64_t head, double* target) const;

  // Elements of `count` consecutive ones at `source`; how the queries, which are in no page, are read.
  static void widen(const ReferenceKernels& kernels, DType dtype, const std::byte* source, std::int64_t count,
                    double* target);

 private:
  void apply_scales(std::int64_t sequence, std::int64_t page, std::int64_t slot, std::int64_t head,
                    double* target) const;

  const PagedRows& rows_;
  const ReferenceKernels& kernels_;
  std::int64_t element_bytes_;
};

}  // namespace kvscope::attention
