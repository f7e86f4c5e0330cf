#include "gpu/hardware/check_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <ctime>
#include <filesystem>
#include <string_view>

#include "core/base/file.h"
#include "core/base/pending_folder.h"
#include "core/base/report.h"
#include "core/tma/box_plan.h"
#include "gpu/hardware/instruction_kernels.h"

namespace kvscope::gpu {
namespace {

constexpr std::array<std::string_view, 5> kWeights = {"failed", "differs", "settled", "as expected", "not applicable"};

std::string first_line(const std::string& text) {
  return text.substr(0, text.find('\n'));
}

std::int64_t failed_cases(const CheckReport& report) {
  return std::count_if(report.cases.begin(), report.cases.end(), [](const CaseRecord& c) { return !c.passed; });
}

std::int64_t parts_with(const CheckReport& report, std::string_view verdict) {
  std::int64_t count = 0;
  for (const ProbeRecord& probe : report.probes)
    count += std::count_if(probe.parts.begin(), probe.parts.end(),
                           [&](const PartRecord& part) { return part.verdict == verdict; });
  return count;
}

std::string expected_text(const PartRecord& part) {
  const std::string* text = part.expected.as_string();
  return text == nullptr ? "unknown" : *text;
}

// "14 as expected, 2 differ", summed over all parts.
std::string probe_counts(const CheckReport& report) {
  std::string text;
  for (const std::string_view verdict : {"as expected", "settled", "differs", "not applicable", "failed"})
    if (const std::int64_t count = parts_with(report, verdict); count > 0)
      text += fmt::format("{}{} {}", text.empty() ? "" : ", ", count, verdict);
  return text;
}

std::string case_counts(const CheckReport& report) {
  return fmt::format("{} passed, {} failed, {} left out",
                     static_cast<std::int64_t>(report.cases.size()) - failed_cases(report), failed_cases(report),
                     report.left_out.size());
}

bool failed(const InstructionSummary& one) {
  return !one.fault.empty();
}

std::string instruction_counts(const CheckReport& report) {
  std::int64_t equal = 0, differ = 0, without = 0;
  for (const InstructionSummary& one : report.instructions)
    ++(failed(one) ? without : one.differing == 0 ? equal : differ);
  return fmt::format("{} equal to the virtual GPU in every bit, {} differ, {} without a result", equal, differ,
                     without);
}

std::string distance_text(const InstructionSummary& one) {
  return one.distance ? std::to_string(*one.distance) : "not defined";
}

std::string markdown_instructions(const CheckReport& report) {
  std::string text = fmt::format(
      "\n## Instructions\n\n{}. Each was executed with {} sets of operands: edges of the type, random bits, "
      "subnormals, "
      "ties. The distance is in steps from one number to the next representable one.\n",
      instruction_counts(report), kOperandSets);
  for (const InstructionSummary& one : report.instructions)
    if (failed(one)) text += fmt::format("\n**{}**\n\n```\n{}\n```\n", one.word, one.fault);
  const bool some = std::any_of(report.instructions.begin(), report.instructions.end(),
                                [](const InstructionSummary& one) { return one.differing > 0; });
  if (!some) return text;
  text += "\n" + markdown_head({"instruction", "sets that differ", "greatest distance", "example"});
  for (const InstructionSummary& one : report.instructions)
    if (one.differing > 0)
      text += fmt::format("| `{}` | {} | {} | {} |\n", one.word, one.differing, distance_text(one),
                          one.examples.empty() ? "" : markdown_cell(one.examples.front()));
  return text;
}

std::string gpu_and_date(const CheckReport& report) {
  std::string gpu;
  for (const char c : report.device.name) {
    const auto letter = static_cast<unsigned char>(c);
    if (std::isalnum(letter) != 0)
      gpu += static_cast<char>(std::tolower(letter));
    else if (!gpu.empty() && gpu.back() != '-')
      gpu += '-';
  }
  while (gpu.ends_with('-')) gpu.pop_back();
  return fmt::format("{}-{}", gpu.empty() ? "gpu" : gpu, report.date);
}

json::Value json_of(const ProbeRecord& probe) {
  json::Value value;
  value.set("id", probe.id);
  value.set("question", probe.question);
  value.set("experiment", probe.experiment);
  value.set("verdict", probe.verdict());
  json::Array parts;
  for (const PartRecord& part : probe.parts) {
    json::Value one;
    one.set("part", part.name);
    one.set("measured", part.measured);
    one.set("expected", part.expected);
    one.set("verdict", part.verdict);
    one.set("details", json::strings(part.details));
    parts.push_back(std::move(one));
  }
  value.set("parts", std::move(parts));
  return value;
}

}  // namespace

std::string ProbeRecord::verdict() const {
  for (const std::string_view weight : kWeights)
    if (std::any_of(parts.begin(), parts.end(), [&](const PartRecord& part) { return part.verdict == weight; }))
      return std::string(weight);
  return "failed";
}

bool CheckReport::passed() const {
  const bool asked = !cases.empty() || !bench.is_null() || !instructions.empty() ||
                     parts_with(*this, "as expected") + parts_with(*this, "settled") > 0;
  return asked && failed_cases(*this) == 0 && parts_with(*this, "failed") == 0 && parts_with(*this, "differs") == 0 &&
         std::none_of(instructions.begin(), instructions.end(), failed) && bench_passed;
}

std::string report_name(const CheckReport& report) {
  return "report-" + gpu_and_date(report);
}

std::string instruction_file_name(const CheckReport& report) {
  return "instructions-" + gpu_and_date(report) + ".txt";
}

std::string instruction_file(const CheckReport& report) {
  return fmt::format("# {}, {}\n{}", device_line(report.device), report.date, report.instruction_lines);
}

std::string today() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  return fmt::format("{:04}-{:02}-{:02}", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday);
}

