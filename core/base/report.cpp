#include "core/base/report.h"

#include <fmt/format.h>

#include "core/base/xml.h"

namespace kvscope {

std::string to_junit(const JUnitSuite& suite) {
  const auto failures =
      std::count_if(suite.cases.begin(), suite.cases.end(), [](const JUnitCase& c) { return c.failure.has_value(); });
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format("<testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n", xml_text(suite.name),
                     suite.cases.size(), failures);
  if (!suite.properties.empty()) {
    xml += "  <properties>\n";
    for (const JUnitProperty& p : suite.properties) {
      xml += fmt::format("    <property name=\"{}\" value=\"{}\"/>\n", xml_text(p.name), xml_text(p.value));
    }
    xml += "  </properties>\n";
  }
  for (const JUnitCase& c : suite.cases) {
    xml += fmt::format("  <testcase classname=\"{}\" name=\"{}\"", xml_text(c.class_name), xml_text(c.name));
    if (c.seconds) xml += fmt::format(" time=\"{:.3f}\"", *c.seconds);
    xml += c.failure ? fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n", xml_text(*c.failure)) : "/>\n";
  }
  if (!suite.output.empty()) xml += fmt::format("  <system-out>{}</system-out>\n", xml_text(suite.output));
  return xml + "</testsuite>\n";
}

std::string counted(std::int64_t count, std::string_view one, std::string_view several) {
  if (count == 1) return fmt::format("1 {}", one);
  return several.empty() ? fmt::format("{} {}s", count, one) : fmt::format("{} {}", count, several);
}

std::string markdown_head(std::initializer_list<std::string_view> columns) {
  std::string names = "|", rule = "|";
  for (const std::string_view column : columns) {
    names += fmt::format(" {} |", column);
    rule += "---|";
  }
  return names + "\n" + rule + "\n";
}

std::string markdown_cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace kvscope
