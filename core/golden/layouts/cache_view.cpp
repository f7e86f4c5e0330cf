#include "core/golden/layouts/detail/cache_view.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/base/checked.h"

namespace kvscope::golden {
namespace {

bool has_axis(const CacheTensor& tensor, std::string_view axis) {
  return std::ranges::count(tensor.axes, axis) > 0;
}

// Extent of an axis in elements (axis row: bytes).
std::int64_t extent_for(const CacheTensor& tensor, std::string_view axis, const CacheSizes& s) {
  const bool is_v = tensor.holds == Holds::v || tensor.holds == Holds::v_scales;
  if (axis == "block" || axis == "token" || axis == "seq") return s.blocks;
  if (axis == "slot" || axis == "position") return s.page_size;
  if (axis == "head") return s.heads;
  if (axis == "kv") return 2;
  if (axis == "layer") return s.layers;
  if (axis == "1") return 1;
  if (axis == "x") return s.run;
  if (axis == "latent") return s.latent;
  if (axis == "rope") return s.head_size - s.latent;
  if (axis == "row") return tensor.row_bytes;
  if (axis == "block*kv") return 2 * s.blocks;
  const std::int64_t size = is_v ? s.value_size : s.head_size;
  if (axis == "head*dim") return s.heads * size;
  if (axis == "dim+vdim") return s.head_size + s.value_size;
  if (axis == "dim/x") return s.run > 0 ? size / s.run : 0;
  if (axis == "group") {
    const std::int64_t each = is_v ? s.v_group : s.k_group;
    return each > 0 ? ceil_div(size, each) : 0;
  }
  return size;  // dim
}

// Strides of the axes, in elements.
std::vector<std::int64_t> strides_for(const CacheTensor& tensor, const CacheSizes& sizes) {
  if (!tensor.strides.empty()) return tensor.strides;
  std::vector<std::int64_t> strides(tensor.axes.size(), 1);
  for (std::size_t i = strides.size() - 1; i-- > 0;) {
    strides[i] = strides[i + 1] * extent_for(tensor, tensor.axes[i + 1], sizes);
  }
  return strides;
}

}  // namespace

CacheForm with_block_scales(const CacheForm& form) {
  CacheForm made = form;
  for (const CacheTensor& tensor : form.tensors) {
    if (tensor.holds_scales()) return form;
  }
  for (const CacheTensor& tensor : form.tensors) {
    if (tensor.axes.empty() || tensor.axes.back() != "dim" || !tensor.strides.empty()) continue;
    CacheTensor scales;
    scales.axes = tensor.axes;
    scales.axes.back() = "group";
    scales.optional = true;
    switch (tensor.holds) {
      case Holds::k:
        scales.name = "k_block_scale";
        scales.also = {"k_block_scales", "k_sf", "k_cache_sf"};
        scales.holds = Holds::k_scales;
        break;
      case Holds::v:
        scales.name = "v_block_scale";
        scales.also = {"v_block_scales", "v_sf", "v_cache_sf"};
        scales.holds = Holds::v_scales;
        break;
      default:
        scales.name = "kv_block_scale";
        scales.also = {"kv_block_scales", "kv_cache_sf"};
        scales.holds = Holds::kv_scales;
    }
    made.tensors.push_back(std::move(scales));
  }
  return made;
}

std::vector<std::int64_t> shape_for(const CacheTensor& tensor, const CacheSizes& sizes, DType stored) {
  if (!tensor.strides.empty()) {
    std::int64_t reach = checked_add(tensor.offset, 1);
    for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
      reach = checked_add(reach, checked_mul(tensor.sizes[i] - 1, tensor.strides[i]));
    }
    return {reach};
  }
  std::vector<std::int64_t> shape;
  for (const std::string& axis : tensor.axes) shape.push_back(extent_for(tensor, axis, sizes));
  if (stored == DType::e2m1 && !shape.empty()) shape.back() = ceil_div(shape.back(), 2);
  return shape;
}

