// Every register of a tile followed back to its token, and every token forwards to its registers, over the whole grid
// of staging. The expected answer is read from bytes: each element of the pool has a separate value, core/staging
// copies the bytes through shared memory into registers, and the value that a register then holds names the element.
// The viewer has only the events of the tile.
#include <gmock/gmock.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/staged_image.h"
#include "core/staging/staging_events.h"
#include "core/staging/tma/tma_staging.h"
#include "tests/core/staging/staging_fixture.h"
#include "tests/core/staging/staging_grid.h"
#include "tests/whole_grid.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"

namespace kvscope::viz::tile_grid_test {
namespace {

using kvscope::testing_support::StagingCase;
using kvscope::testing_support::StagingStep;
using test::require;

// One tile of the grid.
struct Point {
  StagingPath path = StagingPath::tma;
  StagingCase of;
  bool last = false;            // the tile with the sequence's last token, which is not full; else the first
  std::int64_t BN = 0, BK = 0;  // TMA: 0: those of the fixture
  std::optional<LdsGeometry> lds = std::nullopt;  // instead of the fixture's
};

std::string text_of(const Point& p) {
  return testing::PrintToString(p.of) + (p.path == StagingPath::tma ? ", TMA" : ", LDS") +
         (p.last ? ", last tile" : ", first tile");
}

std::vector<Point> both_tiles(StagingPath path, const std::vector<StagingCase>& cases) {
  std::vector<Point> points;
  for (const StagingCase& of : cases) {
    for (const bool last : {false, true}) points.push_back({.path = path, .of = of, .last = last});
  }
  return points;
}

// 1 + token * head_size + dim, for an element of the tile's sequence, head and operand. 0: zeros that a copy wrote. All
// bits set: bytes of no token.
using Value = std::uint32_t;

// The values in the pool, in shared memory and in registers, and the viewer's tile. A type of few bits holds a part of
// a value, so the bytes are staged once for each part. Throws as record_tile.
class Staged {
 public:
  explicit Staged(const Point& point)
      : step_(prepared(point)), point_(point), size_(size_of(point.of.dtype)), bits_(static_cast<Value>(8 * size_)) {
    const std::int64_t BN = tile_tokens(step_.scenario, point.path, point.of.kv);
    first_ = point.last ? (point.of.tokens - 1) / BN * BN : 0;
    const bool tma = point.path == StagingPath::tma;
    const DimIdx dim{tma && point.BK == 0 ? 64 : 0};  // the second half of the fixture's head
    first_dim_ = tma ? tma_depth_offset(step_.scenario, dim).value : step_.scenario.lds.head_dim_offset;
    trace::MemoryRecorder recorder;
    record_tile(step_.scenario, step_.state,
                {point.path, StagingStep::kSeq, StagingStep::kLayer, StagingStep::kHead, point.of.kv, first_ / BN, dim},
                recorder);
    tile = fold_tile(recorder.events());
    Value parts = 1;
    while (parts * bits_ < 32 && last_value() >= (Value{1} << parts * bits_) - 1) ++parts;
    for (Value part = 0; part < parts; ++part) stage(part);
  }

  Tile tile;
  StagedImage image{SharedImage(16), 0, 0, 0, {}, {}, 1};
  std::vector<Value> pool, shared, registers;  // by element

