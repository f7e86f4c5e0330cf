#include "apps/labs/report_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <map>
#include <regex>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::labs {

std::string with_declared_names(std::string_view text) {
  constexpr std::size_t kLongestName = 200;
  const auto in_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::string result;
  while (!text.empty()) {
    const std::size_t begin = std::min(text.find("_Z"), text.size());
    result += text.substr(0, begin);
    text.remove_prefix(begin);
    const auto end = static_cast<std::size_t>(std::ranges::find_if_not(text, in_name) - text.begin());
    const std::string name(text.substr(0, end));
    result += end > kLongestName ? name : ptx::declared_name(name);
    text.remove_prefix(end);
  }
  return result;
}

int student_line(std::string_view places) {
  constexpr std::string_view kInto = " <- ";
  std::vector<std::pair<std::string_view, int>> found;  // file and line, the innermost first
  while (!places.empty()) {
    const std::size_t end = std::min(places.find(kInto), places.size());
    const std::string_view place = places.substr(0, end);
    const std::size_t colon = std::min(place.rfind(':'), place.size());
    int line = -1;
    if (colon < place.size()) std::from_chars(place.data() + colon + 1, place.data() + place.size(), line);
    found.emplace_back(place.substr(0, colon), line);
    places.remove_prefix(std::min(end + kInto.size(), places.size()));
  }
  for (const auto& [file, line] : found) {
    if (file == found.back().first) return line;
  }
  return -1;
}

namespace {

std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return lines;
}

// Without registers, lines of the PTX, instructions that the labs' headers lack, and options that `lab check` does not
// have: it has those of limits. PTX of a student may have names of any length: the rest of a long text is cut off.
std::string student_text(const std::string& text) {
  constexpr std::size_t kLongest = 4000;
  static const std::regex operands("(?: (?:p|_),)? \\[%r\\w*(?:\\+\\d+)?\\](?:, %\\w+)*"), ptx_line(" \\(line \\d+\\)"),
      option("[;:] --(?!max-)[a-z-]+[^\\n]*"), inval("\\n *execute mbarrier\\.inval[^\\n]*");
  std::string result = text.substr(0, kLongest);
  for (const std::regex* const part : {&operands, &ptx_line, &option, &inval})
    result = std::regex_replace(result, *part, "");
  return with_declared_names(result);
}

// What an arrival barrier waits for, from the text of a deadlock.
std::string missing_arrivals(const std::string& message) {
  static const std::regex state(
      "mbarrier (\\S+) \\+ (\\d+): parity \\d+, phase \\d+, pending (\\d+) of (\\d+), tx (-?\\d+)");
  std::smatch found;
  if (!std::regex_search(message, found, state)) return {};
  const std::string name = found[2] == "0" ? found[1].str() : fmt::format("{} + {}", found[1].str(), found[2].str());
  if (found[3] != "0" && found[4] != "1") {
    return fmt::format("{} waits for {} arrivals in a phase, and {} of them are missing", name, found[4].str(),
                       found[3].str());
  }
  if (found[3] != "0") return fmt::format("no thread has arrived at {} in this phase", name);
  if (found[5] != "0") return fmt::format("{} waits for {} more bytes than the copies bring", name, found[5].str());
  return {};
}

std::string headline(const ptx::Report& report) {
  const std::string message = student_text(report.message);
  if (report.kind == ptx::ReportKind::deadlock) {
    const std::string missing = missing_arrivals(message);
    return "threads wait for ever" + (missing.empty() ? "" : ": " + missing);
  }
  // Lanes that met at a shuffle: the order that is missing is one of memory, and other warps may be concerned too.
  if (message.starts_with("only "))
    return "no barrier is between them: __syncthreads orders all threads of the CTA, __syncwarp those of one warp";
  const std::string first = message.substr(0, message.find('\n'));
  // Between CTAs the hint names the side whose fence is missing.
  if (report.hint.starts_with("the half of")) return first + "; " + report.hint.substr(0, report.hint.find(':'));
  if (report.kind == ptx::ReportKind::runaway) {
    return "the kernel executes more instructions than the lab allows: " + first + larger_limit("--max-instructions");
  }
  if (report.kind == ptx::ReportKind::limit && !report.hint.empty()) return first + ": " + student_text(report.hint);
  return first;
}

