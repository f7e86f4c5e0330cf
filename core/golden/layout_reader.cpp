#include "core/golden/detail/layout_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/golden/golden_bundle.h"
#include "core/scenario/nearest_name.h"

namespace kvscope::golden {
namespace {

// A larger length is an input error; the limit keeps sums within 64 bits.
constexpr std::int64_t kMostTokens = std::int64_t{1} << 40;

template <class T>
void append(std::vector<std::int64_t>& to, const Tensor& tensor) {
  // A u64 past 2^63 becomes a negative number, which is rejected where it would be used.
  for (const T value : values<T>(tensor)) to.push_back(static_cast<std::int64_t>(value));
}

}  // namespace

LayoutReader::LayoutReader(const Bundle& bundle, const LayoutOptions& options)
    : bundle_(bundle), options_(options), known_(known_tensors_of(options.layout)) {
  for (const KnownTensor& known : known_) {
    std::vector<std::string_view> names = words(known.synonyms);
    names.insert(names.begin(), known.name);
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

void LayoutReader::check_unused() {
  const bool otherwise_fine = ok();
  const bool is_golden = bundle_.manifest.find("conventions") != nullptr;
  std::vector<std::string_view> names, canonical, in_bundle;
  for (const KnownTensor& known : known_) {
    canonical.push_back(known.name);
    names.push_back(known.name);
    for (const std::string_view synonym : words(known.synonyms)) names.push_back(synonym);
  }
  for (const auto& [name, tensor] : bundle_.tensors) {
    in_bundle.push_back(name);
    if (used_.contains(name) || ignored(name)) continue;
    if (is_golden && std::ranges::count(golden_answer_names(), name) > 0) continue;
    if (std::ranges::count(names, name) == 0) {
      const bool near = !nearest_name(name, names).empty();
      fault(name, fmt::format("is not a tensor of layout '{}'{} Pass --ignore {} to leave it out", options_.layout,
                              near ? suggest_name(name, names) : suggest_name(name, canonical) + ".", name));
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
    fault(name, fmt::format("is missing; layout '{}' needs {} {}", options_.layout, name, shape_words));
  } else if (found->shape.size() != rank) {
    fault(given(name), fmt::format("has shape {}, but layout '{}' needs {}", shape_text(found->shape), options_.layout,
                                   shape_words));
    return nullptr;
  }
  return found;
}

const Tensor* LayoutReader::cache(const std::string& name, std::size_t rank, std::string_view shape_words) {
  const Tensor* found = tensor(name, rank, shape_words);
  if (found == nullptr) return nullptr;
  cache_dtype = options_.cache_dtype.value_or(found->dtype);
  if (bits(cache_dtype) != bits(found->dtype)) {
    fault(given(name), fmt::format("is {}, which holds no {} bit patterns", kvscope::name(found->dtype),
                                   kvscope::name(cache_dtype)));
  } else if (!is_float(cache_dtype)) {
    fault(given(name),
          fmt::format(
              "is {}: say which floats its bit patterns are, by the ending of its name (_bf16, _f16, _e4m3, _e5m2)",
              kvscope::name(found->dtype)));
  }
  for (const std::int64_t extent : found->shape) {
    if (extent == 0) {
      fault(given(name), fmt::format("has shape {}: every extent must be at least 1", shape_text(found->shape)));
      return nullptr;
    }
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

void LayoutReader::set_rows(attention::PagedRows& rows, const Walk& walk, DType dtype) const {
  rows.data = walk.data;
  rows.dtype = dtype;
  rows.blocks = blocks;
  rows.page_size = page_size;
  rows.heads = heads;
  rows.head_size = head_size;
  rows.block_stride = walk.block;
  rows.token_stride = walk.token;
  rows.head_stride = walk.head;
}

void LayoutReader::read_table(const std::string& table_name, const std::string& lengths_name,
                              bool lengths_without_new) {
  pages.table_name = given(table_name);
  pages.lengths_name = given(lengths_name);
  pages.lengths_without_new = lengths_without_new;
  pages.entries = integers(table_name, 2, "[B, columns]");
  pages.lengths = integers(lengths_name, 1, "[B]");
  if (!has(table_name) || !has(lengths_name)) return;
  const auto& shape = find(table_name)->shape;
  const auto batch = static_cast<std::int64_t>(pages.lengths.size());
  if (shape.size() != 2) return;
  if (shape[0] != batch) {
    fault(pages.table_name, fmt::format("has {} rows, but {} has {} entries", shape[0], pages.lengths_name, batch));
    return;
  }
  for (std::int64_t b = 0; b < batch; ++b) {
    pages.first.push_back(b * shape[1]);
    pages.columns.push_back(shape[1]);
    const std::int64_t length = pages.lengths[static_cast<std::size_t>(b)];
    if (length < 0 || length > kMostTokens) {
      fault(fmt::format("{}[{}]", pages.lengths_name, b), fmt::format("is {}, not a length in [0, 2^40]", length));
    }
  }
}

namespace {

// Checks for increasing offsets into `count` entries; otherwise adds a fault and returns false.
bool check_indptr(LayoutReader& reader, const std::vector<std::int64_t>& indptr, std::int64_t count) {
  if (indptr.empty()) {
    reader.fault("kv_indptr", "is empty; layout needs [B + 1] entries, the first 0");
    return false;
  }
  if (indptr[0] != 0) {
    reader.fault("kv_indptr[0]", fmt::format("is {}; the first sequence starts at 0", indptr[0]));
    return false;
  }
  for (std::size_t b = 1; b < indptr.size(); ++b) {
    if (indptr[b] < indptr[b - 1]) {
      reader.fault(fmt::format("kv_indptr[{}]", b),
                   fmt::format("is {} after {}; it must not fall", indptr[b], indptr[b - 1]));
      return false;
    }
  }
  if (indptr.back() > count) {
    reader.fault("kv_indptr", fmt::format("ends at {}, but kv_indices has {} entries", indptr.back(), count));
    return false;
  }
  return true;
}

}  // namespace

void LayoutReader::read_indptr_pages() {
  pages.table_name = "kv_indices";
  pages.lengths_name = "kv_last_page_len";
  for (const char* name : {"kv_indptr", "kv_indices", "kv_last_page_len"}) {
    if (const Tensor* index = find(name); index != nullptr && bits(index->dtype) == 64) {
      warnings.push_back(
          fmt::format("{} is {}: FlashInfer's kernels read 32-bit indices, and wrong ones where these are given",
                      given(name), kvscope::name(index->dtype)));
    }
  }
  const std::vector<std::int64_t> indptr = integers("kv_indptr", 1, "[B + 1]");
  pages.entries = integers("kv_indices", 1, "[pages]");
  const std::vector<std::int64_t> last = integers("kv_last_page_len", 1, "[B]");
  if (!has("kv_indptr") || !has("kv_indices") || !has("kv_last_page_len")) return;
  if (!check_indptr(*this, indptr, static_cast<std::int64_t>(pages.entries.size()))) return;
  if (last.size() + 1 != indptr.size()) {
    fault("kv_last_page_len",
          fmt::format("has {} entries, but kv_indptr has {}: one less is needed", last.size(), indptr.size()));
    return;
  }
  for (std::size_t b = 0; b < last.size(); ++b) {
    const std::int64_t count = indptr[b + 1] - indptr[b];
    pages.first.push_back(indptr[b]);
    pages.columns.push_back(count);
    if (count > 0 && (last[b] < 1 || last[b] > page_size)) {
      fault(fmt::format("kv_last_page_len[{}]", b),
            fmt::format("is {}, but a last page holds 1 to {} tokens: a kernel would read past the page", last[b],
                        page_size));
    }
    pages.lengths.push_back(count == 0 ? 0 : (count - 1) * page_size + last[b]);
  }
}

void LayoutReader::read_indptr_tokens() {
  pages.table_name = "kv_indices";
  pages.lengths_name = "kv_indptr";
  const std::vector<std::int64_t> indptr = integers("kv_indptr", 1, "[B + 1]");
  pages.entries = integers("kv_indices", 1, "[tokens]");
  if (!has("kv_indptr") || !has("kv_indices")) return;
  if (!check_indptr(*this, indptr, static_cast<std::int64_t>(pages.entries.size()))) return;
  for (std::size_t b = 0; b + 1 < indptr.size(); ++b) {
    pages.first.push_back(indptr[b]);
    pages.columns.push_back(indptr[b + 1] - indptr[b]);
    pages.lengths.push_back(indptr[b + 1] - indptr[b]);
  }
}

}  // namespace kvscope::golden
