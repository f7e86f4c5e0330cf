// The findings of lint as text and JSON.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/base/report.h"
#include "core/golden/lint/lint.h"

namespace kvscope::golden {
namespace {

std::string finding_text(const LintFinding& finding) {
  std::string text = fmt::format("{} {}", finding.object, finding.problem);
  if (!finding.range.empty()) text += "; allowed: " + finding.range;
  if (!finding.next.empty()) text += (finding.range.empty() ? ": " : "; ") + finding.next;
  return text;
}

}  // namespace

std::string text_report(const LintReport& report, std::string_view file, std::size_t most) {
  std::string text = fmt::format("lint       {}: layout {}, {}, {} of {} in {}\n", file, report.layout,
                                 counted(report.sequences, "sequence"), counted(report.pages, "page"),
                                 counted(report.page_size, "token"), counted(report.blocks, "block"));
  for (const std::string_view rule : lint_rules()) {
    std::size_t printed = 0;
    std::int64_t left_out = 0;
    for (const LintFinding& finding : report.findings) {
      if (finding.rule != rule) continue;
      if (most > 0 && printed == most) {
        left_out += finding.count;
        continue;
      }
      ++printed;
      text += fmt::format("{:8} {:10} {}\n", finding.severity == LintSeverity::fault ? "FAULT" : "warning", rule,
                          finding_text(finding));
    }
    if (left_out > 0) text += fmt::format("         {:10} and {} more: pass --all, or --json\n", rule, left_out);
  }
  text += fmt::format("{}, {}\n", counted(report.faults(), "fault"), counted(report.warnings(), "warning"));
  if (!report.not_checked.empty()) text += fmt::format("not checked: {}\n", fmt::join(report.not_checked, "; "));
  return text;
}

json::Value json_report(const LintReport& report, std::string_view file) {
  json::Value out;
  out.set("file", file);
  out.set("layout", report.layout);
  out.set("passed", report.faults() == 0);
  out.set("sequences", report.sequences);
  out.set("pages", report.pages);
  out.set("blocks", report.blocks);
  out.set("page_size", report.page_size);
  json::Array findings;
  for (const LintFinding& finding : report.findings) {
    json::Value line;
    line.set("severity", finding.severity == LintSeverity::fault ? "fault" : "warning");
    line.set("rule", finding.rule);
    line.set("object", finding.object);
    line.set("problem", finding.problem);
    line.set("value", finding.value ? json::Value(*finding.value) : json::Value());
    line.set("allowed", finding.range);
    line.set("next", finding.next);
    findings.push_back(std::move(line));
  }
  out.set("findings", std::move(findings));
  out.set("not_checked", json::strings(report.not_checked));
  return out;
}

}  // namespace kvscope::golden
