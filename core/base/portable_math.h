// exp, log and tanh with the same bits on every compiler and machine. Those of the C library differ between versions in
// the last digit, which would change golden values. Built only from IEEE + - * / and bit operations.
#pragma once

#include <span>

namespace kvscope {

// Error under 1 ulp against the true value. exp(-inf) = 0, exp(+inf) = +inf, NaN stays NaN; subnormal results included.
[[nodiscard]] double portable_exp(double x);
// log(0) = -inf, log(+inf) = +inf, negative -> NaN. Error under 1 ulp.
[[nodiscard]] double portable_log(double x);
// Error under 2 ulp; tanh(+-inf) = +-1.
[[nodiscard]] double portable_tanh(double x);

// x[i] = portable_exp(x[i]) with the same bits, written so that the compiler can vectorize it.
void portable_exp_in_place(std::span<double> x);

}  // namespace kvscope
