// kv_t of a KVBuffer: any MHA operand of core/cache/mha_operands.h, behind one type.
//
//   operand                          first element of row t of sequence b    end of the rows of one sequence
//   KVCacheMHAOperand<paged>         the lookup table's block            the caller's `end`
//   KVCacheMHAOperand<continuous>    the sequence's slot                 the slot's capacity
//   LayoutTensorMHAOperand           [b, t] of [B, S, H, D]              S
//   RaggedMHAOperand                 offsets[b] + t of [T, H, D]         offsets[b + 1] - offsets[b]
//
// A cache converts to its KVCacheMHAOperand. The scales operand is not accepted: KVBuffer stages values.
// Example: a ragged tensor [150, 2, 128], offsets {0, 50, 150}: tile(64, 64, sequence 1, token 32, head 1, column 0)
// is element (82 * 2 + 1) * 128 = 21120.
#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

#include "core/base/dtype.h"
#include "core/base/index.h"
#include "core/cache/kv_cache_concepts.h"

namespace kvscope {

class KVOperand {
 public:
  using Any = std::variant<KVCacheMHAOperand<PagedKVCache>, KVCacheMHAOperand<ContinuousBatchingKVCache>,
                           LayoutTensorMHAOperand, RaggedMHAOperand>;

  template <MHAOperand Operand>
  requires std::constructible_from<Any, const Operand&> KVOperand(const Operand& operand) : operand_(operand) {}
  template <KVCacheT Cache>
  KVOperand(const Cache& cache) : operand_(KVCacheMHAOperand<Cache>(cache)) {}
  KVOperand(const std::variant<PagedKVCache, ContinuousBatchingKVCache>& cache);

  [[nodiscard]] DType dtype() const;
  [[nodiscard]] std::int64_t page_size() const;  // [tokens]; 0: no pages
  [[nodiscard]] std::int64_t num_heads() const;
  [[nodiscard]] std::int64_t head_size() const;      // [elements]
  [[nodiscard]] std::int64_t row_stride() const;     // [elements] from a token to the next of its tile
  [[nodiscard]] std::int64_t column_stride() const;  // [elements]
  [[nodiscard]] const char* kind() const;            // "cache" or "tensor", for messages

  // Address of column `dim` of the first of `rows` tokens; the page must hold `tile_size` tokens from there on.
  // IndexError: a sequence, head or column out of range, a page that was never assigned, or, without pages, a last row
  // past the sequence's end.
  [[nodiscard]] std::byte* tile(std::int64_t tile_size, std::int64_t rows, SeqIdx seq, TokIdx first, HeadIdx head,
                                DimIdx dim) const;

 private:
  Any operand_;
};

}  // namespace kvscope
