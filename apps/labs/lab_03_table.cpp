// Lab 03: the lookup table of a batch, compared with build_lookup_table over batches of the seed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <set>

#include "apps/labs/block_draw.h"
#include "apps/labs/compile.h"
#include "apps/labs/exact_cases.h"
#include "apps/labs/graders.h"
#include "core/layout/table_columns.h"
#include "core/paging/lookup_table.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kPoison = 0x7ffffff1;   // of harness.cpp, in the table before build_table
constexpr std::int64_t kAfterBlocks = 999999;  // of harness.cpp, after the blocks of a request
constexpr std::int64_t kTableGuards = 64;      // entries after the table
constexpr std::size_t kTableCases = 16;        // of each test

struct TableRequest {
  std::int64_t tokens = 0;
  std::vector<std::uint32_t> blocks;  // may cover more than `tokens`
};

struct TableCase {
  std::int64_t page_size = 4, null_page = 0, columns = 0;
  std::vector<std::int64_t> order;  // [rows] request of each row; -1: a padding row of the batch
  std::vector<TableRequest> requests;

  [[nodiscard]] std::int64_t pages(std::int64_t request) const {
    return ceil_div(requests[static_cast<std::size_t>(request)].tokens, page_size);
  }
  [[nodiscard]] std::int64_t rows() const { return static_cast<std::int64_t>(order.size()); }
};

enum class Cells { pages, after_pages, padding_rows };

struct TableTest {
  std::string_view name;
  Cells cells;
  bool permuted, reserved, padding_rows;
};

constexpr std::array kTableTests{TableTest{"entries", Cells::pages, false, false, false},
                                 TableTest{"batch_order", Cells::pages, true, false, false},
                                 TableTest{"padding", Cells::after_pages, false, false, false},
                                 TableTest{"reserved", Cells::after_pages, false, true, false},
                                 TableTest{"padding_rows", Cells::padding_rows, false, false, true}};

TableCase make_table_case(const TableTest& test, const CounterRng& random, std::size_t number) {
  std::uint64_t at = number * 1000;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  const bool small = number < 4;
  TableCase made;
  made.page_size = small ? 4 : std::int64_t{1} << pick(1, 6);
  made.null_page = pick(200, 1000);
  const std::int64_t count = pick(3, small ? 3 : 9);
  std::set<std::int64_t> used;
  std::int64_t longest = 1;
  for (std::int64_t i = 0; i < count; ++i) {
    TableRequest request;
    // Lengths on a page's end and inside a page both occur in every case.
    const std::int64_t pages = pick(1, small ? 4 : 12);
    request.tokens = i % 2 == 0 ? pages * made.page_size : pages * made.page_size - pick(1, made.page_size - 1);
    for (std::int64_t page = 0; page < pages + (test.reserved ? pick(1, 3) : 0); ++page) {
      request.blocks.push_back(
          static_cast<std::uint32_t>(draw_block(used, [&] { return pick(0, made.null_page - 1); })));
    }
    longest = std::max(longest, pages);
    made.requests.push_back(std::move(request));
  }
  for (std::int64_t i = 0; i < count; ++i) made.order.push_back(i);
  if (test.permuted) {  // a rotation by one: it differs from its inverse and from the identity
    std::rotate(made.order.begin(), made.order.begin() + 1, made.order.end());
    if (count > 3 && pick(0, 1) == 1) std::swap(made.order[0], made.order[1]);
  }
  if (test.padding_rows) made.order.insert(made.order.end(), static_cast<std::size_t>(pick(1, 3)), -1);
  made.columns = padded_lut_cols(longest);
  return made;
}

Words words_of(const TableCase& made) {
  Words words{1,           made.rows(), static_cast<std::int64_t>(made.requests.size()), made.page_size, made.null_page,
              made.columns};
  words.insert(words.end(), made.order.begin(), made.order.end());
  for (const TableRequest& request : made.requests) {
    words.insert(words.end(), {request.tokens, static_cast<std::int64_t>(request.blocks.size())});
    words.insert(words.end(), request.blocks.begin(), request.blocks.end());
  }
  return words;
}

Words with_table_guards(Words table) {
  table.resize(table.size() + static_cast<std::size_t>(kTableGuards), kPoison);
  return table;
}

Words model_table(const TableCase& made) {
  std::vector<LutRow> rows;
  for (const std::int64_t number : made.order) {
    if (number < 0) {
      rows.push_back({{}, 0, true});
      continue;
    }
    const TableRequest& request = made.requests[static_cast<std::size_t>(number)];
    rows.push_back({request.blocks, request.tokens, false});
  }
  const Lut lut = build_lookup_table(rows, {made.null_page, made.page_size, made.rows()});
  KVSCOPE_ASSERT(lut.columns == made.columns);
  return with_table_guards({lut.entries.begin(), lut.entries.end()});
}

