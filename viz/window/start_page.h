// The page shown while no file is open: the gallery with descriptions, the labs, the recent files, and a drop area.
#pragma once

#include <QtWidgets/QWidget>

#include "viz/model/gallery_model.h"
#include "viz/model/labs.h"
#include "viz/view/theme.h"
#include "viz/window/actions.h"
#include "viz/window/recent_files.h"

class QLabel;
class QListView;
class QListWidget;

namespace kvscope::viz {

class GalleryDelegate;

class StartPage final : public QWidget {
  Q_OBJECT
 public:
  // Precondition (caller): gallery, recent and actions outlive the page.
  StartPage(GalleryModel& gallery, const Labs& labs, RecentFiles& recent, const Actions& actions,
            QWidget* parent = nullptr);
  void set_theme(const Theme& theme, double font_scale);

 Q_SIGNALS:
  void chosen(const QString& path);
  void lab_chosen(int number);  // index of Labs::entries

 protected:
  void resizeEvent(QResizeEvent* event) override;

 private:
  [[nodiscard]] QWidget* build_gallery(GalleryModel& gallery);
  [[nodiscard]] QWidget* build_labs(const Labs& labs);
  [[nodiscard]] QWidget* build_recent();
  [[nodiscard]] QWidget* build_drop(const Actions& actions);
  void show_recent();
  void show_drop();

  RecentFiles& recent_;
  GalleryDelegate* delegate_ = nullptr;
  QListView* gallery_ = nullptr;
  QListWidget* recent_list_ = nullptr;
  QLabel *title_ = nullptr, *drop_sign_ = nullptr, *drop_words_ = nullptr;
};

}  // namespace kvscope::viz
