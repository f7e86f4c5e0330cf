// K17: single instructions with published results, one lane each. Each row becomes a kernel of a generated PTX text:
//
//   {"mul.hi.u32 d, a, b", "r:rr", {{{0x89abcdef, 0xfedcba98}, 0x890f2a50}}}
//
//   .visible .entry row_0(.param .u64 in, .param .u64 out) {
//     ... ld.global.b64 of each operand of this lane, truncated; mul.hi.u32 %d, %a, %b; st.global.b64 ... }
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace kvscope::ptx::test {

struct VectorLane {
  std::vector<std::uint64_t> in;  // bits of a, b, c, e
  std::uint64_t out = 0;          // bits of d; 0 or 1 for a predicate
};

struct VectorRow {
  const char* statements;  // operands d, a, b, c, e by these letters, d may be a predicate
  const char* widths;      // of d, then of a, b, ...: h 16, r 32, q 64 bits, p predicate
  std::vector<VectorLane> lanes;
};

[[nodiscard]] const std::vector<VectorRow>& vector_rows();
// One kernel per row: row_<number>.
[[nodiscard]] std::string vector_kernels(const std::vector<VectorRow>& rows);

}  // namespace kvscope::ptx::test
