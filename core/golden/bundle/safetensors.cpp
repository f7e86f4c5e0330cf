#include "core/golden/bundle/safetensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <span>
#include <utility>

namespace kvscope::golden {
namespace {

constexpr std::string_view kMetadata = "__metadata__";
// A header of 100,000 tensors has about 900,000 values: each tensor's object, type, shape, extents and offsets.
constexpr std::size_t kMaxHeaderValues = 2'000'000;

constexpr std::array<std::pair<std::string_view, DType>, 16> kTypes{{{"F64", DType::f64},
                                                                     {"F32", DType::f32},
                                                                     {"F16", DType::f16},
                                                                     {"BF16", DType::bf16},
                                                                     {"F8_E4M3", DType::e4m3},
                                                                     {"F8_E5M2", DType::e5m2},
                                                                     {"F8_E8M0", DType::e8m0},
                                                                     {"I8", DType::i8},
                                                                     {"U8", DType::u8},
                                                                     {"I16", DType::i16},
                                                                     {"U16", DType::u16},
                                                                     {"I32", DType::i32},
                                                                     {"U32", DType::u32},
                                                                     {"I64", DType::i64},
                                                                     {"U64", DType::u64},
                                                                     {"BOOL", DType::u8}}};

std::optional<DType> type_of(std::string_view text) {
  const auto* found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& entry) { return entry.first == text; });
  if (found == kTypes.end()) return std::nullopt;
  return found->second;
}

std::string_view text_of(DType dtype) {
  const auto* found =
      std::find_if(kTypes.begin(), kTypes.end(), [&](const auto& entry) { return entry.second == dtype; });
  return found == kTypes.end() ? std::string_view() : found->first;
}

struct Entry {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t begin = 0;  // [bytes] from the end of the header
  std::int64_t end = 0;
};

// Parses one member of the header. Adds to `faults` and returns empty when it is invalid.
std::optional<Entry> read_entry(const std::string& tensor_name, const json::Value& value, std::vector<Fault>& faults) {
  const std::string where = fmt::format("tensor '{}'", tensor_name);
  const std::size_t faults_before = faults.size();
  const auto fault = [&](std::string message) { faults.push_back({where, std::move(message)}); };
  Entry entry{tensor_name, DType::f32, {}, 0, 0};
  const json::Object* object = value.as_object();
  if (object == nullptr) {
    fault("not an object with dtype, shape and data_offsets");
    return std::nullopt;
  }
  for (const auto& [key, unused] : *object) {
    if (key != "dtype" && key != "shape" && key != "data_offsets") fault(fmt::format("unknown key '{}'", key));
  }
  const json::Value* dtype = value.find("dtype");
  if (dtype == nullptr || !dtype->is_string()) {
    fault("'dtype' is missing or not a string");
  } else if (const auto known = type_of(*dtype->as_string())) {
    entry.dtype = *known;
  } else {
    fault(fmt::format(
        "type '{}' is not read; types are F64 F32 F16 BF16 F8_E4M3 F8_E5M2 F8_E8M0 I8 to I64, U8 to U64, BOOL",
        *dtype->as_string()));
  }
  const json::Value* shape = value.find("shape");
  if (shape == nullptr || !shape->is_array()) {
    fault("'shape' is missing or not an array");
  } else if (shape->as_array()->size() > kMaxRank) {
    fault(fmt::format("{} axes, more than {}", shape->as_array()->size(), kMaxRank));
  } else {
    for (const json::Value& extent : *shape->as_array()) {
      if (extent.as_i64() == nullptr || *extent.as_i64() < 0) {
        fault("an extent of 'shape' is not an integer in [0, 2^63)");
        break;
      }
      entry.shape.push_back(*extent.as_i64());
    }
  }
  const json::Value* offsets = value.find("data_offsets");
  const json::Array* pair = offsets == nullptr ? nullptr : offsets->as_array();
  if (pair == nullptr || pair->size() != 2 || (*pair)[0].as_i64() == nullptr || (*pair)[1].as_i64() == nullptr) {
    fault("'data_offsets' is missing or not [begin, end]");
  } else {
    entry.begin = *(*pair)[0].as_i64();
    entry.end = *(*pair)[1].as_i64();
    if (entry.begin < 0 || entry.end < entry.begin) {
      fault(fmt::format("data_offsets [{}, {}] run backwards or are negative", entry.begin, entry.end));
    }
  }
  if (faults.size() != faults_before) return std::nullopt;

  const auto needed = byte_count(entry.dtype, entry.shape);
  if (!needed) {
    fault(fmt::format("shape {} of {} overflows 64 bits", shape_text(entry.shape), name(entry.dtype)));
  } else if (*needed != entry.end - entry.begin) {
    fault(fmt::format("shape {} of {} needs {} bytes, but data_offsets [{}, {}] hold {}", shape_text(entry.shape),
                      name(entry.dtype), *needed, entry.begin, entry.end, entry.end - entry.begin));
  }
  if (faults.size() != faults_before) return std::nullopt;
  return entry;
}

