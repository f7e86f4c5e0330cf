// Lab 08: where a swizzled tile stores each element, compared with the TMA modes and with the banks.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <optional>

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
  static constexpr const char* kElements = "XOR counted in elements, not in 16-byte chunks";
  static constexpr const char* kNumber =
      "the swizzle is applied to the number of the element: it is of byte addresses, number * element_bytes";
  const auto chunk_of = [](Tile t, Int c) { return c / t.per_chunk(); };
  const auto byte_of = [](Tile t, Int r, Int c) { return (r * t.columns() + c) * t.element(); };
  return {
      {"offset() is not written: it returns -1 for every element", [](Tile, Int, Int) { return Int{-1}; }},
      {"there is no swizzle: rows are stored one after the other",
       [](Tile t, Int r, Int c) { return r * t.columns() + c; }},
      {kElements,
       [](Tile t, Int r, Int c) {
         const Int bits = t.columns() / t.per_chunk() - 1;
         return r * t.columns() + (c ^ (line_of(t, r, c) & bits));
       }},
      {kElements, [](Tile t, Int r, Int c) { return r * t.columns() + (c ^ (r % 8)); }},
      {kNumber,
       [](Tile t, Int r, Int c) {
         const Int number = r * t.columns() + c;
         return number ^ (number >> 3 & (bytes(t.mode) - 16));
       }},
      {kNumber,
       [](Tile t, Int r, Int c) {
         const Int number = r * t.columns() + c;
         return number ^ (number >> 3 & 0x70);
       }},
      {"XOR with row % 8 in every mode: a narrow mode has fewer chunks in a row, so chunks leave their row",
       [=](Tile t, Int r, Int c) { return with_chunk(t, r, c, chunk_of(t, c) ^ (r % 8)); }},
      {"XOR with three bits of the line in every mode: the 64-byte mode XORs two bits and the 32-byte mode one, so "
       "chunks "
       "leave their row",
       [=](Tile t, Int r, Int c) { return with_chunk(t, r, c, chunk_of(t, c) ^ (line_of(t, r, c) % 8)); }},
      {"the XORed bits are one too high: bits 7 and above of the byte address are XORed into bits 4 and above, a shift "
       "by 3",
       [=](Tile t, Int r, Int c) {
         const Int byte = byte_of(t, r, c);
         return (byte ^ (byte >> 4 & (bytes(t.mode) - 16))) / t.element();
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

// Offsets count elements; kvscope swizzle table and the handout's tables count bytes.
std::string offset_text(const SwizzleTile& tile, std::int64_t offset) {
  return fmt::format("offset {} (byte {})", offset, offset * tile.element());
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

// What the harness has in *row and *col before it calls place().
constexpr std::int64_t kPlaceUnwritten = std::numeric_limits<std::int64_t>::min();

std::string place_text(std::int64_t row, std::int64_t col) {
  const auto word = [](std::int64_t x) { return x == kPlaceUnwritten ? std::string("nothing") : fmt::format("{}", x); };
  return fmt::format("row {}, column {}", word(row), word(col));
}

// The chunks of the line that has the shown offset: the first element of each by the mode, and by place().
CasePicture picture_of_places(const SwizzleTile& tile, const Words& expected, const Words& given, std::int64_t shown) {
  constexpr std::int64_t kLine = 8;  // [chunks]
  PictureGrid grid{fmt::format("line at byte {}, by chunks of 16 bytes: row and column of each chunk's first element",
                               shown * tile.element() / 128 * 128),
                   {},
                   {{"the mode", {}}, {"place()", {}}}};
  const std::int64_t first = shown * tile.element() / 128 * 128 / tile.element();
  for (std::int64_t c = 0; c < kLine; ++c) {
    const auto at = static_cast<std::size_t>(first + c * tile.per_chunk());
    grid.columns.push_back(fmt::format("byte {}", static_cast<std::int64_t>(at) * tile.element()));
    const auto words = [&](const Words& of) {
      const auto word = [](std::int64_t x) { return x == kPlaceUnwritten ? std::string("-") : fmt::format("{}", x); };
      return fmt::format("{},{}", word(of[2 * at]), word(of[2 * at + 1]));
    };
    const bool same = words(expected) == words(given);
    grid.rows[0].cells.push_back({words(expected), same ? CellMark::plain : CellMark::expected});
    grid.rows[1].cells.push_back({words(given), same ? CellMark::plain : CellMark::wrong});
  }
  return {{std::move(grid)}};
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
  std::string message, text;
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
      return TileFault{"an element is outside the tile",
                       fmt::format("{} is at {}; offsets of the tile are 0 to {}", at(tile, i),
                                   offset_text(tile, offsets[i]), tile.elements() - 1),
                       i};
    }
    auto& other = owner[static_cast<std::size_t>(offsets[i])];
    if (other.has_value()) {
      return TileFault{
          "two elements share a place",
          fmt::format("{} and {} are both at {}", at(tile, *other), at(tile, i), offset_text(tile, offsets[i])), i};
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
      return TileFault{"a chunk of 16 bytes is torn apart",
                       fmt::format("{} is at {}; its chunk begins at {}", at(tile, i), offset_text(tile, offsets[i]),
                                   offset_text(tile, first)),
                       i};
    }
  }
  return std::nullopt;
}

// Two lanes of a phase that read one chunk take one wavefront, but one of the rows is not there.
std::optional<TileFault> shared_chunk(const SwizzleTile& tile, const SharedAccess& access, std::int64_t first,
                                      std::int64_t col) {
  for (std::int64_t lane = 0; lane < kGroupRows; ++lane) {
    for (std::int64_t other = 0; other < lane; ++other) {
      const std::int64_t address = *access.addresses[static_cast<std::size_t>(lane)];
      if (address != *access.addresses[static_cast<std::size_t>(other)]) continue;
      return TileFault{"two rows of a read share a chunk",
                       fmt::format("columns {} to {} of rows {} and {} are in the 16 bytes from byte {}", col,
                                   col + tile.per_chunk() - 1, first + other, first + lane, address),
                       static_cast<std::size_t>(first * tile.columns() + col), true};
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
          return TileFault{"a chunk cannot be read at once",
                           fmt::format("the chunk of row {}, column {} begins at {}, which is no multiple of 16 bytes",
                                       first + lane, col, offset_text(tile, offset)),
                           static_cast<std::size_t>((first + lane) * tile.columns() + col)};
        }
        const std::int64_t address = std::clamp<std::int64_t>(offset, 0, 1 << 20) * tile.element();
        access.addresses[static_cast<std::size_t>(lane)] = address / kChunkBytes * kChunkBytes;
      }
      if (auto shared = shared_chunk(tile, access, first, col)) return shared;
      const int cycles = bank_report(profile, access).cycles();
      if (cycles > 1) {
        return TileFault{"a column read has bank conflicts",
                         fmt::format("columns {} to {} of rows {} to {} take {} wavefronts instead of 1", col,
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
    return {of_moved_chunks("bijection", tiles, offsets, collision, error, 1),
            of_moved_chunks("chunks", tiles, offsets, torn_chunk, error, 2),
            property("wavefronts", tiles, offsets, bank_conflict, error, 2), agreement(tiles, offsets, error),
            inverse(tiles, places)};
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

  // "right for mode 128B with elements of 2 B; wrong for the other 8 of 9 tiles"; empty if none or all are right.
  static std::string right_so_far(const std::vector<SwizzleTile>& tiles, const HarnessRun& run) {
    std::string right;
    std::size_t count = 0;
    for (std::size_t i = 0; i < std::min(tiles.size(), run.results.size()); ++i) {
      if (run.results[i] != mode_offsets(tiles[i])) continue;
      right += fmt::format("{}mode {}B with elements of {} B", count == 0 ? "" : ", ", bytes(tiles[i].mode),
                           tiles[i].element());
      ++count;
    }
    if (count == 0 || count == tiles.size()) return {};
    return fmt::format("right for {}; wrong for the other {} of {} tiles", right, tiles.size() - count, tiles.size());
  }

  // The typical error that explains every offset, else the tiles that are right; empty without either.
  static std::string diagnosis(const std::vector<SwizzleTile>& tiles, const HarnessRun& run) {
    for (const SwizzleError& error : swizzle_errors()) {
      bool explains = run.results.size() == tiles.size();
      for (std::size_t i = 0; explains && i < tiles.size(); ++i) {
        explains = run.results[i] == offsets_of(tiles[i], error.offset);
      }
      if (explains) return error.message;
    }
    return right_so_far(tiles, run);
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
                      const std::string& error, int hint) const {
    if (auto result = stopped(test, tiles, run, 1)) return *result;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const std::optional<TileFault> found = fault(tiles[i], run.results[i]);
      if (found) {
        return with_picture(failed(lab(), test, error.empty() ? found->message : found->message + ": " + error,
                                   tiles[i].text() + "\n" + found->text, hint),
                            found->picture(tiles[i], run.results[i]));
      }
    }
    return passed(lab(), test);
  }

  // The properties of plain rows, which earn no points: chunks must move.
  template <class Fault>
  TestResult of_moved_chunks(std::string_view test, const std::vector<SwizzleTile>& tiles, const HarnessRun& run,
                             Fault fault, const std::string& error, int hint) const {
    const auto plain_rows = [](const SwizzleTile& t, std::int64_t r, std::int64_t c) { return r * t.columns() + c; };
    bool plain = run.results.size() == tiles.size();
    for (std::size_t i = 0; plain && i < tiles.size(); ++i) plain = run.results[i] == offsets_of(tiles[i], plain_rows);
    if (!plain) return property(test, tiles, run, fault, error, hint);
    return failed(lab(), test, error, tiles.front().text() + "\nno chunk has moved: every row begins with its column 0",
                  hint);
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
          fmt::format("{}\n{}: expected {}, your code gave {}", tiles[i].text(), at(tiles[i], index),
                      offset_text(tiles[i], *found.in1), offset_text(tiles[i], *found.in2));
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
    CasePicture picture;
    for (std::size_t i = 0; i < tiles.size(); ++i) {
      const Words expected = mode_places(tiles[i]);
      const Words& given = run.results[i];
      for (std::size_t offset = 0; 2 * offset < given.size(); ++offset) {
        const std::int64_t row = given[2 * offset], col = given[2 * offset + 1];
        const auto whole = static_cast<std::int64_t>(offset);
        plain = plain && row == whole / tiles[i].columns() && col == whole % tiles[i].columns();
        exchanged = exchanged && row == expected[2 * offset + 1] && col == expected[2 * offset];
        unwritten = unwritten && row == kPlaceUnwritten && col == kPlaceUnwritten;
        if (text.empty() && (row != expected[2 * offset] || col != expected[2 * offset + 1])) {
          text = fmt::format("{}\n{}: expected row {}, column {}; your code gave {}", tiles[i].text(),
                             offset_text(tiles[i], whole), expected[2 * offset], expected[2 * offset + 1],
                             place_text(row, col));
          picture = picture_of_places(tiles[i], expected, given, whole);
        }
      }
    }
    if (text.empty()) return passed(lab(), "inverse");
    return with_picture(failed(lab(), "inverse",
                               unwritten   ? "place() writes neither *row nor *col"
                               : plain     ? "the inverse ignores the swizzle"
                               : exchanged ? "the inverse returns row and column in each other's place"
                                           : "the inverse does not give the element that the mode stores there",
                               text, 3),
                        picture);
  }
};

}  // namespace

std::unique_ptr<Grader> swizzle_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<SwizzleGrader>(lab, options);
}

}  // namespace kvscope::labs
