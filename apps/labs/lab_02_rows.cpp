// Lab 02: row_idx and populate, compared with PagedKVCache over shapes of the seed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <set>

#include "apps/labs/block_draw.h"
#include "apps/labs/compile.h"
#include "apps/labs/exact_cases.h"
#include "apps/labs/graders.h"
#include "apps/labs/pool_picture.h"
#include "core/cache/paged_kv_cache.h"
#include "core/layout/table_columns.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kUntouched = 0xeeeeeeee;  // of harness.cpp, in rows that populate must not write
constexpr std::int64_t kGuards = 8;              // rows after the last part
constexpr std::int64_t kOutside = 999999;        // entries around the table in harness.cpp
constexpr std::int64_t kBlocks = 64;

struct RowCase {
  std::int64_t columns = 0, page_size = 0, layers = 0, k_or_v = 2, sequence = 0, base = 0;
  std::int64_t tile = 0;             // 0: row_idx of token `base`
  std::int64_t pages = 0;            // of each sequence
  std::vector<std::uint32_t> table;  // [batch, columns]

  [[nodiscard]] std::int64_t batch() const { return static_cast<std::int64_t>(table.size()) / columns; }
  [[nodiscard]] std::int64_t parts() const { return tile == 0 ? 1 : std::max<std::int64_t>(1, tile / page_size); }
};

struct RowTest {
  std::string_view name;
  std::int64_t batch, first_page, k_or_v;
  bool block_zero;  // the page is in block 0
  int tile;         // 0: none, 1: several pages, -1: at most a page
};

constexpr std::array kRowTests{
    RowTest{"one_page", 1, 0, 2, true, 0},       RowTest{"blocks", 1, 0, 2, false, 0},
    RowTest{"mla", 1, 0, 1, false, 0},           RowTest{"sequences", 3, 1, 2, false, 0},
    RowTest{"tile_of_pages", 3, 0, 2, false, 1}, RowTest{"tile_in_page", 2, 0, 2, false, -1}};
constexpr std::size_t kCases = 24;  // of each test

// The first cases are small enough to work out by hand; later ones vary every size.
RowCase make_case(const RowTest& test, const CounterRng& random, std::size_t number) {
  std::uint64_t at = number * 1000;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  const bool small = number < 4;
  RowCase made;
  made.page_size = small ? 4 : std::int64_t{1} << pick(2, 7);
  made.layers = small ? pick(2, 3) : pick(2, 12);
  made.k_or_v = test.k_or_v;
  made.pages = test.first_page == 0 && test.tile == 0 ? 1 : small ? pick(3, 5) : pick(3, 20);
  if (test.tile > 0) made.pages = small ? 16 : 16 * pick(1, 2);  // two tiles at least
  made.columns = padded_lut_cols(made.pages);
  made.table.assign(static_cast<std::size_t>(test.batch * made.columns), static_cast<std::uint32_t>(kBlocks));
  for (std::int64_t b = 0; b < test.batch; ++b) {
    std::set<std::int64_t> used;
    for (std::int64_t page = 0; page < made.pages; ++page) {
      const auto any = [&] { return pick(1, small ? std::max<std::int64_t>(9, made.pages + 4) : kBlocks - 1); };
      const std::int64_t block = test.block_zero ? 0 : draw_block(used, any);
      made.table[static_cast<std::size_t>(b * made.columns + page)] = static_cast<std::uint32_t>(block);
    }
  }
  // The last sequence and a slot that is not 0 occur in the first cases of each test, whatever the seed.
  made.sequence = number % 2 == 0 ? test.batch - 1 : pick(0, test.batch - 1);
  const std::int64_t slot = number % 4 == 3 ? 0 : pick(1, made.page_size - 1);
  const std::int64_t page = pick(test.first_page, made.pages - 1);
  made.base = (test.first_page == 0 && test.tile == 0 ? 0 : page * made.page_size) + slot;
  if (test.tile > 0) {
    made.tile = made.page_size << pick(1, 3);
    made.base = pick(number % 2 == 0 ? 1 : 0, made.pages * made.page_size / made.tile - 1) * made.tile;
  }
  if (test.tile < 0) {
    made.tile = std::max<std::int64_t>(1, made.page_size >> (number % 4 == 3 ? 0 : pick(1, 2)));
    made.base = page * made.page_size + (number % 4 == 3 ? 0 : made.page_size - made.tile);
  }
  return made;
}

Words words_of(const RowCase& made) {
  Words words{made.columns, made.page_size, made.layers, made.k_or_v, made.sequence, made.base, made.tile};
  words.insert(words.end(), made.table.begin(), made.table.end());
  return words;
}

