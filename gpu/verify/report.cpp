#include "gpu/verify/report.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/xml.h"

namespace kvscope::gpu {
namespace {

// The results of one kernel together.
struct KernelSum {
  std::string kernel;
  std::int64_t cases = 0, failed = 0;
  double seconds = 0;
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
    sum.seconds += result.seconds;
    sum.costs += result.costs;
  }
  return sums;
}

// "1.25x ideal": how many times what is needed at least; nothing where none are needed.
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

json::Value costs_json(const Costs& costs) {
  json::Value value;
  value.set("instructions", costs.instructions);
  value.set("wavefronts", costs.wavefronts);
  value.set("ideal_wavefronts", costs.ideal_wavefronts);
  value.set("sectors", costs.sectors);
  value.set("ideal_sectors", costs.ideal_sectors);
  value.set("tma_bytes", costs.tma_bytes);
  return value;
}

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) text += (text.empty() ? "" : "\n") + line;
  return text;
}

// Each line of a fault behind `margin`.
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
  return failed == 0 ? fmt::format("all {} cases passed", report.results.size())
                     : fmt::format("{} of {} cases failed", failed, report.results.size());
}

}  // namespace

bool VerifyReport::passed() const {
  return failures(*this) == 0 && !results.empty();
}

std::string device_line(const DeviceInfo& device) {
  if (device.kind == "virtual") return fmt::format("virtual GPU, {}", device.architecture);
  return fmt::format("{}, {}, {} SMs, driver {}", device.name, device.architecture, device.multiprocessors,
                     device.driver);
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

json::Value json_report(const VerifyReport& report) {
  json::Value device;
  device.set("kind", report.device.kind);
  device.set("name", report.device.name);
  device.set("architecture", report.device.architecture);
  device.set("driver", report.device.driver);
  device.set("multiprocessors", static_cast<std::int64_t>(report.device.multiprocessors));
  device.set("memory_bytes", report.device.memory_bytes);
  json::Array cases;
  for (const CaseResult& result : report.results) {
    json::Value value;
    value.set("kernel", result.of->kernel);
    value.set("case", result.of->name);
    value.set("what", result.of->what);
    value.set("passed", result.passed());
    value.set("seconds", result.seconds);
    if (report.device.kind == "virtual") value.set("costs", costs_json(result.costs));
    value.set("faults", json::strings(result.faults));
    cases.push_back(std::move(value));
  }
  json::Value value;
  value.set("device", std::move(device));
  value.set("passed", report.passed());
  value.set("cases", std::move(cases));
  value.set("left_out", json::strings(report.left_out));
  return value;
}

std::string junit_report(const VerifyReport& report) {
  std::string xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
  xml += fmt::format("<testsuite name=\"kernels on {}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
                     xml_text(device_line(report.device)), report.results.size(), failures(report));
  for (const CaseResult& result : report.results) {
    xml += fmt::format("  <testcase classname=\"kvscope.kernels.{}\" name=\"{}\" time=\"{:.3f}\"",
                       xml_text(result.of->kernel), xml_text(result.of->name), result.seconds);
    xml += result.passed()
               ? "/>\n"
               : fmt::format(">\n    <failure message=\"{}\"/>\n  </testcase>\n", xml_text(joined(result.faults)));
  }
  return xml + "</testsuite>\n";
}

std::string markdown_report(const VerifyReport& report) {
  std::string text = fmt::format("Device: {}. {}.\n\n", device_line(report.device), verdict_line(report));
  text += "| kernel | cases | failed | seconds |\n|---|---|---|---|\n";
  for (const KernelSum& sum : by_kernel(report))
    text += fmt::format("| {} | {} | {} | {:.2f} |\n", sum.kernel, sum.cases, sum.failed, sum.seconds);
  for (const CaseResult& result : report.results) {
    if (result.passed()) continue;
    text += fmt::format("\n**{} {}** ({})\n\n", result.of->kernel, result.of->name, result.of->what);
    for (const std::string& fault : result.faults) text += "```\n" + fault + "\n```\n";
  }
  if (!report.left_out.empty()) text += "\nLeft out:\n\n";
  for (const std::string& line : report.left_out) text += fmt::format("- {}\n", line);
  return text;
}

}  // namespace kvscope::gpu
