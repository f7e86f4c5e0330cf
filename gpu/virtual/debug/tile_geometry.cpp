#include "gpu/virtual/debug/tile_geometry.h"

#include <algorithm>
#include <array>
#include <bit>

#include "gpu/virtual/machine/copies/tensor_box.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kGeometryBanks = 32, kBankLine = 128;  // [bytes]
constexpr std::int64_t kRowOfMatrix = 16;                     // [bytes]
constexpr std::int64_t kRegisterBytes = 4;
constexpr int kMatrixRows = 8;

}  // namespace

ReadForm read_form(const Instr& instr, const WarpAccess& access) {
  using trace::ReadInstruction;
  if (!access.matrix_rows) return {ReadInstruction::ld_shared, access.bytes};
  return {instr.has(Mod::trans) ? ReadInstruction::ldmatrix_trans : ReadInstruction::ldmatrix, kRowOfMatrix};
}

trace::TileMap map_geometry(const CopyMap& map, std::size_t row_axis, std::optional<std::size_t> head_axis,
                            bool gather) {
  const auto number = [](auto of_map) { return static_cast<std::int64_t>(of_map); };
  trace::TileMap e;
  e.columns = number(map.dims[0]);
  e.heads = head_axis ? number(map.dims[*head_axis]) : 1;
  e.rows = number(map.dims[row_axis]);
  e.box_columns = number(map.box[0]);
  e.box_heads = head_axis ? number(map.box[*head_axis]) : 1;
  e.box_rows = gather ? 4 : number(map.box[row_axis]);
  return e;
}

std::optional<trace::TileShared> shared_geometry(const CopyMap& map, std::int64_t base, std::int64_t rows) {
  const SwizzleBits& bits = map.swizzle_mode().bits;
  if (bits.halves != 0 || (static_cast<std::uint64_t>(base) & bits.read) != 0) return std::nullopt;
  trace::TileShared e;
  e.rows = rows;
  e.row_bytes = box_size(map).pitch;
  if (bits.active()) {
    e.swizzle_bits = std::popcount(bits.read);
    e.swizzle_base = std::countr_zero(bits.read) - bits.down;
    e.swizzle_shift = bits.down;
  }
  e.banks = kGeometryBanks;
  e.stages = 1;
  return e;
}

trace::TileShared line_geometry(std::int64_t bytes, std::int64_t stages, bool swizzled) {
  const std::int64_t lines = std::max<std::int64_t>((bytes + kBankLine - 1) / kBankLine, 1);
  return {lines, kBankLine, swizzled ? -1 : 0, 0, 0, kGeometryBanks, stages};
}

// 32 lanes of at most 4 bytes, 16 of 8 bytes, 8 of 16 bytes (wavefronts.h).
std::vector<trace::BankPhase> bank_phases(std::int64_t bytes) {
  const std::int64_t lanes = kLanes / std::max<std::int64_t>(bytes / kRegisterBytes, 1);
  std::vector<trace::BankPhase> phases;
  for (std::int64_t first = 0; first < kLanes; first += lanes) {
    phases.push_back({static_cast<std::int64_t>(phases.size()), ((std::int64_t{1} << lanes) - 1) << first, 0});
  }
  return phases;
}

trace::OperandRead operand_geometry(std::uint64_t descriptor) {
  const auto bytes_at = [&](int lowest) { return static_cast<std::int64_t>(descriptor >> lowest & 0x3fff) * 16; };
  constexpr std::array<std::int64_t, 4> kSpans = {0, 128, 64, 32};
  trace::OperandRead e;
  e.start = bytes_at(0);
  e.leading = bytes_at(16);
  e.stride = bytes_at(32);
  e.span = kSpans[descriptor >> 62];
  return e;
}

void TileOrigins::extend(const trace::TileOpened& opened, const trace::TileShared& shared, std::int64_t base) {
  const std::int64_t band = shared.rows * shared.row_bytes;
  if (empty() || shared.swizzle_bits < 0 || band < kRowOfMatrix || shared.row_bytes % element_bytes_ != 0) return;
  const std::int64_t of_band = shared.row_bytes / element_bytes_;
  const std::int64_t read = ((std::int64_t{1} << shared.swizzle_bits) - 1)
                            << (shared.swizzle_base + shared.swizzle_shift);
  const auto place_of = [&](std::int64_t offset) {
    const std::int64_t plain = offset ^ ((offset & read) >> shared.swizzle_shift), in = plain % band;
    return Place{in / shared.row_bytes, plain / band * of_band + in % shared.row_bytes / element_bytes_};
  };
  for (const auto& [slot, place] : chunks_) {
    const Place formula = place_of(slot * kRowOfMatrix - base);
    if (formula.row != place.row || formula.column != place.column) return;
  }
  for (std::int64_t offset = 0; offset + kRowOfMatrix <= opened.bytes; offset += kRowOfMatrix) {
    const Place place = place_of(offset);
    if (place.row < opened.rows && place.column < opened.columns) {
      chunks_.try_emplace((base + offset) / kRowOfMatrix, place);
    }
  }
}