std::string summary(const CheckReport& report) {
  std::string text = fmt::format("device  {}\n", device_line(report.device));
  if (!report.cases.empty() || !report.left_out.empty()) text += fmt::format("cases   {}\n", case_counts(report));
  if (!report.probes.empty()) text += fmt::format("probes  {}\n", probe_counts(report));
  if (!report.instructions.empty()) text += fmt::format("instr   {}\n", instruction_counts(report));
  if (!report.bench_markdown.empty())
    text += fmt::format("bench   {}\n", report.bench_passed ? "every target met" : "a target missed, or no result");
  for (const CaseRecord& record : report.cases)
    if (!record.passed)
      text += fmt::format("FAILED  {} {}: {}\n", record.kernel, record.name,
                          record.faults.empty() ? "" : first_line(record.faults.front()));
  for (const ProbeRecord& probe : report.probes)
    for (const PartRecord& part : probe.parts) {
      if (part.verdict == "failed")
        text += fmt::format("FAILED  {} {}: {}\n", probe.id, part.name, first_line(part.measured));
      if (part.verdict == "differs")
        text +=
            fmt::format("differs {} {}: {}, expected: {}\n", probe.id, part.name, part.measured, expected_text(part));
      if (part.verdict == "settled") text += fmt::format("settled {} {}: {}\n", probe.id, part.name, part.measured);
    }
  for (const InstructionSummary& one : report.instructions) {
    if (failed(one)) text += fmt::format("FAILED  {}: {}\n", one.word, first_line(one.fault));
    if (one.differing > 0)
      text += fmt::format("differs {}: in {} of {} sets, distance {}\n", one.word, one.differing, kOperandSets,
                          distance_text(one));
  }
  return text + (report.passed() ? "all passed\n" : "something failed\n");
}

