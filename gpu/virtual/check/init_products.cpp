// The undefined elements of a wgmma's result.
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>

#include "gpu/virtual/check/init_checker.h"
#include "gpu/virtual/isa/sparse_metadata.h"
#include "gpu/virtual/machine/matrix/matrix_operand.h"
#include "gpu/virtual/machine/matrix/wgmma.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::ptx {
namespace {

constexpr int kWarpRows = 16;  // of a wgmma's D

std::int32_t constant_at(const Exec& exec, const Op& op, int at) {
  return at < 0 ? 0 : register_of<std::int32_t>(exec, op.list[at])[0];
}

// Whether a wgmma adds to its accumulators; otherwise it does not read them.
bool adds(const Exec& exec, const Op& op, const WgmmaShape& shape) {
  std::uint32_t scale = 0;
  std::memcpy(&scale, exec.registers + op.list[shape.scale_d_at], sizeof scale);
  if (!shape.scale_is_predicate) return scale != 0;
  return ((op.negated >> (shape.metadata_at >= 0 ? 5 : 3) & 1) != 0 ? ~scale & 1 : scale & 1) != 0;
}

// The rows of A, or columns of B, that have an undefined byte in shared memory.
std::vector<bool> undefined_lines(const UndefinedBytes& shared, std::uint64_t descriptor, bool mn_major, Type type,
                                  int first, int lines, int k) {
  std::vector<bool> out(static_cast<std::size_t>(lines));
  const int element_bits = bits(type);
  for (const WgmmaChunk& chunk : wgmma_chunks(descriptor, mn_major, element_bits, first, lines, k)) {
    const std::uint64_t bytes = shared.mask(chunk.offset, kWgmmaChunkBytes);
    if (bytes == 0) continue;
    const int at = chunk.mn - first;
    if (!mn_major) {
      out[static_cast<std::size_t>(at)] = true;
      continue;
    }
    for (std::uint64_t left = bytes; left != 0; left &= left - 1)
      out[static_cast<std::size_t>(at + std::countr_zero(left) * 8 / element_bits)] = true;
  }
  return out;
}

// The rows of a warp whose metadata has an undefined bit, and marks them in `rows`.
void add_undefined_metadata(const Exec& exec, const Op& op, const WgmmaShape& shape,
                            const UndefinedRegisters& registers, std::vector<bool>& rows) {
  const int element_bits = bits(exec.program().instr(op).type(1)), chunks = shape.k / metadata_chunk(element_bits);
  std::array<std::uint32_t, kLanes> undefined{};
  std::memcpy(undefined.data(), registers.bits(op.list[shape.metadata_at]), sizeof undefined);
  for (int row = 0; row < kWarpRows; ++row) {
    for (int chunk = 0; chunk < chunks; ++chunk) {
      const MetadataPlace at =
          metadata_place(element_bits, shape.k, constant_at(exec, op, shape.selector_at), row, chunk);
      if ((undefined[static_cast<std::size_t>(at.lane)] >> at.bit & 0xf) != 0)
        rows[static_cast<std::size_t>(row)] = true;
    }
  }
}

// The elements of D that depend on an undefined element of B, [16][n]: the metadata of a row selects the rows of B that
// it multiplies.
std::vector<bool> undefined_selected(const Exec& exec, const Op& op, const WgmmaShape& shape,
                                     const UndefinedBytes& shared, std::uint64_t descriptor) {
  const Instr& instr = exec.program().instr(op);
  const int n = shape.n, element_bits = bits(instr.type(1));
  const bool mn_major = constant_at(exec, op, shape.trans_b_at) != 0;
  std::vector<bool> elements(static_cast<std::size_t>(shape.k * n));  // [k][n]
  for (const WgmmaChunk& chunk : wgmma_chunks(descriptor, mn_major, element_bits, 0, n, shape.k)) {
    for (std::uint64_t left = shared.mask(chunk.offset, kWgmmaChunkBytes); left != 0; left &= left - 1) {
      const int i = std::countr_zero(left) * 8 / element_bits;
      const int k = chunk.k + (mn_major ? 0 : i), column = chunk.mn + (mn_major ? i : 0);
      elements[static_cast<std::size_t>(k * n + column)] = true;
    }
  }
  std::array<std::uint32_t, kLanes> words{};
  std::memcpy(words.data(), exec.registers + op.list[shape.metadata_at], sizeof words);
  std::vector<std::uint16_t> selected(static_cast<std::size_t>(kWarpRows * shape.a_k));
  metadata_columns(element_bits, shape.k, constant_at(exec, op, shape.selector_at), words.data(), selected.data());
  std::vector<bool> out(static_cast<std::size_t>(kWarpRows * n));
  for (int row = 0; row < kWarpRows; ++row) {
    for (int j = 0; j < shape.a_k; ++j) {
      const int k = selected[static_cast<std::size_t>(row * shape.a_k + j)];
      for (int column = 0; column < n; ++column) {
        if (elements[static_cast<std::size_t>(k * n + column)]) out[static_cast<std::size_t>(row * n + column)] = true;
      }
    }
  }
  return out;
}

}  // namespace

