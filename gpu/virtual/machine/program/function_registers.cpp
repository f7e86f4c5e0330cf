#include "gpu/virtual/machine/program/detail/function_registers.h"

#include <algorithm>
#include <cstring>

namespace kvscope::ptx {

int register_bytes_of(Type type) {
  if (type == Type::pred) return 0;
  return std::max(2, bits(type) / 8);
}

FunctionRegisters::FunctionRegisters(const Function& function, const std::vector<bool>& used,
                                     const std::vector<std::int32_t>& same_place, FunctionCode& code)
    : code_(code) {
  const std::size_t count = function.registers.size();
  code_.registers.resize(count);
  std::map<std::pair<int, std::int32_t>, std::uint32_t> shared;
  // Narrow registers first: predicates are contiguous, and every later register begins at a multiple of 64.
  for (const int bytes : {0, 2, 4, 8, 16}) {
    for (std::size_t i = 0; i < count; ++i) {
      if (register_bytes_of(function.registers[i].type) != bytes) continue;
      RegisterPlace& r = code_.registers[i];
      r.bytes = static_cast<std::uint8_t>(bytes);
      if (!used[i]) continue;
      if (same_place.empty()) {
        r.reg = take(bytes);
        continue;
      }
      const auto [at, fresh] = shared.try_emplace({bytes, same_place[i]}, kNoRegister);
      if (fresh) at->second = take(bytes);
      r.reg = at->second;
    }
  }
}

std::uint32_t FunctionRegisters::take(int bytes) {
  const std::uint32_t size = bytes == 0 ? 4 : static_cast<std::uint32_t>(bytes * kLanes);
  const std::uint32_t align = std::min(size, 64u);
  const std::uint32_t at = (next_ + align - 1) / align * align;
  next_ = at + size;
  return at;
}

std::uint32_t FunctionRegisters::constant(std::uint64_t bits, int bytes) {
  if (bytes == 0) bits = bits != 0 ? 1 : 0;
  if (bytes > 0 && bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [at, fresh] = constants_.try_emplace({bits, bytes}, kNoRegister);
  if (fresh) at->second = take(bytes);
  return at->second;
}

std::uint32_t FunctionRegisters::special(SpecialRegister special, int bytes) {
  const auto [at, fresh] = specials_.try_emplace({special, bytes}, kNoRegister);
  if (fresh) {
    at->second = take(bytes);
    code_.specials.push_back({special, at->second, static_cast<std::uint8_t>(bytes)});
  }
  return at->second;
}

std::uint32_t FunctionRegisters::address(std::int32_t variable, Space space, std::int64_t offset, int bytes) {
  const auto [at, fresh] = addresses_.try_emplace({variable, offset, bytes}, kNoRegister);
  if (fresh) {
    at->second = take(bytes);
    code_.addresses.push_back({variable, at->second, static_cast<std::uint8_t>(bytes), space, offset});
  }
  return at->second;
}

std::uint32_t FunctionRegisters::carry() {
  if (carry_ == kNoRegister) carry_ = take(0);
  return carry_;
}

void FunctionRegisters::finish() {
  code_.initial.assign((next_ + 63) / 64 * 64, std::byte{0});
  for (const auto& [value, reg] : constants_) {
    const auto [bits, bytes] = value;
    std::byte* to = code_.initial.data() + reg;
    if (bytes == 0) {
      const LaneMask lanes = bits != 0 ? kAllLanes : 0;
      std::memcpy(to, &lanes, sizeof lanes);
      continue;
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(to + lane * bytes, &bits, static_cast<std::size_t>(std::min(bytes, 8)));
    }
  }
}

}  // namespace kvscope::ptx
