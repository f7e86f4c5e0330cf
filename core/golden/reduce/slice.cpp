#include "core/golden/reduce/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/base/report.h"
#include "core/golden/reduce/detail/slice_parts.h"

namespace kvscope::golden {

std::string sizes_text(const ProblemSizes& sizes) {
  return fmt::format("{}, {}, {}, {}, {}, head size {}, {}", counted(sizes.sequences, "sequence"),
                     counted(sizes.queries, "query", "queries"), counted(sizes.keys, "key"),
                     counted(sizes.kv_heads, "KV head"), counted(sizes.query_heads, "query head"), sizes.head_size,
                     counted(sizes.blocks, "block"));
}

Slicer::Slicer(const Bundle& tensors, const LayoutOptions& options, std::string_view source)
    : tensors_(tensors),
      options_(options),
      input_(std::make_shared<SlicedInput>(read_sliced_input(tensors, options, source))) {
  const attention::Problem& problem = input_->prepared.problem;
  if (!input_->values_in_keys && !input_->uneven && !input_->flat) {
    dims_step_ = std::lcm(std::max<std::int64_t>(input_->sizes.run, 1), std::max<std::int64_t>(input_->granularity, 1));
    const auto halves = [](const SlicedTensor& tensor) { return tensor.two_in_a_byte; };
    if (std::ranges::any_of(input_->tensors, halves)) dims_step_ = std::lcm(dims_step_, std::int64_t{2});
    if (problem.k.head_size % dims_step_ != 0 || problem.v.head_size % dims_step_ != 0) dims_step_ = 0;
  }
  if (input_->granularity > 0 && !input_->uneven) options_.granularity = input_->granularity;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    whole_.sequences.push_back({b, 0, problem.keys(b), 0, problem.first_query(b + 1) - problem.first_query(b)});
  }
  whole_.kv_heads = range_of(problem.k.heads);
  whole_.group_heads = range_of(problem.query_heads / problem.k.heads);
  whole_.dims = problem.k.head_size;
}

const PreparedProblem& Slicer::problem() const {
  return input_->prepared;
}

bool Slicer::can_cut_heads() const {
  return !input_->flat;
}

bool Slicer::can_cut_queries() const {
  return !input_->has("tree_mask") && can_cut_keys();
}

bool Slicer::can_cut_keys() const {
  return !input_->windows;
}

bool Slicer::scale_is_default() const {
  const attention::Problem& problem = input_->prepared.problem;
  return !input_->has("sm_scale") && problem.options.scale == 1.0 / std::sqrt(static_cast<double>(problem.k.head_size));
}

bool Slicer::queries_are_exact() const {
  const attention::Options& o = input_->prepared.problem.options;
  if (!input_->mask().empty()) return true;
  if (o.mask == MaskKind::none) return o.alibi_slopes.empty();
  return o.alignment == CausalAlignment::bottom_right && (o.mask != MaskKind::sliding_window || o.window_right == 0);
}

std::int64_t Slicer::keys_of(const SequenceSlice& sequence) const {
  const SequenceSlice& whole = whole_.sequences[static_cast<std::size_t>(sequence.index)];
  const std::int64_t left_out = whole.end_query - sequence.end_query;
  const bool cut = queries_are_exact() && input_->mask().empty() && can_cut_keys() &&
                   input_->prepared.problem.options.mask != MaskKind::none;
  return cut ? std::max<std::int64_t>(whole.keys - left_out, 0) : whole.keys;
}

std::vector<std::int64_t> Slicer::rows(const ProblemSlice& slice) const {
  Indices rows;
  for (const SequenceSlice& sequence : slice.sequences) {
    for (std::int64_t query = sequence.first_query; query < sequence.end_query; ++query) {
      rows.push_back(input_->prepared.problem.first_query(sequence.index) + query);
    }
  }
  return rows;
}

