#include "core/golden/lint/detail/lint_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/attention/problem_checks.h"
#include "core/base/checked.h"
#include "core/golden/layouts/detail/cache_reader.h"
#include "core/golden/layouts/detail/known_tensors.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kMostQueries = std::int64_t{1} << 40;  // of a sequence

bool is_cache_name(const LayoutDescription& layout, std::string_view name) {
  return std::ranges::any_of(layout.forms, [&](const CacheForm& form) {
    return std::ranges::any_of(
        form.tensors, [&](const CacheTensor& tensor) { return tensor.name == name && !tensor.holds_scales(); });
  });
}

template <class T>
void append_elements(std::vector<std::int64_t>& to, const Tensor& tensor) {
  const auto elements = values<T>(tensor);
  to.reserve(to.size() + elements.size());
  for (const T value : elements) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      to.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max())));
    } else {
      to.push_back(static_cast<std::int64_t>(value));
    }
  }
}

// The pages that the queries see, by the mask of the options.
void find_visible_pages(const LintOptions& options, LintIndices& indices) {
  if (indices.page_tokens < 1) return;
  std::vector<std::int64_t> offsets{0}, keys;
  for (const LintSequence& sequence : indices.sequences) {
    offsets.push_back(offsets.back() + std::clamp<std::int64_t>(sequence.queries, 0, kMostQueries));
    keys.push_back(sequence.known ? sequence.keys : 0);
  }
  attention::Problem problem;
  problem.batch = static_cast<std::int64_t>(keys.size());
  problem.query_offsets = offsets;
  problem.key_lengths = keys;
  problem.options = options.layout.attention;
  for (std::size_t b = 0; b < indices.sequences.size(); ++b) {
    LintSequence& sequence = indices.sequences[b];
    const attention::KeyRange range = attention::needed_keys(problem, static_cast<std::int64_t>(b));
    if (!sequence.known || range.empty()) continue;
    sequence.begin = std::min(range.first / indices.page_tokens, sequence.columns);
    sequence.end = std::min((range.last - 1) / indices.page_tokens + 1, sequence.columns);
  }
}

// Whether a shape has the tensor's axes, and the extents of those whose extent is fixed.
bool has_fixed_extents(const CacheTensor& tensor, const std::vector<std::int64_t>& shape) {
  if (tensor.axes.size() != shape.size()) return false;
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::string& axis = tensor.axes[i];
    if ((axis == "kv" && shape[i] != 2) || (axis == "1" && shape[i] != 1) ||
        (axis == "row" && shape[i] != tensor.row_bytes)) {
      return false;
    }
  }
  return true;
}

// The cache tensors of a file that has none, with one block; `blocks` of them are given.
std::map<std::string, Tensor> shaped_caches(const LintOptions& options, std::int64_t& blocks) {
  const std::vector<std::int64_t>& given = options.cache_shape;
  std::map<std::string, Tensor> caches;
  const LayoutDescription& layout = layout_of(options.layout);
  std::vector<std::string> shapes;
  for (const CacheForm& form : layout.forms) {
    std::vector<const CacheTensor*> tensors;
    for (const CacheTensor& tensor : form.tensors) {
      if (!tensor.holds_scales()) tensors.push_back(&tensor);
    }
    for (const CacheTensor* tensor : tensors)
      shapes.push_back(fmt::format("{} {}", tensor->name, tensor->shape_words()));
    const bool fits = std::ranges::all_of(tensors, [&](const CacheTensor* tensor) {
      return tensor->strides.empty() && tensor->axes == tensors.front()->axes && has_fixed_extents(*tensor, given);
    });
    if (!fits || tensors.empty() || !caches.empty()) continue;
    const std::vector<std::string>& axes = tensors.front()->axes;
    const auto at = std::ranges::find_if(axes, [](const std::string& axis) {
      return axis == "block" || axis == "token" || axis == "seq" || axis == "block*kv";
    });
    const auto count = static_cast<std::size_t>(at - axes.begin());
    if (at == axes.end() || !std::ranges::all_of(given, [](std::int64_t extent) { return extent > 0; })) continue;
    std::vector<std::int64_t> one = given;
    const std::int64_t entries = *at == "block*kv" ? 2 : 1;  // of a block
    if (one[count] % entries != 0) continue;
    blocks = std::exchange(one[count], entries) / entries;
    // Elements of 4 bits are saved in pairs, as bytes.
    const bool as_bytes = !tensors.front()->row.empty() || options.cache_type == DType::e2m1;
    const DType saved = as_bytes ? DType::u8 : options.cache_type;
    const std::optional<std::int64_t> bytes = byte_count(saved, one);
    if (!bytes || *bytes > (std::int64_t{1} << 30) || blocks > (std::int64_t{1} << 31)) continue;
    for (const CacheTensor* tensor : tensors) {
      caches.emplace(tensor->name, make_tensor(saved, one));
    }
  }
  if (caches.empty()) {
    throw InputError("command line", "--cache-shape",
                     fmt::format("{} has no form of layout '{}', with every "
                                 "extent from 1 and blocks of at most 1 GiB: "
                                 "give the shape of {}",
                                 shape_text(given), layout.name, fmt::join(shapes, ", ")));
  }
  return caches;
}

