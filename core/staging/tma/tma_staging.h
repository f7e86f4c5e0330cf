// The places of one tile on the TMA path: the box that brings an element, its address in shared memory, and the
// registers that ldmatrix loads it into. This class moves no bytes; core/tma and core/fragment move them with the same
// lists.
//
//   pool --issue: page, chunk--> shared byte, swizzled --ldmatrix.x4: piece, matrix, row--> lane, register
//
// The tile is BN tokens by BK elements of one head (scenario.tile), with a destination address of 0. Pages past the
// sequence's last token are not copied for K, and filled with zeros for V, whose rows are multiplied by probabilities
// of 0. A warp reads the tile in pieces, row of pieces by row of pieces; piece p is registers 4p .. 4p + 3 of every
// lane, if the whole tile needs at most 255 registers (lane_registers.h). Every warp has its own rows of Q and reads
// the same pieces, as in FlashAttention-2.
//
// A larger tile is read in k-steps, one column of pieces of K or one row of pieces of V at a time. Each k-step reuses
// the registers of the one before, as the main loops of CUTLASS and FlashAttention-2 do. If the pieces across one
// k-step do not fit either, they are divided among W warps, the smallest number that fits: keys of K, value columns of
// V, as FlashMLA gives each of two warpgroups one half of the 512 value columns. With P = ceil(pieces across / W) per
// warp, piece a across belongs to warp a / P, registers 4 (a % P) on. Example: K of 64 x 576 bf16: 4 pieces across, 36
// k-steps of 16 registers.
//
// Pieces:
//
//   K, 8 and 16 bits   16 keys x 32 B    B operand of mma.sync, read plain
//   V, 16 bits         16 keys x 32 B    B operand, read with .trans
//   V, 8 bits          32 keys x 16 B    two B operands, .trans and two byte permutations
//
// Example: bf16 K, BN 64, 128B swizzle, key 1, depth 8: shared byte 128; register 1 of lane 4.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/base/index.h"
#include "core/fragment/fragment_map.h"
#include "core/fragment/ldmatrix.h"
#include "core/scenario/scenario.h"
#include "core/smem/banks.h"
#include "core/staging/addressed_cache.h"
#include "core/staging/staged_tile.h"
#include "core/staging/tma/kv_copy.h"
#include "core/tma/tensor_map.h"

namespace kvscope {

// Columns of the tile: scenario.tile.BK rounded up to whole swizzle rows, at most those of the head. Example: fp8, BK
// 64, 128B swizzle, heads of 128 -> 128. The tile that holds `dim` begins at tma_depth_offset().
[[nodiscard]] std::int64_t tma_columns(const Scenario& scenario);
[[nodiscard]] DimIdx tma_depth_offset(const Scenario& scenario, DimIdx dim);

// One ldmatrix.x4 of a warp.
struct TmaRead {
  std::int64_t piece = 0;
  std::int64_t row = 0, column = 0;       // of the tile, where the piece begins
  std::vector<std::int64_t> addresses{};  // [32] shared byte of the row that each lane points at
  std::int64_t step = 0;                  // k-step that reads it
  std::int64_t warp = 0;                  // of the warps() that divide a k-step; if there is one, every warp reads it
  std::int64_t first_register = 0;        // of four
};

class TmaStaging {
 public:
  // Columns depth_offset .. of the head; TmaBoxes::rope: the rope values behind its first value_size bytes, as bf16.
  // GeometryError, UnsupportedError or OverflowError with the reason when TMA cannot copy the tile.
  TmaStaging(const Scenario& scenario, const StepCache& cache, const StagedTile& tile, DimIdx depth_offset,
             TmaBoxes boxes = TmaBoxes::pages);

  [[nodiscard]] const TensorMap& map() const { return map_; }
  [[nodiscard]] const KvCopy& copy() const { return copy_; }
  [[nodiscard]] std::int64_t rows() const { return copy_.tile_rows; }
  [[nodiscard]] std::int64_t columns() const { return copy_.chunks * copy_.gran; }
  [[nodiscard]] std::int64_t shared_bytes() const { return copy_.smem_elements() * copy_.element_bytes; }

  // (row, column) of the tile. IndexError outside it.
  [[nodiscard]] std::int64_t shared_address(std::int64_t row, std::int64_t column) const;
  // Empty: the gap between two chunks. IndexError outside the tile's bytes.
  [[nodiscard]] std::optional<KvElement> element_at(std::int64_t shared_address) const;

  // The reason why the model has no fragment that reads the tile; empty when it has one.
  [[nodiscard]] const std::string& no_fragments() const { return no_fragments_; }
  // The map of one piece. Precondition of this and all functions below: no_fragments().empty().
  [[nodiscard]] const FragmentMap& piece() const { return *piece_; }
  [[nodiscard]] LdmatrixUse use() const { return use_; }
  [[nodiscard]] std::int64_t registers() const;  // 32-bit, of a lane, in one k-step; at most kLaneRegisters
  [[nodiscard]] std::int64_t steps() const;      // k-steps; 1: the whole tile at once
  [[nodiscard]] std::int64_t warps() const;      // that divide the pieces of a k-step; 1: every warp reads all of it
  struct Register {
    int lane = 0;
    std::int64_t index = 0;
    int bit = 0;  // the element's first bit in it
    std::int64_t step = 0;
    std::int64_t warp = 0;
    friend bool operator==(const Register&, const Register&) = default;
  };
  [[nodiscard]] Register register_of(std::int64_t row, std::int64_t column) const;
  // The inverse: the elements (row, column) that a register holds in k-step `step`, lowest bits first. IndexError
  // outside. `warp` is ignored where every warp reads the same.
  [[nodiscard]] std::vector<TilePlace> elements_at(int lane, std::int64_t index, std::int64_t step = 0,
                                                   std::int64_t warp = 0) const;
  [[nodiscard]] std::int64_t pieces() const;
  [[nodiscard]] TmaRead read(std::int64_t piece) const;  // IndexError
  [[nodiscard]] std::vector<TmaRead> reads() const;      // of every piece, k-step by k-step

 private:
  // Each makes map_ and copy_.
  void copy_pages(const Scenario& scenario, const StepCache& cache, const StagedTile& tile, DimIdx depth_offset,
                  TmaBoxes boxes);
  void gather_rows(const Scenario& scenario, const StepCache& cache, const StagedTile& tile, DimIdx depth_offset);
  void require_destinations() const;
  void choose_piece(KOrV kv);
  [[nodiscard]] std::int64_t down() const;      // rows of pieces
  [[nodiscard]] std::int64_t along() const;     // columns of pieces
  [[nodiscard]] std::int64_t of_piece() const;  // registers of one piece
  [[nodiscard]] bool whole() const;             // the registers hold the whole tile at once
  [[nodiscard]] std::int64_t across() const;    // pieces of a k-step
  [[nodiscard]] std::int64_t of_warp() const;   // pieces of a k-step that one warp reads

  TensorMap map_;
  KvCopy copy_;
  std::optional<FragmentMap> piece_;
  LdmatrixUse use_ = LdmatrixUse::k_as_b;
  std::string no_fragments_;
};

// The bank report of one read on NVIDIA's banks.
[[nodiscard]] BankReport bank_report(const TmaRead& read);

}  // namespace kvscope
