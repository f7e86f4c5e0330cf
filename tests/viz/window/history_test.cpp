// Back and forward: places by jumps, one place for a way of small moves, and the places that a new one drops.
#include "viz/window/history.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <vector>

namespace kvscope::viz::history_test {
namespace {

HistoryPlace at(std::int64_t position, std::int64_t block = -1, View view = View::overview) {
  return {Position{position}, block < 0 ? Selection{} : of_block(BlockIdx{block}), view};
}

TEST(History, LeadsBackAndForwardThroughSelectionsViewsAndJumps) {
  History history;
  EXPECT_FALSE(history.can_go_back());
  history.visit(at(3), false);
  EXPECT_FALSE(history.can_go_back());
  history.visit(at(3, 7), true);
  history.visit(at(3, 7, View::pool), true);
  history.visit(at(90, 7, View::pool), false);
  EXPECT_EQ(history.back(), at(3, 7, View::pool));
  EXPECT_EQ(history.back(), at(3, 7));
  EXPECT_EQ(history.back(), at(3));
  EXPECT_FALSE(history.can_go_back());
  EXPECT_EQ(history.forward(), at(3, 7));
  EXPECT_TRUE(history.can_go_forward());
}

// Fifty steps are one way, not fifty places: back leads to where the way began.
TEST(History, AWayOfSmallMovesIsOnePlace) {
  History history;
  history.visit(at(0, 7), false);
  for (int position = 1; position <= 50; ++position) history.visit(at(position, 7), true);
  history.visit(at(50, 9), true);
  EXPECT_EQ(history.back(), at(50, 7));
  EXPECT_EQ(history.back(), at(0, 7));
  EXPECT_FALSE(history.can_go_back());
}

// Stepping on from a place that back led to must not overwrite that place.
TEST(History, SmallMovesAfterGoingBackBeginANewWay) {
  History history;
  for (const std::int64_t block : {1, 2, 3}) history.visit(at(0, block), false);
  static_cast<void>(history.back());
  history.visit(at(1, 2), true);
  history.visit(at(2, 2), true);
  EXPECT_FALSE(history.can_go_forward()) << "a new place drops those ahead";
  EXPECT_EQ(history.back(), at(0, 2));
  EXPECT_EQ(history.back(), at(0, 1));
}

TEST(History, ThePlaceItIsAtAddsNothing) {
  History history;
  history.visit(at(0, 1), false);
  history.visit(at(0, 2), false);
  static_cast<void>(history.back());
  history.visit(at(0, 1), false);
  EXPECT_TRUE(history.can_go_forward()) << "nothing was added, so nothing is dropped";
}

// Ten tiles of a flow are one way; another head, another candidate, or another selection is a place.
TEST(History, TilesOfAFlowAreOneWay) {
  History history;
  const auto flow = [](int head, std::optional<std::int64_t> tiles, const char* candidate = "") {
    HistoryPlace place = at(5, -1, View::attention);
    place.flow = FlowRequest{};
    place.flow->head = HeadIdx{head};
    place.flow_tiles = tiles;
    if (tiles && *tiles > 0) place.pinned = of_flow_tile(SeqIdx{0}, *tiles - 1, TokIdx{0}, TokIdx{1}, 16);
    place.candidate = QString::fromLatin1(candidate);
    return place;
  };
  history.visit(flow(0, std::nullopt), false);
  for (int tiles = 0; tiles < 10; ++tiles) history.visit(flow(0, tiles), false);
  history.visit(flow(1, std::nullopt), false);
  history.visit(flow(1, std::nullopt, "mine.npz"), false);
  EXPECT_EQ(history.back(), flow(1, std::nullopt));
  EXPECT_EQ(history.back(), flow(0, 9));
  EXPECT_EQ(history.back(), flow(0, std::nullopt));
  EXPECT_FALSE(history.can_go_back());
}

// All jumps: the history is the list of the kept places.
TEST(History, WalksTheListOfItsPlaces) {
  EXPECT_TRUE(rc::check([] {
    History history;
    std::vector<HistoryPlace> list;
    const int count = *rc::gen::inRange(1, 2 * static_cast<int>(History::kMost));
    for (int i = 0; i < count; ++i) {
      list.push_back(at(i));
      history.visit(list.back(), false);
    }
    std::size_t now = list.size() - 1;
    const std::size_t first = list.size() > History::kMost ? list.size() - History::kMost : 0;
    for (const bool back : *rc::gen::container<std::vector<bool>>(30, rc::gen::arbitrary<bool>())) {
      RC_ASSERT(history.can_go_back() == (now > first));
      RC_ASSERT(history.can_go_forward() == (now + 1 < list.size()));
      if (back ? !history.can_go_back() : !history.can_go_forward()) continue;
      now = back ? now - 1 : now + 1;
      RC_ASSERT((back ? history.back() : history.forward()) == list[now]);
    }
  }));
}

}  // namespace
}  // namespace kvscope::viz::history_test
