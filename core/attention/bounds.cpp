#include "core/attention/bounds.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "core/base/errors.h"

namespace kvscope::attention {
namespace {

[[noreturn]] void reject(DType out) {
  throw UnsupportedError("error bound of " + std::string(name(out)) +
                         " output: a kernel's output is f64, f32, f16 or " +
                         "bf16; compare narrower outputs bit for bit");
}

double single_precision_term(double a1, double smax) {
  return 4.0 * 0x1p-24 * (1.0 + smax) * a1;
}

double half_precision_bound(double unit, double o64, double a1, double a2, double smax) {
  return unit * std::fabs(o64) + unit * std::min(a1, 4.0 * a2) + single_precision_term(a1, smax);
}

// Whether NaN and infinities agree; `finite` tells whether both values are finite and must be compared with a bound.
bool same_mask(double x, double y, bool& finite) {
  finite = std::isfinite(x) && std::isfinite(y);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  return finite || x == y;
}

}  // namespace

double output_bound(DType out, double o64, double a1, double a2, double smax) {
  switch (out) {
    case DType::f64:
      return 64.0 * 0x1p-53 * (1.0 + smax) * a1 + 0x1p-1074;
    case DType::f32:
      return single_precision_term(a1, smax) + 0x1p-150;
    case DType::f16:
      return half_precision_bound(0x1p-11, o64, a1, a2, smax) + 0x1p-25;
    case DType::bf16:
      return half_precision_bound(0x1p-8, o64, a1, a2, smax) + 0x1p-134;
    default:
      reject(out);
  }
}

bool output_within(DType out, double o, double o64, double a1, double a2, double smax) {
  bool finite = false;
  if (!same_mask(o, o64, finite)) return false;
  return !finite || std::fabs(o - o64) <= output_bound(out, o64, a1, a2, smax);
}

double lse_bound(DType out, double lse64, double smax) {
  const double size = std::fabs(lse64);
  switch (out) {
    case DType::f64:
      return 64.0 * 0x1p-53 * (1.0 + smax + size);
    case DType::f32:
      return std::max(1e-6, 4.0 * 0x1p-24 * (1.0 + smax + size));
    case DType::f16:
    case DType::bf16:
      return std::max(1e-6, 1.2e-4 * size);
    default:
      reject(out);
  }
}

bool lse_within(DType out, double lse, double lse64, double smax) {
  bool finite = false;
  if (!same_mask(lse, lse64, finite)) return false;
  return !finite || std::fabs(lse - lse64) <= lse_bound(out, lse64, smax);
}

}  // namespace kvscope::attention
