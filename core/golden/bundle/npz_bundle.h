// A bundle as the bytes of an .npz file, for programs that write it themselves.
#pragma once

#include <string>

#include "core/golden/bundle/tensor.h"

namespace kvscope::golden {

// The bytes that save_bundle() (bundle.h) writes to a file whose name ends in .npz: the tensors, and the manifest with
// format version and checksums. InputError for a manifest with a key that load_bundle() would reject.
[[nodiscard]] std::string npz_bundle_bytes(const Bundle& bundle);

}  // namespace kvscope::golden
