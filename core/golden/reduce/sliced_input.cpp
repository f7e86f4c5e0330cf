#include "core/golden/reduce/detail/sliced_input.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <set>
#include <utility>

#include "core/golden/layouts/detail/cache_reader.h"
#include "core/golden/layouts/detail/layout_scales.h"
#include "core/golden/layouts/detail/mask_walk.h"
#include "core/golden/reduce/detail/tensor_cut.h"

namespace kvscope::golden {
namespace {

std::vector<std::string> axes_of_scales(std::string_view letters, const LayoutDescription& layout) {
  std::vector<std::string> axes;
  for (const char letter : letters) {
    axes.emplace_back(letter == 'N'   ? "block"
                      : letter == 'P' ? (layout.has_axis("position") ? "position" : "slot")
                      : letter == 'T' ? "slots"
                      : letter == 'H' ? "head"
                      : letter == 'L' ? "layer"
                      : letter == '2' ? "kv"
                      : letter == 'B' ? "sequence"
                                      : "1");
  }
  return axes;
}

// Whether another form of the layout has K and V where this tensor has its blocks.
bool pair_or_blocks(const LayoutDescription& layout, const CacheTensor& tensor) {
  const auto at = static_cast<std::size_t>(std::ranges::find(tensor.axes, "block") - tensor.axes.begin());
  if (at == tensor.axes.size()) return false;
  return std::ranges::any_of(layout.forms, [&](const CacheForm& form) {
    const CacheTensor& other = form.tensors.front();
    return other.name == tensor.name && other.axes.size() == tensor.axes.size() && other.axes[at] == "kv";
  });
}

void add_cache(const CacheReading& cache, const LayoutReader& reader, SlicedInput& input) {
  for (std::size_t t = 0; t < cache.form.tensors.size(); ++t) {
    const CacheTensor& tensor = cache.form.tensors[t];
    if (cache.tensors[t] == nullptr) continue;
    SlicedTensor made{reader.given(tensor.name), tensor.axes};
    made.is_v = tensor.holds == Holds::v || tensor.holds == Holds::v_scales;
    made.two_in_a_byte = cache.stored[t] == DType::e2m1;
    if (tensor.holds_scales()) made.group = made.is_v ? cache.sizes.v_group : cache.sizes.k_group;
    if (!tensor.strides.empty()) {
      made.axes = {"1"};
      input.flat = true;
    }
    input.uneven = input.uneven || !tensor.row.empty();
    input.two_are_ambiguous = input.two_are_ambiguous || pair_or_blocks(*input.layout, tensor);
    input.tensors.push_back(std::move(made));
  }
  const CacheSizes& sizes = cache.sizes;
  if (sizes.k_order != ScaleOrder::linear || sizes.v_order != ScaleOrder::linear) input.uneven = true;
  if (sizes.k_group > 0 && sizes.v_group > 0 && sizes.k_group != sizes.v_group) input.uneven = true;
  input.granularity = std::max(sizes.k_group, sizes.v_group);
}

void add_common(const Bundle& bundle, const LayoutReader& reader, const CacheScales& scales, SlicedInput& input) {
  const auto add = [&](const char* canonical, std::vector<std::string> axes) {
    if (!reader.has(canonical)) return;
    axes.resize(bundle.tensors.at(reader.given(canonical)).shape.size(), "1");
    input.tensors.push_back({reader.given(canonical), std::move(axes)});
  };
  if (reader.has("kv_scale")) {
    add("kv_scale", axes_of_scales(scales.k.axes, *input.layout));
  } else {
    add("k_scale", axes_of_scales(scales.k.axes, *input.layout));
    add("v_scale", axes_of_scales(scales.v.axes, *input.layout));
  }
  add("sm_scale", {});
  add("sinks", {"query_head"});
  add("alibi_slopes", {"query_head"});
}

// The first row of q of each sequence. A padded q has rows that belong to no query.
std::vector<std::int64_t> first_rows(const Bundle& bundle, const SlicedInput& input) {
  const Tensor& q = bundle.tensors.at(input.name(input.has("q") ? "q" : "q_nope"));
  const std::int64_t batch = input.prepared.problem.batch;
  std::vector<std::int64_t> rows;
  const bool padded_rows = q.shape.size() == 3 && input.has("q_lens");
  const Indices offsets = padded_rows ? integers_of(bundle.tensors.at(input.name("query_offsets"))) : Indices{};
  const std::int64_t by_sequence =
      q.shape.size() != 4 || input.form() == TableForm::sparse ? 0 : q.shape[input.layout->queries_by_head ? 2 : 1];
  for (std::int64_t b = 0; b < batch; ++b) {
    rows.push_back(padded_rows       ? offsets[static_cast<std::size_t>(b)]
                   : by_sequence > 0 ? b * by_sequence
                                     : input.prepared.problem.first_query(b));
  }
  return rows;
}

}  // namespace

const std::string* SlicedInput::role(const std::string& role) const {
  if (!layout->table.has(role)) return nullptr;
  const auto found = names.find(layout->table.name(role));
  return found == names.end() ? nullptr : &found->second;
}

std::int64_t SlicedInput::entry(std::int64_t sequence, std::int64_t page) const {
  const auto at = static_cast<std::size_t>(sequence);
  return page < pages.columns[at] ? pages.entries[static_cast<std::size_t>(pages.first[at] + page)] : -1;
}

std::int64_t SlicedInput::block_of(std::int64_t entry) const {
  return pages.by_token && entry >= 0 ? entry / sizes.page_size : entry;
}

std::string_view SlicedInput::mask() const {
  const auto found = std::ranges::find_if(mask_names(), [&](const std::string& mask) { return names.contains(mask); });
  return found == mask_names().end() ? std::string_view() : std::string_view(*found);
}

std::int64_t SlicedInput::padding(std::int64_t sequence) const {
  return pages.by_token ? sizes.page_size - pages.columns[static_cast<std::size_t>(sequence)] : 0;
}

SlicedInput read_sliced_input(const Bundle& bundle, const LayoutOptions& options, std::string_view source) {
  static_cast<void>(prepare_problem(bundle, options, source));  // faults of the mask tensors too
  SlicedInput input;
  input.layout = &layout_of(options);
  LayoutReader reader(bundle, options, *input.layout);
  LayoutOptions without_masks = options;
  for (const std::string& mask : mask_names()) {
    if (reader.has(mask)) without_masks.ignore.push_back(reader.given(mask));
  }
  if (reader.has("mask_indptr")) without_masks.ignore.push_back(reader.given("mask_indptr"));
  input.prepared = prepare_problem(bundle, without_masks, source);
  const CacheReading cache = read_cache(reader, *input.layout);
  reader.read_pages();
  const CacheScales scales = read_scales(reader);
  input.pages = reader.pages;
  input.sizes = cache.sizes;
  input.values_in_keys = cache.form.values_in_keys;
  for (const KnownTensor& known : known_tensors_of(*input.layout)) {
    if (reader.has(known.name)) input.names.emplace(known.name, reader.given(known.name));
  }
  const std::string* last = input.role("last_page_len");
  input.windows = last != nullptr && bundle.tensors.at(*last).shape.size() == 2;
  add_cache(cache, reader, input);
  add_common(bundle, reader, scales, input);
  input.first_row = first_rows(bundle, input);
  const TableForm form = input.form();
  if (input.flat && (form == TableForm::dense || form == TableForm::ragged || form == TableForm::chunk)) {
    throw InputError(
        source, input.tensors.front().name,
        fmt::format("cannot be cut: layout '{}' describes flat storage with fixed strides, whose sequences "
                    "are part of it; save the tensor with its axes",
                    input.layout->name));
  }
  return input;
}

}  // namespace kvscope::golden
