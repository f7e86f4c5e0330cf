#include "gpu/virtual/machine/warp/detail/builtins.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>

#include "core/base/errors.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/detail/calls.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"

namespace kvscope::ptx {
namespace {

// Argument `i` of a call in one lane; 0 if it is not passed.
std::uint64_t argument(Exec& exec, const CallSite& site, std::size_t i, int lane) {
  if (i >= site.arguments.size()) return 0;
  const CallValue& v = site.arguments[i];
  const std::byte* from = v.param >= kBodyParams ? call_param(exec, lane, v.param) : nullptr;
  if (from == nullptr && v.reg != kNoRegister) from = exec.registers + v.reg + lane * v.bytes;
  std::uint64_t out = 0;
  if (from != nullptr) std::memcpy(&out, from, static_cast<std::size_t>(std::min<std::int64_t>(v.bytes, 8)));
  return out;
}

void give_back(Exec& exec, const CallSite& site, int lane, std::uint64_t value) {
  if (site.results.empty()) return;
  const CallValue& v = site.results[0];
  std::byte* to = v.param >= kBodyParams ? call_param(exec, lane, v.param) : nullptr;
  if (to == nullptr && v.reg != kNoRegister) to = exec.registers + v.reg + lane * v.bytes;
  if (to != nullptr) std::memcpy(to, &value, static_cast<std::size_t>(std::min<std::int64_t>(v.bytes, 8)));
}

// The number of values that a format consumes: the return value of the device's vprintf.
std::uint64_t conversions_of(std::string_view format) {
  std::uint64_t out = 0;
  for (std::size_t i = 0; i + 1 < format.size(); ++i) {
    if (format[i] != '%') continue;
    if (format[i + 1] == '%') {
      ++i;
    } else {
      ++out;
    }
  }
  return out;
}

Report of_kind(ReportKind kind, std::string message) {
  Report r;
  r.kind = kind;
  r.severity = severity_of(kind);
  r.message = std::move(message);
  return r;
}

// A pointer of a printf that leads to no memory.
struct WildPointer {
  std::string_view of;  // what printf reads there
  std::uint64_t address = 0;
};

bool is_wild(const Exec& exec, int lane, std::uint64_t address) {
  return bytes_at(exec, lane, address, 1).empty();
}

// Remembers the first %s whose pointer is wild. A null pointer is printed as "(null)", as on a GPU.
class LaneStrings final : public PrintfStrings {
 public:
  LaneStrings(const Exec& exec, int lane) : exec_(exec), lane_(lane) {}
  [[nodiscard]] std::string at(std::uint64_t address) const override {
    if (address != 0 && !wild_ && is_wild(exec_, lane_, address)) wild_ = WildPointer{"the text of %s", address};
    return string_at(exec_, lane_, address);
  }
  [[nodiscard]] const std::optional<WildPointer>& wild() const { return wild_; }

 private:
  const Exec& exec_;
  int lane_;
  mutable std::optional<WildPointer> wild_;
};

Flow report_wild(Exec& exec, int lane, const WildPointer& pointer) {
  const Allocation* a = exec.launch.memory->find(pointer.address);
  const bool is_freed = a != nullptr && a->freed;
  Report r = of_kind(is_freed ? ReportKind::use_after_free : ReportKind::out_of_bounds,
                     fmt::format("printf reads {} at 0x{:x}, {}", pointer.of, pointer.address,
                                 is_freed ? "which has been freed" : "where no memory is allocated"));
  r.parties.push_back(lanes_party(exec.launch, exec.warp, LaneMask{1} << lane, exec.lane_group.pc, "at"));
  return report(exec, std::move(r));
}

Report over_limit(std::string message, std::string hint) {
  Report r = of_kind(ReportKind::limit, std::move(message));
  r.hint = std::move(hint);
  return r;
}

// One report per call: the first wild pointer of the first lane that has one.
Flow run_printf(Exec& exec, const CallSite& site, LaneMask lanes) {
  constexpr std::size_t kMostArguments = 4096;
  bool is_reported = false;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t format_at = argument(exec, site, 0, lane), values_at = argument(exec, site, 1, lane);
    const std::string format = string_at(exec, lane, format_at);
    const std::uint64_t conversions = conversions_of(format);
    const auto values = bytes_at(exec, lane, values_at, kMostArguments);
    const LaneStrings strings(exec, lane);
    const std::int64_t limit = exec.launch.config.options.limits.printed_bytes;
    std::string text;
    try {
      text = printf_text(format, values, strings, limit - static_cast<std::int64_t>(exec.launch.printed.size()));
    } catch (const OverflowError& error) {
      return report(exec, over_limit(fmt::format("printf: {}; the launch has printed {} of at most {} bytes",
                                                 error.what(), exec.launch.printed.size(), limit),
                                     "less output, or a larger limit: --max-printed"));
    }
    exec.launch.printed += text;
    if (exec.launch.monitor != nullptr) exec.launch.monitor->printed(exec, text);
    give_back(exec, site, lane, conversions);
    std::optional<WildPointer> wild = strings.wild();
    if (conversions > 0 && values.empty()) wild = WildPointer{"its values", values_at};
    if (is_wild(exec, lane, format_at)) wild = WildPointer{"its format", format_at};
    if (!wild || is_reported) continue;
    is_reported = true;
    if (report_wild(exec, lane, *wild) == Flow::stopped) return Flow::stopped;
  }
  return Flow::next;
}

Flow run_assert_fail(Exec& exec, const CallSite& site, LaneMask lanes) {
  const int lane = std::countr_zero(lanes);
  const auto text = [&](std::size_t i) { return string_at(exec, lane, argument(exec, site, i, lane)); };
  Report r = of_kind(ReportKind::assert_, fmt::format("{}:{}: {}: assertion `{}` failed", text(1),
                                                      argument(exec, site, 2, lane), text(3), text(0)));
  r.parties.push_back(lanes_party(exec.launch, exec.warp, lanes, exec.lane_group.pc, "at"));
  return report(exec, std::move(r));
}

Flow run_malloc(Exec& exec, const CallSite& site, LaneMask lanes) {
  DeviceMemory& memory = *exec.launch.memory;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t bytes = argument(exec, site, 0, lane);
    const LaunchLimits& limits = exec.launch.config.options.limits;
    const std::int64_t room = std::min(limits.heap_bytes - memory.heap_bytes(), memory.room());
    const bool fits = bytes > 0 && room > 0 && bytes <= static_cast<std::uint64_t>(room);
    std::uint64_t address = 0;
    if (fits) {
      if (exec.launch.heap_blocks >= limits.heap_blocks) {
        return report(exec,
                      over_limit(fmt::format("malloc: {} blocks of this launch, freed ones included, are the limit",
                                             limits.heap_blocks),
                                 "fewer, larger blocks, or a larger limit: --max-mallocs"));
      }
      ++exec.launch.heap_blocks;
      const std::string name = fmt::format("malloc by cta ({},{},{}) thread {}", exec.cta.at[0], exec.cta.at[1],
                                           exec.cta.at[2], exec.warp.index * kLanes + lane);
      address = memory.allocate(static_cast<std::int64_t>(bytes), name, false, true);
    }
    give_back(exec, site, lane, address);
  }
  event(exec);
  return Flow::next;
}

