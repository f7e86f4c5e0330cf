#include "core/golden/layouts/detail/mask_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/attention/score_bias.h"
#include "core/base/convert.h"

namespace kvscope::golden {
namespace {

constexpr const char* kMasks[] = {"custom_mask", "packed_custom_mask", "tree_mask", "attn_mask"};
// attn_mask: [Sq, Sk], [B or 1, Sq, Sk] or [B or 1, Hq or 1, Sq, Sk], of integers (0 hides the key) or of floats (a
// bias; at most kHiddenBias hides the key). The keys of sequence b are the columns from padding[b] on.
class DenseMask {
 public:
  DenseMask(LayoutReader& r, const std::vector<std::int64_t>& queries, const std::vector<std::int64_t>& keys,
            const std::vector<std::int64_t>& padding, std::int64_t query_heads)
      : padding_(padding), tensor_(r.find("attn_mask")) {
    const Tensor& tensor = *tensor_;
    const std::string given = r.given("attn_mask");
    const std::vector<std::int64_t>& shape = tensor.shape;
    const std::size_t rank = shape.size();
    const auto batch = static_cast<std::int64_t>(keys.size());
    const std::int64_t heads = rank == 4 ? shape[1] : 1, sequences = rank >= 3 ? shape[0] : 1;
    if (rank < 2 || rank > 4 || (sequences != 1 && sequences != batch) || (heads != 1 && heads != query_heads) ||
        tensor.dtype == DType::e2m1) {
      r.fault(given,
              fmt::format("is {}; it is [Sq, Sk], [{}, Sq, Sk] or [{}, {}, Sq, Sk], where axes that share a mask "
                          "have length 1",
                          describe(tensor), batch, batch, query_heads));
      return;
    }
    rows_ = shape[rank - 2];
    columns_ = shape[rank - 1];
    by_sequence_ = sequences == 1 ? 0 : heads * rows_ * columns_;
    by_head_ = heads == 1 ? 0 : rows_ * columns_;
    for (std::size_t b = 0; b < keys.size(); ++b) {
      if (queries[b] <= rows_ && padding[b] + keys[b] <= columns_ && (queries[b] == rows_ || r.has("q_lens"))) continue;
      r.fault(given, fmt::format("has {} rows and {} columns, but sequence {} has {} queries and {} keys{}", rows_,
                                 columns_, b, queries[b], keys[b],
                                 padding[b] > 0 ? fmt::format(" after {} positions of padding", padding[b]) : ""));
      return;
    }
    values_.resize(tensor.bytes.size() / static_cast<std::size_t>(size_of(tensor.dtype)));
    to_doubles(tensor.dtype, tensor.bytes.data(), values_);
    if (is_float(tensor.dtype)) read_biases(r, given, shape);
    heads_differ_ = heads > 1 && !heads_agree(sequences, heads);
  }

  // Whether it is more than the keys of each query: numbers that are added to scores, or other keys for each head.
  [[nodiscard]] bool is_bias() const { return has_biases_ || heads_differ_; }
  // `first_keys`: the storage for the first columns.
  [[nodiscard]] attention::ScoreBias bias(std::vector<std::int64_t>& first_keys) const {
    first_keys = padding_;
    return {tensor_->bytes.data(), tensor_->dtype, by_sequence_, by_head_, columns_, first_keys};
  }

  [[nodiscard]] bool sees(std::size_t b, std::int64_t query, std::int64_t key) const {
    return values_[static_cast<std::size_t>(static_cast<std::int64_t>(b) * by_sequence_ + query * columns_ +
                                            padding_[b] + key)] != 0;
  }

 private:
  // Biases as 1 for a visible key and 0 for a hidden one.
  void read_biases(LayoutReader& r, const std::string& given, const std::vector<std::int64_t>& shape) {
    for (std::size_t i = 0; i < values_.size(); ++i) {
      double& value = values_[i];
      if (std::isnan(value) || value == std::numeric_limits<double>::infinity()) {
        std::string index;
        std::int64_t rest = static_cast<std::int64_t>(i);
        for (std::size_t axis = shape.size(); axis-- > 0; rest /= shape[axis]) {
          index = fmt::format("{}{}{}", rest % shape[axis], index.empty() ? "" : ", ", index);
        }
        return r.fault(
            fmt::format("{}[{}]", given, index),
            fmt::format("is {}; a float mask is added to the scores: a finite number, and -inf or at most {} "
                        "for a hidden key. Save a mask of 0 and 1 as integers",
                        value, attention::kHiddenBias));
      }
      const bool hidden = value <= attention::kHiddenBias;
      has_biases_ = has_biases_ || (value != 0 && !hidden);
      value = hidden ? 0 : 1;
    }
  }

  // Whether the keys of each query are the same for all heads.
  [[nodiscard]] bool heads_agree(std::int64_t sequences, std::int64_t heads) const {
    const auto size = static_cast<std::ptrdiff_t>(rows_ * columns_);
    const auto same = [](double x, double y) { return (x != 0) == (y != 0); };
    for (std::int64_t b = 0; b < sequences; ++b) {
      const auto first = values_.begin() + static_cast<std::ptrdiff_t>(b) * heads * size;
      for (std::int64_t head = 1; head < heads; ++head) {
        if (!std::equal(first, first + size, first + static_cast<std::ptrdiff_t>(head) * size, same)) return false;
      }
    }
    return true;
  }

