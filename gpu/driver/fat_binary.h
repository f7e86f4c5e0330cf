// The device code that nvcc packs into a program: a container of entries, each PTX text or machine code for one
// architecture. Layout, little-endian, as `nvcc --keep` writes it to a .fatbin file:
//
//   container   u32 magic 0xba55ed50, u16 version 1, u16 header bytes (16), u64 bytes of all entries
//   entry       u16 kind (1: PTX, 2: machine code), u16, u32 header bytes, u64 payload bytes with padding,
//               u32 payload bytes if compressed (at 16), u32 architecture (at 28), u64 flags (at 40),
//               u64 bytes after decompression (at 56)
//   flags       0x2000: LZ4 block, 0x8000: zstd frame, neither: plain text
//
// Example: `nvcc -arch=sm_90a` writes three entries, machine code between two copies of the PTX.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace kvscope::driver {

struct FatEntry {
  bool is_ptx = false;     // else machine code
  int architecture = 0;    // 90 for sm_90 and sm_90a
  std::string text;        // PTX; empty for machine code
  std::string unreadable;  // why the PTX could not be decompressed; empty: it could
};

// Throws InputError for bytes that are not such a container.
[[nodiscard]] std::vector<FatEntry> read_fat_binary(std::span<const std::byte> bytes);
// The bytes of a container in memory, from its header. Throws InputError for another magic number.
[[nodiscard]] std::span<const std::byte> fat_binary_at(const void* address);

// The PTX that a virtual GPU of this target (90 for sm_90a) runs: code for exactly this target if there is one, otherwise
// for the newest architecture that it covers. Null: there is none.
[[nodiscard]] const FatEntry* choose_ptx(const std::vector<FatEntry>& entries, int target);
// "machine code for sm_80, sm_90; no PTX": the contents of the container, for a message.
[[nodiscard]] std::string contents_text(const std::vector<FatEntry>& entries);

// One block of the LZ4 format, without a frame. `size`: bytes after decompression. Throws InputError for a damaged block.
[[nodiscard]] std::string lz4_block(std::span<const std::byte> bytes, std::size_t size);

}  // namespace kvscope::driver
