#include "gpu/virtual/machine/program/function_registers.h"

#include <algorithm>
#include <cstring>

namespace kvscope::ptx {

int row_bytes_of(Type type) {
  if (type == Type::pred) return 0;
  return std::max(2, bits(type) / 8);
}

FunctionRows::FunctionRows(const Function& function, const std::vector<bool>& used,
                           const std::vector<std::int32_t>& same_row, FunctionCode& code)
    : code_(code) {
  const std::size_t count = function.registers.size();
  code_.registers.resize(count);
  std::map<std::pair<int, std::int32_t>, std::uint32_t> shared;
  // Narrow rows first: predicates lie side by side, and every later row begins at a multiple of 64.
  for (const int bytes : {0, 2, 4, 8, 16}) {
    for (std::size_t i = 0; i < count; ++i) {
      if (row_bytes_of(function.registers[i].type) != bytes) continue;
      RegisterRow& r = code_.registers[i];
      r.bytes = static_cast<std::uint8_t>(bytes);
      if (!used[i]) continue;
      if (same_row.empty()) {
        r.row = take(bytes);
        continue;
      }
      const auto [at, fresh] = shared.try_emplace({bytes, same_row[i]}, kNoRow);
      if (fresh) at->second = take(bytes);
      r.row = at->second;
    }
  }
}

std::uint32_t FunctionRows::take(int bytes) {
  const std::uint32_t size = bytes == 0 ? 4 : static_cast<std::uint32_t>(bytes * kLanes);
  const std::uint32_t align = std::min(size, 64u);
  const std::uint32_t at = (next_ + align - 1) / align * align;
  next_ = at + size;
  return at;
}

std::uint32_t FunctionRows::constant(std::uint64_t bits, int bytes) {
  if (bytes == 0) bits = bits != 0 ? 1 : 0;
  if (bytes > 0 && bytes < 8) bits &= (std::uint64_t{1} << (8 * bytes)) - 1;
  const auto [at, fresh] = constants_.try_emplace({bits, bytes}, kNoRow);
  if (fresh) at->second = take(bytes);
  return at->second;
}

std::uint32_t FunctionRows::special(SpecialRegister special, int bytes) {
  const auto [at, fresh] = specials_.try_emplace({special, bytes}, kNoRow);
  if (fresh) {
    at->second = take(bytes);
    code_.specials.push_back({special, at->second, static_cast<std::uint8_t>(bytes)});
  }
  return at->second;
}

std::uint32_t FunctionRows::address(std::int32_t variable, Space space, std::int64_t offset, int bytes) {
  const auto [at, fresh] = addresses_.try_emplace({variable, offset, bytes}, kNoRow);
  if (fresh) {
    at->second = take(bytes);
    code_.addresses.push_back({variable, at->second, static_cast<std::uint8_t>(bytes), space, offset});
  }
  return at->second;
}

std::uint32_t FunctionRows::carry() {
  if (carry_ == kNoRow) carry_ = take(0);
  return carry_;
}

void FunctionRows::finish() {
  code_.initial.assign((next_ + 63) / 64 * 64, std::byte{0});
  for (const auto& [value, row] : constants_) {
    const auto [bits, bytes] = value;
    std::byte* to = code_.initial.data() + row;
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
