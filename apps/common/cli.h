// CLI11, only for the files that parse or describe a command line (listed in tests/layering). It adds about three
// seconds of compile time to each file, so the work of a command that is longer than a few lines is in files without
// it.
#pragma once

#include <CLI/TypeTools.hpp>
#include <cstdint>
#include <limits>

#include "apps/common/whole_option.h"

// The parser converts with strtoll() and strtoull(): 2^64 becomes 2^63 - 1 without an error, and -1 becomes 2^64 - 1
// for an unsigned option. These replace its conversions of the integer types that options have.
namespace CLI::detail {

template <>
inline bool integral_conversion<int>(const std::string& input, int& output) noexcept {
  return kvscope::apps::convert_whole(input, std::numeric_limits<int>::min(), std::numeric_limits<int>::max(), output);
}
template <>
inline bool integral_conversion<std::int64_t>(const std::string& input, std::int64_t& output) noexcept {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min(), kMost = std::numeric_limits<std::int64_t>::max();
  return kvscope::apps::convert_whole(input, kLeast, kMost, output);
}
template <>
inline bool integral_conversion<unsigned>(const std::string& input, unsigned& output) noexcept {
  return kvscope::apps::convert_whole(input, 0U, std::numeric_limits<unsigned>::max(), output);
}
template <>
inline bool integral_conversion<std::uint64_t>(const std::string& input, std::uint64_t& output) noexcept {
  return kvscope::apps::convert_whole(input, std::uint64_t{0}, std::numeric_limits<std::uint64_t>::max(), output);
}

}  // namespace CLI::detail

#include <CLI/CLI.hpp>

namespace kvscope::apps {

// Rejects a whole number below `least`, for an option whose range depends on nothing else. Words that are no number are
// left to the conversion. Example: ->check(at_least(0)) gives "--wave: -1 is below 0".
inline CLI::Validator at_least(std::int64_t least) {
  const auto check = [least](const std::string& text) {
    std::int64_t value = 0;
    const bool is_below = CLI::detail::lexical_cast(text, value) && value < least;
    return is_below ? text + " is below " + std::to_string(least) : std::string();
  };
  return {check, std::string(), std::string()};
}

// Marks an option, or a positional, whose value is a file that the command writes: ->check(writes_file()). The marked
// files are checked before the command runs (apps/common/written_files.h).
inline constexpr const char* kWritesFile = "writes_file";
inline CLI::Validator writes_file() {
  return {[](const std::string&) { return std::string(); }, std::string(), kWritesFile};
}

}  // namespace kvscope::apps
