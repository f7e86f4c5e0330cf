// printf formats, as implemented by the device's vprintf.
#include <fmt/format.h>
#include <fmt/printf.h>

#include <algorithm>
#include <cstring>

#include "core/base/errors.h"
#include "gpu/virtual/machine/limits.h"
#include "gpu/virtual/machine/warp/detail/builtins.h"

namespace kvscope::ptx {
namespace {

// Reads values from an argument buffer; past its end all are zero.
class Arguments {
 public:
  explicit Arguments(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <class T>
  T take() {
    at_ = (at_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    T value{};
    if (at_ + sizeof(T) <= bytes_.size()) std::memcpy(&value, bytes_.data() + at_, sizeof(T));
    at_ += sizeof(T);
    return value;
  }

 private:
  std::span<const std::byte> bytes_;
  std::size_t at_ = 0;
};

// One conversion of a format: "%-*.3lld" -> flags "-", width from an argument, precision 3, 8 bytes, 'd'.
struct Conversion {
  std::string before;     // "%", flags, width, precision: without length and letter
  std::int64_t most = 0;  // the larger of width and precision
  int bytes = 4;
  char letter = 0;
};

constexpr std::string_view kFlags = "-+ #0";
constexpr std::int64_t kNumberCap = std::int64_t{1} << 40;  // of a width or precision: larger ones are rejected as this

Conversion read_conversion(std::string_view& format, Arguments& arguments) {
  Conversion out;
  out.before = "%";
  std::size_t i = 1;
  const auto at = [&format](std::size_t k) { return k < format.size() ? format[k] : '\0'; };
  const auto number = [&] {
    const std::size_t begin = out.before.size();
    if (at(i) == '*') {
      out.before += std::to_string(arguments.take<std::int32_t>());
      ++i;
    }
    while (at(i) >= '0' && at(i) <= '9') out.before += at(i++);
    std::string_view digits = std::string_view(out.before).substr(begin);
    if (digits.starts_with('-')) digits.remove_prefix(1);
    std::int64_t value = 0;
    for (const char digit : digits) value = std::min<std::int64_t>(value * 10 + (digit - '0'), kNumberCap);
    out.most = std::max(out.most, value);
  };
  while (at(i) != '\0' && kFlags.find(at(i)) != kFlags.npos) out.before += at(i++);
  number();
  if (at(i) == '.') {
    out.before += at(i++);
    number();
  }
  while (at(i) != '\0' && std::string_view("hljztL").find(at(i)) != kFlags.npos) {
    if (at(i) == 'h') out.bytes = out.bytes == 2 ? 1 : 2;
    if (at(i) != 'h') out.bytes = 8;
    ++i;
  }
  out.letter = at(i);
  format.remove_prefix(std::min(i + 1, format.size()));
  return out;
}

std::int64_t cut_signed(std::int64_t value, int bytes) {
  if (bytes == 1) return static_cast<std::int8_t>(value);
  if (bytes == 2) return static_cast<std::int16_t>(value);
  return value;
}
std::uint64_t cut_unsigned(std::uint64_t value, int bytes) {
  return bytes >= 4 ? value : value & ((std::uint64_t{1} << (8 * bytes)) - 1);
}

std::string convert(const Conversion& c, Arguments& arguments, const PrintfStrings& strings) {
  const std::string spec = c.before + c.letter;
  switch (c.letter) {
    case 'd':
    case 'i': {
      const std::int64_t value = c.bytes == 8 ? arguments.take<std::int64_t>() : arguments.take<std::int32_t>();
      return fmt::sprintf(c.before + "d", cut_signed(value, c.bytes));
    }
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
      const std::uint64_t value = c.bytes == 8 ? arguments.take<std::uint64_t>() : arguments.take<std::uint32_t>();
      return fmt::sprintf(spec, cut_unsigned(value, c.bytes));
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return fmt::sprintf(spec, arguments.take<double>());
    case 'c':
      return fmt::sprintf(spec, static_cast<char>(arguments.take<std::int32_t>()));
    case 's':
      return fmt::sprintf(spec, strings.at(arguments.take<std::uint64_t>()));
    case 'p':
      return fmt::sprintf(c.before + "s", fmt::format("0x{:x}", arguments.take<std::uint64_t>()));
    default:  // unknown: printed as written
      return spec;
  }
}

}  // namespace

std::string printf_text(std::string_view format, std::span<const std::byte> bytes, const PrintfStrings& strings,
                        std::int64_t most) {
  std::string out;
  const auto check_size = [&] {
    if (static_cast<std::int64_t>(out.size()) > most) {
      throw OverflowError(fmt::format("{} bytes or more of one call", out.size()));
    }
  };
  Arguments arguments(bytes);
  while (!format.empty()) {
    const std::size_t percent = std::min(format.find('%'), format.size());
    out += format.substr(0, percent);
    check_size();
    format.remove_prefix(percent);
    if (format.empty()) break;
    if (format.starts_with("%%")) {
      out += '%';
      format.remove_prefix(2);
      continue;
    }
    const Conversion c = read_conversion(format, arguments);
    if (c.letter == 0) break;
    if (c.most > kMostPrintfWidth) {
      throw OverflowError(fmt::format("'{}{}' has a width or precision of {}{}: at most {}", c.before, c.letter, c.most,
                                      c.most == kNumberCap ? " or more" : "", kMostPrintfWidth));
    }
    out += convert(c, arguments, strings);
  }
  check_size();
  return out;
}

}  // namespace kvscope::ptx
