#include "core/fragment/mma_sync.h"

#include <fmt/format.h>

#include <string>

#include "core/base/errors.h"

namespace kvscope {
namespace {

// Adjacent elements in one 32-bit register of a lane: two of 16 bits, four of 8 bits.
int elements_per_register(MmaSync mma) {
  return mma == MmaSync::m16n8k16 ? 2 : 4;
}

std::string name_of(MmaSync mma, const char* operand) {
  return fmt::format("mma.m16n8k{}, {}", depth_of(mma), operand);
}

// k of element e of register half `half`: each lane of a group has a run, and the four runs repeat half a depth
// further.
int depth_at(MmaSync mma, int t, int e, int half) {
  return elements_per_register(mma) * t + e + depth_of(mma) / 2 * half;
}

void check_count_of(const char* what, MmaSync mma, std::size_t count, int elements) {
  const auto expected = static_cast<std::size_t>(32 * elements);
  if (count == expected) return;
  throw GeometryError(
      fmt::format("{}: {} values, but 32 lanes of {} elements are {}", name_of(mma, what), count, elements, expected));
}

}  // namespace

FragmentMap mma_sync_map(MmaSync mma, MmaOperand operand) {
  const int E = elements_per_register(mma), depth = depth_of(mma);
  switch (operand) {
    case MmaOperand::a:
      return {{name_of(mma, "A"), "row", "k", 32, 4 * E, 16, depth, E}, [&](FragmentPlace at) {
                const int g = at.lane / 4, t = at.lane % 4, reg = at.element / E;
                return TilePlace{g + 8 * (reg % 2), depth_at(mma, t, at.element % E, reg / 2)};
              }};
    case MmaOperand::b:
      return {{name_of(mma, "B"), "k", "n", 32, 2 * E, depth, 8, E}, [&](FragmentPlace at) {
                return TilePlace{depth_at(mma, at.lane % 4, at.element % E, at.element / E), at.lane / 4};
              }};
    case MmaOperand::c:
      break;
  }
  return {{name_of(mma, "C"), "row", "n", 32, 4, 16, 8, 1}, [](FragmentPlace at) {
            return TilePlace{at.lane / 4 + 8 * (at.element / 2), 2 * (at.lane % 4) + at.element % 2};
          }};
}

std::vector<double> mma_sync(MmaSync mma, std::span<const double> a, std::span<const double> b,
                             std::span<const double> c) {
  const FragmentMap a_map = mma_sync_map(mma, MmaOperand::a), b_map = mma_sync_map(mma, MmaOperand::b),
                    c_map = mma_sync_map(mma, MmaOperand::c);
  check_count_of("A", mma, a.size(), a_map.info().elements);
  check_count_of("B", mma, b.size(), b_map.info().elements);
  check_count_of("C", mma, c.size(), c_map.info().elements);
  const auto value = [](std::span<const double> registers, const FragmentMap& map, TilePlace place) {
    const FragmentPlace at = map.fragment_of(place);
    return registers[static_cast<std::size_t>(at.lane * map.info().elements + at.element)];
  };
  std::vector<double> d(c.begin(), c.end());
  for (int lane = 0; lane < 32; ++lane) {
    for (int element = 0; element < 4; ++element) {
      const TilePlace at = c_map.tile_of({lane, element});
      double& sum = d[static_cast<std::size_t>(lane * 4 + element)];
      for (int k = 0; k < depth_of(mma); ++k) sum += value(a, a_map, {at.row, k}) * value(b, b_map, {k, at.column});
    }
  }
  return d;
}

SumSource sum_source_of_p(MmaSync mma, int element) {
  check_index(name_of(mma, "element of P"), element, 4 * elements_per_register(mma));
  if (mma == MmaSync::m16n8k16) return {element / 4, element % 4};
  return {2 * (element / 8) + element % 4 / 2, 2 * (element / 4 % 2) + element % 2};
}

}  // namespace kvscope
