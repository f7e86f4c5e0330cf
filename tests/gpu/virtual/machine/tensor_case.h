// One product of tcgen05.mma, run as a kernel and compared with a plain loop over small integers. The operands are placed in
// shared and in tensor memory by the formulas of the PTX ISA's canonical layouts, written here again; nothing is shared with
// the library.
//
//   expect_product({.kind = "f16", .a = &kBf16, .b = &kBf16, .m = 64, .n = 24});
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/gpu/virtual/machine/one_kernel.h"

namespace kvscope::ptx::test {

// An element type: its code in the instruction descriptor, its bits in shared memory, and the bits of 1, 2 and the
// sign.
struct Element {
  const char* name;
  int code, bits;
  std::uint32_t one, two, sign;
  int stored = 0;  // bits that it takes, with padding; 0: as `bits`
};
inline constexpr Element kF16{"f16", 0, 16, 0x3c00, 0x4000, 0x8000}, kBf16{"bf16", 1, 16, 0x3f80, 0x4000, 0x8000},
    kTf32{"tf32", 2, 32, 0x3f800000, 0x40000000, 0x80000000}, kE4m3{"e4m3", 0, 8, 0x38, 0x40, 0x80},
    kE5m2{"e5m2", 1, 8, 0x3c, 0x40, 0x80}, kE2m3{"e2m3", 3, 6, 0x08, 0x10, 0x20, 8},
    kE3m2{"e3m2", 4, 6, 0x0c, 0x10, 0x20, 8}, kE2m1{"e2m1", 5, 4, 0x2, 0x4, 0x8, 8},
    kPacked{"e2m1", 1, 4, 0x2, 0x4, 0x8}, kU8{"u8", 0, 8, 1, 2, 0}, kS8{"s8", 1, 8, 1, 2, 0};
struct ProductCase {
  std::string kind = "f16";
  const Element* a = &kF16;
  const Element* b = &kF16;
  int m = 128, n = 32;
  int row_a = 128, row_b = 128;
  bool a_along_m = false, b_along_n = false;
  int d = 1;  // code: 0 f16, 1 f32, 2 s32
  bool negate_a = false;
  bool pair = false;
  int times = 1;  // products into the same D
  Policy policy = Policy::late;
  std::string tail = {};   // operands after the description; empty: whether D is an input
  std::string scale = {};  // ".block_scale.scale_vec::1X"
  int scales = 0;
  bool ue4m3 = false;        // the type of the scales; otherwise ue8m0
  bool a_in_tensor = false;  // A in tensor memory
  bool weights = false;      // .ws
  bool sparse = false;       // .sp: half of A's columns are stored
  int selector = 0;          // the column of its metadata
  int metadata_lane = 0;     // .ws: where it begins
  int broken = -1;           // four bits in place of those of row 5, chunk 3
  std::uint64_t zeros = 0;   // .ws: descriptor of the columns of B that are zero
  int most_shift = 0;        // .ws: code of the columns that it may skip
  int scale_d = 0;           // D is multiplied by 2^-scale_d before it is added to
};

struct ProductOutcome {
  std::vector<std::string> messages;
  std::vector<std::uint32_t> cells;  // [CTA][lane][n]
};
[[nodiscard]] ProductOutcome run_product(const ProductCase& c);
// The first message of a product that is rejected; "": it ran.
[[nodiscard]] std::string product_message(const ProductCase& c);
// Runs the product, which must make no report, and compares D with the plain loop.
void expect_product(const ProductCase& c);

// Of .ws: the columns of B by their descriptor, 'B' used and '0' zero; written out and cut, as in the examples of the PTX ISA.
[[nodiscard]] std::string zero_columns(const ProductCase& c);
// A descriptor with these start counts and first spans, runs of `zeros` and `used` columns, and skipped columns.
[[nodiscard]] std::uint64_t mask_of(std::array<int, 4> starts, std::array<int, 4> firsts, int zeros, int used,
                                    int skipped);

}  // namespace kvscope::ptx::test
