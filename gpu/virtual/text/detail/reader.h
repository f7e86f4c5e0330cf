// The tokens of a text and its recorded errors; all parts of the parser read from it.
//
// A fault ends the current statement (fail throws TextFault) and is recorded where the next statement begins (note).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "gpu/virtual/text/detail/lexer.h"

namespace kvscope::ptx {

class Reader {
 public:
  explicit Reader(std::string_view text) : lexer_(text) {}

  [[nodiscard]] Lexer& lexer() { return lexer_; }
  [[nodiscard]] const Token& token() const { return lexer_.token(); }
  [[nodiscard]] TextPlace at() const { return token().at; }
  [[nodiscard]] bool is(char c) const { return token().is(c); }
  [[nodiscard]] bool is(std::string_view text) const { return token().text == text; }
  [[nodiscard]] bool at_end() const { return token().kind == TokenKind::end; }
  [[nodiscard]] bool at_word() const { return token().kind == TokenKind::word; }
  [[nodiscard]] bool at_directive() const { return token().kind == TokenKind::directive; }

  void advance() { lexer_.advance(); }
  // Returns the token and advances.
  Token take() {
    const Token taken = token();
    advance();
    return taken;
  }
  bool accept(char c) {
    if (!is(c)) return false;
    advance();
    return true;
  }
  bool accept(std::string_view text) {
    if (!is(text)) return false;
    advance();
    return true;
  }
  void expect(char c) {
    if (!is(c)) fail_expected(c);
    advance();
  }
  // Reads a word, named `what` in the message: "expected register, found ','".
  Token expect_word(std::string_view what);
  [[noreturn]] void fail_expected(char c) const;
  [[noreturn]] void fail_expected(std::string_view what) const;

  // Records the fault. Returns false if kMostErrors have been recorded, so parsing should stop.
  bool note(const TextFault& fault);
  [[nodiscard]] std::vector<TextError>& errors() { return errors_; }

  // Moves past the faulty statement: after its ';', to the '}' that closes the enclosing block, or to the end.
  // `depth`: number of braces that the statement has open.
  void skip_statement(int depth);

 private:
  Lexer lexer_;
  std::vector<TextError> errors_;
};

}  // namespace kvscope::ptx
