#include "viz/view/paint_board.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "tests/viz/view/pool_scene.h"
#include "tests/viz/view/runs.h"
#include "viz/geometry/link_path.h"
#include "viz/view/board_links.h"

namespace kvscope::viz::paint_board_test {
namespace {

constexpr QSizeF kSize(1600, 1000);

struct Board : Staged {
  Panels panels = make_panels();
  explicit Board(const char* name, std::int64_t row, ThemeKind kind = ThemeKind::dark)
      : Staged(gallery_run(name), kind) {
    cursor.seek_row(row);
  }
  [[nodiscard]] QImage image(QSizeF size = kSize, double scale = 1) const {
    return board_image(size, scale, panels, scene);
  }
  [[nodiscard]] Place place(PanelId id, QSizeF size = kSize) const {
    for (const Place& place : board(scene.view, size, scene.font_scale)) {
      if (place.panel == id) return place;
    }
    return {};
  }
  [[nodiscard]] std::vector<Link> links() const { return board_links(kSize, panels, scene, scene.pinned_lit); }
  [[nodiscard]] std::optional<QRectF> anchor(PanelId id, const Lit& lit) const {
    return panels[static_cast<std::size_t>(id)]->anchor(lit, place(id).body, scene);
  }
};

int difference(const QColor& a, const QColor& b) {
  return std::abs(a.red() - b.red()) + std::abs(a.green() - b.green()) + std::abs(a.blue() - b.blue());
}

// Is there a pixel of about this color within 2 px of the point?
bool near(const QImage& image, QPointF at, const QColor& color) {
  for (int dy = -2; dy <= 2; ++dy) {
    for (int dx = -2; dx <= 2; ++dx) {
      const QPoint pixel = at.toPoint() + QPoint(dx, dy);
      if (image.rect().contains(pixel) && difference(image.pixelColor(pixel), color) < 60) return true;
    }
  }
  return false;
}

// Whether the point is within a few px of the place of a card's title or legend.
bool among_text(QPointF at) {
  for (const View view : {View::overview, View::pool}) {
    for (const Place& place : board(view, kSize, 1)) {
      const bool in_names = place.panel == PanelId::table && QRectF(place.body.topLeft(), QSizeF(60, 900)).contains(at);
      if (in_names || place.title.adjusted(-4, 0, 4, 0).contains(at) || place.footer.contains(at)) return true;
    }
  }
  return false;
}

// Whether the link is visible in `image` everywhere between its ends except at texts.
bool shows(const QImage& image, const Link& link, const QColor& color) {
  int seen = 0;
  for (const LinkPath& part : link.parts) {
    for (int i = 1; i < 40; ++i) {
      if (among_text(point_at(part, i / 40.0))) continue;
      if (!near(image, point_at(part, i / 40.0), color)) return false;
      ++seen;
    }
  }
  return seen > 5;
}

// Whether the point is at a corner or an edge of the object: beside it by less than the gap to the next one.
bool touches(const QRectF& object, QPointF at) {
  return object.adjusted(-4, -4, 4, 4).contains(at);
}

// --- cards -----------------------------------------------------------------------------------------------------------

TEST(PaintBoard, PanelsAreAllThereInTheirOrder) {
  const Panels panels = make_panels();
  for (std::size_t i = 0; i < panels.size(); ++i) EXPECT_EQ(panels[i]->id(), static_cast<PanelId>(i));
}

// Rounded corners on the surface, a quiet border, the card's color inside.
TEST(PaintBoard, CardsStandOnTheSurfaceWithRoundedCorners) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    const Board staged("first_light", 7, kind);
    const Theme& t = *staged.scene.theme;
    const QImage image = staged.image();
    EXPECT_EQ(image.pixelColor(5, 5), t.surface);
    for (const PanelId id : {PanelId::sequences, PanelId::pool, PanelId::table, PanelId::timeline}) {
      const QRect card = staged.place(id).card.toRect();
      EXPECT_EQ(image.pixelColor(card.topLeft()), t.surface);
      EXPECT_EQ(image.pixelColor(card.bottomRight()), t.surface);
      EXPECT_LT(difference(image.pixelColor(card.center().x(), card.top()), t.card_border), 6);
      EXPECT_EQ(image.pixelColor(card.left() + 4, card.center().y()), t.card);
    }
  }
}

