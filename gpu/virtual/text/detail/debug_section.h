// The bytes of a debug section, as compilers write it in PTX:
//
//   $L__info_string0:                       labels["$L__info_string0"] = 0
//   .b8 95,90,0                             bytes 5f 5a 00
//   .b32 .debug_abbrev                      references[0]: at 3, ".debug_abbrev"; four zero bytes
//   .b64 $L__func_begin0+8                  references[1]: at 7, "$L__func_begin0", 8; eight zero bytes
//
// Source: PTX ISA, ".section"; the output of nvcc and of LLVM.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace kvscope::ptx {

struct DebugSection {
  struct Reference {
    std::size_t at = 0;      // in `bytes`
    std::string_view label;  // in the text of the section
    std::int64_t offset = 0;
  };
  std::string bytes;
  std::unordered_map<std::string_view, std::size_t> labels;  // the offset of each label in `bytes`
  std::vector<Reference> references;
};

// `text`: the text between the braces; it outlives the result. Debug sections are optional, so a statement of an unknown
// form ends the parsing without an error.
[[nodiscard]] DebugSection read_debug_section(std::string_view text);

}  // namespace kvscope::ptx
