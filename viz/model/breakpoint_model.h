// The document's breakpoints as a list: checkable (enabled), editable as text in the syntax of
// viz/playback/breakpoint.h. An invalid text changes nothing; the signal rejected() has the parser's messages, one line
// per fault.
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

  void set_document(Document* document);  // null: no rows, and add() fails

  // Returns whether the list now has the breakpoint. One that the list already has is enabled and not added twice.
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
