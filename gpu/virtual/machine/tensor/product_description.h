// A product of tcgen05.mma: its instruction descriptor of 32 bits, decoded and checked.
//
//   bits          f16 tf32 f8f6f4 i8                        mxf8f6f4 mxf4 mxf4nvf4
//   1..0          sparse A: which column of metadata        0
//   2             A is dense (0) or sparse (1)              the same
//   3             s32: saturate                             0
//   5..4          D: 0 f16, 1 f32, 2 s32                    which byte of a scale of B
//   9..7, 12..10  A, B: f16 bf16 tf32 0 1 2; u8 s8 0 1; e4m3 e5m2 e2m3 e3m2 e2m1 0 1 3 4 5; mxf4: e2m1 1
//   14..13        negate A, B
//   16..15        A, B are MN-major
//   22..17        N / 8
//   23            0                                         scales: 0 ue4m3, 1 ue8m0
//   28..24        M / 16
//   30..29        0                                         which byte of a scale of A
//   31..30        .ws: at most 0, 8, 16, 32 columns of B    0 (31: K 96)
//                 are skipped
//
// K is 32 bytes of elements as they are stored: 16 of 16 bits, 8 of tf32, 32 of 8, 6 or 4 bits in bytes, 64 of mxf4; twice
// as many with a sparse A, of which half are stored.
// Example: 0x08200490: f32 = bf16 x bf16, M 128, N 128.
// Source: PTX ISA 9.0, "Instruction Descriptor", "Shape", "Block Scaling"; CUTLASS, mma_sm100_desc.
#pragma once

#include <cstdint>
#include <vector>

#include "gpu/virtual/isa/instr.h"

namespace kvscope::ptx {

// Types of elements that only tensor memory's products have are here, too: they are in no register.
enum class ElementType : std::uint8_t { f16, bf16, tf32, e4m3, e5m2, e2m3, e3m2, e2m1, e2m1_packed, u8, s8 };
enum class ScaleType : std::uint8_t { none, ue8m0, ue4m3 };

struct TensorProduct {
  int m = 0, n = 0, k = 0;
  ElementType a = ElementType::f16, b = ElementType::f16;
  Type d = Type::f32;  // f32, f16, s32
  bool negate_a = false, negate_b = false;
  bool a_along_m = false, b_along_n = false;  // MN-major
  bool saturate = false;
  bool pair = false;               // .cta_group::2
  bool weight_stationary = false;  // .ws
  ScaleType scale = ScaleType::none;
  int scales = 0;      // along k, per row
  int most_shift = 0;  // .ws: columns of B that the zero-column mask may skip
  bool sparse = false;
  int selector = 0;                        // of the metadata's column
  int a_scale_byte = 0, b_scale_byte = 0;  // of a row's word, of its first scale
};

// Columns of A that are stored.
[[nodiscard]] inline int stored_columns(const TensorProduct& p) {
  return p.sparse ? p.k / 2 : p.k;
}

// The zero-column mask of .ws: columns of B that count as zero, whatever shared memory has, and how many columns before the
// first one are skipped.
//
//   bits   31..24 .. 7..0   start counts 3 to 0           47..40  columns in a row that are zero, less 1
//          35..32           first spans 3 to 0            55..48  columns in a row that are used, less 1
//          39               the mask is not all used      61..56  columns that are skipped
//
// With M 128 the mask is one part, with M 64 two, with M 32 four; part i has columns [i N M / 128, (i + 1) N M / 128), start
// count i and first span i. It alternates between used and zero columns, beginning with zero ones if its first span is 1;
// of the first run, the start count is omitted.
//   zero 3, used 4, first span 1, start count 1:  0 0 B B B B 0 0 0 B B B B ..
// Source: PTX ISA 9.0, "Zero-Column Mask Descriptor": its examples have zeros where its table has B, and the reverse.
struct ColumnMask {
  int skipped = 0;
  std::vector<bool> zero;  // [n]
};
// Throws GeometryError for a descriptor that does not fit the product.
[[nodiscard]] ColumnMask column_mask_of(const TensorProduct& product, std::uint64_t descriptor);

// Throws GeometryError with every fault of the descriptor, or UnsupportedError.
[[nodiscard]] TensorProduct product_of(const Instr& instr, std::uint32_t descriptor);

// Bits that an element takes in shared memory: 8 for each type of 8, 6 or 4 bits of .kind::f8f6f4 and mxf8f6f4.
[[nodiscard]] int stored_bits(ElementType type);
// The type of registers that the product computes with; e4m3 for elements of 6 and 4 bits, which no register has.
[[nodiscard]] Type product_type(ElementType type);
// The elements of 16 bytes of shared memory: 16 of 6 or 4 bits are contiguous, and the rest of their 16 bytes is not
// used. `to` has 128 / stored_bits(type) places; every number is exact.
void decode_chunk(ElementType type, const std::byte* from, float* to);
void decode_chunk(ElementType type, const std::byte* from, std::int32_t* to);
// The elements of one cell of tensor memory: 32 / stored_bits(type). An element of 6 bits is in the low bits of its
// byte, one of 4 bits in bits 2 to 5.
void decode_cell(ElementType type, std::uint32_t cell, float* to);
void decode_cell(ElementType type, std::uint32_t cell, std::int32_t* to);
// A scale; NaN for 0xff of ue8m0 and 0x7f of ue4m3.
[[nodiscard]] double decode_scale(ScaleType type, std::uint8_t bits);

}  // namespace kvscope::ptx
