#include "core/fragment/wgmma_descriptor.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr std::int64_t kUnit = 16;                      // [bytes] that start and offsets are counted in
constexpr std::int64_t kOffsetEnd = (1 << 14) * kUnit;  // 14 bits of units
constexpr std::uint64_t kOffsetMask = (1 << 14) - 1;
constexpr std::uint64_t kMustBeZero = 0x3FF1'C000'C000'C000;  // bits 14-15, 30-31, 46-48, 52-61

// Mode of the descriptor's bits 62-63, by SwizzleMode: numbered from the widest down, unlike a tensor map's.
constexpr std::array<std::uint64_t, 4> kModeBits = {0, 3, 2, 1};

SwizzleMode mode_of_bits(std::uint64_t bits) {
  return static_cast<SwizzleMode>(bits == 0 ? 0 : 4 - bits);
}

}  // namespace

std::uint64_t encode(const WgmmaDescriptor& d) {
  std::vector<Fault> faults;
  const auto offset = [&](const char* where, std::int64_t value) {
    if (value < 0 || value >= kOffsetEnd) {
      faults.push_back(
          {where, fmt::format("{} B is outside [0, {}): the field has 14 bits of 16 bytes", value, kOffsetEnd)});
    } else if (value % kUnit != 0) {
      faults.push_back({where, fmt::format("{} B is not a multiple of 16: use {}", value, value / kUnit * kUnit)});
    }
    return static_cast<std::uint64_t>(value) / static_cast<std::uint64_t>(kUnit);
  };
  const std::uint64_t start = offset("start", d.start), leading = offset("leading", d.leading),
                      stride = offset("stride", d.stride);
  if (d.phase < 0 || d.phase > 7) faults.push_back({"phase", fmt::format("{} is outside [0, 8)", d.phase)});
  const auto mode = static_cast<std::size_t>(d.mode);
  if (mode >= kModeBits.size()) faults.push_back({"mode", fmt::format("{} is outside [0, 4)", mode)});
  if (!faults.empty()) throw GeometryError("wgmma descriptor", std::move(faults));
  return start | leading << 16 | stride << 32 | static_cast<std::uint64_t>(d.phase) << 49 | kModeBits[mode] << 62;
}

WgmmaDescriptor decode_wgmma(std::uint64_t bits) {
  if (const std::uint64_t foreign = bits & kMustBeZero; foreign != 0) {
    throw GeometryError(fmt::format("wgmma descriptor 0x{:016x}", bits),
                        {{"reserved bits",
                          fmt::format("0x{:016x} must be 0: an offset of 2^18 B or more, or another kind of descriptor "
                                      "(tcgen05 sets bit 46)",
                                      foreign)}});
  }
  const auto offset = [&](int lowest) { return static_cast<std::int64_t>(bits >> lowest & kOffsetMask) * kUnit; };
  return {offset(0), offset(16), offset(32), static_cast<int>(bits >> 49 & 7), mode_of_bits(bits >> 62)};
}

std::string to_text(const WgmmaDescriptor& d) {
  return fmt::format("start {}, leading {}, stride {}, phase {}, {}", d.start, d.leading, d.stride, d.phase,
                     name(d.mode));
}

std::int64_t wgmma_address(const WgmmaDescriptor& d, WgmmaMajor major, int element_bytes, std::int64_t mn,
                           std::int64_t k) {
  if (d.phase != 0) {
    throw UnsupportedError(
        fmt::format("wgmma descriptor ({}): a pattern out of phase is not modelled: align the tile to "
                    "{} B",
                    to_text(d), 8 * bytes(d.mode)));
  }
  if (major == WgmmaMajor::mn && element_bytes != 2) {
    throw UnsupportedError(
        fmt::format("wgmma takes MN-major operands of 16 bits only, not of {} B elements: transpose on "
                    "the way into shared memory",
                    element_bytes));
  }
  if (element_bytes != 1 && element_bytes != 2 && element_bytes != 4) {
    throw GeometryError("wgmma operand", {{"element", fmt::format("{} B is none of 1, 2, 4", element_bytes)}});
  }
  if (mn < 0 || k < 0) throw IndexError(fmt::format("wgmma element ({}, {}) is below 0", mn, k));

  const std::int64_t T = kUnit / element_bytes, W = bytes(d.mode), c = W / kUnit;
  const bool plain = d.mode == SwizzleMode::none;
  std::int64_t address = d.start;
  if (major == WgmmaMajor::k) {
    address += mn / 8 * d.stride + mn % 8 * W;
    address += plain ? k / T * d.leading + k % T * element_bytes : k * element_bytes;
  } else {
    address += mn % T * element_bytes + k % 8 * W;
    address += plain ? mn / T * d.stride + k / 8 * d.leading
                     : mn / (T * c) * d.leading + mn / T % c * kUnit + k / 8 * d.stride;
  }
  return make_swizzle(DType::e4m3, d.mode)(address);  // of bytes: elements of one
}

}  // namespace kvscope
