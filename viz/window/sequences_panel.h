// The live sequences as a table that can be sorted by any column. A click pins the sequence; hovering highlights it.
#pragma once

#include <QtCore/QPointer>
#include <QtCore/QSortFilterProxyModel>
#include <QtWidgets/QWidget>

#include "viz/model/sequence_model.h"
#include "viz/view/theme.h"

class QTableView;

namespace kvscope::viz {

class RowDelegate;

class SequencesPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit SequencesPanel(QWidget* parent = nullptr);
  void set_document(Document* document);
  void set_theme(const Theme& theme, double font_scale);

 protected:
  void showEvent(QShowEvent* event) override;
  void hideEvent(QHideEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;  // the pointer leaves the table

 private:
  [[nodiscard]] SeqIdx sequence(const QModelIndex& sorted) const;
  void select_pinned();
  QPointer<Document> document_;
  SequenceModel model_;
  QSortFilterProxyModel sorted_;
  RowDelegate* delegate_;
  QTableView* table_;
};

}  // namespace kvscope::viz
