// Lab 09: a kernel that gathers rows of a paged pool, run on the virtual GPU. Expected rows are those of PagedKVCache.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <functional>
#include <optional>
#include <set>

#include "apps/labs/graders.h"
#include "apps/labs/kernel_run.h"
#include "apps/labs/pool_picture.h"
#include "apps/labs/report_text.h"
#include "apps/labs/traffic.h"
#include "core/cache/paged_kv_cache.h"
#include "core/layout/table_columns.h"
#include "gpu/virtual/machine/memory/device_memory.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::labs {
namespace {

constexpr std::int64_t kGatherBlocks = 12;  // of the pool; the last 3 are not in use
constexpr double kSectorLimit = 1.1;
enum GatherArray : std::size_t { kPool, kTable, kTokens, kOut };

struct GatherCase {
  std::int64_t page_size = 4, layers = 2, layer = 0, row = 32;
  std::vector<std::uint32_t> table;
  std::vector<std::int32_t> tokens;

  [[nodiscard]] std::int64_t count() const { return static_cast<std::int64_t>(tokens.size()); }
  [[nodiscard]] std::int64_t block_stride() const { return 2 * layers * page_size * row; }
  [[nodiscard]] std::int64_t first() const { return layer * page_size * row; }  // [elements] of the layer's K
  [[nodiscard]] std::int64_t elements() const { return kGatherBlocks * block_stride(); }
  [[nodiscard]] std::int64_t block(std::int64_t token) const {
    const auto page = static_cast<std::size_t>(token / page_size);
    return page < table.size() ? std::int64_t{table[page]} : -1;
  }
};

enum class GatherKind { whole, holes, ragged };

// The first case is small enough to work out by hand.
GatherCase make_gather(const CounterRng& random, std::size_t number, GatherKind kind) {
  std::uint64_t at = number * 1000;
  const auto pick = [&](std::int64_t low, std::int64_t high) { return random.integer(at++, low, high); };
  GatherCase made;
  const std::array<std::int64_t, 4> rows{64, 32, 288, 1024};  // one warp pass and less, several, several whole ones
  made.row = rows[number % rows.size()];
  made.page_size = number == 0 ? 4 : std::int64_t{1} << pick(2, 4);
  made.layers = number == 0 ? 2 : pick(2, 3);
  made.layer = pick(0, made.layers - 1);
  std::set<std::uint32_t> used;
  const std::int64_t pages = 5;
  while (static_cast<std::int64_t>(made.table.size()) < pages) {
    const auto block = static_cast<std::uint32_t>(pick(1, kGatherBlocks - 4));
    if (used.insert(block).second) made.table.push_back(block);
  }
  // Block 0 is in use too: a stride is not wrong there.
  made.table[static_cast<std::size_t>(pick(0, 1))] = 0;
  const std::int64_t tokens = pages * made.page_size;
  const std::int64_t count = kind == GatherKind::ragged ? 4 * pick(1, 3) + 1 + static_cast<std::int64_t>(number) % 3
                             : number == 0              ? 8
                                                        : 4 * pick(3, 5);
  for (std::int64_t i = 0; i < count; ++i) made.tokens.push_back(static_cast<std::int32_t>(pick(0, tokens - 1)));
  made.tokens[0] = static_cast<std::int32_t>(2 * made.page_size + pick(1, made.page_size - 1));
  made.tokens[1] = static_cast<std::int32_t>(tokens - 1);
  if (kind == GatherKind::holes) {
    for (std::int64_t i = 2; i + 1 < count; i += 3)
      made.tokens[static_cast<std::size_t>(i)] = -1 - static_cast<int>(i % 2);
  }
  return made;
}

// Vectors of 16 bytes that contain their own number, so that the place of every output vector is known.
std::vector<std::uint16_t> numbered_pool(const GatherCase& made) {
  std::vector<std::uint16_t> pool(static_cast<std::size_t>(made.elements()));
  for (std::size_t e = 0; e < pool.size(); ++e) {
    const std::size_t vector = e / 8 + 1;
    pool[e] = static_cast<std::uint16_t>(e % 8 == 0   ? vector % 65536
                                         : e % 8 == 1 ? vector / 65536
                                                      : vector * 40503 + e % 8 * 977);
  }
  return pool;
}

// Offset of a token's row from the layer's first element, by the model.
std::int64_t model_offset(const GatherCase& made, std::int64_t token) {
  static std::byte none{};
  const auto columns = static_cast<std::int64_t>(made.table.size());
  std::vector<std::uint32_t> table = made.table;
  table.resize(static_cast<std::size_t>(padded_lut_cols(columns)), static_cast<std::uint32_t>(kGatherBlocks));
  const std::array<std::uint32_t, 1> lengths{0};
  PagedLayerTensors tensors;
  tensors.blocks = AnyView<4>(&none, DType::e4m3, {kGatherBlocks + 1, made.page_size, 1, 1},
                              {2 * made.layers * made.page_size, 1, 1, 1});
  tensors.cache_lengths = CacheLengths(lengths.data(), {1}, {1});
  const auto width = static_cast<std::int64_t>(table.size());
  tensors.lookup_table = LookupTable(table.data(), {1, width}, {width, 1});
  const PagedKVCache cache({DType::e4m3, {1, 1, false}, made.page_size, {}, 1}, tensors);
  return std::int64_t{cache.row_idx(SeqIdx{0}, TokIdx{token}).value} * made.row;
}

LabCall gather_call(const GatherCase& made, const std::vector<std::uint16_t>& pool) {
  LabCall call;
  call.entry = "gather";
  call.grid = {(made.count() + 3) / 4, 1, 1};
  call.block = {128, 1, 1};
  const auto out_bytes = static_cast<std::size_t>(made.count() * made.row * 2);
  call.arrays = {{"pool", lab_bytes(pool)},
                 {"table", lab_bytes(made.table)},
                 {"tokens", lab_bytes(made.tokens)},
                 {"out", std::vector<std::byte>(out_bytes, kUnwritten), false}};
  call.params = {AddressOf{kPool, made.first() * 2},
                 AddressOf{kTable},
                 AddressOf{kTokens},
                 AddressOf{kOut},
                 static_cast<std::uint64_t>(made.count()),
                 static_cast<std::uint64_t>(made.page_size),
                 static_cast<std::uint64_t>(made.row),
                 static_cast<std::uint64_t>(made.block_stride())};
  return call;
}

// The same parameters. Rows and strides are multiples of 16 elements (make_gather); arrays begin at multiples of 256.
TritonTask gather_in_triton() {
  return {"gather",
          {{"pool", "*bf16", 16},
           {"table", "*i32", 16},
           {"tokens", "*i32", 16},
           {"out", "*bf16", 16},
           {"count", "i32"},
           {"page_size", "i32"},
           {"row", "i32", 16},
           {"block_stride", "i64", 16}}};
}

std::string case_of(const GatherCase& made) {
  return fmt::format("page_size {}, {} layers, row {}, block_stride {}, count {}; pages are in blocks {}",
                     made.page_size, made.layers, made.row, made.block_stride(), made.count(),
                     fmt::join(made.table, " "));
}

std::string gather_text(const GatherCase& made, std::int64_t i) {
  return fmt::format("{}\noutput row {}: token {}", case_of(made), i, made.tokens[static_cast<std::size_t>(i)]);
}

// What one output vector holds.
struct Found {
  enum class Kind { pool, unwritten, zeros, other } kind = Kind::other;
  std::int64_t offset = 0;  // [elements] from the layer's first element
};

Found find_vector(const GatherCase& made, const std::vector<std::uint16_t>& pool, const std::uint16_t* out) {
  const auto all = [&](std::uint16_t value) { return std::all_of(out, out + 8, [&](auto x) { return x == value; }); };
  if (all(0xcdcd)) return {Found::Kind::unwritten};
  if (all(0)) return {Found::Kind::zeros};
  const std::int64_t number = std::int64_t{out[0]} + std::int64_t{out[1]} * 65536 - 1;
  if (number < 0 || number * 8 + 8 > made.elements()) return {};
  if (std::memcmp(out, pool.data() + number * 8, 16) != 0) return {};
  return {Found::Kind::pool, number * 8 - made.first()};
}

// The first wrong vector of an output.
struct WrongVector {
  std::size_t number = 0;     // in the output, in vectors of 8 elements
  std::int64_t expected = 0;  // [elements] from the layer's first
};

// The output row with the state of each of its vectors, and the rows of the pool where the wrong one comes from.
CasePicture picture_of_row(const GatherCase& made, const std::vector<Found>& found, const WrongVector& wrong) {
  constexpr std::int64_t kVectorsShown = 12;
  const std::int64_t vectors = made.row / 8, i = static_cast<std::int64_t>(wrong.number) / vectors,
                     v = static_cast<std::int64_t>(wrong.number) % vectors, first_row = wrong.expected / made.row;
  PictureGrid row{fmt::format("row {} of out, by vectors of 8 elements: the pool's element that it begins with", i),
                  {},
                  {{fmt::format("token {}", made.tokens[static_cast<std::size_t>(i)]), {}}}};
  const CellWindow window = window_around(v, vectors, kVectorsShown);
  for (std::int64_t at = window.first; at < window.last; ++at) {
    const Found& place = found[static_cast<std::size_t>(i * vectors + at)];
    const bool right = place.kind == Found::Kind::pool && place.offset == first_row * made.row + at * 8;
    row.columns.push_back(fmt::format("{}-{}", at * 8, at * 8 + 7));
    PictureCell cell{place.kind == Found::Kind::pool ? fmt::format("{}", place.offset) : "-",
                     right ? CellMark::plain : CellMark::wrong};
    if (place.kind == Found::Kind::unwritten) cell.text = "not written";
    if (place.kind == Found::Kind::zeros) cell.text = "zeros";
    if (at == v) cell.note = fmt::format("expected {}", wrong.expected);
    row.rows.front().cells.push_back(std::move(cell));
  }
  CasePicture picture{{std::move(row)}, "the page of the token"};
  PictureGrid table{"table: the block of each page", {}, {{"block", {}}}};
  const std::int64_t page = made.tokens[static_cast<std::size_t>(i)] / made.page_size;
  for (std::size_t p = 0; p < made.table.size(); ++p) {
    table.columns.push_back(fmt::format("page {}", p));
    table.rows.front().cells.push_back(
        {fmt::format("{}", made.table[p]), static_cast<std::int64_t>(p) == page ? CellMark::used : CellMark::plain});
  }
  picture.grids.push_back(std::move(table));
  const Found& got = found[wrong.number];
  const PoolShape pool{made.page_size, made.layers, 2, kGatherBlocks, made.layer};
  const std::int64_t from_start = got.offset + made.first();  // not negative, unlike an offset before the layer
  const std::int64_t got_row = from_start / made.row - made.layer * made.page_size;
  picture.grids.push_back(pool_grid(
      pool, first_row, got.kind == Found::Kind::pool && got_row != first_row ? std::optional(got_row) : std::nullopt));
  return picture;
}

struct GatherFormula {
  std::string message;
  std::function<std::int64_t(const GatherCase&, std::int64_t i)> offset;
  int hint = 1;
};

const std::vector<GatherFormula>& gather_formulas() {
  using C = const GatherCase&;
  using T = std::int64_t;
  static const auto token = [](C c, T i) { return T{c.tokens[static_cast<std::size_t>(i)]}; };
  static const auto slot = [](C c, T t) { return t % c.page_size * c.row; };
  static const std::vector<GatherFormula> formulas{
      {"right in block 0 only: the stride is of one layer; use block_stride",
       [](C c, T i) { return c.block(token(c, i)) * c.page_size * c.row + slot(c, token(c, i)); }},
      {"the stride counts only one of K and V: use block_stride",
       [](C c, T i) { return c.block(token(c, i)) * c.layers * c.page_size * c.row + slot(c, token(c, i)); }},
      {"the token is used as a row of the pool: look up its page in the table",
       [](C c, T i) { return token(c, i) * c.row; }},
      {"the table is not used: page p is not in block p",
       [](C c, T i) { return token(c, i) / c.page_size * c.block_stride() + slot(c, token(c, i)); }},
      {"the slot is missing: every token of a page has the row of its first token",
       [](C c, T i) { return c.block(token(c, i)) * c.block_stride(); }},
      {"tokens is not read: output row i is the row of tokens[i], not of token i",
       [](C c, T i) { return c.block(i) * c.block_stride() + slot(c, i); }},
      {"the whole token number is added: inside its block a token is in slot token % page_size",
       [](C c, T i) { return c.block(token(c, i)) * c.block_stride() + token(c, i) * c.row; }},
      {"the slot is counted in bytes: pool points to elements of 2 bytes, and a slot is `row` of them",
       [](C c, T i) { return c.block(token(c, i)) * c.block_stride() + 2 * slot(c, token(c, i)); }},
      {"the slot is not multiplied by the row: a slot is `row` elements",
       [](C c, T i) { return c.block(token(c, i)) * c.block_stride() + token(c, i) % c.page_size; }},
  };
  return formulas;
}

// The rows of out that each warp writes. Warp w of CTA c writes row 4 * c + w alone.
class RowWrites final : public ptx::Monitor {
 public:
  explicit RowWrites(const GatherCase& made) : row_bytes_(static_cast<std::uint64_t>(made.row * 2)) {}