  std::vector<std::int64_t> padding_;
  std::vector<double> values_;
  const Tensor* tensor_;
  std::int64_t rows_ = 0, columns_ = 0, by_sequence_ = 0, by_head_ = 0;
  bool has_biases_ = false, heads_differ_ = false;
};

// Whether a query sees a key, for the sequences of a problem.
class MaskTensor {
 public:
  MaskTensor(LayoutReader& r, const char* name, const std::vector<std::int64_t>& queries,
             const std::vector<std::int64_t>& keys)
      : packed_(name == std::string_view("packed_custom_mask")), keys_(keys) {
    const Tensor* found = r.find(name);
    const std::string given = r.given(name);
    if (found->dtype == DType::e2m1 || (packed_ && found->dtype != DType::u8)) {
      r.fault(given, fmt::format("is {}; {}", kvscope::name(found->dtype),
                                 packed_ ? "packed bits are u8" : "a mask is 0 or 1 in a type of whole bytes"));
      return;
    }
    values_.resize(found->bytes.size() / static_cast<std::size_t>(size_of(found->dtype)));
    to_doubles(found->dtype, found->bytes.data(), values_);
    std::int64_t needed = 0;
    if (name == std::string_view("tree_mask")) {
      const std::size_t rank = found->shape.size();
      const auto batch = static_cast<std::int64_t>(keys.size());
      if (rank < 2 || rank > 3 || found->shape[rank - 1] != found->shape[rank - 2] ||
          (rank == 3 && found->shape[0] != batch)) {
        r.fault(given, fmt::format("has shape {}; it is [S, S] or [{}, S, S]", shape_text(found->shape), batch));
        return;
      }
      tree_ = found->shape.back();
      tree_stride_ = rank == 3 ? tree_ * tree_ : 0;
      for (std::size_t b = 0; b < keys.size(); ++b) {
        if (queries[b] == tree_ && keys[b] >= tree_) continue;
        r.fault(given, fmt::format("is for {} queries, but sequence {} has {} queries and {} keys", tree_, b,
                                   queries[b], keys[b]));
      }
      return;
    }
    for (std::size_t b = 0; b < keys.size(); ++b) {
      first_.push_back(needed);
      needed += packed_ ? (queries[b] * keys[b] + 7) / 8 : queries[b] * keys[b];
    }
    if (found->shape.size() != 1 || found->shape[0] != needed) {
      r.fault(given, fmt::format("has shape {}, but the queries and keys of all sequences need [{}]",
                                 shape_text(found->shape), needed));
    }
  }

  void keep(QueryMasks& kept) const {
    kept.form = tree_ > 0 ? QueryMasks::Form::tree : packed_ ? QueryMasks::Form::packed : QueryMasks::Form::custom;
    kept.tree = tree_;
    for (const double value : values_) {
      kept.values.push_back(packed_ ? static_cast<std::uint8_t>(value) : static_cast<std::uint8_t>(value != 0));
    }
    for (std::size_t b = 0; b < kept.sequences.size(); ++b) {
      kept.sequences[b].first_value = tree_ > 0 ? static_cast<std::int64_t>(b) * tree_stride_ : first_[b];
    }
  }

  [[nodiscard]] bool sees(std::size_t b, std::int64_t query, std::int64_t key) const {
    if (tree_ > 0) {
      const std::int64_t node = key - (keys_[b] - tree_);
      return node < 0 || at(static_cast<std::int64_t>(b) * tree_stride_ + query * tree_ + node) != 0;
    }
    const std::int64_t index = query * keys_[b] + key;
    if (!packed_) return at(first_[b] + index) != 0;
    return (static_cast<int>(at(first_[b] + index / 8)) >> (index % 8) & 1) != 0;
  }

 private:
  [[nodiscard]] double at(std::int64_t index) const { return values_[static_cast<std::size_t>(index)]; }

