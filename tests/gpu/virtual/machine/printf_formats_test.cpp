// Formats of the device's printf, compared with the host's snprintf over a grid of flags, widths, precisions, lengths, conversions and
// values. The host's locale is "C" in this program.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/machine/limits.h"
#include "gpu/virtual/machine/warp/detail/builtins.h"

#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"

namespace kvscope::ptx::test::printf_formats_test {
namespace {

class Texts final : public PrintfStrings {
 public:
  [[nodiscard]] std::string at(std::uint64_t address) const override { return address == 16 ? "some text" : ""; }
};

// Arguments as a device compiler stores them.
class Buffer {
 public:
  template <class T>
  Buffer& add(T value) {
    bytes_.resize((bytes_.size() + sizeof(T) - 1) / sizeof(T) * sizeof(T));
    const std::size_t at = bytes_.size();
    bytes_.resize(at + sizeof(T));
    std::memcpy(bytes_.data() + at, &value, sizeof(T));
    return *this;
  }
  [[nodiscard]] std::string printed(std::string_view format) const {
    return printf_text(format, bytes_, Texts{}, 1 << 20);
  }

 private:
  std::vector<std::byte> bytes_;
};

template <class... T>
std::string on_host(const std::string& format, T... values) {
  std::string out(static_cast<std::size_t>(std::snprintf(nullptr, 0, format.c_str(), values...)) + 1, '\0');
  std::snprintf(out.data(), out.size(), format.c_str(), values...);
  out.pop_back();
  return out;
}

constexpr std::array<std::string_view, 8> kWidths{"", "1", "7", "24", "*", "*", "*", "*"};
constexpr std::array<int, 8> kStarWidths{0, 0, 0, 0, 0, 12, -12, -1};
constexpr std::array<std::string_view, 10> kPrecisions{"", ".", ".0", ".1", ".5", ".20", ".*", ".*", ".*", ".*"};
constexpr std::array<int, 10> kStarPrecisions{0, 0, 0, 0, 0, 0, 3, 0, -1, std::numeric_limits<int>::min()};

// Compares all formats of a conversion with those of `flags` that C defines for it.
template <class Device, class Host>
void compare(std::string_view flags, std::string_view conversion, Device device, Host host, bool precisions = true) {
  int differences = 0;
  for (unsigned set = 0; set < 1U << flags.size(); ++set) {
    std::string begin = "%";
    for (std::size_t i = 0; i < flags.size(); ++i) begin += (set >> i & 1) != 0 ? std::string(1, flags[i]) : "";
    for (std::size_t w = 0; w < kWidths.size(); ++w) {
      for (std::size_t p = 0; p < (precisions ? kPrecisions.size() : 1); ++p) {
        const std::string format = fmt::format("[{}{}{}{}]", begin, kWidths.at(w), kPrecisions.at(p), conversion);
        const bool star_width = kWidths.at(w) == "*", star_precision = kPrecisions.at(p) == ".*";
        const int width = kStarWidths.at(w), precision = kStarPrecisions.at(p);
        Buffer buffer;
        if (star_width) buffer.add(width);
        if (star_precision) buffer.add(precision);
        buffer.add(device);
        const std::string expected = star_width && star_precision ? on_host(format, width, precision, host)
                                     : star_width                 ? on_host(format, width, host)
                                     : star_precision             ? on_host(format, precision, host)
                                                                  : on_host(format, host);
        if (buffer.printed(format) == expected || ++differences > 5) continue;
        ADD_FAILURE() << format << " width " << width << " precision " << precision << " of " << host << ": '"
                      << buffer.printed(format) << "', but C prints '" << expected << "'";
      }
    }
  }
  EXPECT_EQ(differences, 0) << conversion << " of " << host;
}

TEST(PrintfFormats, WholeNumbersAreThoseOfC) {
  for (const std::int32_t value : {0, 1, -1, 42, -300, INT32_MAX, INT32_MIN}) {
    for (const char* const conversion : {"d", "i", "hd", "hhd"}) compare("-+ 0", conversion, value, value);
    for (const char* const conversion : {"u", "hu", "hhu"}) compare("-0", conversion, value, value);
    for (const char* const conversion : {"o", "x", "X", "hx", "hho"}) compare("-#0", conversion, value, value);
  }
  for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-5'000'000'000}, INT64_MAX, INT64_MIN}) {
    for (const char* const conversion : {"ld", "lld", "zd", "jd", "ti"}) compare("-+ 0", conversion, value, value);
    for (const char* const conversion : {"lo", "llx", "zX"}) compare("-#0", conversion, value, value);
    compare("-0", "lu", value, value);
  }
}

TEST(PrintfFormats, RealNumbersAreThoseOfC) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, -0.0, 1.0, -1.5, 0.1, 2.5, 9.9999996, 123456.0, 1234567.0, 1e-5, 6.25e-300, 1.7e308,
                             5e-324, kInfinity, -kInfinity, std::nan(""), -std::nan("")}) {
    for (const char* const conversion : {"e", "E", "f", "F", "g", "G", "a", "A", "lf"})
      compare("-+ #0", conversion, value, value);
  }
}

