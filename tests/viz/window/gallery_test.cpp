// The gallery on the start page: its pictures arrive while the window is used, each theme has its own, and an empty
// gallery says why.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <QtCore/QElapsedTimer>
#include <QtWidgets/QLabel>
#include <QtWidgets/QListView>

#include "tests/viz/window/window_support.h"
#include "viz/window/gallery_pictures.h"

namespace kvscope::viz::gallery_test {
namespace {

using testing_support::FakeBackend;
using testing_support::path_of;
using testing_support::wait_until;

class GalleryWindowTest : public testing_support::WindowTest {
 protected:
  [[nodiscard]] QListView& gallery() const { return *window->findChild<QListView*>(QStringLiteral("gallery")); }
  [[nodiscard]] QVariant picture(int row) const {
    return gallery().model()->index(row, 0).data(GalleryModel::kPictureRole);
  }
  [[nodiscard]] bool all_are(QRgb color) const {
    for (int row = 0; row < 3; ++row) {
      const auto image = picture(row).value<QImage>();
      if (image.isNull() || image.pixel(3, 3) != color) return false;
    }
    return !picture(3).isValid();  // parallel_samples has none
  }
};

constexpr QRgb kDarkPicture = 0xff102030, kLightPicture = 0xffd0e0f0;  // of FakeBackend

TEST_F(GalleryWindowTest, APictureArrivesForEachScenarioAndInEachTheme) {
  EXPECT_EQ(picture(0), QVariant(false)) << "awaited";
  window->set_theme(ThemeSetting::dark);
  ASSERT_TRUE(wait_until([&] { return all_are(kDarkPicture); }));
  const QRect card = gallery().visualRect(gallery().model()->index(0, 0));
  const QImage shown = gallery().viewport()->grab().toImage();
  EXPECT_EQ(shown.pixel((card.topLeft() + QPoint(60, 60)) * shown.devicePixelRatio()), kDarkPicture);
  // Without a picture the words begin at the left.
  const QRect last = gallery().visualRect(gallery().model()->index(3, 0));
  EXPECT_LT(last.height(), card.height());
  window->set_theme(ThemeSetting::light);
  EXPECT_TRUE(wait_until([&] { return all_are(kLightPicture); }));
}

// A picture takes ten seconds here: the window opens a scenario meanwhile, and neither it nor its end waits.
TEST_F(GalleryWindowTest, AreStoppedWhenAScenarioIsOpened) {
  backend.picture_ms = 10'000;
  window->set_theme(ThemeSetting::dark);
  ASSERT_TRUE(wait_until([&] { return backend.pictures > 0; }));
  QElapsedTimer clock;
  clock.start();
  ASSERT_TRUE(open(path_of("first_light")));
  EXPECT_LT(clock.elapsed(), 5'000);
  const int painted = backend.pictures;
  QTest::qWait(400);
  EXPECT_EQ(backend.pictures, painted) << "no further one was begun";
  backend.picture_ms = 0;
  window->close_document();
  EXPECT_TRUE(wait_until([&] { return all_are(kDarkPicture); })) << "painted again on the start page";
}

TEST_F(GalleryWindowTest, AnEmptyGallerySaysWhy) {
  EXPECT_EQ(window->findChild<QLabel*>(QStringLiteral("gallery_empty")), nullptr);
  window.reset();
  backend.empty_gallery = true;
  start();
  const auto* why = window->findChild<QLabel*>(QStringLiteral("gallery_empty"));
  ASSERT_NE(why, nullptr);
  EXPECT_TRUE(why->isVisible());
  EXPECT_EQ(why->text(), QStringLiteral("/nowhere has no scenarios"));
  EXPECT_FALSE(gallery().isVisible());
}

}  // namespace
}  // namespace kvscope::viz::gallery_test