Words with_guards(Words rows) {
  rows.resize(rows.size() + static_cast<std::size_t>(kGuards), kUntouched);
  return rows;
}

// What the model gives. Only addresses are computed, so the pool has no memory.
Words model_rows(const RowCase& made) {
  static std::byte none{};
  const Shape<4> extents{kBlocks + 1, made.page_size, 1, 1};
  const Shape<4> strides{made.k_or_v * made.layers * made.page_size, 1, 1, 1};
  const std::vector<std::uint32_t> lengths(static_cast<std::size_t>(made.batch()), 0);
  PagedLayerTensors tensors;
  tensors.blocks = AnyView<4>(&none, DType::e4m3, extents, strides);
  tensors.cache_lengths = CacheLengths(lengths.data(), {made.batch()}, {1});
  tensors.lookup_table = LookupTable(made.table.data(), {made.batch(), made.columns}, {made.columns, 1});
  const PagedCacheParams params{DType::e4m3, {1, 1, made.k_or_v == 1}, made.page_size, {}, 1};
  const PagedKVCache cache(params, tensors);
  const SeqIdx sequence{made.sequence};
  if (made.tile == 0) return {cache.row_idx(sequence, TokIdx{made.base}).value};
  const PagedRowIndices rows = cache.populate(PopulateTile{.BN = made.tile}, sequence, TokIdx{made.base});
  return with_guards({rows.rows().begin(), rows.rows().end()});
}

std::string text_of_case(const RowCase& made) {
  const auto row = made.table.begin() + made.sequence * made.columns;
  std::string text =
      fmt::format("page_size {}, layers {}, k_or_v {}, columns {}; pages of sequence {} are in blocks {}\n",
                  made.page_size, made.layers, made.k_or_v, made.columns, made.sequence,
                  fmt::join(row, row + std::min<std::int64_t>(made.pages, 16), " "));
  return text + (made.tile == 0 ? fmt::format("row_idx(cache, sequence {}, token {})", made.sequence, made.base)
                                : fmt::format("populate(cache, sequence {}, base {}, tile {})", made.sequence,
                                              made.base, made.tile));
}

std::string rows_text(const Words& words) {
  const auto last = std::find_if(words.rbegin(), words.rend(), [](std::int64_t word) { return word != kUntouched; });
  std::vector<std::string> parts;
  for (auto at = words.begin(); at != last.base(); ++at) {
    parts.push_back(*at == kUntouched ? "(not written)" : std::to_string(*at));
  }
  return parts.empty() ? "no row" : fmt::format("{}", fmt::join(parts, " "));
}

// The table's entries that the case reads, and where the first wrong row is and should be. For a tile, also its rows.
CasePicture picture_of_case(const RowCase& made, const Words& expected, const Words& given) {
  constexpr std::int64_t kColumnsShown = 16;
  CasePicture picture{{}, "entries of the case", "padding of the table"};
  const std::int64_t first_page = made.base / made.page_size, last_page = first_page + made.parts() - 1;
  const CellWindow columns = window_around((first_page + last_page) / 2, made.columns, kColumnsShown);
  PictureGrid table{"lookup table: the block of each page", {}, {}};
  for (std::int64_t c = columns.first; c < columns.last; ++c) table.columns.push_back(fmt::format("page {}", c));
  for (std::int64_t b = 0; b < made.batch(); ++b) {
    PictureRow row{fmt::format("sequence {}", b), {}};
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const bool used = b == made.sequence && c >= first_page && c <= last_page;
      const CellMark mark = used ? CellMark::used : c < made.pages ? CellMark::plain : CellMark::quiet;
      row.cells.push_back({fmt::format("{}", made.table[static_cast<std::size_t>(b * made.columns + c)]), mark});
    }
    table.rows.push_back(std::move(row));
  }
  picture.grids.push_back(std::move(table));

  const auto differs = [&](std::size_t i) { return i < given.size() && given[i] != expected[i]; };
  std::size_t wrong = 0;
  while (wrong + 1 < expected.size() && !differs(wrong)) ++wrong;
  if (made.tile != 0) {
    PictureGrid rows{
        "first row of each part of the tile", {}, {{"first token", {}}, {"expected", {}}, {"your code", {}}}};
    for (std::size_t i = 0; i < expected.size() && i < given.size(); ++i) {
      const bool part = static_cast<std::int64_t>(i) < made.parts();
      if (!part && !differs(i)) continue;
      const auto text = [](std::int64_t row) { return row == kUntouched ? "-" : fmt::format("{}", row); };
      const std::int64_t token = made.base + static_cast<std::int64_t>(i) * made.page_size;
      rows.columns.push_back(part ? fmt::format("part {}", i) : "after");
      rows.rows[0].cells.push_back({part ? fmt::format("{}", token) : "-", CellMark::plain});
      rows.rows[1].cells.push_back({text(expected[i]), differs(i) ? CellMark::expected : CellMark::plain});
      rows.rows[2].cells.push_back({text(given[i]), differs(i) ? CellMark::wrong : CellMark::plain});
    }
    picture.grids.push_back(std::move(rows));
  }
  if (expected[wrong] != kUntouched && wrong < given.size()) {
    const bool written = given[wrong] != kUntouched;
    picture.grids.push_back(pool_grid({made.page_size, made.layers, made.k_or_v, kBlocks + 1}, expected[wrong],
                                      written ? std::optional(given[wrong]) : std::nullopt));
  }
  return picture;
}

