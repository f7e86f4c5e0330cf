#include "apps/kvscope/ptx_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/numbers.h"
#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/safetensors.h"
#include "core/golden/bundle/tensor.h"
#include "core/tma/tensor_map_json.h"
#include "core/tma/tensor_map_record.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostMapFile = 1 << 20;              // [bytes]
constexpr std::int64_t kMostArray = std::int64_t{4} << 30;  // [bytes]
constexpr std::string_view kSafetensors = ".safetensors:";

// "-12" or "0x1f".
struct Integer {
  bool negative = false, hex = false;
  std::optional<std::uint64_t> magnitude;  // empty: 2^64 or more
};

std::optional<Integer> read_integer(std::string_view word) {
  Integer out;
  out.negative = word.starts_with('-');
  std::string_view digits = word.substr(out.negative ? 1 : 0);
  out.hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (out.hex) digits.remove_prefix(2);
  const std::string_view allowed = out.hex ? "0123456789abcdefABCDEF" : "0123456789";
  if (digits.empty() || digits.find_first_not_of(allowed) != std::string_view::npos) return std::nullopt;
  out.magnitude = whole_number<std::uint64_t>(digits, out.hex ? 16 : 10);
  return out;
}

// The integers that a parameter takes. nvcc declares signed and unsigned integers as .u32 and .u64, so an unsigned type
// takes negative numbers too. Example: .u32 takes -2147483648 to 4294967295, and .s32 takes -2147483648 to 2147483647.
struct IntegerRange {
  std::uint64_t below, above;  // magnitudes of the least and the greatest
};

// ".u32", or "12 bytes" of a struct.
std::string type_text(const ptx::Variable& param) {
  return param.extents.empty() ? fmt::format(".{}", ptx::name(param.type)) : fmt::format("{} bytes", param.bytes);
}

bool holds_float(const ptx::Variable& param) {
  return param.bytes == 4 || param.bytes == 8;
}

IntegerRange range_of(const ptx::Variable& param) {
  const int bits = static_cast<int>(8 * param.bytes);
  const std::uint64_t half = std::uint64_t{1} << (bits - 1);
  const bool is_signed = ptx::class_of(param.type) == ptx::TypeClass::signed_integer;
  return {half, is_signed ? half - 1 : half + (half - 1)};
}

bool fits(const Integer& value, const ptx::Variable& param) {
  if (!value.magnitude) return false;
  const IntegerRange range = range_of(param);
  // A hexadecimal number gives the bits of a parameter of any type.
  const std::uint64_t above = value.hex ? range.below + (range.below - 1) : range.above;
  return *value.magnitude <= (value.negative ? range.below : above);
}

// "f32[2,3]" -> dtype and shape.
std::optional<std::pair<DType, std::vector<std::int64_t>>> new_array(std::string_view word) {
  const std::size_t bracket = word.find('[');
  if (bracket == std::string_view::npos || !word.ends_with(']')) return std::nullopt;
  const auto dtype = dtype_from_name(word.substr(0, bracket));
  if (!dtype) return std::nullopt;
  std::vector<std::int64_t> shape;
  std::string_view rest = word.substr(bracket + 1, word.size() - bracket - 2);
  while (true) {
    const std::size_t comma = rest.find(',');
    const auto extent = whole_number<std::int64_t>(rest.substr(0, comma));
    if (!extent || *extent < 1) return std::nullopt;
    shape.push_back(*extent);
    if (comma == std::string_view::npos) return std::pair{*dtype, std::move(shape)};
    rest.remove_prefix(comma + 1);
  }
}

// Converts the words one after the other. A wrong word throws; the caller collects the fault and continues.
class Placer {
 public:
  Placer(ptx::Device& device, const ptx::Module& module, const ptx::Function& kernel,
         const std::vector<std::string>& words)
      : device_(device), module_(module), kernel_(kernel), words_(words) {}