std::vector<std::int64_t> Slicer::query_heads(const ProblemSlice& slice) const {
  Indices heads;
  const auto group = static_cast<std::int64_t>(whole_.group_heads.size());
  for (const std::int64_t kv_head : slice.kv_heads) {
    for (const std::int64_t head : slice.group_heads) heads.push_back(kv_head * group + head);
  }
  return heads;
}

std::int64_t Slicer::value_dims(const ProblemSlice& slice) const {
  const std::int64_t all = input_->prepared.problem.v.head_size;
  return slice.dims == whole_.dims ? all : std::min(slice.dims, all);
}

// The kept blocks in increasing order: those that the kept table rows name, or the sequences and tokens of a cache
// without blocks. A table row counts to its end, because a kernel may read there.
std::vector<std::int64_t> Slicer::used_blocks(const ProblemSlice& slice) const {
  const TableForm form = input_->form();
  Indices used;
  if (form == TableForm::dense) {
    for (const SequenceSlice& sequence : slice.sequences) used.push_back(sequence.index);
    return used;
  }
  if (form == TableForm::ragged || form == TableForm::chunk) return kept_tokens(*input_, tensors_, slice);
  const std::int64_t all = input_->sizes.blocks;
  if (!slice.only_used_blocks || input_->flat) return range_of(all);
  const bool has_rows = form == TableForm::blocks || form == TableForm::offsets || form == TableForm::requests;
  for (const SequenceSlice& sequence : slice.sequences) {
    const std::int64_t size = input_->pages.columns[static_cast<std::size_t>(sequence.index)];
    const std::int64_t pages = pages_of(sequence, input_->prepared.problem.k.page_size);
    const std::int64_t end = has_rows && !slice.only_used_columns ? size : std::min(size, sequence.first_page + pages);
    for (std::int64_t at = sequence.first_page; at < end; ++at) {
      const std::int64_t block = input_->block_of(input_->entry(sequence.index, at));
      if (block >= 0 && block < all) used.push_back(block);
    }
  }
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  if (used.empty()) used.push_back(0);  // a pool has at least one block
  if (used.size() == 2 && input_->two_are_ambiguous && all > 2) {
    std::int64_t other = 0;
    while (std::ranges::count(used, other) > 0) ++other;
    used.insert(std::ranges::lower_bound(used, other), other);
  }
  return used;
}

// The kept indices of one axis.
std::vector<std::int64_t> Slicer::kept_along(const SlicedTensor& tensor, const std::string& axis,
                                             const ProblemSlice& slice, const Indices& blocks) const {
  const CacheSizes& sizes = input_->sizes;
  const std::int64_t dims = tensor.is_v ? value_dims(slice) : slice.dims;
  const std::int64_t size = tensor.is_v ? input_->prepared.problem.v.head_size : whole_.dims;
  const bool dense = input_->form() == TableForm::dense;
  const KeptPositions positions = dense ? kept_positions(*input_, slice) : KeptPositions{0, sizes.page_size};
  const auto slots = [&](std::int64_t block, Indices& kept) {
    for (std::int64_t slot = positions.first; slot < positions.end; ++slot) {
      kept.push_back(block * sizes.page_size + slot);
    }
  };
  Indices kept;
  if (axis == "block" || axis == "token" || axis == "seq") return blocks;
  if (axis == "slot" || axis == "position") {
    slots(0, kept);
  } else if (axis == "slots") {
    for (const std::int64_t block : blocks) slots(block, kept);
  } else if (axis == "block*kv") {
    for (const std::int64_t block : blocks) kept.insert(kept.end(), {2 * block, 2 * block + 1});
  } else if (axis == "sequence") {
    for (const SequenceSlice& sequence : slice.sequences) kept.push_back(sequence.index);
  } else if (axis == "head") {
    return slice.kv_heads;
  } else if (axis == "query_head") {
    return query_heads(slice);
  } else if (axis == "layer") {
    return slice.only_layer ? Indices{options_.layer} : range_of(sizes.layers);
  } else if (axis == "kv") {
    return range_of(2);
  } else if (axis == "group") {
    return range_of(ceil_div(dims, tensor.group));
  } else if (axis == "dim/x") {
    return range_of(dims / sizes.run);
  } else if (axis == "x") {
    return range_of(sizes.run);
  } else if (axis == "head*dim") {
    for (const std::int64_t head : slice.kv_heads) {
      for (std::int64_t d = 0; d < dims; ++d) kept.push_back(head * size + d);
    }
  } else if (axis == "dim+vdim") {
    for (std::int64_t d = 0; d < slice.dims; ++d) kept.push_back(d);
    for (std::int64_t d = 0; d < value_dims(slice); ++d) kept.push_back(whole_.dims + d);
  } else {  // dim
    return range_of(tensor.two_in_a_byte ? dims / 2 : dims);
  }
  if (tensor.two_in_a_byte && (axis == "head*dim" || axis == "dim+vdim")) {
    Indices bytes;
    for (std::size_t i = 0; i < kept.size(); i += 2) bytes.push_back(kept[i] / 2);
    return bytes;
  }
  return kept;
}

