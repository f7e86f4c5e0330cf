// What the instructions of a kernel determine of a tile's geometry and of its registers, as the events that the model
// records for its own tiles (core/trace/events.h, from tile_memory on).
//
//   event             how it is derived
//   tile_map          the tensor map that the boxes use
//   tile_memory       the same map, and the note's page_size, layers and kinds: no instruction contains these
//   tile_page         addresses of the boxes, by the note's geometry
//   tile_shared       the map's swizzle, rows and bands from the places of the boxes. Of cp.async: lines of 128 bytes,
//                     and swizzle_bits -1, because only the kernel's source defines its swizzle
//   tile_fragments    the instruction of the reads. The matrix product that uses the registers is unknown: mma_* are 0
//   bank_phase        the groups of lanes that shared memory serves together
//   register_filled   ldmatrix and ld.shared: the row and column of the bytes that a register receives. One k-step 0:
//                     the kernel's own register numbers are not those of the compiled program
//
// Example: ldmatrix.x4 of bf16 rows: lane 5 receives elements 2 and 3 of row 1 of each matrix.
// Source of register_filled: PTX ISA, "ldmatrix".
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/trace/events.h"
#include "gpu/virtual/isa/instr.h"
#include "gpu/virtual/machine/copies/copy_map.h"
#include "gpu/virtual/machine/monitor.h"

namespace kvscope::ptx {

// The same number for all reads of one kind.
struct ReadForm {
  trace::ReadInstruction instruction = trace::ReadInstruction::none;
  std::int64_t bytes = 0;  // that a lane asks for
  friend bool operator==(const ReadForm&, const ReadForm&) = default;
};
[[nodiscard]] ReadForm read_form(const Instr& instr, const WarpAccess& access);

// `gather`: a copy takes four rows, whatever the map's box.
[[nodiscard]] trace::TileMap map_geometry(const CopyMap& map, std::size_t row_axis,
                                          std::optional<std::size_t> head_axis, bool gather);

// `base`: offset of the tile in shared memory. Nothing: the swizzle exchanges the halves of chunks, or the tile does
// not begin at a whole pattern of it, so that no function of offsets in the tile describes it.
[[nodiscard]] std::optional<trace::TileShared> shared_geometry(const CopyMap& map, std::int64_t base,
                                                               std::int64_t rows);
// Bytes without known rows: lines of 128 bytes. `swizzled`: whether the kernel may have moved chunks.
[[nodiscard]] trace::TileShared line_geometry(std::int64_t bytes, std::int64_t stages, bool swizzled);

[[nodiscard]] std::vector<trace::BankPhase> bank_phases(std::int64_t bytes);

// start, leading, stride and span of a descriptor of wgmma (matrix_operand.h); `start` is an offset in the window.
[[nodiscard]] trace::OperandRead operand_geometry(std::uint64_t descriptor);

// Rows and columns of the bytes of a tile, by their offset in shared memory.
class TileOrigins {
 public:
  explicit TileOrigins(std::int64_t element_bytes) : element_bytes_(element_bytes) {}
  // 16 bytes at `shared`, a multiple of 16: elements from (row, column) on.
  void add(std::int64_t shared, std::int64_t row, std::int64_t column) { chunks_[shared / 16] = {row, column}; }
  // Adds the bytes of `opened` that no copy wrote, such as rows past the last token: their places follow from `shared`
  // if the places that were added agree with it, otherwise nothing is added. `base`: offset of the tile.
  void extend(const trace::TileOpened& opened, const trace::TileShared& shared, std::int64_t base);
  [[nodiscard]] bool empty() const { return chunks_.empty() || element_bytes_ < 1; }

  // What one read puts into the registers of all lanes, lane by lane, registers in order. `addresses` of the lanes that
  // name bytes, as (lane, offset). Elements that do not fit whole into a register, and bytes without an origin, have no
  // event.
  [[nodiscard]] std::vector<trace::RegisterFilled> fills(const ReadForm& form,
                                                         std::span<const std::pair<int, std::int64_t>> addresses) const;

 private:
  struct Place {
    std::int64_t row = 0, column = 0;
  };
  struct Byte {
    std::int64_t row = -1, column = 0;  // of its element; row -1: unknown
    std::int64_t part = 0;              // of the element
  };
  [[nodiscard]] Byte byte_at(std::int64_t shared) const;
  void add_register(trace::RegisterFilled e, std::span<const Byte> bytes,
                    std::vector<trace::RegisterFilled>& out) const;

  std::int64_t element_bytes_ = 0;
  std::unordered_map<std::int64_t, Place> chunks_;
};

}  // namespace kvscope::ptx