json::Value json_report(const CheckReport& report) {
  json::Array cases, probes;
  for (const CaseRecord& record : report.cases) cases.push_back(to_json(record));
  for (const ProbeRecord& probe : report.probes) probes.push_back(json_of(probe));
  json::Value value;
  value.set("format", "kvscope gpu-check 1");
  value.set("date", report.date);
  value.set("device", to_json(report.device));
  value.set("model_choices", to_text(BoxSwitches{}));
  value.set("passed", report.passed());
  value.set("cases", std::move(cases));
  value.set("left_out", json::strings(report.left_out));
  value.set("probes", std::move(probes));
  json::Array differing;
  for (const InstructionSummary& one : report.instructions)
    if (failed(one) || one.differing > 0) differing.push_back(to_json(one));
  value.set("instructions", static_cast<std::int64_t>(report.instructions.size()));
  value.set("instructions_that_differ", std::move(differing));
  value.set("bench", report.bench);
  return value;
}

std::string write_report(const CheckReport& report, const std::string& folder) {
  const std::string name = report_name(report), instructions = instruction_file_name(report);
  std::vector<std::string> names{name + ".json", name + ".md"};
  if (!report.instructions.empty()) names.push_back(instructions);
  PendingFolder files(folder, names);
  write_file_atomically(files / (name + ".json"), json::dump(json_report(report)) + "\n");
  write_file_atomically(files / (name + ".md"), markdown_report(report));
  if (!report.instructions.empty()) write_file_atomically(files / instructions, instruction_file(report));
  files.commit();
  return (std::filesystem::path(folder) / name).string();
}

std::string markdown_report(const CheckReport& report) {
  std::string text = fmt::format("# {}, {}\n\n{}.\n", report.device.name, report.date, device_line(report.device));
  text += report.passed() ? "Everything passed.\n" : "Something failed.\n";
  if (!report.cases.empty()) {
    text += fmt::format("\n## Kernels\n\n{}.\n\n", case_counts(report));
    text += markdown_head({"kernel", "cases", "failed", "seconds"});
    for (std::size_t i = 0; i < report.cases.size();) {
      const std::string& kernel = report.cases[i].kernel;
      std::int64_t all = 0, failed = 0;
      double seconds = 0;
      for (; i < report.cases.size() && report.cases[i].kernel == kernel; ++i, ++all) {
        failed += report.cases[i].passed ? 0 : 1;
        seconds += report.cases[i].seconds;
      }
      text += fmt::format("| {} | {} | {} | {:.2f} |\n", kernel, all, failed, seconds);
    }
    for (const CaseRecord& record : report.cases) {
      if (record.passed) continue;
      text += fmt::format("\n**{} {}** ({})\n\n", record.kernel, record.name, record.what);
      for (const std::string& fault : record.faults) text += "```\n" + fault + "\n```\n";
    }
  }
  if (!report.left_out.empty()) {
    text += "\nLeft out:\n\n";
    for (const std::string& line : report.left_out) text += fmt::format("- {}\n", line);
  }
  if (!report.probes.empty()) {
    text += fmt::format("\n## Probes\n\n{}.\n", probe_counts(report));
    for (const ProbeRecord& probe : report.probes) {
      text += fmt::format("\n### {}: {}\n\nAsked by {}. **{}**\n\n", probe.id, probe.question, probe.experiment,
                          probe.verdict());
      text += markdown_head({"part", "measured", "expected", "verdict"});
      for (const PartRecord& part : probe.parts)
        text += fmt::format("| {} | {} | {} | {} |\n", markdown_cell(part.name), markdown_cell(part.measured),
                            markdown_cell(expected_text(part)), part.verdict);
      for (const PartRecord& part : probe.parts) {
        if (part.details.empty()) continue;
        text += fmt::format("\n{}:\n\n```\n", part.name);
        for (const std::string& line : part.details) text += line + "\n";
        text += "```\n";
      }
    }
  }
  if (!report.instructions.empty()) text += markdown_instructions(report);
  if (!report.bench_markdown.empty()) text += "\n## Times\n\n" + report.bench_markdown;
  return text;
}

}  // namespace kvscope::gpu
