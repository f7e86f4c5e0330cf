#include "core/golden/layouts/detail/cache_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <optional>

#include "core/base/checked.h"
#include "core/base/convert.h"

namespace kvscope::golden {
namespace {

using Shape = std::vector<std::int64_t>;

// Axes that count the same things have one extent.
std::string shared_extent(const std::string& axis) {
  if (axis == "token" || axis == "seq") return "block";
  if (axis == "position") return "slot";
  return axis;
}

// The leading elements of an MLA row that are V. No default fits all models: a golden output with the whole row as V
// would be wrong, but plausible.
std::int64_t latent_value_size(LayoutReader& r, std::int64_t row) {
  constexpr std::int64_t kDeepSeekRow = 576;  // 512 latent + 64 rope
  constexpr std::int64_t kDeepSeekLatent = 512;
  if (!r.options().value_size && row != kDeepSeekRow) {
    r.fault("--value-size",
            fmt::format("is missing: an MLA row of {} elements is K, and its first elements are V: pass their number, "
                        "from 1 to {}",
                        row, row));
  }
  return r.options().value_size.value_or(row == kDeepSeekRow ? kDeepSeekLatent : 0);
}

Shape shape_in_elements(const Tensor& tensor, DType stored) {
  Shape shape = tensor.shape;
  if (stored == DType::e2m1 && !shape.empty()) shape.back() *= 2;
  return shape;
}

// The sizes of a form, taken from the shapes of its tensors, and the faults of these shapes.
class SizeFinder {
 public:
  SizeFinder(LayoutReader& r, const LayoutDescription& layout, const CacheForm& form,
             const std::vector<const Tensor*>& tensors, const std::vector<DType>& stored)
      : r_(r), layout_(layout), form_(form), tensors_(tensors), stored_(stored) {}

  std::vector<Fault> faults;
  CacheSizes sizes;

  void find() {
    for (std::size_t t = 0; t < form_.tensors.size(); ++t) {
      if (!form_.tensors[t].holds_scales() && tensors_[t] != nullptr) read(t);
    }
    const auto value = [&](const char* axis, std::int64_t otherwise) {
      const auto found = extents_.find(axis);
      return found == extents_.end() ? otherwise : found->second;
    };
    sizes.blocks = value("block", 0);
    sizes.page_size = value("slot", 1);
    sizes.heads = value("head", 1);
    sizes.layers = value("layer", 1);
    sizes.run = value("x", 0);
    sizes.latent = value("latent", 0);
    sizes.head_size = value("dim", 0);
    if (extents_.contains("dim/x")) sizes.head_size = value("dim/x", 0) * sizes.run;
    if (extents_.contains("rope")) sizes.head_size = sizes.latent + value("rope", 0);
    for (const CacheTensor& tensor : form_.tensors) {
      for (const RowField& field : tensor.row) sizes.head_size += field.elements;
    }
    sizes.value_size = value("v.dim", sizes.head_size);
  }

 private:
  void fault(std::size_t t, std::string message) {
    faults.push_back({r_.given(form_.tensors[t].name), std::move(message)});
  }

  [[nodiscard]] std::int64_t merged_head_size(std::size_t t) {
    if (r_.options().head_size) return *r_.options().head_size;
    for (const char* name : {"q", "q_nope"}) {
      if (const Tensor* q = r_.has(name) ? r_.peek(name) : nullptr; q != nullptr && !q->shape.empty()) {
        return q->shape.back();
      }
    }
    fault(t, "has one axis for heads and elements: pass --head-size, the elements of a head");
    return 0;
  }

