#include "apps/kvscope/ptx_arguments.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <cstdlib>
#include <optional>
#include <string_view>
#include <utility>
#include <variant>

#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/numbers.h"
#include "core/golden/npy.h"
#include "core/golden/safetensors.h"
#include "core/golden/tensor.h"
#include "core/tma/tensor_map_json.h"
#include "core/tma/tensor_map_record.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostMapFile = 1 << 20;              // [bytes]
constexpr std::int64_t kMostArray = std::int64_t{4} << 30;  // [bytes]
constexpr std::string_view kSafetensors = ".safetensors:";

std::optional<std::uint64_t> integer_bits(std::string_view word) {
  const bool negative = word.starts_with('-');
  std::string_view digits = word.substr(negative ? 1 : 0);
  const bool hex = digits.starts_with("0x") || digits.starts_with("0X");
  if (hex) digits.remove_prefix(2);
  const auto value = whole_number<std::uint64_t>(digits, hex ? 16 : 10);
  if (!value) return std::nullopt;
  return negative ? ~*value + 1 : *value;
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
      const auto bytes = golden::byte_count(fresh->first, fresh->second);
      if (!bytes || *bytes > kMostArray) {
        throw InputError("command line", "", fmt::format("'{}' is more than {} bytes", word, kMostArray));
      }
      const std::uint64_t address = device_.memory().allocate(*bytes, word, false);
      arrays.push_back({argument, word, address, fresh->first, fresh->second, *bytes});
      return address;
    }
    return number(argument, word);
  }

  std::vector<DeviceArray> arrays;

 private:
  ptx::ParamValue array(int argument, const std::string& word, const golden::Tensor& tensor) {
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
    throw InputError("command line", "",
                     fmt::format("{} has no tensor '{}': it has {}", path, name, fmt::join(names, ", ")));
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
            "command line", "",
            fmt::format("'{}': no argument before it of number '{}' is an array", word, word.substr(at + 1)));
      }
      file.map.base += found->address;
    }
    check_tensor_map(file.map, file.target).throw_if_broken(path);
    return map_bytes(file.map, device_.target());
  }

  ptx::ParamValue number(int argument, const std::string& word) const {
    const auto index = static_cast<std::size_t>(argument);
    const ptx::Variable* param = index < kernel_.parameters.size()
                                     ? &module_.variables[static_cast<std::size_t>(kernel_.parameters[index])]
                                     : nullptr;
    const bool floating = param != nullptr && ptx::class_of(param->type) == ptx::TypeClass::floating;
    if (!floating) {
      if (const auto bits = integer_bits(word)) return *bits;
    }
    if (const auto real = whole_number<double>(word); real && (floating || param == nullptr || param->bytes >= 4)) {
      if (floating) return *real;
      // For newer targets, nvcc declares float parameters as .b32 and .b64.
      if (param != nullptr && param->bytes == 4)
        return std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(*real))};
      return std::bit_cast<std::uint64_t>(*real);
    }
    throw InputError("command line", "",
                     fmt::format("'{}' is neither a number, nor FILE.npy, FILE.safetensors:NAME, TYPE[SHAPE] or "
                                 "map:FILE.json@ARGUMENT",
                                 word));
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
