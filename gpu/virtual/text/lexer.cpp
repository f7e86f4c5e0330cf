#include "gpu/virtual/text/detail/lexer.h"

#include <fmt/format.h>

#include <array>
#include <cstddef>
#include <string>
#include <utility>

namespace kvscope::ptx {
namespace {

enum Class : unsigned char { kBlank = 1, kWordStart = 2, kWordPart = 4, kDigit = 8 };

constexpr std::array<unsigned char, 256> kClasses = [] {
  std::array<unsigned char, 256> classes{};
  for (const char c : {' ', '\t', '\r', '\n', '\f', '\v'}) classes[static_cast<unsigned char>(c)] = kBlank;
  for (int c = 0; c < 26; ++c) {
    classes[static_cast<std::size_t>('a' + c)] = kWordStart | kWordPart;
    classes[static_cast<std::size_t>('A' + c)] = kWordStart | kWordPart;
  }
  for (std::size_t c = '0'; c <= '9'; ++c) classes[c] = kWordPart | kDigit;
  classes['_'] = classes['$'] = kWordStart | kWordPart;
  classes['%'] = kWordStart;  // a word only if something follows
  return classes;
}();

bool is(char c, Class cls) {
  return (kClasses[static_cast<unsigned char>(c)] & cls) != 0;
}

// Whether a dotted word continues here: ".x", "::x".
bool dot_word(const char* at) {
  return at[0] == '.' && is(at[1], kWordPart);
}
bool colons_word(const char* at) {
  return at[0] == ':' && at[1] == ':' && is(at[2], kWordPart);
}

const char* end_of_word(const char* at) {
  while (is(*at, kWordPart)) ++at;
  return at;
}

}  // namespace

void fail(TextPlace at, std::string message) {
  throw TextFault{{at, std::move(message)}};
}

std::string Token::shown() const {
  if (kind == TokenKind::end) return "end of file";
  constexpr std::size_t kLongest = 60;
  if (text.size() > kLongest) return fmt::format("'{}...'", text.substr(0, kLongest));
  return fmt::format("'{}'", text);
}

Lexer::Lexer(std::string_view text)
    : next_(text.data()), end_(text.data() + text.size()), line_start_(text.data()), token_{} {}

void Lexer::advance() {
  previous_line_ = token_.at.line;
  token_.kind = TokenKind::broken;
  skip_blanks();
  token_.at = place(next_);
  const char c = *next_;
  if (is(c, kWordStart) && (c != '%' || is(next_[1], kWordPart))) return read_word();
  if (is(c, kDigit)) return read_number();
  if (c == '.' && is(next_[1], kDigit)) return read_number();
  if (c == '"') return read_string();
  if (next_ == end_) {
    token_.kind = TokenKind::end;
    token_.text = {};
    return;
  }
  if (c == '.' && (is(next_[1], kWordPart) || next_[1] == '$')) {
    const char* first = next_;
    next_ = end_of_word(next_ + 1);
    token_.kind = TokenKind::directive;
    token_.text = from(first);
    return;
  }
  read_punct();
}

void Lexer::skip_blanks() {
  for (;;) {
    const char c = *next_;
    if (c == '\n') {
      ++next_;
      newline(next_);
    } else if (is(c, kBlank)) {
      ++next_;
    } else if (c == '/' && next_[1] == '/') {
      skip_line_comment();
    } else if (c == '/' && next_[1] == '*') {
      const TextPlace at = place(next_);
      next_ += 2;
      while (next_ != end_ && !(next_[0] == '*' && next_[1] == '/')) {
        ++next_;
        if (next_[-1] == '\n') newline(next_);
      }
      if (next_ == end_) fail(at, "unterminated comment, expected '*/'");
      next_ += 2;
    } else {
      return;
    }
  }
}

void Lexer::skip_line_comment() {
  const char* const first = next_;
  while (next_ != end_ && *next_ != '\n') ++next_;
  const std::string_view comment = from(first);
  if (comment.starts_with("// begin inline asm")) {
    in_assembly_ = true;
    ++assembly_;
  }
  if (comment.starts_with("// end inline asm")) in_assembly_ = false;
}

void Lexer::read_word() {
  const char* first = next_;
  next_ = end_of_word(next_ + 1);
  token_.kind = TokenKind::word;
  token_.text = from(first);
}

// Everything that looks like a number is one token (digits, letters, points, the sign of a decimal exponent), so
// "0x12G" is one error.
void Lexer::read_number() {
  const char* first = next_;
  const bool based = first[0] == '0' && is(first[1], kWordStart);
  for (;;) {
    next_ = end_of_word(next_);
    const bool exponent = !based && next_ != first && (next_[-1] == 'e' || next_[-1] == 'E');
    if (*next_ == '.' && !based) {
      ++next_;
    } else if ((*next_ == '+' || *next_ == '-') && exponent && is(next_[1], kDigit)) {
      ++next_;
    } else {
      break;
    }
  }
  token_.kind = TokenKind::number;
  token_.text = from(first);
}

void Lexer::read_string() {
  const char* first = next_++;
  while (next_ != end_ && *next_ != '"' && *next_ != '\n') {
    if (*next_ == '\\' && next_ + 1 != end_ && next_[1] != '\n') ++next_;
    ++next_;
  }
  if (next_ == end_ || *next_ == '\n') fail(token_.at, "unterminated string, expected '\"'");
  ++next_;
  token_.kind = TokenKind::string;
  token_.text = from(first);
}

void Lexer::read_punct() {
  constexpr std::string_view kKnown = "@!{}[]()<>,;:+-*/%&|^~=?.";
  constexpr std::array<std::string_view, 8> kDouble = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
  const char c = *next_;
  if (kKnown.find(c) == std::string_view::npos) {
    ++next_;
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code >= 0x7f) fail(token_.at, fmt::format("unexpected byte 0x{:02x}, PTX is ASCII", code));
    fail(token_.at, fmt::format("unexpected character '{}'", c));
  }
  std::size_t length = 1;
  for (const std::string_view two : kDouble) {
    if (c == two[0] && next_[1] == two[1]) length = 2;
  }
  token_.kind = TokenKind::punct;
  token_.text = {next_, length};
  next_ += length;
}