// Sorted by place, every tensor must begin where the one before ended.
void check_coverage(std::vector<Entry>& entries, std::int64_t data_size, std::vector<Fault>& faults) {
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  std::int64_t at = 0;
  const Entry* before = nullptr;
  bool is_truncated = false;
  for (const Entry& entry : entries) {
    const std::string where = fmt::format("tensor '{}'", entry.name);
    if (entry.end > data_size && !std::exchange(is_truncated, true)) {  // all further tensors are missing too
      faults.push_back({where, fmt::format("data_offsets [{}, {}] run past the {} bytes of data: truncated",
                                           entry.begin, entry.end, data_size)});
    }
    if (entry.begin < at) {
      faults.push_back({where, fmt::format("data_offsets [{}, {}] overlap tensor '{}', which ends at {}", entry.begin,
                                           entry.end, before->name, at)});
    } else if (entry.begin > at) {
      faults.push_back({where, fmt::format("data_offsets [{}, {}] leave a hole of {} bytes before them", entry.begin,
                                           entry.end, entry.begin - at)});
    }
    if (entry.end >= at) {
      at = entry.end;
      before = &entry;
    }
  }
  if (at < data_size) faults.push_back({"data", fmt::format("{} bytes belong to no tensor", data_size - at)});
}

json::Value entry_json(const Tensor& tensor, std::int64_t begin) {
  json::Array shape;
  for (const std::int64_t extent : tensor.shape) shape.emplace_back(extent);
  json::Value entry;
  entry.set("dtype", text_of(tensor.dtype));
  entry.set("shape", std::move(shape));
  entry.set("data_offsets", json::Array{begin, begin + static_cast<std::int64_t>(tensor.bytes.size())});
  return entry;
}

struct SafetensorsStart {
  std::vector<Entry> entries;  // by place
  std::map<std::string, std::string> metadata;
  std::size_t data_at = 0;  // [bytes]
};

// `start` holds the header, `file_size` the bytes of the whole file, which the tensors must cover.
SafetensorsStart read_safetensors_start(std::string_view start, std::uint64_t file_size, std::string_view source) {
  const std::size_t data_at = kSafetensorsPrefix + safetensors_header_size(start, file_size, source);
  const std::string_view text = start.substr(0, data_at).substr(kSafetensorsPrefix);
  if (!text.starts_with('{')) throw InputError(source, "header", "does not begin with '{': not a safetensors file");
  const json::Value header = json::parse(text, source, kMaxHeaderValues);

  SafetensorsStart out;
  out.data_at = data_at;
  std::vector<Fault> faults;
  for (const auto& [key, value] : *header.as_object()) {
    if (key != kMetadata) {
      if (auto entry = read_entry(key, value, faults)) out.entries.push_back(std::move(*entry));
      continue;
    }
    if (!value.is_object()) {
      faults.push_back({std::string(kMetadata), "not an object of strings"});
      continue;
    }
    for (const auto& [meta_key, meta_value] : *value.as_object()) {
      if (meta_value.is_string()) {
        out.metadata.emplace(meta_key, *meta_value.as_string());
      } else {
        faults.push_back({fmt::format("{} '{}'", kMetadata, meta_key), "not a string; the format has strings only"});
      }
    }
  }
  // A tensor with a fault has no place: checking for holes would report faults of the tensors next to it.
  if (faults.empty()) check_coverage(out.entries, static_cast<std::int64_t>(file_size - data_at), faults);
  if (!faults.empty()) throw InputError(source, std::move(faults));
  return out;
}

}  // namespace

