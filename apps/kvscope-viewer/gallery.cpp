#include "apps/kvscope-viewer/gallery.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "core/base/errors.h"
#include "core/scenario/notes.h"
#include "core/scenario/scenario_json.h"

namespace kvscope::apps {
namespace fs = std::filesystem;
namespace {

std::vector<std::string> listed_names(const fs::path& list) {
  std::vector<std::string> names;
  std::ifstream file(list);
  for (std::string line; std::getline(file, line);) {
    if (!line.empty() && line.front() != '#') names.push_back(line);
  }
  return names;
}

viz::GalleryEntry entry_of(const fs::path& path) {
  try {
    const Scenario scenario = load_scenario(path);
    return {path.string(), scenario.name, plain_notes(scenario.description)};
  } catch (const std::exception& error) {
    return {path.string(), path.stem().string(), fault_lines(error).front()};
  }
}

}  // namespace

fs::path installed_gallery(const fs::path& program_folder) {
  return program_folder.parent_path() / "share" / "kvscope" / "scenarios";
}

std::optional<fs::path> gallery_folder(const fs::path& program_folder) {
  std::error_code ignored;
  const fs::path installed = installed_gallery(program_folder);
  if (fs::is_directory(installed, ignored)) return installed;
  for (fs::path folder = program_folder; folder.has_relative_path(); folder = folder.parent_path()) {
    if (fs::is_directory(folder / "apps" / "scenarios", ignored)) return folder / "apps" / "scenarios";
  }
  return std::nullopt;
}

std::vector<viz::GalleryEntry> gallery_of(const fs::path& folder) {
  const std::vector<std::string> order = listed_names(folder / "gallery.txt");
  std::vector<fs::path> paths;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::ranges::sort(paths, {}, [&](const fs::path& path) {
    return std::pair(std::ranges::find(order, path.stem().string()) - order.begin(), path);
  });
  std::vector<viz::GalleryEntry> entries;
  for (const fs::path& path : paths) entries.push_back(entry_of(path));
  return entries;
}

}  // namespace kvscope::apps
