// Any bytes as a .safetensors file: the reader returns tensors or throws an InputError, and its allocations are bounded
// by the size of the input.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/golden/bundle/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    static_cast<void>(
        kvscope::golden::parse_safetensors({reinterpret_cast<const char*>(data), size}, "fuzz.safetensors"));
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