  // K's tensors in the order of the form, then V's: the first occurrence of an axis gives its extent.
  void read(std::size_t t) {
    const CacheTensor& tensor = form_.tensors[t];
    const Shape shape = tensor.sizes.empty() ? shape_in_elements(*tensors_[t], stored_[t]) : tensor.sizes;
    if (!tensor.sizes.empty()) {
      const Shape needed = shape_for(tensor, {}, stored_[t]);
      if (tensors_[t]->shape[0] < needed[0]) {
        fault(t, fmt::format("has {} elements, but the strides and sizes of layout '{}' reach {}",
                             tensors_[t]->shape[0], layout_.name, needed[0]));
      }
    }
    const bool is_v = tensor.holds == Holds::v;
    Shape expected = shape;
    for (std::size_t i = 0; i < shape.size(); ++i) {
      const std::string& axis = tensor.axes[i];
      if (axis == "kv" && shape[i] != 2) {
        fault(t, fmt::format("has shape {}: axis {} is {}", shape_text(shape), i,
                             mla_axis(tensor, i) ? "2 (K and V) or 1 (MLA)" : "2, K and V"));
      } else if (axis == "1" && shape[i] != 1) {
        fault(t, fmt::format("has shape {}: axis {} is 1", shape_text(shape), i));
      } else if (axis == "row" && shape[i] != tensor.row_bytes) {
        fault(t, fmt::format("has shape {}: axis {} holds the {} bytes of a packed row", shape_text(shape), i,
                             tensor.row_bytes));
      } else if (axis == "head*dim") {
        const std::int64_t size = merged_head_size(t);
        if (size > 0 && shape[i] % size != 0) {
          fault(t,
                fmt::format("has shape {}: axis {} is not a multiple of the head size {}", shape_text(shape), i, size));
        } else if (size > 0) {
          extents_["head"] = shape[i] / size;
          extents_["dim"] = size;
        }
      } else if (axis == "block*kv") {
        if (shape[i] % 2 != 0) {
          fault(t, fmt::format("has shape {}: axis {} has an entry for K and one for V of each block, an even number",
                               shape_text(shape), i));
        }
        extents_["block"] = shape[i] / 2;
      } else if (axis == "dim+vdim") {
        const std::int64_t v = r_.options().value_size.value_or(0);
        if (v < 1 || v >= shape[i]) {
          fault(t, fmt::format("has shape {}: axis {} is K's elements, then V's: pass --value-size, from 1 to {}",
                               shape_text(shape), i, shape[i] - 1));
        } else {
          extents_["dim"] = shape[i] - v;
          extents_["v.dim"] = v;
        }
      } else if (axis != "kv" && axis != "1" && axis != "row") {
        const bool own = is_v && axis == "dim" && (layout_.v_may_differ);
        const std::string key = own ? "v.dim" : shared_extent(axis);
        if (is_v && axis == "dim" && !own && extents_.contains("dim/x")) {
          expected[i] = extents_["dim/x"] * extents_["x"];
        } else {
          expected[i] = extents_.emplace(key, shape[i]).first->second;
        }
      }
    }
    if (first_ == t || first_ == kNone) {
      first_ = t;
      return;
    }
    const bool other_dtype = stored_[t] != stored_[first_] || tensors_[t]->dtype != tensors_[first_]->dtype;
    if (expected == shape && (!other_dtype || (is_v && layout_.v_may_differ))) return;
    const CacheTensor& first = form_.tensors[first_];
    const std::string a = r_.given(first.name), a_is = describe(*tensors_[first_]), is = describe(*tensors_[t]);
    const bool parts = std::ranges::count(tensor.axes, "rope") + std::ranges::count(tensor.axes, "latent") > 0;
    if (tensor.axes == first.axes && !layout_.v_may_differ) {
      fault(t, fmt::format("is {}, but {} is {}: the two must be alike", is, a, a_is));
    } else if (tensor.axes == first.axes) {
      fault(t, fmt::format("is {}, but {} is {}: all axes but the last must be alike", is, a, a_is));
    } else if (parts) {
      fault(t, fmt::format("is {}, but {} is {}: blocks, pages and type must be alike", is, a, a_is));
    } else {
      fault(t, fmt::format("is {}, but {} {} needs {} {}", is, a, a_is, name(tensors_[first_]->dtype),
                           shape_text(expected)));
    }
  }

