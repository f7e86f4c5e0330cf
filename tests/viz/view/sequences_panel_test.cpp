#include <gmock/gmock.h>

#include <cmath>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/viz/view/pool_scene.h"
#include "tests/viz/view/runs.h"
#include "viz/geometry/sequences_layout.h"
#include "viz/view/cell_paint.h"
#include "viz/view/panel.h"
#include "viz/view/sequences_cells.h"
#include "viz/view/sequences_content.h"
#include "viz/view/sharing.h"

namespace kvscope::viz::sequences_panel_test {
namespace {

using testing::IsEmpty;
using namespace trace;

const QRectF kBody(36, 20, 1400, 220);
constexpr QSize kSize(1472, 260);

class SequencesPanelTest : public testing::Test {
 protected:
  std::unique_ptr<Panel> panel_ = make_sequences_panel();

  [[nodiscard]] Selection moved(const Scene& scene, const Selection& from, Move move) const {
    return panel_->moved(from, move, kBody, scene);
  }
};

Lit lit_of(const Scene& scene, const Selection& selection) {
  return resolve(scene.state(), scene.facts(), selection);
}

// At the end of step 0 of one_of_each(), sequences 0 and 1 share page 0; sequence 0 has 21 tokens, sequence 1 has 24.
struct StepZero : Staged {
  StepZero() : Staged(run_of(10, one_of_each())) { cursor.seek_row(1); }
};

// No request runs yet; `waiting` requests of 20 tokens have arrived.
std::shared_ptr<const Run> queue_of(int waiting) {
  std::vector<Event> events;
  for (int k = 0; k < waiting; ++k) events.push_back(RequestArrived{SeqIdx{k}, 20, 4});
  events.push_back(StepBegan{StepIdx{0}, 0});
  events.push_back(StepEnded{StepIdx{0}, 10});
  return run_of(10, events);
}

// --- positions of objects --------------------------------------------------------------------------------------------

// For every cell for screen readers: a click in its middle hits the same object, and a link to the object ends there.
TEST_F(SequencesPanelTest, CellsAreHitInTheirMiddleAndAnchoredWhereTheyStand) {
  for (const char* name : {"first_light", "preemption", "continuous", "parallel_samples", "sliding_window"}) {
    Staged staged(gallery_run(name));
    for (std::int64_t row = 1; row < staged.run->facts().rows; row += staged.run->facts().rows / 7 + 1) {
      staged.cursor.seek_row(row);
      for (const PanelCell& cell : panel_->cells(kBody, staged.scene, 100'000)) {
        ASSERT_TRUE(kBody.contains(cell.rect)) << name << row << cell.name.toStdString();
        ASSERT_EQ(panel_->hit(cell.rect.center(), kBody, staged.scene), cell.object)
            << name << row << cell.name.toStdString();
        if (cell.object.kind == Selection::Kind::sequence) continue;
        const std::optional<QRectF> anchor = panel_->anchor(lit_of(staged.scene, cell.object), kBody, staged.scene);
        ASSERT_TRUE(anchor.has_value()) << name << row << cell.name.toStdString();
        ASSERT_TRUE(anchor->adjusted(-1, -1, 1, 1).contains(cell.rect.center()));
      }
    }
  }
}

TEST_F(SequencesPanelTest, CellsAreNamed) {
  const StepZero staged;
  const std::vector<PanelCell> cells = panel_->cells(kBody, staged.scene, 1000);
  ASSERT_EQ(cells.size(), 3u + 21 + 24 + 16);
  EXPECT_EQ(cells[0].name.toStdString(), "sequence 0, running, 21 of 24 tokens");
  EXPECT_EQ(cells[0].object, of_sequence(SeqIdx{0}));
  EXPECT_EQ(cells[1].name.toStdString(), "sequence 0 token 0, page 0, slot 0 of block 7");
  EXPECT_EQ(cells[1 + 20].name.toStdString(), "sequence 0 token 20, page 1, slot 4 of block 3");
  EXPECT_EQ(cells[1 + 20].object, of_token(SeqIdx{0}, TokIdx{20}));
}

// A million cells would block a screen reader; only the first ones are returned.
TEST_F(SequencesPanelTest, CellsAreNoMoreThanAskedFor) {
  const StepZero staged;
  EXPECT_EQ(panel_->cells(kBody, staged.scene, 5).size(), 5u);
  EXPECT_THAT(panel_->cells(kBody, staged.scene, 0), IsEmpty());
}

TEST_F(SequencesPanelTest, AnEmptySlotIsItsPageAndBesideThePagesIsTheSequence) {
  const StepZero staged;
  const auto page = panel_->anchor(lit_of(staged.scene, of_page(SeqIdx{0}, PageIdx{1})), kBody, staged.scene);
  ASSERT_TRUE(page.has_value());
  EXPECT_EQ(panel_->hit({page->right() - 6, page->center().y()}, kBody, staged.scene), of_page(SeqIdx{0}, PageIdx{1}));
  EXPECT_EQ(panel_->hit({kBody.right() - 5, page->center().y()}, kBody, staged.scene), of_sequence(SeqIdx{0}));
  EXPECT_EQ(panel_->hit({kBody.left() - 5, page->center().y()}, kBody, staged.scene), Selection{});
  EXPECT_EQ(panel_->hit({page->center().x(), kBody.bottom() - 1}, kBody, staged.scene), Selection{});
}

// A shared block has several pages here: a link to it ends at the first one, and all of them are highlighted.
TEST_F(SequencesPanelTest, ASharedBlockIsAnchoredAtItsFirstPage) {
  const StepZero staged;
  const auto anchor = panel_->anchor(lit_of(staged.scene, of_block(BlockIdx{7})), kBody, staged.scene);
  const auto first = panel_->anchor(lit_of(staged.scene, of_page(SeqIdx{0}, PageIdx{0})), kBody, staged.scene);
  EXPECT_EQ(anchor, first);
  EXPECT_EQ(panel_->anchor(lit_of(staged.scene, of_block(BlockIdx{9})), kBody, staged.scene), std::nullopt)
      << "a free block";
  EXPECT_EQ(panel_->anchor(Lit{}, kBody, staged.scene), std::nullopt);
}

// --- keys ------------------------------------------------------------------------------------------------------------

TEST_F(SequencesPanelTest, RightWalksThroughAllTokensAndLeftWalksBack) {
  const StepZero staged;
  Selection at = moved(staged.scene, {}, Move::right);
  EXPECT_EQ(at, of_token(SeqIdx{0}, TokIdx{0})) << "from nothing: the first one";
  for (std::int64_t token = 1; token <= 20; ++token) {
    at = moved(staged.scene, at, Move::right);
    ASSERT_EQ(at, of_token(SeqIdx{0}, TokIdx{token}));
  }
  EXPECT_EQ(moved(staged.scene, at, Move::right), at) << "the last one";
  at = moved(staged.scene, at, Move::left);
  EXPECT_EQ(at, of_token(SeqIdx{0}, TokIdx{19}));
  EXPECT_EQ(moved(staged.scene, at, Move::first), of_token(SeqIdx{0}, TokIdx{0}));
  EXPECT_EQ(moved(staged.scene, at, Move::last), of_token(SeqIdx{0}, TokIdx{20}));
}

// Down from token 22 of a row of 24 tokens to a row of 16 tokens moves to its last token.
TEST_F(SequencesPanelTest, UpAndDownGoToTheSameTokenAsFarAsThereIsOne) {
  const StepZero staged;
  Selection at = moved(staged.scene, of_token(SeqIdx{1}, TokIdx{22}), Move::down);
  EXPECT_EQ(at, of_token(SeqIdx{2}, TokIdx{15}));
  EXPECT_EQ(moved(staged.scene, at, Move::down), at) << "the last row";
  at = moved(staged.scene, of_token(SeqIdx{1}, TokIdx{3}), Move::up);
  EXPECT_EQ(at, of_token(SeqIdx{0}, TokIdx{3}));
  EXPECT_EQ(moved(staged.scene, at, Move::up), at);
}

TEST_F(SequencesPanelTest, KeysStartFromWhateverIsSelected) {
  const StepZero staged;
  EXPECT_EQ(moved(staged.scene, of_sequence(SeqIdx{1}), Move::right), of_token(SeqIdx{1}, TokIdx{0}));
  EXPECT_EQ(moved(staged.scene, of_page(SeqIdx{1}, PageIdx{1}), Move::right), of_token(SeqIdx{1}, TokIdx{17}));
  EXPECT_EQ(moved(staged.scene, of_block(BlockIdx{3}), Move::left), of_token(SeqIdx{0}, TokIdx{15}));
  EXPECT_EQ(moved(staged.scene, of_block(BlockIdx{9}), Move::left), of_token(SeqIdx{0}, TokIdx{0})) << "a free block";
  EXPECT_EQ(moved(staged.scene, of_step(StepIdx{0}), Move::down), of_token(SeqIdx{0}, TokIdx{0}));
}

TEST_F(SequencesPanelTest, ARowWithoutTokensIsReachedAsASequence) {
  Staged staged(queue_of(2));
  EXPECT_EQ(moved(staged.scene, {}, Move::down), of_sequence(SeqIdx{0}));
  EXPECT_EQ(moved(staged.scene, of_sequence(SeqIdx{0}), Move::down), of_sequence(SeqIdx{1}));
  Staged nobody(run_of(10, {StepBegan{StepIdx{0}, 0}, StepEnded{StepIdx{0}, 10}}));
  EXPECT_EQ(moved(nobody.scene, {}, Move::down), Selection{});
}

// --- zoom ------------------------------------------------------------------------------------------------------------

TEST_F(SequencesPanelTest, ATokenOutOfSightIsRevealedByMovingNoMoreThanNeeded) {
  Staged staged(gallery_run("first_light"));
  staged.cursor.seek_row(7);
  Viewport viewport = panel_->zoomed(4, {200, 60}, kBody, staged.scene);
  staged.look(PanelId::sequences, viewport);
  const Selection far = of_token(SeqIdx{0}, TokIdx{90});
  EXPECT_EQ(panel_->anchor(lit_of(staged.scene, far), kBody, staged.scene), std::nullopt);
  viewport = panel_->revealing(far, kBody, staged.scene);
  staged.look(PanelId::sequences, viewport);
  EXPECT_TRUE(panel_->anchor(lit_of(staged.scene, far), kBody, staged.scene).has_value());
  EXPECT_EQ(panel_->revealing(far, kBody, staged.scene), viewport) << "in sight: nothing moves";
  const Viewport back = panel_->scrolled({-1e6, -1e6}, kBody, staged.scene);
  EXPECT_EQ(back.offset, QPointF(0, 0));
}

TEST_F(SequencesPanelTest, WhatFitsIsNotScrolled) {
  const StepZero staged;
  EXPECT_EQ(panel_->scrolled({50, 50}, kBody, staged.scene), Viewport{});
  EXPECT_EQ(panel_->revealing(of_token(SeqIdx{1}, TokIdx{3}), kBody, staged.scene), Viewport{});
  EXPECT_EQ(panel_->zoomed(0.5, kBody.center(), kBody, staged.scene), Viewport{});
}

// --- paint -----------------------------------------------------------------------------------------------------------

// Boxes that begin left of the strip, names at its lower edge, outlines: nothing is painted outside the body, except
// for the 3 px that the board reserves for outlines.
TEST_F(SequencesPanelTest, PaintsNothingOutsideItsBody) {
  for (const char* name : {"first_light", "preemption", "continuous", "page_size_fragmentation"}) {
    Staged staged(gallery_run(name));
    staged.cursor.seek_row(staged.run->facts().rows / 2);
    staged.pin(of_token(staged.scene.state().live.front(), TokIdx{2}));
    for (const Viewport& viewport : {Viewport{}, Viewport{1.3, {333, 21}}, Viewport{3, {5000, 300}}}) {
      staged.look(PanelId::sequences, viewport);
      for (const QRect& body : {QRect(36, 20, 1400, 220), QRect(50, 40, 300, 60), QRect(10, 10, 700, 25)}) {
        const QImage image = painted(*panel_, body, staged.scene, {1472, 280});
        EXPECT_EQ(spilled(image, body.adjusted(-3, -3, 3, 3)), 0) << name << viewport.zoom << body.height();
      }
    }
  }
}

TEST_F(SequencesPanelTest, PaintsTheSamePictureEveryTime) {
  Staged staged(gallery_run("first_light"));
  staged.cursor.seek_row(7);
  for (const double scale : {1.0, 2.0}) {
    const QImage first = painted(*panel_, kBody, staged.scene, kSize, scale);
    EXPECT_EQ(first, painted(*panel_, kBody, staged.scene, kSize, scale));
    EXPECT_EQ(first, painted(*make_sequences_panel(), kBody, staged.scene, kSize, scale));
  }
}

// The share of a rectangle's pixels that have about this color.
double share_of(const QImage& image, const QRectF& rect, const QColor& color) {
  int about = 0, all = 0;
  const QRect area = rect.toAlignedRect();
  for (int y = area.top(); y <= area.bottom(); ++y) {
    for (int x = area.left(); x <= area.right(); ++x, ++all) {
      const QColor pixel = image.pixelColor(x, y);
      about += std::abs(pixel.red() - color.red()) + std::abs(pixel.green() - color.green()) +
                           std::abs(pixel.blue() - color.blue()) <
                       24
                   ? 1
                   : 0;
    }
  }
  return static_cast<double>(about) / all;
}

QRectF token_rect(const Panel& panel, const Scene& scene, std::int64_t seq, std::int64_t token) {
  return *panel.anchor(lit_of(scene, of_token(SeqIdx{seq}, TokIdx{token})), kBody, scene);
}

TEST_F(SequencesPanelTest, OwnTokensHaveTheirOwnersColorAndSharedOnesTheSharedOne) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    StepZero staged;
    staged.scene.theme = &theme(kind);
    const QImage image = painted(*panel_, kBody, staged.scene, kSize);
    EXPECT_GT(share_of(image, token_rect(*panel_, staged.scene, 0, 18), theme(kind).owner[0]), 0.4);
    EXPECT_GT(share_of(image, token_rect(*panel_, staged.scene, 1, 18), theme(kind).owner[1]), 0.4);
    EXPECT_GT(share_of(image, token_rect(*panel_, staged.scene, 0, 3), theme(kind).shared), 0.2) << "hatched";
    EXPECT_LT(share_of(image, token_rect(*panel_, staged.scene, 1, 3), theme(kind).owner[1]), 0.02);
  }
}

// Page 1 of sequence 0 holds 5 of 16 tokens: the sixth slot is visible and empty.
TEST_F(SequencesPanelTest, SlotsWithoutATokenAreQuiet) {
  const StepZero staged;
  const QImage image = painted(*panel_, kBody, staged.scene, kSize);
  const QRectF last = token_rect(*panel_, staged.scene, 0, 20);
  const double pitch = last.left() - token_rect(*panel_, staged.scene, 0, 19).left();
  EXPECT_GT(share_of(image, last, staged.scene.theme->owner[0]), 0.4);
  for (int slot = 1; slot <= 11; ++slot) {
    const QRectF empty = last.translated(slot * pitch, 0);
    EXPECT_GT(share_of(image, empty, staged.scene.theme->cell_free), 0.6) << slot;
    EXPECT_EQ(share_of(image, empty, staged.scene.theme->owner[0]), 0) << slot;
  }
}

// Step 6 of the scenario: tokens 0 to 114 are stored but never read again. At every level of detail they are dimmed,
// and their pages keep their outlines, because they keep their blocks.
TEST_F(SequencesPanelTest, TokensOutsideTheWindowAreDimmed) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    for (const double zoom : {0.0, 1.0}) {
      Staged staged(gallery_run("sliding_window"), kind);
      staged.cursor.seek_row(7);
      staged.look(PanelId::sequences, {zoom, {115 * kNaturalCell - 400, 0}});
      const Look look = owner_look(0);
      const QColor fill = look_fill(theme(kind), look), empty = look_empty(theme(kind), look);
      const QImage image = painted(*panel_, kBody, staged.scene, kSize);
      for (const std::int64_t token : {111, 114}) {
        EXPECT_GT(share_of(image, token_rect(*panel_, staged.scene, 0, token), empty), 0.4) << token << " at " << zoom;
        EXPECT_LT(share_of(image, token_rect(*panel_, staged.scene, 0, token), fill), 0.05) << token << " at " << zoom;
      }
      for (const std::int64_t token : {115, 118}) {
        EXPECT_GT(share_of(image, token_rect(*panel_, staged.scene, 0, token), fill), 0.4) << token << " at " << zoom;
      }
      staged.cursor.seek_row(2);
      EXPECT_GT(share_of(painted(*panel_, kBody, staged.scene, kSize), token_rect(*panel_, staged.scene, 0, 90), fill),
                zoom == 0 ? 0.4 : 0.0);
    }
  }
  Staged staged(gallery_run("sliding_window"));
  staged.cursor.seek_row(7);
  std::vector<std::string> names;
  for (const PanelCell& cell : panel_->cells(kBody, staged.scene, 1000)) names.push_back(cell.name.toStdString());
  EXPECT_THAT(names, testing::Contains("sequence 0 token 114, page 9, slot 6 of block 9, no longer read"));
  EXPECT_THAT(names, testing::Contains("sequence 0 token 115, page 9, slot 7 of block 9"));
}

