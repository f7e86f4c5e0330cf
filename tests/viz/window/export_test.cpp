#include "viz/window/export.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <regex>

#include <QtCore/QElapsedTimer>
#include <QtCore/QProcess>
#include <QtCore/QStandardPaths>
#include <QtCore/QTemporaryDir>
#include <QtCore/QThread>
#include <QtCore/QXmlStreamReader>
#include <QtGui/QImageReader>

#include "core/base/errors.h"
#include "tests/viz/view/runs.h"
#include "viz/playback/run.h"
#include "viz/view/paint_board.h"
#include "viz/window/export_check.h"
#include "viz/window/film_writer.h"
#include "viz/window/video_writer.h"

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

  [[nodiscard]] std::int64_t frames_of(const std::string& name) const {
    QImageReader reader(QString::fromStdString(file(name).string()));
    std::int64_t frames = 0;
    while (!reader.read().isNull()) ++frames;
    return frames;
  }
  // Tiles of one key, each of which raises l by one.
  [[nodiscard]] static std::shared_ptr<const AttentionFlow> a_flow(std::int64_t tiles) {
    auto flow = std::make_shared<AttentionFlow>();
    flow->request.tile_keys = 1;
    flow->keys = tiles;
    for (std::int64_t n = 0; n < tiles; ++n) {
      const auto sum = static_cast<double>(n + 1);
      flow->tiles.push_back({n, n + 1, n == 0 ? -INFINITY : 0, 0, n == 0 ? 0.0 : 1.0, 1, sum, {sum * sum, -sum}});
    }
    const auto all = static_cast<double>(tiles);
    flow->o = flow->golden = {all, -1};
    flow->bound = {1e-6, 1e-6};
    return flow;
  }

  QTemporaryDir dir_;
  std::shared_ptr<const viz::Run> run_ = gallery_run("first_light");  // testing::Test has a member Run
};

