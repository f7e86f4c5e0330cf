// The suggestion "did you mean ...?": the legal name closest to the one that was typed.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace kvscope {

// The name at the smallest edit distance (swapping two adjacent characters is one edit), if the distance is at most a
// third of the typed length, or 1, and one typed character is kept. A name that differs in upper and lower case only
// comes first. Empty when nothing is close. Example: {"page_size", "blocks"}, "pagesize" -> "page_size".
[[nodiscard]] std::string_view nearest_name(std::string_view typed, std::span<const std::string_view> names);

// ": did you mean "page_size"?" or ": choose one of kind, page_size": the end of a message about an unknown name.
[[nodiscard]] std::string suggest_name(std::string_view typed, std::span<const std::string_view> names);

}  // namespace kvscope
