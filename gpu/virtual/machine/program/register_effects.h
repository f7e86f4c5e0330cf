// The effects of one statement on the registers of its function: which registers it reads and writes.
//
//   mad.lo.s32 %r4, %r1, %r2, %r3       reads %r1 %r2 %r3      writes %r4
//   @%p1 st.global.f32 [%rd1], %f1      reads %rd1 %f1         guard %p1
//   call (%r1), f, (%r2)                reads %r2              writes %r1
//
// A sum that is fused with a product (Program::fused) also reads the product's operands.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "gpu/virtual/machine/program/program.h"

namespace kvscope::ptx {

struct RegisterEffects {
  std::vector<std::int32_t> reads;         // Function::registers
  std::vector<std::int32_t> accumulators;  // the subset of `reads` that is also written: wgmma's
  std::vector<std::int32_t> writes;        // the old value is overwritten where the guard holds
  std::int32_t guard = -1;                 // read in all lanes that reach the statement
  // Results must not share places with operands: one result may be written before all operands are read.
  bool apart = false;
};

class RegisterEffectsOf {
 public:
  RegisterEffectsOf(const Program& program, std::int32_t function);

  // The effects of statement `number` of the function.
  void find(std::int32_t number, RegisterEffects& out);

 private:
  const std::vector<OperandRule>& rules_of(std::int32_t number, const Instr& instr, std::size_t count);
  void add(const Operand& o, std::vector<std::int32_t>& to) const;
  void call(std::span<const Operand> operands, RegisterEffects& out) const;

  const Program& program_;
  std::int32_t index_;
  const Function& function_;
  std::map<std::pair<std::int32_t, std::size_t>, std::vector<OperandRule>> rules_;
};

}  // namespace kvscope::ptx
