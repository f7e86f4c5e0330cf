#include "gpu/virtual/text/launch_notes.h"

#include <fmt/format.h>

#include <cstdint>

#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::ptx {
namespace {

// "(float*, ns::f<1, 2>, int)" -> "float*", "ns::f<1, 2>", "int".
std::vector<std::string> types_in(const std::string& list) {
  std::vector<std::string> types(1);
  int depth = 0;
  for (const char c : list) {
    if (c == ')' || c == '>') --depth;
    if (depth == 1 && c == ',') {
      types.emplace_back();
    } else if (depth > 0 && !(c == ' ' && types.back().empty())) {
      types.back() += c;
    }
    if (c == '(' || c == '<') ++depth;
  }
  return types;
}

// The elements that a pointer of this C++ type points to; nothing for other types, and for bytes and halves, which
// have several C++ types.
struct PointedElements {
  std::int64_t bytes = 0;
  bool real = false;
};
std::optional<PointedElements> pointed_elements(std::string type) {
  if (!type.ends_with('*')) return std::nullopt;
  type.pop_back();
  for (const std::string_view word : {" volatile", " const"}) {
    if (type.ends_with(word)) type.resize(type.size() - word.size());
  }
  if (type == "float") return PointedElements{4, true};
  if (type == "double") return PointedElements{8, true};
  if (type == "int" || type == "unsigned int") return PointedElements{4, false};
  if (type == "long" || type == "unsigned long" || type == "long long" || type == "unsigned long long")
    return PointedElements{8, false};
  return std::nullopt;
}

}  // namespace

std::optional<std::string> missing_block_note(const Module& module, std::string_view option) {
  if (module.text->find("%tid") == std::string::npos) return std::nullopt;
  return fmt::format("{} is not given, so that a CTA has 1 thread: pass the threads that your program launches",
                     option);
}

std::vector<std::string> element_notes(const Module& module, const Function& kernel,
                                       const std::vector<ArrayArgument>& arrays) {
  const std::vector<std::string> types = types_in(parameter_list(kernel.name));
  std::vector<std::string> notes;
  if (types.size() != kernel.parameters.size()) return notes;
  for (const ArrayArgument& array : arrays) {
    if (array.parameter >= types.size()) continue;
    const std::string& type = types[array.parameter];
    const std::optional<PointedElements> wanted = pointed_elements(type);
    const Variable& variable = module.variables[static_cast<std::size_t>(kernel.parameters[array.parameter])];
    if (!wanted || !variable.extents.empty()) continue;
    if (size_of(array.dtype) == wanted->bytes && is_float(array.dtype) == wanted->real) continue;
    notes.push_back(fmt::format("argument {} has elements of {}, but the kernel takes {}: pass {}{}", array.parameter,
                                name(array.dtype), type, wanted->real ? "f" : "i", wanted->bytes * 8));
  }
  return notes;
}

}  // namespace kvscope::ptx
