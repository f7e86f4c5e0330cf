// Reads a bundle, for each command that takes one.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/golden/bundle/bundle.h"

namespace kvscope::apps {

// golden::load_bundle; checks that the file's version lacks are printed to standard error as one note.
[[nodiscard]] golden::Bundle open_bundle(const std::filesystem::path& path);
// The same for a program with a window: appends "<path>: <note>" to `remarks` and prints nothing.
[[nodiscard]] golden::Bundle open_bundle(const std::filesystem::path& path, std::vector<std::string>& remarks);

}  // namespace kvscope::apps
