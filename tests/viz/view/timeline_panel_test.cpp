#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <memory>
#include <set>
#include <utility>
#include <vector>

#include <QtGui/QImage>
#include <QtGui/QPicture>

#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/runs.h"
#include "viz/view/panel.h"
#include "viz/view/time_text.h"
#include "viz/view/timeline_legend.h"
#include "viz/view/timeline_paint.h"
#include "viz/view/timeline_plot.h"
#include "viz/view/timeline_prepare.h"

namespace kvscope::viz::timeline_panel_test {
namespace {

using testing::Contains;
using testing::ElementsAre;

constexpr QSize kStrip(1000, 190), kOwn(1000, 700);

// A panel, a scene, and pictures of the panel.
struct Shown {
  explicit Shown(std::shared_ptr<const Run> of, View view = View::overview) : cursor(std::move(of)) {
    scene.cursor = &cursor;
    scene.theme = &theme(ThemeKind::dark);
    scene.view = view;
  }
  QRectF body() const {
    const QSize size = scene.view == View::timeline ? kOwn : kStrip;
    return {10, 10, size.width() - 20.0, size.height() - 50.0};
  }
  QRectF footer() const { return {body().left(), body().bottom(), body().width(), 30}; }
  void paint(QPainter& painter, const Panel& with) const {
    painter.fillRect(QRectF(0, 0, kOwn.width(), kOwn.height() + 60), scene.theme->card);
    with.paint_base(painter, body(), scene);
    with.paint_footer(painter, footer(), scene);
    with.paint_overlay(painter, body(), scene);
  }
  QImage picture(const Panel& with, double scale = 1) const {
    QImage image((QSizeF(1000, body().height() + 60) * scale).toSize(), QImage::Format_RGB32);
    image.setDevicePixelRatio(scale);
    QPainter painter(&image);
    paint(painter, with);
    return image;
  }
  const PreparedTimeline& prepared() { return cache.prepared(body(), scene); }
  QPointF on_step(std::int64_t index) {
    return {prepared().layout.axis.x(index), prepared().layout.shares.center().y()};
  }

