// kv_mma_op of a KVBuffer: the register tile of one wave, and the matrix instructions that consume it.
//
//   registers   [64 lanes, mma_rows, input_frag_size], in bytes lane by lane, row by row, little endian
//   one step    strip b, MMA_K step k: num_mmas fragments, register rows register_row(b, k, 0) on
//
// The tile is always the first operand of the instruction, as in the attention kernels: K with Q gives rows of keys, V
// with P rows of depth; the columns are queries.
//
//   sums        [query tile n, MMA m, 64 lanes, M * N / 64], tile m + n * num_mmas of a lane by lane register image
//
// Example: bf16 K, 32x32x16, WN 64, BK 32, depth 128: 4 strips of 2 steps, 2 fragments a step; for one tile of 32
// queries the sums are 1 x 2 x 64 x 16 values, and all strips are 16 instructions.
// The register tile begins as poison, so that a row that was never loaded is visible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/layout/strided_view.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_index.h"
#include "core/staging/lds/lds_to_registers.h"

namespace kvscope {

class KVMmaOp {
 public:
  explicit KVMmaOp(const KVBufferConfig& config);  // `config` must outlive the object

  // --- register tile ---
  [[nodiscard]] AnyView<3> registers();  // [lane, row, element]
  [[nodiscard]] std::span<const std::byte> register_bytes() const { return registers_; }
  // num_mmas rows from row (bk % register_strips) * num_mmas * num_k_mmas2 + k * num_mmas on. IndexError.
  [[nodiscard]] AnyView<3> get_mma_tile(std::int64_t k_mma_tile_idx, StripIdx bk_tile_idx);  // [lane, mma, element]
  // Writes `bytes` to the places of one lane, in order. Precondition: they are inside the tile.
  void write(int lane, std::span<const RegisterTarget> targets, std::span<const std::byte> bytes);

  // --- product ---
  // Values of the sums for `query_tiles` tiles of M queries.
  [[nodiscard]] std::int64_t sum_count(std::int64_t query_tiles) const;
  // sums += step k of strip `bk` times `other`, fragments of Q or P of the buffer's type: [lane, query tile, element].
  // Exact products, added in double in the order of lane group and element. IndexError: a step or strip out of range.
  // GeometryError: `other` or `sums` of another size or type. UnsupportedError: an MMA shape that core/fragment does
  // not have.
  void mma(std::int64_t k, StripIdx bk, const AnyView<3>& other, std::span<double> sums);
  // Every step of every strip, in order: [strip * num_k_mmas2 + k, lane, query tile, element]. UnsupportedError, too,
  // when the register tile holds fewer strips than the operand has.
  void mma(const AnyView<4>& other, std::span<double> sums);

 private:
  const KVBufferConfig* config_;
  std::vector<std::byte> registers_;
};

}  // namespace kvscope