// The sizes and views of the cache tensors. Without --value-size, V of an MLA row is the whole row, and K and V of one
// axis have half of it: no rule depends on the boundary.
CacheReading read_shapes(const Bundle& bundle, LayoutOptions layout, const LayoutDescription& description,
                         std::vector<Fault>& faults) {
  const bool guess = !layout.value_size && description.needs_value_size();
  for (const bool last : {false, true}) {
    LayoutReader reader(bundle, layout, description);
    CacheReading cache = read_cache(reader, description);
    if (!guess || last) {
      faults = std::move(reader.faults);
      return cache;
    }
    if (cache.tensors.empty() || cache.tensors.front() == nullptr) continue;
    const std::int64_t row = cache.tensors.front()->shape.back();
    const bool joined = description.has_axis("dim+vdim");
    if (cache.form.values_in_keys && cache.sizes.head_size > 0 && cache.sizes.latent == 0) {
      layout.value_size = cache.sizes.head_size;
    } else if (joined) {
      layout.value_size = std::max<std::int64_t>(row / 2, 1);
    }
  }
  return {};
}

}  // namespace

LintTensors::LintTensors(const Bundle& bundle, const LayoutOptions& options) : layout_(layout_of(options)) {
  for (const KnownTensor& known : known_tensors_of(layout_)) {
    std::vector<std::string_view> names = words(known.synonyms);
    names.insert(names.begin(), known.name);
    LintTensor found{std::string(known.name), nullptr};
    for (const std::string_view name : names) {
      const auto at = bundle.tensors.find(std::string(name));
      if (at == bundle.tensors.end() || std::ranges::count(options.ignore, at->first) > 0) continue;
      found = {at->first, &at->second};
      break;
    }
    found_.emplace(known.name, std::move(found));
  }
}

LintTensor LintTensors::get(const std::string& canonical) const {
  const auto at = found_.find(canonical);
  return at == found_.end() ? LintTensor{canonical, nullptr} : at->second;
}

LintTensor LintTensors::role(const std::string& role) const {
  return layout_.table.has(role) ? get(layout_.table.name(role)) : LintTensor{};
}

std::optional<std::vector<std::int64_t>> index_values(const LintTensor& found, std::size_t rank, std::string_view shape,
                                                      std::vector<LintFinding>& findings) {
  if (found.tensor == nullptr) {
    findings.push_back(lint_fault("missing", found.name, "is missing", std::string(shape), "save it with the cache"));
    return std::nullopt;
  }
  const Tensor& tensor = *found.tensor;
  std::vector<std::int64_t> elements;
  switch (tensor.dtype) {
    case DType::i32:
      append_elements<std::int32_t>(elements, tensor);
      break;
    case DType::u32:
      append_elements<std::uint32_t>(elements, tensor);
      break;
    case DType::i64:
      append_elements<std::int64_t>(elements, tensor);
      break;
    case DType::u64:
      append_elements<std::uint64_t>(elements, tensor);
      break;
    default:
      findings.push_back(lint_fault("type", found.name, fmt::format("is {}", name(tensor.dtype)),
                                    "i32, u32, i64 or u64", "save the integers that the kernel reads"));
      return std::nullopt;
  }
  if (tensor.shape.size() != rank) {
    findings.push_back(lint_fault("shape", found.name, fmt::format("has shape {}", shape_text(tensor.shape)),
                                  std::string(shape), "save it in the shape that the kernel reads"));
    return std::nullopt;
  }
  return elements;
}

std::vector<bool> check_offsets(const std::string& tensor, const std::vector<std::int64_t>& offsets, std::int64_t count,
                                std::string_view of, std::vector<LintFinding>& findings) {
  if (offsets.empty()) {
    findings.push_back(
        lint_fault("indptr", tensor, "is empty", "[B + 1] entries", "write a 0 and one end per sequence"));
    return {};
  }
  if (offsets[0] != 0) {
    findings.push_back(lint_fault("indptr", tensor + "[0]", fmt::format("is {}", offsets[0]), "0",
                                  "the first sequence starts at the first entry", offsets[0]));
  }
  std::vector<bool> usable;
  for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
    const std::int64_t from = offsets[b], to = offsets[b + 1];
    const std::string object = fmt::format("{}[{}]", tensor, b + 1);
    if (to < from) {
      findings.push_back(lint_fault("indptr", object, fmt::format("is {} after {}", to, from),
                                    fmt::format("at least {}", from),
                                    "offsets are running sums, and a sequence "
                                    "cannot have a negative size",
                                    to));
    } else if (to > count) {
      findings.push_back(lint_fault("indptr", object, fmt::format("is {}", to), fmt::format("[0, {}], {}", count, of),
                                    "the kernel would read past the end", to));
    }
    usable.push_back(from >= 0 && from <= to && to <= count);
  }
  return usable;
}

