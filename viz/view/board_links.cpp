#include "viz/view/board_links.h"

#include <algorithm>
#include <array>

#include "viz/geometry/link_corners.h"

namespace kvscope::viz {
namespace {

constexpr std::size_t kMostLinks = 8;  // maximum number of linked places of one block

// An object in a panel that shows it.
struct Anchor {
  const Panel* panel = nullptr;
  Place place;
  QRectF rect;
};

std::optional<Anchor> anchor_in(PanelId id, const std::vector<Place>& places, const Panels& panels, const Scene& scene,
                                const Lit& lit) {
  const auto place = std::ranges::find(places, id, &Place::panel);
  const Panel* const panel = panels[static_cast<std::size_t>(id)].get();
  if (place == places.end() || panel == nullptr) return std::nullopt;
  const std::optional<QRectF> rect = panel->anchor(lit, place->body, scene);
  if (!rect) return std::nullopt;
  return Anchor{panel, *place, *rect};
}

// Past the numbers of the cells: down along lanes between columns, or to the right along lanes between rows.
Link link_of(const Anchor& from, const Anchor& to, const std::vector<Place>& places, const Panels& panels,
             const Scene& scene, const QRectF& board) {
  if (to.place.card.top() >= from.place.card.bottom()) {
    const std::optional<Lane> out = from.panel->column_lane(from.rect.right(), from.place.body, scene);
    const std::optional<Lane> in = to.panel->column_lane(to.rect.right(), to.place.body, scene);
    if (out && in) {
      std::vector<Lane> between;
      for (const Place& place : places) {
        const bool passed = place.card.top() >= from.place.card.bottom() && place.card.bottom() <= to.place.card.top();
        const Panel* const panel = panels[static_cast<std::size_t>(place.panel)].get();
        // On the straight way between the two: cards beside it are not crossed.
        const double x = (out->at + in->at) / 2;
        if (!passed || panel == nullptr || x < place.card.left() || x > place.card.right()) continue;
        if (const std::optional<Lane> lane = panel->column_lane(x, place.body, scene)) between.push_back(*lane);
      }
      return route_down(from.rect, *out, between, to.rect, *in);
    }
  }
  if (to.place.card.left() >= from.place.card.right()) {
    const std::optional<Lane> out = from.panel->leaving_lane(from.rect, from.place.body, scene);
    const std::optional<Lane> in = to.panel->arriving_lane(to.rect, to.place.body, scene);
    // The lane of a token is below the box of its page.
    if (out && in && from.place.panel == PanelId::sequences) {
      const double x = from.rect.right(), gap = (from.place.card.right() + to.place.card.left()) / 2;
      return route_through(std::array{QPointF(x, from.rect.bottom()), QPointF(x, out->at), QPointF(gap, out->at),
                                      QPointF(gap, in->at), QPointF(to.rect.left(), in->at)});
    }
    if (out && in) return route_right(from.rect, *out, to.rect, *in);
  }
  return {{link_path(from.rect, to.rect, board)}};
}

// One object for each curve: a page, or a token. A whole sequence has too many pages for links.
std::vector<Lit> ends_of(const Lit& lit) {
  if (lit.page) return {lit};
  if (lit.seq || !lit.block) return {};
  std::vector<Lit> ends;
  for (const TablePlace& place : lit.places) {
    if (ends.size() == kMostLinks) break;
    Lit one;
    one.seq = place.seq;
    one.page = place.page;
    one.block = lit.block;
    one.blocks = {*lit.block};
    one.places = {place};
    ends.push_back(one);
  }
  return ends;
}

// Between cards that are not adjacent: beside the cells of the one, along the gap above the other, and beside the cells
// of the other. A token is left at its lower edge and along the lanes of its panel, past its words. A row of the pool
// is met at its right edge, which is free; what other panels show is met at the left.
Link route_between(const Anchor& from, const Anchor& to, const Scene& scene) {
  const double gap = to.place.card.top() - kGap / 2;
  const bool right = to.place.panel == PanelId::memory;
  const double in = right ? to.place.card.right() - kPadding / 2 : to.place.card.left() + kPadding / 2;
  const QPointF last(right ? to.rect.right() : to.rect.left(), to.rect.center().y());
  const std::optional<Lane> aside = from.panel->leaving_lane(from.rect, from.place.body, scene);
  const std::optional<Lane> down = from.panel->column_lane(from.rect.center().x(), from.place.body, scene);
  if (aside && down && from.place.panel == PanelId::tile_sequence) {
    const QPointF first(from.rect.center().x(), from.rect.bottom());
    return route_through(std::array{first, QPointF(first.x(), aside->at), QPointF(down->at, aside->at),
                                    QPointF(down->at, gap), QPointF(in, gap), QPointF(in, last.y()), last});
  }
  const double out = from.place.card.right() - kPadding / 2;
  const QPointF first(from.rect.right(), from.rect.center().y());
  return route_through(
      std::array{first, QPointF(out, first.y()), QPointF(out, gap), QPointF(in, gap), QPointF(in, last.y()), last});
}

// The way of one row, or of one register, from left to right: from its token to the last panel that shows it.
std::vector<Link> tile_links(const std::vector<Place>& places, const Panels& panels, const Scene& scene, const Lit& lit,
                             const QRectF& board) {
  std::vector<Link> paths;
  if (!lit.tile.row && !lit.tile.reg) return paths;
  std::optional<Anchor> from;
  for (const PanelId id :
       {PanelId::tile_sequence, PanelId::memory, PanelId::copies, PanelId::shared, PanelId::registers}) {
    const auto place = std::ranges::find(places, id, &Place::panel);
    const Panel* const panel = panels[static_cast<std::size_t>(id)].get();
    if (place == places.end() || panel == nullptr) continue;
    const std::optional<QRectF> rect = panel->link_anchor(lit, place->body, scene);
    if (!rect) continue;
    const Anchor to{panel, *place, *rect};
    if (from) {
      // Not below, and no card between them: one that does not show the row now, because it is scrolled.
      const double apart = place->card.left() - from->place.card.right();
      const bool adjacent = place->card.top() < from->place.card.bottom() && apart < 2 * kGap;
      paths.push_back(!adjacent ? route_between(*from, to, scene) : Link{{side_link(from->rect, *rect, board)}});
    }
    from = to;
  }
  return paths;
}

}  // namespace

std::vector<Link> board_links(QSizeF size, const Panels& panels, const Scene& scene, const Lit& lit) {
  const std::vector<Place> places = board(scene.view, size, scene.font_scale);
  const QRectF whole(QPointF(0, 0), size.expandedTo(kSmallestBoard));
  if (scene.view == View::tile) return tile_links(places, panels, scene, lit, whole);
  std::vector<Link> links;
  const std::vector<Lit> ends = ends_of(lit);
  for (const Lit& end : ends) {
    const auto at = [&](PanelId id) { return anchor_in(id, places, panels, scene, end); };
    const std::optional<Anchor> sequences = at(PanelId::sequences), pool = at(PanelId::pool),
                                table = at(PanelId::table);
    const auto add = [&](const Anchor& from, const Anchor& to) {
      links.push_back(link_of(from, to, places, panels, scene, whole));
    };
    if (sequences && pool) add(*sequences, *pool);
    // A shared block is linked to its pages only: its entries are outlined, and twice as many curves would be too many.
    if (ends.size() == 1 && sequences && table) add(*sequences, *table);
    if (!sequences && pool && table) add(*pool, *table);
  }
  return links;
}

}  // namespace kvscope::viz
