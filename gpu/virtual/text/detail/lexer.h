// PTX text cut into tokens, one at a time, nothing copied.
//
//   @%p1 ld.global.u32 %r1, [%rd2+-4];     punct @, word %p1, word ld, directive .global, directive .u32, word %r1, ...
//
// An opcode is one word to the grammar, but ld.global is lexically a word and a directive; who expects an opcode joins
// them (join_dotted). Comments and blanks lie between tokens. Lines and columns are counted here, from 1.
// Throws TextFault with a TextError for characters that PTX does not have, comments and strings without end.
// Source: PTX ISA, "Syntax"; ptxas for what it takes beyond that.
#pragma once

#include <cstdint>
#include <string_view>

#include "gpu/virtual/text/module.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::ptx {

enum class TokenKind : std::uint8_t {
  end,
  word,       // identifier: add, %r1, $L__BB0_2, _
  directive,  // .reg, .v4: with its dot
  number,     // 12, 0x1FU, 0f3F800000, 1.5e-3: cut by look, its digits are checked when it is read
  string,     // with its quotes
  punct,      // one character, or << >> <= >= == != && ||
  broken,     // what could not be read: advance() has thrown
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  TextPlace at;

  [[nodiscard]] bool is(char c) const { return kind == TokenKind::punct && text.size() == 1 && text[0] == c; }
  [[nodiscard]] bool is(std::string_view whole) const { return text == whole; }
  // As a message names it: "'add'", "end of file".
  [[nodiscard]] std::string shown() const;
};

// One error found; thrown to where the next statement begins.
struct TextFault {
  TextError error;
};
[[noreturn]] void fail(TextPlace at, std::string message);

class Lexer {
 public:
  // `text` outlives the lexer and is followed by a NUL (std::string's).
  explicit Lexer(std::string_view text);

  [[nodiscard]] const Token& token() const { return token_; }
  [[nodiscard]] std::int32_t previous_line() const { return previous_line_; }  // of the token before
  // The token behind becomes token(). What throws lies behind the cursor already: advancing again is progress.
  void advance();

  // token() is a word: takes the dotted words that follow without blanks into it: "ld" -> "ld.shared::cta.u32".
  // True when only a blank kept a further dotted word away ("ld .global", which ptxas takes as well).
  bool join_dotted();
  // token() is a word: takes one ".x" that follows immediately into it, if there is one. "%tid" -> "%tid.x".
  bool join_member();
  // Whether the first character that is neither blank nor comment behind token() is a colon, and not of "::".
  [[nodiscard]] bool colon_follows() const;
  // token() is '{': moves behind its '}' by counting braces, token() is what follows. What lies between.
  std::string_view skip_braces();

 private:
  void skip_blanks();
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

  const char* next_;  // behind token_
  const char* end_;
  const char* line_start_;
  std::int32_t line_ = 1;
  std::int32_t previous_line_ = 1;
  Token token_;
};

}  // namespace kvscope::ptx
