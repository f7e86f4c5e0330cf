#include "apps/common/scratch_folder.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <string>
#include <system_error>

#include "apps/common/signals.h"
#include "core/base/errors.h"

namespace kvscope::apps {

ScratchFolder::ScratchFolder(const std::filesystem::path& beginning, const std::filesystem::path& source) {
  std::string name = beginning.string() + "XXXXXX";
  const SignalsDelayed delayed;
  if (mkdtemp(name.data()) == nullptr) {
    throw InputError(source.string(), "", fmt::format("cannot be created: {}", system_message(errno)));
  }
  path_ = name;
  remove_folder_on_signals(path_);
}

ScratchFolder::~ScratchFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
  remove_folder_on_signals({});
}

}  // namespace kvscope::apps
