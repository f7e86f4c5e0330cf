// Files about structs that a kernel takes by value: their layout, and their values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gpu/virtual/text/parameter_layout.h"

namespace kvscope::apps {

// The layout in `word`: FILE or FILE:TYPE. A .json file holds the layout itself, any other file is a C header:
//
//   {"name": "Params", "bytes": 24, "fields": [{"name": "out", "offset": 0, "type": "pointer"},
//                                               {"name": "n", "offset": 8, "type": "s32"}]}
//
// Types are those of PTX, such as u8, s32, f32 and bf16, or pointer. InputError: unreadable, malformed, fields that end
// after the struct.
[[nodiscard]] ptx::ParameterLayout read_struct_layout(const std::string& word);

// The values of a struct, as text in the forms of --arg:
//
//   {"fields": {"out": "f32[64]", "scale": [1, 0.5], "in[1]": {"page": 3}},     by name; needs the layout
//    "at": {"8": {"type": "s32", "value": 64}, "16": "@0+32"},                  by offset in bytes; a text is a pointer
//    "hex": "00ff..."}                                                          all bytes, before the others are set
struct StructValues {
  struct AtOffset {
    std::int64_t offset = 0;
    ptx::Type type = ptx::Type::u64;
    std::string word;
  };
  std::vector<std::pair<std::string, std::string>> fields;  // path and word
  std::vector<AtOffset> at;
  std::optional<std::vector<std::byte>> bytes;
};
[[nodiscard]] StructValues read_struct_values(const std::string& path);  // InputError

}  // namespace kvscope::apps
