// exp, log and tanh whose bits are the same on every compiler and machine. The C library's are not: they differ between
// versions in the last digit, and a golden value must not. Built from IEEE + - * / and bit operations only.
#pragma once

#include <span>

namespace kvscope {

// Error under 1 ulp against the true value. exp(-inf) = 0, exp(+inf) = +inf, NaN stays NaN; subnormal results included.
[[nodiscard]] double portable_exp(double x);
// log(0) = -inf, log(+inf) = +inf, negative -> NaN. Error under 1 ulp.
[[nodiscard]] double portable_log(double x);
// Error under 2 ulp; tanh(+-inf) = +-1.
[[nodiscard]] double portable_tanh(double x);

// x[i] = portable_exp(x[i]), the same bits, arranged so that the compiler may use vectors.
void portable_exp_in_place(std::span<double> x);

}  // namespace kvscope
