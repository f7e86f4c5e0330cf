#include "core/fragment/wgmma_descriptor.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr std::int64_t kUnit = 16;                      // [bytes] the unit of start and offsets
constexpr std::int64_t kOffsetEnd = (1 << 14) * kUnit;  // 14 bits of units
constexpr std::uint64_t kOffsetMask = (1 << 14) - 1;

// What differs between the two engines. Modes by SwizzleMode: numbered from the widest down, unlike a tensor map's.
struct Format {
  std::string_view name;
  std::uint64_t version;       // in bits 46-47
  std::uint64_t must_be_zero;  // bits of no field
  int mode_shift;
  std::array<std::uint64_t, 4> modes;
};
constexpr Format kWgmma = {"wgmma descriptor", 0, 0x3FF1'0000'C000'C000, 62, {0, 3, 2, 1}};
constexpr Format kTcgen05 = {"tcgen05 descriptor", 1, 0x1FF1'0000'C000'C000, 61, {0, 6, 4, 2}};

std::uint64_t encode(const WgmmaDescriptor& d, const Format& format) {
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
  if (mode >= format.modes.size()) faults.push_back({"mode", fmt::format("{} is outside [0, 4)", mode)});
  if (!faults.empty()) throw GeometryError(format.name, std::move(faults));
  return start | leading << 16 | stride << 32 | format.version << 46 | static_cast<std::uint64_t>(d.phase) << 49 |
         format.modes[mode] << format.mode_shift;
}

WgmmaDescriptor decode(std::uint64_t bits, const Format& format) {
  const std::string object = fmt::format("{} 0x{:016x}", format.name, bits);
  std::vector<Fault> faults;
  if (const std::uint64_t foreign = bits & format.must_be_zero; foreign != 0) {
    faults.push_back({"reserved bits", fmt::format("0x{:016x} must be 0: is an offset 2^18 B or more?", foreign)});
  }
  if (const std::uint64_t version = bits >> 46 & 3; version != format.version) {
    faults.push_back({"version", fmt::format("{} in bits 46-47, but it is 0 for wgmma and 1 for tcgen05", version)});
  }
  if (!faults.empty()) throw GeometryError(object, std::move(faults));
  const std::uint64_t code = bits >> format.mode_shift;
  const auto mode = std::find(format.modes.begin(), format.modes.end(), code);
  if (mode == format.modes.end()) {
    throw UnsupportedError(fmt::format("{}: mode {} is not modeled: use 0, 2, 4 or 6", object, code));
  }
  const auto offset = [&](int lowest) { return static_cast<std::int64_t>(bits >> lowest & kOffsetMask) * kUnit; };
  return {offset(0), offset(16), offset(32), static_cast<int>(bits >> 49 & 7),
          static_cast<SwizzleMode>(mode - format.modes.begin())};
}

}  // namespace

std::uint64_t encode(const WgmmaDescriptor& descriptor) {
  return encode(descriptor, kWgmma);
}
std::uint64_t encode_tcgen05(const WgmmaDescriptor& descriptor) {
  return encode(descriptor, kTcgen05);
}
WgmmaDescriptor decode_wgmma(std::uint64_t bits) {
  return decode(bits, kWgmma);
}
WgmmaDescriptor decode_tcgen05(std::uint64_t bits) {
  return decode(bits, kTcgen05);
}

std::string to_text(const WgmmaDescriptor& d) {
  return fmt::format("start {}, leading {}, stride {}, phase {}, {}", d.start, d.leading, d.stride, d.phase,
                     name(d.mode));
}

std::int64_t wgmma_address(const WgmmaDescriptor& d, WgmmaMajor major, int element_bytes, std::int64_t mn,
                           std::int64_t k) {
  if (d.phase != 0) {
    throw UnsupportedError(
        fmt::format("wgmma descriptor ({}): a pattern out of phase is not modeled: align the tile to "
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
    throw GeometryError("wgmma operand", {{"element", fmt::format("{} B is not one of 1, 2, 4", element_bytes)}});
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