  void access(const ptx::Exec& exec, const ptx::Op& /*op*/, const ptx::WarpAccess& access) override {
    // Addresses of other spaces are offsets: none is in a row of out.
    if (access.kind != ptx::AccessKind::store || access.space != ptx::Space::global) return;
    const auto own = static_cast<std::uint64_t>(4 * exec.cta.index + exec.warp.index);
    std::uint64_t past = 0;
    bool inside = false;
    for (std::size_t lane = 0; lane < ptx::kLanes; ++lane) {
      if ((access.lanes >> lane & 1U) == 0) continue;
      const std::uint64_t row = access.addresses[lane] % ptx::DeviceMemory::kSpacing / row_bytes_;
      inside |= row == own;
      past += row > own ? 1U : 0U;
    }
    if (past > 0 && (inside || own_ == own) && !past_) past_ = Past{access.bytes, access.lanes};
    if (inside) own_ = own;
  }

  struct Past {
    std::int64_t bytes = 0;  // of a lane
    ptx::LaneMask lanes = 0;
  };
  // The first store of a warp that goes on behind the end of the warp's row.
  [[nodiscard]] const std::optional<Past>& past() const { return past_; }

 private:
  std::uint64_t row_bytes_;
  std::optional<std::uint64_t> own_;  // the row that was written last by its own warp
  std::optional<Past> past_;
};

// The vectors of a warp whose lanes have more of them than the row.
CasePicture picture_past_row(const GatherCase& made, const RowWrites::Past& past) {
  const std::int64_t per_row = made.row * 2 / past.bytes;
  constexpr std::int64_t kLanesShown = 16;
  if (per_row >= ptx::kLanes) return {};
  PictureGrid grid{fmt::format("out, by vectors of {} bytes: the lanes of the warp of row 0", past.bytes), {}, {}};
  for (std::int64_t lane = 0; lane < kLanesShown; ++lane) {
    if (lane % std::min(per_row, std::int64_t{8}) == 0) {
      grid.rows.push_back({fmt::format("row {}, vector {}", lane / per_row, lane % per_row), {}});
    }
    grid.rows.back().cells.push_back(
        {fmt::format("lane {}", lane), lane < per_row ? CellMark::plain : CellMark::wrong});
  }
  return {{std::move(grid)}};
}

// The row of a hole by vectors of 8 elements.
CasePicture picture_of_hole(const GatherCase& made, const std::uint16_t* row) {
  constexpr std::int64_t kVectorsShown = 8;
  PictureGrid grid{"the row of out, by vectors of 8 elements: all must be zeros", {}, {{"the first vectors", {}}}};
  for (std::int64_t v = 0; v < std::min(made.row / 8, kVectorsShown); ++v) {
    const auto all = [&](std::uint16_t value) {
      return std::all_of(row + v * 8, row + v * 8 + 8, [&](std::uint16_t x) { return x == value; });
    };
    grid.columns.push_back(fmt::format("{}-{}", v * 8, v * 8 + 7));
    grid.rows[0].cells.push_back({all(0)        ? "zeros"
                                  : all(0xcdcd) ? "not written"
                                                : "a row of pool",
                                  all(0) ? CellMark::plain : CellMark::wrong});
  }
  return {{std::move(grid)}};
}

class GatherGrader final : public Grader {
 public:
  using Grader::Grader;

