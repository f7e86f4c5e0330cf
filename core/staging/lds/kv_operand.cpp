#include "core/staging/lds/kv_operand.h"

namespace kvscope {
namespace {

// Extents and strides of an operand's rows.
struct OperandRows {
  std::int64_t heads, head_size, row_stride, column_stride;
  const char* kind;
};

template <class Cache>
OperandRows rows_of(const KVCacheMHAOperand<Cache>& operand) {
  const KVCacheStaticParams& kv = operand.cache().kv_params();
  return {kv.num_heads, kv.head_size, kv.num_heads * kv.head_size, 1, "cache"};
}
OperandRows rows_of(const LayoutTensorMHAOperand& operand) {
  const AnyView<4>& b = operand.buffer();
  return {b.dim(2), b.dim(3), b.stride(1), b.stride(3), "tensor"};
}
OperandRows rows_of(const RaggedMHAOperand& operand) {
  const AnyView<3>& b = operand.buffer();
  return {b.dim(1), b.dim(2), b.stride(0), b.stride(2), "tensor"};
}

OperandRows rows_of_any(const KVOperand::Any& operand) {
  return std::visit([](const auto& o) { return rows_of(o); }, operand);
}

}  // namespace

KVOperand::KVOperand(const std::variant<PagedKVCache, ContinuousBatchingKVCache>& cache)
    : operand_(std::visit([](const auto& c) -> Any { return KVCacheMHAOperand(c); }, cache)) {}

DType KVOperand::dtype() const {
  return std::visit([](const auto& o) { return o.dtype(); }, operand_);
}
std::int64_t KVOperand::page_size() const {
  return std::visit([](const auto& o) { return o.page_size(); }, operand_);
}
std::int64_t KVOperand::num_heads() const {
  return rows_of_any(operand_).heads;
}
std::int64_t KVOperand::head_size() const {
  return rows_of_any(operand_).head_size;
}
std::int64_t KVOperand::row_stride() const {
  return rows_of_any(operand_).row_stride;
}
std::int64_t KVOperand::column_stride() const {
  return rows_of_any(operand_).column_stride;
}
const char* KVOperand::kind() const {
  return rows_of_any(operand_).kind;
}

std::byte* KVOperand::tile(std::int64_t tile_size, std::int64_t rows, SeqIdx seq, TokIdx first, HeadIdx head,
                           DimIdx dim) const {
  const bool pages = page_size() > 0;
  return std::visit(
      [&](const auto& o) {
        std::byte* at = o.block_paged_ptr(pages ? tile_size : rows, seq, first, head, dim);
        // Tensors check only the first row, and the row after a sequence's last one belongs to the next sequence.
        if (!pages && rows > 1) static_cast<void>(o.row_idx(seq, first + (rows - 1)));
        return at;
      },
      operand_);
}

}  // namespace kvscope