// At 480 px and large letters a subtitle has no room: it is elided or omitted and never exceeds its title line.
TEST(PaintBoard, TitlesStayWithinTheirCards) {
  Board staged("real_traffic_slice", 300);
  for (const double font_scale : {1.0, 1.5, 2.0}) {
    staged.scene.font_scale = font_scale;
    for (const QSizeF size : {QSizeF(480, 500), QSizeF(800, 700), QSizeF(1600, 1000)}) {
      const QImage image = staged.image(size);
      for (const Place& place : board(staged.scene.view, size, font_scale)) {
        if (place.panel == PanelId::header) continue;
        const QRect right(static_cast<int>(place.title.right()) + 1, static_cast<int>(place.card.top()) + 10,
                          static_cast<int>(place.card.right() - place.title.right()) - 5,
                          static_cast<int>(place.title.height()) - 12);
        for (int y = right.top(); y < right.bottom(); ++y) {
          for (int x = right.left(); x < right.right(); ++x) {
            ASSERT_EQ(image.pixelColor(x, y), staged.scene.theme->card) << font_scale << ' ' << size.width();
          }
        }
      }
    }
  }
}

TEST(PaintBoard, HasADevicePixelForEachOfItsScale) {
  const Board staged("first_light", 7);
  const QImage twice = staged.image({801, 501}, 2);
  EXPECT_EQ(twice.size(), QSize(1602, 1002));
  EXPECT_EQ(twice.devicePixelRatio(), 2);
}

// Base plus overlay equal the whole picture, so the canvas, which caches the base, equals the export.
TEST(PaintBoard, IsBaseAndOverlayAndTheSameEveryTime) {
  Board staged("first_light", 7);
  staged.pin(of_token(SeqIdx{2}, TokIdx{40}));
  staged.hover(of_block(BlockIdx{4}));
  const QImage whole = staged.image();
  QImage parts(whole.size(), QImage::Format_RGB32);
  {
    QPainter painter(&parts);
    paint_board_base(painter, kSize, staged.panels, staged.scene);
    paint_board_overlay(painter, kSize, staged.panels, staged.scene);
  }
  EXPECT_EQ(whole, parts);
  EXPECT_EQ(whole, board_image(kSize, 1, make_panels(), staged.scene));
}

// The base must not depend on the pointer; otherwise every move of it would repaint a million blocks.
TEST(PaintBoard, TheBaseDoesNotDependOnWhatIsSelectedOrHovered) {
  Board staged("first_light", 7);
  const auto base = [&] {
    QImage image(kSize.toSize(), QImage::Format_RGB32);
    QPainter painter(&image);
    paint_board_base(painter, kSize, staged.panels, staged.scene);
    return image;
  };
  const QImage before = base();
  staged.pin(of_token(SeqIdx{2}, TokIdx{40}));
  staged.hover(of_step(StepIdx{3}));
  EXPECT_EQ(base(), before);
}

TEST(PaintBoard, PaintsEveryViewAtEverySizeOfTheGallery) {
  for (const char* name : {"first_light", "continuous", "mla"}) {
    Board staged(name, 3);
    for (const View view : kViews) {
      staged.scene.view = view;
      for (const QSizeF size : {QSizeF(1, 1), QSizeF(480, 320), QSizeF(1000, 700)}) {
        for (const double font_scale : {1.0, 2.0}) {
          staged.scene.font_scale = font_scale;
          EXPECT_FALSE(staged.image(size.expandedTo(QSizeF(2, 2))).isNull());
        }
      }
    }
  }
}

// --- links -----------------------------------------------------------------------------------------------------------

