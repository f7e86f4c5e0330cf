#include "gpu/verify/report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/report.h"

namespace kvscope::gpu {
namespace {

// The combined results of one kernel.
struct KernelSum {
  std::string kernel;
  std::int64_t cases = 0, failed = 0;
  Costs costs;
};

std::vector<KernelSum> by_kernel(const VerifyReport& report) {
  std::vector<KernelSum> sums;
  for (const CaseResult& result : report.results) {
    if (sums.empty() || sums.back().kernel != result.of->kernel)
      sums.push_back({.kernel = result.of->kernel, .costs = {}});
    KernelSum& sum = sums.back();
    ++sum.cases;
    sum.failed += result.passed() ? 0 : 1;
    sum.costs += result.costs;
  }
  return sums;
}

// "1.25x ideal": the ratio to the minimum needed; empty if the minimum is 0.
std::string times_ideal(const char* what, std::int64_t is, std::int64_t ideal) {
  if (ideal == 0) return is == 0 ? "" : fmt::format("   {} {}", what, is);
  return fmt::format("   {} {} ({:.2f}x ideal)", what, is, static_cast<double>(is) / static_cast<double>(ideal));
}

std::string costs_text(const Costs& costs) {
  std::string text = times_ideal("wavefronts", costs.wavefronts, costs.ideal_wavefronts);
  text += times_ideal("sectors", costs.sectors, costs.ideal_sectors);
  if (costs.tma_bytes > 0) text += fmt::format("   TMA bytes {}", costs.tma_bytes);
  return text;
}

// The text with each line indented by `margin`.
std::string indented(const std::string& text, const std::string& margin) {
  std::string out = margin;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += margin;
  }
  return out + '\n';
}

std::int64_t failures(const VerifyReport& report) {
  return std::count_if(report.results.begin(), report.results.end(), [](const CaseResult& r) { return !r.passed(); });
}

std::string verdict_line(const VerifyReport& report) {
  const std::int64_t failed = failures(report);
  if (failed == 0 && report.results.size() == 1) return "the case passed";
  return failed == 0 ? fmt::format("all {} cases passed", report.results.size())
                     : fmt::format("{} of {} cases failed", failed, report.results.size());
}

}  // namespace

bool VerifyReport::passed() const {
  return failures(*this) == 0 && !results.empty();
}

std::string text_report(const VerifyReport& report) {
  std::string text = fmt::format("device  {}\n\n", device_line(report.device));
  for (const KernelSum& sum : by_kernel(report))
    text += fmt::format("{:<18} {:>3} case{}  {}{}\n", sum.kernel, sum.cases, sum.cases == 1 ? " " : "s",
                        sum.failed == 0 ? "passed" : "FAILED", costs_text(sum.costs));
  for (const CaseResult& result : report.results) {
    if (result.passed()) continue;
    text += fmt::format("\nFAILED  {} {}: {}\n", result.of->kernel, result.of->name, result.of->what);
    for (const std::string& fault : result.faults) text += indented(fault, "  ");
  }
  if (!report.left_out.empty()) text += "\n";
  for (const std::string& line : report.left_out) text += fmt::format("left out  {}\n", line);
  return text + fmt::format("\n{}\n", verdict_line(report));
}

CaseRecord record_of(const CaseResult& result) {
  return {.kernel = result.of->kernel,
          .name = result.of->name,
          .what = result.of->what,
          .passed = result.passed(),
          .seconds = result.seconds,
          .faults = result.faults};
}

json::Value to_json(const CaseRecord& record, const Costs* costs) {
  json::Value value;
  value.set("kernel", record.kernel);
  value.set("case", record.name);
  value.set("what", record.what);
  value.set("passed", record.passed);
  value.set("seconds", record.seconds);
  if (costs != nullptr) value.set("costs", to_json(*costs));
  value.set("faults", json::strings(record.faults));
  return value;
}

json::Value json_report(const VerifyReport& report) {
  json::Array cases;
  for (const CaseResult& result : report.results)
    cases.push_back(to_json(record_of(result), report.device.kind == "virtual" ? &result.costs : nullptr));
  json::Value value;
  value.set("device", to_json(report.device));
  if (!report.sum.empty()) value.set("sum", report.sum);
  value.set("passed", report.passed());
  value.set("cases", std::move(cases));
  value.set("left_out", json::strings(report.left_out));
  return value;
}

std::string junit_report(const VerifyReport& report) {
  JUnitSuite suite{.name = "kernels on " + device_line(report.device), .cases = {}, .output = {}};
  for (const CaseResult& result : report.results)
    suite.cases.push_back(
        {.class_name = "kvscope.kernels." + result.of->kernel,
         .name = result.of->name,
         .seconds = result.seconds,
         .failure = result.passed() ? std::nullopt : std::optional(fmt::format("{}", fmt::join(result.faults, "\n")))});
  return to_junit(suite);
}

}  // namespace kvscope::gpu
