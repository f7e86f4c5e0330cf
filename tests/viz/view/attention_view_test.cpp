// The panels of the attention view: the object at a point is the one drawn there, keys walk through all objects, and
// the cached pixels depend on the number of tiles and not on the selection.
#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include <QtTest/QTest>

#include "tests/viz/view/runs.h"
#include "viz/geometry/attention_layout.h"
#include "viz/model/document.h"
#include "viz/view/attention_paint.h"
#include "viz/view/canvas.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::attention_view_test {
namespace {

const std::vector<PanelId> kOfAttention{PanelId::attention_flow, PanelId::attention_errors, PanelId::attention_output};

AttentionFlow made_up_flow(std::int64_t tiles, std::int64_t dims) {
  AttentionFlow flow;
  flow.request.seq = SeqIdx{0};
  flow.request.head = HeadIdx{1};
  flow.request.tile_keys = 8;
  flow.page_size = 16;
  flow.keys = 8 * tiles;
  flow.queries = 1;
  flow.heads = 4;
  flow.first_query = flow.request.query = TokIdx{flow.keys - 1};
  double largest = -INFINITY, sum = 0;
  std::vector<double> o(static_cast<std::size_t>(dims), 0.0);
  for (std::int64_t n = 0; n < tiles; ++n) {
    const double before = largest;
    largest = std::max(largest, std::sin(static_cast<double>(n)));
    const double c = std::isinf(before) ? 0 : std::exp(before - largest);
    sum = sum * c + 2;
    for (std::size_t d = 0; d < o.size(); ++d)
      o[d] = o[d] * c + std::cos(static_cast<double>(d) + 0.3 * static_cast<double>(n));
    flow.tiles.push_back({8 * n, 8 * n + 8, before, largest, c, 2, sum, o});
  }
  for (const double x : o) {
    flow.o.push_back(x / sum);
    flow.golden.push_back(x / sum + 1e-8);
    flow.bound.push_back(1e-7);
  }
  return flow;
}

AttentionErrors made_up_errors(std::int64_t dims) {
  AttentionErrors errors;
  errors.candidate_name = "mine.npz";
  errors.heads = 4;
  errors.dims = dims;
  errors.rows = {{SeqIdx{0}, 0, 71, 4, 5}, {SeqIdx{3}, 0, 63, 3, 3}, {SeqIdx{3}, 1, 64, 4, 9}};
  for (std::int64_t i = 0; i < 3 * 4 * dims; ++i) errors.ratio.push_back(static_cast<float>(i % 17) * 0.05F);
  errors.ratio[static_cast<std::size_t>((1 * 4 + 2) * dims + 3)] = 40;
  errors.passed = false;
  errors.cause = "page 2 of sequence 3 was read from block 7, not 2";
  errors.cause_seq = SeqIdx{3};
  errors.cause_page = PageIdx{2};
  index_errors(errors);
  return errors;
}

struct Shown {
  std::shared_ptr<const Run> run = gallery_run("first_light");
  Cursor cursor{run};
  AttentionFlow flow;
  AttentionErrors errors;
  Panels panels = make_panels();
  QSizeF size{1600, 1000};
  Scene scene;

