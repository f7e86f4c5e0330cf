// The line above two runs side by side: which run is the second one, how much the two caches differ at this step, and
// the way to the next difference.
#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QWidget>

#include "viz/model/document.h"
#include "viz/window/actions.h"

class QLabel;

namespace kvscope::viz {

class CompareBar final : public QWidget {
  Q_OBJECT
 public:
  explicit CompareBar(const Actions& actions, QWidget* parent = nullptr);
  void set_document(Document* document);
  void set_name(const QString& name, const QString& path);  // of the compared run; the path is the tooltip

 protected:
  void showEvent(QShowEvent* event) override;

 private:
  void show_differences();

  QPointer<Document> document_;
  QLabel *name_ = nullptr, *differences_ = nullptr, *numbers_ = nullptr;
};

}  // namespace kvscope::viz
