#include "apps/common/bundle_input.h"

#include <fmt/format.h>

#include <iostream>
#include <utility>

namespace kvscope::apps {

golden::Bundle open_bundle(const std::filesystem::path& path) {
  std::vector<std::string> remarks;
  golden::Bundle bundle = open_bundle(path, remarks);
  for (const std::string& remark : remarks) std::cerr << fmt::format("kvscope: note: {}\n", remark);
  return bundle;
}

golden::Bundle open_bundle(const std::filesystem::path& path, std::vector<std::string>& remarks) {
  golden::Bundle bundle = golden::load_bundle(path);
  const std::string note = golden::manifest_note(bundle);
  if (!note.empty()) remarks.push_back(fmt::format("{}: {}", path.string(), note));
  return bundle;
}

}  // namespace kvscope::apps
