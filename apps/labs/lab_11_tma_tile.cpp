// Lab 11: tiles by tensor copies. The events of the kernel's tile are compared with those of the tile as the handout
// describes it, the output with the pool's rows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <variant>

#include "apps/labs/graders.h"
#include "apps/labs/kernel_run.h"
#include "apps/labs/report_text.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kTileRows = 64, kTileColumns = 128, kTileBytes = kTileRows * kTileColumns * 2;
constexpr std::int64_t kHalfBytes = kTileBytes / 2, kMapRows = 640;

struct TmaCase {
  std::int64_t tiles = 1, pages = 4;
  std::vector<std::int32_t> rows;   // [tiles, pages]
  std::vector<std::uint16_t> pool;  // [kMapRows, kTileColumns]
  [[nodiscard]] std::int64_t page_rows() const { return kTileRows / pages; }
  // Map row of row r of tile n.
  [[nodiscard]] std::int64_t row(std::int64_t n, std::int64_t r) const {
    return rows[static_cast<std::size_t>(n * pages + r / page_rows())] + r % page_rows();
  }
  [[nodiscard]] std::uint16_t element(std::int64_t map_row, std::int64_t column) const {
    return pool[static_cast<std::size_t>(map_row * kTileColumns + column)];
  }
};

TmaCase make_tma(const CounterRng& random, std::int64_t tiles, std::int64_t pages) {
  std::uint64_t at = 0;
  TmaCase made;
  made.tiles = tiles;
  made.pages = pages;
  // A block of the pool has four times the rows of a page: K and V of two layers.
  const std::int64_t stride = 4 * made.page_rows(), blocks = kMapRows / stride;
  std::vector<std::int32_t> used;
  while (static_cast<std::int64_t>(made.rows.size()) < tiles * pages) {
    const auto row = static_cast<std::int32_t>(random.integer(at++, 0, blocks - 1) * stride);
    const bool repeats = std::ranges::find(used, row) != used.end();
    if (repeats && static_cast<std::int64_t>(used.size()) < blocks) continue;
    used.push_back(row);
    made.rows.push_back(row);
  }
  made.pool.resize(static_cast<std::size_t>(kMapRows * kTileColumns));
  for (std::size_t e = 0; e < made.pool.size(); ++e) made.pool[e] = static_cast<std::uint16_t>(random.bits(1000 + e));
  return made;
}

LabCall tma_call(const TmaCase& made) {
  TensorMap map;
  map.data_type = TmaDataType::bf16;
  map.rank = 2;
  map.dims = {static_cast<std::uint64_t>(kTileColumns), static_cast<std::uint64_t>(kMapRows)};
  map.strides = {static_cast<std::uint64_t>(kTileColumns * 2)};
  map.box = {64, static_cast<std::uint32_t>(made.page_rows())};
  map.swizzle = TmaSwizzle::b128;
  LabCall call;
  call.entry = "tile";
  call.block = {128, 1, 1};
  const auto out_bytes = static_cast<std::size_t>(made.tiles * kTileBytes);
  call.arrays = {{"pool", lab_bytes(made.pool)},
                 {"rows", lab_bytes(made.rows)},
                 {"out", std::vector<std::byte>(out_bytes, kUnwritten), false}};
  call.params = {MapOf{0, map}, AddressOf{1}, AddressOf{2}, static_cast<std::uint64_t>(made.tiles),
                 static_cast<std::uint64_t>(made.pages)};
  call.global_races = false;
  return call;
}

std::string tma_text(const TmaCase& made) {
  return fmt::format("{} of {} pages of {} rows; first rows {}", made.tiles == 1 ? "one tile" : "tiles", made.pages,
                     made.page_rows(), fmt::join(made.rows, " "));
}

