#include "core/golden/verdict/golden_terms.h"

#include <algorithm>
#include <cmath>

#include "core/golden/golden_inputs.h"

namespace kvscope::golden {
namespace {

std::span<const double> doubles_or_none(const Bundle& bundle, const char* tensor_name) {
  const auto found = bundle.tensors.find(tensor_name);
  return found == bundle.tensors.end() ? std::span<const double>() : values<double>(found->second);
}

}  // namespace

std::vector<TermShape> optional_terms(const std::vector<std::int64_t>& output_shape) {
  const std::vector<std::int64_t> rows(output_shape.begin(), output_shape.begin() + 2);
  return {{"running", output_shape},
          {"key_counts", rows},
          {"p2", rows},
          {"repeats", rows},
          {"clump", {rows[0], rows[1], static_cast<std::int64_t>(attention::kClumpTypes)}},
          {"faint", {rows[0], rows[1], static_cast<std::int64_t>(attention::kFaintTerms)}}};
}

GoldenTerms::GoldenTerms(const Bundle& golden)
    : o_(doubles_or_none(golden, "o")),
      a1_(doubles_or_none(golden, "a1")),
      a2_(doubles_or_none(golden, "a2")),
      smax_(doubles_or_none(golden, "smax")),
      lse_(doubles_or_none(golden, "lse")) {
  const std::vector<std::int64_t>& shape = golden.tensors.at("o").shape;
  golden_error_ = doubles_or_none(golden, "golden_error");
  heads_ = shape[1];
  dims_ = shape[2];
  const std::vector<TermShape> optional = optional_terms(shape);
  if (std::ranges::all_of(optional, [&](const TermShape& t) { return golden.tensors.contains(t.name); })) {
    running_ = doubles_or_none(golden, "running");
    key_counts_ = doubles_or_none(golden, "key_counts");
    p2_ = doubles_or_none(golden, "p2");
    repeats_ = doubles_or_none(golden, "repeats");
    clump_ = doubles_or_none(golden, "clump");
    faint_ = doubles_or_none(golden, "faint");
    lost_ = doubles_or_none(golden, "lost");
    partial_sums_ = doubles_or_none(golden, "partial_sums");
    row_sum_cut_ = doubles_or_none(golden, "row_sum_cut");
    largest_value_ = doubles_or_none(golden, "largest_value");
  }
  const StatedAttention stated = stated_attention(golden, "golden");
  head_size_ = static_cast<double>(stated.head_size.value_or(std::max<std::int64_t>(1, dims_)));
  base_two_ = stated.options.lse_base == attention::LseBase::two;
  sinks_ = stated.sinks;
  const auto offsets = golden.tensors.find("query_offsets");
  const auto lengths = golden.tensors.find("key_lengths");
  if (offsets == golden.tensors.end() || lengths == golden.tensors.end()) return;
  const auto first = values<std::int64_t>(offsets->second);
  const auto length = values<std::int64_t>(lengths->second);
  lengths_.assign(static_cast<std::size_t>(shape[0]), 1);
  for (std::size_t b = 0; b < length.size() && b + 1 < first.size(); ++b) {
    for (std::int64_t query = first[b]; query < first[b + 1]; ++query) {
      lengths_[static_cast<std::size_t>(query)] = static_cast<double>(length[b]);
    }
  }
}

attention::RowTerms GoldenTerms::row(std::size_t row) const {
  attention::RowTerms terms;
  terms.head_size = head_size_;
  terms.base_two = base_two_;
  terms.smax = smax_[row];
  terms.lse = lse_.empty() ? 0 : lse_[row];
  if (fast()) {
    terms.score_error = golden_error_[2 * row];
    terms.sum_error = golden_error_[2 * row + 1];
  }
  if (complete()) {
    terms.keys = key_counts_[row];
    terms.p2 = p2_[row];
    terms.repeats = repeats_[row];
    for (std::size_t i = 0; i < attention::kClumpTypes; ++i) terms.clump[i] = clump_[row * attention::kClumpTypes + i];
    for (std::size_t i = 0; i < attention::kFaintTerms; ++i) terms.faint[i] = faint_[row * attention::kFaintTerms + i];
    if (!lost_.empty()) {
      for (std::size_t i = 0; i < attention::kLostTerms; ++i) terms.lost[i] = lost_[row * attention::kLostTerms + i];
    }
    if (!partial_sums_.empty()) {
      terms.score_sum = partial_sums_[row * attention::kPartialTerms];
      terms.row_sum_so_far = partial_sums_[row * attention::kPartialTerms + 1];
    }
    for (std::size_t i = 0; i < attention::kClumpTypes && !row_sum_cut_.empty(); ++i) {
      terms.row_sum_cut[i] = row_sum_cut_[row * attention::kClumpTypes + i];
    }
    if (!largest_value_.empty()) terms.largest_value = largest_value_[row];
  } else if (const std::size_t query = row / static_cast<std::size_t>(heads_); query < lengths_.size()) {
    terms.keys = lengths_[query];
  }
  return terms;
}

double GoldenTerms::concentration(std::size_t row) const {
  if (!sinks_) return complete() ? p2_[row] : 1;
  double independent = 0, all = 0;
  const auto dims = static_cast<std::size_t>(dims_);
  for (std::size_t i = row * dims; i < (row + 1) * dims; ++i) {
    independent += a2_[i] * a2_[i];
    all += a1_[i] * a1_[i];
  }
  return all > 0 ? std::sqrt(independent / all) : 1;
}

attention::ElementTerms GoldenTerms::element(std::size_t element) const {
  return {o_[element], a1_[element], a2_[element], complete() ? running_[element] : a1_[element]};
}

attention::ElementRow GoldenTerms::elements(std::size_t first, std::int64_t count) const {
  const double* const running = complete() ? running_.data() : a1_.data();
  return {o_.data() + first, a1_.data() + first, a2_.data() + first, running + first, count};
}

}  // namespace kvscope::golden
