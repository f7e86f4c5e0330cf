// Lab 11: tiles by tensor copies. The events of the kernel's tile are compared with those of the tile as the handout
// describes it, the output with the pool's rows.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>
#include <iterator>
#include <optional>
#include <variant>

#include "apps/labs/barrier_log.h"
#include "apps/labs/graders.h"
#include "apps/labs/kernel_run.h"
#include "apps/labs/report_text.h"
#include "apps/labs/tma_case.h"
#include "core/base/report.h"

namespace kvscope::labs {
namespace {

struct Box {
  std::int64_t column = 0, row = 0, shared = 0, bytes = 0;
  friend bool operator==(const Box&, const Box&) = default;
};

std::string box_text(const Box& box) {
  return fmt::format("map row {}, columns {} to {}, at byte {}", box.row, box.column, box.column + 63, box.shared);
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
      {"the buffer is taken as rows of 256 bytes: columns 0 to 63 of all rows are before columns 64 to 127",
       [](C c, T p, T h) {
         return with(right_box(c, p, h), [&](Box& box) { box.shared = h * 128 + p * c.page_rows() * 256; });
       }},
      {"the place of a page counts 16 rows for every page: a page has 64 / pages rows",
       [](C c, T p, T h) {
         return with(right_box(c, p, h), [&](Box& box) { box.shared = h * kHalfBytes + p * 2048; });
       }},
      {"the place of a page counts elements: a row of a half is 64 elements, 128 bytes",
       [](C c, T p, T h) {
         return with(right_box(c, p, h), [&](Box& box) { box.shared = h * 64 * 64 + p * c.page_rows() * 64; });
       }},
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
      {"the buffer is read as rows of 256 bytes: each half has rows of 128 bytes",
       [](T r, T d) { return (r * 256 + d * 2) ^ ((r * 256 + d * 2) >> 3 & 0x70); }},
      {"the swizzle is applied to the number of the element: it moves bytes, 16 at a time",
       [](T r, T d) {
         const T element = d / 64 * 4096 + r * 64 + d % 64;
         return (element ^ (element >> 3 & 0x70)) * 2;
       }},
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

// The report's kind and lines: "DEADLOCK line 27".
std::string head_of(const KernelRun& run) {
  const std::string fault = fault_of(run);
  return fault.substr(0, std::min(fault.find(": "), fault.find('\n')));
}

// A launch that ended with a report: its cause in the words of tma.h, if the barrier's log explains it.
struct TmaFault {
  std::string message, text;
};

TmaFault fault_in_words(const KernelRun& run, const BarrierLog& log) {
  const std::string cause = run.reports.empty() ? std::string() : log.cause(run.reports.front(), kTmaThreads);
  if (cause.empty()) {
    const std::string fault = fault_of(run);
    return {fault.substr(0, fault.find('\n')), report_case(run)};
  }
  // The report's own words are about instructions; its parties are the lines that matter.
  ptx::Report parties = run.reports.front();
  parties.message.clear();
  parties.hint.clear();
  return {cause + "; " + head_of(run), with_declared_names(ptx::to_text(parties)) + "\n" + log.text(kTmaThreads)};
}

// The buffer by pages and halves: the box that lands in each place, and the expected one below it.
CasePicture picture_of_boxes(const TmaCase& made, const std::vector<Box>& copied, const std::vector<Box>& expected) {
  const auto words = [](const Box& box) { return fmt::format("row {}, column {}", box.row, box.column); };
  PictureGrid grid{
      "the buffer by pages: the box of the map that lands in each half", {"columns 0 to 63", "columns 64 to 127"}, {}};
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
      if (!same) cell.note = "expected " + words(right);
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

// The chunk of 8 elements of the map that out has at a place: its row and column there.
struct MapChunk {
  std::int64_t row = 0, column = 0;
};

std::optional<MapChunk> find_chunk(const TmaCase& made, const std::uint16_t* out) {
  for (std::int64_t chunk = 0; chunk < kMapRows * kTileColumns / 8; ++chunk) {
    if (std::equal(out, out + 8, made.pool.data() + chunk * 8)) {
      return MapChunk{chunk * 8 / kTileColumns, chunk * 8 % kTileColumns};
    }
  }
  return std::nullopt;
}

// "row 3, 8" of the tile that has this row of the map; "map row 70, 8" outside of all tiles.
std::string chunk_name(const TmaCase& made, std::int64_t n, const MapChunk& chunk) {
  for (std::int64_t step = 0; step < made.tiles; ++step) {
    const std::int64_t tile = (n + step) % made.tiles;
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      if (made.row(tile, r) != chunk.row) continue;
      return fmt::format("{}row {}, {}", tile == n ? "" : fmt::format("tile {}, ", tile), r, chunk.column);
    }
  }
  return fmt::format("map row {}, {}", chunk.row, chunk.column);
}

// The rows of the tile around the first wrong element, by chunks of 8 elements of its half: which chunk of the tile out
// has there.
CasePicture picture_of_values(const TmaCase& made, const std::vector<std::uint16_t>& out, std::int64_t wrong) {
  constexpr std::int64_t kRowsShown = 8, kChunk = 8;  // 8 chunks in a half
  const std::int64_t n = wrong / kTileColumns / kTileRows, row = wrong / kTileColumns % kTileRows,
                     half = wrong % kTileColumns / 64;
  PictureGrid grid{
      fmt::format("out, tile {}, columns {} to {}: the row and first column of the tile's elements that are "
                  "there",
                  n, half * 64, half * 64 + 63),
      {},
      {}};
  for (std::int64_t c = 0; c < kChunk; ++c) {
    grid.columns.push_back(fmt::format("{}-{}", half * 64 + c * kChunk, half * 64 + c * kChunk + kChunk - 1));
  }
  const CellWindow window = window_around(row, kTileRows, kRowsShown);
  for (std::int64_t r = window.first; r < window.last; ++r) {
    PictureRow line{fmt::format("row {}", r), {}};
    for (std::int64_t c = 0; c < kChunk; ++c) {
      const std::int64_t column = half * 64 + c * kChunk;
      const std::uint16_t* const got = out.data() + (n * kTileRows + r) * kTileColumns + column;
      const std::int64_t first = made.row(n, r) * kTileColumns + column;
      const bool same = std::equal(got, got + kChunk, made.pool.data() + first);
      const bool unwritten = std::all_of(got, got + kChunk, [](std::uint16_t x) { return x == 0xcdcd; });
      const std::optional<MapChunk> from = same || unwritten ? std::nullopt : find_chunk(made, got);
      PictureCell cell{same        ? fmt::format("row {}, {}", r, column)
                       : unwritten ? "not written"
                       : from      ? chunk_name(made, n, *from)
                                   : "mixed",
                       same ? CellMark::plain : CellMark::wrong};
      if (!same) cell.note = fmt::format("expected row {}, {}", r, column);
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
    std::optional<TestResult> rejected;  // a box that the copy engine cannot copy
    for (const std::int64_t pages : kPages) {
      const TmaCase made = make_tma(random, 1, pages);
      BarrierLog log;
      LabCall call = tma_call(made);
      call.tiles = true;
      call.monitor = &log;
      const KernelRun run = run_kernel(kernel, call);
      if (!run.failure.empty()) return failed(lab(), "boxes", fault_of(run), run.failure);
      const std::vector<Box> boxes = boxes_in(run);
      const bool invalid = !run.reports.empty() && run.reports.front().kind == ptx::ReportKind::tma_arg;
      if (invalid || (boxes.empty() && !fault_of(run).empty())) {
        const TmaFault fault = fault_in_words(run, log);
        rejected = failed(lab(), "boxes", fault.message, tma_text(made) + "\n" + fault.text, invalid ? 1 : 2);
        if (!invalid) rejected = with_picture(*rejected, {{log.grid(kTmaThreads)}});
        break;
      }
      cases.push_back(made);
      copied.push_back(boxes);
    }
    const auto agrees = [&](const BoxPlace& place, std::int64_t halves) {
      for (std::size_t i = 0; i < cases.size(); ++i) {
        if (copied[i] != boxes_of(cases[i], place, halves)) return false;
      }
      return true;
    };
    const bool right = agrees(right_box, 2);
    if (right && rejected) return *rejected;
    complete = right;
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

  // The first box that is not copied to its place, and what was copied in its stead.
  [[nodiscard]] static std::string first_difference(const std::vector<TmaCase>& cases,
                                                    const std::vector<std::vector<Box>>& copied) {
    for (std::size_t i = 0; i < cases.size(); ++i) {
      for (std::int64_t page = 0; page < cases[i].pages; ++page) {
        for (std::int64_t half = 0; half < 2; ++half) {
          const Box right = right_box(cases[i], page, half);
          if (std::ranges::count(copied[i], right) == 1) continue;
          const auto moved = std::ranges::find_if(
              copied[i], [&](const Box& box) { return box.row == right.row && box.column == right.column; });
          const auto instead = std::ranges::find(copied[i], right.shared, &Box::shared);
          std::string got = "no such box is copied";
          if (const auto times = std::ranges::count(copied[i], right); times > 1) {
            got = fmt::format("your kernel copies it {} times", times);
          } else if (moved != copied[i].end()) {
            got = fmt::format("your kernel copies it to byte {}", moved->shared);
          } else if (instead != copied[i].end()) {
            got = fmt::format("your kernel copies {}", box_text(*instead));
          }
          return fmt::format("{}\npage {}: expected {} of the buffer\n{}", tma_text(cases[i]), page, box_text(right),
                             got);
        }
      }
      if (copied[i].size() != static_cast<std::size_t>(2 * cases[i].pages)) {
        return fmt::format("{}\nexpected {}, your kernel copies {}", tma_text(cases[i]),
                           counted(2 * cases[i].pages, "box", "boxes"), copied[i].size());
      }
    }
    return {};
  }

  [[nodiscard]] TestResult grade_bytes(const LabKernel& kernel, const CounterRng& random) const {
    for (const std::int64_t pages : kPages) {
      const TmaCase made = make_tma(random, 1, pages);
      BarrierLog log;
      LabCall call = tma_call(made);
      call.monitor = &log;
      const KernelRun run = run_kernel(kernel, call);
      const BarrierLog::Phase phase = log.phases().empty() ? BarrierLog::Phase() : log.phases().front();
      const auto lost = [&](std::string message) {
        return with_picture(
            failed(lab(), "bytes", std::move(message), tma_text(made) + "\n" + log.text(kTmaThreads), 2),
            {{log.grid(kTmaThreads)}});
      };
      constexpr std::array kOfTheBarrier{ptx::ReportKind::mbarrier_touched, ptx::ReportKind::no_mbarrier,
                                         ptx::ReportKind::mbar_underflow};
      if (!run.reports.empty() && std::ranges::find(kOfTheBarrier, run.reports.front().kind) != kOfTheBarrier.end()) {
        return lost(fault_in_words(run, log).message);
      }
      if (phase.announced != kTileBytes) {
        std::string message = fmt::format("expects {} bytes, {} arrive", phase.announced, kTileBytes);
        if (phase.announced == 0) message = fmt::format("expects no bytes, {} arrive", kTileBytes);
        if (phase.announced * 2 == kTileBytes) message += ": elements of bf16 have 2 bytes, and a page has two boxes";
        if (phase.announced * 2 * pages == kTileBytes && pages > 1) message += ": that is one box of the tile";
        if (phase.announced * pages == kTileBytes && pages > 2) message += ": that is one page of the tile";
        if (phase.announced == kTmaThreads * kTileBytes) message += ": every thread announces the bytes";
        return lost(message);
      }
      if (phase.arrivals != log.asked()) {
        return lost(
            fmt::format("barrier_init asks for {}, and {} arrive{}: its count is the number of calls of "
                        "barrier_arrive_expect in a phase",
                        counted(log.asked(), "arrival"), phase.arrivals, phase.arrivals == 1 ? "s" : ""));
      }
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

  // What the virtual GPU reports under each schedule: "late, seed 3: RACE line 20 and line 26; early: no report".
  [[nodiscard]] static std::string outcomes(const LabKernel& kernel, const TmaCase& made) {
    std::vector<std::pair<std::string, std::vector<std::string>>> found;  // outcome, schedules
    for (const Schedule& schedule : all_schedules()) {
      const KernelRun run = run_kernel(kernel, tma_call(made), schedule);
      CasePicture ignored;
      const bool reported = !fault_of(run).empty();
      const bool same = !reported && wrong_element(made, lab_values<std::uint16_t>(run.arrays[2]), ignored).empty();
      const std::string outcome = reported ? head_of(run) : same ? "right" : "wrong elements";
      auto known = std::ranges::find_if(found, [&](const auto& each) { return each.first == outcome; });
      if (known == found.end()) known = found.insert(found.end(), {outcome, {}});
      known->second.push_back(schedule_name(schedule));
    }
    std::string text = "schedules:";
    for (const auto& each : found) {
      text += fmt::format("{} {}: {}", text.back() == ':' ? "" : ";", fmt::join(each.second, ", "), each.first);
    }
    return text;
  }

  [[nodiscard]] static std::string wrong_output(const TmaCase& made, const std::vector<std::uint16_t>& out) {
    if (std::ranges::all_of(out, [](std::uint16_t x) { return x == 0xcdcd; })) return "nothing is written to out";
    bool columns = true;
    for (std::int64_t r = 0; r < kTileRows; ++r) {
      for (std::int64_t d = 0; d < kTileColumns; ++d) {
        columns = columns && out[static_cast<std::size_t>(d * kTileRows + r)] == made.element(made.row(0, r), d);
      }
    }
    if (columns) return "out is written column by column: element (row, column) is out[row * 128 + column]";
    return "elements of out are wrong";
  }

  [[nodiscard]] TestResult grade_values(const LabKernel& kernel, const CounterRng& random) const {
    for (const std::int64_t pages : kPages) {
      const TmaCase made = make_tma(random, 1, pages);
      const std::vector<std::uint16_t> buffer = buffer_of(made, 0);
      for (const Schedule& schedule : all_schedules()) {
        BarrierLog log;
        LabCall call = tma_call(made);
        call.monitor = &log;
        const KernelRun run = run_kernel(kernel, call, schedule);
        if (!fault_of(run).empty()) {
          const TmaFault fault = fault_in_words(run, log);
          return with_picture(failed(lab(), "values", fault.message,
                                     fmt::format("{}, schedule {}\n{}\n{}", tma_text(made), schedule_name(schedule),
                                                 fault.text, outcomes(kernel, made)),
                                     2),
                              {{log.grid(kTmaThreads)}});
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
        return with_picture(failed(lab(), "values", wrong_output(made, out), wrong, 3), picture);
      }
    }
    return passed(lab(), "values");
  }

  // Whether tile n of out has the pages rows[index(n, p)], for a typical index; or is not written.
  template <class Index>
  [[nodiscard]] static bool tiles_have(const TmaCase& made, const std::vector<std::uint16_t>& out, Index index) {
    for (std::int64_t i = 0; i < made.tiles * kTileRows * kTileColumns; ++i) {
      const std::int64_t n = i / kTileColumns / kTileRows, r = i / kTileColumns % kTileRows, d = i % kTileColumns;
      const std::int64_t entry = index(n, r / made.page_rows());
      const std::uint16_t expected =
          entry < 0 ? std::uint16_t{0xcdcd}
                    : made.element(made.rows[static_cast<std::size_t>(entry)] + r % made.page_rows(), d);
      if (out[static_cast<std::size_t>(i)] != expected) return false;
    }
    return true;
  }

  [[nodiscard]] static std::string wrong_tiles(const TmaCase& made, const std::vector<std::uint16_t>& out) {
    using T = std::int64_t;
    const T last = made.tiles - 1, pages = made.pages;
    const auto has = [&](auto index) { return tiles_have(made, out, index); };
    if (has([](T, T p) { return p; }))
      return "every tile is copied from the pages of tile 0: page p of tile n begins at rows[n * pages + p]";
    if (has([](T n, T p) { return n + p; }))
      return "tile n begins at rows[n]: page p of tile n begins at rows[n * pages + p]";
    if (has([&](T n, T p) { return p * made.tiles + n; })) {
      return "rows is read as [pages, tiles]: page p of tile n begins at rows[n * pages + p]";
    }
    if (has([&](T n, T p) { return n == 0 ? last * pages + p : -1; })) {
      return "every tile is written to the place of tile 0: tile n begins at out[n * 64 * 128]";
    }
    if (has([](T n, T p) { return n == 0 ? p : -1; }))
      return "only tile 0 is copied: repeat the copies, the wait and the reads for each tile";
    return "one tile is right, and several are not";
  }

  [[nodiscard]] TestResult grade_phases(const LabKernel& kernel, const CounterRng& random) const {
    const TmaCase made = make_tma(random, 4, 4);
    std::uint64_t parity = 0;
    for (const Schedule& schedule : all_schedules()) {
      BarrierLog log;
      LabCall call = tma_call(made);
      call.monitor = &log;
      const KernelRun run = run_kernel(kernel, call, schedule);
      const std::string where = fmt::format("4 tiles, schedule {}\n", schedule_name(schedule));
      if (!fault_of(run).empty()) {
        const TmaFault fault = fault_in_words(run, log);
        return with_picture(
            failed(lab(), "phases", fault.message, where + fault.text + "\n" + outcomes(kernel, made), 3),
            {{log.grid(kTmaThreads)}});
      }
      CasePicture picture;
      const std::vector<std::uint16_t> out = lab_values<std::uint16_t>(run.arrays[2]);
      const std::string wrong = wrong_element(made, out, picture);
      if (!wrong.empty()) {
        return with_picture(failed(lab(), "phases", wrong_tiles(made, out), where + wrong, 3), picture);
      }
      parity = std::max(parity, log.largest_parity());
    }
    if (parity <= 1) return passed(lab(), "phases");
    return failed(
        lab(), "phases",
        fmt::format("barrier_wait is called with parity {}: PTX defines parities 0 and 1 only, n % 2", parity),
        "4 tiles: the elements are right here, and hardware may do something else", 3);
  }
};

}  // namespace

std::unique_ptr<Grader> tma_tile_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<TmaTileGrader>(lab, options);
}

}  // namespace kvscope::labs
