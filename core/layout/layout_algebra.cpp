// The algebra works on a flat list of modes (shape, stride), leftmost fastest, of which nesting is
// only a way of naming.
#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/layout/layout_expr.h"

namespace kvscope::layout {
namespace {

struct Mode {
  std::int64_t shape;
  std::int64_t stride;
};

IntTuple leaf(std::int64_t value) {
  IntTuple t;
  t.value = value;
  return t;
}

void flatten(const IntTuple& shape, const IntTuple& stride, std::vector<Mode>& modes) {
  if (shape.leaf != stride.leaf || shape.items.size() != stride.items.size()) {
    throw GeometryError(
        fmt::format("layout {}:{} rejected: the stride is not nested as the shape is", text(shape), text(stride)));
  }
  if (shape.leaf) {
    if (shape.value < 1 || stride.value < 0) {
      throw GeometryError(fmt::format("layout mode {}:{} rejected: a shape is at least 1 and a stride at least 0",
                                      shape.value, stride.value));
    }
    modes.push_back({shape.value, stride.value});
  }
  for (std::size_t i = 0; i < shape.items.size(); ++i) flatten(shape.items[i], stride.items[i], modes);
}

std::vector<Mode> coalesced(std::vector<Mode> modes) {
  std::vector<Mode> out;
  for (const Mode& mode : modes) {
    if (mode.shape == 1) continue;
    std::int64_t next = 0;
    const bool follows =
        !out.empty() && !__builtin_mul_overflow(out.back().shape, out.back().stride, &next) && mode.stride == next;
    if (follows) {
      out.back().shape = checked_mul(out.back().shape, mode.shape, "layout size");
    } else {
      out.push_back(mode);
    }
  }
  return out;
}

std::vector<Mode> coalesced(const Layout& layout) {
  std::vector<Mode> modes;
  flatten(layout.shape, layout.stride, modes);
  return coalesced(std::move(modes));
}

// "1:0" for no modes, "8:1" for one, "(8,4):(4,1)" for more.
Layout from_modes(const std::vector<Mode>& modes, std::optional<Swizzle> swizzle = std::nullopt) {
  Layout layout;
  layout.swizzle = swizzle;
  if (modes.size() < 2) {
    layout.shape = leaf(modes.empty() ? 1 : modes.front().shape);
    layout.stride = leaf(modes.empty() ? 0 : modes.front().stride);
    return layout;
  }
  layout.shape.leaf = layout.stride.leaf = false;
  for (const Mode& mode : modes) {
    layout.shape.items.push_back(leaf(mode.shape));
    layout.stride.items.push_back(leaf(mode.stride));
  }
  return layout;
}

std::vector<Mode> by_stride(std::vector<Mode> modes) {
  std::erase_if(modes, [](const Mode& m) { return m.stride == 0; });
  std::sort(modes.begin(), modes.end(),
            [](const Mode& a, const Mode& b) { return std::pair(a.stride, a.shape) < std::pair(b.stride, b.shape); });
  return modes;
}

bool has_bits(const Layout& layout) {
  return layout.swizzle && layout.swizzle->bits() > 0;
}

void refuse_swizzle(const Layout& layout, std::string_view operation) {
  if (!has_bits(layout)) return;
  throw GeometryError(
      fmt::format("{} of {} rejected: a swizzled layout has none; take it of the layout without its swizzle", operation,
                  text(layout)));
}

// Composes one leaf of the inner layout at a time. The outer layout reads an offset as digits, one per outer mode, and
// is a sum over them as long as no digit carries. So c -> outer(c * d) is linear for the first L steps, where L is when
// the first digit overflows: a mode of size L, and then the same again for the stride d * L.
//   outer (8,4):(4,1), leaf 16:2 -> digits of 2 are (2,0), L = 4: mode 4:8; then d = 8, digits (0,1): mode 4:1.
class Composer {
 public:
  Composer(const Layout& outer, const Layout& inner)
      : outer_(outer), inner_(inner), modes_(coalesced(outer)), largest_digit_(modes_.size(), 0) {}

  Layout run() {
    Layout result;
    result.swizzle = outer_.swizzle;
    node(inner_.shape, inner_.stride, result.shape, result.stride);
    // Every leaf is linear by itself; together they are only if their largest digits add up without a carry.
    for (std::size_t j = 0; j < modes_.size(); ++j) {
      if (largest_digit_[j] >= modes_[j].shape) {
        refuse(fmt::format("the inner modes together reach digit {} of outer mode {}:{}", largest_digit_[j],
                           modes_[j].shape, modes_[j].stride));
      }
    }
    return result;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw GeometryError(fmt::format("composition of {} with {} rejected: {}", text(outer_), text(inner_), why));
  }

  void node(const IntTuple& shape, const IntTuple& stride, IntTuple& out_shape, IntTuple& out_stride) {
    if (shape.leaf) {
      Layout part = from_modes(compose_leaf({shape.value, stride.value}));
      out_shape = std::move(part.shape);
      out_stride = std::move(part.stride);
      return;
    }
    out_shape.leaf = out_stride.leaf = false;
    out_shape.items.resize(shape.items.size());
    out_stride.items.resize(shape.items.size());
    for (std::size_t i = 0; i < shape.items.size(); ++i) {
      node(shape.items[i], stride.items[i], out_shape.items[i], out_stride.items[i]);
    }
  }