  ptx::ParamValue value(int argument) {
    const std::string& word = words_[static_cast<std::size_t>(argument)];
    if (word.starts_with("map:")) return map_of(word);
    if (word.ends_with(".npy")) return array(argument, word, golden::read_npy(word));
    if (const std::size_t at = word.find(kSafetensors); at != std::string::npos) {
      return array(argument, word,
                   tensor_of(word.substr(0, at + kSafetensors.size() - 1), word.substr(at + kSafetensors.size())));
    }
    if (const auto fresh = new_array(word)) {
      check_pointer(argument, word);
      const auto bytes = golden::byte_count(fresh->first, fresh->second);
      if (!bytes || *bytes > kMostArray) {
        throw InputError("", "", fmt::format("'{}' is more than {} bytes", word, kMostArray));
      }
      const std::uint64_t address = device_.memory().allocate(*bytes, word, false);
      arrays.push_back({argument, word, address, fresh->first, fresh->second, *bytes});
      return address;
    }
    return number(argument, word);
  }

  std::vector<DeviceArray> arrays;

 private:
  // An array is passed by its address, which has 8 bytes.
  void check_pointer(int argument, const std::string& word) const {
    const ptx::Variable* param = parameter(argument);
    if (param == nullptr || param->bytes == 8) return;
    throw InputError(
        "", "",
        fmt::format("'{}' is an array, but parameter {} ({}) is not a pointer of 8 bytes: write {}", word, param->name,
                    type_text(*param), param->bytes < 8 ? "a number" : "map:FILE.json@ARGUMENT"));
  }

  ptx::ParamValue array(int argument, const std::string& word, const golden::Tensor& tensor) {
    check_pointer(argument, word);
    const auto bytes = static_cast<std::int64_t>(tensor.bytes.size());
    const std::uint64_t address = device_.memory().allocate(std::max<std::int64_t>(bytes, 1), word);
    if (bytes > 0) device_.memory().write(address, tensor.bytes);
    arrays.push_back({argument, word, address, tensor.dtype, tensor.shape, bytes});
    return address;
  }

  static golden::Tensor tensor_of(const std::string& path, const std::string& name) {
    const golden::Safetensors file = golden::parse_safetensors(read_file(path, golden::kMaxFileBytes), path);
    const auto place = file.tensors.find(name);
    if (place != file.tensors.end()) return place->second;
    std::vector<std::string> names;
    for (const auto& [known, tensor] : file.tensors) names.push_back(known);
    throw InputError("", "", fmt::format("{} has no tensor '{}': it has {}", path, name, fmt::join(names, ", ")));
  }

  ptx::ParamValue map_of(const std::string& word) {
    const std::size_t at = word.rfind('@');
    const std::string path = word.substr(4, at == std::string::npos ? at : at - 4);
    TensorMapFile file = parse_tensor_map(read_file(path, kMostMapFile), path);
    if (at != std::string::npos) {
      const auto over = whole_number<int>(std::string_view(word).substr(at + 1));
      const DeviceArray* found = nullptr;
      for (const DeviceArray& array : arrays) {
        if (over && array.argument == *over) found = &array;
      }
      if (found == nullptr) {
        throw InputError(
            "", "", fmt::format("'{}': no argument before it of number '{}' is an array", word, word.substr(at + 1)));
      }
      file.map.base += found->address;
    }
    check_tensor_map(file.map, file.target).throw_if_broken(path);
    return map_bytes(file.map, device_.target());
  }

  [[nodiscard]] const ptx::Variable* parameter(int argument) const {
    const auto index = static_cast<std::size_t>(argument);
    if (index >= kernel_.parameters.size()) return nullptr;
    return &module_.variables[static_cast<std::size_t>(kernel_.parameters[index])];
  }