Flow run_free(Exec& exec, const CallSite& site, LaneMask lanes) {
  DeviceMemory& memory = *exec.launch.memory;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const int lane = std::countr_zero(left);
    const std::uint64_t address = argument(exec, site, 0, lane);
    if (address == 0) continue;
    const Allocation* a = memory.find(address);
    const bool known = a != nullptr && a->heap && a->address == address;
    if (known && !a->freed) {
      memory.free(address);
      continue;
    }
    Report r =
        known
            ? of_kind(ReportKind::use_after_free, fmt::format("free of 0x{:x}, which has been freed already", address))
            : of_kind(ReportKind::out_of_bounds, fmt::format("free of 0x{:x}, which malloc did not return", address));
    r.parties.push_back(lanes_party(exec.launch, exec.warp, LaneMask{1} << lane, exec.lane_group.pc, "at"));
    if (report(exec, std::move(r)) == Flow::stopped) return Flow::stopped;
  }
  event(exec);
  return Flow::next;
}

}  // namespace

Builtin builtin_of(std::string_view function) {
  if (function == "vprintf") return Builtin::vprintf;
  if (function == "__assertfail") return Builtin::assert_fail;
  if (function == "malloc") return Builtin::malloc;
  if (function == "free") return Builtin::free;
  return Builtin::none;
}

std::span<const std::byte> bytes_at(const Exec& exec, int lane, std::uint64_t address, std::size_t most) {
  const auto cut = [most](const std::vector<std::byte>& memory, std::uint64_t at) -> std::span<const std::byte> {
    if (at >= memory.size()) return {};
    return std::span(memory)
        .subspan(static_cast<std::size_t>(at))
        .first(std::min(most, memory.size() - static_cast<std::size_t>(at)));
  };
  const Space space = space_of(address);
  const std::uint64_t inside = address - window_of(space);
  if (space == Space::local) return cut(exec.warp.local[static_cast<std::size_t>(lane)], inside);
  if (space == Space::shared) return cut(exec.cta.shared, offset_of(inside) - kSharedBase);
  if (space == Space::param) return cut(exec.launch.config.params, inside);
  const Allocation* a = exec.launch.memory->find(address);
  if (a == nullptr || a->freed) return {};
  const std::uint64_t count = std::min<std::uint64_t>(most, a->end() - address);
  return {exec.launch.memory->at(address, static_cast<std::int64_t>(count)), static_cast<std::size_t>(count)};
}

std::string string_at(const Exec& exec, int lane, std::uint64_t address) {
  constexpr std::size_t kMost = 1 << 16;
  if (address == 0) return "(null)";
  const auto bytes = bytes_at(exec, lane, address, kMost);
  const auto end = std::find(bytes.begin(), bytes.end(), std::byte{0});
  std::string out(static_cast<std::size_t>(end - bytes.begin()), '\0');
  if (!out.empty()) std::memcpy(out.data(), bytes.data(), out.size());
  return out;
}

Flow run_builtin(Exec& exec, const CallSite& site, LaneMask lanes) {
  switch (site.builtin) {
    case Builtin::vprintf:
      return run_printf(exec, site, lanes);
    case Builtin::assert_fail:
      return run_assert_fail(exec, site, lanes);
    case Builtin::malloc:
      return run_malloc(exec, site, lanes);
    case Builtin::free:
      return run_free(exec, site, lanes);
    case Builtin::none:
      break;
  }
  return Flow::next;
}

}  // namespace kvscope::ptx