// Regression: with rows of 3 px, "seq 0" was moved into the panel and overlapped "seq 6".
TEST_F(SequencesPanelTest, NamesOfLowRowsStandApart) {
  for (const int sequences : {30, 60, 64, 100}) {
    std::vector<Event> events;
    for (int k = 0; k < sequences; ++k) events.push_back(RequestArrived{SeqIdx{k}, 16, 1});
    events.push_back(StepBegan{StepIdx{0}, 0});
    for (int k = 0; k < sequences; ++k) {
      events.push_back(RequestAdmitted{SeqIdx{k}, 0});
      events.push_back(BlockAllocated{BlockIdx{k}, SeqIdx{k}, PageIdx{0}});
      events.push_back(TokensWritten{SeqIdx{k}, TokIdx{0}, 16, BlockIdx{k}, 0, false});
    }
    events.push_back(StepEnded{StepIdx{0}, 10});
    const Staged staged(run_of(200, events));
    const QImage image = painted(*panel_, kBody, staged.scene, kSize);
    // Runs of pixel lines with ink in the gutter: a name is about 10 px high including the tail of its q; two names
    // that touch would be 20 px.
    int longest = 0, current = 0, names = 0, first = 1000;
    for (int y = static_cast<int>(kBody.top()) - 2; y < kBody.bottom(); ++y) {
      bool ink = false;
      for (int x = static_cast<int>(kBody.left()); x < kBody.left() + 60; ++x)
        ink = ink || image.pixel(x, y) != kUntouched;
      current = ink ? current + 1 : 0;
      names += current == 1 ? 1 : 0;
      if (ink) first = std::min(first, y);
      longest = std::max(longest, current);
    }
    EXPECT_GT(names, 4) << sequences;
    EXPECT_LE(first, static_cast<int>(kBody.top()) + 5) << "the first row has its name";
    EXPECT_LE(longest, 15) << sequences;
  }
}

