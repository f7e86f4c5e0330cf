#include "apps/common/bundle_input.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

namespace kvscope::apps {

golden::Bundle open_bundle(const std::filesystem::path& path) {
  golden::Bundle bundle = golden::load_bundle(path);
  const std::string note = golden::manifest_note(bundle);
  if (!note.empty()) std::cerr << fmt::format("kvscope: note: {}: {}\n", path.string(), note);
  return bundle;
}

}  // namespace kvscope::apps
