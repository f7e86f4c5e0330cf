// The block pool against the state that it shows: objects under points, names and colors, at every size of cell.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <cmath>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "tests/viz/view/pool_scene.h"
#include "tests/viz/view/runs.h"
#include "viz/geometry/pool_layout.h"
#include "viz/view/cell_paint.h"

namespace kvscope::viz::pool_panel_test {
namespace {

constexpr QRectF kBody(20, 30, 500, 300);
constexpr QSize kImage(540, 360);

std::string words(const QString& text) {
  return text.toStdString();
}

// The color of a block according to the theme, computed from the state alone. Owners below 8 have no pattern.
// `side` [px] of the cell: a free cell too small for an outline has another color.
QColor expected_fill(const BlockState& block, const Theme& theme, double side) {
  if (block.ref_count > 1) return theme.shared;
  if (block.cached) return theme.cached;
  if (block.ref_count == 1) return theme.owner[static_cast<std::size_t>(block.owner % 8)];
  return side < 8 ? theme.free_small : theme.cell_free;
}

// Blocks of many owners all over a pool of `blocks`, every fifth free.
std::shared_ptr<const Run> scattered(std::int64_t blocks) {
  std::vector<trace::Event> events;
  for (std::int64_t seq = 0; seq < 8; ++seq) events.push_back(trace::RequestArrived{SeqIdx{seq}, 20, 4});
  events.push_back(trace::StepBegan{StepIdx{0}, 0});
  for (std::int64_t seq = 0; seq < 8; ++seq) events.push_back(trace::RequestAdmitted{SeqIdx{seq}, 0});
  std::vector<std::int64_t> pages(8);
  for (std::int64_t block = 0; block < blocks; ++block) {
    if (block % 5 == 3) continue;
    const std::int64_t seq = block * block % 7 + block % 2;
    const PageIdx page{pages[static_cast<std::size_t>(seq)]++};
    events.push_back(trace::BlockAllocated{BlockIdx{block}, SeqIdx{seq}, page});
    events.push_back(trace::TokensWritten{SeqIdx{seq}, TokIdx{page.value * 16}, 16, BlockIdx{block}, 0, false});
  }
  events.push_back(trace::StepEnded{StepIdx{0}, 10});
  events.push_back(trace::StepBegan{StepIdx{1}, 10});
  events.push_back(trace::StepEnded{StepIdx{1}, 20});
  return run_of(blocks, std::move(events));
}

TEST(PoolPanel, EveryBlockIsNamedInWords) {
  const Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const std::vector<PanelCell> cells = panel->cells(kBody, staged.scene, 100);
  ASSERT_EQ(cells.size(), 11U);
  EXPECT_EQ(words(cells[0].name), "block 0, free");
  EXPECT_EQ(words(cells[2].name), "block 2, sequence 1 page 1, 8 of 16 tokens");
  EXPECT_EQ(words(cells[3].name), "block 3, sequence 0 page 1, 5 of 16 tokens");
  EXPECT_EQ(words(cells[5].name), "block 5, cached, last sequence 2 page 0, 16 of 16 tokens");
  EXPECT_EQ(words(cells[7].name), "block 7, page 0 shared by 2 sequences, 16 of 16 tokens");
  EXPECT_EQ(words(cells[10].name), "block 10, the null page");
  EXPECT_EQ(panel->cells(kBody, staged.scene, 4).size(), 4U);
}

TEST(PoolPanel, SummaryHasTheUsageAndTheChangesOfTheStep) {
  Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  EXPECT_EQ(words(panel->title()), "Block pool");
  EXPECT_EQ(words(panel->subtitle(staged.scene)),
            "3 of 10 blocks used, 1 cached, 6 free · owner color · reference count");
  staged.cursor.seek_row(1);
  EXPECT_EQ(
      words(panel->summary(staged.scene)),
      "Blocks used: 4 of 10; cached: 0; free: 6. In step 0: allocated 4, shared 1, copied 0, released 0, evicted 0.");
  staged.cursor.seek_row(2);
  EXPECT_EQ(
      words(panel->summary(staged.scene)),
      "Blocks used: 3 of 10; cached: 1; free: 6. In step 1: allocated 0, shared 0, copied 0, released 1, evicted 0.");
  staged.cursor.seek_row(0);
  EXPECT_EQ(words(panel->summary(staged.scene)), "Blocks used: 0 of 10; cached: 0; free: 10.");
}

// For such a trace the panel must state that blocks are unknown; an empty pool would be wrong.
TEST(PoolPanel, ATraceOfStepsShowsThatBlocksAreUnknown) {
  const Staged staged(run_of_steps(4));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  EXPECT_THAT(words(panel->subtitle(staged.scene)), testing::HasSubstr("their content is not in this trace"));
  EXPECT_TRUE(panel->cells(kBody, staged.scene, 10).empty());
  EXPECT_TRUE(panel->hit(kBody.center(), kBody, staged.scene).none());
  EXPECT_TRUE(panel->moved({}, Move::right, kBody, staged.scene).none());
  EXPECT_EQ(panel->zoomed(2, kBody.center(), kBody, staged.scene), Viewport{});
  const QImage image = painted(*panel, kBody, staged.scene, kImage);
  EXPECT_EQ(spilled(image, kBody.toRect()), 0);
  int text = 0;
  for (int y = 30; y < 330; ++y) {
    for (int x = 20; x < 520; ++x) text += image.pixel(x, y) != kUntouched ? 1 : 0;
  }
  EXPECT_GT(text, 500);
}

TEST(PoolPanel, HitsAndAnchorsAgreeForEveryCell) {
  const Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  for (const PanelCell& cell : panel->cells(kBody, staged.scene, 100)) {
    EXPECT_EQ(panel->hit(cell.rect.center(), kBody, staged.scene), cell.object);
    const Lit lit = resolve(staged.scene.state(), staged.scene.facts(), cell.object);
    EXPECT_EQ(panel->anchor(lit, kBody, staged.scene), cell.rect);
  }
  EXPECT_TRUE(panel->hit({10, 10}, kBody, staged.scene).none());
  EXPECT_EQ(panel->anchor({}, kBody, staged.scene), std::nullopt);
}

// A token is linked to the block that holds it, not to its sequence's first one.
TEST(PoolPanel, ATokenAnchorsInItsBlock) {
  const Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const Lit token = resolve(staged.scene.state(), staged.scene.facts(), of_token(SeqIdx{0}, TokIdx{18}));
  EXPECT_EQ(panel->anchor(token, kBody, staged.scene), panel->cells(kBody, staged.scene, 100)[3].rect);
  const Lit sequence = resolve(staged.scene.state(), staged.scene.facts(), of_sequence(SeqIdx{0}));
  EXPECT_EQ(panel->anchor(sequence, kBody, staged.scene), std::nullopt);
}

TEST(PoolPanel, ArrowsWalkFromBlockToBlock) {
  const Staged staged(run_of(10, one_of_each()));  // 8 columns: 0..7, 8..10
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const auto moved = [&](const Selection& from, Move move) { return panel->moved(from, move, kBody, staged.scene); };
  ASSERT_EQ(pool_layout(10, kBody, {}, 1).grid.columns, 8);
  EXPECT_EQ(moved({}, Move::down), of_block(BlockIdx{0}));
  EXPECT_EQ(moved(of_block(BlockIdx{2}), Move::right), of_block(BlockIdx{3}));
  EXPECT_EQ(moved(of_block(BlockIdx{2}), Move::left), of_block(BlockIdx{1}));
  EXPECT_EQ(moved(of_block(BlockIdx{2}), Move::down), of_block(BlockIdx{10}));
  EXPECT_EQ(moved(of_block(BlockIdx{10}), Move::up), of_block(BlockIdx{2}));
  EXPECT_EQ(moved(of_block(BlockIdx{5}), Move::first), of_block(BlockIdx{0}));
  EXPECT_EQ(moved(of_block(BlockIdx{5}), Move::last), of_block(BlockIdx{10}));
  EXPECT_EQ(moved(of_token(SeqIdx{0}, TokIdx{18}), Move::right), of_block(BlockIdx{4}));
  EXPECT_EQ(moved(of_sequence(SeqIdx{1}), Move::right), of_block(BlockIdx{2}));
  EXPECT_EQ(moved(of_step(StepIdx{1}), Move::right), of_block(BlockIdx{0}));
}

TEST(PoolPanel, AScrolledAwayBlockIsRevealedAndThenAnchors) {
  Staged staged(scattered(900));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  staged.look(PanelId::pool, panel->zoomed(6, kBody.topLeft(), kBody, staged.scene));
  const Selection last = of_block(BlockIdx{899});
  const Lit lit = resolve(staged.scene.state(), staged.scene.facts(), last);
  EXPECT_EQ(panel->anchor(lit, kBody, staged.scene), std::nullopt);
  staged.look(PanelId::pool, panel->revealing(last, kBody, staged.scene));
  ASSERT_TRUE(panel->anchor(lit, kBody, staged.scene).has_value());
  EXPECT_EQ(panel->hit(panel->anchor(lit, kBody, staged.scene)->center(), kBody, staged.scene), last);
  staged.look(PanelId::pool, panel->scrolled({-1e6, -1e6}, kBody, staged.scene));
  EXPECT_EQ(panel->hit(kBody.topLeft() + QPointF(2, 2), kBody, staged.scene), of_block(BlockIdx{0}));
}

// The color in the middle of every cell is its block's color: at 1.5, 6 and 20 px per block.
TEST(PoolPanel, EveryBlockHasItsColorAtEverySizeOfCell) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    for (const auto& [blocks, zoom, offset] :
         std::vector<std::tuple<std::int64_t, double, QPointF>>{{60'000, 0, {0, 0}},
                                                                {20'000, 0, {0, 0}},
                                                                {20'000, 3, {211, 97}},
                                                                {3000, 0, {0, 0}},
                                                                {3000, 14, {133, 71}},
                                                                {300, 0, {0, 0}},
                                                                {300, 41, {207, 93}}}) {
      Staged staged(scattered(blocks), kind);
      staged.look(PanelId::pool, {zoom, offset});
      const std::unique_ptr<Panel> panel = make_pool_panel();
      const QImage image = painted(*panel, kBody, staged.scene, kImage);
      EXPECT_EQ(spilled(image, kBody.toRect()), 0);
      const PoolLayout layout = pool_layout(blocks, kBody, staged.scene.viewport_of(PanelId::pool), 1);
      int seen = 0, wrong = 0;
      for (std::int64_t block = 0; block < blocks; ++block) {
        // To the right of any number, to the left of the marks of changes in this step.
        const QRectF cell =
            layout.grid.pitch.width() < 8 ? layout.grid.whole_rect(layout.place(block)) : layout.rect(block);
        const QPointF at(cell.left() + cell.width() * 0.5, cell.top() + cell.height() * 0.62);
        if (!layout.grid.area.contains(at)) continue;
        ++seen;
        const QColor expected =
            expected_fill(staged.scene.state().blocks[block], *staged.scene.theme, layout.rect(block).width());
        // The middle of a cell of 1.5 px may belong to an adjacent cell, because Qt rounds when it scales an image.
        const auto pixel = image.pixel(static_cast<int>(at.x()), static_cast<int>(at.y()));
        wrong += pixel != expected.rgb() ? 1 : 0;
      }
      EXPECT_GT(seen, 50) << blocks << " at " << zoom;
      EXPECT_LE(wrong, layout.detail == PoolDetail::pixels ? seen / 100 : 0) << blocks << " at " << zoom;
    }
  }
}

// A pixel with several blocks has their mean color, so that a mostly free region is dark.
TEST(PoolPanel, BlocksThatShareAPixelHaveTheirMeanColor) {
  constexpr QRectF kSmall(8, 8, 60, 40);
  const Staged staged(scattered(9000));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const QImage image = painted(*panel, kSmall, staged.scene, {80, 60});
  const PoolLayout layout = pool_layout(9000, kSmall, {}, 1);
  ASSERT_LT(layout.grid.pitch.width(), 0.6);
  const QRectF null_page = QRectF(layout.rect(9000).topLeft(), QSizeF(0, 0)).adjusted(-6, -6, 6, 6);  // has a sign
  for (int y = 0; y < 40; ++y) {
    for (int x = 0; x < 60; ++x) {
      double red = 0, green = 0, blue = 0, count = 0;
      for (std::int64_t block = 0; block < 9000; ++block) {
        const QPointF corner = layout.grid.whole_rect(layout.place(block)).topLeft() - layout.grid.area.topLeft();
        if (static_cast<int>(corner.x()) != x || static_cast<int>(corner.y()) != y) continue;
        const QColor color =
            expected_fill(staged.scene.state().blocks[block], *staged.scene.theme, layout.rect(block).width());
        red += color.red(), green += color.green(), blue += color.blue(), count += 1;
      }
      if (count == 0 || null_page.contains(QPointF(8 + x, 8 + y))) continue;
      const QRgb pixel = image.pixel(8 + x, 8 + y);
      ASSERT_NEAR(qRed(pixel), red / count, 1.01) << x << " " << y;
      ASSERT_NEAR(qGreen(pixel), green / count, 1.01) << x << " " << y;
      ASSERT_NEAR(qBlue(pixel), blue / count, 1.01) << x << " " << y;
    }
  }
}

// Every sixth block stores one token less.
bool is_other(std::int64_t block) {
  return block % 6 == 0;
}
State other_than(State state) {
  for (std::int64_t block = 0; block < state.blocks.size(); ++block) {
    if (is_other(block)) --state.blocks.at(block).filled;
  }
  return state;
}

// Beside another run, blocks that differ keep their color, and all others are dimmed to a quarter of it.
QColor dimmed(const QColor& color, const Theme& theme) {
  const auto channel = [](int of, int card) { return static_cast<int>(std::lround(of + (card - of) * 0.75)); };
  return {channel(color.red(), theme.card.red()), channel(color.green(), theme.card.green()),
          channel(color.blue(), theme.card.blue())};
}

TEST(PoolPanel, BesideAnotherRunBlocksOfAFewPixelsAreDimmedWhereBothAreAlike) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light, ThemeKind::high_contrast}) {
    Staged staged(scattered(20'000), kind);
    const State other = other_than(staged.cursor.state());
    const std::unique_ptr<Panel> panel = make_pool_panel();
    const QImage alone = painted(*panel, kBody, staged.scene, kImage);
    staged.scene.compared = &other;
    const QImage beside = painted(*panel, kBody, staged.scene, kImage);
    const PoolLayout layout = pool_layout(20'000, kBody, {}, 1);
    ASSERT_EQ(layout.detail, PoolDetail::pixels);
    int full = 0, dim = 0, wrong = 0;
    for (std::int64_t block = 0; block < 20'000; ++block) {
      const QPoint at = layout.grid.whole_rect(layout.place(block)).center().toPoint();
      const QColor color(alone.pixel(at));
      ++(is_other(block) ? full : dim);
      wrong += beside.pixel(at) != (is_other(block) ? color : dimmed(color, *staged.scene.theme)).rgb() ? 1 : 0;
    }
    EXPECT_GT(full, 2000);
    EXPECT_GT(dim, 10'000);
    EXPECT_LE(wrong, 200);  // a middle may belong to an adjacent cell, because Qt rounds when it scales an image
    EXPECT_EQ(spilled(beside, kBody.toRect()), 0);
  }
}

TEST(PoolPanel, BesideAnotherRunASharedPixelIsTheMeanOfBlocksInFullColorAndDimmed) {
  constexpr QRectF kSmall(8, 8, 60, 40);
  Staged staged(scattered(9000));
  const State other = other_than(staged.cursor.state());
  staged.scene.compared = &other;
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const QImage image = painted(*panel, kSmall, staged.scene, {80, 60});
  const PoolLayout layout = pool_layout(9000, kSmall, {}, 1);
  const QRectF null_page = QRectF(layout.rect(9000).topLeft(), QSizeF(0, 0)).adjusted(-6, -6, 6, 6);  // has a sign
  std::map<std::pair<int, int>, std::array<double, 4>> sums;                                          // by pixel
  for (std::int64_t block = 0; block < 9000; ++block) {
    const QPointF corner = layout.grid.whole_rect(layout.place(block)).topLeft() - layout.grid.area.topLeft();
    QColor color = expected_fill(staged.scene.state().blocks[block], *staged.scene.theme, layout.rect(block).width());
    if (!is_other(block)) color = dimmed(color, *staged.scene.theme);
    std::array<double, 4>& sum = sums[{static_cast<int>(corner.x()), static_cast<int>(corner.y())}];
    sum[0] += color.red(), sum[1] += color.green(), sum[2] += color.blue(), sum[3] += 1;
  }
  for (const auto& [at, sum] : sums) {
    const auto& [x, y] = at;
    if (null_page.contains(QPointF(8 + x, 8 + y))) continue;
    const QRgb pixel = image.pixel(8 + x, 8 + y);
    ASSERT_NEAR(qRed(pixel), sum[0] / sum[3], 1.01) << x << " " << y;
    ASSERT_NEAR(qGreen(pixel), sum[1] / sum[3], 1.01) << x << " " << y;
    ASSERT_NEAR(qBlue(pixel), sum[2] / sum[3], 1.01) << x << " " << y;
  }
  EXPECT_GT(sums.size(), 1000U);
}

// One block of a million is not visible in a mean, and a black cell of 3 px is hard to find: the null page is drawn as
// a separate square inside the body.
TEST(PoolPanel, TheNullPageIsSeenHoweverManyBlocksThereAre) {
  for (const std::int64_t blocks : {9000, 60'000, 200'000}) {
    const Staged staged(scattered(blocks));
    const std::unique_ptr<Panel> panel = make_pool_panel();
    const QImage image = painted(*panel, kBody, staged.scene, kImage);
    const PoolLayout layout = pool_layout(blocks, kBody, {}, 1);
    ASSERT_EQ(layout.detail, PoolDetail::pixels);
    const QRectF cell = layout.rect(blocks);
    int dark = 0, light = 0;
    for (int y = static_cast<int>(cell.top()) - 5; y < static_cast<int>(cell.top()) + 6; ++y) {
      for (int x = static_cast<int>(cell.left()) - 5; x < static_cast<int>(cell.left()) + 6; ++x) {
        dark += image.pixel(x, y) == staged.scene.theme->null_page.rgb() ? 1 : 0;
        light += image.pixel(x, y) == staged.scene.theme->ink_on(staged.scene.theme->null_page).rgb() ? 1 : 0;
      }
    }
    EXPECT_EQ(dark, 9) << blocks;
    EXPECT_EQ(light, 16) << blocks;
    EXPECT_EQ(spilled(image, kBody.toRect()), 0);
  }
}

// Regression: the sign covered the last digit of the null page's number at 36 px, and the word beside it at 50 px.
TEST(PoolPanel, TheNullPagesSignLeavesItsNumberAndItsWordAlone) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    const Theme& of = theme(kind);
    for (int zoom = 26; zoom <= 128; ++zoom) {
      const PoolLayout layout = pool_layout(999, kBody, {static_cast<double>(zoom), {1e6, 1e6}}, 1);
      if (layout.detail == PoolDetail::cells) continue;
      const QRectF cell(QPointF(2, 2), layout.rect(999).size());
      QImage image(140, 140, QImage::Format_RGB32);
      image.fill(of.null_page);
      QPainter painter(&image);
      paint_cell(painter, cell, kNullPageLook, 1, of);
      painter.end();
      const auto painted_in = [&](const QRectF& rect) {
        int found = 0;
        const QRect inside = (rect & cell.adjusted(3, 3, -3, -3)).toAlignedRect();  // not the cell's own outline
        for (int y = inside.top(); y <= inside.bottom(); ++y) {
          for (int x = inside.left(); x <= inside.right(); ++x)
            found += image.pixel(x, y) != of.null_page.rgb() ? 1 : 0;
        }
        return found;
      };
      const PoolCellText places = layout.text_places(cell);
      const QPointF number = places.number, word = places.words;
      EXPECT_EQ(painted_in({number.x(), cell.top(), 3 * 0.6 * layout.number_px, number.y() - cell.top() + 1}), 0)
          << zoom;
      if (layout.detail == PoolDetail::words) {
        const double high = 0.75 * layout.words_px;  // of an l
        EXPECT_EQ(painted_in({word.x(), word.y() - high, 4 * 0.6 * layout.words_px, high}), 0) << zoom;
      }
      EXPECT_GT(painted_in(cell), 8) << zoom;
    }
  }
}

// 5 of 16 tokens: the left 31 % of block 3 bright, the rest darker; 8 of 16 in block 2.
TEST(PoolPanel, ABlockIsBrightAsFarAsItIsFilled) {
  const Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const QImage image = painted(*panel, kBody, staged.scene, kImage);
  const PoolLayout layout = pool_layout(10, kBody, {}, 1);
  const auto bright_columns = [&](std::int64_t block, const QColor& color) {
    const QRect cell = layout.rect(block).toRect();
    int columns = 0;
    for (int x = cell.left(); x <= cell.right(); ++x) {
      columns += image.pixel(x, cell.center().y()) == color.rgb() ? 1 : 0;
    }
    return columns;
  };
  const int width = layout.rect(0).toRect().width();
  EXPECT_EQ(bright_columns(3, staged.scene.theme->owner[0]), std::lround(width * 5.0 / 16));
  EXPECT_EQ(bright_columns(2, staged.scene.theme->owner[1]), std::lround(width * 8.0 / 16));
}

TEST(PoolPanel, HoveredAndPinnedBlocksLookDifferentAndBothAreSeen) {
  Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const QImage plain = painted(*panel, kBody, staged.scene, kImage);
  staged.pin(of_block(BlockIdx{8}));
  const QImage pinned = painted(*panel, kBody, staged.scene, kImage);
  staged.pin({});
  staged.hover(of_block(BlockIdx{8}));
  const QImage hovered = painted(*panel, kBody, staged.scene, kImage);
  EXPECT_NE(plain, pinned);
  EXPECT_NE(plain, hovered);
  EXPECT_NE(pinned, hovered);
  staged.pin(of_block(BlockIdx{1}));
  const QImage both = painted(*panel, kBody, staged.scene, kImage);
  const QRect first = pool_layout(10, kBody, {}, 1).rect(1).toRect();
  const QRect second = pool_layout(10, kBody, {}, 1).rect(8).toRect();
  EXPECT_NE(both.copy(first), plain.copy(first));
  EXPECT_EQ(both.copy(second), hovered.copy(second));
}

// The mark of the token's slot is inside its block, at the slot's share of the width.
TEST(PoolPanel, AChosenTokenIsMarkedInItsBlock) {
  Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const QRectF cell = pool_layout(10, kBody, {}, 1).rect(7);
  const auto marked_at = [&](std::int64_t token) {
    staged.pin(of_token(SeqIdx{0}, TokIdx{token}));
    const QImage image = painted(*panel, kBody, staged.scene, kImage);
    double sum = 0;
    int count = 0;
    for (int x = static_cast<int>(cell.left()) + 4; x < static_cast<int>(cell.right()) - 4; ++x) {
      if (image.pixel(x, static_cast<int>(cell.center().y())) != staged.scene.theme->accent.rgb()) continue;
      sum += x + 0.5 - cell.left();
      ++count;
    }
    EXPECT_GT(count, 0);
    return sum / count;
  };
  EXPECT_NEAR(marked_at(4), cell.width() * 4.5 / 16, 1.5);
  EXPECT_NEAR(marked_at(11), cell.width() * 11.5 / 16, 1.5);
}

// Changes are marked only in their step, and a release looks different from a write.
TEST(PoolPanel, BlocksThatWereJustFilledOrEmptiedAreMarked) {
  Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const auto corner_of = [&](std::int64_t row, std::int64_t block) {
    staged.cursor.seek_row(row);
    const QRectF cell = pool_layout(10, kBody, {}, 1).rect(block);
    const QImage image = painted(*panel, kBody, staged.scene, kImage);
    return image.copy(QRectF(cell.right() - 11, cell.top(), 11, 11).toRect());
  };
  const auto has_accent = [&](const QImage& image) {
    for (int y = 0; y < image.height(); ++y) {
      for (int x = 0; x < image.width(); ++x) {
        if (image.pixel(x, y) == staged.scene.theme->accent.rgb()) return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(has_accent(corner_of(1, 3)));
  EXPECT_FALSE(has_accent(corner_of(2, 3)));
  EXPECT_TRUE(has_accent(corner_of(2, 5)));
  EXPECT_FALSE(has_accent(corner_of(3, 5)));
  EXPECT_FALSE(has_accent(corner_of(1, 0)));
  EXPECT_NE(corner_of(1, 5), corner_of(2, 5));
}

// A block that is allocated and released within one step is marked as emptied; one that is evicted and allocated again
// as filled.
TEST(PoolPanel, TheLastThingThatHappenedToABlockIsMarked) {
  using namespace trace;
  const Staged staged(run_of(10, {RequestArrived{SeqIdx{0}, 16, 1},
                                  RequestArrived{SeqIdx{1}, 16, 1},
                                  StepBegan{StepIdx{0}, 0},
                                  RequestAdmitted{SeqIdx{0}, 0},
                                  BlockAllocated{BlockIdx{1}, SeqIdx{0}, PageIdx{0}},
                                  TokensWritten{SeqIdx{0}, TokIdx{0}, 16, BlockIdx{1}, 0, false},
                                  RequestFinished{SeqIdx{0}, 17},
                                  BlockReleased{BlockIdx{1}, SeqIdx{0}, PageIdx{0}, 0, true},
                                  StepEnded{StepIdx{0}, 10},
                                  StepBegan{StepIdx{1}, 10},
                                  BlockEvicted{BlockIdx{1}},
                                  RequestAdmitted{SeqIdx{1}, 0},
                                  BlockAllocated{BlockIdx{1}, SeqIdx{1}, PageIdx{0}},
                                  TokensWritten{SeqIdx{1}, TokIdx{0}, 16, BlockIdx{1}, 0, false},
                                  StepEnded{StepIdx{1}, 20},
                                  StepBegan{StepIdx{2}, 20},
                                  RequestFinished{SeqIdx{1}, 17},
                                  BlockReleased{BlockIdx{1}, SeqIdx{1}, PageIdx{0}, 0, true},
                                  BlockEvicted{BlockIdx{1}},
                                  StepEnded{StepIdx{2}, 30},
                                  StepBegan{StepIdx{3}, 30},
                                  StepEnded{StepIdx{3}, 40}}));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  // A filled corner has the accent in its very tip, a ring has not.
  const auto tip = [&](std::int64_t row) {
    Cursor cursor(staged.run);
    cursor.seek_row(row);
    Scene scene = staged.scene;
    scene.cursor = &cursor;
    const QRectF cell = pool_layout(10, kBody, {}, 1).rect(1);
    const QImage image = painted(*panel, kBody, scene, kImage);
    const QRect corner = QRectF(cell.right() - 11, cell.top(), 11, 11).toRect();
    int accent = 0;
    for (int y = corner.top(); y <= corner.bottom(); ++y) {
      for (int x = corner.left(); x <= corner.right(); ++x) {
        accent += image.pixel(x, y) == staged.scene.theme->accent.rgb() ? 1 : 0;
      }
    }
    const bool in_the_tip = image.pixel(corner.right() - 1, corner.top() + 1) == staged.scene.theme->accent.rgb();
    return accent == 0 ? "nothing" : in_the_tip ? "filled" : "emptied";
  };
  EXPECT_STREQ(tip(1), "emptied");
  EXPECT_STREQ(tip(2), "filled");
  EXPECT_STREQ(tip(3), "emptied");
  EXPECT_STREQ(tip(4), "nothing");
}

// An eviction alone also empties a block: no other event of the step names it.
TEST(PoolPanel, AnEvictedBlockIsMarked) {
  using namespace trace;
  std::vector<Event> events = one_of_each();
  events.insert(events.end() - 1, BlockEvicted{BlockIdx{5}});
  Staged staged(run_of(10, events));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const QRect cell = pool_layout(10, kBody, {}, 1).rect(5).toRect(),
              other = pool_layout(10, kBody, {}, 1).rect(6).toRect();
  const QImage image = painted(*panel, kBody, staged.scene, kImage);
  const QRect right_top(cell.width() - 12, 0, 12, 12);
  EXPECT_NE(image.copy(right_top.translated(cell.topLeft())), image.copy(right_top.translated(other.topLeft())));
}

// Outlines of the outermost cells included, at every level of detail and on a surface of twice the pixels.
RC_GTEST_PROP(PoolPanel, NothingIsPaintedOutsideTheBody, ()) {
  static const std::shared_ptr<const Run> kRun = scattered(700);
  Staged staged(kRun);
  const QRect body(*rc::gen::inRange(3, 40), *rc::gen::inRange(3, 40), *rc::gen::inRange(1, 300),
                   *rc::gen::inRange(1, 200));
  staged.look(PanelId::pool, {static_cast<double>(*rc::gen::inRange(0, 96)),
                              QPointF(*rc::gen::inRange(0, 900), *rc::gen::inRange(0, 900))});
  staged.scene.font_scale = *rc::gen::element(1.0, 1.5);
  staged.pin(of_sequence(SeqIdx{*rc::gen::inRange(0, 8)}));
  staged.hover(of_block(BlockIdx{*rc::gen::inRange(0, 701)}));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  const int scale = *rc::gen::element(1, 2);
  const QImage image = painted(*panel, body, staged.scene, {360, 260}, scale);
  RC_ASSERT(spilled(image, QRect(body.topLeft() * scale, body.size() * scale)) == 0);
}

// A real run of the gallery: every step with sharing, copying and eviction can be painted, hit and named.
TEST(PoolPanel, EveryStepOfARealRunAgreesWithItsState) {
  Staged staged(gallery_run("parallel_samples"));
  const std::unique_ptr<Panel> panel = make_pool_panel();
  int shared = 0;
  for (std::int64_t row = 0; row < staged.run->facts().rows; ++row) {
    staged.cursor.seek_row(row);
    const std::vector<PanelCell> cells = panel->cells(kBody, staged.scene, 10'000);
    ASSERT_EQ(static_cast<std::int64_t>(cells.size()), staged.run->facts().blocks + 1);
    for (std::int64_t block = 0; block < staged.run->facts().blocks; ++block) {
      const BlockState& state = staged.scene.state().blocks[block];
      const QString& name = cells[static_cast<std::size_t>(block)].name;
      EXPECT_EQ(name.contains(QStringLiteral("free")), state.ref_count == 0 && !state.cached) << words(name);
      EXPECT_EQ(name.contains(QStringLiteral("shared")), state.ref_count > 1) << words(name);
      EXPECT_EQ(name.contains(QStringLiteral("cached")), state.cached) << words(name);
      shared += state.ref_count > 1 ? 1 : 0;
    }
    EXPECT_EQ(spilled(painted(*panel, kBody, staged.scene, kImage), kBody.toRect()), 0);
  }
  EXPECT_GT(shared, 0);
}

}  // namespace
}  // namespace kvscope::viz::pool_panel_test
