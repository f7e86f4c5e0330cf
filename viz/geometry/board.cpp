#include "viz/geometry/board.h"

#include <algorithm>

namespace kvscope::viz {
namespace {

constexpr std::array<std::string_view, kViews.size()> kNames{"overview", "sequences", "pool", "timeline"};

// A band of the board that is cut into cards from left to right.
struct Band {
  double share;                                    // of the height that the header leaves
  std::vector<std::pair<PanelId, double>> panels;  // with their share of the width
};

std::vector<Band> bands(View view) {
  switch (view) {
    case View::overview:
      return {{0.32, {{PanelId::sequences, 1}}},
              {0.46, {{PanelId::pool, 0.5}, {PanelId::table, 0.5}}},
              {0.22, {{PanelId::timeline, 1}}}};
    case View::sequences:
      return {{1, {{PanelId::sequences, 1}}}};
    case View::pool:
      return {{1, {{PanelId::pool, 0.6}, {PanelId::table, 0.4}}}};
    case View::timeline:
      return {{1, {{PanelId::timeline, 1}}}};
  }
  return {};
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
  const double header = kHeaderHeight * font_scale;
  std::vector<Place> places{{PanelId::header,
                             {inner.left(), inner.top(), inner.width(), header},
                             {inner.left(), inner.top(), inner.width(), header}}};
  const std::vector<Band> rows = bands(view);
  const double height = inner.height() - header - kGap * static_cast<double>(rows.size() - 1);
  double y = inner.top() + header;
  for (const Band& band : rows) {
    const double width = inner.width() - kGap * static_cast<double>(band.panels.size() - 1);
    double x = inner.left();
    for (const auto& [panel, share] : band.panels) {
      const QRectF card(x, y, width * share, height * band.share);
      const QRectF body = card.adjusted(kPadding, kTitleHeight * font_scale, -kPadding, -kFooterHeight * font_scale);
      places.push_back({panel, card, body});
      x += card.width() + kGap;
    }
    y += height * band.share + kGap;
  }
  return places;
}

}  // namespace kvscope::viz
