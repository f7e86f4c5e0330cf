#include "viz/geometry/board.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope::viz {
namespace {

constexpr std::array<std::string_view, kViews.size()> kNames{"overview", "sequences", "pool",
                                                             "timeline", "tile",      "attention"};

// A card of a band; a band of the board is divided into cards from left to right.
struct BoardColumn {
  PanelId panel;
  double share;  // of the band's width
};
struct Band {
  double share;  // of the height that the header and bands of a fixed height leave
  double least;  // [px] at font scale 1: the height at which its panels show title, body and footer
  std::vector<BoardColumn> columns;
};

// Minimum widths of the board, without its margins, for panels side by side. [px] at font scale 1
constexpr double kTwoColumns = 480, kTwoColumnsOfLargeText = 700;  // pool and table
constexpr double kTileInARow = 860, kTileInPairs = 560;

// `width` in the following functions: of the board without its margins. [px] at font scale 1
bool wraps(double width, double height, double font_scale) {
  return font_scale > 1 && width < kNarrowCard && height >= kTallCard;
}

// With larger text, titles and footers take two lines; the copies still have room for the axes of their tensor map.
std::vector<Band> bands_of_tile(double width, bool larger) {
  const Band sequence{0.145, 122, {{PanelId::tile_sequence, 1}}}, events{0.2, 122, {{PanelId::tile_events, 1}}};
  if (width >= kTileInARow) {
    return {
        sequence,
        {0.655,
         larger ? 446.0 : 356.0,
         {{PanelId::memory, 0.215}, {PanelId::copies, 0.195}, {PanelId::shared, 0.335}, {PanelId::registers, 0.255}}},
        events};
  }
  if (width >= kTileInPairs) {
    return {sequence,
            {0.3, 430, {{PanelId::memory, 0.5}, {PanelId::copies, 0.5}}},
            {0.4, 420, {{PanelId::shared, 0.55}, {PanelId::registers, 0.45}}},
            events};
  }
  return {sequence,
          {0.16, 400, {{PanelId::memory, 1}}},
          {0.16, 430, {{PanelId::copies, 1}}},
          {0.2, 420, {{PanelId::shared, 1}}},
          {0.2, 420, {{PanelId::registers, 1}}},
          events};
}

std::vector<Band> bands(View view, double width, double font_scale) {
  const bool beside = width >= (font_scale > 1 ? kTwoColumnsOfLargeText : kTwoColumns);
  const bool larger = font_scale > 1 && width < kNarrowCard;
  switch (view) {
    case View::overview:
      if (beside) {
        return {{0.31, larger ? 270.0 : 150.0, {{PanelId::sequences, 1}}},
                {0.48, larger ? 330.0 : 220.0, {{PanelId::pool, 0.5}, {PanelId::table, 0.5}}},
                {0.21, larger ? 230.0 : 136.0, {{PanelId::timeline, 1}}}};
      }
      return {{0.2, larger ? 290.0 : 180.0, {{PanelId::sequences, 1}}},
              {0.34, larger ? 360.0 : 300.0, {{PanelId::pool, 1}}},
              {0.28, larger ? 290.0 : 240.0, {{PanelId::table, 1}}},
              {0.18, larger ? 230.0 : 160.0, {{PanelId::timeline, 1}}}};
    case View::sequences:
      return {{1, 280, {{PanelId::sequences, 1}}}};
    case View::pool:
      if (beside) return {{1, 340, {{PanelId::pool, 0.6}, {PanelId::table, 0.4}}}};
      return {{0.55, 360, {{PanelId::pool, 1}}}, {0.45, 300, {{PanelId::table, 1}}}};
    case View::timeline:
      return {{1, larger ? 540.0 : 460.0, {{PanelId::timeline, 1}}}};
    case View::tile:
      return bands_of_tile(width, larger);
    case View::attention:
      if (width >= kTileInARow) {
        return {{0.21, larger ? 270.0 : 130.0, {{PanelId::sequences, 0.66}, {PanelId::pool, 0.34}}},
                {0.54, larger ? 400.0 : 300.0, {{PanelId::attention_flow, 0.54}, {PanelId::attention_errors, 0.46}}},
                {0.25, larger ? 210.0 : 140.0, {{PanelId::attention_output, 1}}}};
      }
      return {{0.18, larger ? 270.0 : 180.0, {{PanelId::sequences, 1}}},
              {0.18, larger ? 300.0 : 200.0, {{PanelId::pool, 1}}},
              {0.24, 380, {{PanelId::attention_flow, 1}}},
              {0.24, 380, {{PanelId::attention_errors, 1}}},
              {0.16, larger ? 210.0 : 160.0, {{PanelId::attention_output, 1}}}};
  }
  return {};
}

double header_height(double width, double font_scale) {
  const bool facts_below = font_scale > 1 && width < kNarrowHeader;
  return std::round((facts_below ? kHeaderHeight + kFactsHeight : kHeaderHeight) * font_scale);
}

// [px] at font scale 1
double inner_width(double width, double font_scale) {
  return (width - 2 * kMargin) / font_scale;
}

template <class Part>
std::vector<double> shares(const std::vector<Part>& parts, double Part::*share) {
  std::vector<double> all;
  for (const Part& part : parts) all.push_back(part.*share);
  return all;
}

// The coordinate, in whole pixels, at which each part begins along an axis, and a last one kGap past the end.
std::vector<double> cuts(double from, double length, const std::vector<double>& shares) {
  const double all = std::accumulate(shares.begin(), shares.end(), 0.0);
  const double parts = length - kGap * static_cast<double>(shares.size() - 1);
  std::vector<double> cuts{from};
  double before = 0;
  for (std::size_t i = 0; i < shares.size(); ++i) {
    before += shares[i] / all * parts;
    const bool last = i + 1 == shares.size();
    cuts.push_back(last ? from + length + kGap : std::round(from + before) + kGap * static_cast<double>(i + 1));
  }
  return cuts;
}

// The bands with the heights that they have in `height`. Every band has its least height if all have room for it. If
// not, bands have their shares, and the lowest one is removed while it is below the minimum height of a card.
std::vector<Band> bands_with_room(View view, QSizeF room, double font_scale) {
  std::vector<Band> rows = bands(view, room.width() / font_scale, font_scale);
  const auto left = [&] { return room.height() - kGap * static_cast<double>(rows.size() - 1); };
  double least = 0;
  for (const Band& band : rows) least += band.least * font_scale;
  if (least <= left()) {
    // Bands whose share is below their least height take it; the others share the rest.
    for (bool again = true; again;) {
      again = false;
      double rest = left(), sum = 0;
      for (const Band& band : rows) band.share < 0 ? rest -= band.least* font_scale : sum += band.share;
      for (Band& band : rows) {
        if (band.share < 0 || rest * band.share / sum >= band.least * font_scale) continue;
        band.share = -1;
        again = true;
      }
      if (again) continue;
      for (Band& band : rows) band.share = band.share < 0 ? band.least * font_scale : rest * band.share / sum;
    }
    return rows;
  }
  while (rows.size() > 1) {
    const auto lowest = std::ranges::min_element(rows, {}, &Band::share);
    const std::vector<double> all = shares(rows, &Band::share);
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    if (left() * lowest->share / sum >= kLowestCard * font_scale) break;
    rows.erase(lowest);
  }
  return rows;
}

// The chain is a sentence below all bands, with more lines in a narrow board.
double chain_height(double width, double font_scale) {
  const double lines = width >= kTileInARow * font_scale ? 1 : width >= kTileInPairs * font_scale ? 1.5 : 2;
  return std::round(kChainHeight * font_scale * lines);
}

// 0 where the chain would leave the tallest band no room.
double chain_in(View view, QSizeF room, double font_scale) {
  const double chain = chain_height(room.width(), font_scale);
  return view == View::tile && room.height() - chain - kGap >= 3 * kLowestCard * font_scale ? chain : 0;
}

Place place(PanelId panel, const QRectF& card, double font_scale) {
  const bool low = card.height() < kLowCard * font_scale;
  const bool lines = wraps(card.width() / font_scale, card.height() / font_scale, font_scale);
  const double title = std::round((low     ? kLowTitleHeight
                                   : lines ? kTitleHeight + kSubtitleHeight
                                           : kTitleHeight) *
                                  font_scale);
  const bool has_footer = card.height() >= kFooterCard * font_scale;
  const double line = low ? kLowFooterHeight : lines ? kFooterHeight + kLowFooterHeight : kFooterHeight;
  const double footer = has_footer ? std::round(line * font_scale) : std::round(kPadding / 2);
  const QRectF body = card.adjusted(kPadding, title, -kPadding, -footer);
  return {panel, card, body, QRectF(body.left(), card.top(), body.width(), title),
          has_footer ? QRectF(body.left(), body.bottom(), body.width(), footer) : QRectF()};
}

}  // namespace

