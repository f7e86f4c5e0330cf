// The layout of kernel parameters: PTX with debug sections, or a C header. The fields of an accepted layout are inside
// its bytes, at multiples of their size, and found by their paths.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "gpu/virtual/text/parameter_layout.h"
#include "gpu/virtual/text/parser.h"

namespace {

namespace ptx = kvscope::ptx;

void must_hold(bool holds) {
  if (!holds) std::abort();
}

// `aligned`: a header's fields are; debug information may describe a packed struct.
void check(const ptx::ParameterLayout& layout, bool aligned) {
  must_hold(layout.fields.size() <= ptx::kMostFields);
  for (const ptx::ParameterField& field : layout.fields) {
    const int bits = ptx::bits(field.type);
    if (aligned) must_hold(field.offset >= 0 && field.offset + field.bytes <= layout.bytes);
    if (aligned) must_hold(bits > 0 && field.bytes == bits / 8 && field.offset % field.bytes == 0);
    must_hold(bits == 0 || field.bytes == bits / 8);
  }
  const std::size_t tried = std::min<std::size_t>(layout.fields.size(), 64);
  for (std::size_t i = 0; i < tried; ++i) must_hold(layout.find(layout.fields[i].path) != nullptr);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  try {
    if (text.find(".version") == std::string::npos) {
      check(ptx::layout_from_header(text, "fuzz.h", ""), true);
      return 0;
    }
    const ptx::Module module = ptx::parse_module(text, "fuzz.ptx");
    for (const ptx::Function& f : module.functions) {
      for (const ptx::ParameterLayout& layout : ptx::layouts_from_debug_info(module, f)) check(layout, false);
    }
  } catch (const kvscope::InputError&) {
  }
  return 0;
}
