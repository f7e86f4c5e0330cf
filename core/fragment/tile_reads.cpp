#include "core/fragment/tile_reads.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

void check_whole_pieces(const std::string& object, const TileRows& tile, int rows, int row_bytes) {
  std::vector<Fault> faults;
  const auto check = [&](const char* where, std::int64_t value, int piece) {
    if (value < piece || value % piece != 0) {
      faults.push_back({where, fmt::format("{} is not a multiple of {}, what one read takes: use {}", value, piece,
                                           value < piece ? piece : round_up(value, piece))});
    }
  };
  check("rows", tile.rows, rows);
  check("pitch", tile.pitch, row_bytes);
  if (!faults.empty()) throw GeometryError(object, std::move(faults));
}

}  // namespace

AccessPattern ldmatrix_reads(LdmatrixUse use, int element_bytes, const TileRows& tile) {
  const FragmentInfo piece = ldmatrix_map(use, element_bytes).info();
  const int row_bytes = piece.columns * element_bytes;
  check_whole_pieces(fmt::format("tile read by {}", piece.name), tile, piece.rows, row_bytes);
  AccessPattern pattern{piece.name, bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16), 16, {}};
  for (std::int64_t row = 0; row < tile.rows; row += piece.rows) {
    for (std::int64_t byte = 0; byte < tile.pitch; byte += row_bytes) {
      auto& access = pattern.accesses.emplace_back();
      for (int lane = 0; lane < 32; ++lane) {
        const TilePlace at = ldmatrix_row(use, element_bytes, lane);
        access.emplace_back(RowByte{row + at.row, byte + std::int64_t{at.column} * element_bytes});
      }
    }
  }
  return pattern;
}

AccessPattern mfma_k_reads(Mfma mfma, SharedTarget target, const TileRows& tile) {
  if (target == SharedTarget::nvidia) {
    throw UnsupportedError("mfma is an instruction of AMD: use gfx942 or gfx950");
  }
  const MfmaShape& shape = mfma_shape(mfma);
  const FragmentMap map = mfma_k_map(mfma);
  const int row_bytes = shape.K * shape.element_bytes;
  check_whole_pieces(fmt::format("tile read by {}", map.info().name), tile, shape.M, row_bytes);
  AccessPattern pattern{map.info().name, bank_profile(target, SharedOp::read, 16), 16, {}};
  for (std::int64_t row = 0; row < tile.rows; row += shape.M) {
    for (std::int64_t byte = 0; byte < tile.pitch; byte += row_bytes) {
      for (int first = 0; first < shape.elements; first += shape.vector()) {  // of the 16 bytes that one read brings
        auto& access = pattern.accesses.emplace_back();
        for (int lane = 0; lane < 64; ++lane) {
          const TilePlace at = map.tile_of({lane, first});
          access.emplace_back(RowByte{row + at.row, byte + std::int64_t{at.column} * shape.element_bytes});
        }
      }
    }
  }
  return pattern;
}

}  // namespace kvscope
