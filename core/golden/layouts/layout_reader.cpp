#include "core/golden/layouts/detail/layout_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/nearest_name.h"
#include "core/golden/golden_bundle.h"

namespace kvscope::golden {

std::string pattern_fault(DType stored, std::optional<DType> stated, std::string_view option) {
  const bool in_bytes = bits(stored) == 8;
  if (!in_bytes && bits(stored) != 16) {
    return fmt::format("is {}: allowed are floats, and their bit patterns in u8 or u16", name(stored));
  }
  if (stated && bits(*stated) != bits(stored)) {
    return fmt::format("is {}, which holds no {} bit patterns", name(stored), name(*stated));
  }
  return fmt::format("is {}: which floats are its bit patterns? Pass {} {}, or end its name in {}", name(stored),
                     option, in_bytes ? "e4m3" : "bf16", in_bytes ? "_e4m3 or _e5m2" : "_bf16 or _f16");
}

namespace {

template <class T>
void append(std::vector<std::int64_t>& to, const Tensor& tensor) {
  // A u64 past 2^63 becomes a negative number, which is rejected where it would be used.
  for (const T value : values<T>(tensor)) to.push_back(static_cast<std::int64_t>(value));
}

}  // namespace

LayoutReader::LayoutReader(const Bundle& bundle, const LayoutOptions& options, const LayoutDescription& layout)
    : bundle_(bundle), options_(options), layout_(layout), known_(known_tensors_of(layout)) {
  for (const KnownTensor& known : known_) {
    std::vector<std::string_view> names = words(known.synonyms);
    names.insert(names.begin(), std::string_view(known.name));
    for (const std::string_view candidate : names) {
      const std::string name(candidate);
      if (!bundle_.tensors.contains(name) || ignored(name)) continue;
      const auto [first, is_new] = given_.emplace(known.name, name);
      if (is_new) continue;
      used_.insert(name);
      fault(name,
            fmt::format("is given together with {}, which is the same input: keep one of them, or pass --ignore {}",
                        first->second, name));
    }
  }
}

bool LayoutReader::ignored(const std::string& name) const {
  return std::ranges::count(options_.ignore, name) > 0;
}

std::string LayoutReader::given(const std::string& name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? name : found->second;
}

const Tensor* LayoutReader::find(const std::string& name) {
  const auto found = given_.find(name);
  if (found == given_.end()) return nullptr;
  used_.insert(found->second);
  return &bundle_.tensors.at(found->second);
}

const Tensor* LayoutReader::peek(const std::string& name) const {
  const auto found = given_.find(name);
  return found == given_.end() ? nullptr : &bundle_.tensors.at(found->second);
}

void LayoutReader::check_unused() {
  const bool otherwise_fine = ok();
  const bool is_golden = bundle_.manifest.find("conventions") != nullptr;
  std::vector<std::string_view> names, canonical, in_bundle;
  for (const KnownTensor& known : known_) {
    canonical.push_back(known.name);
    names.push_back(known.name);
    for (const std::string_view synonym : words(known.synonyms)) names.push_back(synonym);
  }
  bool listed = false;  // the names of the layout, once
  for (const auto& [name, tensor] : bundle_.tensors) {
    in_bundle.push_back(name);
    if (used_.contains(name) || ignored(name)) continue;
    if (is_golden && std::ranges::count(golden_answer_names(), name) > 0) continue;
    if (std::ranges::count(names, name) == 0) {
      const bool near = !nearest_name(name, names).empty();
      std::string offer = near ? suggest_name(name, names) : listed ? " either." : suggest_name(name, canonical) + ".";
      listed = listed || !near;
      fault(name, fmt::format("is not a tensor of layout '{}'{} Pass --ignore {} to leave it out", layout_.name, offer,
                              name));
    } else if (otherwise_fine) {  // after a fault, a known tensor may have stayed unread because of it
      fault(name,
            fmt::format("is not used: the input gives the same in other tensors. Pass --ignore {} to leave it out",
                        name));
    }
  }
  for (const std::string& name : options_.ignore) {
    if (bundle_.tensors.contains(name)) continue;
    fault("--ignore", fmt::format("'{}' is not a tensor of the input{}", name, suggest_name(name, in_bundle)));
  }
}

const Tensor* LayoutReader::tensor(const std::string& name, std::size_t rank, std::string_view shape_words) {
  const Tensor* found = find(name);
  if (found == nullptr) {
    fault(name, fmt::format("is missing; layout '{}' needs {} {}", layout_.name, name, shape_words));
  } else if (found->shape.size() != rank) {
    fault(given(name),
          fmt::format("has shape {}, but layout '{}' needs {}", shape_text(found->shape), layout_.name, shape_words));
    return nullptr;
  }
  return found;
}

const Tensor* LayoutReader::cache(const std::string& name, std::size_t rank, std::string_view shape_words) {
  const Tensor* found = tensor(name, rank, shape_words);
  if (found == nullptr) return nullptr;
  cache_dtype = options_.cache_type.value_or(CacheType{found->dtype}).dtype;
  const bool packed = cache_dtype == DType::e2m1 && bits(found->dtype) == 8;  // two elements in a byte
  const bool is_cache = is_float(cache_dtype) || cache_dtype == DType::i8;
  if (is_float(found->dtype) && cache_dtype != found->dtype) {  // f16 read as bf16 would be another number
    fault(given(name), fmt::format("is {}: --cache-dtype {} is for bit patterns that are stored as u8, i8 or "
                                   "u16; remove it",
                                   kvscope::name(found->dtype), kvscope::name(cache_dtype)));
  } else if (bits(cache_dtype) != bits(found->dtype) && !packed) {
    fault(given(name), fmt::format("is {}, which holds no {} bit patterns", kvscope::name(found->dtype),
                                   kvscope::name(cache_dtype)));
  } else if (!is_cache) {
    fault(given(name), pattern_fault(found->dtype, {}, "--cache-dtype"));
  }
  for (const std::int64_t extent : found->shape) {
    if (extent == 0) {
      fault(given(name), fmt::format("has shape {}: every extent must be at least 1", shape_text(found->shape)));
      return nullptr;
    }
  }
  return found;
}

const Tensor* LayoutReader::bytes(const std::string& name, std::size_t rank, std::string_view shape_words) {
  const Tensor* found = tensor(name, rank, shape_words);
  if (found == nullptr) return nullptr;
  if (bits(found->dtype) != 8) {
    fault(given(name),
          fmt::format("is {}; packed rows are bytes: a tensor of e4m3, e5m2, u8 or i8", kvscope::name(found->dtype)));
    return nullptr;
  }
  if (std::ranges::count(found->shape, 0) > 0) {
    fault(given(name), fmt::format("has shape {}: every extent must be at least 1", shape_text(found->shape)));
    return nullptr;
  }
  return found;
}

std::vector<std::int64_t> LayoutReader::integers(const std::string& name, std::size_t rank,
                                                 std::string_view shape_words) {
  const Tensor* found = tensor(name, rank, shape_words);
  if (found == nullptr) return {};
  std::vector<std::int64_t> result;
  switch (found->dtype) {
    case DType::i32:
      append<std::int32_t>(result, *found);
      break;
    case DType::u32:
      append<std::uint32_t>(result, *found);
      break;
    case DType::i64:
      append<std::int64_t>(result, *found);
      break;
    case DType::u64:
      append<std::uint64_t>(result, *found);
      break;
    default:
      fault(given(name), fmt::format("is {}; an index tensor is i32, u32, i64 or u64", kvscope::name(found->dtype)));
      return {};
  }
  return result;
}

}  // namespace kvscope::golden
