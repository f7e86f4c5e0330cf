// An operand of wgmma or tcgen05 in shared memory: its 64-bit descriptor, and the address of each 16 bytes of the
// operand.
//
//   bits   13..0  start    29..16  leading offset    45..32  stride offset    in units of 16 bytes
//          51..49  base offset    63..62  0 no swizzle, 1 128B, 2 64B, 3 32B    all others 0
//
// The operand is a grid of vectors of 16 bytes: V vectors along the contiguous direction, and L lines across it. The
// address of vector v of line l is a sum of one term per direction; each term counts within a period, then the periods:
//
//   place(v, l) = start + v % pv * 16 + v / pv * far_v + l % 8 * near_l + l / 8 * far_l      then the swizzle
//
//                        pv    far_v    near_l  far_l            contiguous    line
//   K-major, none         1    leading      16  stride           k             row of A, column of B
//   K-major, swizzled     -    -             W  stride           k, within W bytes
//   MN-major, none        1    stride       16  leading          row, column   k
//   MN-major, swizzled  W/16   leading       W  stride
//
// tcgen05: bits 46-47 are 1, and the mode is bits 61-63: 0 no swizzle, 2 128B, 4 64B, 6 32B. Elements of 32 and 8 bits
// may be MN-major too, except that 32 bits need the mode 1, 128B with atoms of 32 bytes, which is not supported.
//
// W is 32, 64 or 128. The swizzle acts on the absolute address, so a step of k inside a swizzled row may be added to
// the start. Example: 0x4000004000010040 (start 1024, stride 1024, 128B swizzle), K-major, bf16: element (9, 5) is in
// vector 0 of line 9, which is stored at 1024 + 128 + 1024 = 2176, swizzled 2192; its byte is 2192 + 10 = 2202.
// Source: PTX ISA 8.7, "Asynchronous Warpgroup Level Matrix Shared Memory Layout": canonical layouts, matrix
// descriptor.
#pragma once

#include <cstdint>
#include <vector>

namespace kvscope::ptx {

inline constexpr std::int64_t kWgmmaChunkBytes = 16;

// kWgmmaChunkBytes of an operand: elements along k (K-major) or along mn (MN-major).
struct WgmmaChunk {
  std::uint64_t offset = 0;  // in the window
  int mn = 0, k = 0;         // of its first element
};
// Elements [mn_from, mn_from + mns) x [0, ks), in the order [mn][k] (K-major) or [k][mn] (MN-major). GeometryError:
// reserved bits that are not 0. UnsupportedError: a base offset that is not 0, MN-major elements that are not 16 bits.
[[nodiscard]] std::vector<WgmmaChunk> wgmma_chunks(std::uint64_t descriptor, bool mn_major, int element_bits,
                                                   int mn_from, int mns, int ks);
// The same for a descriptor of tcgen05. `element_bits`: of an element as it is stored; 8 for each that takes one of 16
// parts of a chunk, whatever its width.
[[nodiscard]] std::vector<WgmmaChunk> tcgen05_chunks(std::uint64_t descriptor, bool mn_major, int element_bits, int mns,
                                                     int ks);

}  // namespace kvscope::ptx
