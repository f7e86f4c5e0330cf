// Large text: what each view writes at the usual text size, it writes at every larger size too. The oracle is the text
// of the SVG, which has each line of a picture as text.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>
#include <string>

#include <QtCore/QFile>
#include <QtCore/QRegularExpression>
#include <QtCore/QTemporaryDir>

#include "tests/viz/view/runs.h"
#include "viz/window/export.h"

namespace kvscope::viz::text_size_test {
namespace {

struct Case {
  const char* scenario;
  std::int64_t row;
  View view;
};

class TextSize : public testing::Test {
 protected:
  std::set<QString> texts(const Case& of, QSize size, double scale) {
    Picture picture;
    picture.view = of.view;
    picture.size = size;
    picture.font_scale = scale;
    const std::shared_ptr<const viz::Run> run = gallery_run(of.scenario);
    picture.position = run->end_of_row(of.row);
    const QString path = folder.filePath(QStringLiteral("a.svg"));
    write_picture(path, run, picture);
    QFile file(path);
    EXPECT_TRUE(file.open(QIODevice::ReadOnly));
    const QString svg = QString::fromUtf8(file.readAll());
    static const QRegularExpression kText(QStringLiteral("<text[^>]*>([^<]*)</text>"));
    std::set<QString> found;
    for (auto it = kText.globalMatch(svg); it.hasNext();) found.insert(it.next().captured(1));
    EXPECT_GT(found.size(), 10u);
    return found;
  }
  QTemporaryDir folder;
};

bool is_word(const QString& text) {
  return text.contains(QRegularExpression(QStringLiteral("[a-z]{3}")));
}

// Legends, titles, subtitles, names and sentences: no word is missing at 1.6 and 2.5 times the text size. A sentence
// may be on two lines; then both halves are there.
TEST_F(TextSize, LargerTextLeavesOutNoWord) {
  for (const Case& of : std::initializer_list<Case>{{"first_light", 7, View::overview},
                                                    {"first_light", 7, View::sequences},
                                                    {"first_light", 7, View::pool},
                                                    {"first_light", 7, View::timeline},
                                                    {"preemption", 4, View::overview},
                                                    {"preemption", 4, View::timeline}}) {
    const std::set<QString> usual = texts(of, {1600, 1000}, 1);
    for (const QSize size : {QSize(1600, 1000), QSize(1366, 768)}) {
      for (const double scale : {1.0, 1.6, 2.5}) {
        const std::set<QString> larger = texts(of, size, scale);
        QString all;
        for (const QString& text : larger) all += text + QLatin1Char('\n');
        for (const QString& text : usual) {
          if (!is_word(text)) continue;
          // Rows that do not fit are scrolled to; a bar beside them shows that there are more.
          if (text.startsWith(QStringLiteral("seq ")) || text.endsWith(QStringLiteral("tokens found in the cache")))
            continue;
          // A line that was divided: its first and its last word.
          const QStringList words = text.split(QLatin1Char(' '), Qt::SkipEmptyParts);
          const bool there = all.contains(text) || (words.size() > 6 && all.contains(words.first()) &&
                                                    (all.contains(words.last()) || all.contains(words[3])));
          EXPECT_TRUE(there) << of.scenario << ' ' << name(of.view) << ' ' << size.width() << " at " << scale << ": "
                             << text.toStdString();
        }
      }
    }
  }
}

// Text is never shortened to its dots.
TEST_F(TextSize, NoTextIsShortenedToNothing) {
  for (const View view : {View::overview, View::sequences, View::pool, View::timeline}) {
    for (const QSize size : {QSize(1600, 1000), QSize(1366, 768), QSize(920, 640), QSize(480, 320)}) {
      for (const double scale : {0.7, 1.0, 1.6, 2.5}) {
        for (const QString& text : texts({"preemption", 4, view}, size, scale)) {
          const QString start = text.trimmed();
          // Dots alone stand for entries of a legend; only the narrowest windows have no room for all of them.
          if (start == QString(QChar(0x2026)) && size.width() < 600 * std::max(scale, 1.0)) continue;
          EXPECT_FALSE(start.startsWith(QChar(0x2026))) << name(view) << ' ' << size.width() << " at " << scale;
        }
      }
    }
  }
}

// Numbers of cells: at a larger size a cell of the pool or the table keeps its number unless it is scrolled away, and
// no number is written smaller than the text size asks for.
TEST_F(TextSize, CellsKeepTheirNumbers) {
  const Case of{"first_light", 7, View::pool};
  for (const QSize size : {QSize(1600, 1000), QSize(1366, 768)}) {
    for (const double scale : {1.0, 1.6, 2.5}) {
      const std::set<QString> found = texts(of, size, scale);
      for (int block = 0; block < 8; ++block) EXPECT_TRUE(found.contains(QString::number(block))) << block << scale;
      EXPECT_TRUE(found.contains(QStringLiteral("s0 p5"))) << size.width() << " at " << scale;
    }
  }
}

}  // namespace
}  // namespace kvscope::viz::text_size_test
