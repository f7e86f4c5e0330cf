// Reads a bundle, for each command that takes one.
#pragma once

#include <filesystem>

#include "core/golden/bundle/bundle.h"

namespace kvscope::apps {

// golden::load_bundle; what the file's version cannot check is printed to standard error as one note.
[[nodiscard]] golden::Bundle open_bundle(const std::filesystem::path& path);

}  // namespace kvscope::apps
