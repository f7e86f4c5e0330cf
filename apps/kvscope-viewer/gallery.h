// The scenarios that come with the program.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "viz/model/gallery_model.h"

namespace kvscope::apps {

// Where they are, seen from the folder of the program: ../share/kvscope/scenarios where it is installed, apps/scenarios
// of the source tree that it was built in. Nothing when there is neither.
[[nodiscard]] std::optional<std::filesystem::path> gallery_folder(const std::filesystem::path& program_folder);

// In the order of gallery.txt there, then what it does not name, by name. One that cannot be read says so in place of
// its description.
[[nodiscard]] std::vector<viz::GalleryEntry> gallery_of(const std::filesystem::path& folder);

}  // namespace kvscope::apps
