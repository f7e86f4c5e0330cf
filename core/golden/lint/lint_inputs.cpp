#include "core/golden/lint/detail/lint_inputs.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <string_view>
#include <type_traits>
#include <utility>

#include "core/attention/problem_checks.h"
#include "core/base/checked.h"
#include "core/golden/layouts/detail/known_tensors.h"

namespace kvscope::golden {
namespace {

constexpr std::int64_t kLongestSequence = std::int64_t{1} << 40;  // [tokens]

// Names of the index tensors of a layout, by the role of each; "" for a role that it does not have.
std::string role_name(const LayoutDescription& layout, const std::string& role) {
  return layout.table.has(role) ? layout.table.name(role) : std::string();
}

bool is_cache_name(const LayoutDescription& layout, std::string_view name) {
  return std::ranges::any_of(layout.forms, [&](const CacheForm& form) {
    return std::ranges::any_of(
        form.tensors, [&](const CacheTensor& tensor) { return tensor.name == name && !tensor.holds_scales(); });
  });
}

// A tensor under its canonical name or a synonym.
struct Found {
  std::string name;  // in the file, or the canonical one
  const Tensor* tensor = nullptr;
};

class LintTensors {
 public:
  LintTensors(const Bundle& bundle, const LayoutOptions& options) : layout_(layout_of(options)) {
    for (const KnownTensor& known : known_tensors_of(layout_)) {
      std::vector<std::string_view> names = words(known.synonyms);
      names.insert(names.begin(), known.name);
      Found found{std::string(known.name), nullptr};
      for (const std::string_view name : names) {
        const auto at = bundle.tensors.find(std::string(name));
        if (at == bundle.tensors.end() || std::ranges::count(options.ignore, at->first) > 0) continue;
        found = {at->first, &at->second};
        break;
      }
      found_.emplace(known.name, std::move(found));
    }
  }
  [[nodiscard]] const LayoutDescription& layout() const { return layout_; }
  [[nodiscard]] Found get(const std::string& canonical) const {
    const auto at = found_.find(canonical);
    return at == found_.end() ? Found{canonical, nullptr} : at->second;
  }
  [[nodiscard]] Found role(const std::string& role) const { return get(role_name(layout_, role)); }

 private:
  const LayoutDescription& layout_;
  std::map<std::string, Found> found_;
};

template <class T>
void append_elements(std::vector<std::int64_t>& to, const Tensor& tensor) {
  for (const T value : values<T>(tensor)) {
    if constexpr (std::is_same_v<T, std::uint64_t>) {
      to.push_back(static_cast<std::int64_t>(std::min<std::uint64_t>(value, std::numeric_limits<std::int64_t>::max())));
    } else {
      to.push_back(static_cast<std::int64_t>(value));
    }
  }
}

// The elements of an index tensor; empty with a finding when it is missing or of another type or rank.
std::optional<std::vector<std::int64_t>> index_values(const Found& found, std::size_t rank, std::string_view shape,
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

// Offsets into `count` entries. Returns for each sequence whether its two offsets can be used.
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
                                    "offsets are running sums, and a sequence cannot have a negative size", to));
    } else if (to > count) {
      findings.push_back(lint_fault("indptr", object, fmt::format("is {}", to), fmt::format("[0, {}], {}", count, of),
                                    "the kernel would read past the end", to));
    }
    usable.push_back(from >= 0 && from <= to && to <= count);
  }
  return usable;
}