  std::int64_t size() const { return size_; }
  // Elements of a 32-bit register.
  std::int64_t held() const { return 4 / size_; }
  std::int64_t bits() const { return bits_; }
  // The element's value; 0: it belongs to no token, or the head does not have the column.
  Value value_of(TileElement e) const {
    const std::int64_t token = first_ + e.row, dim = first_dim_ + e.column;
    const bool exists = e.row >= 0 && e.row < tile.rows() && e.column >= 0 && e.column < tile.columns() &&
                        token < point_.of.tokens && dim < point_.of.head_size;
    return exists ? value(token, dim) : 0;
  }
  // The element of the tile that has the value; nothing: none has.
  std::optional<TileElement> element_of(Value of) const {
    if (of == 0 || of > last_value()) return std::nullopt;
    const std::int64_t n = of - 1, head = point_.of.head_size;
    const TileElement element{n / head - first_, n % head - first_dim_};
    return value_of(element) == of ? std::optional(element) : std::nullopt;
  }
  // By element of `registers`.
  std::size_t at(const TileRegister& reg) const {
    const std::int64_t word = ((reg.step * image.waves + reg.wave) * image.lanes + reg.lane) * image.registers;
    return static_cast<std::size_t>((word + reg.index) * held());
  }
  // A register that the k-step does not load keeps what it held before.
  bool is_kept(const TileRegister& reg) const {
    if (reg.step == 0) return false;
    TileRegister before = reg;
    --before.step;
    return std::memcmp(&registers[at(reg)], &registers[at(before)], static_cast<std::size_t>(held()) * sizeof(Value)) ==
           0;
  }
  // In stages of single blocks, a later block replaces an earlier one.
  bool shared_holds_all() const { return tile.tma() || step_.scenario.lds.full_kv; }

 private:
  static StagingStep prepared(const Point& point) {
    StagingStep step(point.of);
    if (point.BN > 0) step.scenario.tile.BN = point.BN;
    if (point.BK > 0) step.scenario.tile.BK = point.BK;
    if (point.lds) step.scenario.lds = *point.lds;
    return step;
  }

  Value value(std::int64_t token, std::int64_t dim) const {
    return static_cast<Value>(1 + token * point_.of.head_size + dim);
  }
  Value last_value() const { return value(point_.of.tokens - 1, point_.of.head_size - 1); }

  void stage(Value part) {
    std::vector<std::byte>& bytes = step_.data.blocks.bytes.own();
    std::ranges::fill(bytes, std::byte{0xFF});
    for (std::int64_t token = 0; token < point_.of.tokens; ++token) {
      std::byte* const row = bytes.data() + step_.pool_byte(token, StagingStep::kHead, 0, point_.of.kv);
      for (std::int64_t dim = 0; dim < point_.of.head_size; ++dim) {
        const Value of = value(token, dim) >> part * bits_;
        std::memcpy(row + dim * size_, &of, static_cast<std::size_t>(size_));
      }
    }
    const StagedTile of = step_.tile(point_.of.kv, first_);
    image = tile.tma() ? stage_by_tma(step_.scenario, step_.state, step_.data.bytes(), of, DimIdx{first_dim_})
                       : stage_through_lds(step_.scenario, step_.state, step_.data.bytes(), of);
    add(part, bytes, pool);
    add(part, image.shared.bytes(), shared);
    add(part, image.register_bytes, registers);
  }

  void add(Value part, std::span<const std::byte> bytes, std::vector<Value>& values) const {
    values.resize(bytes.size() / static_cast<std::size_t>(size_));
    for (std::size_t n = 0; n < values.size(); ++n) {
      Value of = 0;
      std::memcpy(&of, bytes.data() + n * static_cast<std::size_t>(size_), static_cast<std::size_t>(size_));
      values[n] |= of << part * bits_;
    }
  }