// Links from the token to its block and to its entry of the table.
TEST(PaintBoard, ATokenIsJoinedToItsBlockAndToItsEntry) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    Board staged("first_light", 7, kind);
    staged.pin(of_token(SeqIdx{3}, TokIdx{64}));
    const QImage image = staged.image();
    const Lit& lit = staged.scene.pinned_lit;
    const auto token = staged.anchor(PanelId::sequences, lit), block = staged.anchor(PanelId::pool, lit),
               entry = staged.anchor(PanelId::table, lit);
    ASSERT_TRUE(token && block && entry);
    const std::vector<Link> links = staged.links();
    ASSERT_EQ(links.size(), 2u);
    for (const Link& link : links) {
      EXPECT_TRUE(touches(*token, link.start()));
      EXPECT_TRUE(shows(image, link, staged.scene.theme->accent));
    }
    EXPECT_TRUE(touches(*block, links[0].end()));
    EXPECT_TRUE(touches(*entry, links[1].end()));
  }
}

// A bright line across "11 of 32 blocks used" would make it illegible; the curve is faint behind texts but not missing.
TEST(PaintBoard, ACurvePassesBehindTitlesAndLegends) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    Board staged("first_light", 7, kind);
    const QImage before = staged.image();
    staged.pin(of_token(SeqIdx{3}, TokIdx{37}));
    const QImage after = staged.image();
    const std::vector<Link> links = staged.links();
    ASSERT_FALSE(links.empty());
    int legend = 0, title = 0;
    for (const LinkPath& part : links.front().parts) {
      for (int i = 0; i <= 400; ++i) {
        const QPointF at = point_at(part, i / 400.0);
        const bool in_legend = staged.place(PanelId::sequences).footer.adjusted(0, 4, 0, -4).contains(at);
        // The subtitle of the pool goes past the middle of its card.
        const QRectF line = staged.place(PanelId::pool).title;
        const bool in_title = QRectF(line.left(), line.center().y() - 4, line.width() / 2, 8).contains(at);
        if (!in_legend && !in_title) continue;
        (in_legend ? legend : title) += 1;
        EXPECT_NE(after.pixel(at.toPoint()), before.pixel(at.toPoint())) << i;
        EXPECT_GT(difference(after.pixelColor(at.toPoint()), staged.scene.theme->accent),
                  difference(before.pixelColor(at.toPoint()), staged.scene.theme->accent) / 2)
            << i;
      }
    }
    EXPECT_GT(legend, 5);
    EXPECT_GT(title, 3);
  }
}

// Block 0 is page 0 of all five sequences: a link to only the first one would hide that it is shared.
TEST(PaintBoard, ABlockOfSeveralIsJoinedToEachOfItsPages) {
  Board staged("first_light", 7);
  staged.pin(of_block(BlockIdx{0}));
  const QImage image = staged.image();
  const QRectF block = *staged.anchor(PanelId::pool, staged.scene.pinned_lit);
  const std::vector<TablePlace>& pages = staged.scene.pinned_lit.places;
  ASSERT_EQ(pages.size(), 5u);
  const std::vector<Link> links = staged.links();
  ASSERT_EQ(links.size(), pages.size());
  for (std::size_t i = 0; i < links.size(); ++i) {
    const Lit page = resolve(staged.scene.state(), staged.scene.facts(), of_page(pages[i].seq, pages[i].page));
    EXPECT_TRUE(touches(*staged.anchor(PanelId::sequences, page), links[i].start()) && touches(block, links[i].end()));
    EXPECT_TRUE(shows(image, links[i], staged.scene.theme->accent)) << pages[i].seq.value;
  }
}

// Its five entries are in one column: curves to each of them would cross all the numbers between.
TEST(PaintBoard, ABlockOfSeveralIsNotJoinedToItsEntries) {
  Board staged("first_light", 7);
  staged.pin(of_block(BlockIdx{0}));
  const QRectF table = staged.place(PanelId::table).card;
  for (const Link& link : staged.links()) EXPECT_FALSE(table.contains(link.end()));
}

// In the view "pool", which has no sequences panel, the link goes from the block to the entry that points at it.
TEST(PaintBoard, WithoutTheSequencesTheBlockIsJoinedToItsEntry) {
  Board staged("first_light", 7);
  staged.scene.view = View::pool;
  staged.pin(of_page(SeqIdx{1}, PageIdx{4}));
  const QImage image = staged.image();
  const Lit& lit = staged.scene.pinned_lit;
  const QRectF block = *staged.anchor(PanelId::pool, lit), entry = *staged.anchor(PanelId::table, lit);
  ASSERT_EQ(staged.links().size(), 1u);
  const Link link = staged.links().front();
  EXPECT_TRUE(touches(block, link.start()) && touches(entry, link.end()));
  EXPECT_TRUE(shows(image, link, staged.scene.theme->accent));
}