// A table builder with one typical error.
struct TableError {
  std::string message;
  std::optional<std::int64_t> padding = std::nullopt;  // value after the pages; empty: the null page
  std::int64_t above_null = 0;                         // added to the null page
  enum class Order { as_given, ignored, scattered } order = Order::as_given;
  enum class Pages { all, whole, one_more, reserved } pages = Pages::all;
  bool packed = false;                                     // rows `longest` entries apart
  std::optional<std::int64_t> padding_row = std::nullopt;  // value of padding rows; empty: the null page
  bool counted_slots = false;                              // block numbers multiplied by the page size
  bool request_before = false;                             // order -1 as a request: that of harness.cpp, one page
};

Words wrong_table(const TableCase& made, const TableError& error) {
  const std::int64_t null_page = made.null_page + error.above_null;
  Words table(static_cast<std::size_t>(made.rows() * made.columns + kTableGuards), kPoison);
  std::int64_t longest = 0;
  for (std::int64_t i = 0; i < static_cast<std::int64_t>(made.requests.size()); ++i)
    longest = std::max(longest, made.pages(i));
  const std::int64_t stride = error.packed ? longest : made.columns;
  const auto put = [&](std::int64_t row, std::int64_t column, std::int64_t value) {
    const std::int64_t index = row * stride + column;
    if (row >= 0 && index < static_cast<std::int64_t>(table.size())) table[static_cast<std::size_t>(index)] = value;
  };
  const auto fill = [&](std::int64_t row, std::int64_t value) {
    for (std::int64_t column = 0; column < stride; ++column) put(row, column, value);
  };
  if (error.packed) std::fill_n(table.begin(), made.rows() * made.columns, null_page);
  for (std::int64_t row = 0; row < made.rows(); ++row) {
    const std::int64_t given = made.order[static_cast<std::size_t>(row)];
    fill(row, given < 0 ? error.padding_row.value_or(null_page) : error.padding.value_or(null_page));
  }
  for (std::int64_t row = 0; row < made.rows(); ++row) {
    const std::int64_t given = made.order[static_cast<std::size_t>(row)];
    if (given < 0 && error.request_before) put(row, 0, kAfterBlocks);
    if (given < 0) continue;
    const bool scattered = error.order == TableError::Order::scattered;
    const std::int64_t number = error.order == TableError::Order::as_given ? given : row;
    const TableRequest& request = made.requests[static_cast<std::size_t>(number)];
    const auto held = static_cast<std::int64_t>(request.blocks.size());
    const std::int64_t pages = error.pages == TableError::Pages::all        ? made.pages(number)
                               : error.pages == TableError::Pages::whole    ? request.tokens / made.page_size
                               : error.pages == TableError::Pages::one_more ? request.tokens / made.page_size + 1
                                                                            : held;
    for (std::int64_t page = 0; page < pages; ++page) {
      const std::int64_t block =
          page < held ? std::int64_t{request.blocks[static_cast<std::size_t>(page)]} : kAfterBlocks;
      put(scattered ? given : row, page, error.counted_slots ? block * made.page_size : block);
    }
  }
  return table;
}

std::vector<TableError> table_errors() {
  using Order = TableError::Order;
  using Pages = TableError::Pages;
  return {
      {.message = "entries after the last page are not written: kernels read them, so they must hold the null page",
       .padding = kPoison,
       .padding_row = kPoison},
      {.message = "entries after the last page are not written: kernels read them, so they must hold the null page",
       .padding = kPoison},
      {.message = "entries after the last page are 0: block 0 belongs to a sequence", .padding = 0, .padding_row = 0},
      {.message = "entries after the last page are 0: block 0 belongs to a sequence", .padding = 0},
      {.message = "entries after the last page are -1: a kernel multiplies them by the stride, far outside of the pool",
       .padding = 0xffffffff,
       .padding_row = 0xffffffff},
      {.message = "entries after the last page are the block after the null page: the pool ends with the null page",
       .above_null = 1},
      {.message = "entries after the last page are the last real block, not the null page", .above_null = -1},
      {.message = "the order of the batch is ignored: row b belongs to request order[b]", .order = Order::ignored},
      {.message =
           "the order of the batch is inverted: row b belongs to request order[b], not row order[b] to request b",
       .order = Order::scattered},
      {.message = "the last page is missing when it is not full: pages are rounded up", .pages = Pages::whole},
      {.message = "one page too many when the last one is full: tokens / page_size is rounded up only with a remainder",
       .pages = Pages::one_more},
      {.message = "reserved blocks are copied: no token is stored in them yet, so their entries hold the null page",
       .pages = Pages::reserved},
      {.message = "the rows are packed: they begin `columns` entries apart", .packed = true},
      {.message = "padding rows of the batch are not written: kernels read them too", .padding_row = kPoison},
      {.message = "padding rows of the batch are 0: block 0 belongs to a sequence", .padding_row = 0},
      {.message = "padding rows of the batch are taken as requests: their `order` is -1, and there is no request -1",
       .request_before = true},
      {.message = "block numbers are multiplied by the page size: the table holds blocks", .counted_slots = true},
  };
}

