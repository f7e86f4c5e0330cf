// A module prepared for execution: one flat array of ops for all its functions, the places of registers, parameters and
// variables, and the statement of each op. Immutable once made; shared by all launches.
//
//   statement 3 of kernel "scale"   ->  ops[12]   pc 12; sources[12] = {function 0, statement 3}
//
// Registers: each function has one buffer layout. Its declared registers come first (one place each, or by liveness:
// registers that are never live together share a place), then constants, then special registers. `initial` is the
// content of the buffer when an activation begins: constants filled in, zeros elsewhere. Special registers are filled
// in per warp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

struct ProgramOptions {
  int target = 90;
  SumMode sum = SumMode::seq;
  Simd simd = best_simd();
  bool registers_by_liveness = true;  // false: each register keeps its value until the function ends, for a debugger
  bool contract = false;              // fuses products and sums as the assembler does (survey.h, ContractionPair)
};

struct OpSource {
  std::int32_t function = 0;  // Module::functions
  std::int32_t statement = 0;
};

// A special register in a function's buffer, and its width (2, 4 or 8 bytes per lane).
struct SpecialPlace {
  SpecialRegister special = SpecialRegister::tid_x;
  std::uint32_t reg = kNoRegister;
  std::uint8_t bytes = 4;
};

// A constant that holds the address of a variable or function. The address is known when a launch begins or, for the
// local space and for shared memory in a cluster, when the activation begins.
struct AddressPlace {
  std::int32_t variable = -1;  // Module::variables
  std::uint32_t reg = kNoRegister;
  std::uint8_t bytes = 8;
  Space space = Space::global;  // of the variable
  std::int64_t offset = 0;      // added to the address
};

// One argument or result of a call.
struct CallValue {
  std::int64_t param = -1;          // offset in the caller's params, -1: a register
  std::uint32_t reg = kNoRegister;  // kNoRegister with param -1: _
  std::int64_t bytes = 0;           // of the value; of a register: per lane
};
// Functions that a module declares without a definition and the machine implements.
enum class Builtin : std::uint8_t { none, vprintf, assert_fail, malloc, free };
struct CallSite {
  std::int32_t function = -1;  // Module::functions; -1: the address is in register `callee`
  std::uint32_t callee = kNoRegister;
  Builtin builtin = Builtin::none;
  std::vector<CallValue> arguments;
  std::vector<CallValue> results;
};

// The place of a register's value; with places shared by liveness, valid only for the ops where it is live.
struct RegisterPlace {
  std::uint32_t reg = kNoRegister;                           // kNoRegister: never used
  std::uint8_t bytes = 0;                                    // 0: predicate
  std::vector<std::pair<std::int32_t, std::int32_t>> alive;  // live ranges [from, to) in ops; empty: always
};

struct FunctionCode {
  std::int32_t first_op = 0;  // pc of its first op
  std::int32_t ops = 0;       // one per statement, and a closing ret
  std::vector<std::byte> initial;
  std::vector<SpecialPlace> specials;
  std::vector<AddressPlace> addresses;
  std::vector<RegisterPlace> registers;  // as Function::registers
  std::int64_t local_bytes = 0;          // .local variables of one activation, per lane
  std::int64_t param_bytes = 0;          // .param variables of its body and its parameters, per lane
};

struct KernelLayout {              // data of an entry function that its launch needs
  std::int64_t static_shared = 0;  // [bytes] from kSharedBase
  std::int64_t dynamic_shared_align = 16;
  std::int64_t dynamic_shared = 0x400;  // start of the dynamic part: after the static variables, aligned
  std::vector<bool> reaches;            // [Module::functions] functions that it may call, itself included
  std::vector<std::pair<std::int32_t, std::int64_t>> shared;  // variable -> absolute offset; extern: after the statics
};

struct Program {
  std::shared_ptr<const Module> module;
  ProgramOptions options;
  Decoded decoded;
  std::vector<Op> ops;
  std::vector<OpSource> sources;                 // [ops]
  std::vector<FunctionCode> functions;           // as Module::functions; ops == 0: only declared
  std::map<std::int32_t, KernelLayout> kernels;  // by function
  // [Module::variables] local: offset in the activation, per lane; param of a kernel: its offset in the block; other
  // params: kBodyParams + the offset in the activation (address_operand.h). Other spaces: -1, assigned by kernel or
  // device.
  std::vector<std::int64_t> placements;
  std::vector<CallSite> calls;
  // Function and statement of a sum -> the statement of the product that is fused into it. The sum reads the product's
  // factors and is rounded once. The product is still executed; its result is not used. Empty unless options.contract.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> fused;
  std::uint16_t closing_ret = 0;  // decoded.instrs: of the ret after every function's last statement
  std::vector<std::unique_ptr<std::vector<std::uint32_t>>> lists;  // storage of Op::list

  [[nodiscard]] const Instr& instr(const Op& op) const { return decoded.instrs[op.instr]; }
  [[nodiscard]] const Statement& statement(std::int32_t pc) const;
  [[nodiscard]] std::string_view text(std::int32_t pc) const;  // as written, without the blanks after its guard
  // "decode.cuh:134 <- decode_main.cu:22"; the place in the PTX, "decode.ptx:88", if it has no .loc.
  [[nodiscard]] std::string source_text(std::int32_t pc) const;
};

// The architecture that runs a module by default: the one that the module names, but at least that of ProgramOptions,
// which runs code for older ones. Examples: sm_80 and sm_90a: 90; sm_100a and sm_100f: 100.
[[nodiscard]] int target_for(const Module& module);

// Throws InputError with the errors of decode. Unsupported statements become traps.
[[nodiscard]] std::shared_ptr<const Program> make_program(Module module, const ProgramOptions& options = {});

}  // namespace kvscope::ptx