  [[nodiscard]] ptx::ParamValue number(int argument, const std::string& word) const {
    const ptx::Variable* param = parameter(argument);
    const std::optional<Integer> integer = read_integer(word);
    const std::optional<double> real = whole_number<double>(word);
    if (word.ends_with(".npz") || word.ends_with(".safetensors")) {
      throw InputError("", "",
                       fmt::format("'{}' holds several arrays: pass one, as FILE.npy or FILE.safetensors:NAME", word));
    }
    if (!integer && !real) {
      throw InputError("", "",
                       fmt::format("'{}' is neither a number, nor FILE.npy, FILE.safetensors:NAME, TYPE[SHAPE] or "
                                   "map:FILE.json@ARGUMENT",
                                   word));
    }
    if (param == nullptr) return std::uint64_t{0};  // the number of arguments is the fault
    if (param->bytes > 8) {
      throw InputError("", "",
                       fmt::format("'{}' is a number, but parameter {} is a struct of {} bytes: pass a tensor map as "
                                   "map:FILE.json@ARGUMENT; other structs cannot be passed",
                                   word, param->name, param->bytes));
    }
    const std::string of = fmt::format("parameter {} ({})", param->name, type_text(*param));
    if (ptx::class_of(param->type) == ptx::TypeClass::floating) return floating(*param, word, real, of);
    if (integer && fits(*integer, *param)) return integer->negative ? ~*integer->magnitude + 1 : *integer->magnitude;
    const IntegerRange range = range_of(*param);
    const std::string write = fmt::format("write an integer from -{} to {}", range.below, range.above);
    if (integer) throw InputError("", "", fmt::format("'{}' does not fit {}: {}", word, of, write));
    // For newer targets, nvcc declares float parameters as .b32 and .b64.
    if (ptx::class_of(param->type) == ptx::TypeClass::bits && holds_float(*param)) {
      return bits_of(*param, std::get<double>(floating(*param, word, real, of)));
    }
    std::string bits;
    if (holds_float(*param)) bits = fmt::format(", or 0x{:x} for the bits of {}", bits_of(*param, *real), word);
    throw InputError("", "", fmt::format("'{}' is not an integer, but {} takes integers: {}{}", word, of, write, bits));
  }

  static std::uint64_t bits_of(const ptx::Variable& param, double real) {
    return param.bytes == 4 ? std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(real))}
                            : std::bit_cast<std::uint64_t>(real);
  }

  static ptx::ParamValue floating(const ptx::Variable& param, const std::string& word,
                                  const std::optional<double>& real, const std::string& of) {
    constexpr double kMost = std::numeric_limits<float>::max();
    if (!real) throw InputError("", "", fmt::format("'{}' does not fit {}: write a decimal number, as 2.5", word, of));
    if (param.bytes == 4 && std::isfinite(*real) && std::isinf(static_cast<float>(*real))) {
      throw InputError(
          "", "",
          fmt::format("'{}' does not fit {}: write a number from {:.6g} to {:.6g}, or inf", word, of, -kMost, kMost));
    }
    return *real;
  }

  ptx::Device& device_;
  const ptx::Module& module_;
  const ptx::Function& kernel_;
  const std::vector<std::string>& words_;
};

}  // namespace

KernelArguments place_arguments(ptx::Device& device, const ptx::LoadedModule& module, const std::string& kernel,
                                const std::vector<std::string>& words) {
  const ptx::Module& text = *module.program->module;
  const std::int32_t function = text.find_function(kernel);
  const ptx::Function& entry = text.functions[static_cast<std::size_t>(function)];
  Placer placer(device, text, entry, words);
  std::vector<ptx::ParamValue> values;
  std::vector<Fault> faults;
  for (int argument = 0; argument < static_cast<int>(words.size()); ++argument) {
    try {
      values.push_back(placer.value(argument));
    } catch (const std::exception& error) {
      for (const std::string& line : fault_lines(error)) faults.push_back({fmt::format("--arg {}", argument), line});
      values.emplace_back(std::uint64_t{0});
    }
  }
  if (words.size() != entry.parameters.size()) {
    std::vector<std::string> wanted;
    for (const std::int32_t p : entry.parameters) {
      const ptx::Variable& v = text.variables[static_cast<std::size_t>(p)];
      wanted.push_back(v.extents.empty() ? fmt::format(".{} {}", ptx::name(v.type), v.name)
                                         : fmt::format("{} bytes {}", v.bytes, v.name));
    }
    faults.push_back({"--arg", fmt::format("{} given, kernel {} takes {}: {}", words.size(), kernel,
                                           entry.parameters.size(), fmt::join(wanted, ", "))});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  return {ptx::pack_params(module, kernel, values), std::move(placer.arrays)};
}

void save_array(ptx::Device& device, const DeviceArray& array, const std::string& path) {
  golden::write_npy(path, {array.dtype, array.shape, device.memory().read(array.address, array.bytes)});
}

}  // namespace kvscope::apps
