// Reads one UTF-8 character at a time, for writers of JSON and XML, whose readers reject ill-formed text.
//
//   lead byte    bytes   code points
//   00 .. 7f       1     U+0000 .. U+007F
//   c2 .. df       2     U+0080 .. U+07FF          c0 and c1 would be overlong
//   e0 .. ef       3     U+0800 .. U+FFFF          without the surrogates U+D800 .. U+DFFF
//   f0 .. f4       4     U+10000 .. U+10FFFF
#pragma once

#include <cstddef>
#include <string_view>

namespace kvscope {

struct Utf8Character {
  std::size_t length = 0;  // [bytes]; 0: the bytes are ill-formed (overlong, a surrogate, past U+10FFFF, cut off)
  char32_t code = 0;       // its code point when length > 0
};

// The character at the front of `text`; ill-formed for an empty one. Example: "\xc3\xa9" -> {2, U+00E9}.
[[nodiscard]] Utf8Character first_utf8(std::string_view text);

}  // namespace kvscope
