// The live sequences of an open document as a table, one row per sequence, ascending by number. A view sorts it with a
// QSortFilterProxyModel by kSortRole, for which every column returns a number.
//
//   Sequence  Phase    Tokens  Prompt  Generated  Prefix hits  Pages  Preemptions
//   3         running  37      32      5 of 12    16           3      0
//
// Rows are inserted and removed one by one, so that a view keeps its selection while the run is stepped. No function
// throws.
#pragma once

#include <cstdint>
#include <vector>

#include <QtCore/QAbstractTableModel>
#include <QtCore/QPointer>

#include "viz/model/document.h"

namespace kvscope::viz {

class SequenceModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kSequence, kPhase, kTokens, kPrompt, kGenerated, kHits, kPages, kPreemptions, kColumns };
  static constexpr int kSortRole = Qt::UserRole;       // a whole number
  static constexpr int kOwnerRole = Qt::UserRole + 1;  // in every column: the row's sequence, which selects its color

  explicit SequenceModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void set_document(Document* document);  // null: no rows
  // A table that is not visible is not updated; it is updated when it becomes visible again.
  void set_watched(bool watched);

  [[nodiscard]] SeqIdx sequence(int row) const { return rows_[static_cast<std::size_t>(row)].seq; }
  [[nodiscard]] int row_of(SeqIdx seq) const;  // -1: not live

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                    int role = Qt::DisplayRole) const override;

 private:
  struct Row {
    SeqIdx seq;
    Phase phase = Phase::absent;
    std::int64_t tokens = 0, prompt = 0, generate = 0, hits = 0, pages = 0, preemptions = 0;
    friend bool operator==(const Row&, const Row&) = default;
    [[nodiscard]] std::int64_t generated() const { return std::max<std::int64_t>(0, tokens - prompt); }
  };
  [[nodiscard]] std::vector<Row> rows_now() const;
  [[nodiscard]] QString text(const Row& row, int column) const;
  void refresh();
  void remove_missing(const std::vector<Row>& now);
  void insert_new(const std::vector<Row>& now);
  void update_changed(const std::vector<Row>& now);

  QPointer<Document> document_;
  std::vector<Row> rows_;
  bool watched_ = true;
};

// "running", for tables and screen readers.
[[nodiscard]] QString phase_name(Phase phase);

}  // namespace kvscope::viz