  [[nodiscard]] std::vector<TestResult> grade(const Submission& submission, const Seed& seed) const override {
    const LabKernel kernel = compile_kernel(*this, submission, "gather.cu", gather_in_triton());
    if (!kernel.ok()) return all_failed(lab(), kernel.file + " does not compile", kernel.messages);
    bool right = true;
    TestResult rows = grade_rows(kernel, seed.random(1), right);
    TestResult holes = grade_holes(kernel, seed.random(2));
    TestResult bounds = grade_bounds(kernel, seed.random(3));
    TestResult sectors = right ? grade_sectors(kernel, seed.random(4))
                               : failed(lab(), "sectors", "not judged: the rows must be right first", {}, 3);
    return {std::move(rows), std::move(holes), std::move(bounds), std::move(sectors)};
  }

 private:
  static constexpr std::size_t kGatherCases = 8;

  // A launch that ended with a report. `looked_up`: tokens of the case are negative.
  [[nodiscard]] TestResult stopped(std::string_view test, const GatherCase& made, const KernelRun& run,
                                   const RowWrites& writes, bool looked_up = false) const {
    if (!run.failure.empty()) return failed(lab(), test, fault_of(run), run.failure, 0);
    const std::string fault = fault_of(run);
    const std::string text = case_of(made) + "\n" + report_case(run);
    if (run.reports.empty()) return failed(lab(), test, fault, text, 2);
    const ptx::Report& report = run.reports.front();
    const bool outside = report.kind == ptx::ReportKind::out_of_bounds;
    const std::string& array = report.address.symbol;
    if (writes.past() && (!outside || array == "out")) {
      const std::int64_t vectors = made.row * 2 / writes.past()->bytes;
      return with_picture(
          failed(lab(), test,
                 fmt::format(
                     "lanes write behind the end of their row: a row of {} elements has {} vectors of {} bytes, so "
                     "vector {} is in the next row; {}",
                     made.row, vectors, writes.past()->bytes, vectors, fault),
                 text, 2),
          picture_past_row(made, *writes.past()));
    }
    if (outside && array == "tokens" && report.address.offset >= made.count() * 4) {
      return failed(lab(), test,
                    fmt::format("a warp without a row reads tokens[{}], and tokens has {} entries; {}",
                                report.address.offset / 4, made.count(), fault),
                    text, 2);
    }
    if (looked_up && outside) return failed(lab(), test, "a negative token is looked up: " + fault, text, 3);
    return failed(lab(), test, fault, text, outside ? 1 : 2);
  }

