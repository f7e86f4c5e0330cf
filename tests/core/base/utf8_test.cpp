#include "core/base/detail/utf8.h"

#include <gtest/gtest.h>

#include <string>

namespace kvscope::utf8_test {
namespace {

// The encoder of RFC 3629, section 3, written independently of the decoder.
std::string encoded(char32_t code) {
  const auto tail = [&](int shift) { return static_cast<char>(0x80 | ((code >> shift) & 0x3f)); };
  if (code < 0x80) return {static_cast<char>(code)};
  if (code < 0x800) return {static_cast<char>(0xc0 | code >> 6), tail(0)};
  if (code < 0x10000) return {static_cast<char>(0xe0 | code >> 12), tail(6), tail(0)};
  return {static_cast<char>(0xf0 | code >> 18), tail(12), tail(6), tail(0)};
}

// Every code point, followed by text that must not be consumed.
TEST(Utf8, EveryCodePointIsReadBackAndSurrogatesAreRejected) {
  for (char32_t code = 0; code <= 0x10ffff; ++code) {
    const std::string bytes = encoded(code);
    const Utf8Character read = first_utf8(bytes +
                                          "\xbf"
                                          "z");
    if (code >= 0xd800 && code <= 0xdfff) {
      ASSERT_EQ(read.length, 0u) << static_cast<unsigned>(code);
    } else {
      ASSERT_EQ(read.length, bytes.size()) << static_cast<unsigned>(code);
      ASSERT_EQ(read.code, code);
    }
  }
}

// Of all pairs of bytes exactly 128 * 256 begin with an ASCII character and 30 * 64 are one of two bytes: a decoder
// that accepts c0 or c1 (overlong), or a tail without its top bits, counts more. The same for three and four bytes.
TEST(Utf8, NoOtherBytesAreACharacter) {
  int one = 0, two = 0, longer = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::size_t length = first_utf8(std::string{static_cast<char>(a), static_cast<char>(b)}).length;
      one += length == 1;
      two += length == 2;
      longer += length > 2;
    }
  }
  EXPECT_EQ(one, 128 * 256);
  EXPECT_EQ(two, 30 * 64);
  EXPECT_EQ(longer, 0) << "cut off after two bytes";
  int three = 0, four = 0;
  for (int a = 0; a < 256; ++a) {
    for (int b = 0; b < 256; ++b) {
      const std::string start{static_cast<char>(a), static_cast<char>(b), '\x80', '\xbf'};
      three += first_utf8(start).length == 3;
      four += first_utf8(start).length == 4;
    }
  }
  // e0: 32 second bytes, ed: 32, the other 14: 64; f0: 48, f4: 16, the other 3: 64.
  EXPECT_EQ(three, 32 + 32 + 14 * 64);
  EXPECT_EQ(four, 48 + 16 + 3 * 64);
}

TEST(Utf8, NothingIsNoCharacterAndWhatIsCutOffIsIllFormed) {
  EXPECT_EQ(first_utf8("").length, 0u);
  EXPECT_EQ(first_utf8("\xc3\xa9").length, 2u);
  EXPECT_EQ(first_utf8("\xc3\xa9").code, U'\u00e9');
  for (const char* cut : {"\xc3", "\xe2\x82", "\xf0\x9f\x99"}) EXPECT_EQ(first_utf8(cut).length, 0u) << cut;
  EXPECT_EQ(first_utf8("\xf4\x90\x80\x80").length, 0u) << "U+110000";
  EXPECT_EQ(first_utf8("\xf5\x80\x80\x80").length, 0u) << "no lead byte";
}

}  // namespace
}  // namespace kvscope::utf8_test
