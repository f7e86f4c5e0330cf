// CLI11, only for the files that parse or describe a command line (listed in tests/layering). It adds about three
// seconds of compile time to each file, so the work of a command that is longer than a few lines is in files without
// it.
#pragma once

#include <CLI/TypeTools.hpp>
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

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

// How many numbers an option of several takes, and the smallest number that it takes.
struct NumbersRange {
  std::size_t most = std::numeric_limits<std::size_t>::max();
  std::int64_t least = std::numeric_limits<std::int64_t>::min();
};

// An option of whole numbers with commas between them. The parser's own lists leave out an empty place, so that 1,,2 is
// 1,2, and also take the words behind the option, such as the command's file.
// Example: "1,,2" gives "--at: '1,,2' is not a list of whole numbers with commas between them".
template <class Number, class Numbers>
CLI::Option* add_numbers(CLI::App& command, const std::string& name, Numbers& to, const std::string& help,
                         NumbersRange range = {}) {
  const auto read = [name, range, &to](const std::string& text) {
    std::vector<Number> numbers;
    for (std::size_t at = 0; at <= text.size();) {
      const std::size_t comma = std::min(text.find(',', at), text.size());
      const std::string word = text.substr(at, comma - at);
      Number number{};
      const std::size_t by = word.starts_with("0x") ? std::string::npos : word.find('x', 1);
      const bool is_product = by != std::string::npos && by + 1 < word.size();  // 2x2 for 2,2
      if (word.empty() || is_product)
        throw CLI::ValidationError(name, "'" + text + "' is not a list of whole numbers with commas between them");
      if (!CLI::detail::lexical_cast(word, number)) throw CLI::ConversionError(name, std::vector{word});
      if (number < range.least) throw CLI::ValidationError(name, word + " is below " + std::to_string(range.least));
      numbers.push_back(number);
      at = comma + 1;
    }
    if (numbers.size() > range.most)
      throw CLI::ValidationError(name, "'" + text + "' has " + std::to_string(numbers.size()) + " numbers: at most " +
                                           std::to_string(range.most));
    to = std::move(numbers);
  };
  return command.add_option_function<std::string>(name, read, help)->type_name("N,...");
}

// Marks an option, or a positional, whose value is a file that the command writes: ->check(writes_file()). The marked
// files are checked before the command runs (apps/common/written_files.h).
inline constexpr const char* kWritesFile = "writes_file";
inline CLI::Validator writes_file() {
  return {[](const std::string&) { return std::string(); }, std::string(), kWritesFile};
}

}  // namespace kvscope::apps
