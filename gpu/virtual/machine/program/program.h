// A module made ready to run: one flat array of ops for all its functions, where registers, parameters and variables
// stand, and the way back from an op to its statement. Immutable once made; shared by every launch.
//
//   statement 3 of kernel "scale"   ->  ops[12]   pc 12; sources[12] = {function 0, statement 3}
//
// Registers: each function has one buffer layout. Its declared registers come first (one place each, or by liveness:
// registers that are never alive together share a place), then constants, then special registers. `initial` is the
// buffer as an activation begins: constants filled in, all else zero; special registers are filled per warp.
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
  bool registers_by_liveness = true;  // off: every register keeps its value until the function ends, for a debugger
  bool contract = false;  // products and sums are fused as the assembler fuses them (survey.h, ContractionPair)
};

struct OpSource {
  std::int32_t function = 0;  // Module::functions
  std::int32_t statement = 0;
};

// A special register of a function's buffer, and how wide it is (2, 4 or 8 bytes a lane).
struct SpecialPlace {
  SpecialRegister special = SpecialRegister::tid_x;
  std::uint32_t reg = kNoRegister;
  std::uint8_t bytes = 4;
};

// A constant that holds a variable's or a function's address, known when a launch begins or, in the local space and for
// shared memory of a cluster, with the activation.
struct AddressPlace {
  std::int32_t variable = -1;  // Module::variables
  std::uint32_t reg = kNoRegister;
  std::uint8_t bytes = 8;
  Space space = Space::global;  // of the variable
  std::int64_t offset = 0;      // what is added
};

// One value that a call passes or receives.
struct CallValue {
  std::int64_t param = -1;          // offset in the caller's params, -1: a register
  std::uint32_t reg = kNoRegister;  // kNoRegister with param -1: _
  std::int64_t bytes = 0;           // of the value; of a register: of its lanes
};
// Functions that the machine has itself: declared in a module, defined by nobody.
enum class Builtin : std::uint8_t { none, vprintf, assert_fail, malloc, free };
struct CallSite {
  std::int32_t function = -1;  // Module::functions; -1: the address in the register `callee` says
  std::uint32_t callee = kNoRegister;
  Builtin builtin = Builtin::none;
  std::vector<CallValue> arguments;
  std::vector<CallValue> results;
};

// Where a register's value stands; with places shared by liveness only between the ops where it is alive.
struct RegisterPlace {
  std::uint32_t reg = kNoRegister;                           // kNoRegister: never used
  std::uint8_t bytes = 0;                                    // 0: predicate
  std::vector<std::pair<std::int32_t, std::int32_t>> alive;  // [from, to) in ops; empty: everywhere
};

struct FunctionCode {
  std::int32_t first_op = 0;  // pc of its first op
  std::int32_t ops = 0;       // one a statement, and a closing ret
  std::vector<std::byte> initial;
  std::vector<SpecialPlace> specials;
  std::vector<AddressPlace> addresses;
  std::vector<RegisterPlace> registers;  // as Function::registers
  std::int64_t local_bytes = 0;          // .local variables of one activation, a lane
  std::int64_t param_bytes = 0;          // .param variables of its body and its own parameters, a lane
};

struct KernelLayout {              // of an entry: what its launch needs
  std::int64_t static_shared = 0;  // [bytes] from kSharedBase on
  std::int64_t dynamic_shared_align = 16;
  std::int64_t dynamic_shared = 0x400;  // where the dynamic part begins: behind the statics, aligned
  std::vector<bool> reaches;            // [Module::functions] those that it may come to, itself included
  std::vector<std::pair<std::int32_t, std::int64_t>> shared;  // variable -> absolute offset; extern ones: after statics
};

struct Program {
  std::shared_ptr<const Module> module;
  ProgramOptions options;
  Decoded decoded;
  std::vector<Op> ops;
  std::vector<OpSource> sources;                 // [ops]
  std::vector<FunctionCode> functions;           // as Module::functions; ops == 0: only declared
  std::map<std::int32_t, KernelLayout> kernels;  // by function
  // [Module::variables] local: offset in the activation, a lane; param: of a kernel's own its offset in the block, else
  // kBodyParams + the offset in the activation (address_operand.h). Other spaces: -1, by kernel or device.
  std::vector<std::int64_t> placements;
  std::vector<CallSite> calls;
  // Function and statement of a sum -> the statement of the product that is fused into it: it reads the product's
  // factors and is rounded once. The product runs all the same, and nobody reads it. Empty unless options.contract.
  std::map<std::pair<std::int32_t, std::int32_t>, std::int32_t> fused;
  std::uint16_t closing_ret = 0;  // decoded.instrs: of the ret behind every function's last statement
  std::vector<std::unique_ptr<std::vector<std::uint32_t>>> lists;  // what Op::list points into

  [[nodiscard]] const Instr& instr(const Op& op) const { return decoded.instrs[op.instr]; }
  [[nodiscard]] const Statement& statement(std::int32_t pc) const;
  [[nodiscard]] std::string_view text(std::int32_t pc) const;  // the statement as written, without its guard's blanks
  // "decode.cuh:134 <- decode_main.cu:22"; the PTX's own place "decode.ptx:88" when it has no .loc.
  [[nodiscard]] std::string source_text(std::int32_t pc) const;
};

// InputError with the errors of decode. Statements that cannot run become traps.
[[nodiscard]] std::shared_ptr<const Program> make_program(Module module, const ProgramOptions& options = {});

}  // namespace kvscope::ptx
