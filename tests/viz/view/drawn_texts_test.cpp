// Every text of every view, at the size of a projector and in small windows: what does not fit is left out or cut
// between words, texts do not cover one another, and amounts have one form.
#include "tests/viz/view/drawn_texts.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <string>
#include <vector>

#include <QtCore/QRegularExpression>

#include "tests/viz/view/staged_step.h"
#include "viz/playback/happened.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::drawn_texts_test {
namespace {

struct Shown : StagedStep {
  using StagedStep::StagedStep;

  [[nodiscard]] std::vector<DrawnText> texts(QSizeF room, bool base = false) const {
    const QSizeF size = whole_size(scene.view, room, scene.font_scale);
    TextDevice device(size.toSize());
    QPainter painter(&device);
    base ? paint_board_base(painter, size, panels, scene) : paint_board(painter, size, panels, scene);
    painter.end();
    return device.texts();
  }
};

struct Case {
  const char* name;
  std::int64_t step;
  StagingPath path;
};
const std::vector<Case> kCases{{"first_light", 6, StagingPath::tma},         {"mla", 2, StagingPath::tma},
                               {"quantized_e4m3", 1, StagingPath::tma},      {"gather_sparse", 20, StagingPath::tma},
                               {"tile_through_lds", 0, StagingPath::lds},    {"continuous", 31, StagingPath::tma},
                               {"lds_missing_barrier", 4, StagingPath::lds}, {"mla_rope", 4, StagingPath::tma}};
const std::vector<QSizeF> kSizes{{1600, 1000}, {1280, 720}, {1000, 640}};

std::string where(const Case& of, View view, QSizeF size, const DrawnText& text) {
  return std::string(of.name) + ' ' + std::string(name(view)) + ' ' + std::to_string(static_cast<int>(size.width())) +
         ": " + text.text.toStdString() + " at " + std::to_string(text.rect.left()) + ' ' +
         std::to_string(text.rect.top());
}

// Regression: "9 of 9 boxes issued, 73 728 of 73 728 B land…", "rows 299008–2…" and "2064 · 16 · …": a number that is
// cut is another number.
TEST(DrawnTexts, AreCutBetweenWordsAndNeverInANumber) {
  const QRegularExpression cut(QStringLiteral("[^ ]…"));
  for (const Case& of : kCases) {
    Shown shown(of.name, of.step, of.path);
    std::size_t seen = 0;
    for (const View view : kViews) {
      shown.scene.view = view;
      for (const QSizeF size : kSizes) {
        for (const std::int64_t event : {shown.tile->events / 4, shown.tile->events}) {
          shown.stand(event);
          for (const DrawnText& text : shown.texts(size)) {
            ++seen;
            EXPECT_FALSE(cut.match(text.text).hasMatch()) << where(of, view, size, text);
          }
        }
      }
    }
    EXPECT_GT(seen, 1000u) << of.name;
  }
}

// At the size of a picture of the pages each panel of a tile has room for its words.
TEST(DrawnTexts, OfATileFitAtTheUsualSize) {
  for (const Case& of : kCases) {
    Shown shown(of.name, of.step, of.path);
    shown.scene.view = View::tile;
    for (const DrawnText& text : shown.texts({1600, 1000})) {
      EXPECT_FALSE(text.text.contains(QChar(u'…'))) << where(of, View::tile, {1600, 1000}, text);
    }
  }
}

// Regression: the header wrote "73728 B", the panel below it "73 728 B", and the scenario's note "73,728 bytes".
TEST(DrawnTexts, BytesHaveTheFormOfReportsAndNotes) {
  const QRegularExpression plain(QStringLiteral("[0-9]{4,} B\\b|[0-9][ \\x{202F}][0-9]{3} B\\b"));
  const QRegularExpression grouped_bytes(QStringLiteral("[0-9],[0-9]{3} B\\b"));
  for (const Case& of : kCases) {
    Shown shown(of.name, of.step, of.path);
    shown.scene.view = View::tile;
    for (std::size_t n = 0; n < shown.tile->actions.size(); n += shown.tile->actions.size() / 12 + 1) {
      shown.stand(shown.tile->actions[n].end);
      QStringList texts{QString::fromStdString(what_happened(*shown.tile, shown.now))};
      for (const DrawnText& text : shown.texts({1600, 1000})) texts << text.text;
      for (const auto& panel : shown.panels) texts << panel->summary(shown.scene);
      EXPECT_TRUE(texts.filter(plain).isEmpty()) << of.name << ": " << texts.filter(plain).join(u'|').toStdString();
    }
    shown.stand(shown.tile->events);
    if (std::string_view(of.name) != "mla") continue;
    QStringList texts;
    for (const DrawnText& text : shown.texts({1600, 1000})) texts << text.text;
    EXPECT_GE(texts.filter(grouped_bytes).size(), 2);
  }
}

// Panels whose content can be higher than they are: it is cut where it is scrolled.
bool scrolls(PanelId panel) {
  return panel == PanelId::sequences || panel == PanelId::pool || panel == PanelId::table;
}

// Regression: the last line of a block's label was cut in half by the edge of the card's content.
TEST(DrawnTexts, CrossNoEdgeOfTheirCard) {
  for (const Case& of : kCases) {
    Shown shown(of.name, of.step, of.path);
    for (const View view : kViews) {
      shown.scene.view = view;
      for (const double font : {1.0, 1.5}) {
        shown.scene.font_scale = font;
        for (const QSizeF room : kSizes) {
          const std::vector<Place> places = board(view, whole_size(view, room, font), font);
          for (const DrawnText& text : shown.texts(room, true)) {
            const auto card = std::ranges::find_if(
                places, [&](const Place& place) { return place.card.contains(text.rect.center()); });
            ASSERT_NE(card, places.end()) << where(of, view, room, text);
            if (scrolls(card->panel)) continue;
            EXPECT_TRUE(card->card.adjusted(-1, -1, 1, 1).contains(text.rect)) << where(of, view, room, text);
            const double edge = card->body.bottom();
            if (card->footer.isEmpty()) continue;
            EXPECT_FALSE(text.rect.top() < edge - 1 && text.rect.bottom() > edge + 1) << where(of, view, room, text);
          }
        }
      }
    }
  }
}

// Regression: "boxes: 9" over nine bars with gaps was dark on dark in the gaps of a low lane.
TEST(DrawnTexts, OverSeveralBarsHaveOneGround) {
  Shown shown("mla", 2, StagingPath::tma);
  shown.scene.view = View::tile;
  for (const QSizeF room : {QSizeF(1600, 1000), QSizeF(1366, 768)}) {
    int found = 0;
    const QSizeF size = whole_size(View::tile, room, 1);
    QImage image(size.toSize(), QImage::Format_RGB32);
    QPainter painter(&image);
    paint_board_base(painter, size, shown.panels, shown.scene);
    painter.end();
    for (const DrawnText& text : shown.texts(room, true)) {
      if (text.text != QStringLiteral("boxes: 9")) continue;
      ++found;
      for (int x = static_cast<int>(text.rect.left()); x < text.rect.right(); ++x) {
        EXPECT_NE(image.pixel(x, static_cast<int>(text.rect.top()) - 1), shown.scene.theme->card.rgb()) << x;
        EXPECT_NE(image.pixel(x, static_cast<int>(text.rect.bottom())), shown.scene.theme->card.rgb()) << x;
      }
    }
    EXPECT_GE(found, 1);
  }
}

// Texts of the resting picture: the overlay writes again over what it highlights.
TEST(DrawnTexts, DoNotCoverOneAnother) {
  std::vector<std::pair<QSizeF, double>> sizes_and_fonts;
  for (const QSizeF size : kSizes) {
    for (const double font : {1.0, 1.5, 2.0}) sizes_and_fonts.emplace_back(size, font);
  }
  for (const Case& of : kCases) {
    Shown shown(of.name, of.step, of.path);
    for (const View view : kViews) {
      shown.scene.view = view;
      for (const auto& [size, font] : sizes_and_fonts) {
        shown.scene.font_scale = font;
        std::vector<DrawnText> texts = shown.texts(size, true);
        std::ranges::sort(texts, {}, [](const DrawnText& text) { return text.seen.left(); });
        for (std::size_t n = 0; n < texts.size(); ++n) {
          for (std::size_t other = n + 1; other < texts.size(); ++other) {
            if (texts[other].seen.left() > texts[n].seen.right() - 1) break;
            const QRectF both = texts[n].seen.intersected(texts[other].seen);
            EXPECT_FALSE(both.width() > 1 && both.height() > 1)
                << font << ": " << where(of, view, size, texts[n]) << " and " << texts[other].text.toStdString();
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::drawn_texts_test
