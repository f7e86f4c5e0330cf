// The events of the step as a table. A click moves the position to right after the event; hovering highlights the
// event's object.
#pragma once

#include <QtCore/QPointer>
#include <QtWidgets/QWidget>

#include "viz/model/event_model.h"
#include "viz/view/theme.h"

class QTableView;

namespace kvscope::viz {

class RowDelegate;

class EventsPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit EventsPanel(QWidget* parent = nullptr);
  void set_document(Document* document);
  void set_theme(const Theme& theme, double font_scale);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // the pointer leaves the table

 private:
  void show_last();
  QPointer<Document> document_;
  EventModel model_;
  RowDelegate* delegate_;
  QTableView* table_;
};

}  // namespace kvscope::viz
