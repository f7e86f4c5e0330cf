// Any text as a layout expression: an accepted layout prints as text that parses to the same layout, and each of its
// coordinates gives an offset or an error with the reason.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "core/base/errors.h"
#include "core/layout/layout_expr.h"

namespace {

using kvscope::layout::IntTuple;
using kvscope::layout::Layout;

constexpr std::int64_t kTried = 64;  // coordinates tried per layout

void must_hold(bool holds) {
  if (!holds) std::abort();
}

// With a swizzle, or a coordinate past the size, an offset may overflow 64 bits; no other error is allowed.
template <class Coordinate>
void try_offset(const Layout& layout, const Coordinate& coordinate) {
  try {
    static_cast<void>(kvscope::layout::offset_of(layout, coordinate));
  } catch (const kvscope::IndexError&) {
  } catch (const kvscope::GeometryError&) {
  } catch (const kvscope::OverflowError&) {
  }
}

void read(std::string_view expression) {
  const Layout layout = kvscope::layout::parse_layout(expression);
  const std::string printed = text(layout);
  const Layout again = kvscope::layout::parse_layout(printed);
  must_hold(again.shape == layout.shape && again.stride == layout.stride && again.swizzle == layout.swizzle);
  must_hold(text(again) == printed);

  const std::int64_t size = kvscope::layout::size(layout);
  must_hold(size >= 1 && kvscope::layout::cosize(layout) >= 1);
  for (std::int64_t i = 0; i < std::min(size, kTried); ++i) {
    try_offset(layout, i);
    try_offset(layout, IntTuple{.value = i, .items = {}, .leaf = true});
  }
  for (const std::int64_t i : {std::int64_t{-1}, size - 1, size}) try_offset(layout, i);
  try_offset(layout, layout.shape);  // one past the end of every mode
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    read({reinterpret_cast<const char*>(data), size});
  } catch (const kvscope::InputError&) {
  } catch (const kvscope::GeometryError&) {
  } catch (const kvscope::OverflowError&) {
  }
  return 0;
}
