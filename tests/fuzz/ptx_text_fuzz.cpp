// Any bytes as PTX give a module or errors with positions in the text. A module prints as PTX that parses again and
// then prints the same text.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/errors.h"
#include "gpu/virtual/text/parser.h"
#include "gpu/virtual/text/print.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace kvscope::ptx;
  const Parsed parsed = parse_text(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx");
  KVSCOPE_ASSERT(parsed.errors.size() <= kMostErrors);
  for (const TextError& error : parsed.errors) {
    KVSCOPE_ASSERT(error.at.line >= 1 && error.at.column >= 1 && !error.message.empty());
    const auto line = static_cast<std::size_t>(error.at.line) - 1;
    const auto& lines = parsed.module.lines;
    KVSCOPE_ASSERT(!to_text("fuzz.ptx", line < lines.size() ? lines[line] : "", error).empty());
  }
  if (!parsed.errors.empty()) return 0;
  const std::string printed = to_ptx(parsed.module);
  const Parsed again = parse_text(printed, "printed.ptx");
  KVSCOPE_ASSERT(again.errors.empty());
  KVSCOPE_ASSERT(to_ptx(again.module) == printed);
  return 0;
}
