#include "core/scenario/import_csv.h"

#include <fmt/format.h>

#include <array>
#include <chrono>
#include <optional>
#include <string>

#include "core/base/checked.h"
#include "core/scenario/detail/trace_lines.h"

namespace kvscope {
namespace {

constexpr std::string_view kHeader = "TIMESTAMP,ContextTokens,GeneratedTokens";

// Removes `digits` digits from the front of `text` and returns them as a number in [low, high].
std::optional<std::int64_t> take(std::string_view& text, std::size_t digits, std::int64_t low, std::int64_t high) {
  if (text.size() < digits) return std::nullopt;
  const auto value = decimal(text.substr(0, digits), low, high);
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// "2023-11-16 18:17:03.9799600" -> nanoseconds since 1970; empty when it is not a time between 1970 and 2261.
std::optional<std::int64_t> parse_time(std::string_view text) {
  const auto year = take(text, 4, 1970, 2261);
  if (!year || !take(text, '-')) return std::nullopt;
  const auto month = take(text, 2, 1, 12);
  if (!month || !take(text, '-')) return std::nullopt;
  const auto day = take(text, 2, 1, 31);
  if (!day || !(take(text, ' ') || take(text, 'T'))) return std::nullopt;
  const auto hour = take(text, 2, 0, 23);
  if (!hour || !take(text, ':')) return std::nullopt;
  const auto minute = take(text, 2, 0, 59);
  if (!minute || !take(text, ':')) return std::nullopt;
  const auto second = take(text, 2, 0, 59);
  if (!second) return std::nullopt;

  std::int64_t nanoseconds = 0;
  if (take(text, '.')) {
    std::size_t digits = 0;
    while (digits < text.size() && text[digits] >= '0' && text[digits] <= '9') ++digits;
    if (digits < 1 || digits > 9) return std::nullopt;
    nanoseconds = *take(text, digits, 0, 999'999'999);
    for (std::size_t i = digits; i < 9; ++i) nanoseconds *= 10;
  }

  std::int64_t offset_minutes = 0;
  if (!text.empty() && !take(text, 'Z')) {
    const bool east = take(text, '+');
    if (!east && !take(text, '-')) return std::nullopt;
    const auto hours = take(text, 2, 0, 23);
    if (!hours || !take(text, ':')) return std::nullopt;
    const auto minutes = take(text, 2, 0, 59);
    if (!minutes) return std::nullopt;
    offset_minutes = (east ? 1 : -1) * (*hours * 60 + *minutes);
  }
  if (!text.empty()) return std::nullopt;

  const std::chrono::year_month_day date{std::chrono::year(static_cast<int>(*year)),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day))};
  if (!date.ok()) return std::nullopt;
  const std::int64_t days = std::chrono::sys_days(date).time_since_epoch().count();
  const std::int64_t seconds = ((days * 24 + *hour) * 60 + *minute - offset_minutes) * 60 + *second;
  return seconds * 1'000'000'000 + nanoseconds;
}

std::optional<Request> parse_row(std::string_view line, TraceLines& lines) {
  std::array<std::string_view, 3> cells;
  std::size_t count = 0;
  for (std::string_view rest = line;; ++count) {
    const std::size_t comma = rest.find(',');
    if (count < cells.size()) cells[count] = rest.substr(0, comma);
    if (comma == std::string_view::npos) break;
    rest.remove_prefix(comma + 1);
  }
  ++count;
  if (count != cells.size()) {
    lines.fault(fmt::format("{} columns instead of 3 ({}): correct or remove the row", count, kHeader));
    return std::nullopt;
  }
  const auto time = parse_time(cells[0]);
  const auto prompt = decimal(cells[1], 1, kMaxTraceTokens);
  const auto generate = decimal(cells[2], 0, kMaxTraceTokens);
  if (!time) {
    lines.fault(
        fmt::format("TIMESTAMP {} is not a time between 1970 and 2261 such as 2023-11-16 18:17:03.9799600: correct or "
                    "remove the row",
                    in_quotes(cells[0])));
  }
  const auto number_fault = [&](std::string_view column, std::string_view cell, int low) {
    lines.fault(fmt::format("{} {} is not an integer in [{}, {}]: correct or remove the row", column, in_quotes(cell),
                            low, kMaxTraceTokens));
  };
  if (!prompt) number_fault("ContextTokens", cells[1], 1);
  if (!generate) number_fault("GeneratedTokens", cells[2], 0);
  if (!time || !prompt || !generate) return std::nullopt;
  if (*prompt + *generate > kMaxTraceTokens) {
    lines.fault(fmt::format("{} context and {} generated tokens are together more than {}: correct or remove the row",
                            *prompt, *generate, kMaxTraceTokens));
    return std::nullopt;
  }
  Request request;
  request.arrival_us = *time;  // [ns] until all rows are read
  request.prompt_tokens = *prompt;
  request.generate_tokens = *generate;
  return request;
}

}  // namespace

std::vector<Request> import_csv(std::string_view text, std::string_view source, std::int64_t limit) {
  TraceLines lines(text);
  std::vector<Request> requests;
  std::string_view line;
  if (!lines.next(line)) {
    lines.throw_faults(source);
    throw InputError(source, "", fmt::format("no rows: the first line should be {}", kHeader));
  }
  if (line != kHeader) {
    lines.fault(fmt::format("the header is {}, not {}: is this a trace of another kind?", in_quotes(line), kHeader));
    lines.throw_faults(source);
  }
  while ((limit == 0 || static_cast<std::int64_t>(requests.size()) < limit) && lines.next(line)) {
    if (static_cast<std::int64_t>(requests.size()) == kMaxTraceRows) {
      lines.fault(fmt::format("more than {} rows: set a limit", kMaxTraceRows));
      break;
    }
    if (auto request = parse_row(line, lines)) requests.push_back(std::move(*request));
  }
  lines.throw_faults(source);
  if (requests.empty()) throw InputError(source, "", "no rows after the header: there is nothing to replay");
  start_at_earliest(requests);
  for (Request& request : requests) request.arrival_us /= 1000;
  return requests;
}

}  // namespace kvscope
