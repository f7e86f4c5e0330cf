#include "viz/window/gallery_pictures.h"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace kvscope::viz {

struct GalleryPictures::Shared {
  std::atomic<bool> stop = false, done = false;
  // Painted and not shown. They pass to the window's thread under `mutex`, for the reason in asker.cpp.
  std::mutex mutex;
  std::vector<std::pair<std::size_t, QImage>> painted;
};

GalleryPictures::GalleryPictures(Backend& backend, GalleryModel& gallery, QObject* parent)
    : QObject(parent), backend_(backend), gallery_(gallery) {}

GalleryPictures::~GalleryPictures() {
  stop();
}

bool GalleryPictures::running() const {
  return shared_ && !shared_->done;
}

void GalleryPictures::stop() {
  if (shared_) shared_->stop = true;
  if (thread_.joinable()) thread_.join();
  shared_.reset();
}

void GalleryPictures::paint(ThemeKind theme) {
  stop();
  std::vector<std::string> paths;
  for (const GalleryEntry& entry : gallery_.entries()) paths.push_back(entry.path);
  shared_ = std::make_shared<Shared>();
  thread_ = std::thread([this, theme, paths = std::move(paths), shared = shared_] {
    for (std::size_t row = 0; row < paths.size() && !shared->stop; ++row) {
      QImage picture;
      try {
        picture = backend_.picture(paths[row], theme, [&shared] { return !shared->stop; });
      } catch (...) {
        picture = {};  // a card without a picture: opening the scenario reports the fault
      }
      {
        const std::lock_guard lock(shared->mutex);
        shared->painted.emplace_back(row, std::move(picture));
      }
      if (!shared->stop) QMetaObject::invokeMethod(this, &GalleryPictures::show_painted, Qt::QueuedConnection);
    }
    shared->done = true;
  });
}

void GalleryPictures::show_painted() {
  if (!shared_) return;
  std::vector<std::pair<std::size_t, QImage>> painted;
  {
    const std::lock_guard lock(shared_->mutex);
    painted.swap(shared_->painted);
  }
  for (const auto& [row, picture] : painted) {
    gallery_.set_picture(static_cast<int>(row), picture.isNull() ? QVariant() : picture);
  }
}

}  // namespace kvscope::viz
