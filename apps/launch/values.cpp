#include "apps/launch/values.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
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
#include "core/golden/bundle/bundle.h"
#include "core/golden/bundle/npy.h"
#include "core/golden/bundle/tensor.h"
#include "core/tma/tensor_map_json.h"
#include "core/tma/tensor_map_record.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostMapFile = 1 << 20;              // [bytes]
constexpr std::int64_t kMostArray = std::int64_t{4} << 30;  // [bytes]
constexpr std::string_view kSafetensors = ".safetensors:", kNpz = ".npz:", kMap = "map:";

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

bool holds_float(const ArgumentSlot& slot) {
  return slot.bytes == 4 || slot.bytes == 8;
}

IntegerRange range_of(const ArgumentSlot& slot) {
  const int bits = static_cast<int>(8 * slot.bytes);
  const std::uint64_t half = std::uint64_t{1} << (bits - 1);
  const bool is_signed = ptx::class_of(slot.type) == ptx::TypeClass::signed_integer;
  return {half, is_signed ? half - 1 : half + (half - 1)};
}

bool fits(const Integer& value, const ArgumentSlot& slot) {
  if (!value.magnitude) return false;
  const IntegerRange range = range_of(slot);
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

// Whether the word places an array on the device: "x.npy", "w.npz:k" or "f32[64]".
bool places_array(std::string_view word) {
  return word.ends_with(".npy") || word.find(kSafetensors) != std::string_view::npos ||
         word.find(kNpz) != std::string_view::npos || new_array(word);
}

// "map:k.json@x.npy" -> "k.json" and "x.npy". The path of the array may contain an @ as well.
struct MapWord {
  std::string path;
  std::optional<std::string> array;
};

MapWord read_map_word(std::string_view word) {
  constexpr std::string_view kJsonAt = ".json@";
  const std::string_view rest = word.substr(kMap.size());
  const std::size_t json = rest.find(kJsonAt);
  const std::size_t at = json == std::string_view::npos ? rest.rfind('@') : json + kJsonAt.size() - 1;
  if (at == std::string_view::npos) return {std::string(rest), std::nullopt};
  return {std::string(rest.substr(0, at)), std::string(rest.substr(at + 1))};
}

std::uint64_t bits_of(const ArgumentSlot& slot, double real) {
  return slot.bytes == 4 ? std::uint64_t{std::bit_cast<std::uint32_t>(static_cast<float>(real))}
                         : std::bit_cast<std::uint64_t>(real);
}

ptx::ParamValue floating(const ArgumentSlot& slot, const std::string& word, const std::optional<double>& real) {
  constexpr double kMost = std::numeric_limits<float>::max();
  if (!real)
    throw InputError("", "", fmt::format("'{}' does not fit {}: write a decimal number, as 2.5", word, slot.of));
  if (slot.bytes == 4 && std::isfinite(*real) && std::isinf(static_cast<float>(*real))) {
    throw InputError("", "",
                     fmt::format("'{}' does not fit {}: write a number from {:.6g} to {:.6g}, or inf", word, slot.of,
                                 -kMost, kMost));
  }
  return *real;
}

// The address of an array plus a distance: "@2", "@2+64", "@p.q+0x40".
struct ArrayReference {
  std::string_view array;
  std::uint64_t distance = 0;  // [bytes]
};

std::optional<ArrayReference> read_reference(std::string_view word) {
  if (!word.starts_with('@')) return std::nullopt;
  const std::size_t plus = word.find('+');
  ArrayReference out{word.substr(1, plus == std::string_view::npos ? plus : plus - 1)};
  if (plus != std::string_view::npos) {
    const auto distance = read_integer(word.substr(plus + 1));
    if (!distance || distance->negative || !distance->magnitude) return std::nullopt;
    out.distance = *distance->magnitude;
  }
  return out;
}

}  // namespace

const DeviceArray* find_array(const std::vector<DeviceArray>& arrays, std::string_view name) {
  const auto found = std::find_if(arrays.begin(), arrays.end(), [&](const DeviceArray& array) {
    return std::find(array.names.begin(), array.names.end(), name) != array.names.end();
  });
  return found == arrays.end() ? nullptr : &*found;
}

std::string array_names(const std::vector<DeviceArray>& arrays) {
  if (arrays.empty()) return "no array is placed";
  std::string out = "arrays are ";
  for (const DeviceArray& array : arrays) out += (&array == &arrays.front() ? "" : ", ") + array.names.front();
  return out;
}

ptx::ParamValue ArgumentPlacer::value(const ArgumentSlot& slot, const std::string& word) {
  if (word.starts_with(kMap)) return map_of(slot, word);
  if (word == "null") {
    check_pointer(slot, word);
    return std::uint64_t{0};
  }
  if (word.starts_with('@')) return pointer_into(slot, word);
  if (word.ends_with(".npy")) return array(slot, word, golden::read_npy(word));
  for (const std::string_view kind : {kSafetensors, kNpz}) {
    if (const std::size_t at = word.find(kind); at != std::string::npos) {
      return array(slot, word, tensor_of(word.substr(0, at + kind.size() - 1), word.substr(at + kind.size())));
    }
  }
  if (const auto fresh = new_array(word)) {
    check_pointer(slot, word);
    const auto bytes = golden::byte_count(fresh->first, fresh->second);
    if (!bytes || *bytes > kMostArray) {
      throw InputError("", "", fmt::format("'{}' is more than {} bytes", word, kMostArray));
    }
    const std::uint64_t address = device_.memory().allocate(*bytes, word, false);
    arrays_.push_back({slot.names, word, address, fresh->first, fresh->second, *bytes});
    return address;
  }
  return number(slot, word);
}

