#include "gpu/virtual/text/detail/debug_section.h"

#include <limits>

#include "gpu/virtual/text/detail/constant.h"
#include "gpu/virtual/text/detail/reader.h"

namespace kvscope::ptx {
namespace {

// The size of the numbers of ".b8", ".b16", ".b32" or ".b64" [bytes]; 0: another directive.
std::size_t data_bytes(std::string_view directive) {
  return directive == ".b8" ? 1 : directive == ".b16" ? 2 : directive == ".b32" ? 4 : directive == ".b64" ? 8 : 0;
}

}  // namespace

DebugSection read_debug_section(std::string_view section) {
  DebugSection out;
  const std::string text(section);  // a separate string, so that it ends with the section
  const auto view = [&](std::string_view part) {
    return section.substr(static_cast<std::size_t>(part.data() - text.data()), part.size());
  };
  Reader reader(text);
  try {
    reader.advance();
    while (!reader.at_end()) {
      if (reader.at_word()) {
        out.labels.emplace(view(reader.take().text), out.bytes.size());
        reader.expect(':');
        continue;
      }
      const std::size_t size = data_bytes(reader.token().text);
      if (size == 0) break;
      reader.advance();
      do {
        std::uint64_t value = 0;
        if (reader.at_word() || reader.at_directive()) {
          const std::string_view label = view(reader.take().text);
          out.references.push_back({out.bytes.size(), label, read_offset(reader)});
        } else {
          value = static_cast<std::uint64_t>(read_integer(reader, "number", std::numeric_limits<std::int64_t>::min(),
                                                          std::numeric_limits<std::int64_t>::max()));
        }
        for (std::size_t i = 0; i < size; ++i) out.bytes.push_back(static_cast<char>(value >> (8 * i) & 0xff));
      } while (reader.accept(','));
    }
  } catch (const TextFault&) {
  }
  return out;
}

}  // namespace kvscope::ptx
