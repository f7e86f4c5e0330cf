// What an instruction computes, as plain values. Made from an Instr by the one file that may use inline functions of
// the standard library; read by files compiled for AVX2 and AVX-512, which must not use them.
//
//   mul.wide.s32        {mul, type s32 of 4 bytes, half wide}
//   setp.lt.and.ftz.f32 {setp, type f32, compare lt, combine and_, ftz}
#pragma once

#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx::semantics {

enum class Half : std::uint8_t { none, lo, hi, wide };
enum class Compare : std::uint8_t { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
inline constexpr int kCompares = 14;
enum class Combine : std::uint8_t { none, and_, or_, xor_ };
enum class Class : std::uint8_t { none, finite, infinite, number, notanumber, normal, subnormal };
enum class PrmtMode : std::uint8_t { none, f4e, b4e, rc8, ecl, ecr, rc16 };

struct OpQuery {
  Opcode opcode = Opcode::unsupported;
  Type type = Type::none;   // the instruction's first, second, ...
  Type type2 = Type::none;  // of cvt: the source's
  Type type3 = Type::none;
  Type type4 = Type::none;
  int type_count = 0;
  int bytes = 0;  // of type
  bool is_signed = false;
  bool is_float = false;
  int vector = 1;
  int m = 0, n = 0, k = 0;                            // mma's shape
  bool sparse = false;                                // mma.sp
  bool in_bytes = false;                              // of mma: elements of 6 and 4 bits take 8
  Type scale = Type::none;                            // of mma: the type of block scales
  int scales = 0;                                     // along k
  unsigned char register_bytes[5] = {0, 0, 0, 0, 0};  // OpRequest::register_bytes
  bool uses_list = false;                             // a vector, or more than four operands
  int results = 0;                                    // OpRequest::results
  SumMode sum = SumMode::seq;
  Fused fused = Fused::none;  // OpRequest::fused

  bool rounded = false;     // the word includes .rn .rz .rm .rp or .rna
  bool stochastic = false;  // .rs
  bool to_integer = false;  // the word includes .rni .rzi .rmi or .rpi
  Rounding rounding{};      // direction of either
  Half half{};
  Compare compare{};
  bool compares = false;
  Combine combine{};
  Class float_class{};
  PrmtMode prmt{};
  bool ftz = false, sat = false, satfinite = false, relu = false, approx = false, full = false, nan = false,
       xorsign = false, oob = false;
  bool carry = false, shiftamt = false, clamp = false, wrap = false, left = false, right = false, popc = false,
       abs = false, add = false;
};

[[nodiscard]] OpQuery query_of(const OpRequest& request);

}  // namespace kvscope::ptx::semantics
