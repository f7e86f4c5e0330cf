// The files of core/golden/layouts/named, embedded in the library when it is built. CMakeLists.txt lists them.
#pragma once

#include <span>
#include <string_view>

namespace kvscope::golden {

struct EmbeddedLayout {
  std::string_view name;  // of the file, without ".json"
  std::string_view text;  // JSON
};

[[nodiscard]] std::span<const EmbeddedLayout> embedded_layouts();

}  // namespace kvscope::golden
