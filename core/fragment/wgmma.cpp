#include "core/fragment/wgmma.h"

#include <fmt/format.h>

#include <utility>

#include "core/base/errors.h"

namespace kvscope {

FragmentMap wgmma_sum_map(int N) {
  if (N < 8 || N > 256 || N % 8 != 0) {
    throw GeometryError("wgmma", {{"N", fmt::format("{} is not a multiple of 8 in [8, 256]", N)}});
  }
  return {{fmt::format("wgmma.m64n{}, D", N), "row", "n", 128, N / 2, 64, N, 1}, [](FragmentPlace at) {
            const int warp = at.lane / 32, g = at.lane % 32 / 4, t = at.lane % 4;
            return TilePlace{16 * warp + g + 8 * (at.element / 2 % 2), 8 * (at.element / 4) + 2 * t + at.element % 2};
          }};
}

FragmentMap wgmma_a_map(MmaSync depth) {
  const FragmentMap warp = mma_sync_map(depth, MmaOperand::a);
  FragmentInfo info = warp.info();
  info.name = fmt::format("wgmma.m64k{}, A in registers", depth_of(depth));
  info.lanes = 128;
  info.rows = 64;
  return {std::move(info), [&](FragmentPlace at) {
            const TilePlace place = warp.tile_of({at.lane % 32, at.element});
            return TilePlace{16 * (at.lane / 32) + place.row, place.column};
          }};
}

}  // namespace kvscope
