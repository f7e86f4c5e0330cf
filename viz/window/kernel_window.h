// A kernel of a PTX file, launched on the virtual GPU and stepped forward and backward: its source and its PTX, the
// lane groups, the registers of a warp, shared memory, barriers and copies, reports. A separate window.
//
// Movements run on a thread, one after the other. Cancel ends a long movement at the step that it has reached.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <set>
#include <vector>

#include <QtCore/QDateTime>
#include <QtCore/QString>
#include <QtWidgets/QMainWindow>

#include "viz/model/kernel_tables.h"
#include "viz/window/backend.h"
#include "viz/window/job.h"
#include "viz/window/kernel_launches.h"

class QCheckBox;
class QLabel;
class QPlainTextEdit;
class QTabWidget;
class QTableView;

namespace kvscope::viz {

class BusyBar;
class DockTitle;
class KernelCodeView;
class KernelLaunchPanel;
class KernelSharedView;
class MessageBar;
class Overlay;
class RowDelegate;
class StatusLine;
class StepSlider;

class KernelWindow final : public QMainWindow {
  Q_OBJECT
 public:
  // `settings_folder`: where the last launch of each file is kept. The backend outlives the window.
  KernelWindow(Backend& backend, const QString& settings_folder, QWidget* parent = nullptr);
  ~KernelWindow() override;

  // Shows the file's kernels. A launch that is given is started, and the window goes to `step` if there is one; without
  // one, the last launch of the file is in the form.
  void open(const QString& path, const std::optional<KernelLaunch>& launch = std::nullopt,
            std::optional<std::uint64_t> step = std::nullopt);
  void start();                     // the launch of the form
  void go(const KernelWish& wish);  // after the movements that were asked for before
  void go(KernelMove move);
  void toggle_breakpoint(std::int32_t source, std::int32_t line);
  void set_look(const Theme& theme, double font_scale);

  [[nodiscard]] const QString& path() const { return path_; }
  [[nodiscard]] bool busy() const { return job_.running() || !wishes_.empty(); }
  [[nodiscard]] bool started() const { return run_ != nullptr; }
  [[nodiscard]] const KernelState& state() const { return state_; }
  [[nodiscard]] const KernelCode& code() const { return code_; }
  [[nodiscard]] MessageBar& messages() const { return *messages_; }
  [[nodiscard]] KernelLaunchPanel& launch_panel() const { return *launch_panel_; }

 Q_SIGNALS:
  void opened(const QString& path);
  void shown();  // a state, or the message of what failed

 protected:
  void closeEvent(QCloseEvent* event) override;
  // Keys of movements, such as Ctrl+End, in a text that is only read: the text does not take them.
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  struct Result;
  // kernel_window.cpp
  void build_center();
  void build_docks();
  void build_actions();
  QDockWidget* add_dock(const QString& name, QWidget* content, Qt::DockWidgetArea area);
  QAction* add_action(QMenu& menu, const QString& text, const QString& keys, const QString& tip);
  void show_help();

  // kernel_window_run.cpp
  void begin(const QString& title, Job::Work work);
  // When the job has ended: whether the start that was asked for meanwhile follows.
  bool starts_again();
  void finished();
  void failed(const QStringList& faults);
  void next_wish();
  void forget_run();  // cancels the job
  [[nodiscard]] bool reread(const KernelLaunch& launch);
  void ask_for_file();
  void ask_where_to_export();

  // kernel_window_state.cpp
  void show_code();
  void show_state();
  void show_report(std::int32_t row);
  void show_marks();
  void show_place();
  void show_breakpoints();
  void show_related(int view, int line);
  void update_actions();

  Backend& backend_;
  KernelLaunches launches_;
  QString path_;
  std::shared_ptr<KernelRun> run_;  // used by the job while it runs
  std::shared_ptr<Result> result_;  // of the job
  KernelCode code_;
  KernelState state_;
  std::deque<KernelWish> wishes_;
  std::optional<std::uint64_t> first_step_;  // that open() was given: of the next start
  std::optional<std::uint64_t> asked_step_;  // of the start that is running
  QDateTime file_time_;                      // when the file was written that the form shows
  bool start_again_ = false;                 // when the job has ended
  std::set<KernelBreakpoint> breakpoints_;
  struct ShownGroup {
    std::int32_t cta = -1, warp = -1;  // -1: that of the next instruction
    std::string lanes;
  };
  ShownGroup warp_;  // whose registers are shown
  KernelGroupModel groups_;
  KernelRegisterModel registers_;
  KernelReportModel reports_;
  std::vector<KernelCodeView*> views_;  // [KernelCode::sources]
  std::vector<std::pair<KernelMove, QAction*>> moves_;
  std::vector<DockTitle*> titles_;
  const Theme* theme_ = &theme(ThemeKind::dark);
  double font_scale_ = 1;

  QTabWidget* sources_ = nullptr;
  KernelCodeView* ptx_ = nullptr;
  QLabel* empty_ = nullptr;
  StepSlider* slider_ = nullptr;
  QLabel* position_ = nullptr;
  QCheckBox* bits_ = nullptr;
  QLabel* whose_ = nullptr;
  QTableView *groups_table_ = nullptr, *registers_table_ = nullptr, *reports_table_ = nullptr;
  RowDelegate *groups_rows_ = nullptr, *registers_rows_ = nullptr, *reports_rows_ = nullptr;
  QPlainTextEdit *report_text_ = nullptr, *waiting_text_ = nullptr, *printed_text_ = nullptr;
  KernelSharedView* shared_ = nullptr;
  QDockWidget* reports_dock_ = nullptr;
  StatusLine *word_ = nullptr, *status_ = nullptr;
  KernelLaunchPanel* launch_panel_ = nullptr;
  MessageBar* messages_ = nullptr;
  BusyBar* busy_bar_ = nullptr;
  Overlay* overlay_ = nullptr;

  Job job_;  // last member: its destructor waits for the thread, which uses the members above
};

}  // namespace kvscope::viz
