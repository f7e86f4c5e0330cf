// A problem of Python: the tensors, how to read them, and the attention problem that they are.
#pragma once

#include <memory>

#include "apps/python/bindings/bindings.h"
#include "core/golden/layouts/layouts.h"

namespace kvscope::python {

struct Problem {
  std::shared_ptr<golden::Bundle> tensors;
  golden::LayoutOptions options;
  golden::PreparedProblem prepared;  // points into `tensors`
};

[[nodiscard]] golden::LayoutOptions layout_options(const py::dict& options);

}  // namespace kvscope::python
