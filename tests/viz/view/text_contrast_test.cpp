// Every text of every view, in every theme, against the pixels around its letters: WCAG 2 asks for 4.5:1. The theme's
// own test compares colors that are meant for each other; this one finds the ink that was chosen for another ground.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include <QtCore/QRegularExpression>

#include "tests/viz/view/drawn_texts.h"
#include "tests/viz/view/staged_step.h"
#include "viz/view/cell_paint.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::text_contrast_test {
namespace {

constexpr double kReadable = 4.5;

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
std::map<std::string, double> faint_texts(StagedStep& shown, QSizeF room) {
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
    StagedStep shown(of.name, of.step, of.path);
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