  // Whether another form has the same tensor with an axis of length 1 in the place of K and V.
  [[nodiscard]] bool mla_axis(const CacheTensor& tensor, std::size_t i) const {
    return std::ranges::any_of(layout_.forms, [&](const CacheForm& form) {
      return form.values_in_keys && std::ranges::any_of(form.tensors, [&](const CacheTensor& other) {
               return other.name == tensor.name && other.axes.size() == tensor.axes.size() && other.axes[i] == "1";
             });
    });
  }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);
  LayoutReader& r_;
  const LayoutDescription& layout_;
  const CacheForm& form_;
  const std::vector<const Tensor*>& tensors_;
  const std::vector<DType>& stored_;
  std::map<std::string, std::int64_t> extents_;
  std::size_t first_ = kNone;
};

std::size_t rank_of(const CacheTensor& tensor) {
  return tensor.strides.empty() ? tensor.axes.size() : 1;
}

std::vector<const Tensor*> tensors_of(LayoutReader& r, const CacheForm& form) {
  std::vector<const Tensor*> found;
  for (const CacheTensor& tensor : form.tensors) found.push_back(r.has(tensor.name) ? r.peek(tensor.name) : nullptr);
  return found;
}

std::vector<DType> stored_types(LayoutReader& r, const CacheForm& form, const std::vector<const Tensor*>& tensors) {
  std::vector<DType> stored;
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const bool as_is = tensors[t] == nullptr || form.tensors[t].holds_scales() || !form.tensors[t].row.empty();
    stored.push_back(as_is ? (tensors[t] == nullptr ? DType::f32 : tensors[t]->dtype)
                           : r.options().cache_dtype.value_or(tensors[t]->dtype));
  }
  return stored;
}

bool ranks_fit(const CacheForm& form, const std::vector<const Tensor*>& tensors) {
  for (std::size_t t = 0; t < tensors.size(); ++t) {
    const CacheTensor& tensor = form.tensors[t];
    if (tensor.optional || tensors[t] == nullptr) continue;
    if (tensors[t]->shape.size() != rank_of(tensor)) return false;
    if (std::ranges::count(tensors[t]->shape, 0) > 0) return false;
  }
  return true;
}

// The forms that the input may have: the best fit first. More than one: its tensors fit all of them.
std::vector<const CacheForm*> fitting_forms(LayoutReader& r, const LayoutDescription& layout) {
  std::vector<const CacheForm*> chosen;
  const auto keep = [&](const auto& condition) {
    std::vector<const CacheForm*> left;
    for (const CacheForm* form : chosen) {
      if (condition(*form)) left.push_back(form);
    }
    if (!left.empty()) chosen = left;
    return !left.empty();
  };
  for (const CacheForm& form : layout.forms) chosen.push_back(&form);
  const auto present = [&](const CacheTensor& tensor) { return tensor.optional || r.has(tensor.name); };
  if (!keep([&](const CacheForm& form) { return std::ranges::all_of(form.tensors, present); })) {
    const auto given = [&](const CacheTensor& tensor) { return !tensor.optional && r.has(tensor.name); };
    keep([&](const CacheForm& form) { return std::ranges::any_of(form.tensors, given); });
    return {chosen.front()};
  }
  if (!keep([&](const CacheForm& form) { return ranks_fit(form, tensors_of(r, form)); })) return {chosen.front()};
  const bool fits = keep([&](const CacheForm& form) {
    const std::vector<const Tensor*> tensors = tensors_of(r, form);
    const std::vector<DType> stored = stored_types(r, form, tensors);
    SizeFinder finder(r, layout, form, tensors, stored);
    finder.find();
    return finder.faults.empty();
  });
  if (!fits) return {chosen.front()};
  return chosen;
}

// Shapes that the layout's forms give a tensor: "[N, P, D] or [N, P, H, D]".
std::string words_for(const LayoutDescription& layout, const CacheTensor& wanted) {
  std::vector<std::string> shapes;
  for (const CacheForm& form : layout.forms) {
    for (const CacheTensor& tensor : form.tensors) {
      if (tensor.name != wanted.name) continue;
      if (const std::string shape = tensor.shape_words(); std::ranges::count(shapes, shape) == 0)
        shapes.push_back(shape);
    }
  }
  return shapes.empty() ? wanted.shape_words() : fmt::format("{}", fmt::join(shapes, " or "));
}

