// The registers panel for each instruction shape of core/fragment: each element of the fragment is drawn once, in the
// lane and register that the instruction has it in, with its label, its name and its place on the axes. Tiles staged on
// both paths and operands that wgmma reads through descriptors are held to the same: nothing is missing or drawn twice.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/fragment/fragment_catalog.h"
#include "core/fragment/wgmma_descriptor.h"
#include "tests/viz/geometry/staged_tile.h"
#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/pool_scene.h"
#include "tests/whole_grid.h"
#include "viz/geometry/registers_layout.h"
#include "viz/playback/tile_fold.h"
#include "viz/playback/tile_selection.h"
#include "viz/playback/tile_state.h"
#include "viz/view/operand_paint.h"
#include "viz/view/panel.h"
#include "viz/view/registers_paint.h"
#include "viz/view/time_text.h"

namespace kvscope::viz::instruction_shapes_test {
namespace {

using testing_support::TileOrder;

const QRectF kWide(20, 20, 3000, 2000);  // room for each label of a fragment of 64 columns
constexpr std::int64_t kFirstToken = 64, kFirstDim = 128;

// --- text that a panel draws -----------------------------------------------------------------------------------------

std::vector<DrawnText> texts_of(const Panel& panel, const QRectF& body, const Scene& scene) {
  TextDevice device({4000, 4000});
  QPainter painter(&device);
  panel.paint_base(painter, body, scene);
  panel.paint_overlay(painter, body, scene);
  painter.end();
  return device.texts();
}

// --- scenes ----------------------------------------------------------------------------------------------------------

struct TileScene {
  Staged staged{run_of(10, one_of_each())};
  Tile tile;
  TileState now;
  explicit TileScene(const std::vector<trace::Event>& events) : tile(fold_tile(events)) {
    now = tile_state(tile, tile.events);
    staged.scene.tile = &tile;
    staged.scene.tile_now = &now;
  }
  void pin(const Selection& selection) {
    staged.scene.pinned = selection;
    staged.scene.pinned_lit = resolve(staged.scene.state(), staged.scene.facts(), &tile, selection);
  }
  const Scene& scene() const { return staged.scene; }
};

// --- each map --------------------------------------------------------------------------------------------------------

// A map's lanes as warps: a warpgroup has four of 32 lanes.
struct Warps {
  std::int64_t count = 1, lanes = 32;
};
Warps warps_of(const FragmentMap& map) {
  const std::int64_t lanes = map.info().lanes;
  return lanes > 64 ? Warps{lanes / 32, 32} : Warps{1, lanes};
}

// The elements of one register, lowest bits first.
std::vector<TilePlace> held(const FragmentMap& map, std::int64_t lane, std::int64_t index) {
  std::vector<TilePlace> all;
  const int of_register = map.info().elements_per_register;
  for (int n = 0; n < of_register; ++n) {
    const int element = static_cast<int>(index) * of_register + n;
    if (element < map.info().elements) all.push_back(map.tile_of({static_cast<int>(lane), element}));
  }
  return all;
}

// One event where the register's elements are neighbors in a row or in a column, else one for each element.
void fill(std::vector<trace::Event>& events, trace::RegisterFilled e, const std::vector<TilePlace>& places) {
  const auto neighbors = [&](bool down) {
    for (std::size_t n = 0; n < places.size(); ++n) {
      const int by = static_cast<int>(n);
      if (places[n] != TilePlace{places[0].row + (down ? by : 0), places[0].column + (down ? 0 : by)}) return false;
    }
    return true;
  };
  const std::int64_t bits = 32 / std::max<std::int64_t>(std::ssize(places), 1);
  const bool along = neighbors(false), whole = along || neighbors(true);
  for (std::size_t n = 0; n < (whole ? 1 : places.size()); ++n) {
    e.bit = static_cast<std::int64_t>(n) * bits;
    e.row = places[n].row;
    e.column = places[n].column;
    e.elements = whole ? std::ssize(places) : 1;
    e.down = whole && !along;
    events.emplace_back(e);
  }
}

// A tile that is one fragment, read once by each warp.
std::vector<trace::Event> events_of(const FragmentMap& map) {
  const FragmentInfo& info = map.info();
  const Warps warps = warps_of(map);
  const std::int64_t registers = (info.elements + info.elements_per_register - 1) / info.elements_per_register;
  trace::TileOpened opened;
  opened.tma = warps.lanes == 32;
  opened.first_token = TokIdx{kFirstToken};
  opened.rows = opened.tokens = info.rows;
  opened.columns = info.columns;
  opened.bytes = info.rows * info.columns * 4 / info.elements_per_register;
  trace::TileMemory memory;
  memory.kinds = 2;
  memory.layers = memory.heads = 1;
  memory.page_size = 1024;
  memory.head_size = 2 * kFirstDim + info.columns;
  memory.element_bytes = 4 / info.elements_per_register;
  memory.stride = memory.page_size;
  memory.first_column = kFirstDim;
  trace::TileFragments fragments;
  fragments.instruction = trace::ReadInstruction::ld_shared;
  fragments.width = 4;
  fragments.lanes = warps.lanes;
  fragments.warps = warps.count;
  fragments.registers = registers;
  fragments.steps = 1;
  std::vector<trace::Event> events{opened, memory, fragments};
  for (std::int64_t warp = 0; warp < warps.count; ++warp) {
    events.emplace_back(trace::FragmentRead{warp, warp, 0, registers, 1, 0});
    for (std::int64_t lane = 0; lane < warps.lanes; ++lane) {
      for (std::int64_t index = 0; index < registers; ++index) {
        trace::RegisterFilled e;
        e.read = warp;
        e.lane = lane;
        e.index = index;
        fill(events, e, held(map, warp * warps.lanes + lane, index));
      }
    }
  }
  return events;
}

// "token 3", "tokens 3 and 4", "tokens 3 to 6", "tokens 3, 9, 12": as the panel names what a register holds.
std::string in_words(const std::string& what, const std::set<std::int64_t>& numbers) {
  std::vector<std::string> all;
  for (const std::int64_t n : numbers) all.push_back(std::to_string(n));
  if (all.size() == 1) return what + " " + all[0];
  if (all.size() == 2) return what + "s " + all[0] + " and " + all[1];
  if (*numbers.rbegin() - *numbers.begin() + 1 == std::ssize(numbers))
    return what + "s " + all[0] + " to " + all.back();
  std::string text = what + "s " + all[0];
  for (std::size_t n = 1; n < all.size(); ++n) text += ", " + all[n];
  return text;
}

std::string name_of(const std::vector<TilePlace>& places) {
  std::set<std::int64_t> tokens, dims;
  for (const TilePlace& place : places) {
    tokens.insert(kFirstToken + place.row);
    dims.insert(kFirstDim + place.column);
  }
  return in_words("token", tokens) + ", " + in_words("dim", dims);
}

// What a map's drawing shows, for one warp.
void check_warp(const FragmentMap& map, TileScene& of, std::int64_t warp, const Panel& panel, std::int64_t& labels) {
  const Warps warps = warps_of(map);
  of.pin(of_tile_register({warp, 0, 0, 0}));
  const auto at = registers_now(kWide, of.scene());
  ASSERT_TRUE(at);
  const RegistersLayout& layout = at->layout;
  ASSERT_EQ(layout.wave, warp);
  ASSERT_EQ(layout.lines_shown(), layout.lines) << "all lines have room";
  const std::vector<DrawnText> texts = texts_of(panel, kWide, of.scene());
  std::int64_t elements = 0;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names;  // by lane and register
  for (const PanelCell& cell : panel.cells(kWide, of.scene(), 100'000)) {
    if (cell.object.kind != Selection::Kind::tile_register || cell.object.reg.wave != warp) continue;
    const auto [place, is_new] =
        names.try_emplace({cell.object.reg.lane, cell.object.reg.index}, cell.name.toStdString());
    EXPECT_TRUE(is_new) << "listed twice: " << cell.name.toStdString();
  }
  for (int row = 0; row < map.info().rows; ++row) {
    for (int column = 0; column < map.info().columns; ++column) {
      const FragmentPlace place = map.fragment_of({row, column});
      if (place.lane / warps.lanes != warp) continue;
      ++elements;
      const std::int64_t lane = place.lane % warps.lanes, index = map.register_of(place.element);
      const auto rect = layout.element(of.tile, {row, column});
      ASSERT_TRUE(rect) << row << ' ' << column;
      ASSERT_EQ(panel.hit(rect->center(), kWide, of.scene()), of_tile_register({warp, lane, index, 0}))
          << row << ' ' << column;
      // The axes: which line and which cell the element is in.
      std::int64_t line = -1, unit = -1;
      for (std::int64_t n = 0; n < layout.lines_shown(); ++n) {
        const RegisterSpan& y = layout.shown[static_cast<std::size_t>(n)];
        if (rect->center().y() > y.begin && rect->center().y() < y.end) line = layout.line(of.tile, n);
      }
      for (std::size_t n = 0; n < layout.units.size(); ++n) {
        const RegisterSpan& x = layout.units[n];
        if (rect->center().x() > x.begin && rect->center().x() < x.end) {
          unit = layout.across(of.tile, static_cast<std::int64_t>(n));
        }
      }
      const std::int64_t down = layout.turned ? column : row, across = layout.turned ? row : column;
      ASSERT_EQ(line, down);
      ASSERT_TRUE(unit >= 0 && unit <= across && across < unit + layout.per_cell) << unit << ' ' << across;
      const auto named = names.find({lane, index});
      ASSERT_NE(named, names.end()) << lane << ' ' << index;
      const std::string expected = ": " + name_of(held(map, place.lane, index));
      ASSERT_TRUE(named->second.ends_with(expected)) << named->second << " for" << expected;
      // The label in the cell of the element: "L5 r2 d9,10", or the first parts of it.
      const std::string label = "L" + std::to_string(lane) + " r" + std::to_string(index);
      const QRectF cell = *layout.cell(of.tile, of.tile.fills_of({row, column}).front());
      for (const DrawnText& drawn : texts) {
        if (!cell.contains(drawn.rect.bottomLeft())) continue;
        ++labels;
        const std::string text = drawn.text.toStdString();
        ASSERT_TRUE(text == label || text.starts_with(label + " ") || label.starts_with(text + " ") ||
                    text == std::to_string(lane))
            << text << " for " << label;
      }
    }
  }
  EXPECT_EQ(elements, std::int64_t{map.info().rows} * map.info().columns / warps.count);
  EXPECT_EQ(std::ssize(names), warps.lanes * ((map.info().elements - 1) / map.info().elements_per_register + 1));
}

TEST(InstructionShapes, EachFragmentOfTheCatalogIsDrawnElementByElement) {
  const auto panel = make_registers_panel();
  ASSERT_GE(fragment_catalog().size(), 36U);
  const auto every = static_cast<std::size_t>(test::size_for_sanitizers(3, 1));
  for (std::size_t n = 0; n < fragment_catalog().size(); n += every) {
    const CatalogedFragment& entry = fragment_catalog()[n];
    SCOPED_TRACE(entry.name);
    const FragmentMap map = entry.make();
    TileScene of(events_of(map));
    std::int64_t labels = 0;
    for (std::int64_t warp = 0; warp < warps_of(map).count; ++warp) check_warp(map, of, warp, *panel, labels);
    if (HasFailure()) return;
    const bool narrow = map.info().columns > 64;  // cells of less than 20 pixels
    EXPECT_GE(labels, narrow ? 0 : map.info().rows * map.info().columns) << "each element's cell has a label";
  }
}

// --- staged tiles ----------------------------------------------------------------------------------------------------

TEST(InstructionShapes, EachElementOfAStagedTileIsDrawnAsOftenAsReadsBringIt) {
  std::set<std::pair<std::string, std::string>> shapes;
  std::vector<TileOrder> orders;
  for (const KOrV kv : {KOrV::k, KOrV::v}) {
    for (const DType dtype : {DType::bf16, DType::e4m3}) orders.push_back({.dtype = dtype, .kv = kv, .head_size = 128});
    const auto lds = [&](DType dtype, LdsMma mma) {
      orders.push_back({.path = StagingPath::lds, .dtype = dtype, .kv = kv, .page = 128, .head_size = 128, .mma = mma});
    };
    for (const LdsMma mma : {LdsMma::m32x32x8, LdsMma::m32x32x16, LdsMma::m16x16x32}) lds(DType::bf16, mma);
    lds(DType::e4m3, LdsMma::m32x32x64);
    lds(DType::e4m3, LdsMma::m16x16x128);
    if (kv == KOrV::v) orders.back().rows = 128;  // 16x16x128 takes V in tiles of 128 keys only
  }
  orders.push_back({.page = 64, .head_size = 576, .columns = 576});                 // k-steps
  orders.push_back({.kv = KOrV::v, .page = 64, .head_size = 576, .columns = 576});  // likewise
  for (const TileOrder& order : orders) {
    TileScene of(testing_support::staged_events(order));
    SCOPED_TRACE(matrix_name(of.tile) + ", " + read_name(of.tile));
    shapes.emplace(matrix_name(of.tile), read_name(of.tile));
    std::vector<std::int64_t> drawn(static_cast<std::size_t>(of.tile.rows() * of.tile.columns()));
    for (std::int64_t n = 0; n < std::ssize(of.tile.reads); ++n) {
      const TileRead& read = of.tile.reads[static_cast<std::size_t>(n)];
      of.pin(of_tile_register(of.tile.fills[static_cast<std::size_t>(read.first_fill)].reg));
      const auto at = registers_now(kWide, of.scene());
      ASSERT_TRUE(at);
      ASSERT_EQ(at->layout.read, n) << "the read that fills the pinned register";
      for (std::int64_t row = read.row; row < read.row + read.rows; ++row) {
        for (std::int64_t column = read.column; column < read.column + read.columns; ++column) {
          const auto rect = at->layout.element(of.tile, {row, column});
          ASSERT_TRUE(rect);
          const auto fill = at->layout.fill_at(of.tile, rect->center());
          if (!fill) continue;
          const TileFill& found = of.tile.fills[static_cast<std::size_t>(*fill)];
          ASSERT_EQ(found.reg.wave, read.wave);
          const std::vector<TileElement> held = elements(found);
          ASSERT_NE(std::ranges::find(held, TileElement{row, column}), held.end());
          ++drawn[static_cast<std::size_t>(row * of.tile.columns() + column)];
        }
      }
      if (of.tile.waves() > 1) {
        EXPECT_EQ(std::ssize(at->layout.waves), of.tile.waves());
        EXPECT_EQ(at->layout.wave, read.wave);
      }
    }
    // The waves of LDS read the tile once each (K: a wave of its keys), the warps of TMA share it.
    for (std::int64_t row = 0; row < of.tile.rows(); ++row) {
      for (std::int64_t column = 0; column < of.tile.columns(); ++column) {
        const auto often = std::ssize(of.tile.fills_of({row, column}));
        ASSERT_EQ(drawn[static_cast<std::size_t>(row * of.tile.columns() + column)], often) << row << ' ' << column;
        ASSERT_GT(often, 0);
      }
    }
  }
  using testing::Pair;
  EXPECT_THAT(shapes, testing::UnorderedElementsAre(
                          Pair("mma.m16n8k16", "ldmatrix.x4"), Pair("mma.m16n8k16", "ldmatrix.x4.trans"),
                          Pair("mma.m16n8k32", "ldmatrix.x4"), Pair("mma.m16n8k32", "ldmatrix.x4.trans"),
                          Pair("mfma 32x32x8", "ds_read_b128"), Pair("mfma 32x32x16", "ds_read_b128"),
                          Pair("mfma 16x16x32", "ds_read_b128"), Pair("mfma 32x32x64", "ds_read_b128"),
                          Pair("mfma 16x16x128", "ds_read_b128"), Pair("mfma 32x32x8", "ds_read_b64_tr_b16"),
                          Pair("mfma 32x32x16", "ds_read_b64_tr_b16"), Pair("mfma 16x16x32", "ds_read_b64_tr_b16"),
                          Pair("mfma 32x32x64", "ds_read_b64_tr_b8"), Pair("mfma 16x16x128", "ds_read_b64_tr_b8")));
}

// --- wgmma -----------------------------------------------------------------------------------------------------------

// A tile of 64 tokens x 64 columns in rows of the mode's width, which wgmma reads: K with its tokens as the columns of B
// (K-major), V with its dims (MN-major).
struct WgmmaCase {
  SwizzleMode mode = SwizzleMode::b128;
  DType dtype = DType::bf16;
  KOrV kv = KOrV::k;
  std::int64_t size() const { return size_of(dtype); }
  std::int64_t depth() const { return 32 / size(); }  // of one product
  std::int64_t products() const { return 64 / depth(); }
};

constexpr std::int64_t kTileRows = 64;

WgmmaDescriptor descriptor_of(const WgmmaCase& c, std::int64_t product) {
  const std::int64_t width = bytes(c.mode), band = kTileRows * width;
  const bool swizzled = c.mode != SwizzleMode::none;
  if (c.kv == KOrV::v) {
    const std::int64_t start = product * c.depth() * width;
    return swizzled ? WgmmaDescriptor{start, band, 8 * width, 0, c.mode}
                    : WgmmaDescriptor{start, 8 * width, band, 0, c.mode};
  }
  const std::int64_t along = 32 * product;  // [bytes] of a row
  const std::int64_t start = along / width * band + along % width;
  return {start, swizzled ? 16 : band, 8 * width, 0, c.mode};
}

std::vector<trace::Event> events_of(const WgmmaCase& c) {
  TileOrder order{.dtype = c.dtype, .kv = c.kv, .swizzle = c.mode};
  std::vector<trace::Event> events = testing_support::staged_for_wgmma(order);
  const bool mn = c.kv == KOrV::v;
  const std::int64_t in_chunk = 16 / c.size();
  for (std::int64_t product = 0; product < c.products(); ++product) {
    const WgmmaDescriptor d = descriptor_of(c, product);
    trace::OperandRead e;
    e.read = product;
    e.operand = 1;
    e.start = d.start;
    e.leading = d.leading;
    e.stride = d.stride;
    e.span = c.mode == SwizzleMode::none ? 0 : bytes(c.mode);
    e.mn_major = mn;
    e.lines = 64;
    e.depth = c.depth();
    events.emplace_back(e);
    for (std::int64_t line = 0; line < e.lines; line += mn ? in_chunk : 1) {
      for (std::int64_t k = 0; k < e.depth; k += mn ? 1 : in_chunk) {
        const auto major = mn ? WgmmaMajor::mn : WgmmaMajor::k;
        events.emplace_back(
            trace::OperandChunk{product, line, k, wgmma_address(d, major, static_cast<int>(c.size()), line, k)});
      }
    }
  }
  return events;
}

TEST(InstructionShapes, EachOperandOfWgmmaIsDrawnChunkByChunkInEveryLayout) {
  const auto panel = make_registers_panel();
  std::vector<WgmmaCase> cases;
  for (const SwizzleMode mode : {SwizzleMode::none, SwizzleMode::b32, SwizzleMode::b64, SwizzleMode::b128}) {
    for (const DType dtype : {DType::bf16, DType::e4m3}) {
      if (dtype != DType::e4m3 || mode != SwizzleMode::b128) cases.push_back({mode, dtype, KOrV::k});
    }
    cases.push_back({mode, DType::bf16, KOrV::v});
  }
  for (const WgmmaCase& c : cases) {
    SCOPED_TRACE(std::string(name(c.mode)) + " " + std::string(name(c.dtype)) + (c.kv == KOrV::k ? " K" : " V"));
    TileScene of(events_of(c));
    ASSERT_TRUE(shows_operands(of.tile));
    std::set<std::pair<std::int64_t, std::int64_t>> drawn;  // chunks of the tile
    for (std::int64_t product = 0; product < c.products(); ++product) {
      const std::int64_t first = product * c.depth();
      of.pin(of_tile_chunk(c.kv == KOrV::k ? TileElement{0, first} : TileElement{first, 0}));
      const auto at = operand_now(kWide, of.scene());
      ASSERT_TRUE(at);
      ASSERT_EQ(at->operand, product);
      const TileOperand& shown = of.tile.operands[static_cast<std::size_t>(product)];
      for (std::int64_t n = shown.first_chunk; n < shown.first_chunk + shown.chunks; ++n) {
        const TileOperandChunk& chunk = of.tile.operand_chunks[static_cast<std::size_t>(n)];
        const TileElement expected =
            c.kv == KOrV::k ? TileElement{chunk.line, first + chunk.k} : TileElement{first + chunk.k, chunk.line};
        const Selection hit = panel->hit(at->rect_of(of.tile, n).center(), kWide, of.scene());
        ASSERT_EQ(hit, of_tile_chunk(expected)) << n;
        ASSERT_TRUE(drawn.emplace(expected.row, expected.column).second) << "drawn twice";
      }
      const WgmmaDescriptor d = descriptor_of(c, product);
      bool labeled = false;
      for (const DrawnText& text : texts_of(*panel, kWide, of.scene())) {
        labeled = labeled || text.text.startsWith(QStringLiteral("start %1 ").arg(number_text(d.start)));
      }
      EXPECT_TRUE(labeled) << "the descriptor's start";
    }
    EXPECT_EQ(std::ssize(drawn), kTileRows * 64 * c.size() / 16);
  }
}

}  // namespace
}  // namespace kvscope::viz::instruction_shapes_test
