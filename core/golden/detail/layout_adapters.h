// The layouts by name: each says where K and V stand in its engine's tensors, and which index tensors speak of them.
// The table that opens layouts.h lists them; what all layouts share is in layouts.cpp.
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
  // Faults go to the reader. Where strides cannot say it, K and V are copied into the problem's k_copy and v_copy.
  void (*read)(LayoutReader&, PreparedProblem&, KeysAndValues&);
};

[[nodiscard]] std::span<const LayoutAdapter> layout_adapters();

}  // namespace kvscope::golden
