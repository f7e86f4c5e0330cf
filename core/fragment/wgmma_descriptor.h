// The 64-bit descriptor with which wgmma finds an operand in shared memory, and the byte address of each element.
//
//   bit  63 62 | 61..52 | 51 50 49 | 48..46 | 45..32 | 31 30 | 29..16  | 15 14 | 13..0
//        mode     0       phase      0        stride   0       leading   0       start      in units of 16 bytes
//
//   mode: 0 none, 1 128B swizzle, 2 64B, 3 32B; these differ from the mode numbers of a tensor map.
//   tcgen05 (Blackwell): the same fields, 1 in bits 46-47, the mode in bits 61-63: 0 none, 2 128B, 4 64B, 6 32B.
//
// Element (mn, k) of an operand: T = 16 bytes of elements, W = width of the mode, c = W / 16. mn is the row of A or the
// column of B; K-major: k is contiguous.
//
//               no swizzle                                    swizzled, then the mode's XOR on the absolute address
//   K-major     (mn / 8) stride + (mn % 8) 16                 (mn / 8) stride + (mn % 8) W + k es
//               + (k / T) leading + (k % T) es                leading is ignored
//   MN-major    (mn / T) stride + (mn % T) es                 (mn / (T c)) leading + (mn / T % c) 16 + (mn % T) es
//   16-bit only + (k / 8) leading + (k % 8) 16                + (k / 8) stride + (k % 8) W
//
// To advance k inside a swizzled row, add to the start: +32 bytes is the next 16 values of bf16. The XOR acts on the
// absolute address, so the sum stays correct. Example: K in 128-byte rows at byte 1024: start 1024, leading 16
// (ignored), stride 1024, 128B swizzle: 0x4000004000010040; its bf16 element (9, 5) is at byte 2202. Source: PTX ISA,
// matrix descriptor format; CUTLASS, layout atoms of GMMA.
#pragma once

#include <cstdint>
#include <string>

#include "core/layout/swizzle.h"

namespace kvscope {

struct WgmmaDescriptor {
  std::int64_t start = 0;    // [bytes] of the CTA's window
  std::int64_t leading = 0;  // [bytes]
  std::int64_t stride = 0;   // [bytes]
  int phase = 0;             // base offset: (pattern's first address / 128) % 8 when the pattern begins out of phase
  SwizzleMode mode = SwizzleMode::none;
  friend bool operator==(const WgmmaDescriptor&, const WgmmaDescriptor&) = default;
};

// GeometryError, all faults at once: start, leading or stride negative, not a multiple of 16, or past 14 bits of 16
// bytes; phase outside [0, 8); a mode there is not.
[[nodiscard]] std::uint64_t encode(const WgmmaDescriptor& descriptor);
[[nodiscard]] std::uint64_t encode_tcgen05(const WgmmaDescriptor& descriptor);
// GeometryError, naming them: bits that must be 0 and, for tcgen05, a version that is not 1. UnsupportedError: a mode
// of tcgen05 that no other engine here has (1: 128B swizzle of 32-byte atoms).
[[nodiscard]] WgmmaDescriptor decode_wgmma(std::uint64_t bits);
[[nodiscard]] WgmmaDescriptor decode_tcgen05(std::uint64_t bits);

// "start 1024, leading 16, stride 1024, phase 0, 128B swizzle".
[[nodiscard]] std::string to_text(const WgmmaDescriptor& descriptor);

enum class WgmmaMajor : std::uint8_t { k, mn };

// Byte of the CTA's window where element (mn, k) begins. UnsupportedError: phase != 0 (the model keeps patterns in
// phase, as kernels do), MN-major with elements that are not 16 bits wide. IndexError: mn or k below 0.
[[nodiscard]] std::int64_t wgmma_address(const WgmmaDescriptor& descriptor, WgmmaMajor major, int element_bytes,
                                         std::int64_t mn, std::int64_t k);

}  // namespace kvscope