bool Lexer::join_dotted() {
  const char* first = token_.text.data();
  for (;;) {
    if (dot_word(next_)) {
      next_ = end_of_word(next_ + 1);
    } else if (colons_word(next_)) {
      next_ = end_of_word(next_ + 2);
    } else {
      break;
    }
  }
  token_.text = from(first);
  const char* at = next_;
  while (*at == ' ' || *at == '\t') ++at;
  return at != next_ && dot_word(at);
}

bool Lexer::join_member() {
  if (!dot_word(next_)) return false;
  const char* first = token_.text.data();
  next_ = end_of_word(next_ + 1);
  token_.text = from(first);
  return true;
}

bool Lexer::colon_follows() const {
  if (*next_ == '.') return false;  // the next word of an opcode: the most frequent case
  if (*next_ == ':') return next_[1] != ':';
  if (!is(*next_, kBlank) && *next_ != '/') return false;
  Lexer ahead = *this;
  try {
    ahead.skip_blanks();
  } catch (const TextFault&) {
    return false;  // advance() reaches it again and reports it
  }
  return ahead.next_[0] == ':' && ahead.next_[1] != ':';
}

std::string_view Lexer::skip_braces() {
  const TextPlace at = token_.at;
  const char* first = next_;
  for (int depth = 1; depth > 0; ++next_) {
    if (next_ == end_) {
      token_.kind = TokenKind::broken;
      fail(at, "'{' without its '}'");
    }
    if (*next_ == '\n') newline(next_ + 1);
    if (*next_ == '{') ++depth;
    if (*next_ == '}') --depth;
  }
  const std::string_view between(first, static_cast<std::size_t>(next_ - first) - 1);
  advance();
  return between;
}

}  // namespace kvscope::ptx
