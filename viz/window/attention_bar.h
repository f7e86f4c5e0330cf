// The line above the attention view: which query's flow is shown, and which candidate is compared with the golden.
#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QWidget>

#include "viz/model/document.h"

class QLabel;
class QPushButton;
class QSpinBox;

namespace kvscope::viz {

class AttentionBar final : public QWidget {
  Q_OBJECT
 public:
  explicit AttentionBar(QWidget* parent = nullptr);
  void set_document(Document* document);

 Q_SIGNALS:
  void candidate_wanted();  // the button that opens one

 private:
  void choose();
  void show_request();  // what the document shows, without asking again

  QPointer<Document> document_;
  bool quiet_ = false;  // show_request() is at work
  QSpinBox *query_ = nullptr, *head_ = nullptr, *layer_ = nullptr, *tile_ = nullptr;
  QLabel *seq_ = nullptr, *candidate_ = nullptr;
  QPushButton *open_ = nullptr, *drop_ = nullptr;
};

}  // namespace kvscope::viz
