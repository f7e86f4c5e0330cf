#include "gpu/virtual/machine/tensor/detail/tensor_operands.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "gpu/virtual/machine/copies/async.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/tensor/detail/tensor_handlers.h"

namespace kvscope::ptx {
namespace {

constexpr int kTensorMetadataRows = 16;  // that share 16 lanes

std::vector<std::uint64_t> chunk_offsets(const std::vector<WgmmaChunk>& chunks) {
  std::vector<std::uint64_t> offsets;
  offsets.reserve(chunks.size());
  for (const WgmmaChunk& chunk : chunks) offsets.push_back(chunk.offset);
  return offsets;
}

void require_lane(std::string_view what, std::uint32_t address, bool fits, std::string_view allowed) {
  if (fits) return;
  throw GeometryError(
      fmt::format("{} at 0x{:08x} begins in lane {}: {}", what, address, tensor_address(address).lane, allowed));
}

// Scales of `count` rows or columns.
std::vector<TensorRegion> scale_regions(std::uint32_t address, int count) {
  const TensorAddress at = tensor_address(address & 0x3fffffff);  // bits 30 and 31 may carry the byte
  return {{static_cast<std::int32_t>(at.lane), kTensorLanes, static_cast<std::int32_t>(at.column), (count + 31) / 32}};
}

// Lane of row `row` of the metadata's first half of a row, from the address' lane on: as A has its rows in tensor memory.
// Rows of 16 are contiguous in each layout.
int metadata_lane(const ProductParts& parts, int row) {
  return parts.p.weight_stationary ? row : cell_of(parts.a, row, 0, 1).lane;
}
// One column, or two where a row has 64 bits.
int metadata_width(const TensorProduct& p) {
  return stored_bits(p.a) >= 16 ? 1 : 2;
}

std::vector<TensorRegion> metadata_regions(const ProductParts& parts, TensorAddress at) {
  std::vector<TensorRegion> out;
  for (int row = 0; row < parts.rows; row += kTensorMetadataRows) {
    out.push_back({static_cast<std::int32_t>(at.lane) + metadata_lane(parts, row), kTensorMetadataRows,
                   static_cast<std::int32_t>(at.column) + parts.p.selector, metadata_width(parts.p)});
  }
  return out;
}

}  // namespace

MetadataCell metadata_cell(const ProductParts& parts, int row, int chunk) {
  const int first = row % kTensorMetadataRows, lane = metadata_lane(parts, row - first);
  if (stored_bits(parts.p.a) < 16) return {lane + first, chunk / 8, 4 * (chunk % 8)};
  return {lane + first % 8 + 8 * (chunk / 4), parts.p.selector, 16 * (first / 8) + 4 * (chunk % 4)};
}

std::vector<ByteRange> TensorUse::ranges() const {
  std::vector<ByteRange> out;
  for (const Bytes& part : bytes) {
    std::vector<std::uint64_t> offsets = part.offsets;
    std::sort(offsets.begin(), offsets.end());
    offsets.erase(std::unique(offsets.begin(), offsets.end()), offsets.end());
    const auto rank = static_cast<std::uint64_t>(part.cta->cluster_rank);
    for (const std::uint64_t offset : offsets) {
      const std::uint64_t address = shared_address(rank, offset);
      if (!out.empty() && out.back().address + static_cast<std::uint64_t>(out.back().bytes) == address) {
        out.back().bytes += kWgmmaChunkBytes;
      } else {
        out.push_back({Space::shared, address, kWgmmaChunkBytes});
      }
    }
  }
  return out;
}

const Instr& instr_of(const Launch& launch, const TensorOp& t) {
  return launch.program->instr(launch.program->ops[static_cast<std::size_t>(t.op.pc)]);
}

ProductParts parts_of(const Launch& launch, const TensorOp& t) {
  ProductParts parts;
  parts.p = product_of(instr_of(launch, t), t.description);
  const TensorProduct& p = parts.p;
  parts.ctas = p.pair ? 2 : 1;
  parts.rows = p.m / parts.ctas;
  parts.columns = p.n / parts.ctas;
  parts.d = layout_of_product(p.m, p.pair, p.weight_stationary);
  // A is not folded: with a pair and M 128, both halves of the lanes hold it, one for each half of D's columns.
  parts.a = p.pair ? TensorLayout::a : p.m == 64 ? TensorLayout::f : TensorLayout::d;
  parts.a_cells = stored_columns(p) * stored_bits(p.a) / 32;
  return parts;
}

TensorUse use_of_product(Launch& launch, Cta& cta, const TensorOp& t) {
  const ProductParts parts = parts_of(launch, t);
  const TensorProduct& p = parts.p;
  if (t.a_in_tensor && p.weight_stationary && p.m != 128)
    throw UnsupportedError("tcgen05.mma.ws with A in tensor memory and M below 128 is not modeled");
  if (t.a_in_tensor && p.a_along_m)
    throw GeometryError("A in tensor memory must be K-major: bit 15 of the descriptor is 1");
  const int skipped = column_mask_of(p, t.zero_columns).skipped;
  const TensorAddress d = tensor_address(t.d);
  const bool half = parts.d == TensorLayout::f;
  require_lane("D", t.d, d.lane == 0 || (half && d.lane == 16), half ? "0 or 16 with M 64" : "0");
  TensorUse use;
  for (Cta* const part : ctas_of(launch, cta, p.pair)) {
    if (t.a_in_tensor) {
      require_lane("A", t.a_tensor, tensor_address(t.a_tensor).lane == d.lane, "the lane of D");
      use.cells.push_back(
          {"A", AccessKind::load, part, regions_of(parts.a, parts.a_cells, tensor_address(t.a_tensor))});
    } else {
      use.bytes.push_back(
          {"A", part,
           chunk_offsets(tcgen05_chunks(t.a, p.a_along_m, stored_bits(p.a), parts.rows, stored_columns(p)))});
    }
    use.bytes.push_back(
        {"B", part, chunk_offsets(tcgen05_chunks(t.b, p.b_along_n, stored_bits(p.b), parts.columns + skipped, p.k))});
    if (p.sparse) {
      const TensorAddress metadata = tensor_address(t.metadata);
      const bool fits =
          p.weight_stationary ? metadata.lane % p.m == 0 && metadata.lane < kTensorLanes : metadata.lane == d.lane;
      require_lane("metadata of A", t.metadata, fits,
                   p.weight_stationary ? fmt::format("a multiple of M, {}", p.m) : "the lane of D");
      use.cells.push_back({"metadata of A", AccessKind::load, part, metadata_regions(parts, metadata)});
    }
    if (p.scales > 0) {
      require_lane("scales of A", t.a_scales, (t.a_scales >> 16 & 0x3fff) == 0, "0");
      require_lane("scales of B", t.b_scales, (t.b_scales >> 16 & 0x3fff) == 0, "0");
      use.cells.push_back({"scales of A", AccessKind::load, part, scale_regions(t.a_scales, parts.rows)});
      use.cells.push_back({"scales of B", AccessKind::load, part, scale_regions(t.b_scales, p.n)});
    }
    const std::vector<TensorRegion> of_d = regions_of(parts.d, p.n, d);
    if (t.adds) use.cells.push_back({"D", AccessKind::load, part, of_d});
    use.cells.push_back({"D", AccessKind::store, part, of_d});
  }
  return use;
}

TensorCopy copy_of(const Instr& instr) {
  TensorCopy copy;
  copy.rows = instr.has(Mod::shape_64x128b)   ? 64
              : instr.has(Mod::shape_32x128b) ? 32
              : instr.has(Mod::shape_4x256b)  ? 4
                                              : 128;
  copy.row_bytes = instr.has(Mod::shape_128x256b) || instr.has(Mod::shape_4x256b) ? 32 : 16;
  if (instr.has(Mod::b6x16_p32)) copy.form = TensorCopy::Form::six_bits;
  if (instr.has(Mod::b4x16_p64)) copy.form = TensorCopy::Form::four_bits;
  return copy;
}

std::vector<int> lanes_of_row(const Instr& instr, int r) {
  if (instr.has(Mod::warpx2_02_13)) return {r, r + 64};
  if (instr.has(Mod::warpx2_01_23)) return {r + 32 * (r / 32), r + 32 * (r / 32) + 32};
  if (instr.has(Mod::warpx4)) return {r, r + 32, r + 64, r + 96};
  if (instr.has(Mod::shape_4x256b)) return {32 * r};
  return {r};
}

TensorUse use_of_copy(Launch& launch, Cta& cta, const TensorOp& t) {
  const Instr& instr = instr_of(launch, t);
  const TensorCopy copy = copy_of(instr);
  const TensorAddress to = tensor_address(t.d);
  const bool four = instr.has(Mod::shape_4x256b);
  require_lane("the destination", t.d, to.lane == 0 || (four && to.lane < 32), four ? "0 to 31" : "0");
  TensorUse use;
  for (Cta* const part : ctas_of(launch, cta, instr.has(Mod::cta_group_2))) {
    use.bytes.push_back({"the source", part, chunk_offsets(tcgen05_chunks(t.a, false, 8, copy.rows, copy.row_bytes))});
    std::vector<TensorRegion> regions;
    const auto column = static_cast<std::int32_t>(to.column);
    if (four) {
      for (int r = 0; r < copy.rows; ++r)
        regions.push_back({static_cast<std::int32_t>(to.lane) + 32 * r, 1, column, copy.row_bytes / 4});
    } else {
      regions.push_back({0, kTensorLanes, column, copy.row_bytes / 4});
    }
    use.cells.push_back({"its destination", AccessKind::store, part, std::move(regions)});
  }
  return use;
}

}  // namespace kvscope::ptx
