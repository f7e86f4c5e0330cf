// The line above the tile view: which tile is shown. On demand it is the one of the selected token, of the K or V,
// layer, head and path that are chosen here; a trace that holds tiles of its own offers these too.
#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QWidget>

#include "viz/model/document.h"
#include "viz/model/why.h"

class QComboBox;
class QLabel;
class QSpinBox;

namespace kvscope::viz {

class TileBar final : public QWidget {
  Q_OBJECT
 public:
  explicit TileBar(QWidget* parent = nullptr);
  void set_document(Document* document);

 private:
  void choose();
  void show_request();
  void show_hint();  // what the document asks for, without asking again

  QPointer<Document> document_;
  bool quiet_ = false;  // show_request() is at work
  QComboBox *source_ = nullptr, *kv_ = nullptr, *path_ = nullptr;
  QSpinBox *layer_ = nullptr, *head_ = nullptr;
  QLabel* what_ = nullptr;
};

}  // namespace kvscope::viz
