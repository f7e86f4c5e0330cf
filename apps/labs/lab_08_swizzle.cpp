// Lab 08: where a swizzled tile stores each element, compared with the TMA modes and with the banks.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <optional>
#include <set>

#include "apps/labs/compile.h"
#include "apps/labs/exact_cases.h"
#include "apps/labs/graders.h"
#include "core/base/checked.h"
#include "core/layout/swizzle.h"
#include "core/smem/banks.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kGroupRows = 8;  // rows that one phase of ldmatrix reads

struct SwizzleTile {
  SwizzleMode mode = SwizzleMode::b128;
  DType dtype = DType::bf16;
  std::int64_t rows = 8;

  [[nodiscard]] std::int64_t element() const { return size_of(dtype); }  // [bytes]
  [[nodiscard]] std::int64_t columns() const { return bytes(mode) / element(); }
  [[nodiscard]] std::int64_t elements() const { return rows * columns(); }
  [[nodiscard]] std::int64_t per_chunk() const { return kChunkBytes / element(); }
  [[nodiscard]] std::string text() const {
    return fmt::format("{} rows of {} elements of {} B, mode {}B", rows, columns(), element(), bytes(mode));
  }
};

using OffsetFormula = std::function<std::int64_t(const SwizzleTile&, std::int64_t row, std::int64_t col)>;

struct SwizzleError {
  std::string message;
  OffsetFormula offset;
};

// The 128-byte line in which an unswizzled element lies.
std::int64_t line_of(const SwizzleTile& tile, std::int64_t row, std::int64_t col) {
  return (row * tile.columns() + col) * tile.element() / 128;
}

std::int64_t with_chunk(const SwizzleTile& tile, std::int64_t row, std::int64_t col, std::int64_t chunk) {
  return row * tile.columns() + chunk * tile.per_chunk() + col % tile.per_chunk();
}

std::vector<SwizzleError> swizzle_errors() {
  using Tile = const SwizzleTile&;
  using Int = std::int64_t;
  return {
      {"there is no swizzle: rows are stored one after the other",
       [](Tile t, Int r, Int c) { return r * t.columns() + c; }},
      {"XOR counted in elements, not in 16-byte chunks",
       [](Tile t, Int r, Int c) {
         const Int bits = t.columns() / t.per_chunk() - 1;
         return r * t.columns() + (c ^ (line_of(t, r, c) & bits));
       }},
      {"XOR with the row: the chunk is XORed with the number of the 128-byte line, which holds several rows of a "
       "narrow mode",
       [](Tile t, Int r, Int c) {
         const Int chunks = t.columns() / t.per_chunk();
         return with_chunk(t, r, c, c / t.per_chunk() ^ (r & (chunks - 1)));
       }},
      {"the chunk is rotated by addition: a TMA mode XORs",
       [](Tile t, Int r, Int c) {
         const Int chunks = t.columns() / t.per_chunk();
         return with_chunk(t, r, c, (c / t.per_chunk() + line_of(t, r, c)) % chunks);
       }},
      {"always three bits: the 64-byte mode XORs two bits and the 32-byte mode one",
       [](Tile t, Int r, Int c) {
         const Int byte = (r * t.columns() + c) * t.element();
         return (byte ^ (byte >> 7 & 7) << 4) / t.element();
       }},
      {"the offset is in bytes: it is asked for in elements",
       [](Tile t, Int r, Int c) { return make_swizzle(t.dtype, t.mode)(r * t.columns() + c) * t.element(); }},
      {"a chunk is taken as 8 elements: it is 16 bytes, 16 / element_bytes elements",
       [](Tile t, Int r, Int c) {
         const Int bits = bytes(t.mode) / kChunkBytes - 1;
         return r * t.columns() + ((c / 8 ^ (line_of(t, r, c) & bits)) * 8 + c % 8);
       }},
      {"the element's place in its chunk is lost",
       [](Tile t, Int r, Int c) {
         return make_swizzle(t.dtype, t.mode)(r * t.columns() + c / t.per_chunk() * t.per_chunk());
       }},
      {"rows and columns are exchanged", [](Tile t, Int r, Int c) { return c * t.rows + r; }},
      {"rows are padded by a chunk: a swizzle uses no more memory than the tile",
       [](Tile t, Int r, Int c) { return r * (t.columns() + t.per_chunk()) + c; }},
      {"XOR with the group of 8 lines: the pattern repeats every 8 lines, and begins anew in each group",
       [](Tile t, Int r, Int c) {
         const Int bits = bytes(t.mode) / kChunkBytes - 1;
         return with_chunk(t, r, c, c / t.per_chunk() ^ (line_of(t, r, c) / 8 & bits));
       }},
  };
}