  [[nodiscard]] TestResult grade_rows(const LabKernel& kernel, const CounterRng& random, bool& right) const {
    std::vector<GatherCase> cases;
    std::vector<std::vector<Found>> found;  // [case][count * vectors of a row]
    right = false;
    for (std::size_t number = 0; number < kGatherCases; ++number) {
      const GatherCase made = make_gather(random, number, GatherKind::whole);
      const std::vector<std::uint16_t> pool = numbered_pool(made);
      RowWrites writes(made);
      LabCall call = gather_call(made, pool);
      call.monitor = &writes;
      const KernelRun run = run_kernel(kernel, call);
      if (!fault_of(run).empty()) return stopped("rows", made, run, writes);
      const std::vector<std::uint16_t> out = lab_values<std::uint16_t>(run.arrays[kOut]);
      std::vector<Found> places;
      for (std::size_t e = 0; e < out.size(); e += 8) places.push_back(find_vector(made, pool, out.data() + e));
      cases.push_back(made);
      found.push_back(std::move(places));
    }
    const auto agrees = [&](const std::function<std::int64_t(const GatherCase&, std::int64_t)>& offset) {
      for (std::size_t c = 0; c < cases.size(); ++c) {
        const std::int64_t vectors = cases[c].row / 8;
        for (std::size_t v = 0; v < found[c].size(); ++v) {
          const auto i = static_cast<std::int64_t>(v) / vectors, column = static_cast<std::int64_t>(v) % vectors * 8;
          if (found[c][v].kind != Found::Kind::pool || found[c][v].offset != offset(cases[c], i) + column) return false;
        }
      }
      return true;
    };
    const auto model = [](const GatherCase& made, std::int64_t i) {
      return model_offset(made, made.tokens[static_cast<std::size_t>(i)]);
    };
    right = agrees(model);
    if (right) return passed(lab(), "rows");
    for (const GatherFormula& formula : gather_formulas()) {
      if (agrees(formula.offset)) return first_wrong(formula.message, formula.hint, cases, found);
    }
    const Part part = partly_wrong(cases, found);
    return first_wrong(part.message, part.hint, cases, found);
  }

