// The tables of a kernel's state: its lane groups, the registers of one of them, its reports.
#pragma once

#include <cstdint>
#include <set>
#include <vector>

#include <QtCore/QAbstractTableModel>

#include "viz/playback/kernel_run.h"

namespace kvscope::viz {

// "scale.cu:4" of an instruction, or "scale.ptx:18" where the PTX has no line information.
[[nodiscard]] QString place_of(const KernelCode& code, std::int32_t instruction);

// One row a lane group of every CTA that has started and not ended.
class KernelGroupModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kCta, kWarp, kLanes, kGroupState, kPlace, kInstruction, kColumns };
  static constexpr int kNextRole = Qt::UserRole;      // bool: it executes the next instruction
  static constexpr int kWarpRole = Qt::UserRole + 1;  // the warp's number, whose color its words have

  explicit KernelGroupModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void set_state(const KernelCode& code, const KernelState& state);
  void clear();
  [[nodiscard]] const KernelGroup& group(int row) const { return rows_[static_cast<std::size_t>(row)]; }

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<KernelGroup> rows_;
  std::vector<QString> places_, instructions_;
  std::int32_t next_ = -1;
};

// One row a register: its name, its type, and its value in each lane.
class KernelRegisterModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kName, kType, kFirstLane };
  static constexpr int kChangedRole = Qt::UserRole;  // bool: another value than in the state before, of the same warp

  explicit KernelRegisterModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void set_state(const KernelState& state);
  void clear();
  void set_bits(bool bits);  // hexadecimal in place of the notation of the type

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<KernelRegister> rows_;
  std::set<std::pair<int, int>> changed_;  // row and lane
  std::pair<std::int32_t, std::int32_t> warp_{-1, -1};
  bool bits_ = false;
};

// One row a report, in the order of the launch.
class KernelReportModel final : public QAbstractTableModel {
  Q_OBJECT
 public:
  enum Column { kStep, kKind, kWhere, kWhat, kColumns };
  static constexpr int kHappenedRole = Qt::UserRole;  // bool: at or before the current position

  explicit KernelReportModel(QObject* parent = nullptr) : QAbstractTableModel(parent) {}

  void set_state(const KernelCode& code, const KernelState& state);
  void clear();
  [[nodiscard]] const KernelReport& report(int row) const { return rows_[static_cast<std::size_t>(row)]; }

  [[nodiscard]] int rowCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] int columnCount(const QModelIndex& parent = {}) const override;
  [[nodiscard]] QVariant data(const QModelIndex& index, int role = Qt::DisplayRole) const override;
  [[nodiscard]] QVariant headerData(int section, Qt::Orientation orientation, int role) const override;

 private:
  std::vector<KernelReport> rows_;
  std::vector<QString> places_;
  std::uint64_t step_ = 0;
};

}  // namespace kvscope::viz