Words offsets_of(const SwizzleTile& tile, const OffsetFormula& offset) {
  Words words;
  for (std::int64_t row = 0; row < tile.rows; ++row) {
    for (std::int64_t col = 0; col < tile.columns(); ++col) words.push_back(offset(tile, row, col));
  }
  return words;
}

Words mode_offsets(const SwizzleTile& tile) {
  const Swizzle swizzle = make_swizzle(tile.dtype, tile.mode);
  return offsets_of(tile,
                    [&](const SwizzleTile& t, std::int64_t r, std::int64_t c) { return swizzle(r * t.columns() + c); });
}

// (row, col) of each offset, by turning the mode's offsets around.
Words mode_places(const SwizzleTile& tile) {
  const Words offsets = mode_offsets(tile);
  Words places(2 * offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    places[2 * static_cast<std::size_t>(offsets[i])] = static_cast<std::int64_t>(i) / tile.columns();
    places[2 * static_cast<std::size_t>(offsets[i]) + 1] = static_cast<std::int64_t>(i) % tile.columns();
  }
  return places;
}

std::string at(const SwizzleTile& tile, std::size_t index) {
  const auto i = static_cast<std::int64_t>(index);
  return fmt::format("row {}, column {}", i / tile.columns(), i % tile.columns());
}

// The 16-byte places of the first lines of 128 bytes, with the chunks that the student's offsets put there. Chunks that
// are torn, outside the tile or two in one place are wrong. `shown`: the element of the case's text.
CasePicture picture_of_offsets(const SwizzleTile& tile, const Words& offsets, std::size_t shown,
                               std::optional<std::int64_t> expected = std::nullopt) {
  constexpr std::int64_t kLine = 8, kLinesShown = 8;  // [chunks], [lines]
  const std::int64_t per_chunk = tile.per_chunk(), chunks = tile.elements() / per_chunk;
  std::vector<std::string> names(static_cast<std::size_t>(chunks));
  std::vector<CellMark> marks(names.size(), CellMark::plain);
  const auto index = static_cast<std::int64_t>(shown);
  PictureRow outside{"outside the tile", {}};
  for (std::int64_t chunk = 0; chunk < chunks; ++chunk) {
    const std::int64_t first = chunk * per_chunk, row = first / tile.columns(), col = first % tile.columns();
    const std::string name = fmt::format("{},{}", row, col / per_chunk);
    bool whole = true;
    std::vector<std::int64_t> places;
    for (std::int64_t e = 0; e < per_chunk; ++e) {
      const std::int64_t offset = offsets[static_cast<std::size_t>(first + e)];
      whole = whole && offset == offsets[static_cast<std::size_t>(first)] + e && offset % per_chunk == e;
      const std::int64_t place = offset < 0 ? -1 : offset / per_chunk;
      if (places.empty() || places.back() != place) places.push_back(place);
    }
    for (const std::int64_t place : places) {
      if (place < 0 || place >= chunks) {
        if (chunk == index / per_chunk && outside.cells.empty()) {
          outside.cells.push_back({name, CellMark::wrong, fmt::format("byte {}", offsets[shown] * tile.element())});
        }
        continue;
      }
      const auto p = static_cast<std::size_t>(place);
      const bool second = !names[p].empty() && whole;
      if (names[p].size() < 12) names[p] += (names[p].empty() ? "" : " + ") + name;
      if (second || (chunk == index / per_chunk)) marks[p] = CellMark::wrong;
      if (!whole && marks[p] == CellMark::plain) marks[p] = CellMark::quiet;
    }
  }
  if (expected) marks[static_cast<std::size_t>(*expected / per_chunk)] = CellMark::expected;
  PictureGrid grid{
      "shared memory by chunks of 16 bytes: the row and chunk of the tile that your offsets store there", {}, {}};
  for (std::int64_t c = 0; c < kLine; ++c) grid.columns.push_back(fmt::format("banks {}-{}", 4 * c, 4 * c + 3));
  const std::int64_t lines = ceil_div(chunks, kLine);
  // The lines around the shown element.
  const std::int64_t offset = offsets[shown] < 0 ? 0 : offsets[shown] / per_chunk / kLine;
  const CellWindow window =
      window_around(expected ? *expected / per_chunk / kLine : std::min(offset, lines - 1), lines, kLinesShown);
  for (std::int64_t line = window.first; line < window.last; ++line) {
    PictureRow row{fmt::format("byte {}", line * 128), {}};
    for (std::int64_t c = line * kLine; c < std::min((line + 1) * kLine, chunks); ++c) {
      const auto p = static_cast<std::size_t>(c);
      row.cells.push_back({names[p].empty() ? "-" : names[p], marks[p]});
    }
    grid.rows.push_back(std::move(row));
  }
  if (!outside.cells.empty()) grid.rows.push_back(std::move(outside));
  return {{std::move(grid)}, {}, "a chunk that is torn apart"};
}

