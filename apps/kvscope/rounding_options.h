// The options that state what a candidate's kernel rounds, of `verify` and `diagnose`: --candidate-dtype, --p-dtype,
// --partials-dtype, --operand-dtype, --ex2-error, --tile-keys,
// --accumulator-bits, --row-sum.
#pragma once

#include "core/golden/verdict/candidate_rounding.h"

namespace CLI {
class App;
}

namespace kvscope::apps {

// `rounding` outlives the command.
void add_rounding_options(CLI::App& command, golden::StatedRounding& rounding);

}  // namespace kvscope::apps
