// printf formats, as implemented by the device's vprintf. Every format of C has a text, whatever the host's locale is. Not the host's
// own printf: a kernel's format and values would be its arguments.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>
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

// One conversion of a format: "%-*.3lld" -> left, width from an argument, precision 3, 8 bytes, 'd'.
struct Conversion {
  std::string_view text;  // as written
  bool left = false, plus = false, space = false, alternate = false, zeros = false;
  std::int64_t width = 0;
  std::int64_t precision = -1;  // -1: omitted
  int bytes = 4;
  char letter = 0;
};

constexpr std::int64_t kNumberCap = std::int64_t{1} << 40;  // of a width or precision: larger ones are rejected as this

// "*" or digits; 0: neither.
std::int64_t read_number(std::string_view format, std::size_t& i, Arguments& arguments) {
  if (i < format.size() && format[i] == '*') {
    ++i;
    return arguments.take<std::int32_t>();
  }
  std::int64_t value = 0;
  for (; i < format.size() && format[i] >= '0' && format[i] <= '9'; ++i)
    value = std::min<std::int64_t>(value * 10 + (format[i] - '0'), kNumberCap);
  return value;
}

Conversion read_conversion(std::string_view& format, Arguments& arguments) {
  Conversion out;
  std::size_t i = 1;
  const auto at = [&format](std::size_t k) { return k < format.size() ? format[k] : '\0'; };
  for (bool is_flag = true; is_flag; i += is_flag ? 1 : 0) {
    switch (at(i)) {
      case '-':
        out.left = true;
        break;
      case '+':
        out.plus = true;
        break;
      case ' ':
        out.space = true;
        break;
      case '#':
        out.alternate = true;
        break;
      case '0':
        out.zeros = true;
        break;
      default:
        is_flag = false;
    }
  }
  // A negative width is the flag '-' and its absolute value; a negative precision counts as omitted. Source: C11, 7.21.6.1.
  out.width = read_number(format, i, arguments);
  if (out.width < 0) {
    out.left = true;
    out.width = -out.width;
  }
  if (at(i) == '.') out.precision = std::max<std::int64_t>(read_number(format, ++i, arguments), -1);
  for (; at(i) != '\0' && std::string_view("hljztL").find(at(i)) != std::string_view::npos; ++i)
    out.bytes = at(i) != 'h' ? 8 : out.bytes == 2 ? 1 : 2;
  out.letter = at(i);
  out.text = format.substr(0, i + 1);
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

// `prefix` is the sign or "0x": zeros of the flag '0' follow it.
std::string padded(const Conversion& c, std::string_view prefix, std::string_view body, bool zeros) {
  const std::size_t size = prefix.size() + body.size(), width = static_cast<std::size_t>(c.width);
  const std::size_t fill = width > size ? width - size : 0;
  std::string out;
  if (!c.left && !zeros) out.append(fill, ' ');
  out += prefix;
  if (!c.left && zeros) out.append(fill, '0');
  out += body;
  if (c.left) out.append(fill, ' ');
  return out;
}

std::string_view sign_of(const Conversion& c, bool negative) {
  return negative ? "-" : c.plus ? "+" : c.space ? " " : "";
}

// The digits of a whole number: at least as many as the precision, and none for 0 with precision 0.
std::string whole(const Conversion& c, std::string_view prefix, std::string digits) {
  if (c.precision >= 0 && digits == "0") digits.clear();
  const auto least = static_cast<std::size_t>(std::max<std::int64_t>(c.precision, 0));
  if (digits.size() < least) digits.insert(0, least - digits.size(), '0');
  if (c.letter == 'o' && c.alternate && !digits.starts_with('0')) digits.insert(0, 1, '0');
  return padded(c, prefix, digits, c.zeros && c.precision < 0);
}

// As C prints it: fmt's digits end after the 767th.
std::string chars_of(double value, std::chars_format format, std::int64_t precision) {
  std::string out(static_cast<std::size_t>(std::max<std::int64_t>(precision, 0)) + 400, '\0');
  const auto end = precision < 0
                       ? std::to_chars(out.data(), out.data() + out.size(), value, format)
                       : std::to_chars(out.data(), out.data() + out.size(), value, format, static_cast<int>(precision));
  out.resize(static_cast<std::size_t>(end.ptr - out.data()));
  return out;
}

// A point even if no digits follow it, for the flag '#'.
std::string with_point(std::string digits) {
  if (digits.find('.') == digits.npos) digits.insert(std::min(digits.find_first_of("ep"), digits.size()), 1, '.');
  return digits;
}

// %g with the flag '#': as many digits as the precision, trailing zeros included. Source: C11, 7.21.6.1.
std::string all_digits(double value, std::int64_t precision) {
  const std::int64_t digits = std::max<std::int64_t>(precision, 1);
  const std::string text = chars_of(value, std::chars_format::scientific, digits - 1);
  const std::int64_t exponent = std::atoi(text.c_str() + text.find('e') + 1);
  if (exponent < -4 || exponent >= digits) return with_point(text);
  return with_point(chars_of(value, std::chars_format::fixed, digits - 1 - exponent));
}

std::string real(const Conversion& c, double value) {
  const std::string_view sign = sign_of(c, std::signbit(value));
  const bool upper = c.letter >= 'A' && c.letter <= 'Z';
  if (!std::isfinite(value))
    return padded(c, sign, std::isnan(value) ? (upper ? "NAN" : "nan") : (upper ? "INF" : "inf"), false);
  const char letter = upper ? static_cast<char>(c.letter - 'A' + 'a') : c.letter;
  const std::int64_t precision = c.precision < 0 && letter != 'a' ? 6 : c.precision;
  const auto format = letter == 'f'   ? std::chars_format::fixed
                      : letter == 'e' ? std::chars_format::scientific
                      : letter == 'g' ? std::chars_format::general
                                      : std::chars_format::hex;
  const double size = std::fabs(value);
  std::string body = letter == 'g' && c.alternate ? all_digits(size, precision) : chars_of(size, format, precision);
  if (c.alternate) body = with_point(std::move(body));
  std::string prefix(sign);
  if (letter == 'a') prefix += "0x";
  if (upper) {
    for (std::string* const text : {&prefix, &body})
      std::transform(text->begin(), text->end(), text->begin(),
                     [](char x) { return x >= 'a' ? char(x - 'a' + 'A') : x; });
  }
  return padded(c, prefix, body, c.zeros);
}

std::string convert(const Conversion& c, Arguments& arguments, const PrintfStrings& strings) {
  switch (c.letter) {
    case 'd':
    case 'i': {
      const std::int64_t value =
          cut_signed(c.bytes == 8 ? arguments.take<std::int64_t>() : arguments.take<std::int32_t>(), c.bytes);
      const auto bits = static_cast<std::uint64_t>(value);
      return whole(c, sign_of(c, value < 0), std::to_string(value < 0 ? 0 - bits : bits));
    }
    case 'u':
    case 'o':
    case 'x':
    case 'X': {
      const std::uint64_t value =
          cut_unsigned(c.bytes == 8 ? arguments.take<std::uint64_t>() : arguments.take<std::uint32_t>(), c.bytes);
      if (c.letter == 'u') return whole(c, "", std::to_string(value));
      if (c.letter == 'o') return whole(c, "", fmt::format("{:o}", value));
      const std::string_view prefix = !c.alternate || value == 0 ? "" : c.letter == 'x' ? "0x" : "0X";
      return whole(c, prefix, c.letter == 'x' ? fmt::format("{:x}", value) : fmt::format("{:X}", value));
    }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A':
      return real(c, arguments.take<double>());
    case 'c':
      return padded(c, "", std::string(1, static_cast<char>(arguments.take<std::int32_t>())), false);
    case 's': {
      const std::string text = strings.at(arguments.take<std::uint64_t>());
      const std::size_t most = c.precision < 0 ? text.npos : static_cast<std::size_t>(c.precision);
      return padded(c, "", std::string_view(text).substr(0, most), false);
    }
    case 'p':
      return padded(c, "0x", fmt::format("{:x}", arguments.take<std::uint64_t>()), c.zeros);
    default:  // unknown: printed as written
      return std::string(c.text);
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
    if (const std::int64_t most_here = std::max(c.width, c.precision); most_here > kMostPrintfWidth) {
      throw OverflowError(fmt::format("'{}' has a width or precision of {}{}: at most {}", c.text, most_here,
                                      most_here == kNumberCap ? " or more" : "", kMostPrintfWidth));
    }
    out += convert(c, arguments, strings);
  }
  check_size();
  return out;
}

}  // namespace kvscope::ptx
