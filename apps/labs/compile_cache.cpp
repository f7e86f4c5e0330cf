#include "apps/labs/compile_cache.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>
#include <vector>

#include "apps/labs/compile_job.h"
#include "apps/labs/seed.h"
#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kCacheFormat = "kvscope compiled 1";
constexpr std::int64_t kMaxEntry = kMaxProduct + kMaxErrors + 1024;  // [bytes]
// Mounts whose bytes decide the product. The others are programs: their path, size and time decide.
constexpr std::array kTextMounts{kSources, kHarness, kMain, kObject, kTool};

// Every part with its length, so that no two lists of parts give one text.
void add_part(std::string& text, std::string_view part) {
  text += fmt::format("{} {}\n", part.size(), part);
}

std::vector<fs::path> files_of(const fs::path& place) {
  std::vector<fs::path> files;
  std::error_code ignored;
  if (!fs::is_directory(place, ignored)) return {place};
  for (const auto& each : fs::directory_iterator(place, ignored)) files.push_back(each.path());
  std::ranges::sort(files);
  return files;
}

void add_identity(std::string& text, const fs::path& path) {
  std::error_code ignored;
  const fs::path file = fs::canonical(path, ignored);
  const bool is_file = fs::is_regular_file(file, ignored);
  add_part(text, file.string());
  add_part(text, fmt::format("{} {}", is_file ? fs::file_size(file, ignored) : 0,
                             fs::last_write_time(file, ignored).time_since_epoch().count()));
}

std::string cache_header(std::string_view rest) {
  return fmt::format("{} {:08x}\n", kCacheFormat, crc32(rest));
}

}  // namespace

std::string CompileCache::key(const SandboxJob& job, bool trusted) {
  std::string text;
  add_part(text, kCacheFormat);
  add_part(text, trusted ? "trusted" : "sandbox");
  for (const std::string& argument : job.command) add_part(text, argument);
  add_identity(text, job.command.front());
  for (const SandboxMount& mount : job.mounts) {
    if (mount.writable) continue;
    add_part(text, mount.inside);
    const bool is_text = std::ranges::find(kTextMounts, mount.inside) != kTextMounts.end();
    for (const fs::path& file : files_of(mount.outside)) {
      add_part(text, file.filename().string());
      if (is_text) {
        add_part(text, read_file(file, kMaxProduct));
      } else {
        add_identity(text, file);
      }
    }
  }
  return Seed{sha256(text)}.text();
}

// kvscope compiled 1 <crc32 of what follows this line>
// <bytes of the messages>
// <messages><product>
std::optional<Compiled> CompileCache::find(const std::string& name) const {
  std::error_code ignored;
  if (folder_.empty() || !fs::is_regular_file(entry(name), ignored)) return std::nullopt;
  const std::string bytes = read_file(entry(name), kMaxEntry);
  const std::size_t header = cache_header("").size();
  if (bytes.size() < header) return std::nullopt;
  const std::string rest = bytes.substr(header);
  if (!bytes.starts_with(cache_header(rest))) return std::nullopt;
  std::size_t messages = 0;
  const char* const last = rest.data() + rest.size();
  const auto [end, error] = std::from_chars(rest.data(), last, messages);
  const std::size_t first = static_cast<std::size_t>(end - rest.data()) + 1;
  if (error != std::errc() || first > rest.size() || messages > rest.size() - first) return std::nullopt;
  return Compiled{true, rest.substr(first, messages), rest.substr(first + messages)};
}

void CompileCache::keep(const std::string& name, const Compiled& compiled) const {
  if (folder_.empty() || !compiled.ok) return;
  std::error_code error;
  fs::create_directories(folder_, error);
  if (error)
    throw InputError("command line", "--cache", fmt::format("{}: {}", folder_.string(), system_message(error.value())));
  const std::string rest = fmt::format("{}\n", compiled.messages.size()) + compiled.messages + compiled.product;
  write_file_atomically(entry(name), cache_header(rest) + rest);
}

}  // namespace kvscope::labs
