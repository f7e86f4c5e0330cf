// Functions that modules only declare and the machine implements: vprintf, __assertfail, malloc, free.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {

// "vprintf" -> Builtin::vprintf; none for all other names.
[[nodiscard]] Builtin builtin_of(std::string_view function);
Flow run_builtin(Exec& exec, const CallSite& site, LaneMask lanes);

// The bytes at a thread's generic address: at most `most`, and not past the end of the memory that contains it.
[[nodiscard]] std::span<const std::byte> bytes_at(const Exec& exec, int lane, std::uint64_t address, std::size_t most);
// The string up to its zero byte. A string without a zero byte ends where its memory ends.
[[nodiscard]] std::string string_at(const Exec& exec, int lane, std::uint64_t address);

// Formats printf arguments, each at its natural alignment, as a device compiler stores them:
//   "%d %f %s", {42, pad, 1.5, pointer}   ->   "42 1.500000 text"
// `strings` reads the target of %s. OverflowError for a width or precision above kMostPrintfWidth, and past `most` bytes
// of text.
class PrintfStrings {
 public:
  virtual ~PrintfStrings() = default;
  [[nodiscard]] virtual std::string at(std::uint64_t address) const = 0;
};
[[nodiscard]] std::string printf_text(std::string_view format, std::span<const std::byte> arguments,
                                      const PrintfStrings& strings, std::int64_t most);

}  // namespace kvscope::ptx
