// Any bytes as a .npz file: the reader returns tensors or throws an InputError, and its allocations are bounded by the
// size of the input.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/golden/bundle/npz.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    static_cast<void>(kvscope::golden::parse_npz({reinterpret_cast<const char*>(data), size}, "fuzz.npz"));
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