void read_group_scales(LayoutReader& r, CacheReading& cache, std::size_t t) {
  const CacheTensor& wanted = cache.form.tensors[t];
  const Tensor* scales = r.tensor(wanted.name, wanted.axes.size(), wanted.shape_words());
  cache.tensors[t] = scales;
  if (scales == nullptr) return;
  CacheSizes& sizes = cache.sizes;
  const bool is_v = wanted.holds == Holds::v_scales;
  const std::int64_t size = is_v ? sizes.value_size : sizes.head_size;
  const std::int64_t groups = scales->shape.back();
  const std::int64_t each = r.options().granularity.value_or(groups > 0 ? ceil_div(size, groups) : 0);
  CacheSizes whole = sizes;
  whole.k_group = whole.v_group = std::max<std::int64_t>(each, 0);
  const Shape needed = shape_for(wanted, whole, scales->dtype);
  if (each < 1 || scales->shape != needed) {
    const std::string name = r.given(cache.form.tensors.front().name);
    r.fault(r.given(wanted.name), fmt::format("has shape {}, but {} {} at granularity {} need {}",
                                              shape_text(scales->shape), name, shape_text(cache.tensors.front()->shape),
                                              each, each < 1 ? "a granularity of at least 1" : shape_text(needed)));
  } else if (!is_float(scales->dtype)) {
    r.fault(r.given(wanted.name), fmt::format("is {}; scales are floats", name(scales->dtype)));
  }
  if (!is_v) sizes.k_group = each;
  if (is_v || wanted.holds == Holds::kv_scales) sizes.v_group = each;
}

}  // namespace

CacheReading read_cache(LayoutReader& r, const LayoutDescription& layout) {
  const std::vector<const CacheForm*> forms = fitting_forms(r, layout);
  CacheReading cache;
  cache.form = with_block_scales(*forms.front());
  if (forms.size() > 1) {
    const CacheTensor& tensor = forms.front()->tensors.front();
    r.fault(r.given(tensor.name),
            fmt::format("has shape {}, which is {} or {}: pass one of them as --axes \"kv={}\"",
                        shape_text(r.peek(tensor.name)->shape), forms[0]->tensors[0].shape_words(),
                        forms[1]->tensors[0].shape_words(), "[block, kv, slot, head, dim]"));
  }
  r.axes = scale_axes(cache.form);
  r.values_in_keys = cache.form.values_in_keys;
  r.scales_by_sequence = layout.descale_by_sequence;
  bool complete = true;
  for (const CacheTensor& tensor : cache.form.tensors) {
    const Tensor* found = nullptr;
    if (!tensor.optional) {
      found = tensor.row.empty() ? r.cache(tensor.name, rank_of(tensor), words_for(layout, tensor))
                                 : r.bytes(tensor.name, rank_of(tensor), words_for(layout, tensor));
      complete = complete && found != nullptr;
    }
    cache.tensors.push_back(found);
  }
  if (!complete) return cache;
  cache.stored = stored_types(r, cache.form, cache.tensors);
  SizeFinder finder(r, layout, cache.form, cache.tensors, cache.stored);
  finder.find();
  r.faults.insert(r.faults.end(), finder.faults.begin(), finder.faults.end());
  cache.sizes = finder.sizes;
  CacheSizes& sizes = cache.sizes;
  const bool bad_pair = std::ranges::any_of(
      finder.faults, [](const Fault& fault) { return fault.message.find("2, K and V") != std::string::npos; });
  if (bad_pair) {  // sizes of such a tensor would only repeat the fault
    sizes = {};
    return cache;
  }
  if (cache.form.values_in_keys) {
    sizes.value_size = sizes.latent > 0 ? sizes.latent : latent_value_size(r, sizes.head_size);
  }
  r.blocks = sizes.blocks;
  r.page_size = sizes.page_size;
  r.heads = sizes.heads;
  r.head_size = sizes.head_size;
  r.value_size = sizes.value_size;
  r.layers = sizes.layers;
  const std::int64_t layer = r.options().layer;
  const bool layer_fits = layer >= 0 && layer < sizes.layers;
  if (!layer_fits && layout.has_axis("layer")) {
    r.fault(r.given(cache.form.tensors.front().name),
            fmt::format("has {} layers; layer {} is outside [0, {})", sizes.layers, layer, sizes.layers));
  }
  if (const EngineLimit& run = layout.run_bytes; run.value > 0 && sizes.run > 0 && finder.faults.empty()) {
    const std::int64_t size = size_of(cache.tensors.front()->dtype);
    if (sizes.run != run.value / size) {
      r.warnings.push_back(fmt::format("{} has x = {}; {}'s is {} bytes, {} elements of {}",
                                       r.given(cache.form.tensors.front().name), sizes.run, run.engine, run.value,
                                       run.value / size, name(r.cache_dtype)));
    }
  }
  if (const EngineLimit& limit = layout.page_multiple; limit.value > 0 && sizes.page_size % limit.value != 0) {
    r.notes.push_back(fmt::format("page size {}: {} takes pages of multiples of {} tokens only", sizes.page_size,
                                  limit.engine, limit.value));
  }
  std::vector<bool> present;
  for (std::size_t t = 0; t < cache.form.tensors.size(); ++t) {
    const CacheTensor& tensor = cache.form.tensors[t];
    if (tensor.holds_scales() && r.has(tensor.name)) read_group_scales(r, cache, t);
    present.push_back(cache.tensors[t] != nullptr);
  }
  cache.stored = stored_types(r, cache.form, cache.tensors);
  if (r.ok() && layer_fits) cache.view = view_of(cache.form, sizes, layer, cache.stored, present);
  return cache;
}