// Regression: the curve to the fourth row of the table crossed the numbers of the rows above it, and the curve from a
// token those of the sequences below. In the attention view, whose pool is beside its sequences, the curve from a token
// to its block crossed the numbers of the blocks in the same row. At each size and text size, with panels below and
// beside each other, a link enters no cell.
TEST(PaintBoard, ALinkCrossesNoNumberOfACell) {
  for (const char* name : {"first_light", "preemption"}) {
    for (const View view : {View::overview, View::pool, View::attention}) {
      for (const double scale : {1.0, 1.6, 2.5}) {
        Board staged(name, 7);
        staged.scene.view = view;
        staged.scene.font_scale = scale;
        const QSizeF size = whole_size(view, {1366, 768}, scale);
        std::vector<QRectF> cells;
        for (const Place& place : board(view, size, scale)) {
          const Panel& panel = *staged.panels[static_cast<std::size_t>(place.panel)];
          if (place.panel == PanelId::header || place.panel == PanelId::timeline) continue;
          for (const PanelCell& cell : panel.cells(place.body, staged.scene, 5000)) {
            // A page is a box around its tokens, and a name is not in the way.
            const bool tokens = place.panel != PanelId::sequences || cell.object.kind == Selection::Kind::token;
            if (tokens) cells.push_back(cell.rect.adjusted(1.2, 1.2, -1.2, -1.2));
          }
        }
        ASSERT_GT(cells.size(), 20u);
        int links = 0;
        for (const SeqIdx seq : staged.scene.state().live) {
          for (std::int64_t page = 0; page < staged.scene.state().sequences[seq.value].pages.size(); ++page) {
            staged.pin(view == View::pool ? of_page(seq, PageIdx{page})
                                          : of_token(seq, TokIdx{page * staged.scene.facts().page_size}));
            for (const Link& link : board_links(size, staged.panels, staged.scene, staged.scene.pinned_lit)) {
              ++links;
              for (const LinkPath& part : link.parts) {
                for (int i = 0; i <= 200; ++i) {
                  const QPointF at = point_at(part, i / 200.0);
                  const auto crossed = std::ranges::find_if(cells, [&](const QRectF& c) { return c.contains(at); });
                  ASSERT_EQ(crossed, cells.end()) << name << ' ' << viz::name(view) << ' ' << scale << " sequence "
                                                  << seq.value << " page " << page << " at " << at.x() << ' ' << at.y();
                }
              }
            }
          }
        }
        EXPECT_GT(links, 5);
      }
    }
  }
}

// Regression: the curve crossed "seq 0", the name of the row at its end.
TEST(PaintBoard, ACurvePassesBehindTheNameOfItsRow) {
  Board staged("first_light", 7);
  staged.scene.view = View::pool;
  const QImage before = staged.image();
  staged.pin(of_page(SeqIdx{0}, PageIdx{0}));
  const QImage after = staged.image();
  const QRectF entry = *staged.anchor(PanelId::table, staged.scene.pinned_lit);
  const QRectF body = staged.place(PanelId::table).body;
  int bright = 0, changed = 0;
  for (int y = static_cast<int>(entry.top()); y < entry.bottom(); ++y) {
    for (int x = static_cast<int>(body.left()) + 3; x < entry.left() - 12; ++x) {
      bright += difference(after.pixelColor(x, y), staged.scene.theme->accent) < 100 ? 1 : 0;
      changed += after.pixel(x, y) != before.pixel(x, y) ? 1 : 0;
    }
  }
  EXPECT_EQ(bright, 0);
  EXPECT_GT(changed, 20);
}

