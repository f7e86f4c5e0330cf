// A survey of a PTX file before it runs: its opcode words, the unsupported ones with their places, which kernels are
// fully supported, and where the assembler would fuse a product and a sum.
//
//   words        "fma.rn.f32" 512, "ld.global.nc.v4.f32" 8 ...          by how often, then by name
//   unsupported  "tcgen05.shift..." moves rows of tensor memory, not modeled   gemm.ptx:120:2, kernel gemm
//   kernels      "decode": 894 statements, can run
//   contraction  mul.f32 %f3, %f1, %f2;  add.f32 %f4, %f3, %f5;         one rounding on hardware, two here
//
// A kernel is supported if neither it nor any function that it may call contains an unsupported statement. It may call
// the functions that it names and, with an indirect call, those whose address is in a variable of the module. An
// unsupported kernel still runs until it reaches such a statement.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/text/module.h"

namespace kvscope::ptx {

struct WordUse {
  std::string word;         // "fma.rn.f32"; of a base name "fma"
  std::int64_t count = 0;   // statements
  std::string unsupported;  // "": supported
};

struct UnsupportedUse {
  std::string word;
  std::string message;
  std::string function;
  TextPlace at;  // in the PTX
};

struct KernelSurvey {
  std::string name;
  std::int64_t statements = 0;            // including the functions that it may call
  std::vector<std::int32_t> unsupported;  // Survey::unsupported
  [[nodiscard]] bool can_run() const { return unsupported.empty(); }
};

// A mul.f32 without a guard whose only use is an add.f32 or sub.f32 of the same basic block, both without an explicit
// rounding: the assembler fuses them into one fma, with one rounding. Statements of Module::functions[function].
struct ContractionPair {
  std::int32_t function = 0;
  std::int32_t product = 0;
  std::int32_t sum = 0;
};

struct Survey {
  std::int64_t statements = 0;
  std::vector<WordUse> words;
  std::vector<WordUse> bases;
  std::vector<UnsupportedUse> unsupported;  // in the order of the text
  std::vector<KernelSurvey> kernels;
  std::vector<ContractionPair> contraction;
};

// Precondition: `decoded` was made from `module`.
[[nodiscard]] Survey survey(const Module& module, const Decoded& decoded);

[[nodiscard]] std::vector<ContractionPair> contraction_pairs(const Module& module, const Decoded& decoded);

}  // namespace kvscope::ptx