namespace {

// Whether attention can read the elements of the side where they are.
bool is_readable(const CacheSide& side, bool fnuz) {
  if (side.elements.size() != 1 || fnuz) return false;
  const CachePiece& piece = side.elements.front();
  const CacheWalk& walk = piece.walk;
  const std::int64_t unit = bits(piece.dtype);
  return is_float(piece.dtype) && unit >= 8 && walk.by_element == unit && walk.run >= piece.count &&
         walk.offset % unit == 0 && walk.by_block % unit == 0 && walk.by_slot % unit == 0 && walk.by_head % unit == 0;
}

double decoded(DType dtype, bool fnuz, const std::byte* bytes, std::int64_t bit) {
  if (dtype == DType::e2m1) {
    std::byte nibble{};
    copy_bits(bytes, bit, &nibble, 0, 4);
    return to_double(e2m1{std::to_integer<std::uint8_t>(nibble)});
  }
  const std::byte* at = bytes + bit / 8;
  if (!fnuz) return load_as_double(dtype, at);
  // e4m3fnuz: the exponent's bias is 8 instead of 7, 80 is NaN, and 7f and ff are finite.
  const int code = std::to_integer<int>(*at);
  if (code == 0x80) return std::numeric_limits<double>::quiet_NaN();
  if ((code & 0x7f) == 0x7f) return code < 0x80 ? 240.0 : -240.0;
  return load_as_double(DType::e4m3, at) / 2;
}

// Calls put(index of the element in [N, P, H, size], piece, bit) for each element of the side.
void each_element(const CacheSizes& s, const std::vector<CachePiece>& pieces, std::int64_t size, const auto& put) {
  std::int64_t row = 0;
  for (std::int64_t block = 0; block < s.blocks; ++block) {
    for (std::int64_t slot = 0; slot < s.page_size; ++slot) {
      for (std::int64_t head = 0; head < s.heads; ++head, row += size) {
        for (const CachePiece& piece : pieces) {
          for (std::int64_t d = 0; d < piece.count; ++d) {
            put(row + piece.first + d, piece, piece.walk.at(block, slot, head, d));
          }
        }
      }
    }
  }
}

void set_strides(attention::PagedRows& rows, std::int64_t row, const CacheSizes& s) {
  rows.head_stride = row;
  rows.token_stride = s.heads * row;
  rows.block_stride = s.page_size * rows.token_stride;
}

// [N, P, H, D] of the side's own type, or of f32.
void copy_rows(const CacheReading& cache, const CacheSide& side, bool fnuz, std::int64_t size,
               attention::PagedRows& rows, std::vector<std::byte>& copy) {
  const CacheSizes& s = cache.sizes;
  const DType dtype = side.elements.front().dtype;
  const bool same = !fnuz && is_float(dtype) && dtype != DType::e2m1 &&
                    std::ranges::all_of(side.elements, [&](const CachePiece& p) { return p.dtype == dtype; });
  rows.dtype = same ? dtype : DType::f32;
  const std::int64_t bytes = size_of(rows.dtype);
  copy.resize(static_cast<std::size_t>(checked_mul(s.blocks * s.page_size * s.heads * size, bytes)));
  const auto source = [&](const CachePiece& piece) { return cache.tensors[piece.tensor]->bytes.data(); };
  if (same) {
    each_element(s, side.elements, size, [&](std::int64_t at, const CachePiece& piece, std::int64_t bit) {
      std::memcpy(copy.data() + at * bytes, source(piece) + bit / 8, static_cast<std::size_t>(bytes));
    });
  } else {
    each_element(s, side.elements, size, [&](std::int64_t at, const CachePiece& piece, std::int64_t bit) {
      const auto value = static_cast<float>(decoded(piece.dtype, fnuz && bits(piece.dtype) == 8, source(piece), bit));
      std::memcpy(copy.data() + at * bytes, &value, sizeof value);
    });
  }
  rows.data = copy.data();
  set_strides(rows, size, s);
}

void set_group_scales(const CacheReading& cache, const CacheSide& side, std::int64_t size, bool by_token,
                      attention::PagedRows& rows, std::vector<double>& copy) {
  if (side.scales.empty()) return;
  const CacheSizes& s = cache.sizes;
  const CachePiece& first = side.scales.front();
  const std::int64_t unit = bits(first.dtype);
  rows.granularity = first.each;
  if (side.scales.size() == 1 && first.first == 0 && first.count * first.each >= size &&
      first.walk.by_element == unit && first.walk.offset % unit == 0 && first.walk.by_block % unit == 0 &&
      first.walk.by_slot % unit == 0 && (!by_token || first.walk.by_block == s.page_size * first.walk.by_slot)) {
    rows.scales = cache.tensors[first.tensor]->bytes.data() + first.walk.offset / 8;
    rows.scale_dtype = first.dtype;
    rows.scale_block_stride = first.walk.by_block / unit;
    rows.scale_token_stride = first.walk.by_slot / unit;
    rows.scale_head_stride = first.walk.by_head / unit;
    return;
  }
  // Elements without a scale have the scale 1.
  const std::int64_t groups = ceil_div(size, first.each);
  copy.assign(static_cast<std::size_t>(checked_mul(s.blocks * s.page_size * s.heads, groups)), 1.0);
  std::vector<CachePiece> pieces = side.scales;
  for (CachePiece& piece : pieces) piece.first /= piece.each;
  each_element(s, pieces, groups, [&](std::int64_t at, const CachePiece& piece, std::int64_t bit) {
    copy[static_cast<std::size_t>(at)] =
        load_as_double(piece.dtype, cache.tensors[piece.tensor]->bytes.data() + bit / 8);
  });
  rows.scales = reinterpret_cast<const std::byte*>(copy.data());
  rows.scale_dtype = DType::f64;
  rows.scale_head_stride = groups;
  rows.scale_token_stride = s.heads * groups;
  rows.scale_block_stride = s.page_size * rows.scale_token_stride;
}

// The same rows as blocks of one token: block b * page_size + slot.
void use_tokens(attention::PagedRows& rows) {
  rows.blocks *= rows.page_size;
  rows.block_stride = rows.token_stride;
  rows.scale_block_stride = rows.scale_token_stride;
  rows.page_size = 1;
}

}  // namespace

