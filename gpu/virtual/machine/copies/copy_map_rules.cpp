// Checks the encoder's rules for a decoded record. A kernel may have modified the record (tensormap.replace), so a
// record with a valid checksum can still break them. V01 concerns only the call of the encoder. Each rule checks all
// dimensions before the next rule.
#include <fmt/format.h>

#include <string>

#include "gpu/virtual/machine/copies/copy_map.h"

namespace kvscope::ptx {
namespace {

constexpr std::uint64_t kMaxDim = std::uint64_t{1} << 32;     // [elements]
constexpr std::uint64_t kStrideEnd = std::uint64_t{1} << 40;  // [bytes]
constexpr std::uint32_t kMaxBox = 256, kMaxElementStride = 8;
constexpr std::int64_t kSharedOfSm = 233'472;  // [bytes]
constexpr std::int64_t kChunkBits = 128;
constexpr int kNan = 1;

constexpr std::array<std::string_view, 3> kInterleaves = {"no interleave", "16B interleave", "32B interleave"};

// Values that the rules need, computed once. If a number is outside its table, the rules that depend on it are skipped.
struct MapFacts {
  explicit MapFacts(const CopyMap& m)
      : ranked(m.rank >= 1 && m.rank <= static_cast<int>(kMaxDimensions)),
        typed(m.type < 16),
        swizzled(m.swizzle < 7),
        interleaved(m.interleave < 3),
        rank(ranked ? static_cast<std::size_t>(m.rank) : 0) {
    if (typed) element = m.element();
    in_16_bytes = typed && element.in_16_bytes;
    inner_bits = static_cast<std::int64_t>(m.box[0]) * element.bits;
    // A value of the 16-byte packed types occupies one byte of shared memory.
    shared_bytes = in_16_bytes ? static_cast<std::int64_t>(m.box[0]) : inner_bits / 8;
  }
  bool ranked, typed, swizzled, interleaved;  // the number is in its table
  std::size_t rank;                           // 0: outside the range
  ElementFormat element;
  bool in_16_bytes = false;
  std::int64_t inner_bits = 0, shared_bytes = 0;
};

class MapFaults {
 public:
  void add(int rule, const std::string& where, std::string message) {
    faults_.push_back({fmt::format("{} (V{:02})", where, rule), std::move(message)});
  }
  std::vector<Fault> take() { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
};

std::string list_entry(const char* list, std::size_t i) {
  return fmt::format("{}[{}]", list, i);
}

void check_tables_and_rank(const CopyMap& m, const MapFacts& is, MapFaults& faults) {
  const std::array<std::tuple<const char*, int, int>, 5> tables = {{{"data type", m.type, 16},
                                                                    {"interleave", m.interleave, 3},
                                                                    {"swizzle", m.swizzle, 7},
                                                                    {"L2 promotion", m.promotion, 4},
                                                                    {"fill", m.fill, 2}}};
  for (const auto& [where, value, end] : tables) {
    if (value >= end) faults.add(2, where, fmt::format("{} is in no table: use 0 to {}", value, end - 1));
  }
  if (!is.ranked) faults.add(3, "rank", fmt::format("{} is outside 1 to 5", m.rank));
  if (is.ranked && is.interleaved && m.interleave != 0 && m.rank < 3) {
    faults.add(
        4, "rank",
        fmt::format("{} with {}: it takes 3 to 5", m.rank, kInterleaves[static_cast<std::size_t>(m.interleave)]));
  }
}

void check_base(const CopyMap& m, const MapFacts& is, MapFaults& faults) {
  const auto aligned = [&](int rule, std::uint64_t to, const std::string& why) {
    if (m.base % to == 0) return;
    faults.add(rule, "base",
               fmt::format("{:#x} is {} B past a multiple of {}{}: move the tensor", m.base, m.base % to, to, why));
  };
  aligned(5, 16, "");
  if (m.interleave == 2) aligned(6, 32, ", as 32B interleave requires");
  if (is.in_16_bytes) aligned(7, 32, fmt::format(", as {} wants", is.element.name));
}

void check_tensor(const CopyMap& m, const MapFacts& is, MapFaults& faults) {
  for (std::size_t i = 0; i < is.rank; ++i) {
    if (m.dims[i] < 1 || m.dims[i] > kMaxDim) {
      faults.add(8, list_entry("dims", i), fmt::format("{} is outside 1 to 2^32", m.dims[i]));
    }
  }
  if (is.ranked && is.typed && is.element.packed()) {
    const std::uint64_t whole = is.in_16_bytes ? 128 : 2;
    if (m.dims[0] % whole != 0) {
      faults.add(
          9, "dims[0]",
          fmt::format("{} values of {} are not a multiple of {}: pad the rows", m.dims[0], is.element.name, whole));
    }
  }
  const auto aligned = [&](int rule, std::uint64_t to) {
    for (std::size_t i = 1; i < is.rank; ++i) {
      if (m.strides[i] % to == 0) continue;
      faults.add(rule, list_entry("strides", i - 1),
                 fmt::format("{} B is not a multiple of {} B: pad the rows", m.strides[i], to));
    }
  };
  aligned(10, 16);
  for (std::size_t i = 1; i < is.rank; ++i) {
    if (m.strides[i] < kStrideEnd) continue;
    faults.add(11, list_entry("strides", i - 1), fmt::format("{} B is not below 2^40: use several maps", m.strides[i]));
  }
  if (m.interleave == 2 || is.in_16_bytes) aligned(12, 32);
}

void check_box(const CopyMap& m, const MapFacts& is, MapFaults& faults) {
  for (std::size_t i = 0; i < is.rank; ++i) {
    if (m.box[i] < 1 || m.box[i] > kMaxBox) {
      faults.add(13, list_entry("box", i),
                 fmt::format("{} is outside 1 to 256: copy the tile in several boxes", m.box[i]));
    }
  }
  if (is.ranked && is.typed) {
    if (m.interleave == 0 && is.inner_bits % kChunkBits != 0) {
      // 64 values of 6 bits are 48 bytes, the smallest number of whole chunks.
      const std::int64_t whole = is.element.bits == 6 ? 64 : kChunkBits / is.element.bits;
      faults.add(14, "box[0]",
                 fmt::format("{} x {} = {} B is not a multiple of 16 B: use a multiple of {} elements", m.box[0],
                             is.element.name, static_cast<double>(is.inner_bits) / 8, whole));
    }
    if (is.in_16_bytes && m.box[0] != 128) {
      faults.add(15, "box[0]", fmt::format("{} values of {}: it takes 128", m.box[0], is.element.name));
    }
  }
  for (std::size_t i = 0; i < is.rank; ++i) {
    if (m.every[i] < 1 || m.every[i] > kMaxElementStride) {
      faults.add(16, list_entry("elementStrides", i), fmt::format("{} is outside 1 to 8", m.every[i]));
    }
  }
}

void check_swizzle(const CopyMap& m, const MapFacts& is, MapFaults& faults) {
  if (!is.swizzled || !is.interleaved) return;
  const MapSwizzle& mode = m.swizzle_mode();
  if (is.ranked && is.typed && mode.bits.active() && m.interleave == 0 && is.shared_bytes > mode.bits.span) {
    faults.add(17, "box[0]",
               fmt::format("{} x {} = {} B, but {} takes at most {} B: use {}", m.box[0], is.element.name,
                           is.shared_bytes, mode.name, mode.bits.span,
                           is.in_16_bytes ? "a 128B swizzle"
                                          : fmt::format("boxes of {} elements", mode.bits.span * 8 / is.element.bits)));
  }
  if (m.interleave == 2 && m.swizzle != 1) {
    faults.add(18, "swizzle", fmt::format("{} with 32B interleave: it takes the 32B swizzle", mode.name));
  }
  if (!is.typed || !is.in_16_bytes) return;
  const bool for_both = m.swizzle == 0 || m.swizzle == 3 || m.swizzle == 4;  // none, 128B, ATOM_32B
  if (is.element.bits == 6) {
    if (m.interleave != 0) {
      faults.add(19, "interleave",
                 fmt::format("{} with {}: it takes none", kInterleaves[static_cast<std::size_t>(m.interleave)],
                             is.element.name));
    }
    if (!for_both && m.swizzle != 6) {
      faults.add(20, "swizzle",
                 fmt::format("{} with {}: it takes none, 128B, ATOM_32B, and ATOM_64B for stores", mode.name,
                             is.element.name));
    }
  } else if (!for_both) {
    faults.add(21, "swizzle", fmt::format("{} with {}: it takes none, 128B and ATOM_32B", mode.name, is.element.name));
  }
}

void check_size(const CopyMap& m, const MapFacts& is, MapFaults& faults) {
  if (!is.ranked || !is.typed) return;
  std::int64_t bytes = is.shared_bytes;
  for (std::size_t i = 0; i < is.rank; ++i) {
    if (m.box[i] < 1 || m.box[i] > kMaxBox || (i > 0 && (m.every[i] < 1 || m.every[i] > kMaxElementStride)))
      return;  // V13, V16
    if (i > 0) bytes *= (m.box[i] - 1) / m.every[i] + 1;
  }
  if (bytes <= kSharedOfSm) return;
  faults.add(23, "box",
             fmt::format("{} B, but a box has at most {} B, the shared memory of an SM: copy the tile in several boxes",
                         bytes, kSharedOfSm));
}

}  // namespace

std::vector<Fault> map_faults(const CopyMap& map) {
  const MapFacts is(map);
  MapFaults faults;
  check_tables_and_rank(map, is, faults);
  check_base(map, is, faults);
  check_tensor(map, is, faults);
  check_box(map, is, faults);
  check_swizzle(map, is, faults);
  if (is.typed && map.fill == kNan && !is.element.floating) {
    faults.add(22, "fill", fmt::format("NaN with {}, which has none: fill with zeros", is.element.name));
  }
  check_size(map, is, faults);
  return faults.take();
}

}  // namespace kvscope::ptx
