#include "gpu/virtual/machine/diagnosis/suppressions.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::ptx {
namespace {

constexpr std::size_t kMostSuppressions = 10'000;

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// Whether the pattern matches the whole text; * is any characters. Linear in the product of the lengths.
bool matches_pattern(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

// "decode.cuh:134  <- decode_main.cu:22" -> "decode.cuh:134".
std::string_view innermost(std::string_view source) {
  return trimmed(source.substr(0, source.find("<-")));
}

}  // namespace

void Suppressions::add(std::string_view text, std::string_view what) {
  std::vector<Fault> faults;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = trimmed(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    if (line.empty() || line.starts_with('#')) continue;
    std::array<std::string_view, 3> parts;
    std::size_t count = 0;
    for (std::string_view rest = line;; ++count) {
      const std::size_t bar = rest.find('|');
      if (count < 3) parts[count] = trimmed(rest.substr(0, bar));
      if (bar == std::string_view::npos) break;
      rest.remove_prefix(bar + 1);
    }
    const std::string where = fmt::format("line {}", number);
    if (count != 2) {
      faults.push_back({where, fmt::format("has {} parts: write KIND | KERNEL | SOURCE", count + 1)});
    } else if (parts[0] != "*" && !report_kind_from_name(parts[0]) && !severity_from_name(parts[0])) {
      faults.push_back(
          {where,
           fmt::format("'{}' is no kind of report: write one as RACE_RW, a severity (note, warning, error), or *",
                       parts[0])});
    } else if (lines_.size() == kMostSuppressions) {
      faults.push_back({where, fmt::format("more than {} lines: join some with *", kMostSuppressions)});
      break;
    } else {
      lines_.push_back(
          {fmt::format("{}:{}", what, number), std::string(parts[0]), std::string(parts[1]), std::string(parts[2])});
    }
  }
  if (!faults.empty()) throw InputError(std::string(what), std::move(faults));
}

bool Suppressions::matches(const Report& report) {
  const std::vector<std::string> kernels = name_forms(report.kernel);
  for (Line& line : lines_) {
    if (line.kind != "*" && line.kind != name(report.kind) && line.kind != name(report.severity)) continue;
    const auto is_kernel = [&](const std::string& form) { return matches_pattern(line.kernel, form); };
    if (std::none_of(kernels.begin(), kernels.end(), is_kernel)) continue;
    const auto is_source = [&](const ReportParty& p) { return matches_pattern(line.source, innermost(p.source)); };
    if (report.parties.empty() ? !matches_pattern(line.source, "")
                               : std::none_of(report.parties.begin(), report.parties.end(), is_source)) {
      continue;
    }
    ++line.matched;
    return true;
  }
  return false;
}

std::int64_t Suppressions::matched() const {
  std::int64_t sum = 0;
  for (const Line& line : lines_) sum += line.matched;
  return sum;
}

std::vector<std::string> Suppressions::unmatched() const {
  std::vector<std::string> out;
  for (const Line& line : lines_) {
    if (line.matched == 0) out.push_back(line.place);
  }
  return out;
}

std::string suggested_suppressions(const std::vector<Report>& reports) {
  std::string out = "# kind | kernel | source\n";
  std::set<std::string> seen;
  for (const Report& report : reports) {
    const std::string_view source = report.parties.empty() ? "" : innermost(report.parties.front().source);
    const std::string line = fmt::format("{} | {} | {}\n", name(report.kind), demangled(report.kernel), source);
    if (seen.insert(line).second) out += line;
  }
  return out;
}

}  // namespace kvscope::ptx