void set_cache_rows(const CacheReading& cache, bool fnuz, bool by_token, PreparedProblem& prepared) {
  const CacheSizes& s = cache.sizes;
  const auto set = [&](const CacheSide& side, std::int64_t size, attention::PagedRows& rows,
                       std::vector<std::byte>& copy, std::vector<double>& scales) {
    rows.blocks = s.blocks;
    rows.page_size = s.page_size;
    rows.heads = s.heads;
    rows.head_size = size;
    const CacheWalk& walk = side.elements.front().walk;
    if (is_readable(side, fnuz) && (!by_token || walk.by_block == s.page_size * walk.by_slot)) {
      const CachePiece& piece = side.elements.front();
      const std::int64_t unit = bits(piece.dtype);
      rows.data = cache.tensors[piece.tensor]->bytes.data() + walk.offset / 8;
      rows.dtype = piece.dtype;
      rows.block_stride = walk.by_block / unit;
      rows.token_stride = walk.by_slot / unit;
      rows.head_stride = walk.by_head / unit;
    } else {
      copy_rows(cache, side, fnuz, size, rows, copy);
    }
    set_group_scales(cache, side, size, by_token, rows, scales);
    if (by_token) use_tokens(rows);
  };
  attention::Problem& problem = prepared.problem;
  set(cache.view.k, s.head_size, problem.k, prepared.k_copy, prepared.k_scales);
  if (cache.view.values_in_keys) {
    problem.v = problem.k;
    problem.v.head_size = s.value_size;
  } else {
    set(cache.view.v, s.value_size, problem.v, prepared.v_copy, prepared.v_scales);
  }
}

}  // namespace kvscope::golden
