// The launch of the kernel window, and its movements.
#include <algorithm>
#include <utility>

#include <QtCore/QDir>
#include <QtCore/QFileInfo>
#include <QtGui/QCloseEvent>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QTabWidget>

#include "viz/view/kernel_code_view.h"
#include "viz/window/busy_bar.h"
#include "viz/window/export.h"
#include "viz/window/fault_words.h"
#include "viz/window/file_dialog.h"
#include "viz/window/kernel_launch_panel.h"
#include "viz/window/kernel_window.h"
#include "viz/window/message_bar.h"

namespace kvscope::viz {
namespace {

constexpr std::size_t kMostWishes = 16;  // movements that wait

}  // namespace

struct KernelWindow::Result {
  std::shared_ptr<KernelRun> run;
  std::optional<KernelState> state;
};

void KernelWindow::open(const QString& path, const std::optional<KernelLaunch>& launch,
                        std::optional<std::uint64_t> step) {
  messages_->dismiss(QStringLiteral("open"));
  KernelFile file;
  try {
    file = backend_.kernel_file(path.toStdString());
  } catch (...) {
    messages_->show_message({QStringLiteral("open"),
                             true,
                             tr("%1 could not be opened").arg(file_name(path)),
                             current_fault_lines(),
                             {{tr("Try again"), [this, path, launch, step] { open(path, launch, step); }}}});
    Q_EMIT shown();
    return;
  }
  messages_->dismiss(QStringLiteral("launch"));
  if (path_ != path) breakpoints_.clear();
  path_ = path;
  first_step_ = step;
  setWindowFilePath(path);
  forget_run();
  const std::optional<KernelLaunch> last = launch ? launch : launches_.find(path);
  KernelLaunch empty;
  empty.path = path.toStdString();
  launch_panel_->set_file(file, last.value_or(empty));
  file_time_ = QFileInfo(path).lastModified();
  Q_EMIT opened(path);
  if (launch) start();
}

void KernelWindow::start() {
  if (path_.isEmpty()) return;
  messages_->dismiss(QStringLiteral("launch"));
  KernelLaunch launch;
  try {
    launch = launch_panel_->launch();
  } catch (...) {
    messages_->show_message(
        {QStringLiteral("launch"), true, tr("The launch cannot be read"), current_fault_lines(), {}});
    return Q_EMIT shown();
  }
  if (QFileInfo(path_).lastModified() != file_time_) {
    if (!reread(launch)) return Q_EMIT shown();
    launch = launch_panel_->launch();
  }
  if (job_.running()) {
    start_again_ = true;
    return job_.cancel();
  }
  forget_run();
  launches_.keep(launch);
  asked_step_ = std::exchange(first_step_, std::nullopt);
  empty_->setText(tr("The launch is being executed once to its end."));
  const KernelWish first{.move = asked_step_ ? KernelMove::seek : KernelMove::stay,
                         .step = asked_step_.value_or(0),
                         .breakpoints = {breakpoints_.begin(), breakpoints_.end()}};
  begin(tr("Executing %1 once to its end").arg(file_name(path_)),
        [&backend = backend_, result = result_, launch, first](const Job::Tell& tell) {
          const auto keep_going = [&tell] { return tell(0, 0, 0); };
          result->run = backend.start_kernel(launch, keep_going);
          result->state = result->run->go(first, keep_going);
        });
}

// The file was compiled again: its kernels may have other parameters. Returns false if it has faults.
bool KernelWindow::reread(const KernelLaunch& launch) {
  try {
    launch_panel_->set_file(backend_.kernel_file(path_.toStdString()), launch);
  } catch (...) {
    messages_->show_message({QStringLiteral("launch"),
                             true,
                             tr("%1 could not be read again").arg(file_name(path_)),
                             current_fault_lines(),
                             {}});
    return false;
  }
  file_time_ = QFileInfo(path_).lastModified();
  return true;
}

void KernelWindow::begin(const QString& title, Job::Work work) {
  busy_bar_->start(title);
  job_.start(std::move(work));
  update_actions();
}

void KernelWindow::go(KernelMove move) {
  go({.move = move});
}

void KernelWindow::go(const KernelWish& wish) {
  if (!run_) return;
  // A slider that is dragged: only its last position matters.
  if (!wishes_.empty() && wishes_.back().move == KernelMove::seek && wish.move == KernelMove::seek) wishes_.pop_back();
  if (wishes_.size() >= kMostWishes) return;
  wishes_.push_back(wish);
  const bool chosen = wish.move == KernelMove::stay || wish.move == KernelMove::seek || wish.move == KernelMove::write;
  if (!chosen) warp_ = {};
  next_wish();
}

void KernelWindow::next_wish() {
  if (job_.running() || wishes_.empty() || !run_) return;
  KernelWish wish = wishes_.front();
  wishes_.pop_front();
  wish.cta = warp_.cta;
  wish.warp = warp_.warp;
  wish.lanes = warp_.lanes;
  wish.breakpoints = {breakpoints_.begin(), breakpoints_.end()};
  result_ = std::make_shared<Result>();
  begin(tr("Executing"), [run = run_, result = result_, wish](const Job::Tell& tell) {
    result->state = run->go(wish, [&tell] { return tell(0, 0, 0); });
  });
}

bool KernelWindow::starts_again() {
  busy_bar_->stop();
  if (!std::exchange(start_again_, false)) return false;
  start();
  return job_.running();
}

void KernelWindow::failed(const QStringList& faults) {
  wishes_.clear();
  if (starts_again()) return;
  messages_->show_message({QStringLiteral("launch"),
                           true,
                           run_ ? tr("The launch could not be stepped") : tr("The kernel could not be launched"),
                           faults,
                           {}});
  update_actions();
  Q_EMIT shown();
}

void KernelWindow::finished() {
  if (starts_again()) return;
  const std::shared_ptr<Result> result = std::exchange(result_, std::make_shared<Result>());
  const bool is_new = result->run != nullptr;
  if (is_new) {
    run_ = std::move(result->run);
    code_ = run_->code();
    show_code();
  }
  if (result->state) {
    state_ = std::move(*result->state);
    messages_->dismiss(QStringLiteral("launch"));
    show_state();
    if (is_new && asked_step_ && state_.last && *asked_step_ > *state_.last) {
      statusBar()->showMessage(tr("Step %1 is after the end of the launch, which has %2 warp instructions")
                                   .arg(*asked_step_)
                                   .arg(*state_.last));
    }
  }
  update_actions();
  next_wish();
  if (!busy()) Q_EMIT shown();
}

void KernelWindow::forget_run() {
  job_.cancel();
  start_again_ = false;
  wishes_.clear();
  run_.reset();
  result_ = std::make_shared<Result>();
  code_ = {};
  state_ = {};
  warp_ = {};
  views_.clear();
  while (sources_->count() > 0) {
    QWidget* const page = sources_->widget(0);
    sources_->removeTab(0);
    page->deleteLater();
  }
  sources_->hide();
  ptx_->hide();
  empty_->setText(
      tr("Fill in the launch at the left and press Start.\n\nThe kernel is then executed on the virtual GPU, "
         "once to its end, and can be stepped forward and backward."));
  empty_->show();
  groups_.clear();
  registers_.clear();
  reports_.clear();
  report_text_->clear();
  setWindowTitle(tr("%1 - kvscope").arg(file_name(path_)));
  show_state();
  update_actions();
}

void KernelWindow::toggle_breakpoint(std::int32_t source, std::int32_t line) {
  if (source < 0 || source >= std::ssize(code_.sources)) return;
  const KernelSource& file = code_.sources[static_cast<std::size_t>(source)];
  if (!std::ranges::binary_search(file.lines_with_code, line)) {
    const auto next = std::ranges::upper_bound(file.lines_with_code, line);
    statusBar()->showMessage(next == file.lines_with_code.end()
                                 ? tr("Line %1 has no instruction, nor does any line after it").arg(line)
                                 : tr("Line %1 has no instruction: the next line with one is %2").arg(line).arg(*next));
    return;
  }
  const KernelBreakpoint place{source, line};
  if (breakpoints_.erase(place) == 0) breakpoints_.insert(place);
  show_breakpoints();
}

// --- dialogs ---------------------------------------------------------------------------------------------------------

void KernelWindow::ask_for_file() {
  QFileDialog* const dialog = make_file_dialog(this, tr("Open a kernel"), path_);
  dialog->setFileMode(QFileDialog::ExistingFile);
  dialog->setNameFilters({tr("PTX (*.ptx)"), tr("All files (*)")});
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) { open(path); });
  dialog->open();
}

void KernelWindow::ask_where_to_export() {
  QFileDialog* const dialog = make_file_dialog(this, tr("Save the picture as"), path_);
  dialog->setAcceptMode(QFileDialog::AcceptSave);
  dialog->setNameFilter(tr("PNG (*.png)"));
  dialog->setDefaultSuffix(QStringLiteral("png"));
  dialog->selectFile(QFileInfo(path_).completeBaseName() + QStringLiteral(".png"));
  connect(dialog, &QFileDialog::fileSelected, this, [this](const QString& path) {
    try {
      write_png(path, grab().toImage(), devicePixelRatio());
      statusBar()->showMessage(tr("written: %1").arg(QDir::toNativeSeparators(path)));
    } catch (...) {
      messages_->show_message({QStringLiteral("write"),
                               true,
                               tr("%1 could not be written").arg(file_name(path)),
                               current_fault_lines(),
                               {}});
    }
  });
  dialog->open();
}

void KernelWindow::closeEvent(QCloseEvent* event) {
  wishes_.clear();
  start_again_ = false;
  job_.cancel();
  event->accept();
}

}  // namespace kvscope::viz
