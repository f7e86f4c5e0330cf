// The metadata register of a sparse product, checked before the product.
#pragma once

#include <optional>
#include <string>

#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx {

struct InvalidMetadata {
  int lane = 0;  // that holds the four bits
  std::string message, hint;
};
// The first four bits of the metadata that PTX leaves undefined. `metadata_at`, `selector_at`: in Op::list.
[[nodiscard]] std::optional<InvalidMetadata> invalid_metadata(const Exec& exec, const Op& op, int metadata_at,
                                                              int selector_at);
// mma.sp of a warp, all of whose lanes are here. False: the metadata is invalid, which has been reported.
[[nodiscard]] bool has_valid_metadata(Exec& exec, const Op& op);

}  // namespace kvscope::ptx
