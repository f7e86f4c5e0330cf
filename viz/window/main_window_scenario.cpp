// The changed scenario: running, restoring and saving it.
#include <filesystem>
#include <optional>
#include <string>

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtWidgets/QStatusBar>

#include "core/base/file.h"
#include "core/scenario/scenario_json.h"
#include "viz/window/fault_words.h"
#include "viz/window/file_dialog.h"
#include "viz/window/main_window.h"
#include "viz/window/message_bar.h"
#include "viz/window/scenario_panel.h"

namespace kvscope::viz {

void MainWindow::run_changed(const std::string& scenario) {
  // A run to compare with that is being opened, or waits for a changed run before, is opened after this one.
  std::optional<QString> compared;
  if (loader_.loading()) compared = loader_.compared() ? loader_.path() : wish_.compared;
  wish_ = wish_by_step();
  wish_.compared = compared;
  messages_->dismiss(QStringLiteral("open"));
  loader_.open(document_->path(), scenario);
}

void MainWindow::show_draft() {
  const ScenarioDraft* draft = scenario_panel_->model().draft();
  const bool opening = !scenario_panel_->isEnabled();
  const auto show = [this, opening](Do id, const std::optional<std::string>& words, const QString& without) {
    actions_.set_reason(id, opening ? tr("a file is being opened") : words ? QString() : without);
    if (words)
      actions_[id]->setStatusTip(QStringLiteral("%1: %2").arg(tip_of(entry(id)), QString::fromStdString(*words)));
  };
  show(Do::undo, draft != nullptr ? draft->undo_words() : std::nullopt, tr("nothing was changed"));
  show(Do::redo, draft != nullptr ? draft->redo_words() : std::nullopt, tr("nothing was undone"));
  actions_.set_reason(Do::save_scenario, draft == nullptr           ? tr("no scenario is open")
                                         : !draft->faults().empty() ? tr("the scenario has faults")
                                                                    : QString());
  setWindowModified(document_ != nullptr && scenario_panel_->changed());
  changed();
}

void MainWindow::restore_changes(const std::string& scenario) {
  try {
    scenario_panel_->restore(scenario);
  } catch (...) {
    messages_->show_message(
        {QStringLiteral("write"), true, tr("The changes could not be restored"), current_fault_lines(), {}});
  }
}

QString MainWindow::changes_topic(const QString& path) {
  return QStringLiteral("changes of %1").arg(path);
}

void MainWindow::offer_changes(const QString& path, const std::string& scenario, const OpenWish& place) {
  std::erase_if(unsaved_, [&path](const auto& unsaved) { return unsaved.first == path; });
  unsaved_.emplace_back(path, scenario);
  OpenWish wish = place;
  wish.changes = scenario;
  messages_->show_message({changes_topic(path),
                           false,
                           tr("The changes of %1 were not saved").arg(file_name(path)),
                           {},
                           {{tr("Open it with the changes"), [this, path, wish] { open(path, wish); }}}});
}

std::vector<std::pair<QString, QString>> MainWindow::unsaved_now() const {
  std::vector<std::pair<QString, QString>> unsaved;
  const auto add = [&unsaved](const QString& path, const std::string& scenario) {
    unsaved.emplace_back(path, QString::fromStdString(scenario));
  };
  const std::string changes = scenario_panel_->changed_text();
  if (document_ && !changes.empty()) add(document_->path(), changes);
  if (loader_.loading() && wish_.changes) add(loader_.path(), *wish_.changes);
  for (const auto& [path, scenario] : unsaved_) {
    if (messages_->showing(changes_topic(path))) add(path, scenario);
  }
  return unsaved;
}

// What is saved is the scenario of now: another file may open while the dialog is shown.
void MainWindow::ask_where_to_save_scenario() {
  scenario_panel_->finish_editing();
  const ScenarioDraft& draft = *scenario_panel_->model().draft();
  if (!draft.faults().empty()) return;  // of what was just typed; the panel shows them
  const QString from = document_->path();
  QFileDialog* dialog = make_file_dialog(this, tr("Save the scenario as"), from);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(tr("Scenarios (*.json)"));
  dialog->setDefaultSuffix(QStringLiteral("json"));
  dialog->selectFile(QFileInfo(from).completeBaseName() + QStringLiteral(".json"));
  connect(dialog, &QFileDialog::fileSelected, this,
          [this, from, scenario = draft.scenario()](const QString& path) { save_scenario(scenario, from, path); });
  dialog->open();
}

// The saved file is open from then on. A file of requests is named from its folder.
void MainWindow::save_scenario(Scenario scenario, const QString& from, const QString& path) {
  messages_->dismiss(QStringLiteral("write"));
  const ScenarioDraft* draft = scenario_panel_->model().draft();
  const bool still_here = document_ && document_->path() == from && draft != nullptr && draft->faults().empty() &&
                          draft->scenario() == scenario;
  const auto folder_of = [](const QString& file) {
    return std::filesystem::absolute(std::filesystem::path(file.toStdString())).parent_path();
  };
  try {
    if (auto& requests = scenario.requests.file; requests && std::filesystem::path(requests->path).is_relative()) {
      requests->path = (folder_of(from) / requests->path).lexically_proximate(folder_of(path)).string();
    }
    write_file_atomically(std::filesystem::path(path.toStdString()), json::dump(to_short_json(scenario)) + "\n");
  } catch (...) {
    return messages_->show_message(
        {QStringLiteral("write"),
         true,
         tr("%1 could not be written").arg(file_name(path)),
         current_fault_lines(),
         {{tr("Try again"), [this, scenario, from, path] { save_scenario(scenario, from, path); }}}});
  }
  statusBar()->showMessage(tr("written: %1").arg(QDir::toNativeSeparators(path)));
  if (!still_here) return;
  scenario_panel_->saved();
  file_run_.reset();
  compare();
  if (path != from) load(path, wish_by_step());
}

}  // namespace kvscope::viz
