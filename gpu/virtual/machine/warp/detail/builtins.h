// Functions that a module only declares and the machine has: vprintf, __assertfail, malloc, free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

inline constexpr std::int64_t kDeviceHeap = std::int64_t{8} << 20;  // [bytes] of malloc's blocks together

// "vprintf" -> Builtin::vprintf; none for all others.
[[nodiscard]] Builtin builtin_of(std::string_view function);
Flow run_builtin(Exec& exec, const CallSite& site, LaneMask lanes);

// The bytes of a thread's generic address up to `most`, or to the end of what the address is in.
[[nodiscard]] std::span<const std::byte> bytes_at(const Exec& exec, int lane, std::uint64_t address, std::size_t most);
// Up to the zero byte. A string without one ends where its memory ends.
[[nodiscard]] std::string string_at(const Exec& exec, int lane, std::uint64_t address);

// A format of printf and its arguments, each at its own alignment, as a device compiler lays them out:
//   "%d %f %s", {42, pad, 1.5, pointer}   ->   "42 1.500000 text"
// `string` reads what %s points at.
class PrintfStrings {
 public:
  virtual ~PrintfStrings() = default;
  [[nodiscard]] virtual std::string at(std::uint64_t address) const = 0;
};
[[nodiscard]] std::string printf_text(std::string_view format, std::span<const std::byte> arguments,
                                      const PrintfStrings& strings);

}  // namespace kvscope::ptx
