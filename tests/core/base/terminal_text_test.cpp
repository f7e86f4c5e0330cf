#include "core/base/terminal_text.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include "tests/property.h"

namespace kvscope::terminal_text_test {
namespace {

TEST(TerminalText, PlainTextStaysAsItIs) {
  for (const std::string text : {"", "abc", "two\nlines\tand a tab",
                                 "Gr\xc3\xb6\xc3\x9f"
                                 "e",
                                 "\xe2\x82\xac 5", "\xf0\x9f\x98\x80"}) {
    EXPECT_EQ(terminal_text(text), text);
  }
}

TEST(TerminalText, WhatATerminalObeysIsEscaped) {
  EXPECT_EQ(terminal_text("a\x1b[31mb"), "a\\u001b[31mb");
  EXPECT_EQ(terminal_text("a\rb\bc\ad"), "a\\u000db\\u0008c\\u0007d");
  EXPECT_EQ(terminal_text(std::string("\0\x7f", 2)), "\\u0000\\u007f");
  EXPECT_EQ(terminal_text("\xc2\x9b"
                          "31m"),
            "\\u009b31m")
      << "CSI as one character of UTF-8";
  EXPECT_EQ(terminal_text("\x9b"
                          "31m"),
            "\\x9b31m")
      << "CSI as one byte";
  EXPECT_EQ(terminal_text("\xe2\x80\xae"
                          "gpj.exe"),
            "\\u202egpj.exe")
      << "right-to-left override";
  EXPECT_EQ(terminal_text("\xe2\x80\xa8\xe2\x81\xa6"), "\\u2028\\u2066");
  EXPECT_EQ(terminal_text("\xc3"), "\\xc3");
}

// Every code point below U+3000, encoded here by shifts: the ones that pass are those of a second list.
TEST(TerminalText, EveryCodePointPassesOrIsEscaped) {
  for (unsigned c = 0; c < 0x3000; ++c) {
    std::string bytes;
    if (c < 0x80) {
      bytes = {static_cast<char>(c)};
    } else if (c < 0x800) {
      bytes = {static_cast<char>(0xc0 | c >> 6), static_cast<char>(0x80 | (c & 0x3f))};
    } else {
      bytes = {static_cast<char>(0xe0 | c >> 12), static_cast<char>(0x80 | (c >> 6 & 0x3f)),
               static_cast<char>(0x80 | (c & 0x3f))};
    }
    const bool is_printed = c == 9 || c == 10 || (c >= 32 && c <= 126) || (c >= 160 && c < 0x2028) ||
                            (c > 0x202e && c < 0x2066) || c > 0x2069;
    EXPECT_EQ(terminal_text(bytes) == bytes, is_printed) << std::hex << c;
  }
}

TEST(TerminalText, NoBytesLeaveAControlCharacter) {
  EXPECT_TRUE(prop::check([] {
    std::string text;
    for (const int byte : prop::vector_of<int>(0, 256)) text += static_cast<char>(byte);
    const std::string out = terminal_text(text);
    for (const char c : out) RC_ASSERT(c == '\n' || c == '\t' || (static_cast<unsigned char>(c) >= 0x20 && c != 0x7f));
    RC_ASSERT(terminal_text(out) == out);
  }));
}

TEST(TerminalText, ACharacterThatIsCutOffIsKeptForTheNextPart) {
  const std::string text = "a\xc3\xb6\xe2\x82\xac\xf0\x9f\x98\x80z";
  std::string joined, kept;
  for (const char c : text) {
    kept += c;
    const std::size_t later = unfinished_bytes(kept);
    joined += terminal_text(kept.substr(0, kept.size() - later));
    kept = kept.substr(kept.size() - later);
  }
  EXPECT_EQ(joined, text);
  EXPECT_EQ(kept, "");
  EXPECT_EQ(unfinished_bytes("\x80\x80\x80\x80"), 0U) << "never a character";
  EXPECT_EQ(unfinished_bytes("\xf0\x9f\x98"), 3U);
  EXPECT_EQ(unfinished_bytes(""), 0U);
}

}  // namespace
}  // namespace kvscope::terminal_text_test