std::vector<std::int64_t> new_tokens(const LintTensors& tensors, std::size_t batch, LintIndices& indices,
                                     std::vector<LintFinding>& findings) {
  std::vector<std::int64_t> queries(batch, 1);
  const Found q = tensors.get("q"), offsets = tensors.get("query_offsets");
  const bool has_rows = q.tensor != nullptr && q.tensor->shape.size() == 3;
  if (offsets.tensor != nullptr) {
    const auto given = index_values(offsets, 1, "[B + 1]", findings);
    if (!given) return queries;
    const std::int64_t rows = has_rows ? q.tensor->shape[0] : kLongestSequence;
    const std::vector<bool> usable = check_offsets(offsets.name, *given, rows, "the rows of q", findings);
    if (given->size() != batch + 1) {
      findings.push_back(lint_fault("shape", offsets.name, fmt::format("has {} entries", given->size()),
                                    fmt::format("{}", batch + 1), "one offset per sequence, and the end",
                                    static_cast<std::int64_t>(given->size())));
      return queries;
    }
    if (has_rows && !usable.empty() && usable.back() && given->back() < rows) {
      findings.push_back(lint_fault("indptr", fmt::format("{}[{}]", offsets.name, batch),
                                    fmt::format("is {}, but q has {} rows", given->back(), rows),
                                    fmt::format("{}", rows), "the last rows belong to no sequence", given->back()));
    }
    for (std::size_t b = 0; b < batch; ++b) {
      if (usable[b]) queries[b] = (*given)[b + 1] - (*given)[b];
    }
    indices.queries_known = true;
  } else if (q.tensor != nullptr && q.tensor->shape.size() == 4) {
    std::ranges::fill(queries, std::min(q.tensor->shape[1], kLongestSequence));
    if (q.tensor->shape[0] != static_cast<std::int64_t>(batch)) {
      findings.push_back(lint_fault("shape", q.name, fmt::format("has {} sequences", q.tensor->shape[0]),
                                    fmt::format("{}", batch), "q and the table belong to different batches",
                                    q.tensor->shape[0]));
    }
    indices.queries_known = true;
  } else if (has_rows) {
    indices.queries_known = q.tensor->shape[0] == static_cast<std::int64_t>(batch);
    if (!indices.queries_known && batch > 0) {
      findings.push_back(
          lint_fault("shape", q.name, fmt::format("has {} rows for {} sequences", q.tensor->shape[0], batch),
                     fmt::format("{}, or offsets", batch), "add query_offsets [B + 1]", q.tensor->shape[0]));
    }
  }
  return queries;
}

void read_table(const LintTensors& tensors, const LintCache& cache, bool without_new, LintIndices& indices,
                std::vector<LintFinding>& findings) {
  const Found table = tensors.role("table"), lengths = tensors.role("lengths");
  indices.table_name = table.name;
  const auto entries = index_values(table, 2, "[B, columns]", findings);
  const auto given = index_values(lengths, 1, "[B]", findings);
  const std::size_t batch = given ? given->size() : 0;
  const std::vector<std::int64_t> queries = new_tokens(tensors, batch, indices, findings);
  if (!entries || !given) return;
  const std::int64_t rows = table.tensor->shape[0], columns = table.tensor->shape[1];
  if (rows != static_cast<std::int64_t>(batch)) {
    findings.push_back(lint_fault("shape", table.name, fmt::format("has {} rows", rows),
                                  fmt::format("{}, the entries of {}", batch, lengths.name),
                                  "table and lengths belong to different batches", rows));
  }
  indices.entries = *entries;
  indices.table_columns = columns;
  for (std::int64_t b = 0; b < std::min<std::int64_t>(rows, static_cast<std::int64_t>(batch)); ++b) {
    const auto at = static_cast<std::size_t>(b);
    const std::int64_t length = (*given)[at];
    LintSequence sequence{b * columns, columns, 0, queries[at], 0, 0, true};
    const std::string object = fmt::format("{}[{}]", lengths.name, b);
    if (length < 0 || length > kLongestSequence) {
      findings.push_back(
          lint_fault("length", object, fmt::format("is {}", length), "[0, 2^40]", "a length counts tokens", length));
      sequence.known = false;
    } else {
      sequence.keys = length + (without_new ? sequence.queries : 0);
      const std::int64_t needed = cache.page_size > 0 ? ceil_div(sequence.keys, cache.page_size) : 0;
      if (needed > columns) {
        findings.push_back(lint_fault(
            "length", object,
            fmt::format("is {}: {} keys are {} pages of {} tokens", length, sequence.keys, needed, cache.page_size),
            fmt::format("at most {} pages, the columns of {}", columns, table.name),
            "the kernel would take further pages from the next row", length));
      }
    }
    indices.sequences.push_back(sequence);
  }
}

