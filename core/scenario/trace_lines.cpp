#include "core/scenario/detail/trace_lines.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "core/base/file.h"
#include "core/base/numbers.h"

namespace kvscope {

TraceLines::TraceLines(std::string_view text) : rest_(without_byte_order_mark(text)) {
  const std::size_t last = rest_.find_last_not_of("\r\n\t ");
  rest_ = rest_.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

bool TraceLines::next(std::string_view& line) {
  while (!rest_.empty()) {
    const std::size_t end = rest_.find('\n');
    line = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    ++number_;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty()) {
      fault("empty between rows: remove the line");
    } else if (line.size() > kMaxTraceLine) {
      fault(fmt::format("{} bytes are more than the {} a row may have: is this a request trace?", line.size(),
                        kMaxTraceLine));
    } else {
      return true;
    }
  }
  return false;
}

void TraceLines::fault(std::string message) {
  faults_.add(fmt::format("line {}", number_), std::move(message));
}

void TraceLines::throw_faults(std::string_view source) {
  if (!faults_.empty()) throw InputError(source, faults_.take());
}

std::optional<std::int64_t> decimal(std::string_view text, std::int64_t low, std::int64_t high) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;  // a minus
  const auto value = whole_number<std::int64_t>(text);
  return value && *value >= low && *value <= high ? value : std::nullopt;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kShown = 40;
  std::string result = "\"";
  for (const char c : text.substr(0, kShown)) result += c >= 0x20 && c < 0x7f ? c : '?';
  return result + (text.size() > kShown ? "...\"" : "\"");
}

void start_at_earliest(std::vector<Request>& requests) {
  std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
  for (const Request& r : requests) earliest = std::min(earliest, r.arrival_us);
  for (Request& r : requests) r.arrival_us -= earliest;
}

}  // namespace kvscope
