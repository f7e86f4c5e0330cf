// The lookup table's panel against the state that it shows: the block of an entry in its name, its color and its hit;
// hits on the names of sequences.
#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <array>
#include <set>
#include <string>
#include <vector>

#include "tests/viz/view/pool_scene.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/kernel_table.h"
#include "viz/view/cell_paint.h"

namespace kvscope::viz::table_panel_test {
namespace {

constexpr QRectF kBody(20, 30, 420, 260);
constexpr QSize kImage(460, 320);
constexpr std::size_t kColumns = 24;  // of a kernel's table of at most 8 pages

std::string words(const QString& text) {
  return text.toStdString();
}

TEST(TablePanel, EveryEntryIsNamedInWords) {
  const Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_table_panel();
  std::vector<std::string> names, padding;
  for (const PanelCell& cell : panel->cells(kBody, staged.scene, 100)) {
    (cell.object.page.value < 2 ? names : padding).push_back(words(cell.name));
  }
  EXPECT_THAT(names, testing::ElementsAre("sequence 0 page 0, block 7 shared by 2 sequences, 16 of 16 tokens",
                                          "sequence 0 page 1, block 3, 5 of 16 tokens",
                                          "sequence 1 page 0, block 7 shared by 2 sequences, 16 of 16 tokens",
                                          "sequence 1 page 1, block 2, 8 of 16 tokens"));
  // The padding to 24 columns that a kernel may read, too.
  ASSERT_EQ(padding.size(), 2U * (kColumns - 2));
  EXPECT_EQ(padding.front(), "sequence 0 page 2, not assigned: the null page, block 10");
  EXPECT_EQ(padding.back(), "sequence 1 page 23, not assigned: the null page, block 10");
  EXPECT_EQ(panel->cells(kBody, staged.scene, 3).size(), 3U);
}

// The row of sequence 2 is shorter: its second entry is unused.
TEST(TablePanel, AnEntryWithoutABlockIsNamedUnassigned) {
  Staged staged(run_of(10, one_of_each()));
  staged.cursor.seek_row(1);
  const std::unique_ptr<Panel> panel = make_table_panel();
  const std::vector<PanelCell> cells = panel->cells(kBody, staged.scene, 100);
  ASSERT_EQ(cells.size(), 3 * kColumns);
  constexpr std::size_t kUsed = 2 * kColumns, kUnused = kUsed + 1;
  EXPECT_EQ(words(cells[kUnused].name), "sequence 2 page 1, not assigned: the null page, block 10");
  EXPECT_EQ(panel->hit(cells[kUnused].rect.center(), kBody, staged.scene), of_page(SeqIdx{2}, PageIdx{1}));
  const QImage image = painted(*panel, kBody, staged.scene, kImage);
  const auto beside_the_middle = [&](std::size_t cell) {
    const QPointF at = cells[cell].rect.center() - QPointF(cells[cell].rect.width() / 3, 0);
    return image.pixel(at.toPoint());
  };
  EXPECT_EQ(beside_the_middle(kUsed), staged.scene.theme->owner[2].rgb());
  EXPECT_NE(beside_the_middle(kUnused), staged.scene.theme->owner[2].rgb());
}

TEST(TablePanel, SaysWhatItShows) {
  const std::unique_ptr<Panel> panel = make_table_panel();
  const Staged staged(run_of(10, one_of_each()));
  EXPECT_EQ(words(panel->title()), "Lookup table");
  EXPECT_EQ(words(panel->subtitle(staged.scene)),
            "sequence, page → block · 24 columns; unused ones hold the null page, 10");
  EXPECT_EQ(words(panel->summary(staged.scene)),
            "Rows: 2; pages of the longest: 2; entries that point at a block: 4 of 48.");
}

// A trace without a scenario does not tell how its producer pads a row: the panel does not make up padding.
TEST(TablePanel, WithoutAScenarioHasTheColumnsOfTheLongestSequence) {
  const std::unique_ptr<Panel> panel = make_table_panel();
  const Staged staged(Run::open(from_memory(one_of_each(), {}, trace::Detail::full), "no scenario"));
  EXPECT_EQ(words(panel->subtitle(staged.scene)), "sequence, page → block · a dot where no page is assigned");
  EXPECT_EQ(panel->cells(kBody, staged.scene, 100).size(), 4U);
}

// Up to 8 pages a kernel's table has 24 columns, from 9 pages on it has 32. Unused entries hold the null page's number.
TEST(TablePanel, HasTheColumnsOfTheStepsTable) {
  Staged staged(gallery_run("preemption"));
  const std::unique_ptr<Panel> panel = make_table_panel();
  const QRectF body(20, 30, 900, 260);
  std::set<std::int64_t> widths;
  for (std::int64_t row = 1; row < staged.run->facts().rows; ++row) {
    staged.cursor.seek_row(row);
    std::int64_t longest = 0, columns = 0;
    for (const PanelCell& cell : panel->cells(body, staged.scene, 10'000)) {
      columns = std::max(columns, cell.object.page.value + 1);
      longest = std::max(longest, staged.scene.state().sequences[cell.object.seq.value].pages.size());
      EXPECT_EQ(panel->hit(cell.rect.center(), body, staged.scene), cell.object);
    }
    if (columns == 0) continue;  // no sequence runs
    EXPECT_EQ(columns, longest <= 8 ? 24 : 32) << "step " << row - 1;
    widths.insert(columns);
  }
  EXPECT_EQ(widths, (std::set<std::int64_t>{24, 32}));
}

// Where a number fits, an unused entry shows the null page's, 24, as the kernel reads it.
TEST(TablePanel, UnusedEntriesShowTheNumberOfTheNullPage) {
  Staged staged(gallery_run("preemption"));
  const std::unique_ptr<Panel> panel = make_table_panel();
  const QRectF body(20, 30, 900, 260);
  staged.cursor.seek_row(4);
  const std::vector<PanelCell> cells = panel->cells(body, staged.scene, 10'000);
  const QImage image = painted(*panel, body, staged.scene, {940, 320});
  // Two unused entries look the same, and not like an empty cell: there is ink in the middle.
  const QImage one = image.copy(cells[22].rect.toRect());
  EXPECT_EQ(one, image.copy(cells[23].rect.toRect()));
  int ink = 0;
  for (int y = 0; y < one.height(); ++y) {
    for (int x = 0; x < one.width(); ++x) ink += one.pixel(x, y) != one.pixel(one.width() / 2, 2) ? 1 : 0;
  }
  EXPECT_GT(ink, 25) << "two digits, not a dot";
}

// The legend's square of unused entries is outlined as they are; a dot in it would be another object.
TEST(TablePanel, TheLegendShowsUnusedEntriesAsTheyAreDrawn) {
  Staged staged(gallery_run("preemption"));
  const std::unique_ptr<Panel> panel = make_table_panel();
  staged.cursor.seek_row(4);
  QImage image(900, 40, QImage::Format_RGB32), outlined(11, 11, QImage::Format_RGB32),
      dotted(11, 11, QImage::Format_RGB32);
  for (QImage* of : {&image, &outlined, &dotted}) of->fill(staged.scene.theme->card);
  {
    QPainter painter(&image);
    panel->paint_footer(painter, {0, 0, 900, 40}, staged.scene);
    QPainter free(&outlined), unused(&dotted);
    paint_cell(free, {0, 0, 11, 11}, kFreeLook, 1, *staged.scene.theme);
    paint_cell(unused, {0, 0, 11, 11}, kPaddingLook, 1, *staged.scene.theme);
  }
  ASSERT_NE(outlined, dotted);
  const auto has = [&](const QImage& part) {
    for (int y = 0; y + 11 <= image.height(); ++y) {
      for (int x = 0; x + 11 <= image.width(); ++x) {
        if (image.copy(x, y, 11, 11) == part) return true;
      }
    }
    return false;
  };
  EXPECT_TRUE(has(outlined));
  EXPECT_FALSE(has(dotted));
}

TEST(TablePanel, AContinuousCacheIsOneColumnWithItsReason) {
  const std::unique_ptr<Panel> panel = make_table_panel();
  Staged staged(gallery_run("continuous"));
  staged.cursor.seek_row(3);
  EXPECT_EQ(words(panel->subtitle(staged.scene)), "sequence → its one block: a continuous cache has a single column");
  for (const PanelCell& cell : panel->cells(kBody, staged.scene, 1000)) EXPECT_EQ(cell.object.page, PageIdx{0});
}

TEST(TablePanel, ATraceOfStepsAndAnEmptyStepHaveNoEntries) {
  const std::unique_ptr<Panel> panel = make_table_panel();
  Staged empty(run_of(10, one_of_each()));
  empty.cursor.seek(Position{0});
  const Staged steps(run_of_steps(4));
  for (const Staged* staged : {static_cast<const Staged*>(&empty), &steps}) {
    EXPECT_TRUE(panel->cells(kBody, staged->scene, 10).empty());
    EXPECT_TRUE(panel->hit(kBody.center(), kBody, staged->scene).none());
    EXPECT_TRUE(panel->moved({}, Move::right, kBody, staged->scene).none());
    EXPECT_EQ(panel->zoomed(2, kBody.center(), kBody, staged->scene), Viewport{});
    EXPECT_EQ(spilled(painted(*panel, kBody, staged->scene, kImage), kBody.toRect()), 0);
  }
  EXPECT_EQ(words(panel->summary(steps.scene)), "The content of blocks is not in this trace.");
}

TEST(TablePanel, HitsAndAnchorsAgreeForEveryCell) {
  const Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_table_panel();
  for (const PanelCell& cell : panel->cells(kBody, staged.scene, 100)) {
    EXPECT_EQ(panel->hit(cell.rect.center(), kBody, staged.scene), cell.object);
    const Lit lit = resolve(staged.scene.state(), staged.scene.facts(), cell.object);
    EXPECT_EQ(panel->anchor(lit, kBody, staged.scene), cell.rect);
  }
  // The name of sequence 1 is beside the first cell of the second row.
  const QRectF cell = panel->cells(kBody, staged.scene, 100)[kColumns].rect;
  EXPECT_EQ(panel->hit({kBody.left() + 3, cell.center().y()}, kBody, staged.scene), of_sequence(SeqIdx{1}));
  EXPECT_TRUE(panel->hit({cell.center().x(), kBody.top() + 3}, kBody, staged.scene).none());
  EXPECT_TRUE(panel->hit({kBody.left() - 3, cell.center().y()}, kBody, staged.scene).none());
}

// Rows are the running sequences: after sequence 0 finished, the first row is another sequence. Waiting and preempted
// sequences have no row, because no kernel is launched for them.
TEST(TablePanel, RowsFollowTheSequencesThatRun) {
  Staged staged(gallery_run("preemption"));
  const std::unique_ptr<Panel> panel = make_table_panel();
  int gaps = 0, without_a_row = 0;
  for (std::int64_t row = 0; row < staged.run->facts().rows; ++row) {
    staged.cursor.seek_row(row);
    std::vector<SeqIdx> running;
    for (const SeqIdx seq : staged.scene.state().live) {
      const bool runs = staged.scene.state().sequences[seq.value].phase == Phase::running;
      if (runs) running.push_back(seq);
      without_a_row += runs ? 0 : 1;
      const QRectF card = kBody;
      const std::optional<QRectF> entry = panel->anchor(
          resolve(staged.scene.state(), staged.scene.facts(), of_page(seq, PageIdx{0})), card, staged.scene);
      EXPECT_EQ(entry.has_value(), runs) << seq.value;
    }
    std::set<std::int64_t> named;
    for (const PanelCell& cell : panel->cells(kBody, staged.scene, 10'000)) {
      named.insert(cell.object.seq.value);
      const std::int32_t block = staged.scene.state().sequences[cell.object.seq.value].pages[cell.object.page.value];
      EXPECT_EQ(cell.name.contains(QStringLiteral("not assigned")), block < 0) << words(cell.name);
      const QString expected = block < 0 ? QStringLiteral("not assigned") : QStringLiteral("block %1").arg(block);
      EXPECT_TRUE(cell.name.contains(expected)) << words(cell.name);
    }
    ASSERT_EQ(named.size(), running.size());
    for (const SeqIdx seq : running) EXPECT_TRUE(named.contains(seq.value));
    gaps += !running.empty() && running.front().value > 0 ? 1 : 0;
    EXPECT_EQ(spilled(painted(*panel, kBody, staged.scene, kImage), kBody.toRect()), 0);
  }
  EXPECT_GT(gaps, 0);
  EXPECT_GT(without_a_row, 0);
}

TEST(TablePanel, ArrowsWalkFromEntryToEntryAndStopAtTheEdges) {
  const Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_table_panel();
  const auto moved = [&](const Selection& from, Move move) { return panel->moved(from, move, kBody, staged.scene); };
  const auto page = [](std::int64_t seq, std::int64_t of) { return of_page(SeqIdx{seq}, PageIdx{of}); };
  EXPECT_EQ(moved({}, Move::down), page(0, 0));
  EXPECT_EQ(moved(page(0, 0), Move::right), page(0, 1));
  EXPECT_EQ(moved(page(0, 1), Move::right), page(0, 2));  // into the padding
  EXPECT_EQ(moved(page(0, 23), Move::right), page(0, 23));
  EXPECT_EQ(moved(page(0, 1), Move::down), page(1, 1));
  EXPECT_EQ(moved(page(1, 1), Move::down), page(1, 1));
  EXPECT_EQ(moved(page(1, 1), Move::left), page(1, 0));
  EXPECT_EQ(moved(page(1, 0), Move::up), page(0, 0));
  EXPECT_EQ(moved(page(0, 0), Move::last), page(1, 23));
  EXPECT_EQ(moved(page(1, 1), Move::first), page(0, 0));
  EXPECT_EQ(moved(of_token(SeqIdx{0}, TokIdx{18}), Move::left), page(0, 0));
  EXPECT_EQ(moved(of_block(BlockIdx{3}), Move::down), page(1, 1));  // block 3 is page 1 of sequence 0
  EXPECT_EQ(moved(of_block(BlockIdx{7}), Move::down), page(0, 0));  // two entries: the first of them
  EXPECT_EQ(moved(of_sequence(SeqIdx{1}), Move::down), page(1, 0));
  EXPECT_EQ(moved(of_sequence(SeqIdx{2}), Move::down), page(0, 0));  // it has finished
}

// A block that two sequences share has two entries, and both are highlighted.
TEST(TablePanel, ASharedBlockLightsEveryEntryThatPointsAtIt) {
  Staged staged(run_of(10, one_of_each()));
  const std::unique_ptr<Panel> panel = make_table_panel();
  const std::vector<PanelCell> cells = panel->cells(kBody, staged.scene, 100);
  const QImage plain = painted(*panel, kBody, staged.scene, kImage);
  staged.pin(of_block(BlockIdx{7}));
  const QImage lit = painted(*panel, kBody, staged.scene, kImage);
  std::vector<bool> changed;
  const std::array used{cells[0], cells[1], cells[kColumns], cells[kColumns + 1]};
  for (const PanelCell& cell : used) changed.push_back(lit.copy(cell.rect.toRect()) != plain.copy(cell.rect.toRect()));
  EXPECT_THAT(changed, testing::ElementsAre(true, false, true, false));
  staged.pin({});
  staged.hover(of_sequence(SeqIdx{1}));
  const QImage hovered = painted(*panel, kBody, staged.scene, kImage);
  changed.clear();
  for (const PanelCell& cell : used) {
    changed.push_back(hovered.copy(cell.rect.toRect()) != plain.copy(cell.rect.toRect()));
  }
  EXPECT_THAT(changed, testing::ElementsAre(false, false, true, true));
  EXPECT_NE(hovered.copy(used[2].rect.toRect()), lit.copy(used[2].rect.toRect()));
}

// Every entry has its color also if an entry is one or a few pixels: hundreds of sequences and pages.
TEST(TablePanel, EveryEntryOfALargeTableHasItsBlocksColor) {
  Staged staged(gallery_run("real_traffic_slice"));
  const std::unique_ptr<Panel> panel = make_table_panel();
  std::int64_t most = 0;
  for (std::int64_t row = 0; row < staged.run->facts().rows; row += 50) {
    staged.cursor.seek_row(row);
    if (static_cast<std::int64_t>(staged.scene.state().live.size()) > most) {
      most = static_cast<std::int64_t>(staged.scene.state().live.size());
    }
  }
  ASSERT_GT(most, 3);
  staged.cursor.seek_row(staged.run->facts().rows / 2);
  const QImage image = painted(*panel, kBody, staged.scene, kImage);
  int checked = 0, wrong = 0;
  for (int y = static_cast<int>(kBody.top()); y < kBody.bottom(); ++y) {
    for (int x = static_cast<int>(kBody.left()); x < kBody.right(); ++x) {
      const Selection at = panel->hit({x + 0.5, y + 0.5}, kBody, staged.scene);
      if (at.kind != Selection::Kind::page) continue;
      const std::int32_t block = staged.scene.state().sequences[at.seq.value].pages[at.page.value];
      if (block < 0) continue;
      const BlockState& state = staged.scene.state().blocks[block];
      const Theme& theme = *staged.scene.theme;
      const QColor expected =
          state.ref_count > 1 ? theme.shared : theme.owner[static_cast<std::size_t>(state.owner % 8)];
      ++checked;
      wrong += image.pixel(x, y) != expected.rgb() ? 1 : 0;
    }
  }
  EXPECT_GT(checked, 1000);
  // Tolerance for lines between rows, and for an edge that Qt rounds differently.
  EXPECT_LT(wrong, checked / 4);
}

// Two sequences of 150 and 100 pages; every third page of `other` is in another block.
std::shared_ptr<const Run> long_rows(bool other) {
  std::vector<trace::Event> events{trace::RequestArrived{SeqIdx{0}, 20, 4}, trace::RequestArrived{SeqIdx{1}, 20, 4},
                                   trace::StepBegan{StepIdx{0}, 0}, trace::RequestAdmitted{SeqIdx{0}, 0},
                                   trace::RequestAdmitted{SeqIdx{1}, 0}};
  for (std::int64_t block = 0; block < 250; ++block) {
    const BlockIdx at{other && block % 3 == 0 ? 300 + block : block};
    events.push_back(trace::BlockAllocated{at, SeqIdx{block / 150}, PageIdx{block % 150}});
  }
  events.push_back(trace::StepEnded{StepIdx{0}, 10});
  return run_of(600, std::move(events));
}

// Beside another run, entries that differ keep their color; all others are dimmed, assigned or not.
TEST(TablePanel, BesideAnotherRunEntriesOfAFewPixelsAreDimmedWhereBothAreAlike) {
  Staged staged(long_rows(false));
  const Cursor other = Staged(long_rows(true)).cursor;
  const std::unique_ptr<Panel> panel = make_table_panel();
  ASSERT_TRUE(panel->cells(kBody, staged.scene, 10).empty());  // it is the level of pixels
  const QImage alone = painted(*panel, kBody, staged.scene, kImage);
  staged.scene.compared = &other.state();
  const QImage beside = painted(*panel, kBody, staged.scene, kImage);
  int full = 0, dim = 0, wrong = 0;
  for (int y = static_cast<int>(kBody.top()); y < kBody.bottom(); ++y) {
    for (int x = static_cast<int>(kBody.left()); x < kBody.right(); ++x) {
      const Selection at = panel->hit({x + 0.5, y + 0.5}, kBody, staged.scene);
      if (at.kind != Selection::Kind::page) continue;
      const bool differs = at.page.value % 3 == 0 && at.page.value < (at.seq.value == 0 ? 150 : 100);
      const QColor was(alone.pixel(x, y)), is(beside.pixel(x, y)), card = staged.scene.theme->card;
      const auto quarter = [](int of, int of_card) { return of_card + (of - of_card) / 4.0; };
      const bool as_expected = differs ? is == was
                                       : std::abs(is.red() - quarter(was.red(), card.red())) <= 1 &&
                                             std::abs(is.green() - quarter(was.green(), card.green())) <= 1 &&
                                             std::abs(is.blue() - quarter(was.blue(), card.blue())) <= 1;
      ++(differs ? full : dim);
      wrong += as_expected ? 0 : 1;
    }
  }
  EXPECT_GT(full, 1000);
  EXPECT_GT(dim, 1000);
  EXPECT_LT(wrong, (full + dim) / 100);  // for an edge that Qt rounds differently
}

// The last page of the longest sequence is visible even if an entry is one or two pixels wide.
TEST(TablePanel, TheLastEntryOfTheLongestRowIsPainted) {
  std::vector<trace::Event> events{trace::RequestArrived{SeqIdx{0}, 20, 4}, trace::RequestArrived{SeqIdx{1}, 20, 4},
                                   trace::StepBegan{StepIdx{0}, 0}, trace::RequestAdmitted{SeqIdx{0}, 0},
                                   trace::RequestAdmitted{SeqIdx{1}, 0}};
  for (std::int64_t page = 0; page < 150; ++page) {
    events.push_back(trace::BlockAllocated{BlockIdx{page}, SeqIdx{0}, PageIdx{page}});
  }
  events.push_back(trace::BlockAllocated{BlockIdx{150}, SeqIdx{1}, PageIdx{0}});
  events.push_back(trace::StepEnded{StepIdx{0}, 10});
  const Staged staged(run_of(200, std::move(events)));
  const std::unique_ptr<Panel> panel = make_table_panel();
  const QImage image = painted(*panel, kBody, staged.scene, kImage);
  const auto color_of = [&](std::int64_t seq, std::int64_t page) {
    const Lit lit = resolve(staged.scene.state(), staged.scene.facts(), of_page(SeqIdx{seq}, PageIdx{page}));
    const std::optional<QRectF> cell = panel->anchor(lit, kBody, staged.scene);
    return cell ? image.pixel(static_cast<int>(cell->center().x()), static_cast<int>(cell->center().y())) : 0U;
  };
  ASSERT_TRUE(panel->cells(kBody, staged.scene, 10).empty());  // it is the level of pixels
  EXPECT_EQ(color_of(0, 0), staged.scene.theme->owner[0].rgb());
  EXPECT_EQ(color_of(0, 149), staged.scene.theme->owner[0].rgb());
  EXPECT_EQ(color_of(1, 0), staged.scene.theme->owner[1].rgb());
  EXPECT_EQ(color_of(1, 149), look_fill(*staged.scene.theme, kPaddingLook).rgb());
}

// A selected row of cells a few pixels wide must keep the colors of its blocks: it is framed, and the others are
// dimmed.
TEST(TablePanel, ASelectedRowOfPixelsKeepsItsColors) {
  Staged staged(gallery_run("real_traffic_slice"));
  staged.cursor.seek_row(41);
  const QRectF body(20, 30, 300, 260);
  const std::unique_ptr<Panel> panel = make_table_panel();
  ASSERT_TRUE(panel->cells(body, staged.scene, 10).empty());  // it is the level of pixels
  const auto middle = [&](std::int64_t seq, std::int64_t page) {
    const Lit lit = resolve(staged.scene.state(), staged.scene.facts(), of_page(SeqIdx{seq}, PageIdx{page}));
    return panel->anchor(lit, body, staged.scene)->center().toPoint();
  };
  const QImage before = painted(*panel, body, staged.scene, kImage);
  staged.pin(of_sequence(SeqIdx{11}));
  const QImage after = painted(*panel, body, staged.scene, kImage);
  for (const std::int64_t page : {3, 7, 12}) {
    EXPECT_EQ(after.pixel(middle(11, page)), before.pixel(middle(11, page))) << page;
  }
  EXPECT_NE(after.pixel(middle(9, 3)), before.pixel(middle(9, 3))) << "the others are dimmed";
  const QPoint inside = middle(11, 7);
  int framed = 0;
  for (int y = inside.y() - 12; y <= inside.y() + 12; ++y) {
    framed += after.pixel(inside.x(), y) == staged.scene.theme->accent.rgb() ? 1 : 0;
  }
  EXPECT_EQ(framed, 4) << "two lines of 2 px";
}

// Regression: the number of a half scrolled column, written in the column's middle, was outside the panel.
TEST(TablePanel, NumbersOfColumnsScrolledHalfAwayStayInThePanel) {
  Staged staged(gallery_run("prefix_sharing"));
  staged.cursor.seek_row(2);
  const std::unique_ptr<Panel> panel = make_table_panel();
  const QRect body(13, 3, 198, 60);
  for (const double offset : {90.0, 97.0, 110.0, 120.0, 127.0}) {
    staged.look(PanelId::table, {9, {offset, 0}});
    EXPECT_EQ(spilled(painted(*panel, body, staged.scene, {360, 260}), body), 0) << offset;
  }
}

RC_GTEST_PROP(TablePanel, NothingIsPaintedOutsideTheBody, ()) {
  static const std::shared_ptr<const Run> kRun = gallery_run("prefix_sharing");
  Staged staged(kRun);
  staged.cursor.seek_row(*rc::gen::inRange<std::int64_t>(0, kRun->facts().rows));
  const QRect body(*rc::gen::inRange(3, 40), *rc::gen::inRange(3, 40), *rc::gen::inRange(60, 300),
                   *rc::gen::inRange(25, 200));
  staged.look(PanelId::table,
              {*rc::gen::inRange(0, 60) / 10.0, QPointF(*rc::gen::inRange(0, 300), *rc::gen::inRange(0, 300))});
  staged.scene.font_scale = *rc::gen::element(1.0, 1.5);
  staged.pin(of_sequence(SeqIdx{*rc::gen::inRange(0, 8)}));
  staged.hover(of_block(BlockIdx{*rc::gen::inRange(0, 20)}));
  const std::unique_ptr<Panel> panel = make_table_panel();
  const int scale = *rc::gen::element(1, 2);
  const QImage image = painted(*panel, body, staged.scene, {360, 260}, scale);
  RC_ASSERT(spilled(image, QRect(body.topLeft() * scale, body.size() * scale)) == 0);
}

TEST(TablePanel, AScrolledAwayEntryIsRevealedAndThenAnchors) {
  Staged staged(gallery_run("real_traffic_slice"));
  const std::unique_ptr<Panel> panel = make_table_panel();
  staged.cursor.seek_row(staged.run->facts().rows / 2);
  staged.look(PanelId::table, panel->zoomed(30, kBody.topLeft() + QPointF(80, 30), kBody, staged.scene));
  const std::vector<SeqIdx>& live = staged.scene.state().live;
  const auto runs = [&](SeqIdx seq) { return staged.scene.state().sequences[seq.value].phase == Phase::running; };
  const SeqIdx running = *std::find_if(live.rbegin(), live.rend(), runs);
  const std::int64_t columns = kernel_table(staged.scene.state(), staged.run->facts()).columns;
  const Selection last = of_page(running, PageIdx{columns - 1});
  const Lit lit = resolve(staged.scene.state(), staged.scene.facts(), last);
  ASSERT_EQ(panel->anchor(lit, kBody, staged.scene), std::nullopt);
  staged.look(PanelId::table, panel->revealing(last, kBody, staged.scene));
  ASSERT_TRUE(panel->anchor(lit, kBody, staged.scene).has_value());
  EXPECT_EQ(panel->hit(panel->anchor(lit, kBody, staged.scene)->center(), kBody, staged.scene), last);
  staged.look(PanelId::table, panel->scrolled({-1e6, -1e6}, kBody, staged.scene));
  EXPECT_EQ(staged.scene.viewport_of(PanelId::table).offset, QPointF(0, 0));
}

}  // namespace
}  // namespace kvscope::viz::table_panel_test
