#include "gpu/virtual/check/wavefronts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

#include "core/base/checked.h"

namespace kvscope::ptx {
namespace {

constexpr int kBanks = 32;
constexpr std::uint64_t kSector = 32;  // [bytes]
constexpr std::uint64_t kLine = 128;   // [bytes]

// The words that one group of lanes accesses, by bank. A group accesses at most 32 words.
class BankWords {
 public:
  void want(std::uint64_t word, bool shares) {
    const auto bank = static_cast<std::size_t>(word % kBanks);
    const std::uint32_t bit = 1u << bank;
    if ((used_ & bit) == 0) {
      used_ |= bit;
      first_[bank] = -1;
      degree_[bank] = 0;
    }
    if (shares) {
      for (int at = first_[bank]; at >= 0; at = next_[static_cast<std::size_t>(at)]) {
        if (words_[static_cast<std::size_t>(at)] == word) return;
      }
    }
    words_[static_cast<std::size_t>(count_)] = word;
    next_[static_cast<std::size_t>(count_)] = first_[bank];
    first_[bank] = count_++;
    worst_ = std::max(worst_, ++degree_[bank]);
  }
  [[nodiscard]] int worst() const { return worst_; }

 private:
  std::uint32_t used_ = 0;
  int count_ = 0;
  int worst_ = 0;
  std::array<std::uint64_t, kLanes> words_;
  std::array<int, kLanes> next_;
  std::array<int, kBanks> first_;
  std::array<int, kBanks> degree_;
};

template <std::size_t kMost>
std::int64_t distinct(std::array<std::uint64_t, kMost>& values, int count) {
  const auto end = values.begin() + count;
  if (!std::is_sorted(values.begin(), end)) std::sort(values.begin(), end);
  return std::unique(values.begin(), end) - values.begin();
}

// Accesses within 2 KiB: one bit per possible access, and one per sector. False: they are further apart.
bool near_sectors(AccessAddresses addresses, LaneMask lanes, int bytes, Sectors& out) {
  constexpr std::uint64_t kNear = 64 * kSector;
  const auto size = static_cast<std::uint64_t>(bytes);
  if (lanes == 0 || size < 4) return false;
  std::uint64_t low = addresses[static_cast<std::size_t>(std::countr_zero(lanes))];
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    low = std::min(low, addresses[static_cast<std::size_t>(std::countr_zero(left))]);
  }
  low = low / kLine * kLine;
  std::array<std::uint64_t, kNear / 4 / 64> accesses{};
  std::uint64_t sectors = 0;
  const int shift = std::countr_zero(size);
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const std::uint64_t at = addresses[static_cast<std::size_t>(std::countr_zero(left))] - low;
    if (at >= kNear) return false;
    accesses[at >> shift >> 6] |= std::uint64_t{1} << (at >> shift & 63);
    sectors |= std::uint64_t{1} << at / kSector;
  }
  std::int64_t distinct = 0;
  for (const std::uint64_t word : accesses) distinct += std::popcount(word);
  const std::uint64_t lines = (sectors | sectors >> 1 | sectors >> 2 | sectors >> 3) & 0x1111'1111'1111'1111;
  out = {std::popcount(sectors), ceil_div(distinct * bytes, static_cast<std::int64_t>(kSector)), std::popcount(lines)};
  return true;
}

}  // namespace

Wavefronts shared_wavefronts(AccessAddresses addresses, LaneMask lanes, int bytes, bool atomic) {
  const int words = std::max(1, bytes / 4);
  const int group = kLanes / words;
  Wavefronts out;
  for (int begin = 0; begin < kLanes; begin += group) {
    const LaneMask members = group == kLanes ? lanes : lanes >> begin & ((LaneMask{1} << group) - 1);
    if (members == 0) continue;
    BankWords wanted;
    for (LaneMask left = members; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(begin + std::countr_zero(left));
      for (int w = 0; w < words; ++w) wanted.want(addresses[lane] / 4 + static_cast<std::uint64_t>(w), !atomic);
    }
    out.wavefronts += wanted.worst();
    out.ideal += 1;
    out.worst = std::max(out.worst, wanted.worst());
  }
  return out;
}

