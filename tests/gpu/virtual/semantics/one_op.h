// One instruction on a private register buffer: inputs and outputs by lane. The rest of the buffer is poison and must
// stay unchanged, including the lanes outside of the mask.
//
//   one("add.s32", {1, 2}) == 3             in every instruction set that this processor has, full and partial masks
//   run({.word = "mul.wide.s32", .in = {a, b}}).d[0][17]
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/semantics/op.h"

namespace kvscope::ptx::testing {

// A value per lane; 128 bits of b128 are two consecutive values. A predicate is 0 or 1.
using Lanes = std::array<std::uint64_t, 32>;

struct Case {
  std::string word{};
  std::vector<Lanes> in{};            // elements of the operands that are read, in the order written
  bool pair = false;                  // d|p
  std::vector<int> register_bytes{};  // of all elements, results first; 0 or missing: the width of the type
  std::uint8_t negated = 0;           // Op::negated
  LaneMask mask = kAllLanes;
  Simd simd = Simd::baseline;
  SumMode sum = SumMode::seq;
  Lanes before{};         // of every result
  bool in_place = false;  // the result is the first source's register, if both have the same width
  // Nonzero: a mov of pieces (`register_bytes` gives the kind): number of elements written; those of `in` are read
  int results = 0;
};
struct Outcome {
  std::vector<Lanes> d;  // [result]: elements written
  Lanes p{};             // of a pair, or the carry
};
// Fails the test if there is no handler, or a byte outside the result changed.
[[nodiscard]] Outcome run(const Case& c);
[[nodiscard]] OpHandler handler_of(const Case& c);

// The instruction sets of this processor.
[[nodiscard]] std::vector<Simd> simds();

[[nodiscard]] Lanes all(std::uint64_t value);
// The value of the result in every lane when every source has the same value in all lanes.
[[nodiscard]] std::uint64_t one(const std::string& word, std::initializer_list<std::uint64_t> in,
                                std::vector<int> register_bytes = {});
// Results d and p of a pair, or the two predicates of setp p|q.
struct Both {
  std::uint64_t d = 0, p = 0;
  friend bool operator==(const Both&, const Both&) = default;
};
[[nodiscard]] Both both(const std::string& word, std::initializer_list<std::uint64_t> in);

[[nodiscard]] std::uint64_t bits(float x);
[[nodiscard]] std::uint64_t bits(double x);
[[nodiscard]] float as_float(std::uint64_t x);
[[nodiscard]] double as_double(std::uint64_t x);

// A small random number generator with the same numbers on every host.
struct Random {
  std::uint64_t state;
  std::uint64_t next() {
    state += 0x9e3779b97f4a7c15u;
    std::uint64_t z = state;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
  }
};

}  // namespace kvscope::ptx::testing