std::string trimmed_source_line(const std::string& source, int line) {
  const std::vector<std::string> lines = lines_of(source);
  if (line < 1 || static_cast<std::size_t>(line) > lines.size()) return {};
  const std::string& text = lines[static_cast<std::size_t>(line - 1)];
  const std::size_t begin = text.find_first_not_of(" \t");
  constexpr std::size_t kMost = 56;
  if (begin == std::string::npos) return {};
  return text.size() - begin > kMost ? text.substr(begin, kMost) + "..." : text.substr(begin);
}

}  // namespace

const ptx::Report* shown_report(const KernelRun& run) {
  if (run.reports.empty()) return nullptr;
  const auto error = std::ranges::find(run.reports, ptx::Severity::error, &ptx::Report::severity);
  return error == run.reports.end() ? &run.reports.front() : &*error;
}

std::string fault_of(const KernelRun& run) {
  if (!run.failure.empty()) return "the kernel cannot be launched";
  const ptx::Report* const report = shown_report(run);
  if (report == nullptr) return run.finished ? "" : "the kernel did not finish";
  std::vector<int> lines;
  for (const ptx::ReportParty& party : report->parties) {
    const int line = student_line(party.source);
    if (line >= 0 && std::ranges::find(lines, line) == lines.end()) lines.push_back(line);
  }
  const std::string kind(ptx::name(report->kind));
  std::string text = kind.starts_with("RACE") ? "RACE" : kind;
  for (std::size_t i = 0; i < lines.size(); ++i) text += fmt::format("{} line {}", i == 0 ? "" : " and", lines[i]);
  const std::string words = headline(*report);
  return words.empty() ? text : text + ": " + words;
}

std::string report_case(const KernelRun& run) {
  if (!run.failure.empty()) return run.failure;
  const ptx::Report* const report = shown_report(run);
  if (report == nullptr) return {};
  // A deadlock has the same lines for each warp: they are shown once.
  static const std::regex warp("^ *(waits +)?warp \\d+ lanes [0-9a-f]{8} *");
  std::vector<std::string> shown, seen;
  for (const std::string& line : lines_of(student_text(ptx::to_text(*report)))) {
    std::string key = report->kind == ptx::ReportKind::deadlock ? std::regex_replace(line, warp, "$1") : line;
    if (std::ranges::find(seen, key) != seen.end()) continue;
    seen.push_back(std::move(key));
    shown.push_back(line);
  }
  return fmt::format("{}", fmt::join(shown, "\n"));
}

std::string sector_lines(const KernelRun& run, std::size_t most) {
  std::map<int, std::int64_t> by_line;
  for (const ptx::LineCounts& one : run.lines) {
    if (one.counts.sectors > 0) by_line[student_line(one.source)] += one.counts.sectors;
  }
  std::vector<std::pair<int, std::int64_t>> lines(by_line.begin(), by_line.end());
  std::ranges::stable_sort(lines, std::ranges::greater(), &std::pair<int, std::int64_t>::second);
  lines.resize(std::min(lines.size(), most));
  std::string text = "the lines with the most sectors:";
  for (const auto& [line, sectors] : lines)
    text += fmt::format("\nline {}: {} sectors   {}", line, sectors, trimmed_source_line(run.source, line));
  return text;
}

CasePicture report_picture(const KernelRun& run) {
  const ptx::Report* const report = shown_report(run);
  if (report == nullptr || report->parties.size() != 2) return {};
  const bool race = std::string(ptx::name(report->kind)).starts_with("RACE");
  if (!race && report->kind != ptx::ReportKind::proxy_fence) return {};
  PictureGrid grid{"time runs downward; the red line is the order that is missing", {}, {}};
  if (report->address.known && !report->address.symbol.empty()) {
    grid.title = fmt::format("{} bytes at {} + {}; ", report->address.bytes,
                             with_declared_names(report->address.symbol), report->address.offset) +
                 grid.title;
  }
  for (std::size_t i = 0; i < 2; ++i) {
    const ptx::ReportParty& party = report->parties[i];
    grid.columns.push_back(with_declared_names(party.actor));
    const int line = student_line(party.source);
    const std::string quoted = trimmed_source_line(run.source, line);
    PictureRow row{i == 0 ? "first" : "then", {}};
    row.cells.resize(2, PictureCell{"", CellMark::quiet});
    row.cells[i] = {line < 0 ? party.action : fmt::format("{}, line {}", party.action, line), CellMark::wrong, quoted};
    grid.rows.push_back(std::move(row));
    if (i == 0) grid.rows.push_back({"", {{"", CellMark::quiet}, {"", CellMark::quiet}}});
  }
  grid.links.push_back({0, 0, 2, 1, race ? "no order" : "no proxy fence"});
  return {{std::move(grid)}};
}

}  // namespace kvscope::labs