// A phase of ldmatrix: lane i reads a chunk of row first + i. A group of four banks that several lanes ask for delivers
// one chunk in each wavefront.
CasePicture picture_of_wavefronts(const SwizzleTile& tile, const Words& offsets, std::int64_t first, std::int64_t col) {
  PictureGrid grid{fmt::format("columns {} to {} of rows {} to {}: the wavefront in which each lane is served", col,
                               col + tile.per_chunk() - 1, first, first + kGroupRows - 1),
                   {},
                   {}};
  for (int c = 0; c < 8; ++c) grid.columns.push_back(fmt::format("banks {}-{}", 4 * c, 4 * c + 3));
  std::array<int, 8> wavefronts{};
  for (std::int64_t lane = 0; lane < kGroupRows; ++lane) {
    const std::int64_t offset = offsets[static_cast<std::size_t>((first + lane) * tile.columns() + col)];
    const auto group = static_cast<std::size_t>(std::max<std::int64_t>(0, offset) * tile.element() / kChunkBytes % 8);
    const int wavefront = ++wavefronts[group];
    PictureRow row{fmt::format("lane {}, row {}", lane, first + lane),
                   std::vector<PictureCell>(8, {"", CellMark::quiet})};
    row.cells[group] = {fmt::format("{}", wavefront), wavefront == 1 ? CellMark::used : CellMark::wrong};
    grid.rows.push_back(std::move(row));
  }
  return {{std::move(grid)}, "the first wavefront"};
}

// A fault of one tile: its sentence and where it is.
struct TileFault {
  std::string text;
  std::size_t element = 0;
  bool of_banks = false;  // the chunk that begins at `element`, and those of the next rows

  [[nodiscard]] CasePicture picture(const SwizzleTile& tile, const Words& offsets) const {
    const auto index = static_cast<std::int64_t>(element);
    return of_banks ? picture_of_wavefronts(tile, offsets, index / tile.columns(), index % tile.columns())
                    : picture_of_offsets(tile, offsets, element);
  }
};

// Each returns the first fault of one tile, or nothing.
std::optional<TileFault> collision(const SwizzleTile& tile, const Words& offsets) {
  std::vector<std::optional<std::size_t>> owner(offsets.size());
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] < 0 || offsets[i] >= tile.elements()) {
      return TileFault{fmt::format("{} is at offset {}, outside [0, {})", at(tile, i), offsets[i], tile.elements()), i};
    }
    auto& other = owner[static_cast<std::size_t>(offsets[i])];
    if (other.has_value()) {
      return TileFault{fmt::format("{} and {} are both at offset {}", at(tile, *other), at(tile, i), offsets[i]), i};
    }
    other = i;
  }
  return std::nullopt;
}

std::optional<TileFault> torn_chunk(const SwizzleTile& tile, const Words& offsets) {
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const auto in_chunk = static_cast<std::int64_t>(i) % tile.per_chunk();
    const std::int64_t first = offsets[i - static_cast<std::size_t>(in_chunk)];
    if (offsets[i] != first + in_chunk || first % tile.per_chunk() != 0) {
      return TileFault{fmt::format("{} is at offset {}; its chunk begins at offset {}", at(tile, i), offsets[i], first),
                       i};
    }
  }
  return std::nullopt;
}

