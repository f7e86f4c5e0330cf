// Inputs of a problem as a kernel takes them: caches as they lie in memory where that is possible, else packed anew and
// in another type; tables and lengths of the sequences that the kernel is told of.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/problem.h"
#include "gpu/kernels/common/paged_cache.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

// Sequences of a launch: those of the problem, or one for each query.
struct Sequences {
  std::vector<std::uint32_t> table;  // [sequences, stride]; pages that nobody sees are `blocks`: never assigned
  std::int64_t stride = 1;
  std::vector<std::uint32_t> lengths;   // [sequences] keys
  std::vector<std::uint32_t> firsts;    // [sequences] first key that is seen; 0 where none is
  std::vector<std::int32_t> positions;  // [sequences] of the query, where ALiBi starts; of own_sequences: none
};
[[nodiscard]] Sequences own_sequences(const attention::Problem& problem);
[[nodiscard]] Sequences one_for_each_query(const attention::Problem& problem);

// Both pools on a device. Moves: the views point into the arrays.
struct UploadedPools {
  DeviceArray k_pool, v_pool, k_scales, v_scales;
  PagedCache k, v;  // without a table
  std::vector<std::string> notes;
};
// `dtype`: of the elements there. Another than the problem's, or with scales that are not wanted: converted.
// `alignment`: of a row's and a block's first byte; where memory keeps less, rows are packed anew.
[[nodiscard]] UploadedPools upload_pools(Device& device, const attention::Problem& problem, DType dtype,
                                         bool with_scales, std::uint64_t alignment);

// Elements in another type, each rounded once; the same type: the same bytes.
[[nodiscard]] std::vector<std::byte> converted(DType from, const std::byte* data, std::int64_t count, DType to);

}  // namespace kvscope::gpu