// The legend omits kinds that cannot occur: a run without a prefix cache and without samples has no shared blocks.
TEST_F(SequencesPanelTest, TheLegendListsOnlyPossibleKinds) {
  const auto legend_width = [&](const char* name) {
    Staged staged(gallery_run(name));
    QImage image(1000, 30, QImage::Format_RGB32);
    image.fill(Qt::black);
    QPainter painter(&image);
    panel_->paint_footer(painter, {0, 0, 1000, 30}, staged.scene);
    int last = 0;
    for (int x = 0; x < 700; ++x) {
      for (int y = 0; y < 30; ++y) last = image.pixel(x, y) != qRgb(0, 0, 0) ? x : last;
    }
    return last;
  };
  EXPECT_LT(legend_width("preemption"), legend_width("first_light") - 120);
  EXPECT_EQ(legend_width("preemption"), legend_width("continuous"));
  EXPECT_GT(legend_width("sliding_window"), legend_width("first_light") + 80);
  const auto facts = [](const char* name) { return gallery_run(name)->facts(); };
  EXPECT_FALSE(can_share(facts("preemption")));
  EXPECT_TRUE(can_share(facts("first_light")));
  EXPECT_FALSE(can_find(facts("continuous")));
  Facts samples = facts("parallel_samples");
  samples.scenario->cache.prefix_sharing = false;
  EXPECT_TRUE(can_share(samples)) << "samples share the prompt without a prefix cache";
  EXPECT_FALSE(can_find(samples));
  samples.scenario.reset();
  EXPECT_TRUE(can_share(samples) && can_find(samples)) << "unknown without a scenario";
}

