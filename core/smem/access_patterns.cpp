#include "core/smem/access_patterns.h"

#include <fmt/format.h>

#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {
namespace {

// Rows and bytes of one access; the tile must consist of whole accesses.
struct Span {
  std::int64_t rows = 0;
  std::int64_t bytes = 0;
};

void require_whole(const std::string& name, const Span& access, const TileRows& tile, std::int64_t row_bytes) {
  std::vector<Fault> faults;
  if (tile.rows <= 0 || tile.rows % access.rows != 0) {
    faults.push_back({"rows", fmt::format("{} is not a whole number of the {} rows that one access reads: choose {}",
                                          tile.rows, access.rows, access.rows)});
  }
  if (row_bytes <= 0 || row_bytes % access.bytes != 0) {
    faults.push_back({"row bytes", fmt::format("{} is not a whole number of the {} B that one access reads: choose {}",
                                               row_bytes, access.bytes, access.bytes)});
  }
  if (row_bytes > tile.pitch) {
    faults.push_back({"pitch", fmt::format("{} B is less than a row of {} B", tile.pitch, row_bytes)});
  }
  if (!faults.empty()) throw GeometryError(fmt::format("pattern '{}'", name), std::move(faults));
}

// `place(lane)` counts from the first row and byte of an access.
template <class Place>
AccessPattern tiled(std::string name, BankProfile profile, int width, const Span& access, const TileRows& tile,
                    std::int64_t row_bytes, const Place& place) {
  require_whole(name, access, tile, row_bytes);
  AccessPattern pattern{std::move(name), std::move(profile), width, {}};
  for (std::int64_t row = 0; row < tile.rows; row += access.rows) {
    for (std::int64_t byte = 0; byte < row_bytes; byte += access.bytes) {
      auto& lanes = pattern.accesses.emplace_back();
      for (int lane = 0; lane < pattern.profile.lanes; ++lane) {
        const RowByte at = place(lane);
        lanes.push_back(RowByte{row + at.row, byte + at.byte});
      }
    }
  }
  return pattern;
}

}  // namespace

AccessPattern row_pattern(SharedTarget target, int width, const TileRows& tile, std::int64_t row_bytes) {
  BankProfile profile = bank_profile(target, SharedOp::read, width);
  const Span access{1, std::int64_t{width} * profile.lanes};
  return tiled(fmt::format("a row, {} B a lane", width), std::move(profile), width, access, tile, row_bytes,
               [width](int lane) {
                 return RowByte{0, std::int64_t{width} * lane};
               });
}

AccessPattern column_pattern(SharedTarget target, int width, const TileRows& tile, std::int64_t row_bytes) {
  BankProfile profile = bank_profile(target, SharedOp::read, width);
  const Span access{profile.lanes, width};
  return tiled(fmt::format("a column, {} B a lane", width), std::move(profile), width, access, tile, row_bytes,
               [](int lane) {
                 return RowByte{lane, 0};
               });
}

}  // namespace kvscope
