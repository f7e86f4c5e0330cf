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

enum class Kind : std::uint8_t { real, integer, half };

// The elements that a pointer of a C++ type points to.
struct PointedElements {
  std::string_view type;
  int bits = 0;
  Kind kind = Kind::real;
  std::string_view pass;  // the dtype to pass
};
// Without bytes, which have several C++ types.
constexpr PointedElements kPointed[] = {
    {"float", 32, Kind::real, "f32"},          {"double", 64, Kind::real, "f64"},
    {"int", 32, Kind::integer, "i32"},         {"unsigned int", 32, Kind::integer, "i32"},
    {"long", 64, Kind::integer, "i64"},        {"unsigned long", 64, Kind::integer, "i64"},
    {"long long", 64, Kind::integer, "i64"},   {"unsigned long long", 64, Kind::integer, "i64"},
    {"__half", 16, Kind::half, "f16"},         {"__half2", 16, Kind::half, "f16"},
    {"__nv_bfloat16", 16, Kind::half, "bf16"}, {"__nv_bfloat162", 16, Kind::half, "bf16"}};

// Null: not a pointer to one of these.
const PointedElements* pointed_elements(std::string type) {
  if (!type.ends_with('*')) return nullptr;
  type.pop_back();
  for (const std::string_view word : {" volatile", " const"}) {
    if (type.ends_with(word)) type.resize(type.size() - word.size());
  }
  for (const PointedElements& pointed : kPointed) {
    if (pointed.type == type) return &pointed;
  }
  return nullptr;
}

// Halves have several types of 16 bits, and an integer of 32 bits is a pair of them.
bool fits(const PointedElements& wanted, DType given) {
  if (wanted.kind == Kind::half) return bits(given) == 16 || (bits(given) == 32 && is_integer(given));
  return bits(given) == wanted.bits && is_float(given) == (wanted.kind == Kind::real);
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
    const PointedElements* const wanted = pointed_elements(type);
    const Variable& variable = module.variables[static_cast<std::size_t>(kernel.parameters[array.parameter])];
    if (wanted == nullptr || !variable.extents.empty() || fits(*wanted, array.dtype)) continue;
    const std::string called = array.name.empty() ? "" : fmt::format(" ({})", array.name);
    notes.push_back(fmt::format("argument {}{} has elements of {}, but the kernel takes {}: pass {}", array.parameter,
                                called, name(array.dtype), type, wanted->pass));
  }
  return notes;
}

}  // namespace kvscope::ptx
