// The events of the document's current step, in order: past events, the last past event, and the remaining events of
// the step.
//
//   Event  Kind             Numbers
//   56     step_began       step=4 time_us=61200         past
//   57     block_evicted    block=9                      the last past event: kLastRole
//   58     block_allocated  block=9 seq=3 page=2         remaining: kHappenedRole is false
//
// The text of a row is that of core/trace/event_text.h. If the trace is damaged at this step, there are no rows; the
// document reports the fault.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include <QtCore/QAbstractTableModel>
#include <QtCore/QPointer>

#include "viz/model/document.h"

namespace kvscope::viz {

class EventModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kNumber, kKind, kNumbers, kColumns };
  static constexpr int kHappenedRole = Qt::UserRole;  // bool
  static constexpr int kLastRole = Qt::UserRole + 1;  // bool: the last past event
  static constexpr int kTextRole = Qt::UserRole + 2;  // the whole line, as `kvscope trace show` prints it

  explicit EventModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void set_document(Document* document);  // null: no rows
  void set_watched(bool watched);         // as SequenceModel::set_watched

  [[nodiscard]] Position after(int row) const { return Position(first_ + row + 1); }  // right after that event
  [[nodiscard]] int last_row() const { return last_; }                                // -1: no past event
  // The object of the event, to highlight it: its block, else its sequence, else its step.
  [[nodiscard]] Selection object(int row) const;

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                    int role = Qt::DisplayRole) const override;

 private:
  void refresh();

  QPointer<Document> document_;
  std::shared_ptr<const std::vector<trace::Event>> events_;  // null: none
  std::int64_t row_ = -1;                                    // row of the run
  std::int64_t first_ = 0;                                   // number of its first event
  int last_ = -1;
  bool watched_ = true;
};

}  // namespace kvscope::viz