  // The failed test, with the first wrong vector of the first case that has one.
  [[nodiscard]] TestResult first_wrong(std::string message, int hint, const std::vector<GatherCase>& cases,
                                       const std::vector<std::vector<Found>>& found) const {
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const std::int64_t vectors = cases[c].row / 8;
      for (std::size_t v = 0; v < found[c].size(); ++v) {
        const auto i = static_cast<std::int64_t>(v) / vectors, column = static_cast<std::int64_t>(v) % vectors * 8;
        const std::int64_t expected = model_offset(cases[c], cases[c].tokens[static_cast<std::size_t>(i)]) + column;
        const Found& place = found[c][v];
        if (place.kind == Found::Kind::pool && place.offset == expected) continue;
        const std::string got = place.kind == Found::Kind::pool        ? fmt::format("pool[{}]", place.offset)
                                : place.kind == Found::Kind::unwritten ? "nothing"
                                : place.kind == Found::Kind::zeros     ? "zeros"
                                                                       : "values that no vector of the pool has";
        const std::string text =
            fmt::format("{}, elements {} to {}\nexpected pool[{}] and the next 7, your kernel wrote {}",
                        gather_text(cases[c], i), column, column + 7, expected, got);
        return with_picture(failed(lab(), "rows", std::move(message), text, hint),
                            picture_of_row(cases[c], found[c], {v, expected}));
      }
    }
    return failed(lab(), "rows", std::move(message), {}, hint);
  }