// An array is passed by its address, which has 8 bytes.
void ArgumentPlacer::check_pointer(const ArgumentSlot& slot, const std::string& word) {
  if (slot.bytes == 8 || slot.bytes == 0) return;
  throw InputError("", "",
                   fmt::format("'{}' is an array, but {} is not a pointer of 8 bytes: write {}", word, slot.of,
                               slot.bytes < 8 ? "a number" : "map:FILE.json@ARRAY"));
}

ptx::ParamValue ArgumentPlacer::array(const ArgumentSlot& slot, const std::string& word, const golden::Tensor& tensor) {
  check_pointer(slot, word);
  const auto bytes = static_cast<std::int64_t>(tensor.bytes.size());
  const std::uint64_t address = device_.memory().allocate(std::max<std::int64_t>(bytes, 1), word);
  if (bytes > 0) device_.memory().write(address, tensor.bytes);
  arrays_.push_back({slot.names, word, address, tensor.dtype, tensor.shape, bytes});
  return address;
}

golden::Tensor ArgumentPlacer::tensor_of(const std::string& path, const std::string& name) {
  const golden::Bundle file = golden::load_bundle(path);
  if (const auto found = file.tensors.find(name); found != file.tensors.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [known, tensor] : file.tensors) names.push_back(known);
  throw InputError("", "", fmt::format("{} has no tensor '{}': it has {}", path, name, fmt::join(names, ", ")));
}

ptx::ParamValue ArgumentPlacer::pointer_into(const ArgumentSlot& slot, const std::string& word) const {
  check_pointer(slot, word);
  const auto reference = read_reference(word);
  const DeviceArray* found = reference ? find_array(arrays_, reference->array) : nullptr;
  if (found == nullptr) {
    throw InputError(
        "", "",
        fmt::format("'{}' is not @ARRAY or @ARRAY+BYTES of an array placed before it: {}", word, array_names(arrays_)));
  }
  return found->address + reference->distance;
}

ptx::ParamValue ArgumentPlacer::map_of(const ArgumentSlot& slot, const std::string& word) {
  const MapWord parts = read_map_word(word);
  TensorMapFile file = parse_tensor_map(read_file(parts.path, kMostMapFile), parts.path);
  if (parts.array) file.map.base += array_of_map(slot, word, *parts.array);
  check_tensor_map(file.map, file.target).throw_if_broken(parts.path);
  return map_bytes(file.map, device_.target());
}

// The address of the array that a map is over. An array that no other parameter has gets the names of the map.
std::uint64_t ArgumentPlacer::array_of_map(const ArgumentSlot& slot, const std::string& word,
                                           const std::string& array) {
  if (const DeviceArray* found = find_array(arrays_, array)) return found->address;
  if (!places_array(array)) {
    throw InputError("", "",
                     fmt::format("'{}': '{}' is neither an array placed before it ({}), nor FILE.npy, FILE.npz:NAME, "
                                 "FILE.safetensors:NAME or TYPE[SHAPE]",
                                 word, array, array_names(arrays_)));
  }
  return std::get<std::uint64_t>(value({slot.names, slot.of, ptx::Type::u64, 8}, array));
}

ptx::ParamValue ArgumentPlacer::number(const ArgumentSlot& slot, const std::string& word) {
  const std::optional<Integer> integer = read_integer(word);
  const std::optional<double> real = whole_number<double>(word);
  if (word.ends_with(".npz") || word.ends_with(".safetensors")) {
    throw InputError("", "",
                     fmt::format("'{}' holds several arrays: pass one, as FILE.npy, FILE.npz:NAME or "
                                 "FILE.safetensors:NAME",
                                 word));
  }
  if (!integer && !real) {
    throw InputError("", "",
                     fmt::format("'{}' is neither a number, nor FILE.npy, FILE.npz:NAME, FILE.safetensors:NAME, "
                                 "TYPE[SHAPE], null, @ARRAY or map:FILE.json@ARRAY",
                                 word));
  }
  if (slot.bytes == 0) return std::uint64_t{0};  // the number of arguments is the fault
  if (slot.bytes > 8) {
    throw InputError("", "",
                     fmt::format("'{}' is a number, but {} is a struct: pass its fields as "
                                 "{}.FIELD=VALUE or @FILE.json, or a tensor map as map:FILE.json@ARRAY",
                                 word, slot.of, slot.names.empty() ? "0" : slot.names.front()));
  }
  if (ptx::class_of(slot.type) == ptx::TypeClass::floating) return floating(slot, word, real);
  if (integer && fits(*integer, slot)) return integer->negative ? ~*integer->magnitude + 1 : *integer->magnitude;
  const IntegerRange range = range_of(slot);
  const std::string write = fmt::format("write an integer from -{} to {}", range.below, range.above);
  if (integer) throw InputError("", "", fmt::format("'{}' does not fit {}: {}", word, slot.of, write));
  // For newer targets, nvcc declares float parameters as .b32 and .b64.
  if (ptx::class_of(slot.type) == ptx::TypeClass::bits && holds_float(slot)) {
    return bits_of(slot, std::get<double>(floating(slot, word, real)));
  }
  std::string bits;
  if (holds_float(slot)) bits = fmt::format(", or 0x{:x} for the bits of {}", bits_of(slot, *real), word);
  throw InputError("", "",
                   fmt::format("'{}' is not an integer, but {} takes integers: {}{}", word, slot.of, write, bits));
}

}  // namespace kvscope::apps