std::string LintIndices::entry_name(std::int64_t sequence, std::int64_t page) const {
  const LintSequence& own = sequences[static_cast<std::size_t>(sequence)];
  switch (form) {
    case TableForm::blocks:
    case TableForm::sparse:
      return fmt::format("{}[{}, {}]", table_name, sequence, page);
    case TableForm::offsets:
      return fmt::format("{}[{}, :, {}]", table_name, sequence, page);
    case TableForm::requests:
      return fmt::format("{}[{}, {}]", table_name, own.first / table_columns, page);
    case TableForm::indptr:
    case TableForm::tokens:
      return fmt::format("{}[{}]", table_name, own.first + page);
    case TableForm::dense:
      return fmt::format("sequence {}", sequence);
    case TableForm::ragged:
    case TableForm::chunk:
      break;
  }
  return fmt::format("token {}", own.first + page);
}

LintCache read_lint_cache(Bundle& tensors, const LintOptions& options, std::vector<LintFinding>& findings) {
  LintCache cache;
  LayoutOptions layout = options.layout;
  layout.ignore.clear();
  const LayoutDescription& description = layout_of(options.layout);
  for (const KnownTensor& known : known_tensors_of(description)) {
    if (!is_cache_name(description, known.name)) continue;
    std::vector<std::string_view> names = words(known.synonyms);
    names.insert(names.begin(), known.name);
    for (const std::string_view name : names) {
      if (std::ranges::count(options.layout.ignore, name) > 0) continue;
      if (auto node = tensors.tensors.extract(std::string(name))) cache.tensors.tensors.insert(std::move(node));
    }
  }
  cache.has_contents = !cache.tensors.tensors.empty();
  std::int64_t given_blocks = 0;
  if (cache.has_contents && !options.cache_shape.empty()) {
    const auto& [name, tensor] = *cache.tensors.tensors.begin();
    throw InputError(
        "command line", "--cache-shape",
        fmt::format("has no effect: the file has the cache, {} {}; remove the option", name, shape_text(tensor.shape)));
  }
  if (!cache.has_contents) {
    if (options.cache_shape.empty()) {
      findings.push_back(lint_fault("missing", "cache tensors", "are missing", "",
                                    "save the cache with the index tensors, or "
                                    "pass its shape with --cache-shape"));
      return cache;
    }
    cache.tensors.tensors = shaped_caches(options, given_blocks);
    if (options.cache_type == DType::e2m1) layout.cache_type = CacheType{DType::e2m1};
  }
  if (!layout.head_size && description.has_axis("head*dim")) {
    const Tensor* q = LintTensors(tensors, options.layout).get("q").tensor;
    const Tensor& any = cache.tensors.tensors.begin()->second;
    if (q != nullptr && !q->shape.empty()) {
      layout.head_size = q->shape.back();
    } else if (!any.shape.empty()) {
      layout.head_size = any.shape.back();  // one head: its boundaries matter to no rule
    }
  }
  std::vector<Fault> faults;
  const CacheReading reading = read_shapes(cache.tensors, layout, description, faults);
  for (const Fault& fault : faults) {
    if (fault.where == "--layer") throw InputError("command line", {fault});  // of the call, not of the tensors
    findings.push_back(lint_fault("shape", fault.where, fault.message, "", ""));
  }
  if (!faults.empty()) return cache;
  set_cache_rows(reading, layout.cache_type && layout.cache_type->fnuz, false, cache.prepared);
  cache.k = cache.prepared.problem.k;
  cache.v = cache.prepared.problem.v;
  cache.rearranged = !cache.prepared.k_copy.empty();
  cache.blocks = cache.has_contents ? cache.k.blocks : given_blocks;
  cache.page_size = cache.k.page_size;
  for (const auto& entry : cache.tensors.tensors) {
    const std::byte* from = entry.second.bytes.data();
    const std::byte* end = from + entry.second.bytes.size();
    if (cache.k.data >= from && cache.k.data < end) cache.k_start = cache.k.data - from;
    if (cache.v.data >= from && cache.v.data < end) cache.v_start = cache.v.data - from;
  }
  return cache;
}

LintIndices read_lint_indices(const Bundle& bundle, const LintOptions& options, const LintCache& cache,
                              std::vector<LintFinding>& findings) {
  const LintTensors tensors(bundle, options.layout);
  const LayoutDescription& layout = tensors.layout();
  LintIndices indices;
  indices.form = layout.table.form;
  indices.page_tokens = indices.by_token() ? std::min<std::int64_t>(cache.page_size, 1) : cache.page_size;
  indices.places = indices.by_token() ? cache.blocks * cache.page_size : cache.blocks;
  read_lint_table(tensors, cache, indices, findings);
  for (const auto& entry : layout.table.tensors) {
    const LintTensor found = tensors.get(entry.second.front());
    if (layout.index_bits.value == 32 && found.tensor != nullptr && is_integer(found.tensor->dtype) &&
        bits(found.tensor->dtype) == 64) {
      findings.push_back(
          lint_warning("type", found.name, fmt::format("is {}", name(found.tensor->dtype)), "i32",
                       fmt::format("{}'s kernels read 32-bit indices: convert it", layout.index_bits.engine)));
    }
  }
  find_visible_pages(options, indices);
  return indices;
}

}  // namespace kvscope::golden