  struct Part {
    std::string message;
    int hint = 2;
  };
  static Part partly_wrong(const std::vector<GatherCase>& cases, const std::vector<std::vector<Found>>& found) {
    constexpr std::int64_t kPass = 32;  // vectors that a warp copies at once: 512 bytes
    std::int64_t unwritten = 0, behind = 0, passes = 0, second_half = 0, halves = 0, other = 0, all = 0, rows = 0,
                 lost_rows = 0, in_row = 0;  // in_row: unwritten vectors of the row so far
    for (std::size_t c = 0; c < cases.size(); ++c) {
      const std::int64_t vectors = cases[c].row / 8;
      rows += cases[c].count();
      for (std::size_t v = 0; v < found[c].size(); ++v) {
        const std::int64_t column = static_cast<std::int64_t>(v) % vectors;
        const bool is_unwritten = found[c][v].kind == Found::Kind::unwritten;
        ++all;
        unwritten += is_unwritten ? 1 : 0;
        behind += is_unwritten && column >= kPass ? 1 : 0;
        passes += column >= kPass ? 1 : 0;
        second_half += is_unwritten && column >= vectors / 2 ? 1 : 0;
        halves += column >= vectors / 2 ? 1 : 0;
        other += found[c][v].kind == Found::Kind::other ? 1 : 0;
        in_row = (column == 0 ? 0 : in_row) + (is_unwritten ? 1 : 0);
        lost_rows += in_row == vectors ? 1 : 0;
      }
    }
    if (unwritten == all) return {"nothing is written to out", 1};
    if (unwritten > 0 && unwritten == behind && unwritten == passes) {
      return {"only the first 512 bytes of a row are copied: 32 lanes copy 16 bytes each, and longer rows need a loop"};
    }
    if (unwritten > 0 && unwritten == second_half && unwritten == halves) {
      return {"only the first half of each row is copied: an element has 2 bytes, so a vector of 16 bytes has 8"};
    }
    if (lost_rows > 0) {
      return {
          fmt::format("{} of {} rows of out are not written: CTA c copies rows 4 * c to 4 * c + 3, one for each warp",
                      lost_rows, rows)};
    }
    if (unwritten > 0) return {fmt::format("{} of {} vectors of 16 bytes are not written", unwritten, all)};
    if (other > 0) return {fmt::format("{} of {} vectors of 16 bytes are in no place of the pool", other, all)};
    return {"rows of other tokens are copied", 1};
  }