  explicit Shown(std::int64_t tiles = 9, std::int64_t dims = 8)
      : flow(made_up_flow(tiles, dims)), errors(made_up_errors(dims)) {
    cursor.seek_row(7);
    scene.cursor = &cursor;
    scene.theme = &theme(ThemeKind::dark);
    scene.view = View::attention;
    scene.flow = &flow;
    scene.flow_tiles = tiles;
    scene.errors = &errors;
  }
  void pin(const Selection& selection) {
    scene.pinned = selection;
    scene.pinned_lit = resolve(scene.state(), scene.facts(), selection);
  }
  [[nodiscard]] const Panel& panel(PanelId id) const { return *panels[static_cast<std::size_t>(id)]; }
  [[nodiscard]] QRectF body(PanelId id) const {
    const auto places = board(View::attention, size, scene.font_scale);
    return std::ranges::find(places, id, &Place::panel)->body;
  }
  [[nodiscard]] QImage image(bool overlay = false) const {
    QImage image(size.toSize(), QImage::Format_RGB32);
    QPainter painter(&image);
    overlay ? paint_board(painter, size, panels, scene) : paint_board_base(painter, size, panels, scene);
    return image;
  }
};

TEST(AttentionView, UnderTheMiddleOfEveryCellIsItsObject) {
  for (const auto& [tiles, dims] : {std::pair{9, 8}, {200, 128}, {1, 1}}) {
    Shown s(tiles, std::max(dims, 4));
    std::map<PanelId, std::size_t> cells;
    for (const double font : {0.75, 1.0, 1.6, 2.5}) {
      for (const QSizeF size : {QSizeF(1600, 1000), QSizeF(1366, 768), QSizeF(900, 600)}) {
        s.scene.font_scale = font;
        for (const Place& place : board(View::attention, size, font)) {
          if (std::ranges::find(kOfAttention, place.panel) == kOfAttention.end()) continue;
          const Panel& panel = s.panel(place.panel);
          for (const PanelCell& cell : panel.cells(place.body, s.scene, 500)) {
            ++cells[place.panel];
            ASSERT_TRUE(place.body.adjusted(-1, -1, 1, 1).contains(cell.rect)) << static_cast<int>(place.panel);
            ASSERT_FALSE(cell.name.isEmpty());
            const Selection found = panel.hit(cell.rect.center(), place.body, s.scene);
            ASSERT_EQ(found, cell.object) << panel.title().toStdString() << ' ' << cell.name.toStdString();
          }
        }
      }
    }
    // One tile is one cell in each picture that has room for its panel.
    for (const PanelId id : kOfAttention) EXPECT_GT(cells[id], tiles == 1 ? 7u : 10u) << static_cast<int>(id);
  }
}

TEST(AttentionView, TheBaseDependsOnTheTilesAndNotOnTheSelection) {
  Shown s;
  const QImage before = s.image();
  s.pin(of_flow_tile(SeqIdx{0}, 2, TokIdx{16}, TokIdx{24}, 16));
  EXPECT_TRUE(s.image() == before);
  const QImage lit = s.image(true);
  s.pin(of_error_cell(SeqIdx{3}, HeadIdx{2}, TokIdx{63}, DimIdx{3}, PageIdx{2}));
  EXPECT_FALSE(s.image(true) == lit);
  s.scene.flow_tiles = 3;
  EXPECT_FALSE(s.image() == before);
}

// Regression: the list was in the order of the criteria and did not fit: "pass o: masks · FAIL o: bound: ... · pass lse:
// masks · pass lse: ...".
TEST(AttentionView, CriteriaThatFailAreListedFirst) {
  Shown s;
  s.errors.criteria = {{"o: masks", true, "equal"}, {"o: bound", false, "3 of 9 elements"}, {"lse: masks", true, ""}};
  const auto last_line = [&] {
    return s.panel(PanelId::attention_errors).summary(s.scene).section(QLatin1Char('\n'), -1).toStdString();
  };
  EXPECT_EQ(last_line(), "FAIL o: bound: 3 of 9 elements · pass o: masks, lse: masks");
  s.errors.criteria[1].passed = true;
  EXPECT_EQ(last_line(), "pass o: masks, o: bound, lse: masks");
}

TEST(AttentionView, WithoutFlowAndErrorsThePanelsShowTheReason) {
  Shown s;
  s.scene.flow = nullptr;
  s.scene.errors = nullptr;
  s.scene.flow_instead = QStringLiteral("no flow");
  s.scene.errors_instead = QStringLiteral("no errors");
  const QImage with_reason = s.image();
  EXPECT_EQ(s.panel(PanelId::attention_flow).summary(s.scene), QStringLiteral("no flow"));
  EXPECT_EQ(s.panel(PanelId::attention_errors).summary(s.scene), QStringLiteral("no errors"));
  for (const PanelId id : kOfAttention) {
    EXPECT_TRUE(s.panel(id).cells(s.body(id), s.scene, 100).empty());
    EXPECT_TRUE(s.panel(id).hit(s.body(id).center(), s.body(id), s.scene).none());
  }
  s.scene.flow_instead = s.scene.errors_instead = QString();
  EXPECT_FALSE(s.image() == with_reason);
}

TEST(AttentionView, ArrowsWalkThroughTilesHeadsAndDims) {
  Shown s;
  const auto walk = [&](PanelId id, Selection from, Move move) {
    return s.panel(id).moved(from, move, s.body(id), s.scene);
  };
  using enum Move;
  const Selection start = walk(PanelId::attention_flow, {}, Move::first);
  EXPECT_EQ(start.event, 0);
  EXPECT_EQ(walk(PanelId::attention_flow, start, down).event, 1);
  EXPECT_EQ(walk(PanelId::attention_flow, start, up).event, 0);
  EXPECT_EQ(walk(PanelId::attention_flow, start, Move::last).event, 8);

  Selection at = walk(PanelId::attention_errors, {}, Move::first);
  EXPECT_EQ(at.seq, SeqIdx{0});
  EXPECT_EQ(at.head, HeadIdx{0});
  EXPECT_EQ(at.dim, DimIdx{-1});
  at = walk(PanelId::attention_errors, at, right);
  EXPECT_EQ(at.head, HeadIdx{1});
  at = walk(PanelId::attention_errors, at, down);
  EXPECT_EQ(at.seq, SeqIdx{3});
  at = walk(PanelId::attention_errors, at, down);
  EXPECT_EQ(at.dim, DimIdx{1}) << "below the last sequence is the map of the elements";
  at = walk(PanelId::attention_errors, at, up);
  EXPECT_EQ(at.dim, DimIdx{-1});
  at = walk(PanelId::attention_errors, at, Move::last);
  EXPECT_EQ(at.dim, DimIdx{7});

  at = walk(PanelId::attention_output, {}, right);
  EXPECT_EQ(at.dim, DimIdx{0});
  EXPECT_EQ(walk(PanelId::attention_output, at, right).dim, DimIdx{1});
}

// The page of the diagnosis where it names one of the sequence, else the query's page; the words lead to the page too.
TEST(AttentionView, ErrorsLeadToThePageBehindThem) {
  Shown s;
  const PanelId id = PanelId::attention_errors;
  const auto cells = s.panel(id).cells(s.body(id), s.scene, 500);
  const auto of = [&](SeqIdx seq, HeadIdx head) {
    return std::ranges::find_if(cells, [&](const PanelCell& c) {
      return c.object.kind == Selection::Kind::error_cell && c.object.seq == seq && c.object.head == head &&
             c.object.dim.value < 0;
    });
  };
  EXPECT_EQ(of(SeqIdx{0}, HeadIdx{1})->object.page, PageIdx{4});
  EXPECT_EQ(of(SeqIdx{3}, HeadIdx{2})->object.page, PageIdx{2});
  EXPECT_TRUE(of(SeqIdx{3}, HeadIdx{2})->name.contains(QStringLiteral("40x the bound, fails")));
  EXPECT_EQ(cells.back().object, of_page(SeqIdx{3}, PageIdx{2}));
  EXPECT_EQ(cells.back().name, QStringLiteral("page 2 of sequence 3 was read from block 7, not 2"));
}

// A key's token, its page and its block lead to the tile that adds it.
TEST(AttentionView, TokensAndPagesLeadToTheirTile) {
  Shown s;
  const PanelId id = PanelId::attention_flow;
  for (const std::int64_t token : {0, 17, 40}) {
    s.pin(of_token(SeqIdx{0}, TokIdx{token}));
    const auto at = s.panel(id).anchor(s.scene.pinned_lit, s.body(id), s.scene);
    ASSERT_TRUE(at) << token;
    EXPECT_EQ(s.panel(id).hit(at->center(), s.body(id), s.scene).event, token / 8);
  }
  s.pin(of_page(SeqIdx{0}, PageIdx{2}));
  const auto at = s.panel(id).anchor(s.scene.pinned_lit, s.body(id), s.scene);
  EXPECT_EQ(s.panel(id).hit(at->center(), s.body(id), s.scene).event, 4);
  s.pin(of_page(SeqIdx{1}, PageIdx{5}));  // of another sequence, in another block or none
  EXPECT_EQ(s.panel(id).anchor(s.scene.pinned_lit, s.body(id), s.scene), std::nullopt);
}

TEST(AttentionView, WordsTellWhatATileDoes) {
  Shown s;
  const Panel& panel = s.panel(PanelId::attention_flow);
  s.scene.flow_tiles = 0;
  EXPECT_TRUE(panel.summary(s.scene).startsWith(QStringLiteral("Before the first of 9 tiles")));
  s.scene.flow_tiles = 2;  // sin 1 > sin 0
  EXPECT_TRUE(panel.summary(s.scene).startsWith(QStringLiteral("Tile 1 raises m from 0.0000 to 0.8415")));
  s.scene.flow_tiles = 4;  // sin 3 < sin 2
  EXPECT_TRUE(panel.summary(s.scene).startsWith(QStringLiteral("Tile 3 leaves m at 0.9093")));
  EXPECT_TRUE(panel.summary(s.scene).endsWith(
      QStringLiteral("After 4 of 9 tiles: l = %1.").arg(s.flow.tiles[3].sum, 0, 'f', 4)));
}

// The canvas: another flow or another number of tiles is another picture, the same as a new one of the scene; the names
// for screen readers follow.
TEST(AttentionCanvas, RepaintsForEachFlowAndEachNumberOfTiles) {
  Document document(gallery_run("first_light"), QStringLiteral("first_light"));
  document.seek_step(StepIdx{6});
  Canvas canvas;
  canvas.resize(1200, 800);
  canvas.setMotion(true);
  canvas.setDocument(&document);
  canvas.setView(View::attention);
  canvas.show();
  AttentionModel& attention = document.attention();
  attention.follow(true);
  const auto picture = [&] { return canvas.grab().toImage().convertToFormat(QImage::Format_RGB32); };
  const QImage without = picture();
  attention.show_flow(std::make_shared<const AttentionFlow>(made_up_flow(9, 8)));
  const QImage nine = picture();
  EXPECT_FALSE(nine == without);
  EXPECT_TRUE(nine == board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow()));
  const auto& cells = canvas.cells(PanelId::attention_flow);
  ASSERT_FALSE(cells.empty());
  EXPECT_FALSE(cells.back().name.contains(QStringLiteral("not added yet")));
  attention.step_back();
  EXPECT_FALSE(picture() == nine);
  EXPECT_TRUE(canvas.cells(PanelId::attention_flow).back().name.contains(QStringLiteral("not added yet")));
  attention.show_flow(std::make_shared<const AttentionFlow>(made_up_flow(3, 4)));  // the first one is gone
  EXPECT_TRUE(picture() == board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow()));
  document.step();  // with motion on: its end is the still
  ASSERT_TRUE(QTest::qWaitFor([&] { return !canvas.motionTime(); }, 20'000));
  EXPECT_TRUE(picture() == board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow()));
  attention.show_errors(std::make_shared<const AttentionErrors>(made_up_errors(4)));
  canvas.activate(canvas.cells(PanelId::attention_errors).front().object);
  EXPECT_EQ(document.pinned().kind, Selection::Kind::error_cell);
  EXPECT_TRUE(picture() == board_image(canvas.size(), canvas.devicePixelRatio(), make_panels(), canvas.sceneNow()));
}

