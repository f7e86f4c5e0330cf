// The layouts by name: each one locates K and V in its engine's tensors and reads its index tensors.
// The table at the top of layouts.h lists them; layouts.cpp has the code common to all layouts.
#pragma once

#include <span>
#include <string_view>

#include "core/golden/detail/layout_reader.h"
#include "core/golden/layouts.h"

namespace kvscope::golden {

struct KeysAndValues {
  LayoutReader::Walk k, v;
};

struct LayoutAdapter {
  std::string_view name;
  // Reports faults to the reader. Where strides cannot express the layout, copies K and V into k_copy and v_copy.
  void (*read)(LayoutReader&, PreparedProblem&, KeysAndValues&);
};

[[nodiscard]] std::span<const LayoutAdapter> layout_adapters();

}  // namespace kvscope::golden