  [[nodiscard]] TestResult grade_holes(const LabKernel& kernel, const CounterRng& random) const {
    for (std::size_t number = 0; number < 4; ++number) {
      const GatherCase made = make_gather(random, number, GatherKind::holes);
      RowWrites writes(made);
      LabCall call = gather_call(made, numbered_pool(made));
      call.monitor = &writes;
      const KernelRun run = run_kernel(kernel, call);
      if (!fault_of(run).empty()) return stopped("holes", made, run, writes, true);
      const std::vector<std::uint16_t> out = lab_values<std::uint16_t>(run.arrays[kOut]);
      for (std::int64_t i = 0; i < made.count(); ++i) {
        if (made.tokens[static_cast<std::size_t>(i)] >= 0) continue;
        const auto* const row = out.data() + i * made.row;
        const auto zeros = std::count(row, row + made.row, 0), untouched = std::count(row, row + made.row, 0xcdcd);
        if (zeros == made.row) continue;
        return with_picture(
            failed(lab(), "holes",
                   untouched == made.row ? "the row of a negative token is not written: it must be zeros"
                   : untouched + zeros == made.row
                       ? fmt::format("only {} of {} elements of the row are zeros", zeros, made.row)
                       : "a negative token is looked up: its row must be zeros",
                   gather_text(made, i), 3),
            picture_of_hole(made, row));
      }
    }
    return passed(lab(), "holes");
  }

  [[nodiscard]] TestResult grade_bounds(const LabKernel& kernel, const CounterRng& random) const {
    for (std::size_t number = 0; number < 6; ++number) {
      const GatherCase made = make_gather(random, number, GatherKind::ragged);
      RowWrites writes(made);
      LabCall call = gather_call(made, numbered_pool(made));
      call.monitor = &writes;
      const KernelRun run = run_kernel(kernel, call);
      if (!fault_of(run).empty()) return stopped("in_bounds", made, run, writes);
      const std::vector<std::uint16_t> out = lab_values<std::uint16_t>(run.arrays[kOut]);
      for (std::int64_t i = 0; i < made.count(); ++i) {
        const auto* const row = out.data() + i * made.row;
        if (std::count(row, row + made.row, 0xcdcd) == made.row) {
          return failed(lab(), "in_bounds", fmt::format("row {} of {} is not written", i, made.count()),
                        gather_text(made, i), 2);
        }
      }
    }
    return passed(lab(), "in_bounds");
  }

  // One launch for the sectors: what each array needs, and what the kernel takes.
  struct SectorCount {
    std::array<std::int64_t, 4> needed{}, taken{};  // by GatherArray
    [[nodiscard]] static std::int64_t sum(const std::array<std::int64_t, 4>& counts) {
      return counts[kPool] + counts[kTable] + counts[kTokens] + counts[kOut];
    }
    [[nodiscard]] double ratio() const { return static_cast<double>(sum(taken)) / static_cast<double>(sum(needed)); }
  };

  // Why an entry of tokens or of the table is read more than once. In Triton, all warps of a program may share a row.
  [[nodiscard]] static std::string reason_of_entry(const LabKernel& kernel, const GatherCase& made,
                                                   const Traffic::Line& line) {
    const std::int64_t warps = (made.count() + 3) / 4 * 4;
    if (kernel.triton && line.traffic.runs <= warps * 4) {
      return "every warp of the program reads the entry: take blocks of 4 rows and 256 columns, in which a warp has "
             "one row";
    }
    return "the entry is read again in each turn of the loop: keep it in a variable";
  }