CacheView view_of(const CacheForm& form, const CacheSizes& sizes, std::int64_t layer, const std::vector<DType>& stored,
                  const std::vector<bool>& present) {
  CacheView view;
  view.sizes = sizes;
  view.values_in_keys = form.values_in_keys;
  std::int64_t joined = 0;  // elements of K in the tensors before this one
  for (std::size_t t = 0; t < form.tensors.size(); ++t) {
    const CacheTensor& tensor = form.tensors[t];
    if (!present[t]) continue;
    const std::vector<std::int64_t> strides = strides_for(tensor, sizes);
    const std::int64_t unit = tensor.row.empty() ? bits(stored[t]) : 8;
    const bool is_v = tensor.holds == Holds::v || tensor.holds == Holds::v_scales;
    const std::int64_t size = is_v ? sizes.value_size : sizes.head_size;
    CacheWalk walk;
    walk.offset = tensor.offset * unit;
    std::int64_t k_to_v = 0, count = size;
    std::int64_t v_count = sizes.value_size;
    for (std::size_t i = 0; i < tensor.axes.size(); ++i) {
      const std::string& axis = tensor.axes[i];
      const std::int64_t stride = strides[i] * unit;
      if (axis == "block" || axis == "seq") walk.by_block = stride;
      if (axis == "token") walk.by_block = walk.by_slot = stride;
      if (axis == "slot" || axis == "position") walk.by_slot = stride;
      if (axis == "head") walk.by_head = stride;
      if (axis == "layer") walk.offset += layer * stride;
      if (axis == "kv") k_to_v = stride;
      if (axis == "block*kv") {
        walk.by_block = 2 * stride;
        k_to_v = stride;
      }
      if (axis == "dim/x") walk.by_run = stride;
      if (axis == "head*dim") walk.by_head = stride * size;
      if (axis == "dim+vdim") k_to_v = stride * sizes.head_size;
      if (axis == "latent") count = sizes.latent;
      if (axis == "rope") count = sizes.head_size - sizes.latent;
      if (axis == "group") {
        count = extent_for(tensor, axis, sizes);
        v_count = sizes.v_group > 0 ? ceil_div(sizes.value_size, sizes.v_group) : 0;
      }
      if (axis == "dim" || axis == "x" || axis == "latent" || axis == "rope" || axis == "head*dim" ||
          axis == "dim+vdim" || axis == "group") {
        walk.by_element = stride;
      }
    }
    walk.run = has_axis(tensor, "x") ? sizes.run : std::max<std::int64_t>({count, v_count, 1});
    if (!has_axis(tensor, "head") && !has_axis(tensor, "head*dim")) walk.by_head = count * walk.by_element;
    CacheWalk v_walk = walk;
    v_walk.offset += k_to_v;
    if (tensor.holds_scales()) {
      v_walk.order = sizes.v_order;
      v_walk.groups = v_count;
      walk.order = is_v ? sizes.v_order : sizes.k_order;
      walk.groups = count;
      const CachePiece piece{t, stored[t], 0, count, is_v ? sizes.v_group : sizes.k_group, walk};
      if (tensor.holds != Holds::v_scales) view.k.scales.push_back(piece);
      if (tensor.holds == Holds::v_scales) view.v.scales.push_back(piece);
      if (tensor.holds == Holds::kv_scales) {
        view.v.scales.push_back({t, stored[t], 0, v_count, sizes.v_group, v_walk});
      }
      continue;
    }
    if (!tensor.row.empty()) {
      std::int64_t first = 0;
      for (const RowField& field : tensor.row) {
        const auto piece_at = [&](std::int64_t byte, DType dtype, std::int64_t elements) {
          CacheWalk own = walk;
          own.offset += byte * 8;
          own.by_element = bits(dtype);
          own.run = std::max<std::int64_t>(elements, 1);
          own.by_head = tensor.row_bytes * 8;
          if (has_axis(tensor, "head")) own.by_head = walk.by_head;
          return CachePiece{t, dtype, first, elements, 1, own};
        };
        view.k.elements.push_back(piece_at(field.at, field.dtype, field.elements));
        if (field.scale_each > 0) {
          CachePiece scales = piece_at(field.scales_at, field.scale_dtype, field.elements / field.scale_each);
          scales.each = field.scale_each;
          view.k.scales.push_back(scales);
        }
        first += field.elements;
      }
      continue;
    }
    if (tensor.holds == Holds::v) {
      view.v.elements.push_back({t, stored[t], 0, count, 1, walk});
    } else {
      view.k.elements.push_back({t, stored[t], joined, count, 1, walk});
      joined += count;
    }
    if (tensor.holds == Holds::kv) view.v.elements.push_back({t, stored[t], 0, v_count, 1, v_walk});
  }
  return view;
}

std::string scale_axes(const CacheForm& form) {
  const std::pair<std::string_view, char> letters[] = {
      {"block", 'N'}, {"token", 'N'}, {"seq", 'N'},   {"slot", 'P'},     {"position", 'P'},
      {"head", 'H'},  {"kv", '2'},    {"layer", 'L'}, {"head*dim", 'H'}, {"block*kv", 'N'}};
  std::string axes;
  for (const std::string& axis : form.tensors.front().axes) {
    for (const auto& [word, letter] : letters) {
      if (axis == word) axes += letter;
      if (axis == word && axis == "block*kv") axes += '2';
    }
  }
  if (axes.find('H') == std::string::npos) axes += 'H';
  return axes;
}

void copy_bits(const std::byte* from, std::int64_t from_bit, std::byte* to, std::int64_t to_bit, std::int64_t bits) {
  if (bits % 8 == 0) {
    std::memcpy(to + to_bit / 8, from + from_bit / 8, static_cast<std::size_t>(bits / 8));
    return;
  }
  const int value =
      std::to_integer<int>(from[from_bit / 8]) >> (from_bit % 8) & 15;  // the low half is the first element
  const int keep = std::to_integer<int>(to[to_bit / 8]) & (to_bit % 8 == 0 ? 0xf0 : 0x0f);
  to[to_bit / 8] = static_cast<std::byte>(keep | value << (to_bit % 8));
}

}  // namespace kvscope::golden
