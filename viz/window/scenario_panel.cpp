#include "viz/window/scenario_panel.h"

#include <functional>
#include <utility>
#include <vector>

#include <QtCore/QUrl>
#include <QtGui/QAction>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QLineEdit>
#include <QtWidgets/QSplitter>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QToolButton>
#include <QtWidgets/QTreeView>
#include <QtWidgets/QVBoxLayout>

#include "core/base/errors.h"
#include "core/scenario/scenario_json.h"
#include "viz/view/time_text.h"
#include "viz/window/actions.h"
#include "viz/window/field_delegate.h"
#include "viz/window/icons.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

constexpr const char* kOpenAtFirst[] = {"$.cache", "$.requests", "$.scheduler"};
constexpr int kTreeShare = 3, kWordsShare = 2;  // of the panel's height

QString percent_text(double share) {
  return QStringLiteral("%1 %").arg(100 * share, 0, 'f', 1);
}

struct NumberRow {
  QString name, before, now;
};

// A row for each number that is not 0 in both runs.
std::vector<NumberRow> number_rows(const RunNumbers& a, const RunNumbers& b) {
  std::vector<NumberRow> rows;
  const auto add = [&](const char* name, auto RunNumbers::*of, const auto& text_of) {
    if (a.*of == 0 && b.*of == 0) return;
    rows.push_back({ScenarioPanel::tr(name), text_of(a.*of), text_of(b.*of)});
  };
  const auto rate_text = [](double rate) { return QString::number(rate, 'f', 1); };
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "steps"), &RunNumbers::steps, number_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "time"), &RunNumbers::time_us, time_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "generated tokens per second"), &RunNumbers::tokens_per_second,
      rate_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "preemptions"), &RunNumbers::preemptions, number_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "evictions"), &RunNumbers::evictions, number_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "rejected requests"), &RunNumbers::rejected, number_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "copied blocks"), &RunNumbers::copies, number_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "prefix hit rate"), &RunNumbers::hit_rate, percent_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "utilization, mean"), &RunNumbers::mean_utilization,
      percent_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "utilization, maximum"), &RunNumbers::most_utilization,
      percent_text);
  add(QT_TRANSLATE_NOOP("kvscope::viz::ScenarioPanel", "fragmentation, mean"), &RunNumbers::mean_fragmentation,
      percent_text);
  return rows;
}

QToolButton* tool_button(const QString& name) {
  auto* button = new QToolButton;
  button->setAccessibleName(name);
  button->setToolTip(name);
  button->setFocusPolicy(Qt::StrongFocus);
  return button;
}

QToolButton* action_button(QAction* action) {
  auto* button = new QToolButton;
  button->setDefaultAction(action);
  button->setFocusPolicy(Qt::StrongFocus);
  return button;
}

}  // namespace

QString numbers_html(const std::optional<RunNumbers>& before, const RunNumbers& now) {
  const QString cell = QStringLiteral("<td align='right' style='padding-left:12px'>%1</td>");
  QString rows;
  if (before) {
    rows = QStringLiteral("<tr><td></td>%1%2</tr>")
               .arg(cell.arg(ScenarioPanel::tr("file")), cell.arg(ScenarioPanel::tr("changed")));
  }
  for (const NumberRow& row : number_rows(before.value_or(now), now)) {
    const bool differs = row.before != row.now;
    const QString shown = differs ? QStringLiteral("<b>%1</b>").arg(row.now) : row.now;
    rows += QStringLiteral("<tr><td>%1</td>%2%3</tr>")
                .arg(row.name, before ? cell.arg(row.before) : QString(), cell.arg(shown));
  }
  return QStringLiteral("<table cellspacing='2'>%1</table>").arg(rows);
}

ScenarioPanel::ScenarioPanel(const Actions& actions, QWidget* parent) : QWidget(parent) {
  build(actions);
  connect(&model_, &ScenarioModel::edited, this, &ScenarioPanel::follow_draft);
  connect(tree_->selectionModel(), &QItemSelectionModel::currentChanged, this, &ScenarioPanel::update_buttons);
  connect(add_, &QToolButton::clicked, this, [this] {
    const QModelIndex added = model_.add(current());
    tree_->expand(added.parent());
    tree_->expand(added);
    tree_->setCurrentIndex(added);
  });
  connect(remove_, &QToolButton::clicked, this, [this] {
    const QString path = current().data(ScenarioModel::kPathRole).toString();
    model_.remove(current());
    tree_->setCurrentIndex(model_.index_of(path));
  });
  connect(run_, &QToolButton::clicked, this, &ScenarioPanel::run);
  connect(&model_, &QAbstractItemModel::modelAboutToBeReset, this, &ScenarioPanel::keep_place);
  connect(&model_, &QAbstractItemModel::modelReset, this, &ScenarioPanel::restore_place);
  connect(words_, &QTextBrowser::anchorClicked, this, &ScenarioPanel::follow);
  close();
}