  [[nodiscard]] TestResult grade_sectors(const LabKernel& kernel, const CounterRng& random) const {
    std::int64_t sectors = 0, ideal = 0, requests = 0;
    double worst = 0;
    std::string reason, text;  // of the launch with the largest ratio
    CasePicture picture;
    // Two launches of each length of a row, so that entries that four warps read exceed the limit for every seed.
    for (std::size_t number = 2; number < 10; ++number) {
      const GatherCase made = make_gather(random, number, GatherKind::whole);
      Traffic traffic(made.row * 2);
      LabCall call = gather_call(made, numbered_pool(made));
      call.monitor = &traffic;
      const KernelRun run = run_kernel(kernel, call);
      if (!fault_of(run).empty()) return stopped("sectors", made, run, RowWrites(made));
      const std::int64_t copied = made.count() * made.row * 2 / 32;
      SectorCount count{{copied, made.count(), made.count(), copied}, {}};
      for (std::size_t a = 0; a < count.taken.size(); ++a) count.taken[a] = traffic.sectors(run, a);
      // The array with the most sectors too many: of the rows, unless both copies of the rows are within the limit.
      const auto excess = [&](std::size_t a) { return count.taken[a] - count.needed[a]; };
      std::size_t array = excess(kOut) > excess(kPool) ? kOut : kPool;
      if (static_cast<double>(count.taken[array]) <= kSectorLimit * static_cast<double>(count.needed[array])) {
        array = excess(kTokens) > excess(kTable) ? kTokens : kTable;
      }
      sectors += run.total.sectors;
      ideal += SectorCount::sum(count.needed);
      requests += run.total.requests;
      const auto line = traffic.worst_line(run, array);
      if (count.ratio() <= worst || !line) continue;
      worst = count.ratio();
      const std::string& name = call.arrays[array].name;
      const bool entry = array == kTable || array == kTokens;
      reason = fmt::format("{}, line {}: {}", name, line->number,
                           entry ? reason_of_entry(kernel, made, *line) : line->reason);
      text = fmt::format("{} rows of {} elements; a row needs {} sectors of pool, {} of out, 1 of tokens, 1 of table",
                         made.count(), made.row, made.row * 2 / 32, made.row * 2 / 32);
      for (const std::size_t a : {kPool, kOut, kTokens, kTable}) {
        text +=
            fmt::format("\n{:<6}  {:>6} sectors, {:>6} needed", call.arrays[a].name, count.taken[a], count.needed[a]);
      }
      text += "\ncompiled by " + compiler_of(kernel);
      PictureGrid arrays{
          fmt::format("sectors of 32 bytes: {} rows of {} elements", made.count(), made.row), {"taken", "needed"}, {}};
      for (const std::size_t a : {kPool, kOut, kTokens, kTable}) {
        arrays.rows.push_back({call.arrays[a].name,
                               {{fmt::format("{}", count.taken[a]), a == array ? CellMark::wrong : CellMark::plain},
                                {fmt::format("{}", count.needed[a])}}});
      }
      picture = entry ? CasePicture{} : picture_of_lanes(name, *line);
      picture.grids.insert(picture.grids.begin(), std::move(arrays));
    }
    const double ratio = static_cast<double>(sectors) / static_cast<double>(ideal);
    if (ratio <= kSectorLimit) {
      return passed(lab(), "sectors",
                    fmt::format("sectors {:.2f}x ideal, {} loads and stores of warps", ratio, requests));
    }
    return with_picture(failed(lab(), "sectors",
                               fmt::format("sectors {:.{}f}x ideal: {}", ratio, ratio < 1.2 ? 2 : 1, reason), text, 3),
                        picture);
  }
};

}  // namespace

std::unique_ptr<Grader> gather_grader(const Lab& lab, const GradeOptions& options) {
  return std::make_unique<GatherGrader>(lab, options);
}

}  // namespace kvscope::labs