// A phase of ldmatrix: the same chunk of 8 rows.
std::optional<TileFault> bank_conflict(const SwizzleTile& tile, const Words& offsets) {
  const BankProfile profile = bank_profile(SharedTarget::nvidia, SharedOp::ldmatrix, 16, 1);
  for (std::int64_t first = 0; first < tile.rows; first += kGroupRows) {
    for (std::int64_t col = 0; col < tile.columns(); col += tile.per_chunk()) {
      SharedAccess access{16, std::vector<std::optional<std::int64_t>>(static_cast<std::size_t>(profile.lanes))};
      for (std::int64_t lane = 0; lane < kGroupRows; ++lane) {
        const std::int64_t offset = offsets[static_cast<std::size_t>((first + lane) * tile.columns() + col)];
        if (offset % tile.per_chunk() != 0) {
          return TileFault{
              fmt::format("the chunk of row {}, column {} begins at offset {}, which is no multiple of 16 bytes: "
                          "ldmatrix cannot read it",
                          first + lane, col, offset),
              static_cast<std::size_t>((first + lane) * tile.columns() + col)};
        }
        const std::int64_t address = std::clamp<std::int64_t>(offset, 0, 1 << 20) * tile.element();
        access.addresses[static_cast<std::size_t>(lane)] = address / kChunkBytes * kChunkBytes;
      }
      const int cycles = bank_report(profile, access).cycles();
      if (cycles > 1) {
        return TileFault{fmt::format("columns {} to {} of rows {} to {} take {} wavefronts instead of 1", col,
                                     col + tile.per_chunk() - 1, first, first + kGroupRows - 1, cycles),
                         static_cast<std::size_t>(first * tile.columns() + col), true};
      }
    }
  }
  return std::nullopt;
}

class SwizzleGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const Compiled compiled = compile_cpp(*this, submission);
    if (!compiled.ok) return all_failed(lab(), "swizzle.cpp does not compile", compile_failure(compiled));
    const std::vector<SwizzleTile> tiles = make_tiles(seed.random(0));
    const HarnessRun offsets = run_cases(options(), compiled.product, questions(tiles, 0));
    const HarnessRun places = run_cases(options(), compiled.product, questions(tiles, 1));
    const std::string error = diagnosis(tiles, offsets);
    return {property("bijection", tiles, offsets, collision, "two elements share a place, or one is outside the tile",
                     error, 1),
            property("chunks", tiles, offsets, torn_chunk, "a chunk of 16 bytes is torn apart", error, 2),
            property("wavefronts", tiles, offsets, bank_conflict, "a column read has bank conflicts", error, 2),
            agreement(tiles, offsets, error), inverse(tiles, places)};
  }

 private:
  static std::vector<SwizzleTile> make_tiles(const CounterRng& random) {
    std::vector<SwizzleTile> tiles;
    for (const SwizzleMode mode : {SwizzleMode::b128, SwizzleMode::b64, SwizzleMode::b32}) {
      for (const DType dtype : {DType::bf16, DType::f32, DType::e4m3}) {
        const std::int64_t periods = random.integer(tiles.size(), 2, 3);  // of 8 lines of 128 bytes
        tiles.push_back({mode, dtype, periods * 1024 / bytes(mode)});
      }
    }
    return tiles;
  }

  static std::vector<Words> questions(const std::vector<SwizzleTile>& tiles, std::int64_t inverse) {
    std::vector<Words> result;
    for (const SwizzleTile& tile : tiles) {
      result.push_back({inverse, tile.rows, tile.columns(), tile.element(), bytes(tile.mode)});
    }
    return result;
  }

  // "right for elements of 2 bytes in the 128B mode only", where exactly the tiles of some sizes and modes are right.
  static std::string right_tiles(const std::vector<SwizzleTile>& tiles, const HarnessRun& run) {
    std::set<std::int64_t> elements, modes;
    std::vector<bool> right;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      right.push_back(run.results[i] == mode_offsets(tiles[i]));
      if (!right.back()) continue;
      elements.insert(tiles[i].element());
      modes.insert(bytes(tiles[i].mode));
    }
    if (elements.empty() || std::ranges::find(right, false) == right.end()) return {};
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const bool among = elements.contains(tiles[i].element()) && modes.contains(bytes(tiles[i].mode));
      if (among != right[i]) return {};
    }
    const bool all_modes = modes.size() == 3, all_elements = elements.size() == 3;
    return fmt::format("right{}{} only",
                       all_elements ? "" : fmt::format(" for elements of {} bytes", fmt::join(elements, " and ")),
                       all_modes ? "" : fmt::format(" in the modes of {} bytes", fmt::join(modes, " and ")));
  }

  // The typical error that explains every offset; empty without one.
  static std::string diagnosis(const std::vector<SwizzleTile>& tiles, const HarnessRun& run) {
    for (const SwizzleError& error : swizzle_errors()) {
      bool explains = run.results.size() == tiles.size();
      for (std::size_t i = 0; explains && i < tiles.size(); ++i) {
        explains = run.results[i] == offsets_of(tiles[i], error.offset);
      }
      if (explains) return error.message;
    }
    return run.results.size() == tiles.size() ? right_tiles(tiles, run) : std::string();
  }

  [[nodiscard]] std::optional<TestResult> stopped(std::string_view test, const std::vector<SwizzleTile>& tiles,
                                                  const HarnessRun& run, std::size_t words) const {
    for (std::size_t i = 0; i < run.results.size(); ++i) {
      if (run.results[i].size() != words * static_cast<std::size_t>(tiles[i].elements())) {
        return failed(lab(), test, "the result has another number of elements", tiles[i].text());
      }
    }
    if (run.results.size() == tiles.size()) return std::nullopt;
    return stopped_in_case(lab(), test, run, tiles[run.results.size()].text());
  }

  template <class Fault>
  TestResult property(std::string_view test, const std::vector<SwizzleTile>& tiles, const HarnessRun& run, Fault fault,
                      const std::string& message, const std::string& error, int hint) const {
    if (auto result = stopped(test, tiles, run, 1)) return *result;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const std::optional<TileFault> found = fault(tiles[i], run.results[i]);
      if (found) {
        return with_picture(failed(lab(), test, error.empty() ? message : message + ": " + error,
                                   tiles[i].text() + "\n" + found->text, hint),
                            found->picture(tiles[i], run.results[i]));
      }
    }
    return passed(lab(), test);
  }

  [[nodiscard]] TestResult agreement(const std::vector<SwizzleTile>& tiles, const HarnessRun& run,
                                     const std::string& error) const {
    if (auto result = stopped("tma_mode", tiles, run, 1)) return *result;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const Words expected = mode_offsets(tiles[i]);
      const auto found = std::ranges::mismatch(expected, run.results[i]);
      if (found.in1 == expected.end()) continue;
      const auto index = static_cast<std::size_t>(found.in1 - expected.begin());
      const std::string text =
          fmt::format("{}\n{}: expected offset {} (byte {}), your code gave {}", tiles[i].text(), at(tiles[i], index),
                      *found.in1, *found.in1 * tiles[i].element(), *found.in2);
      return with_picture(
          failed(lab(), "tma_mode", error.empty() ? "the offsets are not those of the TMA mode" : error, text, 3),
          picture_of_offsets(tiles[i], run.results[i], index, *found.in1));
    }
    return passed(lab(), "tma_mode");
  }

  [[nodiscard]] TestResult inverse(const std::vector<SwizzleTile>& tiles, const HarnessRun& run) const {
    if (auto result = stopped("inverse", tiles, run, 2)) return *result;
    bool plain = true, exchanged = true, unwritten = true;
    std::string text;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const Words expected = mode_places(tiles[i]);
      const Words& given = run.results[i];
      for (std::size_t offset = 0; 2 * offset < given.size(); ++offset) {
        const std::int64_t row = given[2 * offset], col = given[2 * offset + 1];
        const auto whole = static_cast<std::int64_t>(offset);
        unwritten = unwritten && row == -1 && col == -1;
        plain = plain && row == whole / tiles[i].columns() && col == whole % tiles[i].columns();
        exchanged = exchanged && row == expected[2 * offset + 1] && col == expected[2 * offset];
        if (text.empty() && (row != expected[2 * offset] || col != expected[2 * offset + 1])) {
          text = fmt::format("{}\noffset {}: expected row {}, column {}; your code gave row {}, column {}",
                             tiles[i].text(), offset, expected[2 * offset], expected[2 * offset + 1], row, col);
        }
      }
    }
    if (text.empty()) return passed(lab(), "inverse");
    return failed(lab(), "inverse",
                  unwritten   ? "place() writes neither row nor col"
                  : plain     ? "the inverse ignores the swizzle"
                  : exchanged ? "the inverse returns row and column in each other's place"
                              : "the inverse does not give the element that the mode stores there",
                  text, 3);
  }
};

}  // namespace

std::unique_ptr<Grader> swizzle_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<SwizzleGrader>(lab, options);
}

}  // namespace kvscope::labs