// No links for a sequence (too many pages), a free block (no pages) and in the view "sequences" (one panel). The test
// checks the gaps between the cards.
TEST(PaintBoard, ObjectsInOnlyOnePanelAreNotLinked) {
  Board staged("first_light", 7);
  const QImage before = staged.image();
  const QRectF upper = staged.place(PanelId::sequences).card, lower = staged.place(PanelId::pool).card;
  const QRect gap(0, static_cast<int>(upper.bottom()) + 1, 1600, static_cast<int>(lower.top() - upper.bottom()) - 2);
  for (const Selection& selection :
       {of_sequence(SeqIdx{2}), of_block(BlockIdx{30}), of_step(StepIdx{3}), Selection{}}) {
    staged.pin(selection);
    EXPECT_EQ(staged.image().copy(gap), before.copy(gap)) << static_cast<int>(selection.kind);
  }
  staged.pin(of_token(SeqIdx{3}, TokIdx{64}));
  EXPECT_NE(staged.image().copy(gap), before.copy(gap)) << "the check itself";
}

// Links of the hovered object are lighter; an object that is both hovered and pinned has one set of links.
TEST(PaintBoard, HoveredLinksAreLighterThanPinnedOnes) {
  Board staged("first_light", 7);
  const QImage before = staged.image();
  const auto changed = [&] {
    const QImage after = staged.image();
    const QRectF upper = staged.place(PanelId::sequences).card;
    int count = 0;
    for (int y = static_cast<int>(upper.bottom()) + 1; y < upper.bottom() + kGap - 1; ++y) {
      for (int x = 0; x < after.width(); ++x) count += after.pixel(x, y) != before.pixel(x, y) ? 1 : 0;
    }
    return count;
  };
  const Selection token = of_token(SeqIdx{3}, TokIdx{64});
  staged.hover(token);
  const int hovered = changed();
  staged.hover({});
  staged.pin(token);
  const QImage pinned_image = staged.image();
  const int pinned = changed();
  EXPECT_GT(hovered, 0);
  EXPECT_LT(hovered, pinned * 3 / 4);
  staged.hover(token);
  const QRectF gap(0, staged.place(PanelId::sequences).card.bottom() + 1, 1600, kGap - 2);
  EXPECT_EQ(staged.image().copy(gap.toRect()), pinned_image.copy(gap.toRect()));
}

// --- more than fits --------------------------------------------------------------------------------------------------

// A panel that is zoomed in hides most of its content: a bar beside the body shows that there is more, and where the
// visible part is. At the fitting zoom all is visible and there is no bar.
TEST(PaintBoard, ABarShowsThatThereIsMoreAndWhere) {
  for (const PanelId id : {PanelId::sequences, PanelId::pool, PanelId::table}) {
    for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
      Board b("preemption", 4, kind);
      const Place place = b.place(id);
      const Panel& panel = *b.panels[static_cast<std::size_t>(id)];
      const QRectF& body = place.body;
      const bool down = id != PanelId::table;  // the table's five rows fit at every zoom, its columns do not
      // Bright pixels in the margin beside or under the body, by quarters of its length.
      const auto bright = [&] {
        std::vector<int> quarters(4, 0);
        const QImage image = b.image();
        const int length = static_cast<int>(down ? body.height() : body.width());
        for (int i = 0; i < length; ++i) {
          const QPointF at =
              down ? QPointF(body.right() + 7, body.top() + i) : QPointF(body.left() + i, body.bottom() + 4);
          if (difference(image.pixelColor(at.toPoint()), b.scene.theme->text_quiet) < 20) {
            ++quarters[static_cast<std::size_t>(4 * i / length)];
          }
        }
        return quarters;
      };
      EXPECT_THAT(bright(), testing::Each(0)) << "all is visible";
      b.look(id, panel.zoomed(8, place.body.topLeft() + QPointF(90, 40), place.body, b.scene));
      b.look(id, panel.scrolled({-1e6, -1e6}, place.body, b.scene));
      const QPointF end = panel.scrolled({1e6, 1e6}, body, b.scene).offset;
      ASSERT_GT(down ? end.y() : end.x(), 0) << panel.title().toStdString();
      const std::vector<int> first = bright();
      EXPECT_GT(first[0], 10) << panel.title().toStdString();
      EXPECT_EQ(first[3], 0) << panel.title().toStdString();
      b.look(id, panel.scrolled({1e6, 1e6}, place.body, b.scene));
      const std::vector<int> last = bright();
      EXPECT_EQ(last[0], 0) << panel.title().toStdString();
      EXPECT_GT(last[3], 10) << panel.title().toStdString();
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::paint_board_test
