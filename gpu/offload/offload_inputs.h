// The inputs of a problem in the form that a kernel requires: caches as stored if possible, otherwise repacked and in
// another type; tables and lengths of the launch's sequences.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/problem.h"
#include "gpu/kernels/common/paged_cache.h"
#include "gpu/launch/device.h"

namespace kvscope::gpu {

// The sequences of a launch: those of the problem, or one per query.
struct Sequences {
  // [sequences, stride]; entries of pages without visible keys are `blocks`: unassigned.
  std::vector<std::uint32_t> table;
  std::int64_t stride = 1;
  std::vector<std::uint32_t> lengths;   // [sequences] keys
  std::vector<std::uint32_t> firsts;    // [sequences] first visible key; 0 if there is none
  std::vector<std::int32_t> positions;  // [sequences] of the query, where ALiBi starts; only for own_sequences
};
[[nodiscard]] Sequences own_sequences(const attention::Problem& problem);
[[nodiscard]] Sequences one_for_each_query(const attention::Problem& problem);

// Both pools on a device. Movable: the views point into the arrays.
struct UploadedPools {
  DeviceArray k_pool, v_pool, k_scales, v_scales;
  PagedCache k, v;  // without a table
  std::vector<std::string> notes;
};
// `dtype`: the element type on the device. If it differs from the problem's, or scales are to be applied, elements are
// converted. `alignment`: of the first byte of rows and blocks; if the stored data is less aligned, rows are repacked.
[[nodiscard]] UploadedPools upload_pools(Device& device, const attention::Problem& problem, DType dtype,
                                         bool with_scales, std::uint64_t alignment);

// The elements in another type, each rounded once; for the same type, the same bytes.
[[nodiscard]] std::vector<std::byte> converted(DType from, const std::byte* data, std::int64_t count, DType to);

}  // namespace kvscope::gpu