// In step 0 tokens 16..23 of sequence 1 are computed, and its first 16 are prefix hits: only the former have a bar. In
// the next step the bar is gone.
TEST_F(SequencesPanelTest, TokensComputedInThisStepCarryABarAlongTheirTop) {
  StepZero staged;
  const auto bar = [&](const QImage& image, std::int64_t token) {
    QRectF rect = token_rect(*panel_, staged.scene, 1, token);
    rect.setHeight(2);
    return share_of(image, rect.adjusted(1, 0, -2, -1), staged.scene.theme->accent);
  };
  const QImage now = painted(*panel_, kBody, staged.scene, kSize);
  EXPECT_GT(bar(now, 16), 0.9);
  EXPECT_GT(bar(now, 23), 0.9);
  EXPECT_EQ(bar(now, 15), 0);
  staged.cursor.seek_row(3);
  EXPECT_EQ(bar(painted(*panel_, kBody, staged.scene, kSize), 16), 0);
}

// The same pictures with and without the step of the admission differ above the row only by the bracket over the found
// tokens.
TEST_F(SequencesPanelTest, TokensFoundAtAdmissionAreBracketedInThatStepOnly) {
  StepZero staged;
  const auto above = [&](std::int64_t token, std::int64_t seq = 1) {
    const QRectF cell = token_rect(*panel_, staged.scene, seq, token);
    const QImage image = painted(*panel_, kBody, staged.scene, kSize);
    return share_of(image, {cell.left() - 2, cell.top() - 8, cell.width(), 6}, staged.scene.theme->text_accent);
  };
  EXPECT_GT(above(3), 0.1);
  EXPECT_GT(above(14), 0.1);
  EXPECT_EQ(above(18), 0);
  EXPECT_EQ(above(0, 0), 0) << "sequence 0 found nothing";
  staged.cursor.seek_row(3);
  EXPECT_EQ(above(3), 0);
}

