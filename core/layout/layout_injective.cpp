#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/layout/layout_expr.h"

namespace kvscope::layout {
namespace {

// A leaf of the shape with its stride. Nesting only names modes; the offset is a sum over the leaves.
struct Mode {
  std::int64_t shape;
  std::int64_t stride;
};

// The modes with more than one coordinate, leftmost first.
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
    if (shape.value > 1) modes.push_back({shape.value, stride.value});
  }
  for (std::size_t i = 0; i < shape.items.size(); ++i) flatten(shape.items[i], stride.items[i], modes);
}

}  // namespace

bool is_injective(const Layout& layout) {
  constexpr std::int64_t kEnumerated = std::int64_t{1} << 20;
  std::vector<Mode> modes;
  flatten(layout.shape, layout.stride, modes);
  std::ranges::sort(modes, {}, [](const Mode& m) { return std::pair(m.stride, m.shape); });
  if (!modes.empty() && modes.front().stride == 0) return false;
  // A stride larger than every offset of the smaller strides together cannot meet those offsets again.
  std::int64_t reached = 0;
  bool apart = true;
  for (const Mode& mode : modes) {
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
