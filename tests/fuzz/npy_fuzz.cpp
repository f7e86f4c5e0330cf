// Any bytes as an .npy file: an npy reader answers with tensors or with an InputError, and allocates no more than
// it was given reason to.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/golden/npy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    static_cast<void>(kvscope::golden::parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz.npy"));
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
