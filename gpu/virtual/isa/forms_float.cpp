// Floating point. PTX ISA, "Floating-Point Instructions" and "Half Precision Floating-Point Instructions".
#include "gpu/virtual/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kFloatForms[] = {
    {"add", "<rnd>? ftz? sat? f32", "=T T T"},
    {"sub", "<rnd>? ftz? sat? f32", "=T T T"},
    {"mul", "<rnd>? ftz? sat? f32", "=T T T"},
    {"add", "<rnd>? f64", "=T T T"},
    {"sub", "<rnd>? f64", "=T T T"},
    {"mul", "<rnd>? f64", "=T T T"},
    {"add", "rn? ftz? sat? f16|f16x2", "=T T T"},
    {"sub", "rn? ftz? sat? f16|f16x2", "=T T T"},
    {"mul", "rn? ftz? sat? f16|f16x2", "=T T T"},
    {"add", "rn? bf16|bf16x2", "=T T T", 90},
    {"sub", "rn? bf16|bf16x2", "=T T T", 90},
    {"mul", "rn? bf16|bf16x2", "=T T T", 90},
    {"add", "<rnd>? ftz? f32x2", "=T T T", 100},
    {"sub", "<rnd>? ftz? f32x2", "=T T T", 100},
    {"mul", "<rnd>? ftz? f32x2", "=T T T", 100},
    {"fma", "<rnd> ftz? f32x2", "=T T T T", 100},
    {"fma", "<rnd> ftz? sat? f32", "=T T T T"},
    {"fma", "<rnd> f64", "=T T T T"},
    {"fma", "rn ftz? sat? f16|f16x2", "=T T T T"},
    {"fma", "rn ftz? relu f16|f16x2", "=T T T T"},
    {"fma", "rn relu? bf16|bf16x2", "=T T T T"},
    {"fma", "rn oob relu? f16|f16x2|bf16|bf16x2", "=T T T T", 90},
    {"mad", "<rnd> ftz? sat? f32", "=T T T T"},
    {"mad", "<rnd> f64", "=T T T T"},
    {"div", "approx|full ftz? f32", "=T T T"},
    {"div", "<rnd> ftz? f32", "=T T T"},
    {"div", "<rnd> f64", "=T T T"},
    {"rcp", "approx ftz? f32", "=T T"},
    {"sqrt", "approx ftz? f32", "=T T"},
    {"rcp", "<rnd> ftz? f32", "=T T"},
    {"sqrt", "<rnd> ftz? f32", "=T T"},
    {"rcp", "<rnd> f64", "=T T"},
    {"sqrt", "<rnd> f64", "=T T"},
    {"rcp", "approx ftz f64", "=T T"},
    {"rsqrt", "approx ftz? f32|f64", "=T T"},
    {"ex2", "approx ftz? f32", "=T T"},
    {"ex2", "approx f16|f16x2", "=T T"},
    {"ex2", "approx ftz bf16|bf16x2", "=T T", 90},
    {"lg2", "approx ftz? f32", "=T T"},
    {"sin", "approx ftz? f32", "=T T"},
    {"cos", "approx ftz? f32", "=T T"},
    {"tanh", "approx f32|f16|f16x2", "=T T"},
    {"tanh", "approx bf16|bf16x2", "=T T", 90},
    {"min", "ftz? NaN? f32", "=T T T"},
    {"max", "ftz? NaN? f32", "=T T T"},
    {"min", "ftz? NaN? xorsign abs f32", "=T T T"},
    {"max", "ftz? NaN? xorsign abs f32", "=T T T"},
    {"min", "f64", "=T T T"},
    {"max", "f64", "=T T T"},
    {"min", "ftz? NaN? f16|f16x2", "=T T T"},
    {"max", "ftz? NaN? f16|f16x2", "=T T T"},
    {"min", "ftz? NaN? xorsign abs f16|f16x2", "=T T T"},
    {"max", "ftz? NaN? xorsign abs f16|f16x2", "=T T T"},
    {"min", "NaN? bf16|bf16x2", "=T T T"},
    {"max", "NaN? bf16|bf16x2", "=T T T"},
    {"min", "NaN? xorsign abs bf16|bf16x2", "=T T T"},
    {"max", "NaN? xorsign abs bf16|bf16x2", "=T T T"},
    {"abs", "ftz? f32|f16|f16x2", "=T T"},
    {"neg", "ftz? f32|f16|f16x2", "=T T"},
    {"abs", "f64|bf16|bf16x2", "=T T"},
    {"neg", "f64|bf16|bf16x2", "=T T"},
    {"copysign", "f32|f64", "=T T T"},
};

}  // namespace

std::span<const Form> float_forms() {
  return kFloatForms;
}

}  // namespace kvscope::ptx