void ScenarioPanel::build(const Actions& actions) {
  setAccessibleName(tr("Scenario"));
  auto* parts =
      new QSplitter(Qt::Vertical, this);  // before the buttons, which are about its fields: Tab comes here first
  tree_ = new QTreeView(parts);
  tree_->setProperty("card", true);
  tree_->setAccessibleName(tr("Fields of the scenario"));
  tree_->setModel(&model_);
  tree_->setUniformRowHeights(true);
  tree_->setEditTriggers(QAbstractItemView::DoubleClicked | QAbstractItemView::EditKeyPressed |
                         QAbstractItemView::SelectedClicked | QAbstractItemView::AnyKeyPressed);
  tree_->setTabKeyNavigation(false);  // Tab leaves the tree
  tree_->header()->setSectionResizeMode(QHeaderView::ResizeToContents);
  delegate_ = new FieldDelegate(this);
  tree_->setItemDelegate(delegate_);
  words_ = new QTextBrowser(parts);
  words_->setProperty("card", true);
  words_->setAccessibleName(tr("The changed run beside that of the file"));
  words_->setOpenLinks(false);
  add_ = tool_button(tr("Add an item to the list, or the section"));
  remove_ = tool_button(tr("Remove the item or the section; of a value: its default"));
  run_ = tool_button(tr("Run the changed scenario"));

  auto* row = new QHBoxLayout;
  row->setSpacing(4);
  for (const Do id : {Do::undo, Do::redo}) row->addWidget(action_button(actions[id]));
  row->addWidget(add_);
  row->addWidget(remove_);
  row->addStretch(1);
  row->addWidget(run_);
  row->addWidget(action_button(actions[Do::save_scenario]));
  parts->setChildrenCollapsible(false);
  parts->setStretchFactor(0, kTreeShare);
  parts->setStretchFactor(1, kWordsShare);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addLayout(row);
  column->addWidget(parts, 1);
}

// --- runs ------------------------------------------------------------------------------------------------------------

void ScenarioPanel::close() {
  path_.clear();
  why_none_ = tr("Open a scenario or a trace.");
  of_file_.reset();
  now_.reset();
  last_runnable_.reset();
  asked_.reset();
  showing_ = Showing::file;
  model_.set_scenario(std::nullopt);
}

void ScenarioPanel::open(const Facts& facts, const QString& path, const RunNumbers& numbers) {
  const bool same_file = std::exchange(path_, path) == path;
  of_file_ = now_ = numbers;
  asked_ = facts.scenario;
  showing_ = Showing::file;
  if (!facts.scenario || !ScenarioDraft::fits(*facts.scenario)) {
    why_none_ = !facts.scenario
                    ? tr("This file has no scenario to change.")
                    : tr("The scenario lists more than %1 requests and spans: change its file, then press Ctrl+R.")
                          .arg(number_text(ScenarioDraft::kMostItems));
    return model_.set_scenario(std::nullopt);
  }
  const ScenarioDraft* draft = model_.draft();
  if (draft != nullptr && (same_file || (draft->faults().empty() && draft->scenario() == *facts.scenario))) {
    model_.replace(*facts.scenario, tr("opened again"));
    return model_.mark_start();
  }
  model_.set_scenario(facts.scenario);
  for (const char* section : kOpenAtFirst) tree_->expand(model_.index_of(QString::fromLatin1(section)));
}

void ScenarioPanel::show_changed(const RunNumbers& numbers) {
  now_ = numbers;
  if (!changed()) of_file_ = numbers;  // it was saved while it ran
  showing_ = changed() ? Showing::changed : Showing::file;
  show_words();
}

void ScenarioPanel::show_not_run() {
  if (showing_ != Showing::running) return;
  showing_ = Showing::not_run;
  show_words();
}

void ScenarioPanel::restore(const std::string& text) {
  const std::string source = tr("the changed scenario").toStdString();
  const Scenario scenario = parse_scenario(text, source);
  if (model_.draft() == nullptr)
    throw InputError(source, "", tr("is of a file that has no scenario now").toStdString());
  if (ScenarioDraft::fits(scenario)) model_.replace(scenario, tr("changes restored"));
}

void ScenarioPanel::saved() {
  if (showing_ == Showing::changed) {
    of_file_ = now_;
    showing_ = Showing::file;
  }
  model_.mark_start();
}

void ScenarioPanel::finish_editing() {
  for (QWidget* editor : tree_->viewport()->findChildren<QWidget*>(Qt::FindDirectChildrenOnly)) {
    if (qobject_cast<QLineEdit*>(editor) == nullptr && qobject_cast<QComboBox*>(editor) == nullptr) continue;
    Q_EMIT delegate_->commitData(editor);
    Q_EMIT delegate_->closeEditor(editor);
  }
}

bool ScenarioPanel::changed() const {
  return model_.draft() != nullptr && model_.draft()->changed();
}

bool ScenarioPanel::shows_changed() const {
  return showing_ == Showing::changed;
}

