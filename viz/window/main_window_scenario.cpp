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

// The same step in the other run; events have other numbers there.
void MainWindow::run_changed(const std::string& scenario) {
  wish_ = wish_of_now();
  wish_.position.reset();
  wish_.step = document_->cursor().state().step;
  messages_->dismiss(QStringLiteral("open"));
  loader_.open(document_->path(), scenario);
}

void MainWindow::show_changed() {
  const ScenarioDraft* draft = scenario_panel_->model().draft();
  const auto show = [this](Do id, const std::optional<std::string>& words) {
    actions_.set_reason(id, words ? QString() : tr("nothing was changed"));
    if (words)
      actions_[id]->setStatusTip(QStringLiteral("%1: %2").arg(tip_of(entry(id)), QString::fromStdString(*words)));
  };
  show(Do::undo, draft != nullptr ? draft->undo_words() : std::nullopt);
  show(Do::redo, draft != nullptr ? draft->redo_words() : std::nullopt);
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
        {QStringLiteral("changes"), true, tr("The changes could not be restored"), current_fault_lines(), {}});
  }
}

// Another file was opened, or none: the changes are one click away.
void MainWindow::offer_changes(const QString& path, const std::string& scenario) {
  const auto restore = [this, path, scenario] {
    OpenWish wish;
    wish.changes = scenario;
    open(path, wish);
  };
  messages_->show_message({QStringLiteral("changes"),
                           false,
                           tr("The changes of %1 were not saved").arg(file_name(path)),
                           {},
                           {{tr("Open it with the changes"), restore}}});
}

void MainWindow::ask_where_to_save_scenario() {
  QFileDialog* dialog = make_file_dialog(this, tr("Save the scenario as"), document_->path());
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(tr("Scenarios (*.json)"));
  dialog->setDefaultSuffix(QStringLiteral("json"));
  dialog->selectFile(QFileInfo(document_->path()).completeBaseName() + QStringLiteral(".json"));
  connect(dialog, &QFileDialog::fileSelected, this, &MainWindow::save_scenario);
  dialog->open();
}

// The saved file is open from then on. A file of requests is named from its folder.
void MainWindow::save_scenario(const QString& path) {
  messages_->dismiss(QStringLiteral("write"));
  const auto folder_of = [](const QString& file) {
    return std::filesystem::absolute(std::filesystem::path(file.toStdString())).parent_path();
  };
  Scenario scenario = scenario_panel_->model().draft()->scenario();
  try {
    if (auto& requests = scenario.requests.file; requests && std::filesystem::path(requests->path).is_relative()) {
      requests->path = (folder_of(document_->path()) / requests->path).lexically_proximate(folder_of(path)).string();
    }
    write_file_atomically(std::filesystem::path(path.toStdString()), json::dump(to_short_json(scenario)) + "\n");
  } catch (...) {
    return messages_->show_message({QStringLiteral("write"),
                                    true,
                                    tr("%1 could not be written").arg(file_name(path)),
                                    current_fault_lines(),
                                    {{tr("Try again"), [this, path] { save_scenario(path); }}}});
  }
  statusBar()->showMessage(tr("written: %1").arg(QDir::toNativeSeparators(path)));
  file_utilization_ = std::make_shared<const std::vector<float>>(run_->timeline()[Series::utilization]);
  document_->set_compared(nullptr);
  scenario_panel_->saved();
  if (path != document_->path()) load(path, wish_of_now());
}

}  // namespace kvscope::viz
