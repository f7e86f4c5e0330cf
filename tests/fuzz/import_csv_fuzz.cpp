// Any bytes as a comma-separated trace: requests in range, or an InputError with a bounded message.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/base/errors.h"
#include "core/scenario/import_csv.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    for (const kvscope::Request& r : kvscope::import_csv(text, "fuzz")) {
      KVSCOPE_ASSERT(r.arrival_us >= 0 && r.prompt_tokens >= 1 && r.generate_tokens >= 0 && r.content.empty());
    }
  } catch (const kvscope::InputError& error) {
    KVSCOPE_ASSERT(error.faults().size() <= 21);
  }
  return 0;
}