  bool packed_ = false;
  const std::vector<std::int64_t>& keys_;
  std::vector<double> values_;
  std::vector<std::int64_t> first_;
  std::int64_t tree_ = 0, tree_stride_ = 0;
};

// The columns of a dense mask before the first key of each sequence: a padded cache counts positions, if the mask has a
// column for each of them.
std::vector<std::int64_t> columns_before(LayoutReader& r, const std::vector<std::int64_t>& keys) {
  std::vector<std::int64_t> padding(keys.size(), 0);
  const Tensor* mask = r.peek("attn_mask");
  if (r.layout().table.form != TableForm::dense || !r.pages.by_token || mask->shape.empty()) return padding;
  if (mask->shape.back() != r.page_size) return padding;
  for (std::size_t b = 0; b < keys.size(); ++b) padding[b] = r.page_size - r.pages.columns[b];
  return padding;
}

}  // namespace

void apply_mask_tensors(LayoutReader& r, const CacheScales& scales, PreparedProblem& prepared) {
  std::vector<const char*> given;
  std::ranges::copy_if(kMasks, std::back_inserter(given), [&](const char* name) { return r.has(name); });
  if (given.empty()) return;
  const char* name = given.front();
  static_cast<void>(r.find(name));
  if (given.size() > 1) {
    static_cast<void>(r.find(given[1]));
    return r.fault(r.given(given[1]), fmt::format("is given together with {}: keep one mask", r.given(name)));
  }
  const attention::Options& options = r.options().attention;
  if (options.mask != MaskKind::none && options.mask != MaskKind::causal) {
    r.fault("--mask", fmt::format("has no effect with {}, which states the keys of each query", r.given(name)));
  }
  if (!prepared.alibi_slopes.empty()) {
    r.fault(r.given("alibi_slopes"), fmt::format("is not supported together with {}", r.given(name)));
  }
  if (scales.k.walk[0].sequence != 0 || scales.v.walk[1].sequence != 0) {
    r.fault(r.given(name), "is not supported together with scales by sequence");
  }
  LayoutReader::Pages& pages = r.pages;
  const std::vector<std::int64_t>& offsets = prepared.query_offsets;
  if (!r.ok() || offsets.size() != pages.first.size() + 1) return;
  std::vector<std::int64_t> queries, keys;
  const std::int64_t page = pages.by_token ? 1 : r.page_size;
  for (std::size_t b = 0; b < pages.first.size(); ++b) {
    queries.push_back(offsets[b + 1] - offsets[b]);
    keys.push_back(pages.lengths[b] + (pages.lengths_without_new ? queries.back() : 0));
    if ((keys.back() + page - 1) / page > pages.columns[b]) {
      r.fault(fmt::format("{}[{}]", pages.lengths_name, b),
              fmt::format("sequence {} has {} keys, more than its {} pages of {} tokens hold", b, keys.back(),
                          pages.columns[b], page));
    }
  }
  if (!r.ok()) return;
  std::optional<MaskTensor> listed;
  std::optional<DenseMask> dense;
  if (std::string_view(name) == "attn_mask") {
    dense.emplace(r, queries, keys, columns_before(r, keys), prepared.problem.query_heads);
  } else {
    listed.emplace(r, name, queries, keys);
  }
  if (!r.ok()) return;
  if (dense && dense->is_bias()) {
    prepared.problem.options.bias = dense->bias(prepared.bias_columns);
    prepared.problem.options.mask = MaskKind::none;
    return;
  }
  const auto sees = [&](std::size_t b, std::int64_t query, std::int64_t key) {
    return dense ? dense->sees(b, query, key) : listed->sees(b, query, key);
  };
  LayoutReader::Pages made;
  made.table_name = pages.table_name;
  made.lengths_name = r.given(name);
  made.by_token = r.page_size > 1;
  QueryMasks& kept = r.masks.emplace();
  kept.name = r.given(name);
  kept.page_size = r.page_size;
  kept.blocks = r.blocks;
  const auto slot_of = [&](std::size_t b, std::int64_t key) {
    const std::int64_t entry = pages.entries[static_cast<std::size_t>(pages.first[b] + key / page)];
    const bool is_block = entry >= 0 && entry < r.blocks * (pages.by_token ? r.page_size : 1);
    return is_block ? entry * page + key % page : -1;
  };
  for (std::size_t b = 0; b < queries.size(); ++b) {
    kept.sequences.push_back({offsets[b], queries[b], keys[b], static_cast<std::int64_t>(kept.key_slots.size()), 0});
    for (std::int64_t key = 0; key < keys[b]; ++key) kept.key_slots.push_back(slot_of(b, key));
    for (std::int64_t query = 0; query < queries[b]; ++query) {
      made.first.push_back(static_cast<std::int64_t>(made.entries.size()));
      for (std::int64_t key = 0; key < keys[b]; ++key) {
        if (!sees(b, query, key)) continue;
        made.entries.push_back(kept.key_slots[static_cast<std::size_t>(kept.sequences[b].first_slot + key)]);
      }
      made.columns.push_back(static_cast<std::int64_t>(made.entries.size()) - made.first.back());
      made.lengths.push_back(made.columns.back());
    }
  }
  if (listed) {
    listed->keep(kept);
  } else {  // the values of visible and hidden keys, without the mask's padding
    for (std::size_t b = 0; b < queries.size(); ++b) {
      kept.sequences[b].first_value = static_cast<std::int64_t>(kept.values.size());
      for (std::int64_t i = 0; i < queries[b] * keys[b]; ++i) {
        kept.values.push_back(sees(b, i / keys[b], i % keys[b]) ? 1 : 0);
      }
    }
  }
  pages = std::move(made);
  prepared.query_offsets.resize(pages.first.size() + 1);
  std::iota(prepared.query_offsets.begin(), prepared.query_offsets.end(), std::int64_t{0});
  prepared.problem.batch = static_cast<std::int64_t>(pages.first.size());
  prepared.problem.options.mask = MaskKind::none;
  r.warnings.push_back(
      fmt::format("{}: reports count each query as a sequence of the keys that it sees", r.given(name)));
}

}  // namespace kvscope::golden
