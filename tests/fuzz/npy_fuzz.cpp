// Any bytes as an .npy file: the reader returns tensors or throws an InputError, and its allocations are bounded by the
// size of the input.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/golden/bundle/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    static_cast<void>(kvscope::golden::parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz.npy"));
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
