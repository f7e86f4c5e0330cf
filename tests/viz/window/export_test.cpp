#include "viz/window/export.h"

#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>

#include <QtCore/QTemporaryDir>
#include <QtCore/QXmlStreamReader>
#include <QtGui/QImageReader>

#include "core/base/errors.h"
#include "tests/viz/view/runs.h"
#include "viz/view/paint_board.h"

namespace kvscope::viz::export_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class Export : public testing::Test {
 protected:
  [[nodiscard]] fs::path file(const std::string& name) const { return fs::path(dir_.path().toStdString()) / name; }
  void write(const std::string& name, const Picture& picture, const FrameProgress& progress = {}) const {
    write_picture(QString::fromStdString(file(name).string()), run_, picture, progress);
  }
  [[nodiscard]] std::string bytes(const std::string& name) const {
    std::ifstream stream(file(name), std::ios::binary);
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(dir_.path().toStdString())) {
      names.push_back(entry.path().filename().string());
    }
    return names;
  }
  [[nodiscard]] Picture at_row(std::int64_t row) const {
    Picture picture;
    picture.size = {1200, 900};  // large enough for all panels
    picture.position = run_->end_of_row(row);
    return picture;
  }
  // Painted here instead of by the code under test.
  [[nodiscard]] QImage painted(const Picture& picture) const {
    Cursor cursor(run_);
    cursor.seek(picture.position);
    Scene scene;
    scene.cursor = &cursor;
    scene.theme = &theme(picture.theme);
    scene.view = picture.view;
    scene.font_scale = picture.font_scale;
    scene.viewport = picture.viewport;
    scene.pinned = picture.selection;
    scene.pinned_lit = resolve(cursor.state(), run_->facts(), picture.selection);
    return board_image(size_of(picture), picture.scale, make_panels(), scene).convertToFormat(QImage::Format_RGB32);
  }
  // Fault lines with the folder cut off.
  [[nodiscard]] std::vector<std::string> faults(const std::string& name, const Picture& picture) const {
    try {
      write(name, picture);
    } catch (const InputError& error) {
      std::vector<std::string> lines = fault_lines(error);
      for (std::string& line : lines) {
        EXPECT_EQ(line.find(file(name).string()), 0u);
        line.erase(0, file(name).string().size() - name.size());
      }
      return lines;
    }
    return {};
  }

  QTemporaryDir dir_;
  std::shared_ptr<const viz::Run> run_ = gallery_run("first_light");  // testing::Test has a member Run
};

TEST_F(Export, TheExtensionSelectsTheFormatIgnoringCase) {
  EXPECT_EQ(picture_format(QStringLiteral("a/b.png")), PictureFormat::png);
  EXPECT_EQ(picture_format(QStringLiteral("b.SVG")), PictureFormat::svg);
  EXPECT_EQ(picture_format(QStringLiteral("b.c.Pdf")), PictureFormat::pdf);
  EXPECT_EQ(picture_format(QStringLiteral("b.gif")), PictureFormat::gif);
  for (const char* name : {"b.jpg", "png", "b.png.txt", "", "b.", "a.png/b"}) {
    EXPECT_FALSE(picture_format(QString::fromLatin1(name))) << name;
  }
}

// Every setting is changed alone: a setting that does not reach the scene would give an equal picture.
TEST_F(Export, APngIsWhatTheBoardPaintsPixelForPixel) {
  std::vector<Picture> pictures(9, at_row(7));
  pictures[1].view = View::pool;
  pictures[2].size = {900, 500};
  pictures[3].scale = 2;
  pictures[4].theme = ThemeKind::light;
  pictures[5].font_scale = 1.5;
  pictures[6].selection = of_token(SeqIdx{3}, TokIdx{37});
  pictures[7].viewport[static_cast<std::size_t>(PanelId::pool)] = {80, {30, 20}};
  pictures[8].position = Position{57};
  std::vector<QImage> read;
  for (const Picture& picture : pictures) {
    write("a.png", picture);
    const QImage image = QImage(QString::fromStdString(file("a.png").string())).convertToFormat(QImage::Format_RGB32);
    EXPECT_EQ(image.size(), (QSizeF(size_of(picture)) * picture.scale).toSize());
    EXPECT_EQ(image, painted(picture));
    EXPECT_THAT(read, Not(Contains(image))) << "a setting that changes nothing";
    read.push_back(image);
  }
}