void read_flat(const LintTensors& tensors, const LintCache& cache, LintIndices& indices,
               std::vector<LintFinding>& findings) {
  const bool by_page = indices.form == LintIndices::Form::pages;
  const Found indptr = tensors.role("indptr"), entries = tensors.role("indices");
  indices.table_name = entries.name;
  const auto offsets = index_values(indptr, 1, "[B + 1]", findings);
  const auto given = index_values(entries, 1, by_page ? "[pages]" : "[tokens]", findings);
  const bool by_length = by_page && !tensors.layout().table.has("last_page_len");
  const Found last = tensors.role(by_length ? "lengths" : "last_page_len");
  const auto last_lengths = by_page ? index_values(last, 1, "[B]", findings) : std::nullopt;
  const std::size_t batch = offsets && !offsets->empty() ? offsets->size() - 1 : 0;
  const std::vector<std::int64_t> queries = new_tokens(tensors, batch, indices, findings);
  if (!offsets) return;
  const std::vector<bool> usable =
      check_offsets(indptr.name, *offsets, given ? static_cast<std::int64_t>(given->size()) : kLongestSequence,
                    "the entries of " + entries.name, findings);
  const bool has_last = last_lengths && last_lengths->size() == batch;
  if (last_lengths && !has_last) {
    findings.push_back(lint_fault("shape", last.name, fmt::format("has {} entries", last_lengths->size()),
                                  fmt::format("{}, the sequences of {}", batch, indptr.name), "one length per sequence",
                                  static_cast<std::int64_t>(last_lengths->size())));
  }
  if (given) indices.entries = *given;
  for (std::size_t b = 0; b < usable.size(); ++b) {
    LintSequence sequence{0, 0, 0, queries[b], 0, 0, usable[b] && given.has_value()};
    if (sequence.known) {
      sequence.first = (*offsets)[b];
      sequence.columns = (*offsets)[b + 1] - (*offsets)[b];
      sequence.keys = sequence.columns * std::max<std::int64_t>(cache.page_size, 1);
      if (has_last && sequence.columns > 0) {
        const std::int64_t before = by_length ? (sequence.columns - 1) * std::max<std::int64_t>(cache.page_size, 1) : 0;
        const std::int64_t tokens = std::clamp((*last_lengths)[b], -kLongestSequence, kLongestSequence) - before;
        if (tokens < 1 || (cache.page_size > 0 && tokens > cache.page_size)) {
          findings.push_back(lint_fault(
              "last-page", fmt::format("{}[{}]", last.name, b), fmt::format("is {}", before + tokens),
              cache.page_size > 0 ? fmt::format("[{}, {}]", before + 1, before + cache.page_size) : "at least 1",
              tokens < 1 ? "a page without tokens must not be in kv_indices" : "the kernel would read past the page",
              before + tokens));
        } else {
          sequence.keys += tokens - std::max<std::int64_t>(cache.page_size, 1);
        }
      }
    }
    indices.sequences.push_back(sequence);
  }
}

// The pages that the queries see, by the mask of the options.
void find_visible_pages(const LintOptions& options, const LintCache& cache, LintIndices& indices) {
  if (cache.page_size < 1) return;
  std::vector<std::int64_t> offsets{0}, keys;
  for (const LintSequence& sequence : indices.sequences) {
    offsets.push_back(offsets.back() + std::clamp<std::int64_t>(sequence.queries, 0, kLongestSequence));
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
    sequence.begin = std::min(range.first / cache.page_size, sequence.columns);
    sequence.end = std::min((range.last - 1) / cache.page_size + 1, sequence.columns);
  }
}

// Elements of a token and head, from the shapes alone; 0 when they do not tell.
std::int64_t row_length(const std::string& layout, const std::map<std::string, Tensor>& caches) {
  constexpr std::int64_t kMost = std::int64_t{1} << 28;
  std::int64_t parts = 0, whole = 0;
  for (const auto& [name, tensor] : caches) {
    const std::vector<std::int64_t>& shape = tensor.shape;
    if (shape.empty()) continue;
    if (layout == "vllm_legacy" && shape.size() == 5) {
      return std::min(shape[2], kMost) * std::min(shape[4], kMost);
    }
    const bool is_part = name.starts_with("ckv") || name.starts_with("kpe");
    (is_part ? parts : whole) = (is_part ? parts : 0) + std::min(shape.back(), kMost);
  }
  return whole > 0 ? whole : parts;
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
      return tensor->axes.size() == given.size() && tensor->strides.empty() && tensor->axes == tensors.front()->axes;
    });
    if (!fits || tensors.empty() || !caches.empty()) continue;
    const std::vector<std::string>& axes = tensors.front()->axes;
    const auto at =
        std::ranges::find_if(axes, [](const std::string& axis) { return axis == "block" || axis == "token"; });
    const auto count = static_cast<std::size_t>(at - axes.begin());
    if (at == axes.end() || !std::ranges::all_of(given, [](std::int64_t extent) { return extent > 0; })) continue;
    std::vector<std::int64_t> one = given;
    blocks = std::exchange(one[count], 1);
    const std::optional<std::int64_t> bytes = byte_count(options.cache_type, one);
    if (!bytes || *bytes > (std::int64_t{1} << 30) || blocks > (std::int64_t{1} << 31)) continue;
    for (const CacheTensor* tensor : tensors) caches.emplace(tensor->name, make_tensor(options.cache_type, one));
  }
  if (caches.empty()) {
    throw InputError("command line", "--cache-shape",
                     fmt::format("{} has no form of layout '{}', with every extent from 1 and blocks of at most 1 GiB: "
                                 "give the shape of {}",
                                 shape_text(given), layout.name, fmt::join(shapes, ", ")));
  }
  return caches;
}

}  // namespace

