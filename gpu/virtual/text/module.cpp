#include "gpu/virtual/text/module.h"

#include <cstddef>
#include <string>

namespace kvscope::ptx {

std::int32_t Module::find_function(std::string_view name) const {
  if (name.empty()) return -1;  // prototypes have no name
  for (std::size_t i = 0; i < functions.size(); ++i) {
    if (functions[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

std::int32_t Module::find_variable(std::string_view name) const {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    if (variables[i].function < 0 && variables[i].name == name) return static_cast<std::int32_t>(i);
  }
  return -1;
}

std::string_view Module::file_of(const Frame& frame) const {
  for (const SourceFile& source : files) {
    if (source.number == frame.file) return source.path;
  }
  return {};
}

std::string name(const Register& r) {
  constexpr std::string_view kElements = "xyzw";
  std::string whole(r.name);
  if (r.number >= 0) whole += std::to_string(r.number);
  if (r.element >= 0) whole += {'.', kElements[static_cast<std::size_t>(r.element)]};
  return whole;
}

}  // namespace kvscope::ptx