TEST_F(Export, AGifHasAFrameForEachRowAndEachIsWhatTheBoardPaints) {
  Picture picture = at_row(3);
  picture.selection = of_sequence(SeqIdx{1});
  picture.last_row = 9;
  picture.frames_per_second = 5;
  std::vector<std::int64_t> told;
  write("film.gif", picture, [&](std::int64_t done, std::int64_t all) {
    EXPECT_EQ(all, 7);
    told.push_back(done);
    return true;
  });
  EXPECT_THAT(told, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  QImageReader reader(QString::fromStdString(file("film.gif").string()));
  for (std::int64_t row = 3; row <= 9; ++row) {
    const QImage frame = reader.read().convertToFormat(QImage::Format_RGB32);
    ASSERT_FALSE(frame.isNull()) << row;
    EXPECT_EQ(reader.nextImageDelay(), 200);
    Picture still = picture;
    still.position = run_->end_of_row(row);
    const QImage expected = painted(still);
    ASSERT_EQ(frame.size(), expected.size());
    std::int64_t off = 0, sum = 0;
    for (int y = 0; y < frame.height(); ++y) {
      for (int x = 0; x < frame.width(); ++x) {
        const QRgb a = frame.pixel(x, y), b = expected.pixel(x, y);
        const int d =
            std::max({std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)), std::abs(qBlue(a) - qBlue(b))});
        off += d > 40 ? 1 : 0;
        sum += d;
      }
    }
    // Only blended colors at edges may be replaced by a similar color; a frame of another row would differ in thousands
    // of pixels.
    EXPECT_LE(off, frame.width() * frame.height() / 500) << "row " << row;
    EXPECT_LE(sum, std::int64_t{frame.width()} * frame.height() / 2) << "row " << row;
  }
  EXPECT_TRUE(reader.read().isNull());
}

// Larger text may make the picture higher than was asked for: the pictures of the motion have that height, too.
TEST_F(Export, AGifWithMotionHasFramesOfOneSizeAtALargerTextSize) {
  Picture picture = at_row(1);
  picture.size = {900, 600};
  picture.font_scale = 1.6;
  picture.last_row = 3;
  picture.motion = true;
  write("motion.gif", picture);
  QImageReader reader(QString::fromStdString(file("motion.gif").string()));
  std::int64_t frames = 0;
  for (QImage frame = reader.read(); !frame.isNull(); frame = reader.read()) {
    EXPECT_EQ(frame.width(), 900);
    EXPECT_GT(frame.height(), 600);
    ++frames;
  }
  EXPECT_GT(frames, 3);
}

TEST_F(Export, AGifWithoutALastRowIsOneFrame) {
  write("still.gif", at_row(4));
  QImageReader reader(QString::fromStdString(file("still.gif").string()));
  EXPECT_FALSE(reader.read().isNull());
  EXPECT_TRUE(reader.read().isNull());
}

TEST_F(Export, AnSvgHasTheWordsAndNothingOutsideItself) {
  write("a.svg", at_row(7));
  QXmlStreamReader reader(QByteArray::fromStdString(bytes("a.svg")));
  std::vector<std::string> texts;
  std::string title;
  while (!reader.atEnd()) {
    if (reader.readNext() != QXmlStreamReader::StartElement) continue;
    const QString name = reader.name().toString();
    EXPECT_THAT((std::vector<std::string>{"svg", "title", "g", "rect", "path", "text", "ellipse", "polygon", "polyline",
                                          "clipPath", "image"}),
                Contains(name.toStdString()));
    const QString href = reader.attributes().value(QLatin1String("href")).toString();
    EXPECT_TRUE(href.isEmpty() || href.startsWith(QLatin1String("data:image/png;base64,")));
    if (name == QLatin1String("text")) texts.push_back(reader.readElementText().toStdString());
    if (name == QLatin1String("title")) title = reader.readElementText().toStdString();
  }
  EXPECT_FALSE(reader.hasError()) << reader.errorString().toStdString();
  EXPECT_EQ(title, "First light, step 6");
  for (const char* text :
       {"First light", "Sequences", "Block pool", "Lookup table", "Timeline", "seq 0", "seq 4", "31"}) {
    EXPECT_THAT(texts, Contains(text));
  }
}

