#include "core/base/shell_words.h"

#include <utility>

#include "core/base/errors.h"

namespace kvscope {

std::vector<std::string> shell_words(const std::string& line) {
  std::vector<std::string> words;
  bool inside = false;
  char quote = 0;
  std::string word;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) {
        quote = 0;
      } else if (quote == '"' && c == '\\' && i + 1 < line.size()) {
        word += line[++i];
      } else {
        word += c;
      }
    } else if (c == '\'' || c == '"') {
      quote = c;
      inside = true;
    } else if (c == ' ' || c == '\t' || c == '\n') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else {
      word += c == '\\' && i + 1 < line.size() ? line[++i] : c;
      inside = true;
    }
  }
  if (quote != 0) throw InputError("launch", "", std::string("a quote ") + quote + " does not end in: " + line);
  if (inside) words.push_back(std::move(word));
  return words;
}

std::string shell_quoted(std::string_view word) {
  std::string quoted = "'";
  for (const char c : word) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::string shell_line(const std::vector<std::string>& words) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  std::string line;
  for (const std::string& word : words) {
    const bool is_plain = !word.empty() && word.find_first_not_of(kPlain) == std::string::npos;
    if (!line.empty()) line += ' ';
    line += is_plain ? word : shell_quoted(word);
  }
  return line;
}

}  // namespace kvscope