Wavefronts WavefrontMemory::cost(AccessAddresses addresses, LaneMask lanes, int bytes, bool atomic) {
  if (lanes == 0) return {};
  if (shapes_.empty()) shapes_.resize(kShapes);
  // Shifting all lanes by a word moves every bank to the next one, so the count stays the same.
  const std::uint64_t first = addresses[static_cast<std::size_t>(std::countr_zero(lanes))] / 4 * 4;
  LaneOffsets offsets;
  lane_offsets(first, addresses, lanes, offsets);
  const auto part = [&](std::size_t lane, std::uint32_t factor) {
    return static_cast<std::uint32_t>(offsets[lane]) * factor;
  };
  const std::uint32_t hash = part(1, 0x9e3779b1) ^ part(5, 0x85ebca77) ^ part(8, 0xc2b2ae3d) ^ part(18, 0x27d4eb2f) ^
                             part(31, 0x165667b1) ^ lanes * 0xd3a2646cu;
  Shape& shape = shapes_[(hash ^ static_cast<std::uint32_t>(bytes) << 27) >> 25];
  static_assert(kShapes == 1u << (32 - 25));
  if (shape.lanes != lanes || shape.bytes != bytes || shape.atomic != atomic || shape.offsets != offsets) {
    shape = {offsets, lanes, bytes, atomic, shared_wavefronts(addresses, lanes, bytes, atomic)};
  }
  return shape.cost;
}

Sectors global_sectors(AccessAddresses addresses, LaneMask lanes, int bytes) {
  LaneSectors found;
  if (lanes == kAllLanes &&
      lane_loops().sectors(addresses.data(), std::countr_zero(static_cast<unsigned>(bytes)), found)) {
    return {found.sectors, ceil_div(std::int64_t{found.accesses} * bytes, static_cast<std::int64_t>(kSector)),
            found.lines};
  }
  Sectors near;
  if (near_sectors(addresses, lanes, bytes, near)) return near;
  std::array<std::uint64_t, kLanes> values;
  int count = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    values[static_cast<std::size_t>(count++)] = addresses[static_cast<std::size_t>(std::countr_zero(left))];
  }
  // An aligned access is within one sector, and two of them are equal or disjoint.
  const std::int64_t accesses = distinct(values, count);
  const auto coarser = [&](std::uint64_t unit) {
    for (int i = 0; i < static_cast<int>(accesses); ++i) values[static_cast<std::size_t>(i)] /= unit;
    return distinct(values, static_cast<int>(accesses));
  };
  Sectors out;
  out.ideal = ceil_div(accesses * bytes, kSector);
  out.sectors = coarser(kSector);
  for (int i = 0; i < static_cast<int>(out.sectors); ++i) values[static_cast<std::size_t>(i)] /= kLine / kSector;
  out.lines = distinct(values, static_cast<int>(out.sectors));
  return out;
}

Sectors local_sectors(AccessAddresses offsets, LaneMask lanes, int bytes) {
  const int words = std::max(1, bytes / 4);
  std::array<std::uint64_t, std::size_t{kLanes} * 8> values;
  int count = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint64_t>(std::countr_zero(left));
    for (int w = 0; w < words; ++w) {
      const std::uint64_t word = offsets[lane] / 4 + static_cast<std::uint64_t>(w);
      values[static_cast<std::size_t>(count++)] = (word * kLanes + lane) * 4 / kSector;
    }
  }
  Sectors out;
  out.ideal = ceil_div(std::int64_t{std::popcount(lanes)} * bytes, kSector);
  out.sectors = distinct(values, count);
  for (int i = 0; i < static_cast<int>(out.sectors); ++i) values[static_cast<std::size_t>(i)] /= kLine / kSector;
  out.lines = distinct(values, static_cast<int>(out.sectors));
  return out;
}

Sectors range_sectors(std::uint64_t address, std::int64_t bytes) {
  if (bytes <= 0) return {};
  const std::uint64_t last = address + static_cast<std::uint64_t>(bytes) - 1;
  return {.sectors = static_cast<std::int64_t>(last / kSector - address / kSector + 1),
          .ideal = ceil_div(bytes, kSector),
          .lines = static_cast<std::int64_t>(last / kLine - address / kLine + 1)};
}

}  // namespace kvscope::ptx
