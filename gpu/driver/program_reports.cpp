#include "gpu/driver/program_reports.h"

#include <fmt/format.h>

#include <cstdio>
#include <set>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/base/numbers.h"
#include "core/base/report.h"

namespace kvscope::driver {
namespace {

json::Value json_of(const std::vector<ProgramReport>& reports, const ProgramRun& run) {
  json::Array list;
  for (const ProgramReport& report : reports) {
    json::Value one;
    one.set("kind", report.kind);
    one.set("severity", ptx::name(report.severity));
    one.set("call", report.call);
    one.set("function", report.function);
    one.set("kernel", report.kernel);
    one.set("source", report.source);
    one.set("text", report.text);
    list.push_back(std::move(one));
  }
  json::Value out;
  out.set("kvscope_cuda_reports", 1);
  out.set("program", run.program);
  out.set("sum", run.sum);
  out.set("reports", std::move(list));
  return out;
}

std::string junit_of(const std::vector<ProgramReport>& reports, const std::string& program) {
  JUnitSuite suite{.name = program, .cases = {}, .output = {}};
  for (const ProgramReport& report : reports) {
    if (report.severity == ptx::Severity::note) continue;
    const std::string where = report.kernel.empty() ? report.function : report.kernel;
    suite.cases.push_back({.class_name = program,
                           .name = fmt::format("{} {}", report.kind, where.empty() ? "at exit" : where),
                           .seconds = {},
                           .failure = report.text});
  }
  if (suite.cases.empty())
    suite.cases.push_back({.class_name = program, .name = "no reports", .seconds = {}, .failure = {}});
  return to_junit(suite);
}

// A path as a URI: readers of SARIF reject a whole file for a space in one. A colon would end a scheme.
std::string uri_of(std::string_view path) {
  constexpr std::string_view kPlain = "-._~/!$&'()*+,;=@";
  std::string out;
  for (const char c : path) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                          kPlain.find(c) != std::string_view::npos;
    out += is_plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

// "scale.cu:5" as a SARIF location.
json::Value location_of(const std::string& source) {
  const std::size_t colon = source.rfind(':');
  json::Value file, physical, location;
  file.set("uri", uri_of(source.substr(0, colon)));
  physical.set("artifactLocation", std::move(file));
  if (colon != std::string::npos) {
    if (const auto line = whole_number<std::int64_t>(source.substr(colon + 1)); line && *line > 0) {
      json::Value region;
      region.set("startLine", *line);
      physical.set("region", std::move(region));
    }
  }
  location.set("physicalLocation", std::move(physical));
  return location;
}

json::Value sarif_of(const std::vector<ProgramReport>& reports, const ProgramRun& run) {
  json::Array results, rules;
  std::set<std::string> kinds;
  for (const ProgramReport& report : reports) {
    kinds.insert(report.kind);
    json::Value result, message;
    message.set("text", report.text);
    result.set("ruleId", report.kind);
    result.set("level", ptx::name(report.severity));
    result.set("message", std::move(message));
    if (!report.source.empty()) result.set("locations", json::Array{location_of(report.source)});
    results.push_back(std::move(result));
  }
  for (const std::string& kind : kinds) {
    json::Value rule;
    rule.set("id", kind);
    rules.push_back(std::move(rule));
  }
  json::Value driver, tool, run_of, options, out;
  driver.set("name", "kvscope cuda");
  driver.set("rules", std::move(rules));
  tool.set("driver", std::move(driver));
  options.set("sum", run.sum);
  run_of.set("tool", std::move(tool));
  run_of.set("properties", std::move(options));
  run_of.set("results", std::move(results));
  out.set("$schema", "https://json.schemastore.org/sarif-2.1.0.json");
  out.set("version", "2.1.0");
  out.set("runs", json::Array{std::move(run_of)});
  return out;
}

}  // namespace

void ProgramReports::add(ProgramReport report, bool prints) {
  if (report.severity != ptx::Severity::note) ++findings_;
  if (prints) {
    std::fflush(stdout);  // so that the report is after what the program has printed
    std::fputs((report.text + "\n\n").c_str(), stderr);
  }
  reports_.push_back(std::move(report));
}

ReportFormat report_format(const std::string& name, const std::string& path) {
  if (name == "text") return ReportFormat::text;
  if (name == "json" || (name.empty() && path.ends_with(".json"))) return ReportFormat::json;
  if (name == "junit" || (name.empty() && path.ends_with(".xml"))) return ReportFormat::junit;
  if (name == "sarif" || (name.empty() && path.ends_with(".sarif"))) return ReportFormat::sarif;
  if (name.empty()) return ReportFormat::text;
  throw InputError("command line", "--format", fmt::format("'{}' is not one of text, json, junit, sarif", name));
}

std::string format_reports(const std::vector<ProgramReport>& reports, ReportFormat format, const ProgramRun& run) {
  switch (format) {
    case ReportFormat::json:
      return json::dump(json_of(reports, run)) + "\n";
    case ReportFormat::junit:
      return junit_of(reports, run.program);
    case ReportFormat::sarif:
      return json::dump(sarif_of(reports, run)) + "\n";
    case ReportFormat::text:
      break;
  }
  std::string out;
  for (const ProgramReport& report : reports) out += report.text + "\n\n";
  return out;
}

}  // namespace kvscope::driver
