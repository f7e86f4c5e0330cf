#include "viz/model/scenario_model.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include <QtCore/QStringList>

namespace kvscope::viz {
namespace {

using Kind = DraftField::Kind;

// An item of a list in one line: "prompt_tokens 9, generate_tokens 4".
QString item_words(const DraftField& item) {
  QStringList words;
  for (const DraftField& field : item.fields) {
    if (field.given && field.is_value()) words.push_back(QString::fromStdString(field.name + ' ' + field.value));
  }
  return words.join(QStringLiteral(", "));
}

// Whether the path is that of the field at `around`, or of one in it.
bool is_within(std::string_view path, std::string_view around) {
  return path.starts_with(around) &&
         (path.size() == around.size() || path[around.size()] == '.' || path[around.size()] == '[');
}

}  // namespace

void ScenarioModel::set_scenario(const std::optional<Scenario>& scenario) {
  beginResetModel();
  nodes_.clear();
  draft_.reset();
  if (scenario) draft_.emplace(*scenario);
  if (draft_) add_nodes(draft_->root(), -1, 0);
  endResetModel();
  Q_EMIT edited();
}

void ScenarioModel::replace(const Scenario& scenario, const QString& words) {
  draft_->replace(scenario, words.toStdString());
  refresh();
}

void ScenarioModel::mark_start() {
  draft_->mark_start();
  Q_EMIT edited();
}

void ScenarioModel::undo() {
  if (!draft_) return;
  draft_->undo();
  refresh();
}

void ScenarioModel::redo() {
  if (!draft_) return;
  draft_->redo();
  refresh();
}

// --- nodes -----------------------------------------------------------------------------------------------------------

void ScenarioModel::add_nodes(const DraftField& field, int parent, int row) {
  const int number = static_cast<int>(nodes_.size());
  nodes_.push_back({&field, field.path, parent, row, {}});
  if (parent >= 0) nodes_[static_cast<std::size_t>(parent)].inner.push_back(number);
  int inner = 0;
  for (const DraftField& part : field.fields) add_nodes(part, number, inner++);
}

// A view keeps its editor, its selection and what is expanded as long as the same fields are there.
void ScenarioModel::refresh() {
  std::vector<Node> before = std::exchange(nodes_, {});
  add_nodes(draft_->root(), -1, 0);
  const auto same_path = [](const Node& a, const Node& b) { return a.path == b.path; };
  if (std::ranges::equal(before, nodes_, same_path)) {
    for (const Node& n : nodes_) {
      if (n.inner.empty()) continue;
      Q_EMIT dataChanged(index_of_node(n.inner.front(), kField), index_of_node(n.inner.back(), kValue));
    }
  } else {
    std::swap(before, nodes_);
    beginResetModel();  // the paths of before can still be asked for
    std::swap(before, nodes_);
    endResetModel();
  }
  Q_EMIT edited();
}

const ScenarioModel::Node& ScenarioModel::node(const QModelIndex& index) const {
  return nodes_[index.isValid() ? index.internalId() : 0];
}

QModelIndex ScenarioModel::index_of_node(int number, int column) const {
  if (number <= 0) return {};
  return createIndex(nodes_[static_cast<std::size_t>(number)].row, column, static_cast<quintptr>(number));
}

const DraftField* ScenarioModel::field(const QModelIndex& index) const {
  return index.isValid() ? node(index).field : nullptr;
}

QModelIndex ScenarioModel::index_of(const QString& path, int column) const {
  const std::string wanted = path.toStdString();
  int best = -1;
  for (int i = 1; i < static_cast<int>(nodes_.size()); ++i) {
    if (is_within(wanted, nodes_[static_cast<std::size_t>(i)].path)) best = i;  // the innermost one comes last
  }
  return index_of_node(best, column);
}

// --- changes ---------------------------------------------------------------------------------------------------------

bool ScenarioModel::can_add(const QModelIndex& index) const {
  const DraftField* f = field(index);
  return f != nullptr && (f->kind == Kind::list || (f->kind == Kind::optional && !f->given));
}

bool ScenarioModel::can_remove(const QModelIndex& index) const {
  const DraftField* f = field(index);
  if (f == nullptr || !f->given) return false;
  return f->kind == Kind::optional || f->kind == Kind::item || (f->is_value() && !f->required);
}

QModelIndex ScenarioModel::add(const QModelIndex& index) {
  if (!can_add(index)) return {};
  const QString path = QString::fromStdString(field(index)->path);
  const bool list = field(index)->kind == Kind::list;
  draft_->add(path.toStdString());
  refresh();
  const QModelIndex there = index_of(path);
  return list ? this->index(rowCount(there) - 1, kField, there) : there;
}

void ScenarioModel::remove(const QModelIndex& index) {
  if (!can_remove(index)) return;
  draft_->remove(std::string(field(index)->path));
  refresh();
}

bool ScenarioModel::setData(const QModelIndex& index, const QVariant& value, int role) {
  if (role != Qt::EditRole || !(flags(index) & Qt::ItemIsEditable)) return false;
  const bool text = field(index)->kind == Kind::text;
  const QString typed = text ? value.toString() : value.toString().trimmed();
  draft_->set(std::string(field(index)->path), typed.toStdString());
  refresh();
  return true;
}

// --- for views -------------------------------------------------------------------------------------------------------

QModelIndex ScenarioModel::index(int row, int column, const QModelIndex& parent) const {
  if (nodes_.empty() || !hasIndex(row, column, parent)) return {};
  return index_of_node(node(parent).inner[static_cast<std::size_t>(row)], column);
}

QModelIndex ScenarioModel::parent(const QModelIndex& index) const {
  return index.isValid() ? index_of_node(node(index).parent, kField) : QModelIndex();
}

int ScenarioModel::rowCount(const QModelIndex& parent) const {
  if (nodes_.empty() || parent.column() > kField) return 0;
  return static_cast<int>(node(parent).inner.size());
}

int ScenarioModel::columnCount(const QModelIndex& /*parent*/) const {
  return kColumns;
}

QString ScenarioModel::faults_of(const DraftField& field) const {
  QStringList faults;
  for (const Fault& fault : draft_->faults()) {
    if (fault.where == field.path) faults.push_back(QString::fromStdString(fault.message));
  }
  return faults.join(QLatin1Char('\n'));
}

bool ScenarioModel::fault_inside(const DraftField& field) const {
  return std::ranges::any_of(draft_->faults(), [&](const Fault& f) { return is_within(f.where, field.path); });
}

QString ScenarioModel::tool_tip(const DraftField& field) const {
  QStringList lines{faults_of(field), QString::fromStdString(field.meaning)};
  QStringList legal;
  if (!field.range.empty()) legal.push_back(QString::fromStdString(field.range));
  for (const std::string& word : field.words) legal.push_back(QString::fromStdString(word));
  if (!legal.isEmpty()) lines.push_back(tr("Legal: %1").arg(legal.join(QStringLiteral(", "))));
  if (field.is_value() && !field.given) lines.push_back(tr("This is the default."));
  lines.removeAll(QString());
  return lines.join(QLatin1Char('\n'));
}

QVariant ScenarioModel::data(const QModelIndex& index, int role) const {
  if (role == kPathRole && index.isValid()) return QString::fromStdString(node(index).path);
  const DraftField* f = field(index);
  if (f == nullptr) return {};
  const QString value = QString::fromStdString(f->value);
  switch (role) {
    case Qt::DisplayRole:
      if (index.column() == kField) return QString::fromStdString(f->name);
      if (f->kind == Kind::item) return item_words(*f);
      if (f->kind == Kind::optional && !f->given) return tr("none");
      return value;
    case Qt::EditRole:
      return value;
    case Qt::ToolTipRole:
      return tool_tip(*f);
    case Qt::AccessibleTextRole:
      return index.column() == kField     ? QString::fromStdString(f->name)
             : f->is_value() && !f->given ? tr("%1, the default").arg(value)
                                          : data(index, Qt::DisplayRole).toString();
    case Qt::AccessibleDescriptionRole:
      return tool_tip(*f);
    case kGivenRole:
      return f->given;
    case kFaultRole:
      return faults_of(*f);
    case kFaultInsideRole:
      return fault_inside(*f);
    case kWordsRole: {
      QStringList words;
      if (f->kind != Kind::word && f->kind != Kind::flag) return words;
      for (const std::string& word : f->words) words.push_back(QString::fromStdString(word));
      return words;
    }
    default:
      return {};
  }
}

QVariant ScenarioModel::headerData(int section, Qt::Orientation orientation, int role) const {
  if (orientation != Qt::Horizontal || role != Qt::DisplayRole) return {};
  return section == kField ? tr("Field") : tr("Value");
}

Qt::ItemFlags ScenarioModel::flags(const QModelIndex& index) const {
  const DraftField* f = field(index);
  if (f == nullptr) return Qt::NoItemFlags;
  const Qt::ItemFlags shown = Qt::ItemIsEnabled | Qt::ItemIsSelectable;
  return index.column() == kValue && f->is_value() ? shown | Qt::ItemIsEditable : shown;
}

}  // namespace kvscope::viz