Bundle Slicer::cut(const ProblemSlice& slice) const {
  const Indices blocks = used_blocks(slice);
  Bundle bundle;
  for (const SlicedTensor& tensor : input_->tensors) {
    const Tensor* from = &tensors_.tensors.at(tensor.name);
    Tensor cut;
    for (std::size_t axis = 0; axis < tensor.axes.size(); ++axis) {
      const std::string& word = tensor.axes[axis];
      if (word == "1" || word == "latent" || word == "rope" || word == "row") continue;
      if (dims_step_ == 0 && (word == "dim" || word == "group")) continue;
      cut = take(*from, axis, kept_along(tensor, word, slice, blocks));
      from = &cut;
    }
    bundle.tensors.emplace(tensor.name, from == &cut ? std::move(cut) : *from);
  }
  cut_queries(*input_, tensors_, slice, query_heads(slice), slice.dims, bundle);
  cut_mask(*input_, tensors_, slice, query_heads(slice), bundle);
  cut_table(*input_, tensors_, slice, blocks, bundle);
  return bundle;
}

LayoutOptions Slicer::options(const ProblemSlice& slice) const {
  LayoutOptions options = options_;
  options.scale = input_->prepared.problem.options.scale;
  options.ignore.clear();
  if (slice.only_layer) options.layer = 0;
  if (options.head_size) options.head_size = slice.dims;
  if (options.value_size && !input_->values_in_keys) options.value_size = value_dims(slice);
  return options;
}

ProblemSizes Slicer::sizes(const ProblemSlice& slice) const {
  ProblemSizes sizes;
  sizes.sequences = static_cast<std::int64_t>(slice.sequences.size());
  for (const SequenceSlice& sequence : slice.sequences) {
    sizes.queries += sequence.end_query - sequence.first_query;
    sizes.keys += kept_keys(sequence, input_->prepared.problem.k.page_size);
  }
  sizes.kv_heads = static_cast<std::int64_t>(slice.kv_heads.size());
  sizes.query_heads = sizes.kv_heads * static_cast<std::int64_t>(slice.group_heads.size());
  sizes.head_size = slice.dims;
  sizes.blocks = static_cast<std::int64_t>(used_blocks(slice).size());
  return sizes;
}

Tensor Slicer::cut_output(const Tensor& output, const ProblemSlice& slice) const {
  const attention::Problem& problem = input_->prepared.problem;
  Tensor flat = output;
  flat.shape = {problem.total_queries(), problem.query_heads};
  const std::optional<std::int64_t> all = element_count(output.shape);
  const std::int64_t rows_and_heads = flat.shape[0] * flat.shape[1];
  if (!all || rows_and_heads == 0 || *all % rows_and_heads != 0) {
    throw GeometryError(fmt::format("an output {} has no rows of {} queries and {} heads", describe(output),
                                    flat.shape[0], flat.shape[1]));
  }
  if (*all != rows_and_heads) flat.shape.push_back(*all / rows_and_heads);
  flat = take(flat, 0, rows(slice));
  return take(flat, 1, query_heads(slice));
}

}  // namespace kvscope::golden