std::size_t safetensors_header_size(std::string_view start, std::uint64_t file_size, std::string_view source) {
  if (start.size() < kSafetensorsPrefix) {
    throw InputError(source, "",
                     fmt::format("{} bytes long; the header's length alone takes 8: truncated", start.size()));
  }
  std::uint64_t size = 0;
  for (std::size_t i = kSafetensorsPrefix; i-- > 0;) size = size << 8 | static_cast<unsigned char>(start[i]);
  if (size > kMaxSafetensorsHeader) {
    throw InputError(source, "header",
                     fmt::format("{} bytes long, more than {}: not a safetensors file", size, kMaxSafetensorsHeader));
  }
  if (size > file_size - kSafetensorsPrefix) {
    throw InputError(
        source, "header",
        fmt::format("{} bytes long, but {} bytes follow: truncated", size, file_size - kSafetensorsPrefix));
  }
  return static_cast<std::size_t>(size);
}

void check_safetensors_start(std::string_view start, std::uint64_t file_size, std::string_view source) {
  static_cast<void>(read_safetensors_start(start, file_size, source));
}

Safetensors read_safetensors(std::string_view start, std::uint64_t file_size, std::string_view source,
                             const ReadBytes& read) {
  SafetensorsStart checked = read_safetensors_start(start, file_size, source);
  const auto data_at = static_cast<std::int64_t>(checked.data_at);
  Safetensors file;
  file.metadata = std::move(checked.metadata);
  for (Entry& entry : checked.entries) {
    Tensor tensor{entry.dtype, std::move(entry.shape), read(data_at + entry.begin, entry.end - entry.begin)};
    file.tensors.emplace(std::move(entry.name), std::move(tensor));
  }
  return file;
}

Safetensors parse_safetensors(std::string_view bytes, std::string_view source) {
  const auto data = std::as_bytes(std::span(bytes));
  return read_safetensors(bytes, bytes.size(), source, [&](std::int64_t at, std::int64_t count) {
    const auto part = data.subspan(static_cast<std::size_t>(at), static_cast<std::size_t>(count));
    return std::vector<std::byte>(part.begin(), part.end());
  });
}

std::string safetensors_bytes(const Safetensors& file) {
  std::vector<const std::pair<const std::string, Tensor>*> order;
  for (const auto& item : file.tensors) {
    if (item.first == kMetadata || text_of(item.second.dtype).empty()) {
      throw InputError(fmt::format("tensor '{}'", item.first), "",
                       item.first == kMetadata ? "the format keeps this name for its metadata: rename it"
                                               : "e2m1 elements share bytes: store u8");
    }
    order.push_back(&item);
  }
  std::stable_sort(order.begin(), order.end(),
                   [](const auto* a, const auto* b) { return size_of(a->second.dtype) > size_of(b->second.dtype); });

  std::map<std::string_view, json::Value> members;
  std::int64_t at = 0;
  for (const auto* item : order) {
    members.emplace(item->first, entry_json(item->second, at));
    at += static_cast<std::int64_t>(item->second.bytes.size());
  }
  json::Object header;
  if (!file.metadata.empty()) {
    json::Object metadata;
    for (const auto& [key, value] : file.metadata) metadata.emplace_back(key, value);
    header.emplace_back(std::string(kMetadata), std::move(metadata));
  }
  for (auto& [key, value] : members) header.emplace_back(std::string(key), std::move(value));

  std::string text = json::dump(json::Value(std::move(header)), -1);
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string bytes;
  bytes.reserve(kSafetensorsPrefix + text.size() + static_cast<std::size_t>(at));
  for (std::size_t i = 0; i < kSafetensorsPrefix; ++i) bytes += static_cast<char>(text.size() >> (8 * i) & 0xff);
  bytes += text;
  for (const auto* item : order) bytes += as_text(item->second);
  return bytes;
}

}  // namespace kvscope::golden
