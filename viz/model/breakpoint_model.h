// The document's breakpoints as a list: checkable (enabled), editable as text in the words of
// viz/playback/breakpoint.h. A text that is none changes nothing; rejected() says why, a line a fault, in the parser's
// words.
#pragma once

#include <QtCore/QAbstractListModel>
#include <QtCore/QPointer>
#include <QtCore/QStringList>

#include "viz/model/document.h"

namespace kvscope::viz {

class BreakpointModel final : public QAbstractListModel {
  Q_OBJECT
 public:
  explicit BreakpointModel(QObject* parent = nullptr) : QAbstractListModel(parent) {}

  void set_document(Document* document);  // null: no rows, and add() refuses

  // Returns whether it is now there. One that is there already is enabled and not added twice.
  bool add(const QString& text);

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;
  bool removeRows(int row, int count, const QModelIndex& parent = {}) override;

 Q_SIGNALS:
  void rejected(const QStringList& faults);

 private:
  void refresh();
  [[nodiscard]] std::optional<Breakpoint> parsed(const QString& text);

  QPointer<Document> document_;
  std::vector<Breakpoint> rows_;
};

}  // namespace kvscope::viz
