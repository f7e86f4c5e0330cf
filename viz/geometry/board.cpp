#include "viz/geometry/board.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace kvscope::viz {
namespace {

constexpr std::array<std::string_view, kViews.size()> kNames{"overview", "sequences", "pool",
                                                             "timeline", "tile",      "attention"};

// A card of a band; a band of the board is divided into cards from left to right.
struct Column {
  PanelId panel;
  double share;  // of the band's width
};
struct Band {
  double share;  // of the height that the header and bands of a fixed height leave
  std::vector<Column> columns;
};

std::vector<Band> bands(View view) {
  switch (view) {
    case View::overview:
      return {{0.31, {{PanelId::sequences, 1}}},
              {0.48, {{PanelId::pool, 0.5}, {PanelId::table, 0.5}}},
              {0.21, {{PanelId::timeline, 1}}}};
    case View::sequences:
      return {{1, {{PanelId::sequences, 1}}}};
    case View::pool:
      return {{1, {{PanelId::pool, 0.6}, {PanelId::table, 0.4}}}};
    case View::timeline:
      return {{1, {{PanelId::timeline, 1}}}};
    case View::tile:
      return {
          {0.145, {{PanelId::tile_sequence, 1}}},
          {0.655,
           {{PanelId::memory, 0.215}, {PanelId::copies, 0.195}, {PanelId::shared, 0.335}, {PanelId::registers, 0.255}}},
          {0.2, {{PanelId::tile_events, 1}}}};
    case View::attention:
      return {{0.21, {{PanelId::sequences, 0.66}, {PanelId::pool, 0.34}}},
              {0.54, {{PanelId::attention_flow, 0.54}, {PanelId::attention_errors, 0.46}}},
              {0.25, {{PanelId::attention_output, 1}}}};
  }
  return {};
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

// Removes the lowest band while it is below the minimum height; the other bands share its height.
std::vector<Band> bands_with_room(View view, double height, double font_scale) {
  std::vector<Band> rows = bands(view);
  while (rows.size() > 1) {
    const auto lowest = std::ranges::min_element(rows, {}, &Band::share);
    const std::vector<double> all = shares(rows, &Band::share);
    const double sum = std::accumulate(all.begin(), all.end(), 0.0);
    const double left = height - kGap * static_cast<double>(rows.size() - 1);
    if (left * lowest->share / sum >= kLowestCard * font_scale) break;
    rows.erase(lowest);
  }
  return rows;
}

// The chain is a line of text below all bands, where it leaves the tallest of them room.
double chain_height(View view, double height, double font_scale) {
  const double chain = std::round(kChainHeight * font_scale);
  return view == View::tile && height - chain - kGap >= 3 * kLowestCard * font_scale ? chain : 0;
}

Place place(PanelId panel, const QRectF& card, double font_scale) {
  const bool low = card.height() < kLowCard * font_scale;
  const double title = std::round((low ? kLowTitleHeight : kTitleHeight) * font_scale);
  const bool has_footer = card.height() >= kFooterCard * font_scale;
  const double footer =
      has_footer ? std::round((low ? kLowFooterHeight : kFooterHeight) * font_scale) : std::round(kPadding / 2);
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

std::vector<Place> board(View view, QSizeF size, double font_scale) {
  const QSizeF whole = size.expandedTo(kSmallestBoard);
  const QRectF inner = QRectF(QPointF(0, 0), whole).adjusted(kMargin, 0, -kMargin, -kMargin);
  const double header = std::round(kHeaderHeight * font_scale);
  const QRectF head(inner.left(), inner.top(), inner.width(), header);
  std::vector<Place> places{{PanelId::header, head, head, {}, {}}};
  const double chain = chain_height(view, inner.height() - header, font_scale);
  const double cards = inner.height() - header - (chain > 0 ? chain + kGap : 0);
  const std::vector<Band> rows = bands_with_room(view, cards, font_scale);
  const std::vector<double> y = cuts(inner.top() + header, cards, shares(rows, &Band::share));
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const std::vector<Column>& columns = rows[row].columns;
    const std::vector<double> x = cuts(inner.left(), inner.width(), shares(columns, &Column::share));
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