// Above the bound a cell differs by color and by hatch or number; both must be visible in both themes.
TEST(AttentionPaint, CellsAboveTheBoundDifferByMoreThanColor) {
  for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
    Shown s;
    s.scene.theme = &theme(kind);
    EXPECT_GE(contrast(error_fill(*s.scene.theme, 2), s.scene.theme->cell_free), 3) << "failing against empty";
    const auto colors = [&](double ratio, QSizeF size) {
      QImage image(size.toSize(), QImage::Format_RGB32);
      image.fill(s.scene.theme->card);
      QPainter painter(&image);
      paint_error_cell(painter, QRectF({0, 0}, size), ratio, s.scene);
      std::set<QRgb> found;
      for (int y = 0; y < image.height(); ++y) {
        for (int x = 0; x < image.width(); ++x) found.insert(image.pixel(x, y));
      }
      return found.size();
    };
    EXPECT_GT(colors(5, {10, 10}), colors(0.5, {10, 10})) << "the hatch";
    const auto area = [&](double ratio) {
      QImage image(6, 6, QImage::Format_RGB32);
      image.fill(s.scene.theme->card);
      QPainter painter(&image);
      paint_error_cell(painter, QRectF(0, 0, 6, 6), ratio, s.scene);
      int count = 0;
      for (int y = 0; y < 6; ++y) {
        for (int x = 0; x < 6; ++x) count += image.pixel(x, y) == s.scene.theme->cell_free.rgb() ? 0 : 1;
      }
      return count;
    };
    EXPECT_GT(area(100), area(0.01)) << "the size";
  }
}

}  // namespace
}  // namespace kvscope::viz::attention_view_test