// A formula for a row with one typical error in it.
struct RowFormula {
  std::string message;
  std::function<std::int64_t(const RowCase&, std::int64_t token)> row;
  int hint = 1;
};

std::int64_t entry(const RowCase& made, std::int64_t index) {
  const bool inside = index >= 0 && index < static_cast<std::int64_t>(made.table.size());
  return inside ? std::int64_t{made.table[static_cast<std::size_t>(index)]} : kOutside;
}

std::int64_t block_of(const RowCase& made, std::int64_t token) {
  return entry(made, made.sequence * made.columns + token / made.page_size);
}

std::int64_t whole_block(const RowCase& made) {
  return made.k_or_v * made.layers * made.page_size;
}

std::vector<RowFormula> row_formulas() {
  using C = const RowCase&;
  using T = std::int64_t;
  return {
      {"right in block 0 only: the stride is of one layer, page_size rows; a block holds the page of every layer, K "
       "and V",
       [](C c, T t) { return block_of(c, t) * c.page_size + t % c.page_size; }, 2},
      {"the stride counts only one of K and V: a block holds both, k_or_v * layers * page_size rows",
       [](C c, T t) { return block_of(c, t) * c.layers * c.page_size + t % c.page_size; }, 2},
      {"the stride counts K and V of one layer: a block holds them for every layer",
       [](C c, T t) { return block_of(c, t) * c.k_or_v * c.page_size + t % c.page_size; }, 2},
      {"the stride always counts two slots, K and V: an MLA cache has k_or_v == 1",
       [](C c, T t) { return block_of(c, t) * 2 * c.layers * c.page_size + t % c.page_size; }, 2},
      {"the block number is added without a stride: one block is many rows",
       [](C c, T t) { return block_of(c, t) + t % c.page_size; }, 2},
      {"the whole token number is added: inside its block a token is at token % page_size",
       [](C c, T t) { return block_of(c, t) * whole_block(c) + t; }, 1},
      {"the slot is missing: every token of a page has the row of its first token",
       [](C c, T t) { return block_of(c, t) * whole_block(c); }, 1},
      {"the table is not used: the pages of a sequence are not in blocks 0, 1, 2, ...",
       [](C c, T t) { return t / c.page_size * whole_block(c) + t % c.page_size; }, 1},
      {"the table is not used: token numbers are not rows", [](C, T t) { return t; }, 1},
      {"every sequence reads the first row of the table",
       [](C c, T t) { return entry(c, t / c.page_size) * whole_block(c) + t % c.page_size; }, 3},
      {"the rows of the table are taken as packed, one entry per page: they begin `columns` entries apart",
       [](C c, T t) { return entry(c, c.sequence * c.pages + t / c.page_size) * whole_block(c) + t % c.page_size; }, 3},
      {"the table is transposed: row `sequence` of the table has the pages of a sequence, one in each column",
       [](C c, T t) { return entry(c, t / c.page_size * c.columns + c.sequence) * whole_block(c) + t % c.page_size; },
       3},
      {"the table is indexed by the token instead of its page, token / page_size",
       [](C c, T t) { return entry(c, c.sequence * c.columns + t) * whole_block(c) + t % c.page_size; }, 1},
      {"page and slot are exchanged: the page is token / page_size, the slot token % page_size",
       [](C c, T t) { return entry(c, c.sequence * c.columns + t % c.page_size) * whole_block(c) + t / c.page_size; },
       1},
      {"the entry after the token's page is read: pages are counted from 0",
       [](C c, T t) {
         return entry(c, c.sequence * c.columns + t / c.page_size + 1) * whole_block(c) + t % c.page_size;
       },
       1},
  };
}