// D has an undefined element in each row of A, and each column of B, that has one.
void InitChecker::product_of_warpgroup(const Exec& exec, const Op& op, const AsyncOp& async, ByteRanges reads) {
  UndefinedBytes* const shared =
      shared_of(exec.launch, exec.cta, shared_address(static_cast<std::uint64_t>(exec.cta.cluster_rank), kSharedBase));
  std::optional<std::uint32_t> origin;
  for (const ByteRange& range : reads) {
    const std::int64_t first = shared == nullptr ? -1 : shared->first(offset_of(range.address), range.bytes);
    if (first < 0) continue;
    origin = origin_at(exec, op, Space::shared, range.address + static_cast<std::uint64_t>(first),
                       async.thread % kLanes, range.bytes - first);
    break;
  }
  WarpState* warp = active_warp(exec);
  if (!origin && warp == nullptr) return;
  if (warp == nullptr) warp = &warp_of(exec.cta, exec.warp);
  activate(exec, *warp);
  UndefinedRegisters& registers = registers_of(exec, *warp);
  const WgmmaShape shape = wgmma_shape(exec, op);
  const Instr& instr = exec.program().instr(op);
  const std::uint32_t scale = op.list[shape.scale_d_at];
  use(exec, op, registers, {scale, static_cast<std::uint8_t>(shape.scale_is_predicate ? 0 : 4)}, kAllLanes,
      "decides whether a product adds to its accumulators");
  use(exec, op, registers, {op.list[shape.b_at], 8}, kAllLanes, "is part of an address");
  std::vector<bool> rows(kWarpRows), columns(static_cast<std::size_t>(shape.n));
  const auto take = [&](std::uint32_t reg) {
    name_unwritten(exec, op, registers, reg, kAllLanes);
    if (!origin && registers.lanes(reg) != 0) origin = registers.origin(reg);
  };
  if (shape.a_registers == 0) {
    use(exec, op, registers, {op.list[shape.a_at], 8}, kAllLanes, "is part of an address");
  }
  for (int r = 0; r < shape.a_registers; ++r) {
    const std::uint32_t reg = op.list[shape.a_at + r];
    take(reg);
    for (int lane = 0; lane < kLanes; ++lane) {
      if ((registers.lanes(reg) >> lane & 1) != 0) rows[static_cast<std::size_t>(lane / 4 + 8 * (r % 2))] = true;
    }
  }
  std::vector<bool> selected;  // of a sparse A
  if (shape.metadata_at >= 0) {
    take(op.list[shape.metadata_at]);
    add_undefined_metadata(exec, op, shape, registers, rows);
  }
  if (shared != nullptr) {
    const auto descriptor = [&](int at) { return register_of<std::uint64_t>(exec, op.list[at])[0]; };
    if (shape.metadata_at >= 0) {
      selected = undefined_selected(exec, op, shape, *shared, descriptor(shape.b_at));
    } else {
      columns = undefined_lines(*shared, descriptor(shape.b_at), constant_at(exec, op, shape.trans_b_at) != 0,
                                instr.type(2), 0, shape.n, shape.k);
    }
    if (shape.a_registers == 0) {
      const std::vector<bool> in_a =
          undefined_lines(*shared, descriptor(shape.a_at), constant_at(exec, op, shape.trans_a_at) != 0, instr.type(1),
                          kWarpRows * (exec.warp.index % 4), kWarpRows, shape.a_k);
      for (std::size_t row = 0; row < in_a.size(); ++row) rows[row] = rows[row] || in_a[row];
    }
  }
  const bool halves = instr.type(0) == Type::f16;
  const bool keeps = adds(exec, op, shape);
  for (int i = 0; i < shape.d_registers; ++i) {
    const RegisterAt d{op.list[i], 4};
    if (keeps) take(d.reg);
    std::array<std::uint32_t, kLanes> bits{};
    for (int lane = 0; lane < kLanes; ++lane) {
      const auto old = keeps ? static_cast<std::uint32_t>(registers.bits(d, lane)) : 0;
      std::uint32_t& out = bits[static_cast<std::size_t>(lane)];
      for (int half = 0; half < (halves ? 2 : 1); ++half) {
        const std::uint32_t element = !halves ? 0xffffffffU : 0xffffU << (16 * half);
        const int row = lane / 4 + 8 * (halves ? i % 2 : i / 2 % 2);
        const int column = halves ? 8 * (i / 2) + 2 * (lane % 4) + half : 8 * (i / 4) + 2 * (lane % 4) + i % 2;
        const bool of_b = selected.empty() ? columns[static_cast<std::size_t>(column)]
                                           : selected[static_cast<std::size_t>(row * shape.n + column)];
        if ((old & element) != 0 || rows[static_cast<std::size_t>(row)] || of_b) out |= element;
      }
    }
    registers.assign(d, kAllLanes, std::as_bytes(std::span(bits)).data(), origin.value_or(0));
  }
  deactivate_if_clean(exec, *warp);
}

}  // namespace kvscope::ptx
