// Reads a bundle, for each command that takes one.
#pragma once

#include <filesystem>

#include "core/golden/bundle/bundle.h"

namespace kvscope::apps {

// golden::load_bundle; checks that the file's version lacks are printed to standard error as one note.
[[nodiscard]] golden::Bundle open_bundle(const std::filesystem::path& path);

}  // namespace kvscope::apps