TileOrigins::Byte TileOrigins::byte_at(std::int64_t shared) const {
  const auto found = chunks_.find(shared / kRowOfMatrix);
  if (shared < 0 || found == chunks_.end()) return {};
  const std::int64_t in = shared % kRowOfMatrix;
  return {found->second.row, found->second.column + in / element_bytes_, in % element_bytes_};
}

// One event for each run of elements that are neighbors in a row or in a column of the tile.
void TileOrigins::add_register(trace::RegisterFilled e, std::span<const Byte> bytes,
                               std::vector<trace::RegisterFilled>& out) const {
  const auto size = static_cast<std::size_t>(element_bytes_);
  bool open = false;  // `e` counts elements
  const auto close = [&] {
    if (open) out.push_back(e);
    open = false;
  };
  for (std::size_t at = 0; at + size <= bytes.size(); at += size) {
    const Byte& first = bytes[at];
    bool whole = first.row >= 0 && first.part == 0;
    for (std::size_t n = 1; whole && n < size; ++n) {
      const Byte& next = bytes[at + n];
      whole = next.row == first.row && next.column == first.column && next.part == static_cast<std::int64_t>(n);
    }
    if (!whole) {
      close();
      continue;
    }
    const bool along = first.row == e.row && first.column == e.column + e.elements;
    const bool down = first.column == e.column && first.row == e.row + e.elements;
    if (open && (e.elements == 1 ? along || down : e.down ? down : along)) {
      e.down = e.elements == 1 ? down : e.down;
      ++e.elements;
      continue;
    }
    close();
    open = true;
    e.bit = static_cast<std::int64_t>(8 * at);
    e.row = first.row;
    e.column = first.column;
    e.elements = 1;
    e.down = false;
  }
  close();
}

std::vector<trace::RegisterFilled> TileOrigins::fills(const ReadForm& form,
                                                      std::span<const std::pair<int, std::int64_t>> addresses) const {
  std::vector<trace::RegisterFilled> out;
  if (empty()) return out;
  trace::RegisterFilled e;
  std::array<Byte, kRegisterBytes> bytes;
  if (form.instruction == trace::ReadInstruction::ld_shared) {
    for (const auto& [lane, shared] : addresses) {
      for (std::int64_t from = 0; from < form.bytes; from += kRegisterBytes) {
        const std::int64_t count = std::min(form.bytes - from, kRegisterBytes);
        for (std::int64_t n = 0; n < count; ++n) bytes[static_cast<std::size_t>(n)] = byte_at(shared + from + n);
        e.lane = lane;
        e.index = from / kRegisterBytes;
        add_register(e, std::span(bytes).first(static_cast<std::size_t>(count)), out);
      }
    }
    return out;
  }
  // ldmatrix: lane 8 m + r names row r of matrix m, which fills register m of every lane. Lane 4 g + t receives bytes
  // 4 t to 4 t + 3 of row g; with .trans, 16-bit element g of rows 2 t and 2 t + 1.
  std::array<std::int64_t, kLanes> rows;
  rows.fill(-1);
  for (const auto& [lane, shared] : addresses) rows[static_cast<std::size_t>(lane)] = shared;
  const bool trans = form.instruction == trace::ReadInstruction::ldmatrix_trans;
  for (int lane = 0; lane < kLanes; ++lane) {
    const int g = lane / 4, t = lane % 4;
    for (int matrix = 0; matrix < kLanes / kMatrixRows; ++matrix) {
      for (int n = 0; n < kRegisterBytes; ++n) {
        const int row = trans ? 2 * t + n / 2 : g, byte = trans ? 2 * g + n % 2 : 4 * t + n;
        const std::int64_t from = rows[static_cast<std::size_t>(kMatrixRows * matrix + row)];
        bytes[static_cast<std::size_t>(n)] = from < 0 ? Byte{} : byte_at(from + byte);
      }
      e.lane = lane;
      e.index = matrix;
      add_register(e, bytes, out);
    }
  }
  return out;
}

}  // namespace kvscope::ptx