  std::vector<Mode> compose_leaf(Mode rest) {
    std::vector<Mode> out;
    while (rest.shape > 1) {
      Mode piece = {rest.shape, 0};
      std::int64_t digits_left = rest.stride;
      for (const Mode& mode : modes_) {
        const std::int64_t digit = digits_left % mode.shape;
        digits_left /= mode.shape;
        if (digit > 0) piece.shape = std::min(piece.shape, ceil_div(mode.shape, digit));
        piece.stride = checked_add(piece.stride, checked_mul(digit, mode.stride, "composed stride"), "composed stride");
      }
      if (rest.shape % piece.shape != 0) {
        refuse(fmt::format("{} steps of {} cross an outer mode after {}, which does not divide {}", rest.shape,
                           rest.stride, piece.shape, rest.shape));
      }
      digits_left = rest.stride;
      for (std::size_t j = 0; j < modes_.size(); ++j) {
        largest_digit_[j] += (piece.shape - 1) * (digits_left % modes_[j].shape);
        digits_left /= modes_[j].shape;
      }
      out.push_back(piece);
      rest = {rest.shape / piece.shape, rest.shape > piece.shape ? rest.stride * piece.shape : 0};
    }
    return out;
  }

  const Layout& outer_;
  const Layout& inner_;
  std::vector<Mode> modes_;
  std::vector<std::int64_t> largest_digit_;
};

}  // namespace

Layout coalesce(const Layout& layout) {
  return from_modes(coalesced(layout), layout.swizzle);
}

Layout composition(const Layout& outer, const Layout& inner) {
  if (has_bits(inner)) {
    throw GeometryError(
        fmt::format("composition of {} with {} rejected: the inner layout is swizzled, and what follows a "
                    "swizzle is no sum of strides",
                    text(outer), text(inner)));
  }
  (void)coalesced(inner);  // refuses what is no layout
  if (cosize(inner) > size(outer)) {
    throw GeometryError(
        fmt::format("composition of {} with {} rejected: the inner layout reaches offset {}, outside "
                    "the outer one's [0, {})",
                    text(outer), text(inner), cosize(inner) - 1, size(outer)));
  }
  return Composer(outer, inner).run();
}

Layout complement(const Layout& layout, std::int64_t cosize_hi) {
  refuse_swizzle(layout, "complement");
  if (cosize_hi < 1) {
    throw GeometryError(
        fmt::format("complement of {} in [0, {}) rejected: the range is empty", text(layout), cosize_hi));
  }
  std::vector<Mode> modes;
  std::int64_t reached = 1;  // offsets below it are covered by the modes so far and their complement
  for (const Mode& mode : by_stride(coalesced(layout))) {
    if (mode.stride % reached != 0) {
      throw GeometryError(
          fmt::format("complement of {} rejected: stride {} is not a multiple of {}, which the modes "
                      "before it reach",
                      text(layout), mode.stride, reached));
    }
    modes.push_back({mode.stride / reached, reached});
    reached = checked_mul(mode.shape, mode.stride, "layout cosize");
  }
  modes.push_back({ceil_div(cosize_hi, reached), reached});
  return from_modes(coalesced(std::move(modes)));
}

Layout right_inverse(const Layout& layout) {
  refuse_swizzle(layout, "right inverse");
  // Where each mode's digit stands in the integer coordinate: the product of the shapes before it.
  struct Placed {
    Mode mode;
    std::int64_t coordinate_stride;
  };
  std::vector<Placed> placed;
  std::int64_t coordinate_stride = 1;
  for (const Mode& mode : coalesced(layout)) {
    placed.push_back({mode, coordinate_stride});
    coordinate_stride = checked_mul(coordinate_stride, mode.shape, "layout size");
  }
  std::sort(placed.begin(), placed.end(),
            [](const Placed& a, const Placed& b) { return a.mode.stride < b.mode.stride; });
  std::vector<Mode> inverse;
  std::int64_t reached = 1;
  for (const Placed& p : placed) {
    if (p.mode.stride != reached) continue;
    inverse.push_back({p.mode.shape, p.coordinate_stride});
    reached = checked_mul(p.mode.shape, p.mode.stride, "layout cosize");
  }
  return from_modes(coalesced(std::move(inverse)));
}

bool is_injective(const Layout& layout) {
  constexpr std::int64_t kEnumerated = std::int64_t{1} << 20;
  const std::vector<Mode> modes = coalesced(layout);
  if (std::any_of(modes.begin(), modes.end(), [](const Mode& m) { return m.stride == 0; })) return false;
  // A stride past everything that the smaller ones reach together cannot meet them again.
  std::int64_t reached = 0;
  bool apart = true;
  for (const Mode& mode : by_stride(modes)) {
    apart = apart && mode.stride > reached;
    reached = checked_add(reached, checked_mul(mode.shape - 1, mode.stride, "largest offset"), "largest offset");
  }
  if (apart) return true;
  const std::int64_t count = size(layout);
  if (count > reached + 1) return false;  // more coordinates than offsets
  if (count > kEnumerated) {
    throw GeometryError(
        fmt::format("layout {} rejected: its modes interleave and its {} coordinates are more than the "
                    "{} that are tried one by one",
                    text(layout), count, kEnumerated));
  }
  std::unordered_set<std::int64_t> seen;
  for (std::int64_t c = 0; c < count; ++c) {
    std::int64_t rest = c;
    std::int64_t offset = 0;
    for (const Mode& mode : modes) {
      offset += rest % mode.shape * mode.stride;
      rest /= mode.shape;
    }
    if (!seen.insert(offset).second) return false;
  }
  return true;
}

}  // namespace kvscope::layout
