// The scenarios that are installed with the program.
#pragma once

#include <filesystem>
#include <optional>
#include <vector>

#include "viz/model/gallery_model.h"

namespace kvscope::apps {

// The folder of the scenarios: ../share/kvscope/scenarios, relative to the folder of an installed program, or
// apps/scenarios of the source tree in which it was built. nullopt when neither exists.
[[nodiscard]] std::optional<std::filesystem::path> gallery_folder(const std::filesystem::path& program_folder);

// ../share/kvscope/scenarios, relative to the folder of an installed program.
[[nodiscard]] std::filesystem::path installed_gallery(const std::filesystem::path& program_folder);

// In the order of gallery.txt in that folder, then the remaining files by name. If a file cannot be read, its
// description is the fault.
[[nodiscard]] std::vector<viz::GalleryEntry> gallery_of(const std::filesystem::path& folder);

}  // namespace kvscope::apps
