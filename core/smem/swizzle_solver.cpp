#include "core/smem/swizzle_solver.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <functional>
#include <tuple>

#include "core/base/checked.h"
#include "core/base/errors.h"

namespace kvscope {
namespace {

using Address = std::function<std::int64_t(const RowByte&)>;

constexpr int kLowestBankBit = 2;  // a bank is 4 bytes wide

SharedAccess placed(const AccessPattern& pattern, std::size_t access, const Address& address) {
  SharedAccess result{pattern.width, {}};
  for (const auto& place : pattern.accesses[access]) {
    result.addresses.push_back(place ? std::optional(address(*place)) : std::nullopt);
  }
  return result;
}

struct Cost {
  int cycles = 0;
  int ideal = 0;
};

Cost cost_of(std::span<const AccessPattern> patterns, const Address& address) {
  Cost cost;
  for (const AccessPattern& pattern : patterns) {
    for (std::size_t i = 0; i < pattern.accesses.size(); ++i) {
      const BankReport report = bank_report(pattern.profile, placed(pattern, i, address));
      cost.cycles += report.cycles();
      cost.ideal += report.ideal();
    }
  }
  return cost;
}

// The lanes that the text reports: those of the bank with the most conflicts, one lane per requested word.
struct Witness {
  const AccessPattern* pattern = nullptr;
  std::size_t access = 0;
  BankConflict conflict;
  std::vector<int> lanes;  // first of each word
};

std::optional<Witness> worst_conflict(std::span<const AccessPattern> patterns, const Address& address) {
  std::optional<Witness> worst;
  for (const AccessPattern& pattern : patterns) {
    for (std::size_t i = 0; i < pattern.accesses.size(); ++i) {
      for (BankConflict& conflict : bank_report(pattern.profile, placed(pattern, i, address)).conflicts) {
        if (worst && conflict.words.size() <= worst->conflict.words.size()) continue;
        worst = Witness{&pattern, i, std::move(conflict), {}};
      }
    }
  }
  if (worst) {
    for (const auto& lanes : worst->conflict.lanes) worst->lanes.push_back(lanes.front());
  }
  return worst;
}

// "0 2 4 6"; of more than eight, the first four and the last: "0 128 256 384 .. 3968".
template <class Number>
std::string list_text(const std::vector<Number>& numbers) {
  if (numbers.size() <= 8) return fmt::format("{}", fmt::join(numbers, " "));
  return fmt::format("{} .. {}", fmt::join(numbers.begin(), numbers.begin() + 4, " "), numbers.back());
}

// "bit 7", "bits 7-8", "bits 7 9".
std::string bits_text(std::uint64_t mask) {
  std::vector<int> bits;
  for (int bit = 0; bit < 64; ++bit) {
    if (mask >> bit & 1) bits.push_back(bit);
  }
  if (bits.size() == 1) return fmt::format("bit {}", bits[0]);
  const bool run = !bits.empty() && bits.back() - bits.front() + 1 == static_cast<int>(bits.size());
  return run ? fmt::format("bits {}-{}", bits.front(), bits.back()) : fmt::format("bits {}", fmt::join(bits, " "));
}

// The part of the mask that selects the row, when the pitch is a power of two: " (row bits 1-2)".
std::string row_bits_text(std::uint64_t mask, std::int64_t pitch) {
  if (!is_pow2(pitch)) return "";
  const std::uint64_t rows = mask >> log2_floor(pitch);
  return rows == 0 ? "" : fmt::format(" (row {})", bits_text(rows));
}

std::uint64_t field(int lowest, int bits) {
  return ((std::uint64_t{1} << bits) - 1) << lowest;
}

std::string bank_bits_text(const BankProfile& profile) {
  if (!is_pow2(profile.banks)) return fmt::format("{} banks", profile.banks);
  return fmt::format("{} banks, address {}", profile.banks,
                     bits_text(field(kLowestBankBit, log2_floor(profile.banks))));
}

std::string explain_current(std::span<const AccessPattern> patterns, const TileRows& tile, const Address& address) {
  const auto witness = worst_conflict(patterns, address);
  if (!witness) return "no conflicts without a swizzle: in every phase, each bank serves at most one word";
  std::uint64_t differing = 0;
  for (const std::int64_t word : witness->conflict.words) {
    differing |= static_cast<std::uint64_t>(word ^ witness->conflict.words[0]);
  }
  return fmt::format(
      "{}: in phase {} of access {}, lanes {} read {} words of bank {}: their addresses {} differ in {}{} only, which "
      "do not select the bank ({})",
      witness->pattern->name, witness->conflict.phase, witness->access, list_text(witness->lanes),
      witness->conflict.words.size(), witness->conflict.bank, list_text(witness->conflict.words), bits_text(differing),
      row_bits_text(differing, tile.pitch), bank_bits_text(witness->pattern->profile));
}

// "lanes 0 2 4 6, which all used bank 0, now start at banks 0 4 8 12"; a fixed text when no lanes conflicted.
std::string moved_apart(const std::optional<Witness>& witness, const Address& address) {
  if (!witness) return "no phase has a conflict";
  std::vector<std::int64_t> banks;
  for (const int lane : witness->lanes) {
    const auto& place = witness->pattern->accesses[witness->access][static_cast<std::size_t>(lane)];
    banks.push_back(address(*place) / 4 % witness->pattern->profile.banks);
  }
  return fmt::format("lanes {}, which all read bank {}, now start at banks {}", list_text(witness->lanes),
                     witness->conflict.bank, list_text(banks));
}

std::optional<SwizzleMode> tma_mode(const Swizzle& swizzle) {
  for (const auto mode : {SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128}) {
    if (swizzle == make_swizzle(DType::e4m3, mode)) return mode;  // elements of a byte: on byte offsets
  }
  return std::nullopt;
}

// Every swizzle of the search, fewest bits first.
std::vector<Swizzle> family(const TileRows& tile, const SolverBounds& bounds) {
  const std::int64_t size = tile.rows * tile.pitch;
  std::vector<Swizzle> result;
  for (int bits = 1; bits <= bounds.max_bits; ++bits) {
    for (int base = log2_floor(bounds.chunk); base <= bounds.max_base; ++base) {
      for (int shift = bits; shift <= bounds.max_shift; ++shift) {
        const bool closed = size % (std::int64_t{1} << (bits + base)) == 0;
        const bool every_bit_varies = std::int64_t{1} << (bits + base + shift - 1) < size;
        if (closed && every_bit_varies) result.emplace_back(bits, base, shift);
      }
    }
  }
  std::stable_sort(result.begin(), result.end(), [](const Swizzle& a, const Swizzle& b) {
    return std::tuple(a.bits(), !tma_mode(a)) < std::tuple(b.bits(), !tma_mode(b));
  });
  return result;
}

void check(const TileRows& tile, std::span<const AccessPattern> patterns, const SolverBounds& bounds) {
  std::vector<Fault> faults;
  const auto outside = [&](const char* where, std::int64_t value, std::int64_t low, std::int64_t high) {
    if (value < low || value > high) {
      faults.push_back({where, fmt::format("{} is outside [{}, {}]", value, low, high)});
    }
  };
  outside("rows", tile.rows, 1, 1 << 20);
  outside("pitch", tile.pitch, 1, 1 << 20);
  outside("max_bits", bounds.max_bits, 0, 10);
  outside("max_base", bounds.max_base, 0, 20);
  outside("max_shift", bounds.max_shift, 0, 20);
  outside("max_padding", bounds.max_padding, 0, 1 << 16);
  if (!is_pow2(bounds.chunk) || bounds.chunk > 1024) {
    faults.push_back({"chunk", fmt::format("{} B is not a power of two in [1, 1024]", bounds.chunk)});
  }
  if (patterns.empty()) faults.push_back({"patterns", "no pattern is given: add the one that reads the tile"});
  for (const AccessPattern& pattern : patterns) {
    if (pattern.width > bounds.chunk) {
      faults.push_back({pattern.name, fmt::format("reads {} B at a time, but chunks of {} B may be torn apart: use a "
                                                  "chunk of {}",
                                                  pattern.width, bounds.chunk, pattern.width)});
    }
    for (std::size_t i = 0; i < pattern.accesses.size(); ++i) {
      for (std::size_t lane = 0; lane < pattern.accesses[i].size(); ++lane) {
        const auto& place = pattern.accesses[i][lane];
        if (!place || (place->row >= 0 && place->row < tile.rows && place->byte >= 0 && place->byte < tile.pitch))
          continue;
        faults.push_back({fmt::format("{}, access {}, lane {}", pattern.name, i, lane),
                          fmt::format("row {}, byte {} is outside {} rows of {} B", place->row, place->byte, tile.rows,
                                      tile.pitch)});
      }
    }
  }
  if (!faults.empty()) throw GeometryError("layout to solve", std::move(faults));
}

}  // namespace

LayoutSolutions solve_layout(const TileRows& tile, std::span<const AccessPattern> patterns,
                             const SolverBounds& bounds) {
  check(tile, patterns, bounds);
  const Address plain = [&](const RowByte& place) { return place.row * tile.pitch + place.byte; };
  const Cost now = cost_of(patterns, plain);
  const auto witness = worst_conflict(patterns, plain);
  LayoutSolutions solutions{tile, now.cycles, now.ideal, explain_current(patterns, tile, plain), {}, {}, {}};
  const std::int64_t chunk_bits = log2_floor(bounds.chunk);

  if (solutions.is_free()) {
    solutions.swizzles.push_back(
        {Swizzle(0, static_cast<int>(chunk_bits), 0), SwizzleMode::none, true, solutions.current});
  }
  std::optional<Swizzle> best;
  int best_cycles = 0;
  const std::vector<Swizzle> candidates = family(tile, bounds);
  for (const Swizzle& swizzle : candidates) {
    const Address address = [&](const RowByte& place) { return swizzle(plain(place)); };
    const Cost cost = cost_of(patterns, address);
    if (!best || cost.cycles < best_cycles) {
      best = swizzle;
      best_cycles = cost.cycles;
    }
    if (cost.cycles != cost.ideal) continue;
    const std::uint64_t from = field(swizzle.base() + swizzle.shift(), swizzle.bits());
    const auto mode = tma_mode(swizzle);
    solutions.swizzles.push_back(
        {swizzle, mode, mode && bytes(*mode) == tile.pitch,
         fmt::format("{}{} XORed into {}: {}", bits_text(from), row_bits_text(from, tile.pitch),
                     bits_text(field(swizzle.base(), swizzle.bits())), moved_apart(witness, address))});
  }
  if (solutions.swizzles.empty()) {
    solutions.no_swizzle =
        best
            ? fmt::format(
                  "none of {} swizzles up to {} bits avoids all conflicts: the best is {} with {} cycles instead of {}",
                  candidates.size(), bounds.max_bits, best->text(), best_cycles, now.ideal)
            : fmt::format("no swizzle keeps chunks of {} B whole and stays in the {} B of the tile", bounds.chunk,
                          tile.rows * tile.pitch);
  }

  for (std::int64_t padding = 0; padding <= bounds.max_padding; padding += bounds.chunk) {
    const std::int64_t pitch = tile.pitch + padding;
    const Address address = [&](const RowByte& place) { return place.row * pitch + place.byte; };
    const Cost cost = cost_of(patterns, address);
    if (cost.cycles != cost.ideal) continue;
    solutions.paddings.push_back({padding, pitch, padding * tile.rows,
                                  padding == 0 ? solutions.current
                                               : fmt::format("a row begins {} B after the one before: {}", pitch,
                                                             moved_apart(witness, address))});
  }
  return solutions;
}

std::string to_text(const LayoutSolutions& solutions) {
  std::string text = fmt::format("{} rows of {} B: {} cycles, {} without conflicts\n  {}\n", solutions.tile.rows,
                                 solutions.tile.pitch, solutions.cycles, solutions.ideal, solutions.current);
  text += "swizzles of byte offsets without conflicts:\n";
  for (const SwizzleSolution& s : solutions.swizzles) {
    std::string mode;
    if (s.mode && s.tma_writes_it) {
      mode = fmt::format(", TMA's {}", name(*s.mode));
    } else if (s.mode) {
      mode = fmt::format(", TMA's {} (whose rows are {} B apart)", name(*s.mode), bytes(*s.mode));
    }
    text += fmt::format("  {}{}: {}\n", s.swizzle.text(), mode, s.why);
  }
  if (!solutions.no_swizzle.empty()) text += fmt::format("  {}\n", solutions.no_swizzle);
  text += "row paddings without conflicts:\n";
  for (const PaddingSolution& p : solutions.paddings) {
    text += fmt::format("  {} B, {} B in all: {}\n", p.padding, p.extra_bytes, p.why);
  }
  if (solutions.paddings.empty()) text += "  none within the limit\n";
  return text;
}

}  // namespace kvscope
