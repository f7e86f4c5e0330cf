// The maximum error of a correct kernel against the reference, per output element. It is derived from the data and not
// a fixed tolerance: one that a bf16 kernel at 4096 tokens needs would accept an output with a whole wrong page.
//
//   f32      4 * 2^-24 * (1 + smax) * a1
//   f16      u * |o64| + u * min(a1, 4 * a2) + the f32 line     u = 2^-11: output and probabilities rounded once each
//   bf16     the same with                                      u = 2^-8
//   f64      64 * 2^-53 * (1 + smax) * a1                       another evaluation in double, in another order
//
// plus half the type's smallest positive number (f16 2^-25), which is the rounding error near zero; for f64 the whole
// number, 2^-1074, because half of it is not a double. a1, a2 and smax are the reference's (result.h). Rounding errors
// of probabilities are independent, so they add up to a2, not to a1; 4 * a2 covers their far tail, and a1 is their
// maximum. Example: bf16, o64 = 1, a1 = 2, a2 = 0.25, smax = 3:
//   2^-8 * 1 + 2^-8 * 1 + 4 * 2^-24 * 4 * 2 = 0.00781440735
#pragma once

#include "core/base/dtype.h"

namespace kvscope::attention {

// Largest |o - o64| of a candidate whose output has type `out`: f64, f32, f16 or bf16, UnsupportedError for another.
// Precondition: finite values. Callers compare NaN and infinities first, as masks.
[[nodiscard]] double output_bound(DType out, double o64, double a1, double a2, double smax);

// Whether two output elements agree: NaN with NaN, an infinity with the same one, else within output_bound.
[[nodiscard]] bool output_within(DType out, double o, double o64, double a1, double a2, double smax);

// Largest |lse - lse64| of a finite pair, in the base that both are in:
//   f16, bf16    max(1e-6, 1.2e-4 * |lse64|)
//   f32          max(1e-6, 4 * 2^-24 * (1 + smax + |lse64|))
//   f64          64 * 2^-53 * (1 + smax + |lse64|)
// Example: bf16, lse64 = 10 -> 0.0012; f32, lse64 = 10, smax = 3 -> 3.3e-6.
[[nodiscard]] double lse_bound(DType out, double lse64, double smax);

// Whether two log-sum-exps agree: NaN with NaN, an infinity with the same one, else within lse_bound.
[[nodiscard]] bool lse_within(DType out, double lse, double lse64, double smax);

}  // namespace kvscope::attention
