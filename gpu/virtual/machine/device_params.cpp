// Builds a kernel's parameter block from one value per parameter.
#include <fmt/format.h>

#include <bit>
#include <cstring>

#include "core/base/errors.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/machine/launch_checks.h"

namespace kvscope::ptx {
namespace {

// The fault of a value for that parameter, or "".
std::string store(const Variable& v, const ParamValue& value, std::byte* to) {
  const auto size = static_cast<std::size_t>(v.bytes);
  if (const auto* block = std::get_if<std::vector<std::byte>>(&value)) {
    if (block->size() != size) return fmt::format("{} bytes: it has {}", block->size(), size);
    std::memcpy(to, block->data(), size);
    return "";
  }
  if (size > 8) return fmt::format("one number: it has {} bytes, give a block of them", size);
  std::uint64_t bits = 0;
  if (const auto* number = std::get_if<std::uint64_t>(&value)) {
    bits = *number;
  } else if (size == 4) {
    bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::get<double>(value)));
  } else if (size == 8) {
    bits = std::bit_cast<std::uint64_t>(std::get<double>(value));
  } else {
    return fmt::format("a floating-point number: it has {} bytes, 4 or 8 are needed", size);
  }
  std::memcpy(to, &bits, size);
  return "";
}

}  // namespace

std::vector<std::byte> pack_params(const LoadedModule& module, std::string_view kernel,
                                   const std::vector<ParamValue>& values) {
  const Program& program = *module.program;
  const std::int32_t index = find_kernel(program, kernel);
  if (index < 0) throw GeometryError(unknown_kernel(program, kernel));
  const Function& f = program.module->functions[static_cast<std::size_t>(index)];
  const std::string what = fmt::format("parameters of '{}'", kernel);
  if (values.size() != f.parameters.size()) {
    throw GeometryError(what, {{"", fmt::format("{} values: the kernel has {}", values.size(), f.parameters.size())}});
  }
  std::vector<std::byte> out(static_cast<std::size_t>(f.parameter_bytes));
  std::vector<Fault> faults;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const Variable& v = program.module->variables[static_cast<std::size_t>(f.parameters[i])];
    std::string wrong = store(v, values[i], out.data() + v.parameter_offset);
    if (!wrong.empty()) faults.push_back({fmt::format("parameter {} '{}'", i, v.name), std::move(wrong)});
  }
  if (!faults.empty()) throw GeometryError(what, std::move(faults));
  return out;
}

}  // namespace kvscope::ptx