std::string LintIndices::entry_name(std::int64_t sequence, std::int64_t page) const {
  if (form == Form::table) return fmt::format("{}[{}, {}]", table_name, sequence, page);
  return fmt::format("{}[{}]", table_name, sequences[static_cast<std::size_t>(sequence)].first + page);
}

LintCache read_lint_cache(Bundle& tensors, const LintOptions& options, std::vector<LintFinding>& findings) {
  LintCache cache;
  LayoutOptions layout = options.layout;
  layout.ignore.clear();
  layout.attention = {};
  if (!layout.scale) layout.scale = 1;
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
  if (!cache.has_contents) {
    if (options.cache_shape.empty()) {
      findings.push_back(lint_fault("missing", "cache tensors", "are missing", "",
                                    "save the cache with the index tensors, or pass its shape with --cache-shape"));
      return cache;
    }
    cache.tensors.tensors = shaped_caches(options, given_blocks);
  }
  constexpr std::int64_t kMostExtent = std::int64_t{1} << 28;  // of the empty q: its strides must not overflow
  std::int64_t heads = 1;                                      // a multiple of the KV heads, whichever axis they are
  const Tensor& any = cache.tensors.tensors.begin()->second;
  for (std::size_t axis = 1; axis + 1 < any.shape.size(); ++axis) {
    heads *= std::clamp<std::int64_t>(any.shape[axis], 1, kMostExtent / heads);
  }
  const std::int64_t row = std::min(row_length(layout.layout, cache.tensors.tensors), kMostExtent);
  if (!layout.value_size && description.needs_value_size() && row > 0 && row != 576) {
    layout.value_size = row;
  }
  if (layout.layout == "max" && any.shape.size() == 6 && any.shape[1] == 2) layout.value_size.reset();
  Bundle& bundle = cache.tensors;
  const auto zeros = [](DType dtype, std::vector<std::int64_t> shape) { return make_tensor(dtype, std::move(shape)); };
  bundle.tensors.emplace("q", zeros(DType::f32, {0, heads, std::max<std::int64_t>(row, 0)}));
  for (const auto& [role, names] : description.table.tensors) {
    std::vector<std::int64_t> shape{role == "indptr" ? 1 : 0};
    if (role == "table") shape = {0, 1};
    bundle.tensors.emplace(names.front(), zeros(DType::i32, std::move(shape)));
  }
  try {
    cache.prepared = prepare_problem(bundle, layout, "cache");
  } catch (const InputError& error) {
    for (const Fault& fault : error.faults()) {
      findings.push_back(lint_fault("shape", fault.where, fault.message, "", ""));
    }
    return cache;
  }
  cache.k = cache.prepared.problem.k;
  cache.v = cache.prepared.problem.v;
  cache.rearranged = !cache.prepared.k_copy.empty();
  cache.blocks = cache.has_contents ? cache.k.blocks : given_blocks;
  cache.page_size = cache.k.page_size;
  for (const auto& entry : bundle.tensors) {
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
  LintIndices indices;
  const LayoutDescription& layout = tensors.layout();
  if (layout.table.form == TableForm::blocks) {
    read_table(tensors, cache, layout.table.lengths_without_new, indices, findings);
  } else {
    indices.form = layout.table.form == TableForm::indptr ? LintIndices::Form::pages : LintIndices::Form::tokens;
    read_flat(tensors, cache, indices, findings);
  }
  for (const auto& entry : layout.table.tensors) {
    const Found found = tensors.get(entry.second.front());
    if (layout.index_bits.value == 32 && found.tensor != nullptr && is_integer(found.tensor->dtype) &&
        bits(found.tensor->dtype) == 64) {
      findings.push_back(
          lint_warning("type", found.name, fmt::format("is {}", name(found.tensor->dtype)), "i32",
                       fmt::format("{}'s kernels read 32-bit indices: convert it", layout.index_bits.engine)));
    }
  }
  find_visible_pages(options, cache, indices);
  return indices;
}

}  // namespace kvscope::golden
