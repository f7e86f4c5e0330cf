#include "apps/kvscope/rounding_options.h"

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "core/base/dtype.h"

namespace kvscope::apps {
namespace {

CLI::Option* add_type(CLI::App& command, const std::string& option, std::optional<DType>& target,
                      const std::vector<std::string>& types, const std::string& help) {
  return command
      .add_option_function<std::string>(
          option, [&target](const std::string& type) { target = dtype_from_name(type); }, help)
      ->type_name("TYPE")
      ->check(CLI::IsMember(types));
}

}  // namespace

std::vector<CLI::Option*> add_rounding_options(CLI::App& command, golden::StatedRounding& rounding) {
  std::vector<CLI::Option*> options;
  const auto add = [&](CLI::Option* option) { options.push_back(option); };
  add(add_type(command, "--candidate-dtype", rounding.output, {"f64", "f32", "f16", "bf16"},
               "Type of the output that the kernel wrote, if the file holds it converted to a wider one [default: the "
               "file's, or the narrower one that all values have exactly]"));
  add(add_type(command, "--p-dtype", rounding.probabilities, {"f32", "f16", "bf16", "e4m3"},
               "Type that the kernel rounds the probabilities P to before the product with V [default: the output's]"));
  add(add_type(command, "--partials-dtype", rounding.partials, {"f32", "f16", "bf16"},
               "Type of the partial outputs that a split-K kernel merges [default: f32]"));
  add(add_type(command, "--operand-dtype", rounding.inputs, {"f16", "bf16", "e4m3", "e5m2"},
               "Type that the kernel rounds q, K and V to before the products; f16 for tf32 [default: as stored]"));
  add(command
          .add_option("--ex2-error", rounding.ex2_error,
                      "Largest relative error of the kernel's exponential, such as 1e-4 for a polynomial of degree 3 "
                      "[default: 2.4e-7]")
          ->type_name("ERROR")
          ->check(CLI::Range(0.0, 1.0)));
  add(command
          .add_option(
              "--tile-keys", rounding.tile_keys,
              "Keys that the kernel sums before it adds them to the running sum. A larger tile has a tighter bound "
              "[default: 1, one by one]")
          ->type_name("KEYS")
          ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30)));
  add(command
          .add_option(
              "--accumulator-bits", rounding.accumulator_bits,
              "Significant bits to which the kernel's matrix instructions cut each product and the sum so far, "
              "toward zero: 14 for fp8 on Hopper. With --tile-keys, each tile is such a sum, added to an f32 sum "
              "[default: f32 sums, which matrix instructions truncate if P has 16 or 8 bits]")
          ->type_name("BITS")
          ->check(CLI::Range(4, 24)));
  add(command
          .add_option_function<std::string>(
              "--row-sum",
              [&rounding](const std::string& from) {
                rounding.row_sum = from == "exact" ? attention::RowSum::exact : attention::RowSum::rounded;
              },
              "Probabilities that lse is made of: before or after they are rounded to P's type [default: either, "
              "or exact if the values show it]")
          ->type_name("WHICH")
          ->check(CLI::IsMember({"exact", "rounded"})));
  return options;
}

}  // namespace kvscope::apps
