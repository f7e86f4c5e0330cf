#include "core/trace/explanation.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/report.h"

namespace kvscope::trace {
namespace {

// A link whose result is a place, and the word before it; none where the result has words of its own.
struct PlaceLink {
  std::string_view link, word;
};

// "582 of 2064" and "161414 (0x27686)" -> the number alone; "chunk 6, shared byte 870" -> "shared byte 870".
std::string_view place(std::string_view result) {
  result = result.substr(0, std::min(result.find(" of "), result.find(" (")));
  result = result.substr(0, result.find(", bits "));
  if (const std::size_t at = result.find("shared byte"); at != std::string_view::npos) result.remove_prefix(at);
  return result;
}

// "page 4, slot 6, block 9"; empty if the chain has none of the links, or the tile does not take this way.
std::string places(const Explanation& explanation, const std::vector<PlaceLink>& wanted) {
  std::vector<std::string> found;
  for (const PlaceLink& w : wanted) {
    const auto link = std::ranges::find(explanation.links, w.link, &Link::name);
    if (link == explanation.links.end() || link->result == "none") continue;
    found.push_back(fmt::format("{}{}{}", w.word, w.word.empty() ? "" : " ", place(link->result)));
  }
  return fmt::format("{}", fmt::join(found, ", "));
}

}  // namespace

std::string to_text(const Explanation& explanation) {
  const std::size_t width = widest(explanation.links, &Link::name);
  std::string text = explanation.subject + "\n";
  for (const Link& link : explanation.links) {
    text += fmt::format("\n{:<{}}  {}\n", link.name, width, link.formula);
    if (!link.numbers.empty()) text += fmt::format("{:<{}}  = {}\n", "", width, link.numbers);
    text += fmt::format("{:<{}}  = {}\n", "", width, link.result);
    if (!link.remark.empty()) text += fmt::format("{:<{}}    {}\n", "", width, link.remark);
  }
  return text;
}

std::string places_text(const Explanation& explanation) {
  std::string text;
  for (const auto& [way, wanted] :
       {std::pair<std::string_view, std::vector<PlaceLink>>{
            "in the cache", {{"page", "page"}, {"slot", "slot"}, {"block", "block"}, {"row", "row"}, {"byte", "byte"}}},
        {"by TMA", {{"TMA box", "box at"}, {"swizzle", ""}, {"bank", "bank"}, {"register", "held by"}}},
        {"through LDS",
         {{"LDS copy", "copied by"}, {"LDS byte", "byte"}, {"LDS bank", "bank"}, {"wave register", "held by"}}}}) {
    if (const std::string found = places(explanation, wanted); !found.empty()) {
      text += fmt::format("{:<12}  {}\n", way, found);
    }
  }
  return text;
}

json::Value to_json(const Explanation& explanation) {
  json::Value value;
  value.set("subject", explanation.subject);
  json::Array links;
  for (const Link& link : explanation.links) {
    json::Value entry;
    entry.set("name", link.name);
    entry.set("formula", link.formula);
    entry.set("numbers", link.numbers);
    entry.set("result", link.result);
    entry.set("remark", link.remark);
    links.push_back(std::move(entry));
  }
  value.set("links", std::move(links));
  return value;
}

}  // namespace kvscope::trace
