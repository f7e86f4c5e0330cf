// Splits PTX text into tokens, one at a time, without copying.
//
//   @%p1 ld.global.u32 %r1, [%rd2+-4];     punct @, word %p1, word ld, directive .global, directive .u32, word %r1, ...
//
// An opcode is one word in the grammar, but ld.global is lexically a word and a directive; the parser joins them where
// it expects an opcode (join_dotted). Comments and blanks separate tokens. Lines and columns are counted here, from 1.
// Throws TextFault with a TextError for characters that PTX does not have, and for unterminated comments and strings.
// Source: PTX ISA, "Syntax"; ptxas for what it accepts beyond that.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/virtual/text/module.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx {

enum class TokenKind : std::uint8_t {
  end,
  word,       // identifier: add, %r1, $L__BB0_2, _
  directive,  // .reg, .v4: including its dot
  number,     // 12, 0x1FU, 0f3F800000, 1.5e-3: split by appearance; its digits are checked when it is converted
  string,     // including its quotes
  punct,      // one character, or << >> <= >= == != && ||
  broken,     // not readable: advance() has thrown
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  TextPlace at;

  [[nodiscard]] bool is(char c) const { return kind == TokenKind::punct && text.size() == 1 && text[0] == c; }
  [[nodiscard]] bool is(std::string_view whole) const { return text == whole; }
  // The token as shown in a message: "'add'", "end of file".
  [[nodiscard]] std::string shown() const;
};

// One error in the text; caught where the next statement begins.
struct TextFault {
  TextError error;
};
[[noreturn]] void fail(TextPlace at, std::string message);

class Lexer {
 public:
  // `text` must outlive the lexer and end with a NUL (as a std::string does).
  explicit Lexer(std::string_view text);

  [[nodiscard]] const Token& token() const { return token_; }
  [[nodiscard]] std::int32_t previous_line() const { return previous_line_; }  // of the previous token
  // The block of inline assembly that token() is in, which compilers mark by comments: 1, 2, ... in the order of the text;
  // 0 outside of all.
  [[nodiscard]] std::int32_t inline_assembly() const { return in_assembly_ ? assembly_ : 0; }
  // Reads the next token. On a throw the cursor is already past the offending text, so calling again makes progress.
  void advance();

  // token() is a word: appends the dotted words that follow without blanks: "ld" -> "ld.shared::cta.u32".
  // Returns true if only a blank separates a further dotted word ("ld .global", which ptxas accepts as well).
  bool join_dotted();
  // token() is a word: appends one ".x" that follows immediately, if any. "%tid" -> "%tid.x".
  bool join_member();
  // Whether the first character after token() that is neither blank nor comment is a single colon, not "::".
  [[nodiscard]] bool colon_follows() const;
  // token() is '{': moves past the matching '}' by counting braces. Returns the text in between; token() is what
  // follows.
  std::string_view skip_braces();

 private:
  void skip_blanks();
  void skip_line_comment();
  void read_word();
  void read_number();
  void read_string();
  void read_punct();
  void newline(const char* next) {
    ++line_;
    line_start_ = next;
  }
  [[nodiscard]] TextPlace place(const char* at) const {
    return {line_, static_cast<std::int32_t>(at - line_start_) + 1};
  }
  [[nodiscard]] std::string_view from(const char* first) const {
    return {first, static_cast<std::size_t>(next_ - first)};
  }

  const char* next_;  // after token_
  const char* end_;
  const char* line_start_;
  std::int32_t line_ = 1;
  std::int32_t previous_line_ = 1;
  std::int32_t assembly_ = 0;  // the last block that began
  bool in_assembly_ = false;
  Token token_;
};

}  // namespace kvscope::ptx
