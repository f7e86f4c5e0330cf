// Pieces that the reports of several programs share: a JUnit file, heads and cells of Markdown tables, columns of text.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kvscope {

struct JUnitCase {
  std::string class_name, name;
  std::optional<double> seconds;       // no time attribute without it
  std::optional<std::string> failure;  // message of a failed case
};

struct JUnitProperty {
  std::string name, value;
};

struct JUnitSuite {
  std::string name;
  std::vector<JUnitCase> cases;
  std::string output;                          // content of <system-out>; empty: the element is omitted
  std::vector<JUnitProperty> properties = {};  // what the results depend on
};

// One <testsuite> with its counts. Any text is escaped; characters that XML cannot hold become '?'.
[[nodiscard]] std::string to_junit(const JUnitSuite& suite);

// {"kernel", "cases"} -> "| kernel | cases |\n|---|---|\n".
[[nodiscard]] std::string markdown_head(std::initializer_list<std::string_view> columns);
// Text as one cell: bars are escaped, line ends become spaces.
[[nodiscard]] std::string markdown_cell(std::string_view text);

// A number and its noun. Examples: counted(1, "key") -> "1 key"; counted(2, "query", "queries") -> "2 queries".
[[nodiscard]] std::string counted(std::int64_t count, std::string_view one, std::string_view several = {});

// The width of a column: bytes of the longest text that `text_of` (a member or a callable) gives for an item; 0 without
// items.
template <class Items, class TextOf>
[[nodiscard]] std::size_t widest(const Items& items, TextOf text_of) {
  std::size_t width = 0;
  for (const auto& item : items) width = std::max(width, std::string_view(std::invoke(text_of, item)).size());
  return width;
}

}  // namespace kvscope
