#include "apps/common/written_files.h"

#include <fmt/format.h>

#include <string>
#include <system_error>
#include <vector>

#include "apps/common/cli.h"
#include "core/base/errors.h"

namespace kvscope::apps {
namespace {

namespace fs = std::filesystem;

bool is_written(CLI::Option& option) {
  try {
    return option.get_validator(kWritesFile) != nullptr;
  } catch (const CLI::OptionNotFound&) {
    return false;
  }
}

struct NamedFile {
  std::string option, path;
};

// What is wrong with a file to write, apart from the other files of the command.
std::string fault_of_place(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) return "is a folder: name a file in it";
  const fs::path folder = path.parent_path();
  if (folder.empty() || fs::exists(folder, error)) return "";
  return fmt::format("cannot be written: the folder '{}' does not exist", folder.string());
}

void check_command(CLI::App& command) {
  std::vector<NamedFile> written, other;
  for (CLI::Option* option : command.get_options([](const CLI::Option* each) { return each->count() > 0; })) {
    for (const std::string& path : option->results()) {
      (is_written(*option) ? written : other).push_back({option->get_name(), path});
    }
  }
  std::vector<Fault> replaced;
  for (std::size_t i = 0; i < written.size(); ++i) {
    const auto check = [&](const NamedFile& against) {
      if (!is_same_file(written[i].path, against.path)) return;
      replaced.push_back(
          {written[i].option, fmt::format("'{}' is also given as {}, and would be replaced: pass another "
                                          "file",
                                          written[i].path, against.option)});
    };
    for (const NamedFile& file : other) {
      if (std::error_code error; fs::is_regular_file(file.path, error)) check(file);
    }
    for (std::size_t k = 0; k < i; ++k) check(written[k]);
  }
  if (!replaced.empty()) throw InputError("command line", std::move(replaced));
  for (const NamedFile& file : written) {
    const std::string fault = fault_of_place(file.path);
    if (!fault.empty()) throw InputError(file.path, "", fault);
  }
}

}  // namespace

bool is_same_file(const fs::path& a, const fs::path& b) {
  std::error_code error;
  if (fs::equivalent(a, b, error)) return true;
  const fs::path whole_a = fs::weakly_canonical(fs::absolute(a, error), error);
  const fs::path whole_b = fs::weakly_canonical(fs::absolute(b, error), error);
  return !whole_a.empty() && whole_a == whole_b && whole_a != fs::path("/dev/null");
}

void check_written_files(const CLI::App& app) {
  for (CLI::App* command : app.get_subcommands()) {
    check_command(*command);
    check_written_files(*command);
  }
}

void check_program_files(CLI::App& program) {
  check_command(program);
}

}  // namespace kvscope::apps
