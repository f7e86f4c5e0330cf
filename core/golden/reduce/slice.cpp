#include "core/golden/reduce/slice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/base/report.h"
#include "core/golden/layouts/detail/known_tensors.h"
#include "core/golden/reduce/detail/tensor_axes.h"

namespace kvscope::golden {
namespace {

using Indices = std::vector<std::int64_t>;

Indices range_of(std::int64_t count) {
  Indices all(static_cast<std::size_t>(count));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

// The entries `indices` of one axis.
Tensor take(const Tensor& tensor, std::size_t axis, const Indices& indices) {
  if (indices == range_of(tensor.shape[axis])) return tensor;
  std::vector<std::int64_t> shape = tensor.shape;
  shape[axis] = static_cast<std::int64_t>(indices.size());
  Tensor out = make_tensor(tensor.dtype, shape);
  std::int64_t outer = 1, run = size_of(tensor.dtype);
  for (std::size_t i = 0; i < axis; ++i) outer *= shape[i];
  for (std::size_t i = axis + 1; i < shape.size(); ++i) run *= shape[i];
  if (run == 0) return out;
  std::byte* to = out.bytes.data();
  for (std::int64_t o = 0; o < outer; ++o) {
    const std::byte* from = tensor.bytes.data() + o * tensor.shape[axis] * run;
    for (const std::int64_t index : indices) {
      std::memcpy(to, from + index * run, static_cast<std::size_t>(run));
      to += run;
    }
  }
  return out;
}

Indices integers_of(const Tensor& tensor) {
  Indices out;
  const auto append = [&]<class T>(T) {
    for (const T value : values<T>(tensor)) out.push_back(static_cast<std::int64_t>(value));
  };
  switch (tensor.dtype) {
    case DType::i32:
      append(std::int32_t{});
      break;
    case DType::u32:
      append(std::uint32_t{});
      break;
    case DType::u64:
      append(std::uint64_t{});
      break;
    default:
      append(std::int64_t{});
      break;
  }
  return out;
}

Tensor integers_as(DType dtype, std::vector<std::int64_t> shape, const Indices& numbers) {
  Tensor tensor = make_tensor(dtype, std::move(shape));
  const auto fill = [&]<class T>(T) {
    std::ranges::transform(numbers, values<T>(tensor).begin(), [](std::int64_t n) { return static_cast<T>(n); });
  };
  switch (dtype) {
    case DType::i32:
      fill(std::int32_t{});
      break;
    case DType::u32:
      fill(std::uint32_t{});
      break;
    case DType::u64:
      fill(std::uint64_t{});
      break;
    default:
      fill(std::int64_t{});
      break;
  }
  return tensor;
}

std::string axes_of_cache(std::string_view layout, const Bundle& tensors) {
  if (layout == "max") return "N2LPH";
  if (layout == "hnd" || layout == "vllm_legacy") return "NHP";
  if (layout == "sglang") return "NH";
  const bool joined = tensors.tensors.contains("kv_cache") || tensors.tensors.contains("paged_kv_cache");
  if (layout == "flashinfer") return joined ? "N2PH" : "NPH";
  if (layout == "flashinfer_hnd") return joined ? "N2HP" : "NHP";
  return "NPH";
}

}  // namespace

std::string sizes_text(const ProblemSizes& sizes) {
  return fmt::format("{}, {}, {}, {}, {}, head size {}, {}", counted(sizes.sequences, "sequence"),
                     counted(sizes.queries, "query", "queries"), counted(sizes.keys, "key"),
                     counted(sizes.kv_heads, "KV head"), counted(sizes.query_heads, "query head"), sizes.head_size,
                     counted(sizes.blocks, "block"));
}

Slicer::Slicer(const Bundle& tensors, const LayoutOptions& options, std::string_view source)
    : tensors_(tensors), options_(options), prepared_(prepare_problem(tensors, options, source)) {
  const attention::Problem& problem = prepared_.problem;
  const bool is_mla = problem.v.head_size != problem.k.head_size || options.layout == "mla";
  const ScaleSizes sizes{problem.k.blocks, problem.k.page_size, problem.k.heads,
                         tensors.tensors.contains("blocks") && tensors.tensors.at("blocks").shape.size() == 6
                             ? tensors.tensors.at("blocks").shape[2]
                             : 1,
                         problem.batch};
  std::vector<Fault> faults;
  for (const KnownTensor& known : known_tensors_of(layout_of(options))) {
    std::vector<std::string_view> names = words(known.synonyms);
    names.insert(names.begin(), known.name);
    for (const std::string_view name : names) {
      const auto at = tensors.tensors.find(std::string(name));
      if (at == tensors.tensors.end() || std::ranges::count(options.ignore, at->first) > 0) continue;
      const std::vector<std::int64_t>& shape = at->second.shape;
      std::optional<std::string> axes = tensor_axes(options.layout, known.name, shape.size(), is_mla);
      if (known.name == "k_scale" || known.name == "v_scale" || known.name == "kv_scale") {
        axes = scale_axes(shape, axes_of_cache(options.layout, tensors), known.name == "kv_scale",
                          name.ends_with("_descale"), sizes);
      } else if (known.name.starts_with("kv_ind") || known.name == "kv_last_page_len" ||
                 known.name == "query_offsets") {
        axes = "";  // made anew
      }
      if (!axes) {
        faults.push_back({at->first, fmt::format("{} cannot be cut: layout '{}' is not supported by reduce",
                                                 describe(at->second), options.layout)});
        break;
      }
      axes_.push_back({at->first, std::string(known.name), *axes});
      if (known.name == "key_cache" && shape.size() == 5) run_ = shape[4];
      if (known.name == "q" && shape.size() == 4) can_cut_queries_ = false;
      break;
    }
  }
  if (!faults.empty()) throw InputError(std::string(source), std::move(faults));

  dims_step_ = is_mla ? 0 : run_;
  if (const NamedAxes* scales = named("scales"); scales != nullptr) {
    const std::int64_t granules = tensors.tensors.at(scales->name).shape.back();
    const std::int64_t granularity =
        options.granularity.value_or(granules > 0 ? ceil_div(problem.k.head_size, granules) : 0);
    dims_step_ = is_mla ? 0 : granularity;
    options_.granularity = granularity;
  }
  if (dims_step_ > 0 && problem.k.head_size % dims_step_ != 0) dims_step_ = 0;

  for (const char* table : {"lookup_table", "block_table", "block_tables"}) {
    const NamedAxes* found = named(table);
    if (found == nullptr || found->axes != "BC") continue;
    const Tensor& tensor = tensors.tensors.at(found->name);
    const Indices all = integers_of(tensor);
    columns_ = tensor.shape[1];
    for (std::int64_t b = 0; b < problem.batch; ++b) {
      entries_.emplace_back(all.begin() + b * columns_, all.begin() + (b + 1) * columns_);
    }
  }
  if (const NamedAxes* indptr = named("kv_indptr"); indptr != nullptr) {
    const Indices offsets = integers_of(tensors.tensors.at(indptr->name));
    const Indices all = integers_of(tensors.tensors.at(named("kv_indices")->name));
    for (std::size_t b = 0; b + 1 < offsets.size(); ++b) {
      entries_.emplace_back(all.begin() + offsets[b], all.begin() + offsets[b + 1]);
    }
  }
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    whole_.sequences.push_back({b, 0, problem.keys(b), 0, problem.first_query(b + 1) - problem.first_query(b)});
  }
  whole_.kv_heads = range_of(problem.k.heads);
  whole_.group_heads = range_of(problem.query_heads / problem.k.heads);
  whole_.dims = problem.k.head_size;
}

const Slicer::NamedAxes* Slicer::named(std::string_view canonical) const {
  const auto at = std::ranges::find(axes_, canonical, &NamedAxes::canonical);
  return at == axes_.end() ? nullptr : &*at;
}

bool Slicer::scale_is_default() const {
  const attention::Problem& problem = prepared_.problem;
  return named("sm_scale") == nullptr &&
         problem.options.scale == 1.0 / std::sqrt(static_cast<double>(problem.k.head_size));
}

bool Slicer::queries_are_exact() const {
  const attention::Options& o = prepared_.problem.options;
  if (o.mask == MaskKind::none) return o.alibi_slopes.empty();
  return o.alignment == CausalAlignment::bottom_right && (o.mask != MaskKind::sliding_window || o.window_right == 0);
}

std::int64_t Slicer::keys_of(const SequenceSlice& sequence) const {
  const SequenceSlice& whole = whole_.sequences[static_cast<std::size_t>(sequence.index)];
  const std::int64_t left_out = whole.end_query - sequence.end_query;
  const bool cut = queries_are_exact() && prepared_.problem.options.mask != MaskKind::none;
  return cut ? std::max<std::int64_t>(whole.keys - left_out, 0) : whole.keys;
}

std::vector<std::int64_t> Slicer::rows(const ProblemSlice& slice) const {
  Indices rows;
  for (const SequenceSlice& sequence : slice.sequences) {
    for (std::int64_t query = sequence.first_query; query < sequence.end_query; ++query) {
      rows.push_back(prepared_.problem.first_query(sequence.index) + query);
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

namespace {

std::int64_t pages_of(const SequenceSlice& sequence, std::int64_t page_size) {
  return std::max<std::int64_t>(ceil_div(sequence.keys, page_size) - sequence.first_page, 0);
}

std::int64_t kept_keys(const SequenceSlice& sequence, std::int64_t page_size) {
  return std::max<std::int64_t>(sequence.keys - sequence.first_page * page_size, 0);
}

}  // namespace

// Blocks that the kept table rows name, in increasing order. A table row counts to its end, because a kernel may read
// there.
std::vector<std::int64_t> Slicer::used_blocks(const ProblemSlice& slice) const {
  const attention::Problem& problem = prepared_.problem;
  if (!slice.only_used_blocks) return range_of(problem.k.blocks);
  Indices used;
  for (const SequenceSlice& sequence : slice.sequences) {
    const Indices& entries = entries_[static_cast<std::size_t>(sequence.index)];
    const auto size = static_cast<std::int64_t>(entries.size());
    const std::int64_t pages = pages_of(sequence, problem.k.page_size);
    const std::int64_t end =
        columns_ > 0 && !slice.only_used_columns ? size : std::min(size, sequence.first_page + pages);
    for (std::int64_t at = sequence.first_page; at < end; ++at) {
      const std::int64_t block = entries[static_cast<std::size_t>(at)];
      if (block >= 0 && block < problem.k.blocks) used.push_back(block);
    }
  }
  std::ranges::sort(used);
  used.erase(std::unique(used.begin(), used.end()), used.end());
  if (used.empty()) used.push_back(0);  // a pool has at least one block
  return used;
}

void Slicer::cut_indices(const ProblemSlice& slice, const std::vector<std::int64_t>& blocks, Bundle& bundle) const {
  const std::int64_t page_size = prepared_.problem.k.page_size;
  const auto renumbered = [&](std::int64_t block) {
    if (!slice.only_used_blocks) return block;
    const auto at = std::ranges::lower_bound(blocks, block);
    return at != blocks.end() && *at == block ? at - blocks.begin() : std::int64_t{-1};
  };
  const auto batch = static_cast<std::int64_t>(slice.sequences.size());
  std::int64_t columns = columns_;
  if (slice.only_used_columns) {
    columns = 1;
    for (const SequenceSlice& s : slice.sequences) columns = std::max(columns, pages_of(s, page_size));
  }
  Indices table, offsets{0}, flat, lengths, last, queries{0};
  for (const SequenceSlice& sequence : slice.sequences) {
    const Indices& entries = entries_[static_cast<std::size_t>(sequence.index)];
    const std::int64_t pages = pages_of(sequence, page_size);
    const std::int64_t keys = kept_keys(sequence, page_size);
    for (std::int64_t column = 0; column < columns; ++column) {
      const std::int64_t at = sequence.first_page + column;
      table.push_back(at < static_cast<std::int64_t>(entries.size()) ? renumbered(entries[static_cast<std::size_t>(at)])
                                                                     : -1);
    }
    for (std::int64_t page = 0; columns_ == 0 && page < pages; ++page) {
      flat.push_back(renumbered(entries[static_cast<std::size_t>(sequence.first_page + page)]));
    }
    offsets.push_back(static_cast<std::int64_t>(flat.size()));
    last.push_back(pages == 0 ? 0 : keys - (pages - 1) * page_size);
    const std::int64_t count = sequence.end_query - sequence.first_query;
    queries.push_back(queries.back() + count);
    lengths.push_back(named("cache_lengths") != nullptr ? keys - count : keys);
  }
  const auto put = [&](const char* canonical, std::vector<std::int64_t> shape, const Indices& numbers) {
    const NamedAxes* found = named(canonical);
    if (found == nullptr) return;
    bundle.tensors[found->name] = integers_as(tensors_.tensors.at(found->name).dtype, std::move(shape), numbers);
  };
  for (const char* name : {"lookup_table", "block_table", "block_tables"}) put(name, {batch, columns}, table);
  for (const char* name : {"cache_lengths", "cache_seqlens", "seq_lens"}) put(name, {batch}, lengths);
  put("kv_indptr", {batch + 1}, offsets);
  put("kv_indices", {static_cast<std::int64_t>(flat.size())}, flat);
  put("kv_last_page_len", {batch}, last);
  put("query_offsets", {batch + 1}, queries);
}

Bundle Slicer::cut(const ProblemSlice& slice) const {
  const Indices blocks = used_blocks(slice);
  Indices slots;  // of the blocks, as one axis
  const std::int64_t page_size = prepared_.problem.k.page_size;
  for (const std::int64_t block : blocks) {
    for (std::int64_t slot = 0; slot < page_size; ++slot) slots.push_back(block * page_size + slot);
  }
  Indices sequences;
  for (const SequenceSlice& sequence : slice.sequences) sequences.push_back(sequence.index);
  const Indices heads = query_heads(slice), query_rows = rows(slice);
  Bundle bundle;
  for (const NamedAxes& tensor : axes_) {
    const Tensor* from = &tensors_.tensors.at(tensor.name);
    Tensor cut;
    for (std::size_t axis = 0; axis < tensor.axes.size(); ++axis) {
      std::optional<Indices> kept;
      switch (tensor.axes[axis]) {
        case 'N':
          kept = blocks;
          break;
        case 'M':
          kept = slots;
          break;
        case 'L':
          if (slice.only_layer) kept = Indices{options_.layer};
          break;
        case 'H':
          kept = slice.kv_heads;
          break;
        case 'Q':
          kept = heads;
          break;
        case 'T':
          kept = query_rows;
          break;
        case 'B':
          kept = sequences;
          break;
        case 'D':
          kept = range_of(slice.dims);
          break;
        case 'E':
          kept = range_of(slice.dims / run_);
          break;
        case 'G':
          if (dims_step_ > 0) kept = range_of(slice.dims / dims_step_);
          break;
        default:
          break;
      }
      if (!kept) continue;
      cut = take(*from, axis, *kept);
      from = &cut;
    }
    bundle.tensors.emplace(tensor.name, from == &cut ? std::move(cut) : *from);
  }
  cut_indices(slice, blocks, bundle);
  return bundle;
}

LayoutOptions Slicer::options(const ProblemSlice& slice) const {
  LayoutOptions options = options_;
  options.scale = prepared_.problem.options.scale;
  options.ignore.clear();
  if (slice.only_layer) options.layer = 0;
  return options;
}

ProblemSizes Slicer::sizes(const ProblemSlice& slice) const {
  ProblemSizes sizes;
  sizes.sequences = static_cast<std::int64_t>(slice.sequences.size());
  for (const SequenceSlice& sequence : slice.sequences) {
    sizes.queries += sequence.end_query - sequence.first_query;
    sizes.keys += kept_keys(sequence, prepared_.problem.k.page_size);
  }
  sizes.kv_heads = static_cast<std::int64_t>(slice.kv_heads.size());
  sizes.query_heads = sizes.kv_heads * static_cast<std::int64_t>(slice.group_heads.size());
  sizes.head_size = slice.dims;
  sizes.blocks = static_cast<std::int64_t>(used_blocks(slice).size());
  return sizes;
}

Tensor Slicer::cut_output(const Tensor& output, const ProblemSlice& slice) const {
  const attention::Problem& problem = prepared_.problem;
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
