// One tile on its way by TMA, as places: which box brings an element, where in shared memory it stands, and which
// registers ldmatrix puts it in. No byte is moved; core/tma and core/fragment move them, by the same lists.
//
//   pool --issue: page, chunk--> shared byte, swizzled --ldmatrix.x4: piece, matrix, row--> lane, register
//
// The tile is BN tokens by BK elements of one head (scenario.tile), from a destination of 0 on. Pages past the
// sequence's last token are not copied for K, and filled with zeros for V, whose rows are multiplied by probabilities
// of 0. A warp reads it in pieces, row of pieces by row of pieces; piece p is registers 4p .. 4p + 3 of every lane:
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

// Columns of the tile: scenario.tile.BK in whole swizzle rows, and no more than the head has. Example: fp8, BK 64, 128B
// swizzle, heads of 128 -> 128. The tile that holds `dim` begins at tma_depth_offset().
[[nodiscard]] std::int64_t tma_columns(const Scenario& scenario);
[[nodiscard]] DimIdx tma_depth_offset(const Scenario& scenario, DimIdx dim);

// One ldmatrix.x4 of a warp.
struct TmaRead {
  std::int64_t piece = 0;
  std::int64_t row = 0, column = 0;     // of the tile, where the piece begins
  std::vector<std::int64_t> addresses;  // [32] shared byte of the row that each lane points at
};

class TmaStaging {
 public:
  // Columns depth_offset .. of the head. GeometryError, UnsupportedError or OverflowError say why TMA cannot bring the
  // tile.
  TmaStaging(const Scenario& scenario, const StepCache& cache, const StagedTile& tile, DimIdx depth_offset);

  [[nodiscard]] const TensorMap& map() const { return map_; }
  [[nodiscard]] const KvCopy& copy() const { return copy_; }
  [[nodiscard]] std::int64_t rows() const { return copy_.tile_rows; }
  [[nodiscard]] std::int64_t columns() const { return copy_.chunks * copy_.gran; }
  [[nodiscard]] std::int64_t shared_bytes() const { return copy_.smem_elements() * copy_.element_bytes; }

  // (row, column) of the tile. IndexError outside it.
  [[nodiscard]] std::int64_t shared_address(std::int64_t row, std::int64_t column) const;
  // Nothing: the gap between two chunks. IndexError outside the tile's bytes.
  [[nodiscard]] std::optional<KvElement> element_at(std::int64_t shared_address) const;

  // Why no fragment of this model reads the tile; empty when one does.
  [[nodiscard]] const std::string& no_fragments() const { return no_fragments_; }
  // Of one piece; precondition of all that follows: no_fragments().empty().
  [[nodiscard]] const FragmentMap& piece() const { return *piece_; }
  [[nodiscard]] LdmatrixUse use() const { return use_; }
  [[nodiscard]] std::int64_t registers() const;  // 32-bit, of a lane, for the whole tile
  struct Register {
    int lane = 0;
    std::int64_t index = 0;
    int bit = 0;  // where in it the element begins
    friend bool operator==(const Register&, const Register&) = default;
  };
  [[nodiscard]] Register register_of(std::int64_t row, std::int64_t column) const;
  // Back: the elements (row, column) that a register holds, lowest bits first. IndexError outside.
  [[nodiscard]] std::vector<TilePlace> elements_at(int lane, std::int64_t index) const;
  [[nodiscard]] std::int64_t pieces() const;
  [[nodiscard]] TmaRead read(std::int64_t piece) const;  // IndexError
  [[nodiscard]] std::vector<TmaRead> reads() const;      // of every piece, in order

 private:
  void require_destinations() const;
  void choose_piece(KOrV kv);

  TensorMap map_;
  KvCopy copy_;
  std::optional<FragmentMap> piece_;
  LdmatrixUse use_ = LdmatrixUse::k_as_b;
  std::string no_fragments_;
};

// Cycles of one read on NVIDIA's banks.
[[nodiscard]] BankReport bank_report(const TmaRead& read);

}  // namespace kvscope