// A populate with one typical error, for a correct row formula.
struct TileFormula {
  std::string message;
  std::function<Words(const RowCase&)> rows;
  int hint = 3;
};

std::int64_t right_row(const RowCase& made, std::int64_t token) {
  return block_of(made, token) * whole_block(made) + token % made.page_size;
}

Words rows_of_parts(const RowCase& made, const std::function<std::int64_t(std::int64_t part)>& row,
                    std::int64_t parts) {
  Words rows(static_cast<std::size_t>(made.parts() + kGuards), kUntouched);
  for (std::int64_t part = 0; part < std::min(parts, made.parts() + kGuards); ++part) {
    rows[static_cast<std::size_t>(part)] = row(part) & 0xffffffff;
  }
  return rows;
}

std::vector<TileFormula> tile_formulas() {
  using C = const RowCase&;
  return {
      {"pages of the tile are taken as adjacent blocks: each page has a table entry of its own",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, c.base) + p * c.page_size; }, c.parts());
       }},
      {"pages of the tile are taken as consecutive blocks: each page has a table entry of its own",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, c.base) + p * whole_block(c); }, c.parts());
       }},
      {"only the first row is written: the tile has tile / page_size parts",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t) { return right_row(c, c.base); }, 1);
       }},
      {"every part has the row of the first: advance the token by page_size",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t) { return right_row(c, c.base); }, c.parts());
       }},
      {"part i begins at token base + i: a part is a page, so it begins at base + i * page_size",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, c.base + p); }, c.parts());
       }},
      {"the tile begins at token 0 instead of `base`",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, p * c.page_size); }, c.parts());
       }},
      {"the offset in the page is dropped: a tile inside a page begins at base % page_size",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, (c.base / c.page_size + p) * c.page_size); }, c.parts());
       }},
      {"nothing is written for a tile inside one page: tile / page_size is 0 there, but it has one part",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, c.base + p * c.page_size); }, c.tile / c.page_size);
       }},
      {"a row is written past the last part: `rows` has room for tile / page_size rows",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, c.base + p * c.page_size); }, c.tile / c.page_size + 1);
       }},
      {"one row per token is written: `rows` has one per part",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, c.base + p); }, c.tile);
       }},
      {"the last part is missing",
       [](C c) {
         return rows_of_parts(
             c, [&](std::int64_t p) { return right_row(c, c.base + p * c.page_size); }, c.parts() - 1);
       }},
  };
}

class RowsGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const Compiled compiled = compile_cpp(*this, submission);
    if (!compiled.ok) return all_failed(lab(), "rows.cpp does not compile", compile_failure(compiled));
    std::vector<TestResult> results;
    for (std::size_t i = 0; i < kRowTests.size(); ++i) {
      results.push_back(grade_test(kRowTests[i], seed.random(i), compiled.product));
    }
    return results;
  }

 private:
  [[nodiscard]] TestResult grade_test(const RowTest& test, const CounterRng& random, const std::string& program) const {
    std::vector<RowCase> cases;
    std::vector<Words> sent;
    std::vector<ExactCase> exact;
    for (std::size_t number = 0; number < kCases; ++number) {
      cases.push_back(make_case(test, random, number));
      sent.push_back(words_of(cases.back()));
      const RowCase& made = cases.back();
      const Words expected = model_rows(made);
      exact.push_back({expected, text_of_case(made), made.page_size * made.layers * made.pages,
                       [made, expected](const Words& given) { return picture_of_case(made, expected, given); }});
    }
    std::vector<Hypothesis> hypotheses;
    const auto add = [&](const std::string& message, int hint, const std::function<Words(const RowCase&)>& rows) {
      hypotheses.push_back({message, [&cases, rows](std::size_t i) { return rows(cases[i]); }, hint});
    };
    if (test.tile != 0) {
      for (const TileFormula& formula : tile_formulas()) add(formula.message, formula.hint, formula.rows);
    }
    for (const RowFormula& formula : row_formulas()) {
      add(formula.message, formula.hint, [formula](const RowCase& made) {
        const auto part_row = [&](std::int64_t part) { return formula.row(made, made.base + part * made.page_size); };
        if (made.tile == 0) return Words{part_row(0) & 0xffffffff};
        return rows_of_parts(made, part_row, made.parts());
      });
    }
    return judge_exact(lab(), test.name, exact, run_cases(options(), program, sent), hypotheses, rows_text);
  }
};

}  // namespace

std::unique_ptr<Grader> rows_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<RowsGrader>(lab, options);
}

}  // namespace kvscope::labs
