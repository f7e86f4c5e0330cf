#include "core/base/xml.h"

#include <cstddef>

#include "core/base/detail/utf8.h"

namespace kvscope {
namespace {

// Length of the character at the front of `text`; 0 when XML 1.0 does not allow it.
std::size_t xml_character(std::string_view text) {
  const Utf8Character character = first_utf8(text);
  const char32_t code = character.code;
  const bool control = code < 0x20 && code != '\t' && code != '\n' && code != '\r';
  return control || code == 0xfffe || code == 0xffff ? 0 : character.length;
}

}  // namespace

std::string xml_text(std::string_view text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = xml_character(text.substr(at));
    if (length == 0) {
      out += '?';
      ++at;
      continue;
    }
    switch (text[at]) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      case '\n':
        out += "&#10;";
        break;
      case '\t':
        out += "&#9;";
        break;
      case '\r':
        out += "&#13;";
        break;
      default:
        out += text.substr(at, length);
    }
    at += length;
  }
  return out;
}

}  // namespace kvscope
