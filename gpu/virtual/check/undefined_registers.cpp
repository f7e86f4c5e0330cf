#include "gpu/virtual/check/undefined_registers.h"

#include <algorithm>
#include <array>
#include <bit>

namespace kvscope::ptx {

void UndefinedRegisters::clear(RegisterAt r, LaneMask lanes) {
  LaneMask& all = lanes_[r.reg / 4];
  const LaneMask left = all & ~lanes;
  if (r.bytes == 0) {
    std::memcpy(bits_.data() + r.reg, &left, sizeof left);
  } else {
    for (LaneMask rest = all & lanes; rest != 0; rest &= rest - 1) {
      std::memset(bits_.data() + r.reg + std::countr_zero(rest) * r.bytes, 0, r.bytes);
    }
  }
  set_lanes(all, left);
}

void UndefinedRegisters::assign(RegisterAt r, LaneMask lanes, const std::byte* bits, std::uint32_t origin) {
  LaneMask& all = lanes_[r.reg / 4];
  LaneMask now = 0;
  if (r.bytes == 0) {
    std::memcpy(&now, bits, sizeof now);
    now = (all & ~lanes) | (now & lanes);
    std::memcpy(bits_.data() + r.reg, &now, sizeof now);
  } else {
    now = all & ~lanes;
    for (LaneMask rest = lanes; rest != 0; rest &= rest - 1) {
      const int lane = std::countr_zero(rest);
      const std::byte* const from = bits + lane * r.bytes;
      std::memcpy(bits_.data() + r.reg + lane * r.bytes, from, r.bytes);
      if (std::any_of(from, from + r.bytes, [](std::byte b) { return b != std::byte{0}; })) now |= LaneMask{1} << lane;
    }
  }
  set_lanes(all, now);
  if ((now & lanes) != 0) origins_[r.reg / 4] = origin;
}

void UndefinedRegisters::mark(RegisterAt r, LaneMask lanes, std::uint32_t origin) {
  static constexpr auto kAllBits = [] {
    std::array<std::byte, std::size_t{16} * kLanes> out{};
    out.fill(std::byte{0xff});
    return out;
  }();
  assign(r, lanes, kAllBits.data(), origin);
}

}  // namespace kvscope::ptx
