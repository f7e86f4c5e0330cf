#include "viz/model/kernel_tables.h"

#include <algorithm>

#include <QtCore/QFileInfo>

namespace kvscope::viz {
namespace {

QString words(const std::string& text) {
  return QString::fromStdString(text);
}

QVariant title(std::initializer_list<QString> titles, int section, Qt::Orientation orientation, int role) {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole || section < 0 || section >= std::ssize(titles))
    return {};
  return *(titles.begin() + section);
}

}  // namespace

QString place_of(const KernelCode& code, std::int32_t instruction) {
  if (instruction < 0 || instruction >= std::ssize(code.instructions)) return {};
  const KernelInstruction& at = code.instructions[static_cast<std::size_t>(instruction)];
  const KernelSource& source = at.source < 0 ? code.sources.back() : code.sources[static_cast<std::size_t>(at.source)];
  return QStringLiteral("%1:%2").arg(QFileInfo(words(source.path)).fileName(),
                                     QString::number(at.source < 0 ? at.ptx_line : at.line));
}

// --- lane groups -----------------------------------------------------------------------------------------------------

void KernelGroupModel::set_state(const KernelCode& code, const KernelState& state) {
  beginResetModel();
  rows_ = state.groups;
  next_ = state.next;
  places_.clear();
  instructions_.clear();
  for (const KernelGroup& row : rows_) {
    places_.push_back(place_of(code, row.instruction));
    instructions_.push_back(words(code.instructions[static_cast<std::size_t>(row.instruction)].text));
  }
  endResetModel();
}

void KernelGroupModel::clear() {
  beginResetModel();
  rows_.clear();
  endResetModel();
}

int KernelGroupModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int KernelGroupModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant KernelGroupModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto row = static_cast<std::size_t>(index.row());
  const KernelGroup& group = rows_[row];
  const bool is_next = index.row() == next_;
  if (role == kNextRole) return is_next;
  if (role == kWarpRole) return static_cast<qlonglong>(group.warp);
  if (role != Qt::DisplayRole && role != Qt::ToolTipRole) return {};
  switch (index.column()) {
    case kCta:
      return words(group.cta_name);
    case kWarp:
      return QString::number(group.warp);
    case kLanes:
      return words(group.lanes);
    case kGroupState:
      return group.state == KernelGroup::State::next    ? tr("next")
             : group.state == KernelGroup::State::ready ? tr("ready")
                                                        : tr("waits for %1").arg(words(group.waits_for));
    case kPlace:
      return places_[row];
    default:
      return instructions_[row];
  }
}

QVariant KernelGroupModel::headerData(int section, Qt::Orientation orientation, int role) const {
  return title({tr("CTA"), tr("Warp"), tr("Lanes"), tr("State"), tr("Place"), tr("Instruction")}, section, orientation,
               role);
}

// --- registers -------------------------------------------------------------------------------------------------------

void KernelRegisterModel::set_state(const KernelState& state) {
  const KernelGroup* const group = state.shown < 0 ? nullptr : &state.groups[static_cast<std::size_t>(state.shown)];
  const std::pair warp = group == nullptr ? std::pair{-1, -1} : std::pair{group->cta, group->warp};
  std::set<std::pair<int, int>> changed;
  if (warp == warp_ && warp.first >= 0) {
    for (int row = 0; row < std::ssize(state.registers); ++row) {
      const KernelRegister& now = state.registers[static_cast<std::size_t>(row)];
      // A function has the same registers in every state, mostly: thousands, in large kernels.
      const bool in_place = row < std::ssize(rows_) && rows_[static_cast<std::size_t>(row)].name == now.name;
      const auto before = in_place ? rows_.begin() + row : std::ranges::find(rows_, now.name, &KernelRegister::name);
      for (int lane = 0; lane < kWarpLanes; ++lane) {
        const std::string& bits = now.bits[static_cast<std::size_t>(lane)];
        const bool is_same = before != rows_.end() && before->bits[static_cast<std::size_t>(lane)] == bits;
        if (!is_same && !bits.empty()) changed.emplace(row, lane);
      }
    }
  }
  beginResetModel();
  rows_ = state.registers;
  changed_ = std::move(changed);
  warp_ = warp;
  endResetModel();
}

void KernelRegisterModel::clear() {
  beginResetModel();
  rows_.clear();
  changed_.clear();
  warp_ = {-1, -1};
  endResetModel();
}

void KernelRegisterModel::set_bits(bool bits) {
  bits_ = bits;
  if (!rows_.empty()) Q_EMIT dataChanged(index(0, 0), index(rowCount() - 1, columnCount() - 1));
}

int KernelRegisterModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int KernelRegisterModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kFirstLane + kWarpLanes;
}

QVariant KernelRegisterModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const KernelRegister& row = rows_[static_cast<std::size_t>(index.row())];
  const int lane = index.column() - kFirstLane;
  const bool changed = lane >= 0 && changed_.contains({index.row(), lane});
  if (role == kChangedRole) return changed;
  if (role == Qt::TextAlignmentRole && lane >= 0) return QVariant::fromValue(Qt::AlignRight | Qt::AlignVCenter);
  if (lane < 0) return role == Qt::DisplayRole ? words(index.column() == kName ? row.name : row.type) : QVariant();
  const auto at = static_cast<std::size_t>(lane);
  if (role == Qt::DisplayRole) return words(bits_ ? row.bits[at] : row.values[at]);
  if (role == Qt::ToolTipRole && !row.bits[at].empty()) {
    return tr("%1 of lane %2: %3, bits %4")
        .arg(words(row.name), QString::number(lane), words(row.values[at]), words(row.bits[at]));
  }
  return {};
}

QVariant KernelRegisterModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (section < kFirstLane) return title({tr("Register"), tr("Type")}, section, orientation, role);
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return QString::number(section - kFirstLane);
}

// --- reports ---------------------------------------------------------------------------------------------------------

void KernelReportModel::set_state(const KernelCode& code, const KernelState& state) {
  beginResetModel();
  rows_ = state.reports;
  step_ = state.step;
  places_.clear();
  for (const KernelReport& row : rows_) places_.push_back(place_of(code, row.instruction));
  endResetModel();
}

void KernelReportModel::clear() {
  beginResetModel();
  rows_.clear();
  endResetModel();
}

int KernelReportModel::rowCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : static_cast<int>(rows_.size());
}

int KernelReportModel::columnCount(const QModelIndex& parent) const {
  return parent.isValid() ? 0 : kColumns;
}

QVariant KernelReportModel::data(const QModelIndex& index, int role) const {
  if (!index.isValid()) return {};
  const auto row = static_cast<std::size_t>(index.row());
  const KernelReport& report = rows_[row];
  if (role == kHappenedRole) return report.step <= step_;
  if (role == Qt::ToolTipRole) return words(report.text);
  if (role != Qt::DisplayRole) return {};
  switch (index.column()) {
    case kStep:
      return QString::number(report.step);
    case kKind:
      return QStringLiteral("%1 %2").arg(words(report.severity), words(report.title));
    case kWhere:
      return places_[row];
    default:
      return words(report.message);
  }
}

QVariant KernelReportModel::headerData(int section, Qt::Orientation orientation, int role) const {
  return title({tr("Step"), tr("Report"), tr("Place"), tr("What")}, section, orientation, role);
}

}  // namespace kvscope::viz