// All digits of a number, and zeros after them.
TEST(PrintfFormats, DigitsDoNotEndBeforeThePrecision) {
  for (const double value : {1.0, 0.1, 123456.0, 1.7e308, 5e-324}) {
    for (const int precision : {766, 767, 768, 1074, 1100, 4096}) {
      for (const char* const format : {"%.*f", "%.*e", "%.*g", "%#.*g", "%.*a"})
        EXPECT_EQ(Buffer().add(precision).add(value).printed(format), on_host(format, precision, value)) << value;
    }
  }
}

TEST(PrintfFormats, CharactersTextsAndPointersAreThoseOfC) {
  for (const std::int32_t value : {65, 0, 321}) compare("-", "c", value, value, false);
  compare("-", "s", std::uint64_t{16}, "some text");
  compare("-", "s", std::uint64_t{17}, "");
  compare("-", "p", std::uint64_t{0x7f00beef}, reinterpret_cast<void*>(std::uintptr_t{0x7f00beef}), false);
}

TEST(PrintfFormats, ANegativePrecisionCountsAsOmittedAndANegativeWidthMovesToTheLeft) {
  EXPECT_EQ(Buffer().add(-1).add(1.5).printed("%.*f"), "1.500000");
  EXPECT_EQ(Buffer().add(-6).add(-1).add(7).printed("[%*.*d]"), "[7     ]");
  EXPECT_EQ(Buffer().add(-3).add(std::uint64_t{16}).printed("%.*s"), "some text");
}

// Whatever the bytes of a format are, it has a text, or an OverflowError that becomes a report.
TEST(PrintfFormats, AnyFormatHasATextOrExceedsALimit) {
  constexpr std::string_view kBytes = "%*.-+ #0195hlLzjtdiouxXeEfFgGaAcspnkqC\x01";
  std::uint64_t state = 1;
  int texts = 0;
  for (int i = 0; i < 20'000; ++i) {
    std::string format = "%";
    for (int k = 0; k < 9; ++k) {
      state = state * 6364136223846793005 + 1442695040888963407;
      format += kBytes[(state >> 33) % kBytes.size()];
    }
    Buffer buffer;
    for (int k = 0; k < 4; ++k) buffer.add(static_cast<std::int64_t>(state >> (16 * k)) % 400 - 200);
    try {
      texts += buffer.printed(format).empty() ? 0 : 1;
    } catch (const OverflowError&) {  // a width above the limit
    }
  }
  EXPECT_GT(texts, 10'000);
  EXPECT_EQ(Buffer().add(5).printed("%*k %-3.1lq|"), "%*k %-3.1lq|");  // no conversions of C
  EXPECT_THROW((void)Buffer().add(std::numeric_limits<int>::min()).add(1).printed("%*d"), OverflowError);
}

}  // namespace
}  // namespace kvscope::ptx::test::printf_formats_test
