#include "core/scenario/import_jsonl.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/scenario/detail/trace_lines.h"

namespace kvscope {
namespace {

constexpr std::int64_t kMaxMilliseconds = 9'000'000'000'000;  // the year 2255, if they count from 1970
constexpr std::int64_t kMaxHashId = static_cast<std::int64_t>(kLastListedContent);  // the imported quarter (scenario.h)

std::string shown_value(const json::Value& value) {
  if (value.is_array()) return "an array";
  if (value.is_object()) return "an object";
  if (const std::string* text = value.as_string()) return in_quotes(*text);
  return json::dump(value, -1);
}

class RowParser {
 public:
  RowParser(const json::Value& row, TraceLines& lines) : row_(row), lines_(lines) {}

  std::optional<Request> parse() {
    if (!row_.is_object()) {
      fault(fmt::format("{} instead of an object: correct or remove the row", shown_value(row_)));
      return std::nullopt;
    }
    Request request;
    const auto time = milliseconds();
    const auto prompt = integer("input_length", 1, kMaxTraceTokens);
    const auto generate = integer("output_length", 0, kMaxTraceTokens);
    if (time) request.arrival_us = *time;
    if (prompt) request.prompt_tokens = *prompt;
    if (generate) request.generate_tokens = *generate;
    if (prompt && generate && *prompt + *generate > kMaxTraceTokens) {
      fault(fmt::format("input_length {} and output_length {} are together more than {}: correct or remove the row",
                        *prompt, *generate, kMaxTraceTokens));
    }
    if (prompt) content(request);
    if (bad_) return std::nullopt;
    return request;
  }

 private:
  void fault(std::string message) {
    bad_ = true;
    lines_.fault(std::move(message));
  }

  const json::Value* find(std::string_view key) {
    const json::Value* value = row_.find(key);
    if (value == nullptr) fault(fmt::format("{} is missing: correct or remove the row", key));
    return value;
  }

  std::optional<std::int64_t> integer(std::string_view key, std::int64_t low, std::int64_t high) {
    const json::Value* value = find(key);
    if (value == nullptr) return std::nullopt;
    const std::int64_t* number = value->as_i64();
    if (number != nullptr && *number >= low && *number <= high) return *number;
    fault(fmt::format("{} {} is not an integer in [{}, {}]: correct or remove the row", key, shown_value(*value), low,
                      high));
    return std::nullopt;
  }

  std::optional<std::int64_t> milliseconds() {  // [us]
    const json::Value* value = find("timestamp");
    if (value == nullptr) return std::nullopt;
    const double ms = value->is_number() ? value->number() : -1;
    if (ms >= 0 && ms <= static_cast<double>(kMaxMilliseconds)) {
      const std::int64_t* whole = value->as_i64();
      return whole != nullptr ? *whole * 1000 : static_cast<std::int64_t>(ms * 1000);
    }
    fault(fmt::format("timestamp {} is not a number of milliseconds in [0, {}]: correct or remove the row",
                      shown_value(*value), kMaxMilliseconds));
    return std::nullopt;
  }

  void content(Request& request) {
    const json::Value* value = row_.find("hash_ids");
    if (value == nullptr) return;
    const json::Array* ids = value->as_array();
    if (ids == nullptr) {
      fault(fmt::format("hash_ids is {}, not an array: correct or remove the row", shown_value(*value)));
      return;
    }
    const std::int64_t wanted = ceil_div(request.prompt_tokens, kHashedTokens);
    const auto given = static_cast<std::int64_t>(ids->size());
    if (given != wanted) {
      fault(fmt::format("{} hash_ids cover at most {} tokens, but input_length is {}: give {}", given,
                        given * kHashedTokens, request.prompt_tokens, wanted));
      return;
    }
    request.content.reserve(ids->size());
    std::int64_t rest = request.prompt_tokens;
    for (const json::Value& id : *ids) {
      const std::int64_t* number = id.as_i64();
      if (number == nullptr || *number < 0 || *number > kMaxHashId) {
        fault(fmt::format("hash_ids[{}] {} is not an integer in [0, {}]: correct or remove the row",
                          request.content.size(), shown_value(id), kMaxHashId));
        return;
      }
      request.content.push_back(
          {kImportedContent + static_cast<std::uint64_t>(*number), std::min(rest, kHashedTokens)});
      rest -= kHashedTokens;
    }
  }

  const json::Value& row_;
  TraceLines& lines_;
  bool bad_ = false;
};

// The parser reports every line as line 1; replace it by the number in the file.
std::optional<json::Value> parse_line(std::string_view line, TraceLines& lines) {
  try {
    return json::parse(line, "row");
  } catch (const InputError& error) {
    const Fault& fault = error.faults().front();
    constexpr std::string_view kFirst = "line 1, ";
    std::string_view where = fault.where;
    if (where.starts_with(kFirst)) where.remove_prefix(kFirst.size());
    lines.fault(fmt::format("{}: {}", where, fault.message));
    return std::nullopt;
  }
}

}  // namespace

std::vector<Request> import_jsonl(std::string_view text, std::string_view source, std::int64_t limit) {
  TraceLines lines(text);
  std::vector<Request> requests;
  std::int64_t spans = 0;
  std::string_view line;
  while ((limit == 0 || static_cast<std::int64_t>(requests.size()) < limit) && lines.next(line)) {
    if (static_cast<std::int64_t>(requests.size()) == kMaxTraceRows) {
      lines.fault(fmt::format("more than {} rows: set a limit", kMaxTraceRows));
      break;
    }
    const auto row = parse_line(line, lines);
    if (!row) continue;
    auto request = RowParser(*row, lines).parse();
    if (!request) continue;
    spans += static_cast<std::int64_t>(request->content.size());
    if (spans > kMaxTraceSpans) {
      lines.fault(fmt::format("more than {} hash_ids in all: set a limit", kMaxTraceSpans));
      break;
    }
    requests.push_back(std::move(*request));
  }
  lines.throw_faults(source);
  if (requests.empty()) {
    throw InputError(source, "",
                     "no rows: every line should be an object with timestamp, input_length, output_length and "
                     "hash_ids");
  }
  start_at_earliest(requests);
  return requests;
}

}  // namespace kvscope
