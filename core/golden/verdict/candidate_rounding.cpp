#include "core/golden/verdict/candidate_rounding.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/golden/verdict/detail/bits_set.h"
#include "core/golden/verdict/detail/verdict_loops.h"
#include "core/golden/verdict/measures.h"

namespace kvscope::golden {
namespace {

// Values that a wider kernel would not have hit by accident: each is exact in bf16 with probability 2^-16.
constexpr std::size_t kProof = 16;

// Index of the first finite element of `tensor` that `type` does not represent; the number of elements when there is
// none. The tensor holds values of an output type.
std::size_t first_not_of(DType type, const Tensor& tensor) {
  const auto size = static_cast<std::size_t>(size_of(tensor.dtype)), elements = tensor.bytes.size() / size;
  const NumberType target = number_type(type);
  std::array<double, kBlock> values_of_block;
  for (std::size_t at = 0; at < elements; at += kBlock) {
    const std::span<double> x = std::span(values_of_block).first(std::min<std::size_t>(kBlock, elements - at));
    to_doubles(tensor.dtype, tensor.bytes.data() + at * size, x);
    if (verdict_loops().all_of_type(target, x.data(), static_cast<std::int64_t>(x.size()))) continue;
    for (std::size_t i = 0; i < x.size(); ++i) {
      if (std::isfinite(x[i]) && rounded_to(type, x[i]) != x[i]) return at + i;
    }
  }
  return elements;
}

double element_of(const Tensor& tensor, std::size_t at) {
  return load_as_double(tensor.dtype, tensor.bytes.data() + at * static_cast<std::size_t>(size_of(tensor.dtype)));
}

bool proves(DType type, const Tensor& candidate, std::span<const double> golden) {
  if (first_not_of(type, candidate) != golden.size()) return false;
  std::size_t proof = 0;
  for (std::size_t i = 0; i < golden.size() && proof < kProof; ++i) {
    if (!std::isfinite(golden[i]) || element_of(candidate, i) == 0) continue;
    const double g = rounded_to(candidate.dtype, golden[i]);
    proof += std::isfinite(g) && rounded_to(type, g) != g ? 1 : 0;
  }
  return proof >= std::min(kProof, golden.size());
}

}  // namespace

FoundRounding find_rounding(const Bundle& golden, const Bundle& candidate, const StatedRounding& stated,
                            const std::string& candidate_name) {
  const Tensor& o = candidate.tensors.at("o");
  DType output = o.dtype;
  std::string text(name(o.dtype));
  const bool wide = o.dtype == DType::f32 || o.dtype == DType::f64;
  if (stated.output && size_of(*stated.output) > size_of(o.dtype)) {
    throw InputError(
        candidate_name, "candidate 'o'",
        fmt::format("is {}, which cannot hold the {} output that --candidate-dtype states: save the output "
                    "in the type that the kernel wrote, and remove the option",
                    name(o.dtype), name(*stated.output)));
  }
  if (stated.output && *stated.output != o.dtype) {
    const auto elements = values<double>(golden.tensors.at("o")).size();
    const std::size_t at = first_not_of(*stated.output, o);
    if (at != elements) {
      throw InputError(candidate_name, "candidate 'o'",
                       fmt::format("is stated to hold {0} values, but element {1} is {2:.9g}, which is not a {0} "
                                   "number. Pass the type that the kernel wrote with --candidate-dtype",
                                   name(*stated.output), at, element_of(o, at)));
    }
    output = *stated.output;
  } else if (!stated.output && wide) {
    const auto g = values<double>(golden.tensors.at("o"));
    for (const DType narrow : {DType::bf16, DType::f16, DType::f32}) {
      if (narrow == o.dtype || !proves(narrow, o, g)) continue;
      output = narrow;
      break;
    }
  }
  if (output != o.dtype) text = fmt::format("{} holding {} values", name(o.dtype), name(output));

  FoundRounding found{attention::rounding_of(output), text};
  attention::Rounding& r = found.rounding;
  if (const auto lse = candidate.tensors.find("lse"); lse != candidate.tensors.end()) r.lse = lse->second.dtype;
  if (stated.probabilities) r.probabilities = *stated.probabilities;
  r.partials = stated.partials;
  r.inputs = stated.inputs;
  if (stated.ex2_error) r.ex2_error = *stated.ex2_error;
  r.tile_keys = stated.tile_keys;
  r.accumulator_bits = stated.accumulator_bits;
  r.row_sum = stated.row_sum;
  r.deviations = attention::deviations_for(static_cast<double>(values<double>(golden.tensors.at("o")).size()));
  return found;
}

bool sums_are_exact(const attention::Rounding& rounding, const GoldenTerms& terms, std::span<const double> have,
                    std::span<const double> want) {
  constexpr std::size_t kRowsOfProof = 24;
  attention::Rounding rounded = rounding;
  rounded.row_sum = attention::RowSum::rounded;
  attention::Rounding exact = rounding;
  exact.row_sum = attention::RowSum::exact;
  BitsSet seen(want.size());
  std::size_t close = 0;
  for (std::size_t row = 0; row < want.size(); ++row) {
    const attention::RowTerms row_terms = terms.row(row);
    if (!std::isfinite(want[row]) || !std::isfinite(have[row]) || terms.concentration(row) > 0.3 ||
        row_terms.clump[0] > 0.25 || row_terms.clump[1] > 0.25 || row_terms.clump[2] > 0.25) {
      continue;
    }
    const double quarter = 0.25 * attention::lse_deviation(rounded, row_terms);
    if (attention::lse_deviation(exact, row_terms) > quarter / 2) continue;
    if (!seen.insert(*key_of(want[row]))) continue;
    close += std::abs(have[row] - want[row]) <= quarter ? 1 : 0;
  }
  return seen.size() >= kRowsOfProof && 10 * close >= 9 * seen.size();
}

}  // namespace kvscope::golden
