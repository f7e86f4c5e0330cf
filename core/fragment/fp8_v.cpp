#include "core/fragment/fp8_v.h"

#include "core/base/errors.h"
#include "core/fragment/mma_sync.h"

namespace kvscope {

std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t{b} << 32 | a;
  std::uint32_t result = 0;
  for (int i = 0; i < 4; ++i) {
    const std::uint32_t nibble = selector >> (4 * i) & 0xF;
    auto byte = static_cast<std::uint32_t>(bytes >> (8 * (nibble & 7)) & 0xFF);
    if ((nibble & 8) != 0) byte = (byte & 0x80) != 0 ? 0xFF : 0x00;
    result |= byte << (8 * i);
  }
  return result;
}

Fp8VOperands fp8_v_operands(const std::array<std::uint32_t, 4>& loaded) {
  constexpr std::uint32_t kEven = 0x6420, kOdd = 0x7531;
  return {{prmt(loaded[0], loaded[1], kEven), prmt(loaded[2], loaded[3], kEven)},
          {prmt(loaded[0], loaded[1], kOdd), prmt(loaded[2], loaded[3], kOdd)}};
}

int fp8_v_key(int k) {
  check_index("k slot of fp8 V", k, 32);
  const int t = k % 16 / 4, j = k % 4;
  return 16 * (k / 16) + 8 * (j / 2) + 2 * t + j % 2;
}

FragmentMap fp8_v_map() {
  const FragmentMap b = mma_sync_map(MmaSync::m16n8k32, MmaOperand::b);
  const int half = b.info().elements;  // of one operand
  return {{"mma.m16n8k32, B of fp8 V, even and odd depths", "key", "depth", 32, 2 * half, 32, 16, 4},
          [&](FragmentPlace at) {
            const TilePlace slot = b.tile_of({at.lane, at.element % half});
            return TilePlace{fp8_v_key(slot.row), 2 * slot.column + at.element / half};
          }};
}

}  // namespace kvscope
