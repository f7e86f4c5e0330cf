// Which form of a layout can hold a cache, and why the others cannot.
#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/base/checked.h"
#include "core/golden/layouts/detail/convert_parts.h"

namespace kvscope::golden {

bool form_has(const CacheForm& form, std::string_view axis) {
  return std::ranges::any_of(form.tensors,
                             [&](const CacheTensor& tensor) { return std::ranges::count(tensor.axes, axis) > 0; });
}

namespace {

// What a form is asked to hold.
class FormCheck {
 public:
  FormCheck(const LayoutDescription& to, const FormRequest& request, const CacheForm& form)
      : to_(to), request_(request), form_(form), whole_(with_block_scales(form)), have_(request.cache.sizes) {
    const CacheView& view = request.cache.view;
    separate_ = !request.cache.form.values_in_keys;
    k_type_ = view.k.elements.front().dtype;
    v_type_ = separate_ ? view.v.elements.front().dtype : k_type_;
    alike_ = have_.head_size == have_.value_size && k_type_ == v_type_;
    sizes = have_;
    sizes.blocks = request.blocks;
    sizes.page_size = request.page_size;
  }

  CacheSizes sizes;

  // Empty, or the reason; `passed` counts the checks before it.
  [[nodiscard]] std::string reason(int& passed) {
    for (auto check : {&FormCheck::rows, &FormCheck::heads, &FormCheck::values, &FormCheck::head_sizes,
                       &FormCheck::parts, &FormCheck::scales, &FormCheck::runs, &FormCheck::storage}) {
      if (std::string found = (this->*check)(); !found.empty()) return found;
      ++passed;
    }
    return {};
  }

 private:
  [[nodiscard]] bool has(std::string_view axis) const { return form_has(form_, axis); }

  std::string rows() {
    const bool packed = !request_.cache.form.tensors.front().row.empty();
    if (!form_.tensors.front().row.empty() == packed) return {};
    return packed ? "has rows of one type, the input has packed rows"
                  : "has packed rows, the input has rows of one type";
  }

  std::string heads() {
    if (has("head") || has("head*dim") || have_.heads == 1) return {};
    return fmt::format("has no axis for the {} heads", have_.heads);
  }

  std::string values() {
    if (form_.values_in_keys == !separate_) return {};
    if (form_.values_in_keys && !request_.values_are_leading()) {
      return "stores V as the first elements of K, the input stores V apart";
    }
    if (!form_.values_in_keys && !request_.cache.view.k.scales.empty()) {
      return "stores V apart, the input has block scales of rows that hold both";
    }
    return {};
  }

  std::string head_sizes() {
    if (form_.values_in_keys || alike_ || has("dim+vdim")) {
      return has("dim+vdim") && k_type_ != v_type_ ? "holds K and V in one tensor, which needs one type" : "";
    }
    const std::string sizes_are = fmt::format("; K has {} elements of {}, V {} of {}", have_.head_size, name(k_type_),
                                              have_.value_size, name(v_type_));
    if (form_.tensors.front().holds == Holds::kv) {
      return "holds K and V in one tensor, which needs one head size and type" + sizes_are;
    }
    return to_.v_may_differ ? "" : "needs K and V of one head size and type" + sizes_are;
  }

  std::string parts() {
    if (!has("latent")) return {};
    sizes.latent = have_.value_size;
    if (have_.value_size < have_.head_size) return {};
    return fmt::format("splits a row into the {} elements of V and the rest, of which there are none",
                       have_.value_size);
  }

  // Block scales in tensors of their own; those of packed rows are in the rows.
  std::string scales() {
    const CacheForm& from = request_.cache.form;
    if (!from.tensors.front().row.empty()) return {};
    const std::vector<CachePiece>&k = request_.cache.view.k.scales, &v = request_.cache.view.v.scales;
    const auto has_tensor = [&](Holds one) {
      return std::ranges::any_of(whole_.tensors, [&](const CacheTensor& tensor) {
        return tensor.holds == one || tensor.holds == Holds::kv_scales;
      });
    };
    const bool lost_k = !k.empty() && !has_tensor(Holds::k_scales);
    const bool lost_v = !v.empty() && !has_tensor(Holds::v_scales);
    if (lost_k || lost_v) {
      return fmt::format("has no place for block scales{}, which the input has", lost_k && lost_v ? ""
                                                                                 : lost_k         ? " of K"
                                                                                                  : " of V");
    }
    const bool in_one =
        std::ranges::any_of(whole_.tensors, [](const CacheTensor& tensor) { return tensor.holds == Holds::kv_scales; });
    if (!in_one || (k.empty() && v.empty())) return {};
    if (k.empty() || v.empty()) {
      return fmt::format("holds the block scales of K and V in one tensor, the input has those of {} alone",
                         k.empty() ? "V" : "K");
    }
    if (have_.k_group == have_.v_group && k.front().dtype == v.front().dtype) return {};
    return fmt::format(
        "holds the block scales of K and V in one tensor, the input has {} for each {} elements of K and {} for each "
        "{} "
        "of V",
        name(k.front().dtype), have_.k_group, name(v.front().dtype), have_.v_group);
  }