TEST_F(Export, APdfIsOnePageOfTheBoardsSizeWithItsFontsInIt) {
  write("a.pdf", at_row(7));
  const std::string pdf = bytes("a.pdf");
  EXPECT_THAT(pdf, HasSubstr("/Count 1\n"));
  EXPECT_THAT(pdf, HasSubstr("/MediaBox [0 0 1200.000000 900.000000]"));
  EXPECT_THAT(pdf, Not(HasSubstr("CreationDate")));
  const auto count = [&](const std::string& what) {
    std::int64_t n = 0;
    for (std::size_t at = pdf.find(what); at != std::string::npos; at = pdf.find(what, at + 1)) ++n;
    return n;
  };
  EXPECT_GE(count("/FontDescriptor "), 2);
  EXPECT_EQ(count("/Type /FontDescriptor"), count("/FontFile2 "));
  EXPECT_EQ(count("/Subtype /Image"), 0) << "a picture of cells has no pixels";
}

TEST_F(Export, TheSamePictureIsTheSameBytes) {
  Picture picture = at_row(7);
  picture.selection = of_block(BlockIdx{2});
  for (const std::string ending : {".png", ".svg", ".pdf", ".gif"}) {
    write("a" + ending, picture);
    write("b" + ending, picture);
    EXPECT_EQ(bytes("a" + ending), bytes("b" + ending)) << ending;
    EXPECT_GT(bytes("a" + ending).size(), 5000u);
  }
}

TEST_F(Export, EveryFaultIsNamedAtOnceWithWhatToDo) {
  Picture picture = at_row(7);
  picture.size = {10, 20'000};
  picture.scale = 2;
  EXPECT_THAT(faults("a.bmp", picture),
              ElementsAre("a.bmp: the extension is not that of a picture format: use .png, .svg, .pdf or .gif",
                          "a.bmp: a width of 20 px is outside [64, 16384]: choose another size or scale",
                          "a.bmp: a height of 40000 px is outside [64, 16384]: choose another size or scale"));
  picture = at_row(7);
  picture.last_row = 9;
  EXPECT_THAT(faults("a.svg", picture),
              ElementsAre("a.svg: steps 6 to 8 are 3 pictures, and a .svg file holds one: write a .gif"));
  picture.last_row = 6;
  picture.frames_per_second = 51;
  EXPECT_THAT(faults("a.gif", picture),
              ElementsAre("a.gif: the last step, 5, comes before the first, 6: give the first one first",
                          "a.gif: 51 frames per second is outside [0.1, 50]"));
  picture = at_row(7);
  picture.scale = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(faults("a.png", picture).size(), 2u);
  picture = at_row(7);
  picture.last_row = run_->facts().rows;
  EXPECT_THROW(write("a.gif", picture), IndexError);
  EXPECT_THAT(files(), IsEmpty());
}

// The flow and the errors are those of one step: frames of other steps would show them beside another cache.
TEST_F(Export, SeveralStepsOfTheAttentionViewAreAFault) {
  Picture picture = at_row(2);
  picture.view = View::attention;
  picture.last_row = 4;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre(::testing::HasSubstr("the attention view shows one step")));
  picture.last_row = 2;
  EXPECT_TRUE(faults("a.gif", picture).empty());
}

TEST_F(Export, AMissingFolderIsReportedForEveryFormat) {
  for (const std::string name : {"no/a.png", "no/a.svg", "no/a.pdf", "no/a.gif"}) {
    EXPECT_THAT(faults(name, at_row(7)), ElementsAre(name + ": cannot be written: No such file or directory"));
  }
}

// The old file stays unchanged, and no partial new file is left.
TEST_F(Export, ACancelledFilmLeavesNothingBehind) {
  Picture picture = at_row(1);
  write("film.gif", picture);
  const std::string before = bytes("film.gif");
  picture.last_row = 20;
  EXPECT_THROW(write("film.gif", picture, [](std::int64_t done, std::int64_t) { return done < 4; }), Cancelled);
  EXPECT_EQ(bytes("film.gif"), before);
  EXPECT_THAT(files(), ElementsAre("film.gif"));
}

}  // namespace
}  // namespace kvscope::viz::export_test
