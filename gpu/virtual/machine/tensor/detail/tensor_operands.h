// What an operation of the tensor core reads and writes: cells of tensor memory, and chunks of shared memory, of one
// CTA or of both CTAs of a pair.
//
//   .cta_group::2   CTA r of a pair gives rows [r M / 2, ...) of A and columns [r N / 2, ...) of B from its shared
//   memory, at the
//                   same descriptor, and has its part of D and of the scales in its tensor memory, at the same address
//
//   scales   row i of A (column j of B): lane i % 32 of each quarter of 32 lanes, column i / 32 from the address on;
//   the bytes of the
//            word are the scales along k, from the byte that the instruction descriptor selects
//   cp       row r, 16 bytes c of the source: lanes as below, columns 4 c to 4 c + 3
//            128x256b 128x128b: lane r    64x128b .warpx2::02_13: r, r + 64    .warpx2::01_23: r + 32 (r / 32), and 32
//            more
//            32x128b .warpx4: r, r + 32, r + 64, r + 96                       4x256b: from the address' lane on, 32 r
//   metadata of a sparse A: four bits (isa/sparse_metadata.h) for chunk c of row r, of n chunks. The rows are in the lanes
//            that A has in tensor memory, M / CTAs of them; .ws: in M lanes from the address on. g = r % 16
//            16 and 32 bits (n 8)   lane of (r - g) + g % 8 + 8 (c / 4), the selector's column, bits 16 (g / 8) + 4 (c % 4)
//            8 and 4 bits (n 16)    lane of r, column c / 8, bits 4 (c % 8)
// Source: PTX ISA 9.0, "tcgen05.mma", "Block Scaling", "tcgen05.cp"; for the metadata CUTLASS, tmem_e_frg of
// mma_traits_sm100, which has M 128, and of .ws M 32 to 128.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "gpu/virtual/machine/matrix/matrix_operand.h"
#include "gpu/virtual/machine/state.h"
#include "gpu/virtual/machine/tensor/product_description.h"
#include "gpu/virtual/machine/tensor/tensor_layout.h"

namespace kvscope::ptx {

struct TensorUse {
  struct Cells {
    std::string_view what;  // "D", "scales of A"
    AccessKind kind = AccessKind::load;
    const Cta* cta = nullptr;
    std::vector<TensorRegion> regions;
  };
  struct Bytes {
    std::string_view what;  // "A"
    const Cta* cta = nullptr;
    std::vector<std::uint64_t> offsets;  // of 16 bytes each, in the window
  };
  std::vector<Cells> cells;
  std::vector<Bytes> bytes;
  // The bytes as ranges, adjacent ones joined, for monitors.
  [[nodiscard]] std::vector<ByteRange> ranges() const;
};
// Both throw GeometryError or UnsupportedError for descriptors and addresses that are wrong, and for what is not
// modeled.
[[nodiscard]] TensorUse use_of_product(Launch& launch, Cta& cta, const TensorOp& t);
[[nodiscard]] TensorUse use_of_copy(Launch& launch, Cta& cta, const TensorOp& t);

// --- products --------------------------------------------------------------------------------------------------------

[[nodiscard]] const Instr& instr_of(const Launch& launch, const TensorOp& t);
// Rows of A, columns of B that one CTA gives, and the layouts of D, and of A in tensor memory.
struct ProductParts {
  TensorProduct p;
  int ctas = 1, rows = 0, columns = 0;
  TensorLayout d{}, a{};
  int a_cells = 0;  // columns of A in tensor memory
};
// Of a sparse A: where the four bits of a chunk are, from the metadata's address on.
struct MetadataCell {
  int lane = 0, column = 0, bit = 0;
};
[[nodiscard]] MetadataCell metadata_cell(const ProductParts& parts, int row, int chunk);
[[nodiscard]] ProductParts parts_of(const Launch& launch, const TensorOp& t);

// --- copies ----------------------------------------------------------------------------------------------------------

struct TensorCopy {
  int rows = 0, row_bytes = 0;
  enum class Form : std::uint8_t { raw, six_bits, four_bits } form = Form::raw;
};
[[nodiscard]] TensorCopy copy_of(const Instr& instr);
// The lanes that row r of the source goes to, from the address' lane on.
[[nodiscard]] std::vector<int> lanes_of_row(const Instr& instr, int r);

}  // namespace kvscope::ptx
