// The options that state what a candidate's kernel rounds, of `verify` and `diagnose`: --candidate-dtype, --p-dtype,
// --partials-dtype, --operand-dtype, --ex2-error, --tile-keys,
// --accumulator-bits, --row-sum.
#pragma once

#include <vector>

#include "core/golden/verdict/candidate_rounding.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace kvscope::apps {

// `rounding` outlives the command. Returns the options in this order.
std::vector<CLI::Option*> add_rounding_options(CLI::App& command, golden::StatedRounding& rounding);

}  // namespace kvscope::apps
