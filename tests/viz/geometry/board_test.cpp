#include "viz/geometry/board.h"

#include <gmock/gmock.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

namespace kvscope::viz::board_test {
namespace {

using testing::ElementsAre;

std::vector<PanelId> panels_of(View view, QSizeF size, double font_scale) {
  std::vector<PanelId> panels;
  for (const Place& place : board(view, size, font_scale)) panels.push_back(place.panel);
  return panels;
}

// The worked numbers of the header: the overview shows four panels of one state at once.
TEST(Board, OfTheOverviewAt1600x1000) {
  const std::vector<Place> places = board(View::overview, {1600, 1000}, 1);
  ASSERT_EQ(places.size(), 5u);
  EXPECT_EQ(places[0].card, QRectF(20, 0, 1560, 52));
  EXPECT_EQ(places[1].card, QRectF(20, 52, 1560, 279));
  EXPECT_EQ(places[2].card, QRectF(20, 345, 773, 432));
  EXPECT_EQ(places[3].card, QRectF(807, 345, 773, 432));
  EXPECT_EQ(places[4].card, QRectF(20, 791, 1560, 189));
  EXPECT_EQ(places[1].body, QRectF(36, 52 + 36, 1528, 279 - 36 - 30));
}

TEST(Board, EachViewHasItsPanelsInReadingOrder) {
  const QSizeF size(1600, 1000);
  using enum PanelId;
  EXPECT_THAT(panels_of(View::overview, size, 1), ElementsAre(header, sequences, pool, table, timeline));
  EXPECT_THAT(panels_of(View::sequences, size, 1), ElementsAre(header, sequences));
  EXPECT_THAT(panels_of(View::pool, size, 1), ElementsAre(header, pool, table));
  EXPECT_THAT(panels_of(View::timeline, size, 1), ElementsAre(header, timeline));
  EXPECT_THAT(panels_of(View::tile, size, 1),
              ElementsAre(header, tile_sequence, memory, copies, shared, registers, tile_events, chain));
  EXPECT_THAT(panels_of(View::attention, size, 1),
              ElementsAre(header, sequences, pool, attention_flow, attention_errors, attention_output));
}

// A timeline of 12 px under its title would not be readable; its separate view shows it.
TEST(Board, LeavesOutACardThatIsTooLowToShowAnything) {
  using enum PanelId;
  EXPECT_THAT(panels_of(View::overview, {800, 500}, 1), ElementsAre(header, sequences, pool, table, timeline));
  EXPECT_THAT(panels_of(View::overview, {800, 500}, 1.5), ElementsAre(header, pool, table))
      << "large letters need more height";
  EXPECT_THAT(panels_of(View::overview, {800, 400}, 1), ElementsAre(header, sequences, pool, table));
  EXPECT_THAT(panels_of(View::overview, {480, 320}, 2), ElementsAre(header, pool));
}

std::size_t panels_in(View view) {
  switch (view) {
    case View::overview:
      return 5;
    case View::pool:
      return 3;
    case View::tile:
      return 8;
    case View::attention:
      return 6;
    default:
      return 2;
  }
}

// Regression: at 1366x768 and 1.6 times the text size the timeline had no legend, at 2.5 times there was no timeline,
// and the tile view had neither the sequence nor the events. At the whole size every card has title, body and legend.
TEST(Board, AtItsWholeSizeEveryViewHasAllPanelsAndLegends) {
  for (const View view : kViews) {
    for (const QSizeF room : {QSizeF(1600, 1000), QSizeF(1366, 768), QSizeF(920, 640), QSizeF(480, 320)}) {
      for (const double scale : {0.7, 1.0, 1.25, 1.6, 2.0, 2.5}) {
        const QSizeF whole = whole_size(view, room, scale);
        EXPECT_EQ(whole.width(), room.width());
        EXPECT_GE(whole.height(), room.height());
        const std::vector<Place> places = board(view, whole, scale);
        const std::string where =
            std::string(name(view)) + " " + std::to_string(room.width()) + " x" + std::to_string(scale);
        EXPECT_EQ(places.size(), panels_in(view)) << where;
        for (const Place& place : places) {
          if (!has_card(place.panel)) continue;
          EXPECT_FALSE(place.footer.isEmpty()) << where << " panel " << static_cast<int>(place.panel);
          EXPECT_GE(place.body.height(), 55 * scale) << where << " panel " << static_cast<int>(place.panel);
          // Half of a window of 480 px is the narrowest card at font scale 1.
          EXPECT_GE(place.body.width(), std::min(130 * scale, room.width() - 2 * kMargin - 2 * kPadding)) << where;
        }
      }
    }
  }
}

// A usual window without docks needs no scroll bar, and the worked number of the header.
TEST(Board, AtTheUsualTextSizeALaptopShowsEachViewWhole) {
  for (const View view : kViews) EXPECT_EQ(whole_size(view, {1366, 768}, 1), QSizeF(1366, 768)) << name(view);
  EXPECT_EQ(whole_size(View::overview, {1366, 768}, 1.6), QSizeF(1366, 1507));
}

// The sentence keeps its height, and goes before a card becomes too low.
TEST(Board, TheChainIsALineOfItsOwnBelowTheTile) {
  const std::vector<Place> places = board(View::tile, {1600, 1000}, 1);
  EXPECT_EQ(places.back().card, QRectF(20, 928, 1560, 52));
  EXPECT_EQ(places.back().body, places.back().card);
  EXPECT_TRUE(places.back().title.isEmpty());
  using enum PanelId;
  EXPECT_THAT(panels_of(View::tile, {800, 320}, 1), ElementsAre(header, memory, copies, shared, registers));
}

// The footer has the legend. Regression: in a window of 1280 x 800 the timeline had no footer and thus no legend.
TEST(Board, ALowCardHasACloserTitleAndFooterAndAVeryLowOneNoFooter) {
  const std::vector<Place> low = board(View::overview, {1280, 800}, 1), lowest = board(View::overview, {800, 500}, 1);
  EXPECT_LT(low[4].card.height(), kLowCard);
  EXPECT_GE(low[4].card.height(), kFooterCard);
  EXPECT_EQ(low[4].title.height(), kLowTitleHeight);
  EXPECT_EQ(low[4].footer.height(), kLowFooterHeight);
  EXPECT_LT(lowest[4].card.height(), kFooterCard);
  EXPECT_EQ(lowest[4].title.height(), kLowTitleHeight);
  EXPECT_TRUE(lowest[4].footer.isEmpty());
  EXPECT_EQ(lowest[2].title.height(), kTitleHeight);
  EXPECT_EQ(lowest[2].footer.height(), kFooterHeight);
}

// At every size and font scale, cards are on whole pixels, kGap apart, and fill the board to its edges. The oracle
// looks from each card for the nearest one right of it and the nearest one below it.
TEST(Board, CardsFillTheBoardAndKeepTheirDistance) {
  EXPECT_TRUE(rc::check([] {
    const View view = *rc::gen::elementOf(kViews);
    const QSizeF asked(*rc::gen::inRange(1, 4000), *rc::gen::inRange(1, 2500));
    const double scale = *rc::gen::element(0.75, 1.0, 1.1, 1.5, 2.0);
    const QSizeF size = asked.expandedTo(kSmallestBoard);
    const std::vector<Place> places = board(view, asked, scale);
    RC_ASSERT(places.front().panel == PanelId::header);
    for (const Place& a : places) {
      for (const double edge : {a.card.left(), a.card.top(), a.card.right(), a.card.bottom()}) {
        RC_ASSERT(edge == std::round(edge));
      }
      RC_ASSERT(a.card.contains(a.body) && a.body.width() > 0 && a.body.height() > 0);
      if (a.panel == PanelId::header) continue;
      double right = size.width() - kMargin + kGap, bottom = size.height() - kMargin + kGap;  // edges of the next cards
      for (const Place& b : places) {
        if (a.panel == b.panel) continue;
        RC_ASSERT(!a.card.intersects(b.card));
        const bool beside = b.card.top() < a.card.bottom() && a.card.top() < b.card.bottom();
        if (beside && b.card.left() > a.card.left()) right = std::min(right, b.card.left());
        const bool below = b.card.left() < a.card.right() && a.card.left() < b.card.right();
        if (below && b.card.top() > a.card.top()) bottom = std::min(bottom, b.card.top());
      }
      RC_ASSERT(right - a.card.right() == kGap && bottom - a.card.bottom() == kGap);
      RC_ASSERT(a.title.bottom() == a.body.top());
      RC_ASSERT(a.footer.isEmpty() || (a.footer.top() == a.body.bottom() && a.footer.bottom() == a.card.bottom()));
    }
  }));
}

// The values of the option --view: a view without a name could not be selected.
TEST(ViewNames, FindTheirView) {
  for (const View view : kViews) EXPECT_EQ(find_view(name(view)), view);
  EXPECT_EQ(name(View::pool), "pool");
  EXPECT_EQ(find_view("Pool"), std::nullopt);
  EXPECT_EQ(find_view(""), std::nullopt);
}

}  // namespace
}  // namespace kvscope::viz::board_test
