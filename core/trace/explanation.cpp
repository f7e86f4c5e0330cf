#include "core/trace/explanation.h"

#include <fmt/format.h>

#include "core/base/report.h"

namespace kvscope::trace {

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