TEST_F(Export, TheExtensionSelectsTheFormatIgnoringCase) {
  EXPECT_EQ(picture_format(QStringLiteral("a/b.png")), PictureFormat::png);
  EXPECT_EQ(picture_format(QStringLiteral("b.SVG")), PictureFormat::svg);
  EXPECT_EQ(picture_format(QStringLiteral("b.c.Pdf")), PictureFormat::pdf);
  EXPECT_EQ(picture_format(QStringLiteral("b.TikZ")), PictureFormat::tikz);
  EXPECT_EQ(picture_format(QStringLiteral("b.gif")), PictureFormat::gif);
  EXPECT_EQ(picture_format(QStringLiteral("b.WebM")), PictureFormat::webm);
  EXPECT_EQ(picture_format(QStringLiteral("b.mp4")), PictureFormat::mp4);
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

TEST_F(Export, ATikzOfMoreShapesThanLatexHoldsIsRejected) {
  write("a.tikz", at_row(7));
  EXPECT_THAT(bytes("a.tikz"), testing::AllOf(testing::StartsWith("% First light, step 6\n"), HasSubstr("{Block pool}}"),
                                              testing::EndsWith("\\end{tikzpicture}%\n")));
  run_ = gallery_run("page_size_fragmentation");
  Picture picture = at_row(9);
  picture.view = View::pool;
  picture.size = {2400, 1800};
  const std::vector<std::string> said = faults("b.tikz", picture);
  ASSERT_EQ(said.size(), 1u);
  EXPECT_THAT(said[0], testing::MatchesRegex("b.tikz: the picture has [0-9]+ shapes, more than the 8000 that fit into the "
                                             "memory of LaTeX: choose another view or a smaller size, or write a .pdf"));
  EXPECT_THAT(files(), ElementsAre("a.tikz"));
}

TEST_F(Export, TheSamePictureIsTheSameBytes) {
  Picture picture = at_row(7);
  picture.selection = of_block(BlockIdx{2});
  for (const std::string ending : {".png", ".svg", ".pdf", ".tikz", ".gif"}) {
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
              ElementsAre("a.bmp: the extension is not that of a picture format: use .png, .svg, .pdf, .tikz, "
                          ".gif, .webm or .mp4",
                          "a.bmp: a width of 20 px is outside [64, 16384]: choose another size or scale",
                          "a.bmp: a height of 40000 px is outside [64, 16384]: choose another size or scale"));
  picture = at_row(7);
  picture.last_row = 9;
  EXPECT_THAT(faults("a.svg", picture),
              ElementsAre("a.svg: steps 6 to 8 are 3 pictures, and a .svg file holds one: write a .gif, "
                          ".webm or .mp4"));
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
TEST_F(Export, SeveralStepsOfTheAttentionViewNeedTheFlowOfEach) {
  Picture picture = at_row(2);
  picture.view = View::attention;
  picture.last_row = 4;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre(::testing::HasSubstr("the flows of several steps")));
  picture.last_row = 2;
  EXPECT_TRUE(faults("a.gif", picture).empty());
  picture.last_row = 4;
  std::vector<std::int64_t> asked;
  picture.attention_of = [&](const State& state) {
    asked.push_back(state.step.value);
    return AttentionOfStep{a_flow(static_cast<std::int64_t>(asked.size())), {}, nullptr, QStringLiteral("none")};
  };
  EXPECT_TRUE(faults("a.gif", picture).empty());
  EXPECT_THAT(asked, ElementsAre(1, 2, 3));
  EXPECT_EQ(frames_of("a.gif"), 3);
}

// One frame for each number of tiles, and with motion the pictures between them.
TEST_F(Export, AGifOfTheFlowHasAFrameForEachTile) {
  Picture picture = at_row(5);
  picture.view = View::attention;
  picture.flow = a_flow(4);
  picture.last_flow_tile = 4;
  picture.frames_per_second = 2;
  write("a.gif", picture);
  EXPECT_EQ(frames_of("a.gif"), 5);
  picture.motion = true;
  write("a.gif", picture);
  EXPECT_EQ(frames_of("a.gif"), 5 + 4 * 5) << "0.3 s of motion have 5 pictures";
  picture.flow_tiles = 5;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: the last tile of the flow, 4, is outside [5, 4]"));
  picture.flow_tiles.reset();
  picture.last_flow_tile = 5;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: the last tile of the flow, 5, is outside [0, 4]"));
  picture.last_flow_tile = 4;
  picture.flow_tiles = 3;
  EXPECT_THAT(faults("a.pdf", picture), ElementsAre("a.pdf: tiles 3 to 4 of the flow are several pictures, and a .pdf "
                                                    "file holds one: write a .gif, .webm or .mp4"));
  picture.flow = nullptr;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: there is no flow whose tiles could be animated: name one"));
}

// --- videos ----------------------------------------------------------------------------------------------------------

// A still has a whole number of pictures, also where 1 / frames_per_second is not a binary fraction.
TEST(FilmTiming, AStillIsAWholeNumberOfPicturesOfTheVideo) {
  for (const double fps : {0.1, 0.3, 1.0, 3.0, 4.0, 7.0, 29.97, 50.0}) {
    for (const bool motion : {false, true}) {
      const FilmTiming timing = film_timing(PictureFormat::webm, fps, motion);
      const double of_still = timing.rate / fps;
      EXPECT_NEAR(of_still, std::round(of_still), 1e-9) << fps;
      EXPECT_GE(timing.rate, std::min(motion ? 30.0 : 10.0, timing.rate)) << fps;
      EXPECT_NEAR(static_cast<double>(timing.between) * timing.part + timing.rest, 1 / fps, 1e-9) << fps;
      EXPECT_EQ(timing.between > 0, motion && fps < 30) << fps;
    }
  }
  const FilmTiming timing = film_timing(PictureFormat::webm, 4, true);
  EXPECT_EQ(timing.rate, 32);
  EXPECT_EQ(timing.between, 4);
  EXPECT_EQ(timing.rest, 0.125);
  EXPECT_EQ(film_timing(PictureFormat::mp4, 0.1, true).rate, 30);
}

// `ffmpeg` in a folder that is first in PATH.
class Video : public Export {
 protected:
  Video() : path_(qgetenv("PATH")) {}
  ~Video() override { qputenv("PATH", path_); }
  // Notes its words, and copies what it gets to the file; `end`: more lines.
  void set_program(const std::string& end) const {
    const fs::path bin = fs::path(bin_.path().toStdString());
    {
      std::ofstream script(bin / "ffmpeg");
      script << "#!/bin/sh\nprintf '%s\\n' \"$@\" > " << (bin / "words").string() << "\nfor last; do :; done\n"
             << end << "\n";
    }
    fs::permissions(bin / "ffmpeg", fs::perms::owner_all);
    qputenv("PATH", bin_.path().toLocal8Bit() + ":" + path_);
  }
  [[nodiscard]] std::string words() const {
    std::ifstream stream(fs::path(bin_.path().toStdString()) / "words");
    return {std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
  }
  // Waits until the process is gone, or has only its exit code left. A process that was not ended is ended here.
  static bool has_ended(int number) {
    const auto gone = [number] {
      std::ifstream stream("/proc/" + std::to_string(number) + "/stat");
      const std::string stat{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
      const std::size_t state = stat.rfind(") ");
      return state == std::string::npos || stat[state + 2] == 'Z' || stat[state + 2] == 'X';
    };
    QElapsedTimer clock;
    for (clock.start(); !gone() && clock.elapsed() < 5'000;) QThread::msleep(10);
    if (gone()) return true;
    ::kill(number, SIGKILL);
    return false;
  }
  QTemporaryDir bin_;
  QByteArray path_;
};

// What reaches the program: each still for its time, as rows of RGBX without padding. The first picture is compared
// with the board's.
TEST_F(Video, TheProgramGetsEachStillForItsTime) {
  set_program("cat > \"${last#file:}\"");
  Picture picture = at_row(3);
  picture.size = {333, 222};  // odd: the program pads
  picture.last_row = 5;
  picture.frames_per_second = 4;
  write("a.webm", picture);
  const std::string got = bytes("a.webm");
  const std::size_t frame = 333 * 222 * 4;
  ASSERT_EQ(got.size(), 3 * 3 * frame) << "12 pictures a second: three of each still";
  EXPECT_EQ(got.substr(0, frame), got.substr(2 * frame, frame));
  EXPECT_NE(got.substr(0, frame), got.substr(3 * frame, frame));
  const QImage expected = painted(picture).convertToFormat(QImage::Format_RGBX8888);
  for (int y = 0; y < 222; ++y) {
    const auto* line = reinterpret_cast<const char*>(expected.constScanLine(y));
    ASSERT_EQ(got.compare(static_cast<std::size_t>(y) * 333 * 4, 333 * 4, line, 333 * 4), 0) << y;
  }
  for (const char* word : {"rgb0\n", "333x222\n", "\n12\n", "libvpx-vp9\n", "webm\n"}) {
    EXPECT_THAT(words(), HasSubstr(word));
  }
  picture.motion = true;
  write("a.mp4", picture);
  EXPECT_EQ(bytes("a.mp4").size(), 3 * 8 * frame) << "32 pictures a second: eight of each still, four of them moving";
  EXPECT_THAT(words(), HasSubstr("libx264\n"));
}

TEST_F(Video, AFailureOfTheProgramIsReportedInItsWords) {
  Picture picture = at_row(3);
  picture.size = {320, 200};
  picture.last_row = 20;
  set_program("echo 'Unknown encoder libvpx-vp9' >&2; exit 1");
  EXPECT_THAT(faults("a.webm", picture),
              ElementsAre("a.webm: ffmpeg could not write the video: Unknown encoder libvpx-vp9"));
  set_program("cat > /dev/null; echo 'disk full' >&2; exit 1");
  EXPECT_THAT(faults("a.webm", picture), ElementsAre("a.webm: ffmpeg could not write the video: disk full"));
  EXPECT_THAT(files(), IsEmpty());
}

// They were "Unknown error" or "Error writing to process"; a program that wrote nothing left an empty file and counted as a success.
TEST_F(Video, AFailureWithoutWordsSaysHowTheProgramEnded) {
  Picture picture = at_row(3);
  picture.size = {320, 200};
  picture.last_row = 20;
  const auto fault = [&](const std::string& program) {
    set_program(program);
    const std::vector<std::string> all = faults("a.webm", picture);
    return all.size() == 1 ? all[0] : std::to_string(all.size()) + " faults";
  };
  const std::string start = "a.webm: ffmpeg could not write the video: ";
  EXPECT_EQ(fault("cat > /dev/null; exit 3"), start + "it ended with exit code 3");
  EXPECT_EQ(fault("exit 3"), start + "it ended with exit code 3");
  EXPECT_EQ(fault("sleep 0.4; exit 3"), start + "it ended with exit code 3") << "after waits that took too long";
  EXPECT_EQ(fault("cat > /dev/null; kill -9 $$"), start + "a signal ended it");
  EXPECT_EQ(fault("exit 0"), start + "it ended without an error, and the video is not complete");
  EXPECT_EQ(fault("cat > /dev/null"), start + "it ended without an error, and the video is not complete");
  EXPECT_THAT(files(), IsEmpty());
  std::ofstream(fs::path(bin_.path().toStdString()) / "ffmpeg") << "#!/no/such/interpreter\n";
  const std::vector<std::string> all = faults("a.webm", picture);
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0], HasSubstr("/ffmpeg does not start: "));
  EXPECT_THAT(files(), IsEmpty());
}

// Qt has seen the end before the next frame: nothing takes its bytes.
TEST_F(Video, AProgramThatHasEndedBeforeAFrameIsAFault) {
  const fs::path number_file = fs::path(bin_.path().toStdString()) / "number";
  set_program("echo $$ > " + number_file.string() + "; exit 3");
  const QImage frame(320, 200, QImage::Format_RGB32);
  VideoWriter writer(PictureFormat::webm, file("t.webm"), "a.webm", frame.size(), 4, 12);
  int number = 0;
  QElapsedTimer clock;
  for (clock.start(); number == 0 && clock.elapsed() < 10'000; QThread::msleep(10)) {
    std::ifstream(number_file) >> number;
  }
  ASSERT_NE(number, 0);
  ASSERT_TRUE(has_ended(number));
  for (int i = 0; i < 20; ++i) {
    QCoreApplication::processEvents();
    QThread::msleep(5);
  }
  try {
    writer.add(frame, std::nullopt);
    FAIL() << "a frame was written to a program that has ended";
  } catch (const InputError& error) {
    EXPECT_EQ(fault_lines(error).front(), "a.webm: ffmpeg could not write the video: it ended with exit code 3");
  }
}

// One program reads nothing, the other does not end. The window's Cancel took effect after up to 11 minutes, and so did closing it.
TEST_F(Video, AProgramThatHangsIsGivenUpOrCancelled) {
  Picture picture = at_row(3);
  picture.size = {320, 200};
  picture.last_row = 5;
  for (const char* hangs : {"exec sleep 1000", "cat > \"${last#file:}\"; exec sleep 1000"}) {
    set_program(hangs);
    int asked = 0;
    EXPECT_THROW(write("a.webm", picture,
                       [&](std::int64_t, std::int64_t) { return ++asked < 8; }),  // 3 frames, then while it waits
                 Cancelled)
        << hangs;
    EXPECT_THAT(files(), IsEmpty()) << hangs;
  }
  const QImage frame(320, 200, QImage::Format_RGB32);
  const auto fault = [&](const std::string& program) -> std::string {
    set_program(program);
    VideoWriter writer(PictureFormat::webm, file("t.webm"), "a.webm", frame.size(), 4, 12, {}, {10'000, 300, 200, 100});
    try {
      writer.add(frame, std::nullopt);
      writer.finish();
    } catch (const InputError& error) {
      return fault_lines(error).front();
    }
    return "none";
  };
  const std::string start = "a.webm: ffmpeg could not write the video: ", next = ": write a shorter or smaller one, or a .gif";
  EXPECT_EQ(fault("exec sleep 1000"), start + "it took no more of a frame within 0.3 s" + next);
  EXPECT_EQ(fault("exec <&-; exec sleep 1000"), start + "it closed its input and did not end within 0.1 s" + next);
  EXPECT_EQ(fault("cat > /dev/null; echo 'frame 1' >&2; exec sleep 1000"),
            start + "it did not end after the last frame within 0.2 s; its last words: frame 1" + next);
}

// Programs that ignore the end of their input and requests to end, and one that leaves the work to another program.
// Regression: only the program itself was ended, so that the other one went on as an orphan.
TEST_F(Video, ACancelledVideoLeavesNoProgramRunning) {
  Picture picture = at_row(3);
  picture.size = {320, 200};
  picture.last_row = 5;
  const fs::path numbers = fs::path(bin_.path().toStdString()) / "numbers";
  const std::string note = "echo $$ >> " + numbers.string() + "; ";
  const std::string deaf = "trap '' TERM INT HUP PIPE; " + note + "cat > \"${last#file:}\"; ";
  const std::string other = "sh -c \"trap '' TERM INT HUP PIPE; echo \\$\\$ >> " + numbers.string() +
                            "; while :; do sleep 0.2; done\" < /dev/null ";
  for (const auto& [program, count] : {std::pair{deaf + "while :; do sleep 0.2; done", 1u},
                                       {note + "cat > \"${last#file:}\"; " + other, 2u},
                                       {deaf + other + "& wait", 2u}}) {
    fs::remove(numbers);
    set_program(program);
    std::vector<int> started;
    const auto read_numbers = [&, expected = count] {
      std::ifstream stream(numbers);
      started.assign(std::istream_iterator<int>(stream), std::istream_iterator<int>());
      return started.size() == expected;
    };
    QElapsedTimer clock;
    clock.start();
    EXPECT_THROW(write("a.webm", picture,
                       [&](std::int64_t, std::int64_t) { return !read_numbers() && clock.elapsed() < 30'000; }),
                 Cancelled)
        << program;
    ASSERT_TRUE(read_numbers()) << program;
    for (const int number : started) EXPECT_TRUE(has_ended(number)) << number << " of " << program;
    EXPECT_THAT(files(), IsEmpty()) << program;
  }
}

// Damage that only the file's end or the file system shows: a program that closes its input early and ends well, one that removes its
// file, one that ends during the last frame.
TEST_F(Video, AProgramThatDoesNotKeepItsFileIsAFault) {
  Picture picture = at_row(3);
  picture.size = {320, 200};
  picture.last_row = 5;
  const std::string start = "a.webm: ffmpeg could not write the video: ";
  for (const char* program : {"cat > /dev/null; rm \"${last#file:}\"", "exec <&-; sleep 1", "head -c 300000 > \"${last#file:}\""}) {
    set_program(program);
    EXPECT_THAT(faults("a.webm", picture), ElementsAre(start + "it ended without an error, and the video is not complete"))
        << program;
    EXPECT_THAT(files(), IsEmpty()) << program;
  }
}

// Only what a person may start counts as the program.
TEST_F(Video, AFolderOrAFileThatCannotRunIsNoProgram) {
  const fs::path program = fs::path(bin_.path().toStdString()) / "ffmpeg";
  qputenv("PATH", bin_.path().toLocal8Bit());
  fs::create_directory(program);
  EXPECT_THAT(faults("a.webm", at_row(3)), ElementsAre(HasSubstr("which is not in PATH")));
  fs::remove(program);
  std::ofstream(program) << "no program";
  EXPECT_THAT(faults("a.webm", at_row(3)), ElementsAre(HasSubstr("which is not in PATH")));
  fs::permissions(program, fs::perms::owner_all);
  const std::vector<std::string> all = faults("a.webm", at_row(3));
  ASSERT_EQ(all.size(), 1u);
  EXPECT_THAT(all[0], HasSubstr("/ffmpeg does not start: "));
  EXPECT_THAT(files(), IsEmpty());
}

// The file of an earlier video stays until the new one is complete.
TEST_F(Video, AFailureKeepsTheFileThatWasThere) {
  std::ofstream(file("a.webm")) << "before";
  Picture picture = at_row(3);
  picture.size = {320, 200};
  picture.last_row = 5;
  set_program("cat > \"${last#file:}\"; exit 1");
  EXPECT_EQ(faults("a.webm", picture).size(), 1u);
  EXPECT_EQ(bytes("a.webm"), "before");
  set_program("cat > \"${last#file:}\"");
  EXPECT_TRUE(faults("a.webm", picture).empty());
  EXPECT_EQ(bytes("a.webm").size(), 3u * 3 * 320 * 200 * 4);
}

TEST_F(Video, WithoutTheProgramThePackageIsNamed) {
  qputenv("PATH", bin_.path().toLocal8Bit());
  Picture picture = at_row(3);
  EXPECT_THAT(faults("a.mp4", picture),
              ElementsAre("a.mp4: a video is written by the program 'ffmpeg', which is not in PATH: install it "
                          "(Debian: apt-get install --no-install-recommends ffmpeg), or write a .gif"));
  // It is removed between the check and the first frame.
  EXPECT_THROW(VideoWriter(PictureFormat::mp4, file("a.mp4"), "a.mp4", {64, 64}, 4, 12), InputError);
  picture.size = {10, 500};
  EXPECT_EQ(faults("a.mp4", picture).size(), 2u) << "with the other faults at once";
}

TEST_F(Video, ACancelledVideoLeavesNothingBehind) {
  set_program("cat > \"${last#file:}\"");
  Picture picture = at_row(1);
  picture.size = {320, 200};
  picture.last_row = 20;
  EXPECT_THROW(write("a.webm", picture, [](std::int64_t done, std::int64_t) { return done < 4; }), Cancelled);
  EXPECT_THAT(files(), IsEmpty());
}

// The real program, and its companion that reads the file: container, codec, size, and number of pictures.
TEST_F(Video, TheRealProgramWritesAVideoThatPlays) {
  const QString probe = QStandardPaths::findExecutable(QStringLiteral("ffprobe"));
  if (probe.isEmpty() || find_ffmpeg().isEmpty()) {
    GTEST_SKIP() << "ffmpeg and ffprobe are not in PATH (Debian: apt-get install --no-install-recommends ffmpeg)";
  }
  Picture picture = at_row(3);
  picture.size = {333, 222};
  picture.last_row = 6;
  picture.motion = true;
  for (const auto& [name, format, codec] :
       {std::tuple{"a.webm", "matroska,webm", "vp9"}, {"a.mp4", "mov,mp4,m4a,3gp,3g2,mj2", "h264"}}) {
    write(name, picture);
    QProcess process;
    process.start(probe, {QStringLiteral("-v"), QStringLiteral("error"), QStringLiteral("-count_frames"),
                          QStringLiteral("-show_entries"),
                          QStringLiteral("format=format_name,duration:stream=codec_name,width,height,nb_read_frames,"
                                         "pix_fmt,color_space"),
                          QStringLiteral("-of"), QStringLiteral("default=noprint_wrappers=1"),
                          QString::fromStdString(file(name).string())});
    ASSERT_TRUE(process.waitForFinished());
    const std::string words = process.readAllStandardOutput().toStdString();
    for (const std::string& line :
         {std::string("codec_name=") + codec, std::string("width=334"), std::string("height=222"),
          std::string("pix_fmt=yuv420p"), std::string("color_space=bt709"), std::string("nb_read_frames=32"),
          std::string("format_name=") + format, std::string("duration=1.000000")}) {
      EXPECT_THAT(words, HasSubstr(line)) << name;
    }
    const std::string first = bytes(name);
    write(name, picture);
    EXPECT_EQ(bytes(name), first) << name << ": the same picture is the same bytes";
  }
}

// What a window's export asks for: the events of a tile that is not there or has fewer, and pictures that have no pixels.
TEST_F(Export, FaultsOfTilesMotionsAndLengthsAreNamed) {
  Picture picture = at_row(3);
  picture.view = View::tile;
  picture.last_tile_event = 4;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: there is no tile whose events could be animated: name one"));
  auto tile = std::make_shared<Tile>();
  tile->events = 10;
  picture.tile = tile;
  picture.last_tile_event = 11;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: the last event of the tile, 11, is outside [0, 10]"));
  picture.tile_event = 5;
  picture.last_tile_event = 4;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: the last event of the tile, 4, is outside [5, 10]"));
  picture.last_tile_event = 6;
  EXPECT_THAT(faults("a.png", picture), ElementsAre("a.png: events 5 to 6 of the tile are several pictures, and a .png file holds one: "
                                                    "write a .gif, .webm or .mp4"));
  for (const char* name : {"a.svg", "a.pdf", "a.tikz"}) {
    picture = at_row(3);
    picture.between = 0.5;
    EXPECT_THAT(faults(name, picture), ElementsAre(std::string(name) + ": a picture between two steps consists of pixels, and a " +
                                                   fs::path(name).extension().string() + " file of shapes: write a .png"));
  }
  EXPECT_TRUE(faults("between.png", picture).empty());
  fs::remove(file("between.png"));
  picture = at_row(3);
  picture.frames_per_second = 0.05;
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: 0.05 frames per second is outside [0.1, 50]"));
  picture.frames_per_second = std::numeric_limits<double>::quiet_NaN();
  EXPECT_THAT(faults("a.gif", picture), ElementsAre("a.gif: nan frames per second is outside [0.1, 50]"));
  EXPECT_THAT(files(), IsEmpty());
}

// The last frame is that of the last event, also inside an action; actions before the first or behind the last have none.
TEST_F(Export, StillsOfATileAreTheEndsOfItsActionsWithinTheEvents) {
  auto tile = std::make_shared<Tile>();
  tile->events = 10;
  for (const auto& [first, end] : {std::pair{0, 2}, {2, 3}, {3, 7}, {7, 10}}) {
    tile->actions.emplace_back();
    tile->actions.back().first = first;
    tile->actions.back().end = end;
  }
  Picture picture = at_row(3);
  picture.tile = tile;
  const auto stills = [&](std::optional<std::int64_t> first, std::int64_t last) {
    picture.tile_event = first;
    picture.last_tile_event = last;
    return stills_of(*run_, picture);
  };
  EXPECT_THAT(stills(std::nullopt, 10), ElementsAre(0, 2, 3, 7, 10));
  EXPECT_THAT(stills(2, 5), ElementsAre(2, 3, 5));
  EXPECT_THAT(stills(4, 7), ElementsAre(4, 7));
  EXPECT_THAT(stills(4, 4), ElementsAre(4));
}

TEST_F(Export, AMissingFolderIsReportedForEveryFormat) {
  for (const std::string name : {"no/a.png", "no/a.svg", "no/a.pdf", "no/a.tikz", "no/a.gif"}) {
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
