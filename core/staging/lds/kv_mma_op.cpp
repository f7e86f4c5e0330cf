#include "core/staging/lds/kv_mma_op.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "core/base/convert.h"
#include "core/base/errors.h"
#include "core/fragment/mfma.h"
#include "core/smem/shared_image.h"
#include "core/staging/lds/register_map.h"

namespace kvscope {
namespace {

// A fragment of 32x32x8 in core/fragment is the 8 elements of two instructions; a step of KVBuffer is one of them.
const MfmaShape& instruction_of(const KVBufferConstants& c) {
  for (const MfmaShape& shape : all_mfma_shapes()) {
    if (shape.M == c.MMA_M && shape.K == c.MMA_K * shape.instructions && shape.element_bytes == c.element_bytes)
      return shape;
  }
  throw UnsupportedError(fmt::format(
      "kv_mma_op: {}x{}x{} over elements of {} B is not a matrix instruction of the model: use one of those "
      "that kvscope fragment lists",
      c.MMA_M, c.MMA_N, c.MMA_K, c.element_bytes));
}

// Fragment `tile` of [lane, tile, element] as doubles, each lane padded with zeros to the instruction's elements.
std::vector<double> fragment_of(const AnyView<3>& view, std::int64_t tile, const MfmaShape& shape) {
  std::vector<double> values(static_cast<std::size_t>(kWaveLanes * shape.elements));
  for (std::int64_t lane = 0; lane < kWaveLanes; ++lane) {
    for (std::int64_t e = 0; e < view.dim(2); ++e) {
      values[static_cast<std::size_t>(lane * shape.elements + e)] = load_as_double(view.dtype, view.at(lane, tile, e));
    }
  }
  return values;
}

}  // namespace

KVMmaOp::KVMmaOp(const KVBufferConfig& config) : config_(&config) {
  const KVBufferConstants& c = config.constants();
  const std::int64_t elements = kWaveLanes * c.mma_rows * c.mma_cols;
  registers_.assign(static_cast<std::size_t>(elements * c.element_bytes), SharedImage::kPoison);
}

// --- register tile ---------------------------------------------------------------------------------------------------

AnyView<3> KVMmaOp::registers() {
  const KVBufferConstants& c = config_->constants();
  return {registers_.data(), config_->params().dtype, {kWaveLanes, c.mma_rows, c.mma_cols}};
}

AnyView<3> KVMmaOp::get_mma_tile(std::int64_t k_mma_tile_idx, StripIdx bk_tile_idx) {
  const KVBufferConstants& c = config_->constants();
  check_index("MMA_K step", k_mma_tile_idx, c.num_k_mmas2, "num_k_mmas2 of a strip");
  check_index("strip", bk_tile_idx.value, c.num_k_tiles, "num_k_tiles of the buffer");
  const std::int64_t row = register_row(c, bk_tile_idx, k_mma_tile_idx, 0);
  return {registers_.data() + row * c.mma_cols * c.element_bytes,
          config_->params().dtype,
          {kWaveLanes, c.num_mmas, c.mma_cols},
          {c.mma_rows * c.mma_cols, c.mma_cols, 1}};
}

void KVMmaOp::write(int lane, std::span<const RegisterTarget> targets, std::span<const std::byte> bytes) {
  const KVBufferConstants& c = config_->constants();
  std::size_t from = 0;
  for (const RegisterTarget& target : targets) {
    const std::int64_t at = ((lane * c.mma_rows + target.row) * c.mma_cols + target.element) * c.element_bytes;
    const auto count = static_cast<std::size_t>(target.count * c.element_bytes);
    std::memcpy(registers_.data() + at, bytes.data() + from, count);
    from += count;
  }
}

// --- product ---------------------------------------------------------------------------------------------------------

std::int64_t KVMmaOp::sum_count(std::int64_t query_tiles) const {
  const KVBufferConstants& c = config_->constants();
  return query_tiles * c.num_mmas * c.MMA_M * c.MMA_N;
}

void KVMmaOp::mma(std::int64_t k, StripIdx bk, const AnyView<3>& other, std::span<double> sums) {
  const KVBufferConstants& c = config_->constants();
  const MfmaShape& shape = instruction_of(c);
  const AnyView<3> own = get_mma_tile(k, bk);
  if (other.dtype != own.dtype || other.dim(0) != kWaveLanes || other.dim(2) != c.input_frag_size) {
    throw GeometryError(fmt::format("kv_mma_op: the other operand is {} [{}, {}, {}], not {} [{}, query tiles, {}]",
                                    name(other.dtype), other.dim(0), other.dim(1), other.dim(2), name(own.dtype),
                                    kWaveLanes, c.input_frag_size));
  }
  if (std::ssize(sums) != sum_count(other.dim(1))) {
    throw GeometryError(fmt::format("kv_mma_op: {} sums for {} query tiles: give {}", sums.size(), other.dim(1),
                                    sum_count(other.dim(1))));
  }
  const auto tile_size = static_cast<std::size_t>(c.MMA_M * c.MMA_N);
  std::size_t at = 0;
  for (std::int64_t n = 0; n < other.dim(1); ++n) {
    const std::vector<double> second = fragment_of(other, n, shape);
    for (std::int64_t m = 0; m < c.num_mmas; ++m, at += tile_size) {
      const std::span<double> sum = sums.subspan(at, tile_size);
      std::ranges::copy(mfma_multiply_add(shape.id, fragment_of(own, m, shape), second, sum), sum.begin());
    }
  }
}

void KVMmaOp::mma(const AnyView<4>& other, std::span<double> sums) {
  const KVBufferConstants& c = config_->constants();
  if (c.register_strips < c.num_k_tiles) {
    throw UnsupportedError(fmt::format("kv_mma_op: registers hold {} strips, a tile has {}: multiply strip by strip",
                                       c.register_strips, c.num_k_tiles));
  }
  if (other.dim(0) != c.num_k_tiles * c.num_k_mmas2) {
    throw GeometryError(fmt::format("kv_mma_op: the other operand has {} steps: give {} strips x {} steps = {}",
                                    other.dim(0), c.num_k_tiles, c.num_k_mmas2, c.num_k_tiles * c.num_k_mmas2));
  }
  for (StripIdx strip{0}; strip.value < c.num_k_tiles; ++strip) {
    for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
      const std::int64_t step = strip.value * c.num_k_mmas2 + k;
      mma(k, strip,
          {other.data + step * other.stride(0) * size_of(other.dtype),
           other.dtype,
           {other.dim(1), other.dim(2), other.dim(3)},
           {other.stride(1), other.stride(2), other.stride(3)}},
          sums);
    }
  }
}

}  // namespace kvscope
