// What the tests of lint share.
#pragma once

#include <string>

#include "core/golden/lint/lint.h"
#include "tests/core/golden/layouts/layout_cases.h"

namespace kvscope::golden {

// For the small batch in `layout`.
inline LintOptions lint_options_for(const std::string& layout) {
  LintOptions options;
  options.layout = SmallBatch::options(layout);
  return options;
}

}  // namespace kvscope::golden