struct Box {
  std::int64_t column = 0, row = 0, shared = 0, bytes = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

std::string box_text(const Box& box) {
  return fmt::format("{} bytes from column {}, map row {} to byte {} of the buffer", box.bytes, box.column, box.row,
                     box.shared);
}

using BoxPlace = std::function<Box(const TmaCase&, std::int64_t page, std::int64_t half)>;

std::vector<Box> boxes_of(const TmaCase& made, const BoxPlace& place, std::int64_t halves = 2) {
  std::vector<Box> boxes;
  for (std::int64_t page = 0; page < made.pages; ++page) {
    for (std::int64_t half = 0; half < halves; ++half) boxes.push_back(place(made, page, half));
  }
  // Any order of the copies is right.
  std::ranges::sort(boxes, {}, [](const Box& box) { return std::array{box.shared, box.column, box.row}; });
  return boxes;
}

std::int32_t first_row(const TmaCase& made, std::int64_t page) {
  return made.rows[static_cast<std::size_t>(page)];
}

Box right_box(const TmaCase& made, std::int64_t page, std::int64_t half) {
  return {half * 64, first_row(made, page), half * kHalfBytes + page * made.page_rows() * 128, made.page_rows() * 128};
}

struct BoxFormula {
  std::string message;
  BoxPlace place;
  std::int64_t halves = 2;
};

// Typical errors. Only the places of a tile of several pages tell some of them apart.
const std::vector<BoxFormula>& box_formulas() {
  using C = const TmaCase&;
  using T = std::int64_t;
  static const auto with = [](Box box, auto change) {
    change(box);
    return box;
  };
  static const std::vector<BoxFormula> formulas{
      {"columns 64 to 127 are not copied: a box has 64 columns, and a page needs two boxes", right_box, 1},
      {"columns 0 to 63 are copied twice: the second box begins at column 64",
       [](C c, T p, T h) { return with(right_box(c, p, h), [](Box& box) { box.column = 0; }); }},
      {"the second box begins at column 128: columns are counted in elements, not in bytes",
       [](C c, T p, T h) { return with(right_box(c, p, h), [&](Box& box) { box.column = 128 * h; }); }},
      {"every page is copied from the first page's row: page p begins at rows[p]",
       [](C c, T p, T h) { return with(right_box(c, p, h), [&](Box& box) { box.row = first_row(c, 0); }); }},
      {"the pages are taken as adjacent in the map: page p begins at rows[p]",
       [](C c, T p, T h) {
         return with(right_box(c, p, h), [&](Box& box) { box.row = first_row(c, 0) + p * c.page_rows(); });
       }},
      {"rows is not read: page p begins at rows[p], not at row p times the rows of a page",
       [](C c, T p, T h) { return with(right_box(c, p, h), [&](Box& box) { box.row = p * c.page_rows(); }); }},
      {"the two boxes of a page are adjacent in the buffer: columns 64 to 127 begin at byte 8192",
       [](C c, T p, T h) {
         return with(right_box(c, p, h), [&](Box& box) { box.shared = (2 * p + h) * c.page_rows() * 128; });
       }},
      {"every page lands at the place of the first: page p is p * (64 / pages) rows of 128 bytes further",
       [](C c, T p, T h) { return with(right_box(c, p, h), [&](Box& box) { box.shared = h * kHalfBytes; }); }},
      {"the place of a page counts rows of 64 bytes: a row of a half is 64 elements, 128 bytes",
       [](C c, T p, T h) {
         return with(right_box(c, p, h), [&](Box& box) { box.shared = h * kHalfBytes + p * c.page_rows() * 64; });
       }},
      {"both boxes of a page land at the same place: columns 64 to 127 begin at byte 8192",
       [](C c, T p, T h) { return with(right_box(c, p, h), [&](Box& box) { box.shared = p * c.page_rows() * 128; }); }},
      {"column and row are exchanged: the column is the first coordinate",
       [](C c, T p, T h) { return with(right_box(c, p, h), [](Box& box) { std::swap(box.column, box.row); }); }},
  };
  return formulas;
}

// The byte of the buffer that is written to element (r, d) of the output, for a typical reader.
struct ReadFormula {
  std::string message;
  std::function<std::int64_t(std::int64_t r, std::int64_t d)> offset;
};

std::int64_t half_row(std::int64_t r, std::int64_t d) {
  return d / 64 * kHalfBytes + r * 128;
}

const std::vector<ReadFormula>& read_formulas() {
  using T = std::int64_t;
  static const std::vector<ReadFormula> formulas{
      {"the swizzle is not undone: chunk c of row r is at chunk c ^ (r % 8)",
       [](T r, T d) { return half_row(r, d) + d % 64 * 2; }},
      {"XOR counted in elements, not in 16-byte chunks",
       [](T r, T d) { return half_row(r, d) + (d % 64 ^ r % 8) * 2; }},
      {"XOR with r % 4: a 128-byte swizzle repeats after 8 rows",
       [](T r, T d) { return half_row(r, d) + ((d % 64 / 8) ^ (r % 4)) * 16 + d % 8 * 2; }},
      {"XOR with r / 8: the swizzle depends on the row in its group of 8, r % 8",
       [](T r, T d) { return half_row(r, d) + ((d % 64 / 8) ^ (r / 8 % 8)) * 16 + d % 8 * 2; }},
      {"the chunk is rotated by the row: the swizzle is an XOR, not a sum",
       [](T r, T d) { return half_row(r, d) + (d % 64 / 8 + r) % 8 * 16 + d % 8 * 2; }},
      {"the buffer is read as rows of 256 bytes: each half has rows of 128 bytes",
       [](T r, T d) { return r * 256 + ((d / 8) ^ (r % 8)) % 16 * 16 + d % 8 * 2; }},
      {"both halves of a row are read from columns 0 to 63",
       [](T r, T d) { return r * 128 + ((d % 64 / 8) ^ (r % 8)) * 16 + d % 8 * 2; }},
  };
  return formulas;
}

// A tile in shared memory, by 16-byte chunks: chunk c of row r of a half is at r * 128 + (c ^ r % 8) * 16.
std::vector<std::uint16_t> buffer_of(const TmaCase& made, std::int64_t n) {
  std::vector<std::uint16_t> buffer(static_cast<std::size_t>(kTileBytes / 2));
  for (std::int64_t r = 0; r < kTileRows; ++r) {
    for (std::int64_t d = 0; d < kTileColumns; ++d) {
      const std::int64_t byte = half_row(r, d) + ((d % 64 / 8) ^ (r % 8)) * 16 + d % 8 * 2;
      buffer[static_cast<std::size_t>(byte / 2)] = made.element(made.row(n, r), d);
    }
  }
  return buffer;
}

// What a report means in this lab, before the report itself.
std::string meaning_of(const KernelRun& run) {
  if (run.reports.empty()) return {};
  const ptx::Report& report = *shown_report(run);
  const bool of_barrier = std::ranges::any_of(
      report.parties, [](const ptx::ReportParty& party) { return party.opcode.starts_with("mbarrier"); });
  switch (report.kind) {
    case ptx::ReportKind::uninitialized:
      return "the buffer is read before its copies have landed: every thread that reads waits, first with parity 0; ";
    case ptx::ReportKind::race_wr:
    case ptx::ReportKind::race_ww:
      if (of_barrier) return "threads use the barrier before thread 0 has made it visible to them: __syncthreads; ";
      return "a tile is read while its copies are in flight; ";
    case ptx::ReportKind::race_rw:
      return "copies overwrite the buffer while it is still read; ";
    case ptx::ReportKind::mbar_underflow:
      return "more arrivals than barrier_init was given: one arrival announces all bytes of a tile; ";
    case ptx::ReportKind::mbarrier_touched:
      return "the barrier is made again while it is in use: one thread makes it, once, before the first tile; ";
    case ptx::ReportKind::no_mbarrier:
      return "the barrier is used before barrier_init has made it; ";
    default:
      return {};
  }
}

// The buffer by pages and halves: the box that lands in each place. The first difference has the expected box too.
CasePicture picture_of_boxes(const TmaCase& made, const std::vector<Box>& copied, const std::vector<Box>& expected) {
  const auto words = [](const Box& box) { return fmt::format("row {}, column {}", box.row, box.column); };
  PictureGrid grid{
      "the buffer by pages: the box of the map that lands in each half", {"columns 0 to 63", "columns 64 to 127"}, {}};
  bool shown = false;
  for (std::int64_t page = 0; page < made.pages; ++page) {
    PictureRow row{fmt::format("page {}, byte {}", page, page * made.page_rows() * 128), {}};
    for (std::int64_t half = 0; half < 2; ++half) {
      const Box right = right_box(made, page, half);
      std::vector<Box> here;
      std::ranges::copy_if(copied, std::back_inserter(here),
                           [&](const Box& box) { return box.shared == right.shared; });
      const bool same = here.size() == 1 && here.front() == right;
      PictureCell cell{here.empty() ? "no box" : words(here.front()), same ? CellMark::plain : CellMark::wrong};
      if (here.size() > 1) cell.text += fmt::format(", {} boxes", here.size());
      if (!same && !shown) cell.note = "expected " + words(right);
      shown |= !same;
      row.cells.push_back(std::move(cell));
    }
    grid.rows.push_back(std::move(row));
  }
  CasePicture picture{{std::move(grid)}};
  PictureGrid elsewhere{"boxes that land elsewhere in shared memory", {}, {}};
  for (const Box& box : copied) {
    const bool known = std::ranges::find(expected, box.shared, &Box::shared) != expected.end();
    if (known || elsewhere.rows.size() == 8) continue;
    elsewhere.rows.push_back({fmt::format("byte {}", box.shared), {{words(box), CellMark::wrong}}});
  }
  if (!elsewhere.rows.empty()) picture.grids.push_back(std::move(elsewhere));
  return picture;
}

// The rows of the tile around the first wrong element, by chunks of 8 elements.
CasePicture picture_of_values(const TmaCase& made, const std::vector<std::uint16_t>& out, std::int64_t wrong) {
  constexpr std::int64_t kRowsShown = 8, kChunk = 8;
  const std::int64_t n = wrong / kTileColumns / kTileRows, row = wrong / kTileColumns % kTileRows,
                     chunk = wrong % kTileColumns / kChunk;
  PictureGrid grid{fmt::format("tile {} by chunks of 8 elements: the number of wrong elements", n), {}, {}};
  for (std::int64_t c = 0; c < kTileColumns / kChunk; ++c) grid.columns.push_back(fmt::format("{}", c * kChunk));
  const CellWindow window = window_around(row, kTileRows, kRowsShown);
  for (std::int64_t r = window.first; r < window.last; ++r) {
    PictureRow line{fmt::format("row {}", r), {}};
    for (std::int64_t c = 0; c < kTileColumns / kChunk; ++c) {
      std::int64_t differ = 0;
      for (std::int64_t d = c * kChunk; d < (c + 1) * kChunk; ++d) {
        const auto i = static_cast<std::size_t>((n * kTileRows + r) * kTileColumns + d);
        differ += out[i] == made.element(made.row(n, r), d) ? 0 : 1;
      }
      PictureCell cell{differ == 0 ? "" : fmt::format("{}", differ), differ == 0 ? CellMark::plain : CellMark::wrong};
      if (r == row && c == chunk) cell.note = "first";
      line.cells.push_back(std::move(cell));
    }
    grid.rows.push_back(std::move(line));
  }
  return {{std::move(grid)}};
}

class TmaTileGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const LabKernel kernel = compile_kernel(*this, submission, "tile.cu");
    if (!kernel.ok()) return all_failed(lab(), "tile.cu does not compile", kernel.messages);
    bool complete = false;
    TestResult boxes = grade_boxes(kernel, seed.random(1), complete);
    TestResult bytes = complete ? grade_bytes(kernel, seed.random(1))
                                : failed(lab(), "bytes", "not judged: the boxes must be right first", {}, 1);
    TestResult values = complete ? grade_values(kernel, seed.random(2))
                                 : failed(lab(), "values", "not judged: the boxes must be right first", {}, 1);
    TestResult phases = values.passed() ? grade_phases(kernel, seed.random(3))
                                        : failed(lab(), "phases", "not judged: one tile must be right first", {}, 3);
    return {std::move(boxes), std::move(bytes), std::move(values), std::move(phases)};
  }

 private:
  static constexpr std::array<std::int64_t, 4> kPages{4, 1, 2, 8};

  [[nodiscard]] static std::vector<Box> boxes_in(const KernelRun& run) {
    std::vector<Box> boxes;
    for (const trace::Event& event : run.events) {
      if (const auto* const box = std::get_if<trace::BoxCopied>(&event)) {
        boxes.push_back({box->column, box->row, box->shared, box->bytes});
      }
    }
    std::ranges::sort(boxes, {}, [](const Box& box) { return std::array{box.shared, box.column, box.row}; });
    return boxes;
  }

  [[nodiscard]] TestResult grade_boxes(const LabKernel& kernel, const CounterRng& random, bool& complete) const {
    std::vector<TmaCase> cases;
    std::vector<std::vector<Box>> copied;
    for (const std::int64_t pages : kPages) {
      cases.push_back(make_tma(random, 1, pages));
      LabCall call = tma_call(cases.back());
      call.tiles = true;
      const KernelRun run = run_kernel(kernel, call);
      if (!run.failure.empty()) return failed(lab(), "boxes", fault_of(run), run.failure);
      copied.push_back(boxes_in(run));
      const bool rejected = !run.reports.empty() && run.reports.front().kind == ptx::ReportKind::tma_arg;
      if (rejected || (copied.back().empty() && !fault_of(run).empty())) {
        return failed(lab(), "boxes", fault_of(run), tma_text(cases.back()) + "\n" + report_case(run), 1);
      }
    }
    const auto agrees = [&](const BoxPlace& place, std::int64_t halves) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (copied[i] != boxes_of(cases[i], place, halves)) return false;
      }
      return true;
    };
    complete = agrees(right_box, 2);
    if (complete) return passed(lab(), "boxes");
    const std::string text = first_difference(cases, copied);
    std::size_t differs = 0;
    while (differs + 1 < cases.size() && copied[differs] == boxes_of(cases[differs], right_box)) ++differs;
    const CasePicture picture = picture_of_boxes(cases[differs], copied[differs], boxes_of(cases[differs], right_box));
    const auto wrong_boxes = [&](std::string message) {
      return with_picture(failed(lab(), "boxes", std::move(message), text, 1), picture);
    };
    for (const BoxFormula& formula : box_formulas()) {
      if (agrees(formula.place, formula.halves)) return wrong_boxes(formula.message);
    }
    const auto count = static_cast<std::int64_t>(copied.front().size()), most = 2 * cases.front().pages;
    if (count == 0) return wrong_boxes("no box is copied");
    if (count == 128 * most) return wrong_boxes("every thread issues the copies: each box is copied 128 times");
    if (count != most) return wrong_boxes(fmt::format("{} boxes are copied, a tile of 4 pages has {}", count, most));
    return wrong_boxes("a box is copied from another place or to another place");
  }

  [[nodiscard]] static std::string first_difference(const std::vector<TmaCase>& cases,
                                                    const std::vector<std::vector<Box>>& copied) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      const std::vector<Box> expected = boxes_of(cases[i], right_box);
      std::vector<Box> once = copied[i];  // a box that several threads copy is listed once
      once.erase(std::unique(once.begin(), once.end()), once.end());
      for (std::size_t b = 0; b < std::max(expected.size(), once.size()); ++b) {
        const std::string right = b < expected.size() ? box_text(expected[b]) : "no more boxes";
        const std::string got = b < once.size() ? box_text(once[b]) : "no more boxes";
        if (right == got) continue;
        return fmt::format("{}\nfirst differing box, in the order of the buffer:\nexpected {}\ngot      {}",
                           tma_text(cases[i]), right, got);
      }
    }
    return {};
  }

  [[nodiscard]] TestResult grade_bytes(const LabKernel& kernel, const CounterRng& random) const {
    for (const std::int64_t pages : kPages) {
      const TmaCase made = make_tma(random, 1, pages);
      LabCall call = tma_call(made);
      call.tiles = true;
      const KernelRun run = run_kernel(kernel, call);
      std::int64_t expects = 0, arrive = 0, announcements = 0;
      for (const trace::Event& event : run.events) {
        if (const auto* const box = std::get_if<trace::BoxCopied>(&event)) arrive += box->bytes;
        if (const auto* const announced = std::get_if<trace::BarrierExpects>(&event)) {
          expects += announced->bytes;
          ++announcements;
        }
      }
      const bool too_often = announcements > 1 && !fault_of(run).empty();
      if (expects == arrive && !too_often) continue;
      std::string message = fmt::format("expects {} bytes, {} arrive", expects, arrive);
      if (expects == 0 && announcements == 0) message = fmt::format("expects no bytes, {} arrive", arrive);
      if (expects * 2 == arrive && pages > 0) message += ": elements of bf16 have 2 bytes, and a page has two boxes";
      if (expects * pages == arrive && pages > 2) message += ": that is one page of the tile";
      if (expects == 128 * arrive) message += ": every thread announces the bytes";
      if (expects == arrive)
        message =
            fmt::format("the bytes are announced {} times: one thread announces all of them at once", announcements);
      return failed(lab(), "bytes", message, tma_text(made) + "\n" + report_case(run), 2);
    }
    return passed(lab(), "bytes");
  }

  // Which element is wrong; empty when the output is right.
  [[nodiscard]] static std::string wrong_element(const TmaCase& made, const std::vector<std::uint16_t>& out,
                                                 CasePicture& picture) {
    for (std::int64_t i = 0; i < made.tiles * kTileRows * kTileColumns; ++i) {
      const std::int64_t n = i / kTileColumns / kTileRows, r = i / kTileColumns % kTileRows, d = i % kTileColumns;
      const std::uint16_t expected = made.element(made.row(n, r), d);
      const std::uint16_t got = out[static_cast<std::size_t>(i)];
      if (got == expected) continue;
      picture = picture_of_values(made, out, i);
      return fmt::format("{}\ntile {}, row {}, column {}: expected {:#06x}, your kernel wrote {}", tma_text(made), n, r,
                         d, expected, got == 0xcdcd ? "nothing" : fmt::format("{:#06x}", got));
    }
    return {};
  }

  [[nodiscard]] TestResult grade_values(const LabKernel& kernel, const CounterRng& random) const {
    for (const std::int64_t pages : kPages) {
      const TmaCase made = make_tma(random, 1, pages);
      const std::vector<std::uint16_t> buffer = buffer_of(made, 0);
      for (const Schedule& schedule : all_schedules()) {
        const KernelRun run = run_kernel(kernel, tma_call(made), schedule);
        if (!fault_of(run).empty()) {
          return with_picture(
              failed(lab(), "values", meaning_of(run) + fault_of(run),
                     fmt::format("{}, schedule {}\n{}", tma_text(made), schedule_name(schedule), report_case(run)), 2),
              report_picture(run));
        }
        const std::vector<std::uint16_t> out = lab_values<std::uint16_t>(run.arrays[2]);
        CasePicture picture;
        const std::string wrong = wrong_element(made, out, picture);
        if (wrong.empty()) continue;
        for (const ReadFormula& formula : read_formulas()) {
          bool explains = true;
          for (std::int64_t i = 0; explains && i < kTileRows * kTileColumns; ++i) {
            const std::int64_t byte = formula.offset(i / kTileColumns, i % kTileColumns);
            explains = out[static_cast<std::size_t>(i)] == buffer[static_cast<std::size_t>(byte / 2)];
          }
          if (explains) return with_picture(failed(lab(), "values", formula.message, wrong, 3), picture);
        }
        const bool nothing = std::ranges::all_of(out, [](std::uint16_t x) { return x == 0xcdcd; });
        return with_picture(
            failed(lab(), "values", nothing ? "nothing is written to out" : "elements of out are wrong", wrong, 3),
            picture);
      }
    }
    return passed(lab(), "values");
  }

  // Which tile each part of the output has, where one tile alone is right.
  [[nodiscard]] static std::string fault_of_tiles(const TmaCase& made, const std::vector<std::uint16_t>& out) {
    constexpr std::int64_t kElements = kTileRows * kTileColumns;
    const auto has = [&](std::int64_t part, std::int64_t tile) {
      for (std::int64_t i = 0; i < kElements; ++i) {
        const std::uint16_t right = made.element(made.row(tile, i / kTileColumns), i % kTileColumns);
        if (out[static_cast<std::size_t>(part * kElements + i)] != right) return false;
      }
      return true;
    };
    const bool rest_unwritten = std::all_of(out.begin() + kElements, out.end(), [](auto x) { return x == 0xcdcd; });
    if (rest_unwritten && has(0, 0)) return "only tile 0 is written: load and write `tiles` tiles";
    if (rest_unwritten && has(0, made.tiles - 1))
      return "every tile is written to the place of the first: tile n begins at element n * 64 * 128 of out";
    bool first_everywhere = true;
    for (std::int64_t n = 0; first_everywhere && n < made.tiles; ++n) first_everywhere = has(n, 0);
    if (first_everywhere)
      return "every tile is copied from the pages of tile 0: page p of tile n is rows[n * pages + p]";
    return "one tile is right, and several are not";
  }

  [[nodiscard]] TestResult grade_phases(const LabKernel& kernel, const CounterRng& random) const {
    const TmaCase made = make_tma(random, 4, 4);
    std::string fault, text;
    CasePicture picture, wrong_tile;  // of the first fault, of the schedule
    bool raced = false;               // copies and reads of the buffer, under some schedule
    std::int64_t barriers = 0;        // of a warp
    for (const Schedule& schedule : all_schedules()) {
      const KernelRun run = run_kernel(kernel, tma_call(made), schedule);
      for (const ptx::Report& report : run.reports) raced |= ptx::name(report.kind).starts_with("RACE");
      barriers = std::max(barriers, run.barriers / (128 / 32));
      const bool reported = !fault_of(run).empty();
      const std::string wrong =
          reported ? std::string() : wrong_element(made, lab_values<std::uint16_t>(run.arrays[2]), wrong_tile);
      if (!fault.empty() || (!reported && wrong.empty())) continue;
      fault =
          reported ? meaning_of(run) + fault_of(run) : fault_of_tiles(made, lab_values<std::uint16_t>(run.arrays[2]));
      picture = reported ? report_picture(run) : wrong_tile;
      text = fmt::format("4 tiles, schedule {}\n{}", schedule_name(schedule), reported ? report_case(run) : wrong);
    }
    if (fault.empty()) return passed(lab(), "phases");
    // The threads did wait for one another in each tile, so they did not wait for the copies.
    if (raced && barriers > 1) {  // one makes the arrival barrier visible
      fault = "a tile is read while copies are in flight: wait for tile n with parity n % 2; " + fault;
    }
    return with_picture(failed(lab(), "phases", fault, text, 3), picture);
  }
};

}  // namespace

std::unique_ptr<Grader> tma_tile_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<TmaTileGrader>(lab, options);
}

}  // namespace kvscope::labs
