#include "core/golden/layouts/detail/mask_tensors.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/attention/score_bias.h"
#include "core/base/convert.h"
#include "core/golden/layouts/detail/mask_walk.h"

namespace kvscope::golden {
namespace {

constexpr std::size_t kMostMaskFaults = 8;  // that are printed

// The queries and keys of each sequence, and what a dense mask may have beyond them.
MaskBatch batch_of(LayoutReader& r, const PreparedProblem& prepared, std::int64_t page) {
  MaskBatch batch;
  const LayoutReader::Pages& pages = r.pages;
  const std::vector<std::int64_t>& offsets = prepared.query_offsets;
  for (std::size_t b = 0; b < pages.first.size(); ++b) {
    batch.queries.push_back(offsets[b + 1] - offsets[b]);
    batch.keys.push_back(pages.lengths[b] + (pages.lengths_without_new ? batch.queries.back() : 0));
    batch.capacity = std::max(batch.capacity, pages.columns[b] * page);
    if ((batch.keys.back() + page - 1) / page > pages.columns[b]) {
      r.fault(fmt::format("{}[{}]", pages.lengths_name, b),
              fmt::format("sequence {} has {} keys, more than its {} pages of {} tokens hold", b, batch.keys.back(),
                          pages.columns[b], page));
    }
  }
  batch.query_heads = prepared.problem.query_heads;
  const Tensor* q = r.peek(r.has("q") ? "q" : "q_nope");
  if (q != nullptr && q->shape.size() == 4) batch.padded_queries = q->shape[r.layout().queries_by_head ? 2 : 1];
  if (r.layout().table.form == TableForm::dense) {  // a padded cache counts positions
    batch.capacity = r.page_size;
    for (std::size_t b = 0; b < pages.first.size(); ++b) {
      batch.padding.push_back(pages.by_token ? r.page_size - pages.columns[b] : 0);
    }
  }
  return batch;
}

// `others`: faults behind these, which lint does not list either.
void report(LayoutReader& r, const std::string& given, const std::vector<MaskFault>& faults, std::int64_t others = 0) {
  for (std::size_t i = 0; i < std::min(faults.size(), kMostMaskFaults); ++i) {
    r.fault(faults[i].object, faults[i].message());
  }
  if (faults.size() <= kMostMaskFaults) return;
  const std::int64_t left = static_cast<std::int64_t>(faults.size() - kMostMaskFaults) + others;
  r.fault(given, fmt::format("and {} more faults: `kvscope lint --all` prints {}", left,
                             others == 0 ? "them" : fmt::format("the first {}", faults.size())));
}

// Whether the tensor is more than the keys of each query: numbers that are added to scores, or other keys by head.
bool is_bias_of_scores(const MaskValues& values, const MaskWalk& walk, const MaskBatch& batch) {
  const bool additive = values.additive();
  if (!additive && walk.heads == 1) return false;
  for (std::size_t b = 0; b < batch.size(); ++b) {
    for (std::int64_t query = 0; query < batch.queries[b]; ++query) {
      for (std::int64_t key = std::max<std::int64_t>(walk.origin[b], 0); key < batch.keys[b]; ++key) {
        const bool first = values.sees(b, 0, query, key);
        for (std::int64_t head = 0; head < walk.heads; ++head) {
          const bool seen = values.sees(b, head, query, key);
          if (seen != first || (additive && seen && values.value(b, head, query, key) != 0)) return true;
        }
      }
    }
  }
  return false;
}

// The biases, read in place: a mask with shared axes is not expanded.
attention::ScoreBias bias_of(const Tensor& tensor, const MaskValues& values, const MaskWalk& walk,
                             PreparedProblem& prepared) {
  for (std::size_t b = 0; b < walk.first.size(); ++b) {
    prepared.bias_columns.push_back(walk.first[b] - walk.origin[b] * walk.key_stride);
  }
  prepared.bias_rows = walk.query_stride;
  if (std::ranges::any_of(walk.origin, [](std::int64_t n) { return n != 0; })) prepared.bias_origins = walk.origin;
  attention::ScoreBias bias;
  bias.data = tensor.bytes.data();
  bias.dtype = tensor.dtype;
  bias.bits = walk.bits;
  bias.head_stride = walk.head_stride;
  bias.first_key = prepared.bias_columns;
  bias.key_stride = walk.key_stride;
  bias.query_strides = prepared.bias_rows;
  bias.origin = prepared.bias_origins;
  if (is_float(tensor.dtype) && !values.additive()) {
    for (std::int64_t at = 0; at < walk.end; ++at) prepared.bias_flags.push_back(values.number(at) != 0 ? 1 : 0);
    bias.data = reinterpret_cast<const std::byte*>(prepared.bias_flags.data());
    bias.dtype = DType::u8;
  }
  return bias;
}

// The keys that each query sees, a bit for each key: a list of them takes 64 times as much.
class SeenKeys {
 public:
  void add_row(std::int64_t keys) {
    first_.push_back(words_.size());
    words_.resize(words_.size() + static_cast<std::size_t>((keys + 63) / 64));
  }
  void reserve(std::size_t rows, std::size_t words) {
    first_.reserve(rows + 1);
    words_.reserve(words);
  }
  void set(std::size_t row, std::int64_t key) {
    words_[first_[row] + static_cast<std::size_t>(key / 64)] |= std::uint64_t{1} << key % 64;
  }
  [[nodiscard]] bool sees(std::size_t row, std::int64_t key) const {
    return (words_[first_[row] + static_cast<std::size_t>(key / 64)] >> key % 64 & 1) != 0;
  }
  // Calls visit(key) for each key of the row, in order.
  void each(std::size_t row, const auto& visit) const {
    const std::size_t end = row + 1 < first_.size() ? first_[row + 1] : words_.size();
    for (std::size_t word = first_[row]; word < end; ++word) {
      for (std::uint64_t bits = words_[word]; bits != 0; bits &= bits - 1) {
        visit(static_cast<std::int64_t>((word - first_[row]) * 64) + std::countr_zero(bits));
      }
    }
  }

