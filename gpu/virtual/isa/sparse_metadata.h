// The metadata of a sparse A (mma.sp, wgmma.mma_async.sp, tcgen05.mma.sp): which half of a row's elements is stored.
// Four bits describe one chunk of a row, as two indices of two bits, the lower ones first.
//
//   elements            chunk   stored         indices
//   16 and 8 bits       4       2 elements     of each stored element                    0b1001: elements 1 and 2
//   4 bits              8       2 pairs        of each pair                              0b1001: elements 2 3 and 4 5
//   32 bits (tf32)      2       1 element      of its halves: 0b0100 or 0b1110           0b1110: element 1
//
// Equal indices are invalid. Indices in descending order are valid without .sp::ordered_metadata, except for tf32.
//
// Where a warp's registers hold the four bits of chunk c of row r, of 16 rows of n chunks; g = r % 8:
//
//   16 and 32 bits   lane 4 g + c / 4 + s               bits 4 (c % 4) + 16 (r / 8)        n / 4 lanes of each four
//   8 and 4 bits     lane 4 g + r / 8 + 2 (c / 8) + s   bits 4 (c % 8)                     hold metadata; the selector
//                                                                                          chooses them: s = selector * n / 4
//
// Example: mma.sp.m16n8k32 of f16 (n 8), selector 1: row 9, columns 20 to 23 (c 5) are bits 20 to 23 of lane 7.
// Source: PTX ISA 9.0, "Sparse matrix storage", "Matrix Fragments for sparse mma"; for the last shapes CUTLASS,
// ELayout of mma_traits_sm90_gmma_sparse and mma_traits_sm120_sparse. Tested by
// tests/gpu/virtual/semantics/sparse_mma_test.cpp.
#pragma once

#include <cstdint>

namespace kvscope::ptx {

// `element_bits`: of an element as it is stored, 8 for elements of 6 and 4 bits in bytes.
[[nodiscard]] constexpr int metadata_chunk(int element_bits) {
  return element_bits == 32 ? 2 : element_bits == 4 ? 8 : 4;
}

[[nodiscard]] constexpr bool is_valid_metadata(int element_bits, std::uint32_t four_bits, bool ordered) {
  if (element_bits == 32) return four_bits == 0b0100 || four_bits == 0b1110;
  const std::uint32_t first = four_bits & 3, second = four_bits >> 2;
  return ordered ? first < second : first != second;
}

// Of tcgen05.mma.sp, which also takes the elements 2 and 1, in this order.
[[nodiscard]] constexpr bool is_valid_tensor_metadata(int element_bits, std::uint32_t four_bits) {
  return is_valid_metadata(element_bits, four_bits, true) || (element_bits != 32 && four_bits == 0b0110);
}

// The columns of the stored elements of chunk `chunk`: metadata_chunk / 2 numbers. Of invalid metadata: those that the
// indices name.
constexpr void metadata_columns(int element_bits, std::uint32_t four_bits, int chunk, std::uint16_t* to) {
  const int size = metadata_chunk(element_bits), first = static_cast<int>(four_bits & 3),
            second = static_cast<int>(four_bits >> 2);
  const auto put = [&](int i, int column) { to[i] = static_cast<std::uint16_t>(chunk * size + column); };
  if (size == 2) return put(0, first / 2);
  if (size == 4) return put(0, first), put(1, second);
  for (int half = 0; half < 2; ++half) {
    put(half, 2 * first + half);
    put(2 + half, 2 * second + half);
  }
}

struct MetadataPlace {
  int lane = 0, bit = 0;
};

// The selectors of a shape: 4, 2 or 1, so that each of four lanes is chosen by one of them.
[[nodiscard]] constexpr int metadata_selectors(int element_bits, int k) {
  return 16 / (k / metadata_chunk(element_bits));
}

// A selector past the last one is taken modulo their number.
[[nodiscard]] constexpr MetadataPlace metadata_place(int element_bits, int k, int selector, int row, int chunk) {
  const auto selectors = static_cast<unsigned>(metadata_selectors(element_bits, k));
  const int chosen = static_cast<int>(static_cast<unsigned>(selector) % selectors);
  const int base = 4 * (row % 8) + chosen * (k / metadata_chunk(element_bits) / 4);
  if (element_bits >= 16) return {base + chunk / 4, 4 * (chunk % 4) + 16 * (row / 8)};
  return {base + row / 8 + 2 * (chunk / 8), 4 * (chunk % 8)};
}

// The columns of all stored elements of 16 rows: [16][k / 2]. `words`: a register, [32] lanes.
constexpr void metadata_columns(int element_bits, int k, int selector, const std::uint32_t* words, std::uint16_t* to) {
  const int size = metadata_chunk(element_bits);
  for (int row = 0; row < 16; ++row) {
    for (int chunk = 0; chunk < k / size; ++chunk) {
      const MetadataPlace at = metadata_place(element_bits, k, selector, row, chunk);
      metadata_columns(element_bits, words[at.lane & 31] >> at.bit & 0xf, chunk, to + row * k / 2 + chunk * size / 2);
    }
  }
}

}  // namespace kvscope::ptx
