// Floating point. PTX ISA, "Floating-Point Instructions" and "Half Precision Floating-Point Instructions".
#include "core/ptx/isa/grammar.h"

namespace kvscope::ptx {
namespace {

constexpr Form kForms[] = {
    {Opcode::add, "add", "<rnd>? ftz? sat? f32", "=T T T"},
    {Opcode::sub, "sub", "<rnd>? ftz? sat? f32", "=T T T"},
    {Opcode::mul, "mul", "<rnd>? ftz? sat? f32", "=T T T"},
    {Opcode::add, "add", "<rnd>? f64", "=T T T"},
    {Opcode::sub, "sub", "<rnd>? f64", "=T T T"},
    {Opcode::mul, "mul", "<rnd>? f64", "=T T T"},
    {Opcode::add, "add", "rn? ftz? sat? f16|f16x2", "=T T T"},
    {Opcode::sub, "sub", "rn? ftz? sat? f16|f16x2", "=T T T"},
    {Opcode::mul, "mul", "rn? ftz? sat? f16|f16x2", "=T T T"},
    {Opcode::add, "add", "rn? bf16|bf16x2", "=T T T", 90},
    {Opcode::sub, "sub", "rn? bf16|bf16x2", "=T T T", 90},
    {Opcode::mul, "mul", "rn? bf16|bf16x2", "=T T T", 90},
    {Opcode::fma, "fma", "<rnd> ftz? sat? f32", "=T T T T"},
    {Opcode::fma, "fma", "<rnd> f64", "=T T T T"},
    {Opcode::fma, "fma", "rn ftz? sat? f16|f16x2", "=T T T T"},
    {Opcode::fma, "fma", "rn ftz? relu f16|f16x2", "=T T T T"},
    {Opcode::fma, "fma", "rn relu? bf16|bf16x2", "=T T T T"},
    {Opcode::fma, "fma", "rn oob relu? f16|f16x2|bf16|bf16x2", "=T T T T", 90},
    {Opcode::mad, "mad", "<rnd> ftz? sat? f32", "=T T T T"},
    {Opcode::mad, "mad", "<rnd> f64", "=T T T T"},
    {Opcode::div, "div", "approx|full ftz? f32", "=T T T"},
    {Opcode::div, "div", "<rnd> ftz? f32", "=T T T"},
    {Opcode::div, "div", "<rnd> f64", "=T T T"},
    {Opcode::rcp, "rcp", "approx ftz? f32", "=T T"},
    {Opcode::sqrt, "sqrt", "approx ftz? f32", "=T T"},
    {Opcode::rcp, "rcp", "<rnd> ftz? f32", "=T T"},
    {Opcode::sqrt, "sqrt", "<rnd> ftz? f32", "=T T"},
    {Opcode::rcp, "rcp", "<rnd> f64", "=T T"},
    {Opcode::sqrt, "sqrt", "<rnd> f64", "=T T"},
    {Opcode::rcp, "rcp", "approx ftz f64", "=T T"},
    {Opcode::rsqrt, "rsqrt", "approx ftz? f32|f64", "=T T"},
    {Opcode::ex2, "ex2", "approx ftz? f32", "=T T"},
    {Opcode::ex2, "ex2", "approx f16|f16x2", "=T T"},
    {Opcode::ex2, "ex2", "approx ftz bf16|bf16x2", "=T T", 90},
    {Opcode::lg2, "lg2", "approx ftz? f32", "=T T"},
    {Opcode::sin, "sin", "approx ftz? f32", "=T T"},
    {Opcode::cos, "cos", "approx ftz? f32", "=T T"},
    {Opcode::tanh, "tanh", "approx f32|f16|f16x2", "=T T"},
    {Opcode::tanh, "tanh", "approx bf16|bf16x2", "=T T", 90},
    {Opcode::min, "min", "ftz? NaN? f32", "=T T T"},
    {Opcode::max, "max", "ftz? NaN? f32", "=T T T"},
    {Opcode::min, "min", "ftz? NaN? xorsign abs f32", "=T T T"},
    {Opcode::max, "max", "ftz? NaN? xorsign abs f32", "=T T T"},
    {Opcode::min, "min", "f64", "=T T T"},
    {Opcode::max, "max", "f64", "=T T T"},
    {Opcode::min, "min", "ftz? NaN? f16|f16x2", "=T T T"},
    {Opcode::max, "max", "ftz? NaN? f16|f16x2", "=T T T"},
    {Opcode::min, "min", "ftz? NaN? xorsign abs f16|f16x2", "=T T T"},
    {Opcode::max, "max", "ftz? NaN? xorsign abs f16|f16x2", "=T T T"},
    {Opcode::min, "min", "NaN? bf16|bf16x2", "=T T T"},
    {Opcode::max, "max", "NaN? bf16|bf16x2", "=T T T"},
    {Opcode::min, "min", "NaN? xorsign abs bf16|bf16x2", "=T T T"},
    {Opcode::max, "max", "NaN? xorsign abs bf16|bf16x2", "=T T T"},
    {Opcode::abs, "abs", "ftz? f32|f16|f16x2", "=T T"},
    {Opcode::neg, "neg", "ftz? f32|f16|f16x2", "=T T"},
    {Opcode::abs, "abs", "f64|bf16|bf16x2", "=T T"},
    {Opcode::neg, "neg", "f64|bf16|bf16x2", "=T T"},
    {Opcode::copysign, "copysign", "f32|f64", "=T T T"},
};

}  // namespace

std::span<const Form> float_forms() {
  return kForms;
}

}  // namespace kvscope::ptx
