// The fields of the open run's scenario as a tree that can be edited:
//
//   Field            Value
//   v cache
//       page_size    48           set: kGivenRole is true
//       blocks       64           the default: kGivenRole is false
//   v tile
//       BN           64           kFaultRole: "64 tokens are not a whole number of 48-token pages: ..."
//
// Every change is one change of the draft (core/scenario/draft.h), which can be undone.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <QtCore/QAbstractItemModel>
#include <QtCore/QString>

#include "core/scenario/draft.h"

namespace kvscope::viz {

class ScenarioModel final : public QAbstractItemModel {
  Q_OBJECT
 public:
  enum Column { kField, kValue, kColumns };
  static constexpr int kPathRole = Qt::UserRole;             // "$.cache.page_size"; also before the model is reset
  static constexpr int kGivenRole = Qt::UserRole + 1;        // bool: it is set, not the default
  static constexpr int kFaultRole = Qt::UserRole + 2;        // its faults, one a line; empty: none
  static constexpr int kWordsRole = Qt::UserRole + 3;        // QStringList: the only legal values; empty: any
  static constexpr int kFaultInsideRole = Qt::UserRole + 4;  // bool: it or a field in it has a fault

  explicit ScenarioModel(QObject* parent = nullptr) : QAbstractItemModel(parent) {}

  // A new draft; nullopt: no fields. Precondition: the scenario fits a draft.
  void set_scenario(const std::optional<Scenario>& scenario);
  // In place of the draft's, as one change.
  void replace(const Scenario& scenario, const QString& words);
  void mark_start();
  [[nodiscard]] const ScenarioDraft* draft() const { return draft_ ? &*draft_ : nullptr; }

  void undo();
  void redo();
  [[nodiscard]] bool can_add(const QModelIndex& index) const;     // a list or an optional section
  [[nodiscard]] bool can_remove(const QModelIndex& index) const;  // a value, an optional section, an item
  QModelIndex add(const QModelIndex& index);                      // what was added
  void remove(const QModelIndex& index);

  [[nodiscard]] const DraftField* field(const QModelIndex& index) const;               // null: an invalid index
  [[nodiscard]] QModelIndex index_of(const QString& path, int column = kField) const;  // of its section, if it has none

  [[nodiscard]] QModelIndex index(int row, int column, const QModelIndex& parent = {}) const override;
  [[nodiscard]] QModelIndex parent(const QModelIndex& index) const override;
  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation,
                                    int role = Qt::DisplayRole) const override;
  [[nodiscard]] Qt::ItemFlags flags(const QModelIndex& index) const override;
  bool setData(const QModelIndex& index, const QVariant& value, int role = Qt::EditRole) override;

 Q_SIGNALS:
  void edited();  // the draft changed

 private:
  struct Node {
    const DraftField* field = nullptr;
    std::string path;
    int parent = -1, row = 0;  // parent: a number of a node
    std::vector<int> inner;
  };
  void refresh();  // after a change of the draft
  void add_nodes(const DraftField& field, int parent, int row);
  [[nodiscard]] const Node& node(const QModelIndex& index) const;  // node 0, the whole, for an invalid index
  [[nodiscard]] QModelIndex index_of_node(int number, int column) const;
  [[nodiscard]] QString faults_of(const DraftField& field) const;
  [[nodiscard]] bool fault_inside(const DraftField& field) const;
  [[nodiscard]] QString tool_tip(const DraftField& field) const;

  std::optional<ScenarioDraft> draft_;
  std::vector<Node> nodes_;
};

}  // namespace kvscope::viz
