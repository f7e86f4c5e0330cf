#include "core/ptx/check/wavefronts.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>

namespace kvscope::ptx {
namespace {

constexpr int kBanks = 32;
constexpr std::uint64_t kSector = 32;  // [bytes]
constexpr std::uint64_t kLine = 128;   // [bytes]

// The words that one group of lanes wants, bank by bank. A group wants 32 words at most.
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

std::int64_t over(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
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

Sectors global_sectors(AccessAddresses addresses, LaneMask lanes, int bytes) {
  std::array<std::uint64_t, kLanes> values;
  int count = 0;
  for (LaneMask left = lanes; left != 0; left &= left - 1) {
    values[static_cast<std::size_t>(count++)] = addresses[static_cast<std::size_t>(std::countr_zero(left))];
  }
  // An aligned access lies in one sector, and two of them are the same or apart.
  const std::int64_t accesses = distinct(values, count);
  const auto coarser = [&](std::uint64_t unit) {
    for (int i = 0; i < static_cast<int>(accesses); ++i) values[static_cast<std::size_t>(i)] /= unit;
    return distinct(values, static_cast<int>(accesses));
  };
  Sectors out;
  out.ideal = over(accesses * bytes, kSector);
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
  out.ideal = over(std::int64_t{std::popcount(lanes)} * bytes, kSector);
  out.sectors = distinct(values, count);
  for (int i = 0; i < static_cast<int>(out.sectors); ++i) values[static_cast<std::size_t>(i)] /= kLine / kSector;
  out.lines = distinct(values, static_cast<int>(out.sectors));
  return out;
}

Sectors range_sectors(std::uint64_t address, std::int64_t bytes) {
  if (bytes <= 0) return {};
  const std::uint64_t last = address + static_cast<std::uint64_t>(bytes) - 1;
  return {.sectors = static_cast<std::int64_t>(last / kSector - address / kSector + 1),
          .ideal = over(bytes, kSector),
          .lines = static_cast<std::int64_t>(last / kLine - address / kLine + 1)};
}

}  // namespace kvscope::ptx
