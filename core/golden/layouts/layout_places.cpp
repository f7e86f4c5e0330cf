#include "core/golden/layouts/layout_places.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <tuple>
#include <utility>

#include "core/base/checked.h"
#include "core/base/errors.h"
#include "core/golden/layouts/detail/cache_view.h"

namespace kvscope::golden {
namespace {

bool has_heads(const CacheForm& form) {
  return std::ranges::any_of(form.tensors, [](const CacheTensor& t) {
    return std::ranges::count(t.axes, "head") > 0 || std::ranges::count(t.axes, "head*dim") > 0;
  });
}

// The first form, or the first with an axis for the heads.
const CacheForm& form_for(const LayoutDescription& layout, const PlaceRequest& request) {
  const CacheForm& first = layout.forms.front();
  if (request.heads.value_or(1) == 1 || has_heads(first)) return first;
  const auto found = std::ranges::find_if(layout.forms, has_heads);
  if (found != layout.forms.end()) return *found;
  throw InputError(
      "command line", "--heads",
      fmt::format("is {}, but rows of layout '{}' are of one KV head: leave it out", *request.heads, layout.name));
}

// The sizes in a layout's own terms: MLA has one head unless the form has an axis for more; packed rows have their own.
CacheSizes sizes_in(const LayoutDescription& layout, const CacheForm& form, const PlaceRequest& request) {
  CacheSizes sizes{request.blocks,    request.page_size,  has_heads(form) ? request.heads.value_or(2) : 1,
                   request.head_size, request.value_size, request.layers};
  const auto axis = [&](std::string_view name) {
    return std::ranges::any_of(form.tensors,
                               [&](const CacheTensor& t) { return std::ranges::count(t.axes, name) > 0; });
  };
  if (axis("x") && bits(request.dtype) < 8) {
    throw InputError("command line", "--dtype",
                     fmt::format("{}: layout '{}' has runs of whole bytes", name(request.dtype), layout.name));
  }
  if (axis("x")) sizes.run = std::max<std::int64_t>(layout.run_bytes.value / size_of(request.dtype), 1);
  if (axis("latent")) sizes.latent = request.value_size;
  if (!axis("slot") && !axis("position")) {
    sizes.blocks *= sizes.page_size;
    sizes.page_size = 1;
  }
  const CacheTensor& first = form.tensors.front();
  if (!first.row.empty()) {
    sizes.head_size = 0;
    for (const RowField& field : first.row) sizes.head_size += field.elements;
  }
  std::vector<Fault> faults;
  const bool parts = axis("latent") || axis("dim+vdim");
  if (axis("latent") && sizes.value_size >= sizes.head_size) {
    faults.push_back(
        {"--value-size", fmt::format("{} leaves no rope of a row of {}", sizes.value_size, sizes.head_size)});
  }
  if (!form.values_in_keys && !parts && !layout.v_may_differ && sizes.value_size != sizes.head_size) {
    faults.push_back(
        {"--value-size", fmt::format("{} differs from the head size {}, which layout '{}' does not support",
                                     sizes.value_size, sizes.head_size, layout.name)});
  }
  if (axis("x") && sizes.head_size % sizes.run != 0) {
    faults.push_back({"--head-size", fmt::format("{} is not a multiple of the {} elements of a run of layout '{}'",
                                                 sizes.head_size, sizes.run, layout.name)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  return sizes;
}

void add_runs(const CachePiece& piece, const std::string& tensor, char k_or_v, bool scales, std::int64_t block,
              std::int64_t slot, std::int64_t head, TokenPlace& place) {
  const std::int64_t unit = bits(piece.dtype);
  std::int64_t end = -1;  // [bits] of the last run
  for (std::int64_t d = 0; d < piece.count; ++d) {
    const std::int64_t bit = piece.walk.at(block, slot, head, d);
    if (d > 0 && end == bit) {
      PlaceRun& last = place.runs.back();
      ++last.count;
      last.bytes = ceil_div(bit + unit, 8) - last.byte;
    } else {
      place.runs.push_back({tensor, k_or_v, scales, head, piece.first + d * piece.each, 1, piece.each, bit / 8,
                            ceil_div(bit % 8 + unit, 8)});
    }
    end = bit + unit;
  }
}

std::string shape_of(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

// Faults of block scales: the sizes that a form with scales and their order need.
void check_block_scales(const LayoutDescription& layout, const CacheForm& form, const CacheSizes& sizes,
                        const PlaceRequest& request, std::vector<Fault>& faults) {
  const bool has_any = std::ranges::any_of(form.tensors, &CacheTensor::holds_scales);
  if (!has_any) {
    faults.push_back({"--group", fmt::format("layout '{}' has no tensor of block scales", layout.name)});
    return;
  }
  const bool in_keys = form.values_in_keys;
  for (const auto& [which, order, size] : {std::tuple{"--k-scales", request.k_order, sizes.head_size},
                                           {"--v-scales", request.v_order, sizes.value_size}}) {
    if (in_keys && which == std::string_view("--v-scales")) continue;
    const bool reported = !faults.empty() && size == sizes.head_size;  // as K's
    if (size % request.group != 0 && !reported) {
      faults.push_back({"--group", fmt::format("{} does not divide the {} elements of a head", request.group, size)});
    }
    if (order == ScaleOrder::linear) continue;
    if (sizes.page_size % slots_of_run(order) != 0) {
      faults.push_back({which, fmt::format("{}: {} slots share a run, which does not divide the page size {}",
                                           name(order), slots_of_run(order), sizes.page_size)});
    }
    if (size / request.group % scales_of_run(order) != 0) {
      faults.push_back({which, fmt::format("{}: {} scales of a slot are not a multiple of {}", name(order),
                                           size / request.group, scales_of_run(order))});
    }
  }
}

// The strides of k_scale and v_scale of a unit: the axes of the cache that vary with it, in their order.
PlaceStrides unit_strides(const CacheForm& form, const CacheSizes& sizes, const PlaceRequest& request, char k_or_v) {
  const std::string& unit = request.scales;
  const bool by_block = unit.starts_with("block") || unit.starts_with("token"), by_slot = unit.starts_with("token");
  const bool by_head = unit.ends_with("head");
  std::vector<std::int64_t> shape;
  PlaceStrides strides;
  std::int64_t next = size_of(request.scale_dtype);
  const std::string axes = scale_axes(form);
  for (auto axis = axes.rbegin(); axis != axes.rend(); ++axis) {
    std::int64_t* stride = *axis == 'N' && by_block  ? &strides.block
                           : *axis == 'P' && by_slot ? &strides.slot
                           : *axis == 'H' && by_head ? &strides.head
                                                     : nullptr;
    if (stride == nullptr) continue;
    *stride = next;
    shape.insert(shape.begin(), *axis == 'N' ? sizes.blocks : *axis == 'P' ? sizes.page_size : sizes.heads);
    next *= shape.front();
  }
  strides.tensor = k_or_v == 'k' ? "k_scale" : "v_scale";
  strides.k_or_v = k_or_v;
  strides.shape = fmt::format("{} {}", name(request.scale_dtype), shape_of(shape));
  strides.scales = true;
  strides.unit = unit == "token-head"   ? "token and KV head"
                 : unit == "block-head" ? "block and KV head"
                 : unit == "head"       ? "KV head"
                                        : unit;
  return strides;
}

}  // namespace

const std::vector<std::string>& scale_units() {
  static const std::vector<std::string> units{"tensor", "head", "token", "token-head", "block", "block-head"};
  return units;
}

TokenPlace place_of_token(const LayoutDescription& layout, const PlaceRequest& request) {
  const CacheForm& chosen = form_for(layout, request);
  const CacheForm form = request.group > 0 ? with_block_scales(chosen) : chosen;
  CacheSizes sizes = sizes_in(layout, form, request);
  std::vector<Fault> faults;
  if (request.group > 0) check_block_scales(layout, form, sizes, request, faults);
  if (request.group > 0 && !request.scales.empty()) {
    faults.push_back({"--scales", "shows k_scale and v_scale, and --group block scales: give one of them"});
  }
  const bool by_place = request.scales.starts_with("block");
  if (by_place && !layout.has_axis("slot") && !layout.has_axis("position")) {
    faults.push_back(
        {"--scales", fmt::format("{}: layout '{}' has no blocks of several tokens", request.scales, layout.name)});
  }
  if (!faults.empty()) throw InputError("command line", std::move(faults));
  if (request.group > 0) {
    sizes.k_group = sizes.v_group = request.group;
    sizes.k_order = request.k_order;
    sizes.v_order = request.v_order;
  }
  std::vector<DType> stored;
  std::vector<bool> present;
  for (const CacheTensor& tensor : form.tensors) {
    const bool scales = tensor.holds_scales();
    stored.push_back(scales ? request.scale_dtype : tensor.row.empty() ? request.dtype : DType::u8);
    present.push_back(!tensor.optional || (scales && request.group > 0));
  }
  const CacheView view = view_of(form, sizes, layout.has_axis("layer") ? request.layer : 0, stored, present);
  const std::int64_t pages = static_cast<std::int64_t>(request.table.size());
  check_index("--token", request.token, pages * request.page_size,
              "the pages hold no more: give --table more blocks, or set a larger --page-size");
  const std::int64_t own_block = request.table[static_cast<std::size_t>(request.token / request.page_size)];
  const std::int64_t own_slot = request.token % request.page_size;
  TokenPlace place;
  std::int64_t block = own_block, slot = own_slot;
  switch (layout.table.form) {
    case TableForm::dense:
      block = request.sequence;
      slot = request.token;
      place.at = fmt::format("sequence {}, position {}", block, slot);
      check_index("sequence", block, sizes.blocks, "pass --blocks, the sequences of the cache");
      check_index("token", slot, sizes.page_size, "pass --page-size, the positions of a sequence");
      break;
    case TableForm::ragged:
    case TableForm::chunk:
      block = request.token;
      slot = 0;
      place.at = fmt::format("token {}", block);
      break;
    case TableForm::tokens:
    case TableForm::requests:
    case TableForm::sparse:
      if (layout.has_axis("slot")) {
        check_index("block", own_block, request.blocks);
        place.at = fmt::format("slot {}: block {}, slot {} of it", block * request.page_size + slot, block, slot);
        break;
      }
      check_index("block", own_block, request.blocks);
      block = own_block * request.page_size + own_slot;
      slot = 0;
      place.at = fmt::format("slot {}", block);
      break;
    default:
      check_index("block", own_block, request.blocks);
      place.at = fmt::format("block {}, slot {}", block, slot);
  }
  const auto add = [&](const CacheSide& side, char k_or_v) {
    const bool has_unit = !request.scales.empty();
    const PlaceStrides unit = has_unit ? unit_strides(form, sizes, request, k_or_v) : PlaceStrides{};
    for (std::int64_t head = 0; head < sizes.heads; ++head) {
      for (const CachePiece& piece : side.elements) {
        add_runs(piece, form.tensors[piece.tensor].name, k_or_v, false, block, slot, head, place);
      }
      for (const CachePiece& piece : side.scales) {
        add_runs(piece, form.tensors[piece.tensor].name, k_or_v, true, block, slot, head, place);
      }
      if (!has_unit) continue;
      const std::int64_t byte = block * unit.block + slot * unit.slot + head * unit.head;
      place.runs.push_back({unit.tensor, k_or_v, true, head, 0, 1, k_or_v == 'k' ? sizes.head_size : sizes.value_size,
                            byte, size_of(request.scale_dtype)});
    }
    const auto add_strides = [&](const CachePiece& piece, bool scales) {
      const CacheTensor& tensor = form.tensors[piece.tensor];
      PlaceStrides strides;
      strides.tensor = tensor.name;
      strides.k_or_v = k_or_v;
      strides.shape = fmt::format("{} {}", tensor.row.empty() ? std::string(name(piece.dtype)) : "bytes",
                                  shape_of(shape_for(tensor, sizes, stored[piece.tensor])));
      strides.block = piece.walk.by_block / 8;
      strides.slot = piece.walk.by_slot / 8;
      strides.head = piece.walk.by_head / 8;
      strides.next = piece.walk.by_element / 8;
      strides.half_bytes = piece.walk.by_element == 4;
      strides.scales = scales;
      if (scales) {
        strides.each = piece.each;
        strides.groups = piece.count;
        strides.order = piece.walk.order;
      }
      place.strides.push_back(std::move(strides));
    };
    for (const CachePiece& piece : side.elements) add_strides(piece, false);
    for (const CachePiece& piece : side.scales) {
      if (form.tensors[piece.tensor].holds_scales()) add_strides(piece, true);
    }
    if (has_unit) place.strides.push_back(unit);
  };
  add(view.k, 'k');
  if (!view.values_in_keys) add(view.v, 'v');
  return place;
}

}  // namespace kvscope::golden