std::string text_of_case(const TableCase& made, std::size_t cell) {
  const std::int64_t row = static_cast<std::int64_t>(cell) / made.columns;
  std::string text = fmt::format("page_size {}, null_page {}, columns {}, order {}\n", made.page_size, made.null_page,
                                 made.columns, fmt::join(made.order, " "));
  if (row < made.rows() && made.order[static_cast<std::size_t>(row)] >= 0) {
    const std::int64_t number = made.order[static_cast<std::size_t>(row)];
    const TableRequest& request = made.requests[static_cast<std::size_t>(number)];
    text += fmt::format("request {}: {} tokens, blocks {}\n", number, request.tokens, fmt::join(request.blocks, " "));
  }
  return text +
         (row < made.rows()
              ? fmt::format("table row {}, column {}", row, static_cast<std::int64_t>(cell) % made.columns)
              : fmt::format("entry {} after the table", static_cast<std::int64_t>(cell) - made.rows() * made.columns));
}

std::string entry_text(std::int64_t value) {
  return value == kPoison ? "not written" : fmt::format("{}", value);
}

bool is_tested(const TableCase& made, Cells cells, std::size_t cell) {
  const auto row = cell / static_cast<std::size_t>(made.columns);
  if (row >= made.order.size()) return cells == Cells::after_pages;  // the guards
  const std::int64_t number = made.order[row];
  if (number < 0) return cells == Cells::padding_rows;
  const bool of_a_page = static_cast<std::int64_t>(cell) % made.columns < made.pages(number);
  return cells == (of_a_page ? Cells::pages : Cells::after_pages);
}

// The student's table around the first wrong entry, which also has the expected value.
CasePicture picture_of_case(const TableCase& made, const Words& expected, const Words& given, std::size_t wrong) {
  constexpr std::int64_t kColumnsShown = 16;
  const std::int64_t cell = static_cast<std::int64_t>(wrong), row = cell / made.columns;
  const auto at = [](const Words& words, std::int64_t i) { return entry_text(words[static_cast<std::size_t>(i)]); };
  PictureGrid grid{"your table: block numbers", {}, {}};
  const CellWindow columns = window_around(cell % made.columns, made.columns, kColumnsShown);
  for (std::int64_t c = columns.first; c < columns.last; ++c) grid.columns.push_back(fmt::format("{}", c));
  for (std::int64_t r = 0; r < made.rows() + (row >= made.rows() ? row - made.rows() + 1 : 0); ++r) {
    const std::int64_t number = r < made.rows() ? made.order[static_cast<std::size_t>(r)] : -1;
    PictureRow line{fmt::format("row {}: request {}", r, number), {}};
    if (number < 0) line.heading = r < made.rows() ? fmt::format("row {}: padding", r) : "after the table";
    for (std::int64_t c = columns.first; c < columns.last; ++c) {
      const std::int64_t i = r * made.columns + c;
      if (i >= static_cast<std::int64_t>(given.size())) break;
      const bool page = number >= 0 && c < made.pages(number);
      PictureCell shown{at(given, i), page ? CellMark::used : CellMark::quiet};
      if (i == cell) shown = {shown.text, CellMark::wrong, "expected " + at(expected, i)};
      line.cells.push_back(std::move(shown));
    }
    grid.rows.push_back(std::move(line));
  }
  return {{std::move(grid)}, "pages that have tokens", "after the last page"};
}

// A row of `columns` entries, and a read of `width` of them that begins at the last page.
CasePicture picture_of_read(std::int64_t columns, std::int64_t pages, std::int64_t width) {
  constexpr std::int64_t kBefore = 6;  // entries before the read
  PictureGrid grid{"a row of the table, and a read that begins at its last page",
                   {},
                   {{"the row", {}}, {fmt::format("a read of {}", width), {}}}};
  for (std::int64_t c = std::max<std::int64_t>(0, pages - 1 - kBefore); c < pages - 1 + width; ++c) {
    const bool inside = c < columns, read = c >= pages - 1;
    grid.columns.push_back(fmt::format("{}", c));
    grid.rows[0].cells.push_back(
        {inside ? (c < pages ? "page" : "padding") : "no entry", inside ? CellMark::plain : CellMark::quiet});
    grid.rows[1].cells.push_back({read ? "read" : "", !read    ? CellMark::quiet
                                                      : inside ? CellMark::used
                                                               : CellMark::wrong});
  }
  return {{std::move(grid)}, "the read, inside the row"};
}

class TableGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const Compiled compiled = compile_cpp(*this, submission);
    if (!compiled.ok) return all_failed(lab(), "table.cpp does not compile", compile_failure(compiled));
    std::vector<TestResult> results{grade_columns(seed.random(100), compiled.product)};
    for (std::size_t i = 0; i < kTableTests.size(); ++i) {
      results.push_back(grade_cells(kTableTests[i], seed.random(i), compiled.product));
    }
    return results;
  }

 private:
  // A kernel reads 8 or 16 entries at once, from the entry of any page on.
  [[nodiscard]] TestResult grade_columns(const CounterRng& random, const std::string& program) const {
    std::vector<Words> cases;
    for (std::int64_t pages = 1; pages <= 9; ++pages) cases.push_back({0, pages});
    cases.push_back({0, 21});
    for (std::uint64_t i = 0; i < 16; ++i) cases.push_back({0, random.integer(i, 10, 5000)});
    const HarnessRun run = run_cases(options(), program, cases);
    for (std::size_t i = 0; i < run.results.size(); ++i) {
      const std::int64_t pages = cases[i][1];
      const std::int64_t given = run.results[i].size() == 1 ? run.results[i][0] : -1;
      if (given == padded_lut_cols(pages)) continue;
      const std::string text =
          fmt::format("table_columns({}): expected {}, your code gave {}", pages, padded_lut_cols(pages), given);
      for (const std::int64_t width : {8, 16}) {
        // The case of 21 pages shows the read in the words of the handout.
        const std::int64_t shown = given == pages ? 21 : pages, columns = given == pages ? 21 : given;
        if (pages - 1 + width > given) {
          return with_picture(failed(lab(), "columns",
                                     fmt::format("a read of {} entries at column {} leaves the row, which has {}",
                                                 width, shown - 1, columns),
                                     text, 1),
                              picture_of_read(columns, shown, width));
        }
      }
      return failed(lab(), "columns",
                    given % 8 != 0
                        ? fmt::format("{} columns are not a multiple of 8: the next row is not aligned", given)
                        : "the table has other columns than the pages, rounded up to 8, and 16",
                    text, 1);
    }
    if (run.results.size() < cases.size()) return stopped_in_case(lab(), "columns", run, "table_columns()");
    return passed(lab(), "columns");
  }

  [[nodiscard]] TestResult grade_cells(const TableTest& test, const CounterRng& random,
                                       const std::string& program) const {
    std::vector<TableCase> cases;
    std::vector<Words> sent;
    for (std::size_t number = 0; number < kTableCases; ++number) {
      cases.push_back(make_table_case(test, random, number));
      sent.push_back(words_of(cases.back()));
    }
    const HarnessRun run = run_cases(options(), program, sent);
    std::string text;
    CasePicture picture;
    for (std::size_t i = 0; i < run.results.size() && text.empty(); ++i) {
      const Words expected = model_table(cases[i]);
      if (run.results[i].size() != expected.size()) return failed(lab(), test.name, "the result has another size");
      for (std::size_t cell = 0; cell < expected.size() && text.empty(); ++cell) {
        if (run.results[i][cell] == expected[cell] || !is_tested(cases[i], test.cells, cell)) continue;
        text = fmt::format("{}: expected {}, your code gave {}", text_of_case(cases[i], cell),
                           entry_text(expected[cell]), entry_text(run.results[i][cell]));
        picture = picture_of_case(cases[i], expected, run.results[i], cell);
      }
    }
    if (text.empty() && run.results.size() == cases.size()) return passed(lab(), test.name);
    if (text.empty()) return stopped_in_case(lab(), test.name, run, text_of_case(cases[run.results.size()], 0));
    for (const TableError& error : table_errors()) {
      bool explains = true;
      for (std::size_t i = 0; explains && i < run.results.size(); ++i) {
        explains = run.results[i] == wrong_table(cases[i], error);
      }
      if (explains) return with_picture(failed(lab(), test.name, error.message, text), picture);
    }
    return with_picture(failed(lab(), test.name, "an entry of the table is wrong", text), picture);
  }
};

}  // namespace

std::unique_ptr<Grader> table_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<TableGrader>(lab, options);
}

}  // namespace kvscope::labs