std::string ScenarioPanel::changed_text() const {
  const ScenarioDraft* draft = model_.draft();
  const bool other = draft != nullptr && last_runnable_ && *last_runnable_ != draft->start();
  return other ? json::dump(to_short_json(*last_runnable_)) + "\n" : std::string();
}

void ScenarioPanel::follow_draft() {
  const ScenarioDraft* draft = model_.draft();
  if (draft != nullptr && draft->faults().empty()) {
    last_runnable_ = draft->scenario();
    if (asked_ != draft->scenario()) run();
  }
  show_words();
  update_buttons();
  Q_EMIT edited();
}

void ScenarioPanel::run() {
  if (model_.draft() == nullptr || !model_.draft()->faults().empty()) return;
  asked_ = model_.draft()->scenario();
  showing_ = Showing::running;
  show_words();
  Q_EMIT run_wanted(json::dump(to_json(*asked_)));
}

// --- what is shown ---------------------------------------------------------------------------------------------------

QModelIndex ScenarioPanel::current() const {
  return tree_->currentIndex().siblingAtColumn(ScenarioModel::kField);
}

void ScenarioPanel::update_buttons() {
  add_->setEnabled(model_.can_add(current()));
  remove_->setEnabled(model_.can_remove(current()));
}

QString ScenarioPanel::draft_html() const {
  const ScenarioDraft& draft = *model_.draft();
  QString html;
  for (const Fault& fault : draft.faults()) {
    const QString where = QString::fromStdString(fault.where);
    html += QStringLiteral("<p><a href='field:%1'>%2</a>: %3</p>")
                .arg(QString::fromUtf8(QUrl::toPercentEncoding(where)), where.mid(2).toHtmlEscaped(),
                     QString::fromStdString(fault.message).toHtmlEscaped());
  }
  if (!html.isEmpty()) {
    return tr("<p><b>This scenario cannot run.</b> The picture shows the last one that could.</p>") + html;
  }
  switch (showing_) {
    case Showing::running:
      return tr("<p>Running the changed scenario ...</p>");
    case Showing::not_run:
      return tr("<p><b>The changed scenario was not run.</b> The picture shows the run before.</p>");
    case Showing::changed:
      return tr("<p>The picture shows the changed scenario, which is not saved.</p>") + numbers_html(of_file_, *now_);
    default:
      return tr("<p>Double-click a value to change it. Values in gray are defaults.</p>") +
             numbers_html(std::nullopt, *now_);
  }
}

// A list with another item is a new tree for the view, which would collapse it.
void ScenarioPanel::keep_place() {
  open_paths_.clear();
  const std::function<void(const QModelIndex&)> keep = [&](const QModelIndex& around) {
    for (int row = 0; row < model_.rowCount(around); ++row) {
      const QModelIndex index = model_.index(row, ScenarioModel::kField, around);
      if (!tree_->isExpanded(index)) continue;
      open_paths_.push_back(index.data(ScenarioModel::kPathRole).toString());
      keep(index);
    }
  };
  keep({});
  current_path_ = tree_->currentIndex().data(ScenarioModel::kPathRole).toString();
}

void ScenarioPanel::restore_place() {
  for (const QString& path : open_paths_) {
    const QModelIndex index = model_.index_of(path);
    if (index.data(ScenarioModel::kPathRole).toString() == path) tree_->expand(index);
  }
  if (!current_path_.isEmpty()) tree_->setCurrentIndex(model_.index_of(current_path_, ScenarioModel::kValue));
}

void ScenarioPanel::show_words() {
  const ScenarioDraft* draft = model_.draft();
  tree_->setVisible(draft != nullptr);
  run_->setEnabled(draft != nullptr && draft->faults().empty() && showing_ == Showing::not_run);
  words_->document()->setDefaultStyleSheet(
      QStringLiteral("a { color: %1; text-decoration: none; } p { margin: 4px; }").arg(theme_->accent.name()));
  words_->setHtml(
      draft == nullptr
          ? QStringLiteral("<p style='color:%1'>%2</p>").arg(theme_->text_quiet.name(), why_none_.toHtmlEscaped())
          : draft_html());
}

void ScenarioPanel::follow(const QUrl& link) {
  const QModelIndex index = model_.index_of(link.path(), ScenarioModel::kValue);
  if (!index.isValid()) return;
  tree_->setCurrentIndex(index);
  tree_->scrollTo(index);
  tree_->setFocus();
}

void ScenarioPanel::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  delegate_->set_theme(theme, font_scale);
  add_->setIcon(icon(Icon::add, theme));
  remove_->setIcon(icon(Icon::remove, theme));
  run_->setIcon(icon(Icon::play, theme));
  for (QToolButton* button : findChildren<QToolButton*>()) button->setIconSize(QSize(1, 1) * qRound(16 * font_scale));
  words_->setFont(ui_font(kBodySize * font_scale));
  tree_->setFont(ui_font(kBodySize * font_scale));
  show_words();
}

}  // namespace kvscope::viz