std::string_view name(View view) {
  return kNames[static_cast<std::size_t>(view)];
}

std::optional<View> find_view(std::string_view name) {
  const auto* const found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<View>(found - kNames.begin());
}

QSizeF whole_size(View view, QSizeF room, double font_scale) {
  const QSizeF whole = room.expandedTo(kSmallestBoard);
  const double width = inner_width(whole.width(), font_scale);
  double height = header_height(width, font_scale) + kMargin;
  for (const Band& band : bands(view, width, font_scale)) {
    height += std::ceil(band.least * font_scale) + kGap;
  }
  // The gap below the last band belongs to the chain.
  height += view == View::tile ? chain_height(whole.width() - 2 * kMargin, font_scale) : -kGap;
  return whole.expandedTo({0, height});
}

std::vector<Place> board(View view, QSizeF size, double font_scale) {
  const QSizeF whole = size.expandedTo(kSmallestBoard);
  const QRectF inner = QRectF(QPointF(0, 0), whole).adjusted(kMargin, 0, -kMargin, -kMargin);
  const double header = header_height(inner.width() / font_scale, font_scale);
  const QRectF head(inner.left(), inner.top(), inner.width(), header);
  std::vector<Place> places{{PanelId::header, head, head, {}, {}}};
  const double chain = chain_in(view, {inner.width(), inner.height() - header}, font_scale);
  const double cards = inner.height() - header - (chain > 0 ? chain + kGap : 0);
  const std::vector<Band> rows = bands_with_room(view, {inner.width(), cards}, font_scale);
  const std::vector<double> y = cuts(inner.top() + header, cards, shares(rows, &Band::share));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::vector<BoardColumn>& columns = rows[row].columns;
    const std::vector<double> x = cuts(inner.left(), inner.width(), shares(columns, &BoardColumn::share));
    for (std::size_t column = 0; column < columns.size(); ++column) {
      places.push_back(place(columns[column].panel,
                             QRectF(QPointF(x[column], y[row]), QPointF(x[column + 1] - kGap, y[row + 1] - kGap)),
                             font_scale));
    }
  }
  if (chain > 0) {
    const QRectF line(inner.left(), inner.bottom() - chain, inner.width(), chain);
    places.push_back({PanelId::chain, line, line, QRectF(line.left(), line.top(), line.width(), 0), {}});
  }
  return places;
}

}  // namespace kvscope::viz