TEST_F(SequencesPanelTest, TheSelectionIsOutlinedAndWhatIsHoveredTooInAnotherColor) {
  StepZero staged;
  const QImage before = painted(*panel_, kBody, staged.scene, kSize);
  staged.pin(of_token(SeqIdx{0}, TokIdx{18}));
  staged.hover(of_page(SeqIdx{1}, PageIdx{0}));
  const QImage after = painted(*panel_, kBody, staged.scene, kSize);
  const QRectF cell = token_rect(*panel_, staged.scene, 0, 18).adjusted(-2, -2, 2, 2);
  EXPECT_GT(share_of(after, cell, staged.scene.theme->accent),
            share_of(before, cell, staged.scene.theme->accent) + 0.1);
  const QRectF page = *panel_->anchor(lit_of(staged.scene, of_page(SeqIdx{1}, PageIdx{0})), kBody, staged.scene);
  const QRect top(static_cast<int>(page.left()) + 4, static_cast<int>(page.top()) - 2, 60, 3);
  EXPECT_NE(before.copy(top), after.copy(top));
  EXPECT_LT(share_of(after, top, staged.scene.theme->accent), 0.05) << "hovered is not pinned";
}

// Sequences of 126,000 and of 20 tokens: both are visible with proportional lengths, painted as bars instead of cells.
TEST_F(SequencesPanelTest, LongSequencesAreBarsInProportion) {
  std::vector<Event> events{RequestArrived{SeqIdx{0}, 126'000, 1}, RequestArrived{SeqIdx{1}, 31'500, 1},
                            StepBegan{StepIdx{0}, 0}};
  std::int64_t block = 0;
  for (const auto& [seq, tokens] : {std::pair{0, 126'000}, std::pair{1, 31'500}}) {
    events.push_back(RequestAdmitted{SeqIdx{seq}, 0});
    for (std::int64_t first = 0; first < tokens; first += 16, ++block) {
      const std::int64_t count = std::min<std::int64_t>(16, tokens - first);
      events.push_back(BlockAllocated{BlockIdx{block}, SeqIdx{seq}, PageIdx{first / 16}});
      events.push_back(TokensWritten{SeqIdx{seq}, TokIdx{first}, count, BlockIdx{block}, 0, false});
    }
  }
  events.push_back(StepEnded{StepIdx{0}, 10});
  const Staged staged(run_of(10'000, events));
  const QRectF whole = *panel_->anchor(lit_of(staged.scene, of_sequence(SeqIdx{0})), kBody, staged.scene);
  const QRectF quarter = *panel_->anchor(lit_of(staged.scene, of_sequence(SeqIdx{1})), kBody, staged.scene);
  EXPECT_GT(whole.width(), 0.8 * kBody.width());
  EXPECT_NEAR(quarter.width() / whole.width(), 0.25, 0.005);
  EXPECT_EQ(panel_->cells(kBody, staged.scene, 100'000).size(), 2u);
  const QImage image = painted(*panel_, kBody, staged.scene, kSize);
  EXPECT_GT(share_of(image, quarter.adjusted(2, 6, -4, -6), staged.scene.theme->owner[1]), 0.9);
}

// An unused entry of the lookup table is selected: the row has no page there, so nothing is marked in it.
TEST_F(SequencesPanelTest, PaddingOfTheTableHasNoPlaceInARow) {
  StepZero staged;
  const auto anchor = [&](std::int64_t page) {
    return panel_->anchor(lit_of(staged.scene, of_page(SeqIdx{0}, PageIdx{page})), kBody, staged.scene);
  };
  EXPECT_TRUE(anchor(1).has_value());
  EXPECT_FALSE(anchor(2).has_value());
  EXPECT_FALSE(anchor(23).has_value());
}

// A run of `many` sequences: an even one has 32 tokens, of them 16 in the block that all even ones share; an odd one 16.
std::shared_ptr<const Run> many_sequences(int many) {
  std::vector<Event> events;
  for (int k = 0; k < many; ++k) events.push_back(RequestArrived{SeqIdx{k}, 16, 1});
  events.push_back(StepBegan{StepIdx{0}, 0});
  const auto take = [&](int seq, int page, int block) {
    events.push_back(BlockAllocated{BlockIdx{block}, SeqIdx{seq}, PageIdx{page}});
    events.push_back(TokensWritten{SeqIdx{seq}, TokIdx{16 * page}, 16, BlockIdx{block}, 0, false});
  };
  for (int k = 0; k < many; ++k) {
    events.push_back(RequestAdmitted{SeqIdx{k}, 0});
    if (k == 0 || k % 2 == 1) {
      take(k, 0, k);
    } else {
      events.push_back(BlockShared{BlockIdx{0}, SeqIdx{k}, PageIdx{0}, k / 2 + 1});
    }
    if (k % 2 == 0) take(k, 1, many + k);
  }
  events.push_back(StepEnded{StepIdx{0}, 10});
  return run_of(2 * many, events);
}

// The color of a band is the share of its rows that hold a token there. Of the 31 rows of the first band all have page
// 0, 16 of them in a shared block, and 16 have page 1, in other blocks.
TEST_F(SequencesPanelTest, ABandShowsHowManyOfItsRowsHoldAToken) {
  const Staged staged(many_sequences(1000));
  const QImage image = painted(*panel_, kBody, staged.scene, kSize);
  const Theme& theme = *staged.scene.theme;
  const QRectF first = *panel_->anchor(lit_of(staged.scene, of_page(SeqIdx{0}, PageIdx{0})), kBody, staged.scene);
  const QRectF second = *panel_->anchor(lit_of(staged.scene, of_page(SeqIdx{0}, PageIdx{1})), kBody, staged.scene);
  const int y = static_cast<int>(kBody.top()) + 12;
  EXPECT_EQ(image.pixelColor(static_cast<int>(first.center().x()), y), density_color(theme, 1, 16.0 / 31));
  EXPECT_EQ(image.pixelColor(static_cast<int>(second.center().x()), y), density_color(theme, 16.0 / 31, 0));
  EXPECT_NE(density_color(theme, 1, 0.5), density_color(theme, 1, 0));
  EXPECT_EQ(density_color(theme, 0, 0), theme.card);
  EXPECT_NE(density_color(theme, 0.001, 0), theme.card);
}

// A pixel of a band belongs to dozens of sequences: the tooltip counts them, and names no single one.
TEST_F(SequencesPanelTest, ABandHasATipForAllItsRowsAndHitsNone) {
  const Staged staged(many_sequences(2000));
  const QRectF second = *panel_->anchor(lit_of(staged.scene, of_page(SeqIdx{0}, PageIdx{1})), kBody, staged.scene);
  const QPointF at(second.center().x(), kBody.top() + 2);
  EXPECT_TRUE(panel_->hit(at, kBody, staged.scene).none());
  const std::optional<PanelTip> tip = panel_->tip(at, kBody, staged.scene);
  ASSERT_TRUE(tip.has_value());
  // 2000 rows, rounded up to 2048, on 202 px: bands of 61 rows, 31 of them even.
  EXPECT_EQ(tip->text.toStdString(), "sequences 0 to 60: 61 running; token 24 is stored for 31 of them");
  EXPECT_TRUE(tip->rect.contains(at));
  EXPECT_FALSE(panel_->tip({kBody.left() - 5, at.y()}, kBody, staged.scene).has_value());
  StepZero few;
  EXPECT_FALSE(panel_->tip(kBody.center(), kBody, few.scene).has_value());
}

// A thousand running sequences are bands: every row of the panel has color, down to the last.
TEST_F(SequencesPanelTest, ThousandsOfSequencesAreBands) {
  std::vector<Event> events;
  constexpr int kMany = 2000;
  for (int k = 0; k < kMany; ++k) events.push_back(RequestArrived{SeqIdx{k}, 16, 1});
  events.push_back(StepBegan{StepIdx{0}, 0});
  for (int k = 0; k < kMany; ++k) {
    events.push_back(RequestAdmitted{SeqIdx{k}, 0});
    events.push_back(BlockAllocated{BlockIdx{k}, SeqIdx{k}, PageIdx{0}});
    events.push_back(TokensWritten{SeqIdx{k}, TokIdx{0}, 16, BlockIdx{k}, 0, false});
  }
  events.push_back(StepEnded{StepIdx{0}, 10});
  const Staged staged(run_of(kMany, events));
  EXPECT_THAT(panel_->cells(kBody, staged.scene, 100'000), IsEmpty());
  const QImage image = painted(*panel_, kBody, staged.scene, kSize);
  const Lit last = lit_of(staged.scene, of_token(SeqIdx{kMany - 1}, TokIdx{0}));
  const QRectF lowest = *panel_->anchor(last, kBody, staged.scene);
  for (double y = kBody.top(); y < lowest.center().y(); ++y) {
    EXPECT_NE(image.pixelColor(static_cast<int>(lowest.left()) + 8, static_cast<int>(y)), staged.scene.theme->card)
        << y;
  }
}

// --- words -----------------------------------------------------------------------------------------------------------

TEST_F(SequencesPanelTest, SummaryDescribesTheRows) {
  StepZero staged;
  EXPECT_EQ(panel_->summary(staged.scene).toStdString(), "3 sequences: 3 running; 45 tokens computed in step 0");
  staged.cursor.seek(Position{0});
  EXPECT_EQ(panel_->summary(staged.scene).toStdString(), "The run has not begun: no request has arrived.");
  staged.cursor.seek(Position{1});
  EXPECT_EQ(panel_->summary(staged.scene).toStdString(), "1 sequence: 0 running, 1 waiting");
  Staged ended(gallery_run("preemption"));
  EXPECT_EQ(panel_->summary(ended.scene).toStdString(), "The run is over: no request is left.");
  const Staged gap(run_of(10, {StepBegan{StepIdx{12}, 0}, StepEnded{StepIdx{12}, 10}, StepBegan{StepIdx{13}, 20},
                               StepEnded{StepIdx{13}, 30}}));
  Staged between(gap.run);
  between.cursor.seek_row(1);
  EXPECT_EQ(panel_->summary(between.scene).toStdString(), "No request is live at step 12.");
}

TEST_F(SequencesPanelTest, ShowsThatATraceOfStepsHasNoTokens) {
  const Staged staged(run_of_steps(5));
  EXPECT_EQ(panel_->subtitle(staged.scene).toStdString(), "live requests; their tokens are not in this trace");
  EXPECT_FALSE(painted(*panel_, kBody, staged.scene, kSize).isNull());
}

TEST_F(SequencesPanelTest, NamesThoseThatWaitAndHowOftenTheyWerePreempted) {
  Staged staged(gallery_run("preemption"));
  std::set<std::string> words;
  for (std::int64_t row = 1; row < staged.run->facts().rows; ++row) {
    staged.cursor.seek_row(row);
    for (const SeqIdx seq : staged.scene.state().live) {
      const SequenceRow of = sequence_row(staged.scene, seq);
      const std::string said = phase_words(staged.scene, of).toStdString();
      words.insert(said);
      EXPECT_EQ(said.empty(), of.phase == Phase::running);
    }
  }
  const Staged queue(queue_of(2));
  EXPECT_EQ(phase_words(queue.scene, sequence_row(queue.scene, SeqIdx{1})).toStdString(), "waiting");
  EXPECT_THAT(words, testing::IsSupersetOf({"", "preempted", "preempted 2×"}));
}

}  // namespace
}  // namespace kvscope::viz::sequences_panel_test
