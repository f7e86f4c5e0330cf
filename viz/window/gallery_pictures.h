// The pictures of the gallery's cards, painted by the backend on a separate thread, one after the other: the window
// never waits for them.
#pragma once

#include <atomic>
#include <memory>
#include <thread>

#include <QtCore/QObject>

#include "viz/model/gallery_model.h"
#include "viz/window/backend.h"

namespace kvscope::viz {

class GalleryPictures final : public QObject {
  Q_OBJECT
 public:
  // Both outlive this object.
  GalleryPictures(Backend& backend, GalleryModel& gallery, QObject* parent = nullptr);
  ~GalleryPictures() override;  // stops the picture that is being painted, and waits for it

  // Paints all pictures in the colors of `theme`; the present ones stay until they are replaced. A call that is under
  // way is stopped first.
  void paint(ThemeKind theme);
  void stop();
  [[nodiscard]] bool running() const;

 private:
  struct Shared;
  void show_painted();
  Backend& backend_;
  GalleryModel& gallery_;
  std::shared_ptr<Shared> shared_;
  std::thread thread_;
};

}  // namespace kvscope::viz