 private:
  std::vector<std::uint64_t> words_;
  std::vector<std::size_t> first_;  // [rows] in words_
};

// The tensor as a diagnosis reads it again: its own values where a kernel's index is that of QueryMasks, and otherwise
// a value for each query and key of each sequence.
void keep_values(const Tensor& tensor, const MaskValues& values, const MaskWalk& walk, const MaskBatch& batch,
                 const SeenKeys& seen, QueryMasks& kept) {
  if (walk.bits) {
    kept.form = walk.form == MaskForm::packed ? QueryMasks::Form::packed : QueryMasks::Form::packed_tree;
    kept.word_bits = kvscope::bits(tensor.dtype);
    kept.row_bits = walk.query_stride.empty() ? kept.word_bits : walk.query_stride.front();  // of trees: all are alike
    for (const std::byte byte : tensor.bytes) kept.values.push_back(static_cast<std::uint8_t>(byte));
  } else if (walk.form == MaskForm::tree || walk.form == MaskForm::custom) {
    kept.form = walk.form == MaskForm::tree ? QueryMasks::Form::tree : QueryMasks::Form::custom;
    const bool additive = values.additive();
    for (std::int64_t at = 0; at < walk.end; ++at) {
      const double x = values.number(at);
      kept.values.push_back((additive ? x > attention::hidden_bias(tensor.dtype) : x != 0) ? 1 : 0);
    }
  } else {
    kept.form = QueryMasks::Form::custom;
    std::int64_t count = 0;
    for (std::size_t b = 0; b < batch.size(); ++b) count += batch.queries[b] * batch.keys[b];
    kept.values.reserve(static_cast<std::size_t>(count));
    std::size_t row = 0;
    for (std::size_t b = 0; b < batch.size(); ++b) {
      kept.sequences[b].first_value = static_cast<std::int64_t>(kept.values.size());
      for (std::int64_t query = 0; query < batch.queries[b]; ++query, ++row) {
        for (std::int64_t key = 0; key < batch.keys[b]; ++key) kept.values.push_back(seen.sees(row, key) ? 1 : 0);
      }
    }
    return;
  }
  for (std::size_t b = 0; b < batch.size(); ++b) {
    kept.sequences[b].first_value = walk.bits ? walk.first[b] / 8 : walk.first[b];
  }
}

// A sequence for each query, with the slots that it sees. `made` makes their lists one at a time from `kept`, which
// must outlive it, and from the result.
std::shared_ptr<const SeenKeys> list_keys(LayoutReader& r, const MaskValues& values, const MaskBatch& batch,
                                          std::int64_t page, const std::vector<std::int64_t>& offsets, QueryMasks& kept,
                                          LayoutReader::Pages& made) {
  const LayoutReader::Pages& pages = r.pages;
  const auto slot_of = [&](std::size_t b, std::int64_t key) {
    const std::int64_t entry = pages.entries[static_cast<std::size_t>(pages.first[b] + key / page)];
    const bool is_block = entry >= 0 && entry < r.blocks * (pages.by_token ? r.page_size : 1);
    return is_block ? entry * page + key % page : -1;
  };
  const auto seen = std::make_shared<SeenKeys>();
  std::size_t words = 0;
  for (std::size_t b = 0; b < batch.size(); ++b) {
    words += static_cast<std::size_t>(batch.queries[b] * ((batch.keys[b] + 63) / 64));
  }
  seen->reserve(static_cast<std::size_t>(offsets.back()), words);
  std::vector<std::int64_t> slots;  // [rows] the first slot of the row's sequence
  std::int64_t entries = 0;
  for (std::size_t b = 0; b < batch.size(); ++b) {
    kept.sequences.push_back(
        {offsets[b], batch.queries[b], batch.keys[b], static_cast<std::int64_t>(kept.key_slots.size()), 0});
    for (std::int64_t key = 0; key < batch.keys[b]; ++key) kept.key_slots.push_back(slot_of(b, key));
    for (std::int64_t query = 0; query < batch.queries[b]; ++query) {
      const std::size_t row = slots.size();
      slots.push_back(kept.sequences[b].first_slot);
      seen->add_row(batch.keys[b]);
      made.first.push_back(entries);
      for (std::int64_t key = 0; key < batch.keys[b]; ++key) {
        if (!values.sees(b, 0, query, key)) continue;
        seen->set(row, key);
        ++entries;
      }
      made.columns.push_back(entries - made.first.back());
      made.lengths.push_back(made.columns.back());
    }
  }
  made.make_row = [seen, slots = std::move(slots), &kept](std::size_t row, std::vector<std::int64_t>& list) {
    list.clear();
    seen->each(row,
               [&](std::int64_t key) { list.push_back(kept.key_slots[static_cast<std::size_t>(slots[row] + key)]); });
  };
  return seen;
}

}  // namespace

void apply_mask_tensors(LayoutReader& r, const CacheScales& scales, PreparedProblem& prepared) {
  std::vector<std::string> found;
  std::ranges::copy_if(mask_names(), std::back_inserter(found), [&](const std::string& name) { return r.has(name); });
  if (found.empty()) {
    if (r.find("mask_indptr") != nullptr) {
      r.fault(r.given("mask_indptr"), "is given without custom_mask or packed_custom_mask: save the mask too");
    }
    return;
  }
  const std::string& name = found.front();
  const std::string given = r.given(name);
  const Tensor& tensor = *r.find(name);
  for (std::size_t i = 1; i < found.size(); ++i) {
    static_cast<void>(r.find(found[i]));
    r.fault(r.given(found[i]), fmt::format("is given together with {}: keep one mask", given));
  }
  const attention::Options& options = r.options().attention;
  if (options.mask != MaskKind::none && options.mask != MaskKind::causal) {
    r.fault("--mask", fmt::format("has no effect with {}, which states the keys of each query", given));
  }
  if (!prepared.alibi_slopes.empty()) {
    r.fault(r.given("alibi_slopes"), fmt::format("is not supported together with {}", given));
  }
  if (scales.k.walk[0].sequence != 0 || scales.v.walk[1].sequence != 0) {
    r.fault(given, "is not supported together with scales by sequence");
  }
  std::optional<MaskOffsets> mask_offsets;
  if (r.has("mask_indptr")) mask_offsets = {r.given("mask_indptr"), r.integers("mask_indptr", 1, "[B + 1]")};
  if (found.size() > 1 || prepared.query_offsets.size() != r.pages.first.size() + 1 ||
      r.pages.lengths.size() != r.pages.first.size() || r.page_size < 1 || !r.ok()) {
    return;
  }
  const std::int64_t page = r.pages.by_token ? 1 : r.page_size;
  const MaskBatch batch = batch_of(r, prepared, page);
  if (!r.ok()) return;
  MaskReading reading = read_mask_walk(name, given, tensor, mask_offsets, batch);
  report(r, given, reading.faults);
  if (!r.ok()) return;
  const MaskValueFaults wrong = check_mask_values(given, tensor, reading.walk, batch);
  report(r, given, wrong.first, wrong.others);
  if (!r.ok()) return;
  r.warnings.insert(r.warnings.end(), reading.warnings.begin(), reading.warnings.end());
  for (const auto& doubt : {wrong.doubt, padding_as_rows(given, tensor, reading.walk, batch)}) {
    if (doubt) r.warnings.push_back(fmt::format("{}: {}", doubt->object, doubt->message()));
  }
  prepared.mask_tensor = given;
  const MaskValues values(tensor, reading.walk);
  // Scales by place belong to the pages of the input, which a list of keys replaces.
  const bool scaled_by_place = varies_by_place(scales.k) || varies_by_place(scales.v);
  if (scaled_by_place || is_bias_of_scores(values, reading.walk, batch)) {
    prepared.problem.options.bias = bias_of(tensor, values, reading.walk, prepared);
    prepared.problem.options.mask = MaskKind::none;
    return;
  }
  LayoutReader::Pages made;
  made.table_name = r.pages.table_name;
  made.lengths_name = given;
  made.by_token = r.page_size > 1;
  QueryMasks& kept = r.masks.emplace();
  kept.name = given;
  kept.page_size = r.page_size;
  kept.blocks = r.blocks;
  const auto seen = list_keys(r, values, batch, page, prepared.query_offsets, kept, made);
  keep_values(tensor, values, reading.walk, batch, *seen, kept);
  r.pages = std::move(made);
  prepared.query_offsets.resize(r.pages.first.size() + 1);
  std::iota(prepared.query_offsets.begin(), prepared.query_offsets.end(), std::int64_t{0});
  prepared.problem.batch = static_cast<std::int64_t>(r.pages.first.size());
  prepared.problem.options.mask = MaskKind::none;
  r.warnings.push_back(fmt::format("{}: reports count each query as a sequence of the keys that it sees", given));
}

}  // namespace kvscope::golden
