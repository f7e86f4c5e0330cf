#include "viz/playback/breakpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "core/base/errors.h"
#include "core/base/nearest_name.h"
#include "core/base/numbers.h"
#include "core/trace/event_text.h"

namespace kvscope::viz {
namespace {

constexpr std::string_view kBlank = " \t\r\n";
constexpr std::string_view kOperator = "=!<>";
constexpr std::array<std::string_view, 6> kCompare{"=", "!=", "<", "<=", ">", ">="};  // by Compare

std::optional<Compare> find_compare(std::string_view text) {
  if (text == "==") return Compare::equal;  // the spelling of C++ and Python
  const auto found = std::find(kCompare.begin(), kCompare.end(), text);
  if (found == kCompare.end()) return std::nullopt;
  return static_cast<Compare>(found - kCompare.begin());
}

// Reads a text from front to back.
class Text {
 public:
  explicit Text(std::string_view text) : left_(text) { skip_blanks(); }
  [[nodiscard]] bool empty() const { return left_.empty(); }
  std::string_view until(std::string_view stop) { return take(std::min(left_.find_first_of(stop), left_.size())); }
  std::string_view all_of(std::string_view set) { return take(std::min(left_.find_first_not_of(set), left_.size())); }

 private:
  void skip_blanks() { left_.remove_prefix(std::min(left_.find_first_not_of(kBlank), left_.size())); }
  std::string_view take(std::size_t count) {
    const std::string_view taken = left_.substr(0, count);
    left_.remove_prefix(count);
    skip_blanks();
    return taken;
  }
  std::string_view left_;
};

const std::vector<std::string_view>& kinds() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (std::size_t kind = 0; kind < trace::kKinds; ++kind) all.push_back(trace::kind_name(kind));
    return all;
  }();
  return names;
}

}  // namespace

Breakpoint parse_breakpoint(std::string_view text) {
  std::vector<Fault> faults;
  const auto fault = [&](std::string_view where, std::string message) {
    faults.push_back({where.empty() ? std::string() : fmt::format("'{}'", where), std::move(message)});
  };
  Breakpoint breakpoint;
  Text left(text);
  std::string_view kind_text = left.until(" \t\r\n=!<>");
  if (kind_text == "off") {
    breakpoint.enabled = false;
    kind_text = left.until(" \t\r\n=!<>");
  }
  const std::optional<std::size_t> kind = trace::find_kind(kind_text);
  if (kind_text.empty()) {
    fault("", "must begin with the kind of event to stop at, such as block_evicted or step_ended free_blocks<4");
  } else if (!kind) {
    fault(kind_text, "is not a kind of event" + suggest_name(kind_text, kinds()));
  }
  breakpoint.kind = kind.value_or(0);
  while (!left.empty()) {
    const std::string_view name = left.until(" \t\r\n=!<>");
    const std::string_view compare_text = left.all_of(kOperator);
    const std::string_view number_text = compare_text.empty() ? std::string_view() : left.until(kBlank);
    const auto compare = find_compare(compare_text);
    const auto number = whole_number<std::int64_t>(number_text);
    Condition condition;
    if (kind) {
      const auto names = trace::field_names(*kind);
      const auto field = std::find(names.begin(), names.end(), name);
      condition.field = static_cast<std::size_t>(field - names.begin());
      if (name.empty()) {
        fault(compare_text, "has no field name before it");
      } else if (field == names.end()) {
        fault(name, fmt::format("is not a field of {}{}", kind_text, suggest_name(name, names)));
      }
    }
    if (!compare) {
      fault(fmt::format("{}{}", name, compare_text), "must be followed by an operator (= != < <= > >=) and a number");
    } else if (!number) {
      fault(fmt::format("{}{}{}", name, compare_text, number_text),
            number_text.empty() ? std::string("has no number after the operator")
                                : fmt::format("{} is not a whole number of 64 bits", number_text));
    }
    condition.compare = compare.value_or(Compare::equal);
    condition.value = number.value_or(0);
    breakpoint.conditions.push_back(condition);
  }
  if (!faults.empty()) throw InputError("breakpoint", std::move(faults));
  return breakpoint;
}

std::string to_text(const Breakpoint& breakpoint) {
  std::string text(breakpoint.enabled ? "" : "off ");
  text += trace::kind_name(breakpoint.kind);
  const auto names = trace::field_names(breakpoint.kind);
  for (const Condition& condition : breakpoint.conditions) {
    text += fmt::format(" {}{}{}", names[condition.field], kCompare[static_cast<std::size_t>(condition.compare)],
                        condition.value);
  }
  return text;
}

bool matches(const Breakpoint& breakpoint, const trace::Event& event) {
  if (!breakpoint.enabled || event.index() != breakpoint.kind) return false;
  if (breakpoint.conditions.empty()) return true;
  std::array<std::int64_t, trace::kMaxFields> values{};
  const std::size_t count = trace::field_values(event, values);
  return std::all_of(breakpoint.conditions.begin(), breakpoint.conditions.end(), [&](const Condition& condition) {
    KVSCOPE_ASSERT(condition.field < count);
    const std::int64_t value = values[condition.field];
    switch (condition.compare) {
      case Compare::equal:
        return value == condition.value;
      case Compare::not_equal:
        return value != condition.value;
      case Compare::less:
        return value < condition.value;
      case Compare::less_equal:
        return value <= condition.value;
      case Compare::greater:
        return value > condition.value;
      case Compare::greater_equal:
        return value >= condition.value;
    }
    return false;
  });
}

}  // namespace kvscope::viz
