#include "core/tma/tensor_map_json.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/base/nearest_name.h"

namespace kvscope {
namespace {

template <class E>
struct Word {
  std::string_view text;
  E value;
};

constexpr std::array<Word<TmaDataType>, kTmaDataTypes> kTypes{{{"u8", TmaDataType::u8},
                                                               {"u16", TmaDataType::u16},
                                                               {"u32", TmaDataType::u32},
                                                               {"i32", TmaDataType::i32},
                                                               {"u64", TmaDataType::u64},
                                                               {"i64", TmaDataType::i64},
                                                               {"f16", TmaDataType::f16},
                                                               {"f32", TmaDataType::f32},
                                                               {"f64", TmaDataType::f64},
                                                               {"bf16", TmaDataType::bf16},
                                                               {"f32_ftz", TmaDataType::f32_ftz},
                                                               {"tf32", TmaDataType::tf32},
                                                               {"tf32_ftz", TmaDataType::tf32_ftz},
                                                               {"u4x16_align8", TmaDataType::u4x16_align8},
                                                               {"u4x16_align16", TmaDataType::u4x16_align16},
                                                               {"u6x16_align16", TmaDataType::u6x16_align16}}};
constexpr std::array<Word<TmaSwizzle>, 7> kSwizzles{{{"none", TmaSwizzle::none},
                                                     {"32B", TmaSwizzle::b32},
                                                     {"64B", TmaSwizzle::b64},
                                                     {"128B", TmaSwizzle::b128},
                                                     {"128B_ATOM_32B", TmaSwizzle::b128_atom32},
                                                     {"128B_ATOM_32B_FLIP_8B", TmaSwizzle::b128_atom32_flip8},
                                                     {"128B_ATOM_64B", TmaSwizzle::b128_atom64}}};
constexpr std::array<Word<TmaInterleave>, 3> kInterleaves{
    {{"none", TmaInterleave::none}, {"16B", TmaInterleave::b16}, {"32B", TmaInterleave::b32}}};
constexpr std::array<Word<L2Promotion>, 4> kPromotions{
    {{"none", L2Promotion::none}, {"64B", L2Promotion::b64}, {"128B", L2Promotion::b128}, {"256B", L2Promotion::b256}}};
constexpr std::array<Word<OobFill>, 2> kFills{{{"zeros", OobFill::none}, {"nan", OobFill::nan_request_zero_fma}}};
constexpr std::array<Word<TmaTarget>, 2> kTargets{{{"sm_90", TmaTarget::sm_90}, {"sm_100", TmaTarget::sm_100}}};
constexpr std::array<std::string_view, 15> kKeys{
    "kvscope_tensor_map", "type",         "base", "dims",   "strides", "box",     "swizzle",    "element_strides",
    "interleave",         "l2_promotion", "fill", "target", "copy",    "$schema", "description"};
constexpr std::array<std::string_view, 2> kCopyKeys{"at", "dst"};

constexpr std::int64_t kAnyLength = -1;

// A short text for the value.
std::string text_of(const json::Value& value) {
  if (value.is_object()) return "an object";
  if (value.as_array() != nullptr) return "an array";
  return json::dump(value, -1);
}

class Reader {
 public:
  explicit Reader(const json::Value& document) : document_(document) {}

  TensorMapFile read() {
    TensorMapFile file;
    if (!document_.is_object()) {
      fault("$", fmt::format("{} instead of an object", text_of(document_)));
      return file;
    }
    known_keys(document_, "$", kKeys);
    version();
    TensorMap& map = file.map;
    word("type", kTypes, map.data_type, true);
    word("swizzle", kSwizzles, map.swizzle);
    word("interleave", kInterleaves, map.interleave);
    word("l2_promotion", kPromotions, map.l2);
    word("fill", kFills, map.fill);
    word("target", kTargets, file.target);
    integer(document_, "$.base", "base", map.base);
    const std::size_t rank = list(document_, "$.dims", "dims", map.dims, kAnyLength, true);
    map.rank = static_cast<int>(rank);
    const std::int64_t wanted = rank > 0 ? static_cast<std::int64_t>(rank) : kAnyLength;
    list(document_, "$.strides", "strides", map.strides, rank > 0 ? wanted - 1 : kAnyLength, rank != 1);
    list(document_, "$.box", "box", map.box, wanted, true);
    list(document_, "$.element_strides", "element_strides", map.element_strides, wanted, false);
    copy(file, wanted);
    return file;
  }

  std::vector<Fault> take() { return std::move(faults_); }

 private:
  void fault(std::string where, std::string message) { faults_.push_back({std::move(where), std::move(message)}); }

