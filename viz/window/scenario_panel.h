// The scenario of the open run, field by field: a change that can run is run at once, and the numbers of its run are
// beside those of the file's. A change that cannot run shows why, and the run before it stays.
#pragma once

#include <optional>
#include <string>

#include <QtCore/QString>
#include <QtCore/QStringList>
#include <QtWidgets/QWidget>

#include "viz/model/scenario_model.h"
#include "viz/playback/facts.h"
#include "viz/playback/run_numbers.h"
#include "viz/view/theme.h"

class QTextBrowser;
class QToolButton;
class QTreeView;
class QUrl;

namespace kvscope::viz {

class Actions;
class FieldDelegate;

// Two runs as a table: a row for each number that is not 0 in both, bold where they differ. Without `before` one
// column.
[[nodiscard]] QString numbers_html(const std::optional<RunNumbers>& before, const RunNumbers& now);

class ScenarioPanel final : public QWidget {
  Q_OBJECT
 public:
  explicit ScenarioPanel(const Actions& actions, QWidget* parent = nullptr);

  void close();  // no file is open
  // The run of a file. A file of the same path, or with the scenario of the draft, keeps what can be undone.
  void open(const Facts& facts, const QString& path, const RunNumbers& numbers);
  // The run of the changed scenario.
  void show_changed(const RunNumbers& numbers);
  void show_not_run();  // the run that was wanted, if one was: it was cancelled, it failed, or another file was opened
  void run();           // what the draft describes, if that can run
  // Takes what is being typed into a field as its value.
  void finish_editing();
  // A scenario as text in place of the draft's: one change, which is run. Faults: InputError.
  void restore(const std::string& text);
  void saved();  // a file has what the draft describes

  [[nodiscard]] ScenarioModel& model() { return model_; }
  [[nodiscard]] bool changed() const;        // and not saved
  [[nodiscard]] bool shows_changed() const;  // the run that is shown is of a changed scenario
  // The last scenario of the draft that can run, as text; empty: it is that of the file.
  [[nodiscard]] std::string changed_text() const;
  void set_theme(const Theme& theme, double font_scale);

 Q_SIGNALS:
  void run_wanted(const std::string& scenario);
  void edited();  // the draft, or what can be undone, changed

 private:
  void build(const Actions& actions);
  void follow_draft();
  void keep_place();
  void restore_place();
  void show_words();
  void update_buttons();
  void follow(const QUrl& link);
  [[nodiscard]] QString draft_html() const;
  [[nodiscard]] QModelIndex current() const;

  ScenarioModel model_;
  QString path_, why_none_;
  std::optional<Scenario> last_runnable_, asked_;  // of the draft; the last one that was run
  std::optional<RunNumbers> of_file_, now_;
  QStringList open_paths_;  // what is expanded, and the current field, while the model is reset
  QString current_path_;
  enum class Showing : std::uint8_t { file, running, changed, not_run };
  Showing showing_ = Showing::file;
  const Theme* theme_ = &theme(ThemeKind::dark);
  QTreeView* tree_ = nullptr;
  FieldDelegate* delegate_ = nullptr;
  QTextBrowser* words_ = nullptr;
  QToolButton *add_ = nullptr, *remove_ = nullptr, *run_ = nullptr;
};

}  // namespace kvscope::viz
