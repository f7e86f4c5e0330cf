#include "core/attention/merge.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "core/base/errors.h"
#include "core/base/portable_math.h"

namespace kvscope::attention {
namespace {

constexpr double kLn2 = 0x1.62e42fefa39efp-1;
constexpr double kLog2OfE = 0x1.71547652b82fep+0;

std::string shape_text(const PartialState& s) {
  return fmt::format("o [{}, {}, {}] with lse [{}, {}]", s.o.shape(0), s.o.shape(1), s.o.shape(2), s.lse.shape(0),
                     s.lse.shape(1));
}

void check_shape(const PartialState& s) {
  if (s.o.shape(0) != s.lse.shape(0) || s.o.shape(1) != s.lse.shape(1)) {
    throw GeometryError(fmt::format("partial state: {}: each output row needs one lse", shape_text(s)));
  }
}

}  // namespace

void merge_row(std::span<double> o, double& lse, std::span<const double> other, double other_lse, LseBase base,
               EmptyRow empty) {
  if (std::isnan(lse) || std::isnan(other_lse)) {
    lse = std::numeric_limits<double>::quiet_NaN();
    std::fill(o.begin(), o.end(), lse);
    return;
  }
  const bool none = std::isinf(lse);
  if (std::isinf(other_lse)) {
    if (!none) return;
    std::fill(o.begin(), o.end(), 0.0);
    lse = empty == EmptyRow::minus_infinity ? -std::numeric_limits<double>::infinity()
                                            : std::numeric_limits<double>::infinity();
    return;
  }
  if (none) {
    std::copy(other.begin(), other.end(), o.begin());
    lse = other_lse;
    return;
  }
  const double unit = base == LseBase::two ? kLn2 : 1.0;
  const double largest = std::max(lse, other_lse);
  const double weight = portable_exp((lse - largest) * unit);
  const double other_weight = portable_exp((other_lse - largest) * unit);
  const double sum = weight + other_weight;
  for (std::size_t d = 0; d < o.size(); ++d) o[d] = (weight * o[d] + other_weight * other[d]) / sum;
  lse = largest + portable_log(sum) * (base == LseBase::two ? kLog2OfE : 1.0);
}

PartialState merge(const PartialState& a, const PartialState& b, LseBase base, EmptyRow empty) {
  check_shape(a);
  check_shape(b);
  if (a.o.shape() != b.o.shape()) {
    throw GeometryError(
        fmt::format("merge: the first state is {}, the second {}: both must cover the same queries, heads "
                    "and dims",
                    shape_text(a), shape_text(b)));
  }
  PartialState merged = a;
  const std::size_t dims = a.o.shape(2);
  for (std::size_t row = 0; row < a.lse.size(); ++row) {
    merge_row({merged.o.data() + row * dims, dims}, merged.lse.data()[row], {b.o.data() + row * dims, dims},
              b.lse.data()[row], base, empty);
  }
  return merged;
}

PartialState merge(std::span<const PartialState> states, LseBase base, EmptyRow empty) {
  if (states.empty()) throw GeometryError("merge: no state given, at least one is needed");
  check_shape(states.front());
  PartialState merged = states.front();
  for (const PartialState& state : states.subspan(1)) merged = merge(merged, state, base, empty);
  return merged;
}

PartialErrors merge_errors(std::span<const PartialState> states, std::span<const PartialErrors> errors,
                           const PartialState& merged, LseBase base) {
  if (states.size() != errors.size()) {
    throw GeometryError(
        fmt::format("merge: {} states, but {} errors: each state needs its own", states.size(), errors.size()));
  }
  for (std::size_t i = 0; i < states.size(); ++i) {
    if (states[i].o.shape() == merged.o.shape() && errors[i].o.shape() == merged.lse.shape() &&
        errors[i].lse.shape() == merged.lse.shape()) {
      continue;
    }
    throw GeometryError(
        fmt::format("merge: state {} and its errors are not of the shape of {}", i, shape_text(merged)));
  }
  const double unit = base == LseBase::two ? kLn2 : 1.0;
  PartialErrors result{xt::zeros<double>(merged.lse.shape()), xt::zeros<double>(merged.lse.shape())};
  const std::size_t dims = merged.o.shape(2);
  for (std::size_t row = 0; row < merged.lse.size(); ++row) {
    const double lse = merged.lse.data()[row];
    if (!std::isfinite(lse)) continue;
    double largest = 0, of_outputs = 0, spread = 0;
    for (std::size_t i = 0; i < states.size(); ++i) {
      const double own = states[i].lse.data()[row];
      if (!std::isfinite(own)) continue;
      const double weight = portable_exp((own - lse) * unit);
      double apart = 0;
      for (std::size_t d = row * dims; d < (row + 1) * dims; ++d) {
        apart = std::max(apart, std::abs(states[i].o.data()[d] - merged.o.data()[d]));
      }
      largest = std::max(largest, errors[i].lse.data()[row]);
      of_outputs += weight * errors[i].o.data()[row];
      spread += weight * apart;
    }
    const double growth = std::expm1(2 * largest * unit);
    result.lse.data()[row] = largest;
    result.o.data()[row] = (1 + growth) * of_outputs + growth * spread;
  }
  return result;
}

}  // namespace kvscope::attention
