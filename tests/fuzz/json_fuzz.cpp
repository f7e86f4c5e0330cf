// Any bytes as JSON give a value or an InputError. An accepted value prints as JSON that parses to the same value.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/base/json.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    const kvscope::json::Value value = kvscope::json::parse(text, "fuzz");
    KVSCOPE_ASSERT(kvscope::json::parse(kvscope::json::dump(value), "again") == value);
    KVSCOPE_ASSERT(kvscope::json::parse(kvscope::json::dump(value, -1), "again") == value);
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
