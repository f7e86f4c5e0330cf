// Every text of every view, in every theme, against the pixels around its letters: WCAG 2 asks for 4.5:1. The theme's
// own test compares colors that are meant for each other; this one finds the ink that was chosen for another ground.
#include <gmock/gmock.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <QtCore/QRegularExpression>

#include "core/staging/focus.h"
#include "core/staging/staging_events.h"
#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/runs.h"
#include "viz/view/cell_paint.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::text_contrast_test {
namespace {

constexpr double kReadable = 4.5;

struct Shown {
  std::shared_ptr<const Run> run;
  Cursor cursor;
  std::shared_ptr<const Tile> tile;
  TileState now;
  Panels panels = make_panels();
  Scene scene;

  Shown(const std::string& name, std::int64_t step, StagingPath path) : run(gallery_run(name)), cursor(run) {
    cursor.seek_row(step + 1);
    const Scenario& scenario = *run->facts().scenario;
    const std::filesystem::path folder = std::filesystem::path(KVSCOPE_SOURCE_DIR) / "apps" / "scenarios";
    TileQuestion question;
    question.path = path;
    trace::MemoryRecorder recorder;
    record_tile(scenario, kvscope::state_at(scenario, make_requests(scenario, folder), StepIdx{step}).cache, question,
                recorder);
    tile = std::make_shared<const Tile>(fold_tile(recorder.events()));
    stand(tile->events);
    scene.cursor = &cursor;
    scene.theme = &theme(ThemeKind::dark);
    scene.tile = tile.get();
    scene.tile_now = &now;
  }
  void stand(std::int64_t event) { now = tile_state(*tile, event); }
  void pin(const Selection& selection) {
    scene.pinned = selection;
    scene.pinned_lit = resolve(scene.state(), scene.facts(), scene.tile, selection);
  }
};

// The color that is most frequent between the letters and `by` pixels around them, other than theirs.
QColor ground_of(const QImage& image, const DrawnText& text, int by) {
  std::map<QRgb, int> count;
  const QRect around = text.seen.toAlignedRect().adjusted(-by, -by, by, by).intersected(image.rect());
  for (int y = around.top(); y <= around.bottom(); ++y) {
    for (int x = around.left(); x <= around.right(); ++x) {
      if (image.pixel(x, y) != text.color.rgb()) ++count[image.pixel(x, y)];
    }
  }
  const auto most = std::ranges::max_element(count, {}, [](const auto& color) { return color.second; });
  return most == count.end() ? text.color : QColor(most->first);
}

// Labels of blocks may cross the edge of the part that holds tokens. Letters over the wrong part have a rim in the color
// of the empty part around them, which is what they have to read on.       // held by tests/viz/view/cell_paint_test.cpp
bool has_rim(const DrawnText& text, const Theme& theme) {
  static const QRegularExpression kLabel(QStringLiteral("^s([0-9]+) p[0-9]+$"));
  const QRegularExpressionMatch match = kLabel.match(text.text);
  return match.hasMatch() &&
         contrast(text.color, look_empty(theme, owner_look(match.captured(1).toLongLong()))) >= kReadable;
}

// Every text that is too faint, once: "64 on page 4 (#…) 3.9".
std::map<std::string, double> faint_texts(Shown& shown, QSizeF room) {
  const QSizeF size = whole_size(shown.scene.view, room, shown.scene.font_scale);
  QImage image(size.toSize(), QImage::Format_RGB32);
  {
    QPainter painter(&image);
    paint_board(painter, size, shown.panels, shown.scene);
  }
  TextDevice device(size.toSize());
  QPainter painter(&device);
  paint_board(painter, size, shown.panels, shown.scene);
  painter.end();
  EXPECT_GT(device.texts().size(), 20u);
  std::map<std::string, double> faint;
  for (const DrawnText& text : device.texts()) {
    if (text.color.alpha() < 255 || text.seen.width() < 2 || text.seen.height() < 2) continue;
    // Between the letters a hatch may be more frequent than the ground, around them an outline.
    const QColor ground = ground_of(image, text, 0);
    const double now = has_rim(text, *shown.scene.theme)
                           ? kReadable
                           : std::max(contrast(text.color, ground), contrast(text.color, ground_of(image, text, 1)));
    if (now >= kReadable) continue;
    faint.emplace("'" + text.text.toStdString() + "' at " + std::to_string(static_cast<int>(text.rect.left())) + ' ' +
                      std::to_string(static_cast<int>(text.rect.top())) + ", " + text.color.name().toStdString() +
                      " on " + ground.name().toStdString(),
                  now);
  }
  return faint;
}

struct Case {
  const char* name;
  std::int64_t step;
  StagingPath path;
  std::int64_t seq, token;
};
const std::vector<Case> kCases{{"first_light", 6, StagingPath::tma, 3, 37},
                               {"preemption", 3, StagingPath::tma, 1, 16},
                               {"quantized_e4m3", 1, StagingPath::tma, 0, 17},
                               {"mla", 2, StagingPath::tma, 0, 40},
                               {"tile_through_lds", 0, StagingPath::lds, 0, 3}};

TEST(TextContrast, EveryTextReadsOnWhatIsUnderIt) {
  for (const Case& of : kCases) {
    Shown shown(of.name, of.step, of.path);
    for (const View view : kViews) {
      shown.scene.view = view;
      for (const ThemeKind kind : kThemeKinds) {
        shown.scene.theme = &theme(kind);
        for (const bool pinned : {false, true}) {
          pinned ? shown.pin(of_token(SeqIdx{of.seq}, TokIdx{of.token})) : shown.pin({});
          for (const std::int64_t event : {shown.tile->events / 4, shown.tile->events}) {
            if (view != View::tile && event != shown.tile->events) continue;
            shown.stand(event);
            for (const auto& [text, now] : faint_texts(shown, {1600, 1000})) {
              ADD_FAILURE() << of.name << ' ' << name(view) << ", theme " << static_cast<int>(kind)
                            << (pinned ? ", pinned" : "") << ": " << text << ": " << now;
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::text_contrast_test