  std::string runs() {
    if (!has("x")) return {};
    if (bits(k_type_) < 8) return "keeps runs of whole bytes, the input has elements of 4 bits";
    if (sizes.run == 0) {
      sizes.run = std::max<std::int64_t>(to_.run_bytes.value > 0 ? to_.run_bytes.value / size_of(k_type_) : 1, 1);
    }
    if (sizes.head_size % sizes.run == 0) return {};
    return fmt::format("keeps runs of {} elements, which do not divide {}", sizes.run, have_.head_size);
  }

  // Flat storage has the extents of its description; its pool may have more blocks than the cache.
  std::string storage() {
    for (const CacheTensor& tensor : form_.tensors) {
      if (tensor.strides.empty()) continue;
      if (bits(k_type_) < 8) return "describes flat storage, which holds no elements of 4 bits";
      CacheTensor axes = tensor;
      axes.strides.clear();
      std::vector<std::int64_t> extents = shape_for(axes, sizes, k_type_);
      for (std::size_t i = 0; i < extents.size(); ++i) {
        const std::string& axis = tensor.axes[i];
        const bool is_pool = axis == "block" || axis == "token" || axis == "seq";
        if (is_pool && to_.table.form != TableForm::dense && to_.table.form != TableForm::chunk) {
          extents[i] = std::max(extents[i], tensor.sizes[i]);
        }
      }
      if (extents != tensor.sizes) {
        return fmt::format("describes flat storage of sizes {}, the cache has {}", shape_text(tensor.sizes),
                           shape_text(extents));
      }
      if (overlaps(tensor)) return fmt::format("describes flat storage in which elements of {} overlap", tensor.name);
    }
    return {};
  }

  // Axes in the order of their strides: each step is past all elements of the axes before it.
  static bool overlaps(const CacheTensor& tensor) {
    std::vector<std::size_t> order(tensor.axes.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::sort(order, {}, [&](std::size_t axis) { return tensor.strides[axis]; });
    std::int64_t reach = 0;
    for (const std::size_t axis : order) {
      if (tensor.sizes[axis] > 1 && tensor.strides[axis] <= reach) return true;
      reach = checked_add(reach, checked_mul(tensor.sizes[axis] - 1, tensor.strides[axis]));
    }
    return false;
  }

  const LayoutDescription& to_;
  const FormRequest& request_;
  const CacheForm& form_;
  CacheForm whole_;  // with its block scales
  CacheSizes have_;
  bool separate_ = true, alike_ = true;
  DType k_type_ = DType::f32, v_type_ = DType::f32;
};

}  // namespace

ChosenForm choose_form_of(const LayoutDescription& to, const FormRequest& request) {
  std::vector<CacheForm> forms = to.forms;
  const bool leading = request.cache.form.values_in_keys;
  const auto prefer = [&](const auto& condition) { std::stable_partition(forms.begin(), forms.end(), condition); };
  prefer([&](const CacheForm& form) { return form_has(form, "layer") == request.several_layers; });
  prefer([&](const CacheForm& form) { return form.values_in_keys == leading; });
  ChosenForm chosen;
  int most = -1;
  for (const CacheForm& form : forms) {
    FormCheck check(to, request, form);
    int passed = 0;
    std::string reason = check.reason(passed);
    if (reason.empty()) return {with_block_scales(form), form, check.sizes, {}};
    if (passed > most) chosen.reason = std::move(reason);
    most = std::max(most, passed);
  }
  return chosen;
}

}  // namespace kvscope::golden