  template <std::size_t N>
  void known_keys(const json::Value& object, const std::string& path, const std::array<std::string_view, N>& keys) {
    for (const auto& [key, value] : *object.as_object()) {
      if (std::find(keys.begin(), keys.end(), key) == keys.end()) {
        fault(fmt::format("{}.{}", path, key), fmt::format("unknown key{}", suggest_name(key, keys)));
      }
    }
  }

  void version() {
    const json::Value* const value = document_.find("kvscope_tensor_map");
    if (value == nullptr) return fault("$.kvscope_tensor_map", "missing: write 1, the version of this format");
    const std::int64_t* const number = value->as_i64();
    if (number == nullptr || *number != kTensorMapFileVersion) {
      fault("$.kvscope_tensor_map",
            fmt::format("{} is not the version this program reads: {}", text_of(*value), kTensorMapFileVersion));
    }
  }

  template <class E, std::size_t N>
  void word(std::string_view key, const std::array<Word<E>, N>& words, E& out, bool required = false) {
    const std::string where = fmt::format("$.{}", key);
    const json::Value* const value = document_.find(key);
    std::vector<std::string_view> names;
    for (const Word<E>& w : words) names.push_back(w.text);
    if (value == nullptr) {
      if (required) fault(where, fmt::format("missing{}", suggest_name("", names)));
      return;
    }
    const std::string* const text = value->as_string();
    if (text == nullptr)
      return fault(where, fmt::format("{} instead of a word{}", text_of(*value), suggest_name("", names)));
    for (const Word<E>& w : words) {
      if (w.text == *text) {
        out = w.value;
        return;
      }
    }
    fault(where, fmt::format("\"{}\" is not a legal word{}", *text, suggest_name(*text, names)));
  }

  // False, with a fault, when `value` is not an integer in the type's range.
  template <class Number>
  bool number(const json::Value& value, const std::string& where, Number& out) {
    using Limits = std::numeric_limits<Number>;
    if (const std::int64_t* const n = value.as_i64(); n != nullptr && std::in_range<Number>(*n)) {
      out = static_cast<Number>(*n);
      return true;
    }
    if (const auto* const n = std::get_if<std::uint64_t>(&value.data()); n != nullptr && std::in_range<Number>(*n)) {
      out = static_cast<Number>(*n);
      return true;
    }
    fault(where, fmt::format("{} instead of an integer in [{}, {}]", text_of(value), Limits::min(), Limits::max()));
    return false;
  }

  template <class Number>
  void integer(const json::Value& object, const std::string& where, std::string_view key, Number& out) {
    if (const json::Value* const value = object.find(key)) number(*value, where, out);
  }

  // Returns the number of entries; 0 after a fault.
  template <class Number, std::size_t N>
  std::size_t list(const json::Value& object, const std::string& where, std::string_view key,
                   std::array<Number, N>& out, std::int64_t wanted, bool required) {
    const json::Value* const value = object.find(key);
    if (value == nullptr) {
      if (required) fault(where, "missing: a list of integers, fastest dimension first");
      return 0;
    }
    const json::Array* const items = value->as_array();
    if (items == nullptr) {
      fault(where, fmt::format("{} instead of a list of integers", text_of(*value)));
      return 0;
    }
    const std::int64_t count = std::ssize(*items);
    if (wanted == kAnyLength ? count < 1 || count > std::int64_t{N} : count != wanted) {
      fault(where, wanted == kAnyLength ? fmt::format("has {} numbers, a map has 1 to {}", count, N)
                                        : fmt::format("has {} numbers, the rank asks for {}", count, wanted));
      return 0;
    }
    for (std::size_t i = 0; i < items->size(); ++i) number((*items)[i], fmt::format("{}[{}]", where, i), out[i]);
    return items->size();
  }

  void copy(TensorMapFile& file, std::int64_t rank) {
    const json::Value* const value = document_.find("copy");
    if (value == nullptr) return;
    if (!value->is_object()) return fault("$.copy", fmt::format("{} instead of an object", text_of(*value)));
    known_keys(*value, "$.copy", kCopyKeys);
    TmaCoord at;
    at.rank = static_cast<int>(list(*value, "$.copy.at", "at", at.at, rank, true));
    if (at.rank > 0) file.at = at;
    integer(*value, "$.copy.dst", "dst", file.dst);
  }

  const json::Value& document_;
  std::vector<Fault> faults_;
};

}  // namespace

TensorMapFile parse_tensor_map(std::string_view text, std::string_view source) {
  const json::Value document = json::parse(text, source);
  Reader reader(document);
  TensorMapFile file = reader.read();
  if (std::vector<Fault> faults = reader.take(); !faults.empty()) throw InputError(source, std::move(faults));
  return file;
}

}  // namespace kvscope
