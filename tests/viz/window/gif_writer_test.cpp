#include "viz/window/gif_writer.h"

#include <gmock/gmock.h>
#include <rapidcheck/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>

#include <QtCore/QTemporaryDir>
#include <QtGui/QImageReader>

#include "core/base/errors.h"

namespace kvscope::viz::gif_writer_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class Folder {
 public:
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return std::filesystem::path(dir_.path().toStdString()) / name;
  }

 private:
  QTemporaryDir dir_;
};

std::string bytes_of(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

void write(const std::filesystem::path& path, const std::vector<QImage>& frames, double frames_per_second = 10) {
  GifWriter writer(path, "shown.gif", frames.front().size(), frames_per_second);
  for (const QImage& frame : frames) writer.add(frame);
  writer.finish();
}

// Every frame as composed by Qt's decoder.
std::vector<QImage> read(const std::filesystem::path& path) {
  QImageReader reader(QString::fromStdString(path.string()));
  std::vector<QImage> frames;
  for (QImage frame = reader.read(); !frame.isNull(); frame = reader.read()) {
    frames.push_back(frame.convertToFormat(QImage::Format_RGB32));
  }
  return frames;
}

// The data of one frame, decoded according to the GIF format.
struct RawFrame {
  int delay = 0;  // [1/100 s]
  int disposal = 0;
  bool see_through = false;
  QRect area;
  int colors = 0;
  friend bool operator==(const RawFrame&, const RawFrame&) = default;
};
struct RawGif {
  QSize size;
  int loops = -1;  // 0: endless
  std::vector<RawFrame> frames;
};

RawGif parse(const std::string& bytes) {
  const auto byte = [&](std::size_t at) { return static_cast<int>(static_cast<unsigned char>(bytes.at(at))); };
  const auto word = [&](std::size_t at) { return byte(at) + 256 * byte(at + 1); };
  EXPECT_EQ(bytes.substr(0, 6), "GIF89a");
  RawGif gif{{word(6), word(8)}, -1, {}};
  EXPECT_EQ(byte(10) & 0x80, 0) << "no palette for all frames";
  RawFrame frame;
  const auto after_blocks = [&](std::size_t at) {
    while (byte(at) != 0) at += 1 + static_cast<std::size_t>(byte(at));
    return at + 1;
  };
  std::size_t at = 13;
  while (byte(at) != 0x3b) {
    if (byte(at) == 0x21 && byte(at + 1) == 0xf9) {
      frame.disposal = byte(at + 3) >> 2;
      frame.see_through = (byte(at + 3) & 1) != 0;
      frame.delay = word(at + 4);
      at = after_blocks(at + 2);
    } else if (byte(at) == 0x21) {
      if (byte(at + 1) == 0xff && bytes.substr(at + 3, 11) == "NETSCAPE2.0") gif.loops = word(at + 16);
      at = after_blocks(at + 2);
    } else if (byte(at) == 0x2c) {
      frame.area = QRect(word(at + 1), word(at + 3), word(at + 5), word(at + 7));
      frame.colors = 2 << (byte(at + 9) & 7);
      EXPECT_NE(byte(at + 9) & 0x80, 0) << "each frame has its own palette";
      gif.frames.push_back(frame);
      at = after_blocks(at + 10 + 3 * static_cast<std::size_t>(frame.colors) + 1);
    } else {
      ADD_FAILURE() << "byte " << at << " begins no block";
      return gif;
    }
  }
  EXPECT_EQ(at + 1, bytes.size());
  return gif;
}

QImage filled(QSize size, QRgb color) {
  QImage image(size, QImage::Format_RGB32);
  image.fill(color);
  return image;
}

// Various sizes, and frames that grow, stay, revert and change completely: Qt must compose every frame exactly. Finds a
// rectangle that is too small, a disposal that clears, and a transparent index that is also used by a color.
TEST(GifWriter, FramesPutTogetherAreTheFramesThatWereWritten) {
  const Folder folder;
  for (const QSize size : {QSize(1, 1), QSize(1, 7), QSize(9, 1), QSize(2, 2), QSize(31, 17), QSize(256, 3)}) {
    std::vector<QImage> frames{filled(size, qRgb(18, 20, 25))};
    for (int i = 0; i < 6; ++i) {
      QImage next = frames.back();
      next.setPixel((i * 5) % size.width(), (i * 3) % size.height(), qRgb(255, i, 0));
      next.setPixel(size.width() - 1, size.height() - 1, qRgb(0, i / 2, 255));
      frames.push_back(next);
    }
    frames.push_back(frames.back());
    frames.push_back(frames.front());
    frames.push_back(filled(size, qRgb(255, 255, 255)));
    const auto path = folder.file(std::to_string(size.width()) + "x" + std::to_string(size.height()) + ".gif");
    write(path, frames);
    const std::vector<QImage> found = read(path);
    ASSERT_EQ(found.size(), frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) EXPECT_EQ(found[i], frames[i]) << "frame " << i;
    EXPECT_EQ(parse(bytes_of(path)).frames.size(), frames.size());
  }
}

// Noise of 256 colors fills the compressor's table many times and leaves no index for transparency.
TEST(GifWriter, NoiseOfAsManyColorsAsThereAreComesBackExactly) {
  const Folder folder;
  QImage noise(300, 200, QImage::Format_RGB32);
  std::uint32_t state = 1;
  for (int y = 0; y < noise.height(); ++y) {
    for (int x = 0; x < noise.width(); ++x) {
      state = state * 1664525 + 1013904223;
      const int c = static_cast<int>(state >> 24);
      noise.setPixel(x, y, qRgb(c, 255 - c, c / 2));
    }
  }
  QImage next = noise;
  for (int y = 20; y < 180; ++y) next.setPixel(y, y, noise.pixel(y + 1, y));
  write(folder.file("noise.gif"), {noise, next});
  const std::vector<QImage> found = read(folder.file("noise.gif"));
  ASSERT_EQ(found.size(), 2u);
  EXPECT_EQ(found[0], noise);
  EXPECT_EQ(found[1], next);
}

// All 256 colors change and one pixel does not: it needs the transparent index, so 255 entries are left for the colors,
// and one color is replaced by the nearest one.
TEST(GifWriter, ATransparentIndexTakesItsPlaceFromTheColors) {
  const Folder folder;
  QImage before = filled({16, 17}, qRgb(9, 9, 9)), after = before;
  for (int i = 0; i < 256; ++i) after.setPixel(i % 16, i / 16, qRgb(i, 255 - i, 40));
  after.setPixel(15, 16, qRgb(0, 255, 40));
  write(folder.file("full.gif"), {before, after});
  EXPECT_EQ(parse(bytes_of(folder.file("full.gif"))).frames.at(1), (RawFrame{10, 1, true, QRect(0, 0, 16, 17), 256}));
  const QImage found = read(folder.file("full.gif")).at(1);
  for (int y = 0; y < 17; ++y) {
    for (int x = 0; x < 16; ++x) EXPECT_LE(std::abs(qRed(found.pixel(x, y)) - qRed(after.pixel(x, y))), 1);
  }
  EXPECT_EQ(found.pixel(3, 16), qRgb(9, 9, 9));
}

// More colors than palette entries: flat areas are exact, the other colors are approximated.
TEST(GifWriter, AGradientIsNearAndItsFlatSurroundingsAreExact) {
  const Folder folder;
  QImage image = filled({400, 300}, qRgb(18, 20, 25));
  for (int y = 0; y < 64; ++y) {
    for (int x = 0; x < 64; ++x) image.setPixel(100 + x, 100 + y, qRgb(x * 4, y * 4, 128));
  }
  write(folder.file("gradient.gif"), {image});
  const std::vector<QImage> found = read(folder.file("gradient.gif"));
  ASSERT_EQ(found.size(), 1u);
  int worst = 0;
  for (int y = 0; y < image.height(); ++y) {
    for (int x = 0; x < image.width(); ++x) {
      const QRgb a = image.pixel(x, y), b = found[0].pixel(x, y);
      if (a == qRgb(18, 20, 25)) {
        ASSERT_EQ(b, a) << x << ',' << y;
      }
      worst = std::max(
          {worst, std::abs(qRed(a) - qRed(b)), std::abs(qGreen(a) - qGreen(b)), std::abs(qBlue(a) - qBlue(b))});
    }
  }
  EXPECT_LE(worst, 20);  // 4096 colors over 255 entries: boxes of 16 x 16 around their mean
}

// A change in two opposite corners gives the whole picture, a change of one pixel one pixel, no change the smallest
// frame.
TEST(GifWriter, AFrameIsTheSmallestRectangleThatChanged) {
  const Folder folder;
  std::vector<QImage> frames(5, filled({40, 30}, qRgb(1, 2, 3)));
  frames[1].setPixel(7, 9, qRgb(9, 9, 9));
  frames[2] = frames[1];
  frames[3] = frames[2];
  frames[3].setPixel(8, 11, qRgb(9, 9, 9));
  frames[3].setPixel(5, 12, qRgb(8, 8, 8));
  frames[4] = frames[3];
  frames[4].setPixel(0, 29, qRgb(7, 7, 7));
  frames[4].setPixel(39, 0, qRgb(7, 7, 7));
  write(folder.file("areas.gif"), frames, 10);
  const RawGif gif = parse(bytes_of(folder.file("areas.gif")));
  EXPECT_EQ(gif.size, QSize(40, 30));
  ASSERT_EQ(gif.frames.size(), 5u);
  EXPECT_EQ(gif.frames[0], (RawFrame{10, 1, false, QRect(0, 0, 40, 30), 2}));
  EXPECT_EQ(gif.frames[1], (RawFrame{10, 1, false, QRect(7, 9, 1, 1), 2}));
  EXPECT_EQ(gif.frames[2], (RawFrame{10, 1, true, QRect(0, 0, 1, 1), 2}));
  EXPECT_EQ(gif.frames[3], (RawFrame{10, 1, true, QRect(5, 11, 4, 2), 4}));
  EXPECT_EQ(gif.frames[4], (RawFrame{10, 1, true, QRect(0, 0, 40, 30), 2}));
}

TEST(GifWriter, LoopsForEverAtTheSpeedThatWasAskedFor) {
  const Folder folder;
  const std::vector<QImage> frames(7, filled({3, 3}, qRgb(1, 2, 3)));
  const auto delays = [&](double frames_per_second) {
    const auto path = folder.file(std::to_string(frames_per_second) + ".gif");
    write(path, frames, frames_per_second);
    const RawGif gif = parse(bytes_of(path));
    EXPECT_EQ(gif.loops, 0);
    std::vector<int> found;
    for (const RawFrame& frame : gif.frames) found.push_back(frame.delay);
    return found;
  };
  EXPECT_THAT(delays(30), ElementsAre(3, 4, 3, 3, 4, 3, 3));  // 7 frames are 23.3 hundredths
  EXPECT_THAT(delays(4), ElementsAre(25, 25, 25, 25, 25, 25, 25));
  EXPECT_THAT(delays(50), ElementsAre(2, 2, 2, 2, 2, 2, 2));
  EXPECT_THAT(delays(0.1), ElementsAre(1000, 1000, 1000, 1000, 1000, 1000, 1000));
}

// At any speed the duration of a thousand frames is exact to 1/100 second.
RC_GTEST_PROP(FrameDelay, AddsUpToTheWholeFilm, (int tenths)) {
  const double frames_per_second = 0.1 + (std::abs(tenths % 500)) * 0.0998;
  std::int64_t sum = 0;
  for (std::int64_t n = 0; n < 1000; ++n) {
    RC_ASSERT(frame_delay(n, frames_per_second) >= 2);
    sum += frame_delay(n, frames_per_second);
    RC_ASSERT(std::abs(static_cast<double>(sum) - static_cast<double>(n + 1) * 100 / frames_per_second) <= 0.5 + 1e-6);
  }
}

TEST(GifWriter, TheSameFramesAreTheSameBytes) {
  const Folder folder;
  QImage image = filled({90, 70}, qRgb(18, 20, 25));
  for (int i = 0; i < 3000; ++i) image.setPixel(i % 90, i / 90, qRgb(i % 256, i / 7 % 256, i / 3 % 256));
  write(folder.file("a.gif"), {filled({90, 70}, 0xffffffff), image});
  write(folder.file("b.gif"), {filled({90, 70}, 0xffffffff), image});
  EXPECT_EQ(bytes_of(folder.file("a.gif")), bytes_of(folder.file("b.gif")));
}

std::string message_of(const auto& action) {
  try {
    action();
  } catch (const InputError& error) {
    return fault_lines(error).front();
  }
  return "nothing was thrown";
}

// /dev/full: the first frame fits the buffer of the file, so only finish() writes; noise does not fit, so add() fails.
TEST(GifWriter, AFullDiskIsReportedByTheCallThatWrites) {
  const std::string full = "shown.gif: cannot be written: No space left on device";
  {
    GifWriter writer("/dev/full", "shown.gif", {3, 3}, 4);
    writer.add(filled({3, 3}, 0xff000000));
    EXPECT_EQ(message_of([&] { writer.finish(); }), full);
  }
  QImage noise(200, 200, QImage::Format_RGB32);
  std::mt19937 random(3);
  for (int i = 0; i < 200 * 200; ++i) noise.setPixel(i % 200, i / 200, static_cast<QRgb>(random()));
  GifWriter writer("/dev/full", "shown.gif", noise.size(), 4);
  EXPECT_EQ(message_of([&] { writer.add(noise); }), full);
}

TEST(GifWriter, AMissingFolderIsReportedAndAnExistingFileReplaced) {
  const Folder folder;
  EXPECT_EQ(message_of([&] {
              GifWriter(folder.file("missing/a.gif"), "shown.gif", {3, 3}, 4);
            }),
            "shown.gif: cannot be written: No such file or directory");
  // The temporary file of an atomic output exists before the writer opens it.
  write(folder.file("there.gif"), {filled({3, 3}, 0xff000000)});
  EXPECT_EQ(message_of([&] { GifWriter(folder.file("there.gif"), "shown.gif", {3, 3}, 4); }), "nothing was thrown");
}

}  // namespace
}  // namespace kvscope::viz::gif_writer_test
