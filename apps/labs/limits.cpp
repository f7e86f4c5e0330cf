#include "apps/labs/limits.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/errors.h"

namespace kvscope::labs {
namespace {

struct LimitEntry {
  std::string_view option;
  bool of_cpp, of_cuda;
  std::int64_t (*value)(const LabLimits&);
};

constexpr LimitEntry kLimits[] = {
    {"--max-instructions", false, true, [](const LabLimits& l) { return l.launch.instructions; }},
    {"--max-memory", false, true, [](const LabLimits& l) { return l.launch_memory; }},
    {"--max-local", false, true, [](const LabLimits& l) { return l.launch.local_bytes; }},
    {"--max-printed", false, true, [](const LabLimits& l) { return l.launch.printed_bytes; }},
    {"--max-heap", false, true, [](const LabLimits& l) { return l.launch.heap_bytes; }},
    {"--max-mallocs", false, true, [](const LabLimits& l) { return l.launch.heap_blocks; }},
    {"--max-copies", false, true, [](const LabLimits& l) { return l.launch.copies; }},
    {"--max-ptx", false, true, [](const LabLimits& l) { return l.ptx_bytes; }},
    {"--max-run-time", true, false, [](const LabLimits& l) { return l.run_seconds; }},
    {"--max-run-memory", true, false, [](const LabLimits& l) { return l.run_memory; }},
    {"--max-run-output", true, false, [](const LabLimits& l) { return l.run_output_bytes; }},
    {"--max-compile-time", true, true, [](const LabLimits& l) { return l.compile_seconds; }},
};

}  // namespace

std::vector<LimitValue> limit_values(const LabLimits& limits, LabKind kind) {
  std::vector<LimitValue> values;
  for (const LimitEntry& entry : kLimits) {
    const bool applies = (kind == LabKind::cpp && entry.of_cpp) || (kind == LabKind::cuda && entry.of_cuda);
    if (applies) values.push_back({std::string(entry.option), entry.value(limits)});
  }
  return values;
}

std::vector<std::string> limit_options() {
  std::vector<std::string> options;
  for (const LimitEntry& entry : kLimits) options.emplace_back(entry.option);
  return options;
}

void require_limit_of(const Lab& lab, const std::string& option) {
  const std::vector<LimitValue> values = limit_values({}, lab.kind);
  if (std::ranges::find(values, option, &LimitValue::option) != values.end()) return;
  std::vector<std::string> names;
  for (const LimitValue& value : values) names.push_back(value.option);
  throw InputError("command line", option,
                   fmt::format("has no effect in lab {}, of kind {}: {}", lab.id(), kind_name(lab.kind),
                               names.empty() ? "no submitted code runs, so the lab has no limits"
                                             : fmt::format("its limits are {}", fmt::join(names, ", "))));
}

std::string changed_limits(std::span<const LimitValue> values) {
  const LabLimits defaults;
  std::string text;
  for (const LimitValue& value : values) {
    const auto* const entry = std::ranges::find(kLimits, value.option, &LimitEntry::option);
    if (entry != std::end(kLimits) && entry->value(defaults) == value.value) continue;
    text += fmt::format("{}{} {}", text.empty() ? "" : " ", value.option, value.value);
  }
  return text;
}

std::string larger_limit(std::string_view option) {
  return option.empty() ? std::string() : fmt::format("; a larger limit: {}", option);
}

}  // namespace kvscope::labs