  StagingStep step_;
  Point point_;
  std::int64_t size_, first_ = 0, first_dim_ = 0;
  Value bits_;
};

template <class Visit>
void for_each_register(const StagedImage& image, const Visit& visit) {
  if (image.register_bytes.empty()) return;
  for (TileRegister reg; reg.wave < image.waves; ++reg.wave) {
    for (reg.lane = 0; reg.lane < image.lanes; ++reg.lane) {
      for (reg.index = 0; reg.index < image.registers; ++reg.index) {
        for (reg.step = 0; reg.step < image.steps; ++reg.step) visit(reg);
      }
    }
  }
}

// Each register leads to the elements whose values it holds, lowest bits first, and lights their rows.
void check_back(const Staged& staged) {
  const Tile& tile = staged.tile;
  const State state;
  const Facts facts;
  for_each_register(staged.image, [&](const TileRegister& reg) {
    const std::vector<TileElement> elements = tile.elements_of(reg);
    const Value* const bytes = &staged.registers[staged.at(reg)];
    if (elements.empty()) {
      for (std::int64_t n = 0; n < staged.held(); ++n) {
        require(!staged.element_of(bytes[n]) || staged.is_kept(reg), "a register that holds a token leads nowhere");
      }
      return;
    }
    require(std::ssize(elements) <= staged.held(), "more elements than the register has room for");
    std::vector<std::int64_t> rows;
    for (std::int64_t n = 0; n < staged.held(); ++n) {
      const auto expected = staged.element_of(bytes[n]);
      if (n >= std::ssize(elements)) {
        require(!expected, "the register holds more than it leads to");
        continue;
      }
      const TileElement& element = elements[static_cast<std::size_t>(n)];
      if (expected) {
        require(element == *expected, "the register holds another element");
        require(tile.holds_token(element.row), "the register's row has no token");
      } else {
        require(staged.value_of(element) == 0, "the register does not hold the element");
      }
      rows.push_back(element.row);
    }
    std::ranges::sort(rows);
    rows.erase(std::unique(rows.begin(), rows.end()), rows.end());
    const Lit lit = resolve(state, facts, &tile, of_tile_register(reg));
    require(lit.tile.rows == rows, "the register lights other rows");
    require(lit.tile.reg == reg, "the register does not light itself");
  });
}

// Each element of each token leads to the bytes of the pool and of shared memory, and to exactly the registers, that
// hold its value; a token lights the registers of all its elements.
void check_forward(const Staged& staged) {
  const Tile& tile = staged.tile;
  using Place = std::pair<TileRegister, std::int64_t>;  // and the bit
  const auto index_of = [&](TileElement e) { return static_cast<std::size_t>(e.row * tile.columns() + e.column); };
  std::vector<std::vector<Place>> expected(static_cast<std::size_t>(tile.rows() * tile.columns()));
  for_each_register(staged.image, [&](const TileRegister& reg) {
    for (std::int64_t n = 0; n < staged.held(); ++n) {
      const auto element = staged.element_of(staged.registers[staged.at(reg) + static_cast<std::size_t>(n)]);
      if (!element || (staged.is_kept(reg) && tile.fills_in(reg).empty())) continue;
      expected[index_of(*element)].emplace_back(reg, n * staged.bits());
    }
  });
  const State state;
  const Facts facts;
  for (std::int64_t row = 0; row < tile.opened.tokens; ++row) {
    std::vector<TileRegister> of_row;
    for (std::int64_t column = 0; column < tile.columns(); ++column) {
      const TileElement element{row, column};
      const Value value = staged.value_of(element);
      if (value == 0) continue;
      require(staged.pool.at(static_cast<std::size_t>(tile.pool_byte(element) / staged.size())) == value,
              "another byte of the pool");
      if (staged.shared_holds_all()) {
        require(staged.shared.at(static_cast<std::size_t>(tile.shared_byte(element) / staged.size())) == value,
                "another byte of shared memory");
      }
      std::vector<Place> places;
      for (const std::int32_t n : tile.fills_of(element)) {
        const TileFill& fill = tile.fills[static_cast<std::size_t>(n)];
        const std::int64_t behind = fill.down ? row - fill.row : column - fill.column;
        places.emplace_back(fill.reg, fill.bit + behind * staged.bits());
      }
      std::ranges::sort(places);
      require(places == expected[index_of(element)], "the element is in other registers");
      for (const auto& [reg, bit] : places) of_row.push_back(reg);
    }
    std::ranges::sort(of_row);
    of_row.erase(std::unique(of_row.begin(), of_row.end()), of_row.end());
    const Lit lit = resolve(state, facts, &tile, of_token(tile.opened.seq, tile.token_of(row)));
    require(std::ranges::includes(lit.tile.registers, of_row), "the token does not light its registers");
    require(staged.image.register_bytes.empty() || !of_row.empty(), "no register holds the token");
  }
}

// Points of the grid that the path supports, of those that were visited.
struct Counts {
  std::int64_t taken = 0, with_registers = 0;
};

Counts check(const char* what, const std::vector<Point>& points, std::size_t thin) {
  Counts counts;
  test::for_whole_grid(
      what, points, thin,
      [&](const Point& point) {
        std::optional<Staged> staged;
        try {
          staged.emplace(point);
        } catch (const GeometryError&) {
          return;
        }
        ++counts.taken;
        counts.with_registers += staged->tile.fills.empty() ? 0 : 1;
        require(staged->tile.fills.empty() == staged->image.register_bytes.empty(), "registers are missing");
        check_back(*staged);
        check_forward(*staged);
      },
      text_of);
  return counts;
}

TEST(TileGrid, EveryRegisterAndEveryTokenOfATileByTmaLeadToOneAnother) {
  const std::vector<Point> points = both_tiles(StagingPath::tma, kvscope::testing_support::tma_cases());
  EXPECT_EQ(points.size(), 384U);
  const Counts counts = check("tiles by TMA", points, 7);
  const auto can =
      std::ranges::count_if(points, [](const Point& p) { return kvscope::testing_support::tma_can(p.of); });
  EXPECT_GE(counts.taken, test::size_for_sanitizers(can / 8, can));
  EXPECT_GE(counts.with_registers, test::size_for_sanitizers(20, 200));
}

TEST(TileGrid, EveryRegisterAndEveryTokenOfATileThroughLdsLeadToOneAnother) {
  const std::vector<Point> points = both_tiles(StagingPath::lds, kvscope::testing_support::lds_cases());
  EXPECT_EQ(points.size(), 960U);
  const Counts counts = check("tiles through LDS", points, 37);
  EXPECT_GE(counts.taken, test::size_for_sanitizers(15, 150));
  EXPECT_EQ(counts.with_registers, counts.taken);
}

// Tiles that a lane's registers do not hold at once: k-steps, several warps, stages of single blocks, parts of a head.
TEST(TileGrid, EveryRegisterAndEveryTokenOfATileInKStepsLeadToOneAnother) {
  const auto tma = [](StagingCase of, std::int64_t BN, std::int64_t BK) {
    return Point{.path = StagingPath::tma, .of = of, .BN = BN, .BK = BK};
  };
  const auto lds = [](StagingCase of, LdsGeometry geometry, bool last = false) {
    of.page = 128;
    return Point{.path = StagingPath::lds, .of = of, .last = last, .lds = geometry};
  };
  const std::vector<Point> points{
      tma({.page = 64, .head_size = 576}, 64, 576),
      tma({.page = 64, .head_size = 576, .kv = KOrV::v}, 64, 576),
      tma({.page = 128, .tokens = 520}, 512, 128),
      tma({.page = 128, .tokens = 520, .kv = KOrV::v}, 512, 128),
      tma({.dtype = DType::e4m3, .page = 64, .head_size = 1536, .kv = KOrV::v}, 64, 1536),
      lds({}, {.reg_chunk_depth = 64}),
      lds({}, {.reg_chunk_depth = 32}, true),
      lds({}, {.head_dim_offset = 64}),
      lds({.kv = KOrV::v}, {.head_dim_offset = 64}, true),
      lds({}, {.smem_depth = 192}),
      lds({}, {.BN = 128, .full_kv = false}),
      lds({}, {.BN = 128, .full_kv = false, .reg_chunk_depth = 64}),
      lds({}, {.BN = 128, .full_kv = false, .head_dim_offset = 32}, true),
      lds({.kv = KOrV::v}, {.BN = 128, .full_kv = false}, true),
      lds({.head_size = 512}, {.BN = 128}),
      lds({.head_size = 256, .kv = KOrV::v}, {.BN = 128}, true),
  };
  const Counts counts = check("tiles in k-steps", points, 5);
  EXPECT_EQ(counts.with_registers, test::size_for_sanitizers(4, 16));
}

}  // namespace
}  // namespace kvscope::viz::tile_grid_test
