#include "core/golden/layouts/detail/cache_reader.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <optional>

#include "core/base/checked.h"

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
    const std::int64_t of_queries = head_size_of_queries();
    if (of_queries == 0) fault(t, "has one axis for heads and elements: pass --head-size, the elements of a head");
    return of_queries;
  }

  // 0: no queries.
  [[nodiscard]] std::int64_t head_size_of_queries() {
    for (const char* name : {"q", "q_nope"}) {
      if (const Tensor* q = r_.has(name) ? r_.peek(name) : nullptr; q != nullptr && !q->shape.empty()) {
        return q->shape.back();
      }
    }
    return 0;
  }

  // K's tensors in the order of the form, then V's: the first occurrence of an axis gives its extent.
  void read(std::size_t t) {
    const CacheTensor& tensor = form_.tensors[t];
    const Shape shape = tensor.sizes.empty() ? shape_in_elements(*tensors_[t], stored_[t]) : tensor.sizes;
    if (!tensor.sizes.empty()) {
      const Shape needed = shape_for(tensor, {}, stored_[t]);
      if (stored_[t] == DType::e2m1) check_whole_bytes(t);
      const std::int64_t elements = shape_in_elements(*tensors_[t], stored_[t])[0];
      if (elements < needed[0]) {
        fault(t, fmt::format("has {} elements, but the strides and sizes of layout '{}' reach {}", elements,
                             layout_.name, needed[0]));
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
        const std::int64_t v = r_.options().value_size.value_or(shape[i] - head_size_of_queries());
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

  // Flat storage of e2m1 has two elements in a byte: each run of elements must start and end with a byte, because the
  // tables, scales and copies of a cache count bytes.
  void check_whole_bytes(std::size_t t) {
    const CacheTensor& tensor = form_.tensors[t];
    const auto odd = [&](const std::string& what, std::int64_t value) {
      fault(t,
            fmt::format("has {} of layout '{}' {}, an odd number of e2m1 elements, of which a byte holds two: pad it "
                        "to {}",
                        what, layout_.name, value, value + 1));
    };
    if (tensor.offset % 2 != 0) odd("the offset", tensor.offset);
    for (std::size_t i = 0; i < tensor.strides.size(); ++i) {
      const bool elements = tensor.strides[i] == 1;
      if (!elements && tensor.sizes[i] == 1) continue;
      if (const std::int64_t value = elements ? tensor.sizes[i] : tensor.strides[i]; value % 2 != 0) {
        odd(fmt::format("a {} of axis '{}'", elements ? "size" : "stride", tensor.axes[i]), value);
        return;  // the strides of the other axes follow from it
      }
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
                           : r.options().cache_type.value_or(CacheType{tensors[t]->dtype}).dtype);
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
  // The length of a packed row is fixed, so a tensor whose last axis has it holds packed rows, not heads.
  keep([&](const CacheForm& form) { return !form.tensors.front().row.empty(); });
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

// An order of block scales that fits the page and the number of scales.
ScaleOrder checked_order(LayoutReader& r, const CacheSizes& sizes, bool is_v) {
  const ScaleOrder order = is_v ? r.options().v_scale_order : r.options().k_scale_order;
  if (order == ScaleOrder::linear) return order;
  const char* const option = is_v ? "--v-scales" : "--k-scales";
  const std::int64_t group = is_v ? sizes.v_group : sizes.k_group;
  if (group == 0) {
    r.fault(option, fmt::format("{}: the input has no block scales of {}", name(order), is_v ? "V" : "K"));
    return order;
  }
  if (sizes.page_size % slots_of_run(order) != 0) {
    r.fault(option, fmt::format("{}: {} slots share a run, which does not divide the page size {}", name(order),
                                slots_of_run(order), sizes.page_size));
  }
  const std::int64_t scales = ceil_div(is_v ? sizes.value_size : sizes.head_size, group);
  if (scales % scales_of_run(order) != 0) {
    r.fault(option, fmt::format("{}: {} scales of a slot share a run, which does not divide the {} scales of a head",
                                name(order), scales_of_run(order), scales));
  }
  return order;
}

}  // namespace

bool fits_several_forms(LayoutReader& r, const LayoutDescription& layout) {
  return fitting_forms(r, layout).size() > 1;
}

CacheReading read_cache(LayoutReader& r, const LayoutDescription& layout) {
  const std::int64_t layer = r.options().layer;
  if (layer != 0 && !layout.has_axis("layer")) {
    r.fault("--layer", fmt::format("is {}, but layout '{}' holds one layer: leave the option out", layer, layout.name));
  }
  const std::vector<const CacheForm*> forms = fitting_forms(r, layout);
  CacheReading cache;
  cache.layer = layer;
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
  const bool layer_fits = layer >= 0 && layer < sizes.layers;
  if (!layer_fits && layout.has_axis("layer")) {
    r.fault("--layer",
            fmt::format("is {}, but {} has {}", layer, r.given(cache.form.tensors.front().name),
                        sizes.layers == 1 ? std::string("one layer: leave the option out")
                                          : fmt::format("layers 0 to {}: pass one of them", sizes.layers - 1)));
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
  sizes.k_order = checked_order(r, sizes, false);
  sizes.v_order = checked_order(r, sizes, true);
  cache.stored = stored_types(r, cache.form, cache.tensors);
  if (r.ok() && layer_fits) cache.view = view_of(cache.form, sizes, layer, cache.stored, present);
  return cache;
}

}  // namespace kvscope::golden
