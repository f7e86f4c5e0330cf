// The text of a range, and of a fault in one field: for the reader, the range checker and a draft. Internal to this
// folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/scenario/detail/fields.h"

namespace kvscope::fields {

// "[1, 65536]"; of a range without its lower end "(0, 1000000]".
[[nodiscard]] std::string range_text(IntegerRange range);
[[nodiscard]] std::string range_text(RealRange range);

// "0 is outside [1, 65536]: choose a power of two such as 16"; empty when the value is in range.
[[nodiscard]] std::optional<std::string> range_fault(std::int64_t value, IntegerRange range, const About& about);
[[nodiscard]] std::optional<std::string> range_fault(std::uint64_t value, std::uint64_t high, const About& about);
[[nodiscard]] std::optional<std::string> range_fault(double value, RealRange range, const About& about);
// "70000 bytes are more than the 65536 allowed: ..."
[[nodiscard]] std::optional<std::string> text_fault(std::string_view text, const About& about);
// "70000 entries are more than the 65536 allowed: ..."
[[nodiscard]] std::optional<std::string> count_fault(std::size_t count, IntegerRange range, const About& about);

// "$.cache" + "page_size" -> "$.cache.page_size"; a key that is not an identifier is quoted: $["page size"].
[[nodiscard]] std::string join_path(std::string_view path, std::string_view key);
[[nodiscard]] std::string join_path(std::string_view path, std::size_t index);

}  // namespace kvscope::fields