  Cursor cursor;
  Scene scene;
  std::unique_ptr<Panel> panel = make_timeline_panel();
  TimelineCache cache;
};

// The first mark of its kind at or after `index`.
std::int64_t first_marked(const Timeline& timeline, Mark mark) {
  const auto& counts = timeline[mark];
  return std::ranges::find_if(counts, [](std::int32_t n) { return n > 0; }) - counts.begin();
}

// --- words -----------------------------------------------------------------------------------------------------------

TEST(TimeText, HasAboutThreeDigits) {
  EXPECT_EQ(time_text(0), QString::fromUtf8("0 µs"));
  EXPECT_EQ(time_text(850), QString::fromUtf8("850 µs"));
  EXPECT_EQ(time_text(1000), QStringLiteral("1 ms"));
  EXPECT_EQ(time_text(12'500), QStringLiteral("12.5 ms"));
  EXPECT_EQ(time_text(999'499), QStringLiteral("999 ms"));
  EXPECT_EQ(time_text(999'500), QStringLiteral("1 s"));
  EXPECT_EQ(time_text(1'250'000), QStringLiteral("1.25 s"));
  EXPECT_EQ(time_text(99'949'999), QStringLiteral("99.9 s"));
  EXPECT_EQ(time_text(99'950'000), QStringLiteral("1 min 40 s"));
  EXPECT_EQ(time_text(247'000'000), QStringLiteral("4 min 07 s"));
  EXPECT_EQ(time_text(3'599'499'999), QStringLiteral("59 min 59 s"));
  EXPECT_EQ(time_text(3'599'500'000), QStringLiteral("1 h 00 min"));
  EXPECT_EQ(time_text(3'720'000'000), QStringLiteral("1 h 02 min"));
  EXPECT_EQ(time_text(-12'500), QString::fromUtf8("−12.5 ms"));
}

TEST(NumberText, GroupsThreeDigitsAsReportsDo) {
  EXPECT_EQ(number_text(0), QStringLiteral("0"));
  EXPECT_EQ(number_text(999), QStringLiteral("999"));
  EXPECT_EQ(number_text(12'031), QStringLiteral("12,031"));
  EXPECT_EQ(number_text(8'437'140), QStringLiteral("8,437,140"));
  EXPECT_EQ(number_text(-1234), QStringLiteral("-1,234"));
  EXPECT_EQ(number_text(-123'456), QStringLiteral("-123,456"));
}

// The names in legend and tables equal those of playback; the translated strings are a second list that could differ.
TEST(Timeline, NamesCurvesAndMarksAsPlaybackDoes) {
  for (std::size_t s = 0; s < kSeries; ++s) {
    const auto series = static_cast<Series>(s);
    EXPECT_EQ(series_name(series).toStdString(), name(series));
  }
  for (const Mark mark : kMarkKinds) EXPECT_EQ(mark_name(mark, 1).toStdString(), name(mark));
  EXPECT_EQ(mark_name(Mark::copy, 2), QStringLiteral("copies"));
}

TEST(Timeline, WritesSharesAndCounts) {
  EXPECT_EQ(value_text(Series::utilization, 0.875), QStringLiteral("87.5 %"));
  EXPECT_EQ(value_text(Series::running, 12), QStringLiteral("12"));
}

// Lines differ without color: on one plot no two lines have the same dash pattern.
TEST(Timeline, GivesCurvesOfOnePlotDifferentPatterns) {
  const auto pattern = [](Series series) {
    const QPen pen = series_pen(theme(ThemeKind::dark), series);
    return std::pair(pen.style() == Qt::SolidLine, pen.dashPattern());
  };
  const std::vector<std::vector<Series>> plots{shown_series(false),
                                               {kShares.begin(), kShares.end()},
                                               {Series::running, Series::waiting, Series::prefill, Series::decode}};
  for (const std::vector<Series>& plot : plots) {
    for (std::size_t a = 0; a < plot.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) EXPECT_NE(pattern(plot[a]), pattern(plot[b])) << name(plot[a]);
    }
  }
}

TEST(TimelinePanel, SummaryHasThePositionAndTheValues) {
  Shown shown(run_of_steps(30));
  EXPECT_EQ(shown.panel->summary(shown.scene), QStringLiteral("Before the first step of 29."));
  shown.cursor.seek_row(13);
  EXPECT_EQ(shown.panel->summary(shown.scene),
            QStringLiteral("Step 12 of 29 at 13 ms: utilization 10.0 %, prefix hit rate 0.0 %, running requests 2, "
                           "waiting requests 5."));
  Shown empty(run_of_steps(0));
  EXPECT_EQ(empty.panel->summary(empty.scene), QStringLiteral("This run has no steps."));
}

// --- painting --------------------------------------------------------------------------------------------------------

// Cached plots must not be used for another size, zoom, theme, scale or run.
TEST(TimelinePanel, PaintsTheSameWithAndWithoutAPast) {
  Shown one(gallery_run("preemption")), other(run_of_steps(4000, 17));
  const std::unique_ptr<Panel> used = make_timeline_panel();
  std::vector<Shown*> walk{&one, &other, &one};
  for (Shown* shown : walk) {
    for (const View view : {View::overview, View::timeline}) {
      for (const ThemeKind kind : {ThemeKind::dark, ThemeKind::light}) {
        for (const double zoom : {0.0, 30.0}) {
          for (const double scale : {1.0, 2.0}) {
            shown->scene.view = view;
            shown->scene.theme = &theme(kind);
            shown->scene.viewport[static_cast<std::size_t>(PanelId::timeline)] = {zoom, {zoom * 5, 0}};
            shown->cursor.step();
            shown->scene.hovered = of_step(StepIdx{20});
            EXPECT_TRUE(shown->picture(*used, scale) == shown->picture(*make_timeline_panel(), scale));
          }
        }
      }
    }
  }
}

// A dotted curve of the other run's utilization in the same steps; before its first step and after its last it is at 0.
TEST(TimelinePanel, DrawsTheUtilizationOfAComparedRun) {
  for (const View view : {View::overview, View::timeline}) {
    Shown shown(run_of_steps(50), view);
    shown.cursor.seek_row(10);
    const QImage alone = shown.picture(*shown.panel);
    EXPECT_FALSE(shown.panel->subtitle(shown.scene).contains(QStringLiteral("dotted")));
    for (const auto& [first, steps] : {std::pair{0L, 0L}, {0L, 20L}, {0L, 50L}, {0L, 90L}, {12L, 20L}, {60L, 20L}}) {
      SCOPED_TRACE(testing::Message() << steps << " steps from " << first);
      shown.scene.compared_run = run_of_steps(steps, first);
      EXPECT_TRUE(shown.panel->subtitle(shown.scene).contains(QStringLiteral("dotted")));
      const PreparedTimeline& prepared = shown.prepared();
      const QRectF& plot = prepared.plot(Series::utilization);
      ASSERT_FALSE(prepared.compared.line.empty());
      for (const QPointF& point : prepared.compared.line) {
        const StepAxis& axis = prepared.layout.axis;
        const double at = (point.x() - axis.x(0)) / (axis.x(1) - axis.x(0));  // the line begins and ends between steps
        const long step = std::clamp(std::lround(at), 0L, axis.steps - 1);
        const double expected =
            step >= first && step < first + steps ? static_cast<double>((step - first) % 11) / 10 : 0;
        EXPECT_NEAR(point.y(), y_of(plot, expected, 1), 1e-5) << step;
      }
      EXPECT_FALSE(shown.picture(*shown.panel) == alone);
      EXPECT_TRUE(shown.picture(*shown.panel) == shown.picture(*make_timeline_panel()));
      shown.scene.compared_run = nullptr;
      EXPECT_TRUE(shown.picture(*shown.panel) == alone);
    }
  }
}

// Two runs from one step on have one axis of steps and one scale: equal heights are equal counts.
TEST(TimelinePanel, TwoRunsHaveOneAxisAndOneScale) {
  for (const View view : {View::overview, View::timeline}) {
    Shown shorter(run_of_steps(4), view), longer(run_of_steps(50), view);  // at most 3 requests wait, or 6
    const Shown before(run_of_steps(4), view);
    shorter.scene.compared_run = longer.cursor.shared_run();
    longer.scene.compared_run = shorter.cursor.shared_run();
    const PreparedTimeline &left = shorter.prepared(), &right = longer.prepared();
    EXPECT_EQ(left.layout.axis.steps, 50);
    EXPECT_EQ(right.layout.axis.steps, 50);
    for (const Series series : {Series::waiting, Series::running, Series::decode}) {
      EXPECT_EQ(left.top(series), right.top(series));
    }
    EXPECT_GT(left.top(Series::waiting), 6 - 1);
    // Beyond its end a run has no steps, and its curves are at 0.
    const QPointF beyond = shorter.on_step(30);
    EXPECT_TRUE(shorter.panel->hit(beyond, shorter.body(), shorter.scene).none());
    EXPECT_EQ(longer.panel->hit(beyond, longer.body(), longer.scene), of_step(StepIdx{30}));
    EXPECT_EQ(shorter.panel->hit(shorter.on_step(2), shorter.body(), shorter.scene), of_step(StepIdx{2}));
    for (const QPointF& point : left.curves[at(Series::running)].line) {
      if (point.x() < left.layout.axis.x(4)) continue;
      EXPECT_EQ(point.y(), y_of(left.plot(Series::running), 0, 1));
    }
  }
}

// Runs that begin with different steps have their own axes, and steps of their own.
TEST(TimelinePanel, RunsThatBeginElsewhereKeepTheirAxes) {
  Shown early(run_of_steps(20)), late(run_of_steps(30, 12));
  early.scene.compared_run = late.cursor.shared_run();
  late.scene.compared_run = early.cursor.shared_run();
  EXPECT_EQ(early.prepared().layout.axis.steps, 20);
  EXPECT_EQ(late.prepared().layout.axis.steps, 30);
  EXPECT_EQ(late.panel->hit(late.on_step(29), late.body(), late.scene), of_step(StepIdx{41}));
}

// Dots stand for the entries without room.
TEST(TimelinePanel, ALegendThatIsTooLongEndsWithDots) {
  Shown shown(run_of_steps(20), View::timeline);
  shown.cursor.seek_row(5);
  std::set<QString> all;
  for (const Series series : shown_series(true)) all.insert(series_name(series));
  std::size_t most = 0;
  for (const int width : {1100, 700, 500, 360}) {
    TextDevice device({1200, 800});
    QPainter painter(&device);
    QRectF body = shown.body();
    body.setWidth(width);
    shown.panel->paint_base(painter, body, shown.scene);
    painter.end();
    std::size_t named = 0, dots = 0;
    for (const DrawnText& text : device.texts()) {
      named += all.contains(text.text) ? 1 : 0;
      dots += text.text == QStringLiteral("…") ? 1 : 0;
    }
    EXPECT_EQ(dots > 0, named < all.size()) << width << ": " << named << " of " << all.size();
    most = std::max(most, named);
  }
  EXPECT_EQ(most, all.size());
}

// After a file is closed and another one opened, the new timeline may have the same address.
TEST(TimelinePanel, ForgetsARunThatWasReplacedInItsPlace) {
  const std::unique_ptr<Panel> used = make_timeline_panel();
  for (int again = 0; again < 8; ++again) {
    const Shown shown(run_of_steps(100 + again % 2));
    EXPECT_TRUE(shown.picture(*used) == shown.picture(*make_timeline_panel())) << again;
  }
}

// Stepping only moves the cursor, so the plots are cached as pixels. The cached pixels must equal those painted
// directly, at every scale and position.
TEST(PlotPicture, HasThePixelsThatPaintingDirectlyHas) {
  Shown shown(gallery_run("preemption"), View::timeline);
  const PreparedTimeline& prepared = shown.prepared();
  for (const double scale : {1.0, 1.5, 2.0}) {
    for (const QPointF by : {QPointF(0, 0), QPointF(3.25, 7)}) {
      std::array<QImage, 2> images;
      PlotPicture kept;
      for (const bool keeps : {false, true}) {
        QImage& image = images[keeps ? 1 : 0];
        image = QImage((QSizeF(kOwn) * scale).toSize(), QImage::Format_RGB32);
        image.setDevicePixelRatio(scale);
        image.fill(shown.scene.theme->card);
        QPainter painter(&image);
        painter.translate(by);
        keeps ? kept.paint(painter, shown.body(), prepared, shown.scene) : paint_plots(painter, prepared, shown.scene);
      }
      EXPECT_TRUE(images[0] == images[1]) << "scale " << scale << " at " << by.x();
    }
  }
}

// SVG and PDF contain lines, not a pixel image, which would be blurred on paper.
TEST(PlotPicture, OnASurfaceOfLinesPutsNoPixels) {
  Shown shown(gallery_run("preemption"), View::timeline);
  QPicture lines;
  {
    QPainter painter(&lines);
    PlotPicture picture;
    picture.paint(painter, shown.body(), shown.prepared(), shown.scene);
  }
  // The pixels of the picture alone would take more bytes.
  EXPECT_LT(static_cast<double>(lines.size()), shown.body().width() * shown.body().height());
}

TEST(TimelinePanel, DrawsTheCursorAtItsStep) {
  Shown shown(run_of_steps(50));
  const QImage before = shown.picture(*shown.panel);  // before the first step there is no cursor
  const QRectF plot = shown.prepared().layout.shares;
  for (const std::int64_t index : {0, 17, 49}) {
    shown.cursor.seek_row(index + 1);
    const QImage image = shown.picture(*shown.panel);
    std::set<int> columns;
    for (int x = 0; x < image.width(); ++x) {
      const int y = qRound(plot.top()) + 2;
      if (image.pixel(x, y) != before.pixel(x, y)) columns.insert(x);
    }
    ASSERT_FALSE(columns.empty());
    EXPECT_NEAR((*columns.begin() + *columns.rbegin() + 1) / 2.0, shown.prepared().layout.axis.x(index), 1);
    EXPECT_LE(*columns.rbegin() - *columns.begin(), 2);
  }
}

TEST(TimelinePanel, PaintsRunsOfNoStepsAndOfOne) {
  for (const View view : {View::overview, View::timeline}) {
    const Shown none(run_of_steps(0), view);
    const QImage image = none.picture(*none.panel);
    QImage blank(image.size(), image.format());
    blank.fill(none.scene.theme->card);
    EXPECT_FALSE(image == blank);  // a text states that there are no steps
    Shown one(run_of_steps(1), view);
    one.cursor.step();
    EXPECT_EQ(one.panel->hit(one.on_step(0), one.body(), one.scene), of_step(StepIdx{0}));
    EXPECT_FALSE(one.picture(*one.panel) == image);
  }
}

TEST(TimelinePanel, HoveringPaintsALineAndAReadoutOverTheBase) {
  Shown shown(gallery_run("preemption"));
  shown.cursor.seek_row(5);
  const QImage before = shown.picture(*shown.panel);
  shown.scene.hovered = of_block(BlockIdx{3});
  EXPECT_TRUE(shown.picture(*shown.panel) == before) << "a block is not on the timeline";
  shown.scene.hovered = of_step(StepIdx{1'000'000});
  EXPECT_TRUE(shown.picture(*shown.panel) == before) << "nor is a step the run does not have";
  shown.scene.hovered = of_step(StepIdx{30});
  const QImage hovered = shown.picture(*shown.panel);
  const int x = qRound(shown.prepared().layout.axis.x(30));
  int changed = 0;
  for (int y = 0; y < hovered.height(); ++y) {
    changed += hovered.pixel(x, y) != before.pixel(x, y) || hovered.pixel(x - 1, y) != before.pixel(x - 1, y) ? 1 : 0;
  }
  EXPECT_GE(changed, qRound(shown.prepared().layout.shares.height()) - 3);
}

// Regression: the line of the step crossed "486 evictions". Marks are drawn over the line, and the rest of the line
// stays visible.
TEST(TimelinePanel, ALineDoesNotStrikeOutMarksOrTheirNumbers) {
  Shown shown(gallery_run("real_traffic_slice"));
  const QImage before = shown.picture(*shown.panel);
  const PreparedTimeline& p = shown.prepared();
  const QRectF lane = p.layout.lanes[at(Mark::eviction)];
  ASSERT_FALSE(lane.isEmpty());
  const auto changed = [&](const QImage& image, double x) {
    int found = 0;
    for (int y = qRound(lane.top()) + 1; y < qRound(lane.bottom()) - 1; ++y) {
      found += image.pixel(static_cast<int>(x), y) != before.pixel(static_cast<int>(x), y) ? 1 : 0;
    }
    return found;
  };
  int crossed = 0, free = 0;
  for (const MarkGroup& group : p.groups[at(Mark::eviction)]) {
    const double glyph = shown.scene.px(kGlyph);
    for (std::int64_t index = group.first; index <= group.last; ++index) {
      const double x = p.layout.axis.x(index);
      const bool over = x > group.x - glyph / 2 && x < group.x - glyph / 2 + group.width;
      if (!over && std::abs(x - group.x) < group.width + 12) continue;  // beside it: near one of the two
      bool near_another = false;
      for (const MarkGroup& other : p.groups[at(Mark::eviction)]) {
        near_another = near_another || (other != group && std::abs(x - other.x) < other.width + 12);
      }
      if (near_another || (over ? crossed : free) > 3) continue;
      (over ? crossed : free) += 1;
      shown.cursor.seek_row(index + 1);
      const QImage image = shown.picture(*shown.panel);
      if (!over) {
        EXPECT_GT(changed(image, x), 3) << index;
        continue;
      }
      const QRect mark = QRectF(group.x - glyph / 2, lane.top() + 1, group.width, lane.height() - 2).toRect();
      EXPECT_TRUE(image.copy(mark) == before.copy(mark)) << index;
    }
  }
  EXPECT_GT(crossed, 0);
  EXPECT_GT(free, 0);
}

// --- pointing and moving ---------------------------------------------------------------------------------------------

// The steps of a trace may begin at 17: the selection has the step's number, not its index.
TEST(TimelinePanel, FindsStepsByTheirNumbers) {
  Shown shown(run_of_steps(50, 17));
  EXPECT_EQ(shown.panel->hit(shown.on_step(0), shown.body(), shown.scene), of_step(StepIdx{17}));
  EXPECT_EQ(shown.panel->hit(shown.on_step(49), shown.body(), shown.scene), of_step(StepIdx{66}));
  EXPECT_TRUE(shown.panel->hit(shown.body().topLeft() + QPointF(1, 40), shown.body(), shown.scene).none());
}

TEST(TimelinePanel, ArrowsGoStepByStepAndFromMarkToMark) {
  Shown shown(gallery_run("preemption"));
  const Timeline& timeline = shown.cursor.run().timeline();
  const std::int64_t marked = first_marked(timeline, Mark::preemption);
  ASSERT_GT(marked, 1);
  const auto moved = [&](std::int64_t from, Move move) {
    return shown.panel->moved(of_step(StepIdx{from}), move, shown.body(), shown.scene).step.value;
  };
  const std::int64_t last = timeline.steps() - 1;
  EXPECT_EQ(moved(5, Move::left), 4);
  EXPECT_EQ(moved(5, Move::right), 6);
  EXPECT_EQ(moved(0, Move::left), 0);
  EXPECT_EQ(moved(last, Move::right), last);
  EXPECT_EQ(moved(5, Move::first), 0);
  EXPECT_EQ(moved(5, Move::last), last);
  EXPECT_EQ(moved(0, Move::down), marked);
  EXPECT_EQ(moved(marked + 1, Move::up), marked);
  EXPECT_EQ(moved(marked, Move::up), marked) << "no earlier mark: no move";
  shown.cursor.seek_row(8);
  EXPECT_EQ(shown.panel->moved({}, Move::right, shown.body(), shown.scene), of_step(StepIdx{7}))
      << "without a selection: the current step";
}

TEST(TimelinePanel, ZoomsAroundThePointAndRevealsSteps) {
  Shown shown(run_of_steps(2000));
  Viewport& viewport = shown.scene.viewport[static_cast<std::size_t>(PanelId::timeline)];
  const QPointF at = shown.on_step(700);
  viewport = shown.panel->zoomed(20, at, shown.body(), shown.scene);
  EXPECT_EQ(shown.panel->hit(at, shown.body(), shown.scene), of_step(StepIdx{700}));
  viewport = shown.panel->revealing(of_step(StepIdx{3}), shown.body(), shown.scene);
  const StepAxis& axis = shown.prepared().layout.axis;
  EXPECT_GE(axis.x(3), axis.left);
  EXPECT_LE(axis.x(3), axis.right());
  EXPECT_EQ(shown.panel->revealing(of_block(BlockIdx{3}), shown.body(), shown.scene), viewport);
  const double offset = viewport.offset.x();
  EXPECT_DOUBLE_EQ(shown.panel->scrolled({25, 99}, shown.body(), shown.scene).offset.x(), offset + 25);
  viewport = shown.panel->zoomed(1e-6, at, shown.body(), shown.scene);
  EXPECT_EQ(viewport, Viewport{});
}

// --- for screen readers ----------------------------------------------------------------------------------------------

TEST(TimelinePanel, NamesItsCurvesWithTheirValuesAndItsMarks) {
  Shown shown(gallery_run("preemption"));
  const Timeline& timeline = shown.cursor.run().timeline();
  const std::int64_t marked = first_marked(timeline, Mark::preemption);
  shown.cursor.seek_row(marked + 1);
  const std::vector<PanelCell> cells = shown.panel->cells(shown.body(), shown.scene, 100);
  std::vector<std::string> names;
  for (const PanelCell& cell : cells) {
    names.push_back(cell.name.toStdString());
    EXPECT_TRUE(shown.body().adjusted(-5, 0, 5, 0).contains(cell.rect)) << names.back();
    EXPECT_EQ(cell.object.kind, Selection::Kind::step);
  }
  const auto at = static_cast<std::size_t>(marked);
  EXPECT_EQ(names[0], "utilization, " +
                          value_text(Series::utilization, timeline[Series::utilization][at]).toStdString() +
                          " at step " + std::to_string(marked));
  EXPECT_THAT(names, Contains("1 preemption in step " + std::to_string(marked)));
  EXPECT_EQ(shown.panel->cells(shown.body(), shown.scene, 3).size(), 3U);
  const Shown none(run_of_steps(0));
  EXPECT_TRUE(none.panel->cells(none.body(), none.scene, 100).empty());
}

// Regression: beside values of the current step the legend read "preemptions 5" at step 0, the count of the whole run.
TEST(TimelinePanel, TheLegendCountsMarksUpToThePosition) {
  Shown shown(gallery_run("preemption"));
  const auto legend = [&](std::int64_t row) {
    shown.cursor.seek_row(row);
    TextDevice device(kOwn);
    QPainter painter(&device);
    shown.panel->paint_footer(painter, shown.footer(), shown.scene);
    painter.end();
    std::vector<std::string> texts;
    for (const DrawnText& text : device.texts()) texts.push_back(text.text.toStdString());
    return texts;
  };
  EXPECT_THAT(legend(0), Contains("0 of 5"));
  EXPECT_THAT(legend(1), Contains("0 of 5"));
  EXPECT_THAT(legend(4), Contains("1 of 5"));
  EXPECT_THAT(legend(47), Contains("5 of 5"));
}

// Every mark of the run is counted exactly once: merged glyphs have their number and their steps in their names.
TEST(TimelinePanel, CountsEveryMarkOnce) {
  Shown shown(gallery_run("parallel_samples"), View::timeline);
  const Timeline& timeline = shown.cursor.run().timeline();
  const std::int64_t copies =
      std::accumulate(timeline[Mark::copy].begin(), timeline[Mark::copy].end(), std::int64_t{0});
  ASSERT_GT(copies, 0);
  std::int64_t said = 0;
  for (const PanelCell& cell : shown.panel->cells(shown.body(), shown.scene, 1000)) {
    const QStringList words = cell.name.split(QLatin1Char(' '));
    if (words.size() > 1 && words[1].startsWith(QStringLiteral("cop"))) said += words[0].toInt();
  }
  EXPECT_EQ(said, copies);
}

}  // namespace
}  // namespace kvscope::viz::timeline_panel_test
