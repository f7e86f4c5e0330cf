// What the kernel window shows of the code and of a state.
#include <algorithm>

#include <QtWidgets/QDockWidget>
#include <QtWidgets/QLabel>
#include <QtWidgets/QPlainTextEdit>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QStatusBar>
#include <QtWidgets/QTabWidget>
#include <QtWidgets/QTableView>

#include "viz/view/kernel_code_view.h"
#include "viz/view/kernel_shared_view.h"
#include "viz/window/file_dialog.h"
#include "viz/window/kernel_window.h"
#include "viz/window/status_line.h"
#include "viz/window/step_slider.h"

namespace kvscope::viz {
namespace {

// Appends what is new, so that a long text is not laid out again, and keeps the end in view.
void show_text(QPlainTextEdit& view, const QString& text) {
  const QString before = view.toPlainText();
  if (text == before) return;
  if (before.isEmpty() || !text.startsWith(before)) {
    view.setPlainText(text);
  } else {
    QTextCursor end(view.document());
    end.movePosition(QTextCursor::End);
    end.insertText(text.mid(before.size()));
  }
  view.verticalScrollBar()->setValue(view.verticalScrollBar()->maximum());
}

}  // namespace

void KernelWindow::show_code() {
  empty_->hide();
  views_.clear();
  for (std::size_t i = 0; i < code_.sources.size(); ++i) {
    const KernelSource& source = code_.sources[i];
    const bool is_ptx = i + 1 == code_.sources.size();
    if (source.lines.empty() && !is_ptx) {
      views_.push_back(nullptr);
      continue;
    }
    const QString name = file_name(QString::fromStdString(source.path));
    auto* view = is_ptx ? ptx_ : new KernelCodeView;
    view->disconnect(this);
    view->installEventFilter(this);
    view->setAccessibleName(name);
    view->set_theme(*theme_, font_scale_);
    view->set_source(source);
    const int number = static_cast<int>(i);
    connect(view, &KernelCodeView::breakpoint_wanted, this,
            [this, number](int line) { toggle_breakpoint(number, line); });
    connect(view, &KernelCodeView::line_chosen, this, [this, number](int line) { show_related(number, line); });
    views_.push_back(view);
    if (!is_ptx) sources_->setTabToolTip(sources_->addTab(view, name), QString::fromStdString(source.path));
  }
  // A breakpoint of the launch before may be at a place that this file does not have.
  std::erase_if(breakpoints_, [this](const KernelBreakpoint& b) {
    return b.source >= std::ssize(views_) || views_[static_cast<std::size_t>(b.source)] == nullptr ||
           !std::ranges::binary_search(code_.sources[static_cast<std::size_t>(b.source)].lines_with_code, b.line);
  });
  show_breakpoints();
  sources_->setVisible(sources_->count() > 0);
  ptx_->show();
  setWindowTitle(
      tr("%1 (%2) - kvscope").arg(QString::fromStdString(code_.kernel), QString::fromStdString(code_.launch)));
}

void KernelWindow::show_breakpoints() {
  for (std::size_t i = 0; i < views_.size(); ++i) {
    std::set<std::int32_t> lines;
    for (const KernelBreakpoint& b : breakpoints_) {
      if (b.source == static_cast<std::int32_t>(i)) lines.insert(b.line);
    }
    if (views_[i] != nullptr) views_[i]->set_breakpoints(lines);
  }
}

void KernelWindow::show_state() {
  slider_->setEnabled(run_ != nullptr && state_.last.has_value());
  slider_->set_position(state_.step, state_.last.value_or(0));
  show_marks();
  position_->setText(!run_          ? QString()
                     : !state_.last ? tr("  step %1").arg(state_.step)
                                    : tr("  step %1 of %2").arg(state_.step).arg(*state_.last));
  if (!run_) {
    status_->set_sentence({});
    shared_->set_shared({}, 0);
    waiting_text_->clear();
    printed_text_->clear();
    whose_->clear();
    return;
  }
  groups_.set_state(code_, state_);
  registers_.set_state(state_);
  const int report = reports_table_->currentIndex().row();
  reports_.set_state(code_, state_);
  reports_table_->selectRow(report);  // reports keep their numbers
  if (state_.reports.empty()) report_text_->clear();
  if (state_.report >= 0) show_report(state_.report);
  if (state_.shown >= 0) {
    groups_table_->selectRow(state_.shown);
    const KernelGroup& group = state_.groups[static_cast<std::size_t>(state_.shown)];
    whose_->setText(tr("CTA %1, warp %2, %3")
                        .arg(QString::fromStdString(group.cta_name))
                        .arg(group.warp)
                        .arg(QString::fromStdString(group.lanes)));
  } else {
    whose_->setText(tr("No warp is running."));
  }
  shared_->set_shared(state_.shared, state_.step);
  show_text(*waiting_text_, QString::fromStdString(state_.barriers + state_.copies));
  show_text(*printed_text_, QString::fromStdString(state_.printed));
  report_text_->setPlaceholderText(!state_.reports.empty() ? tr("Click a report.")
                                   : state_.last           ? tr("The launch has no reports.")
                                                           : tr("No reports so far: the launch was not executed to its "
                                                                          "end."));
  statusBar()->clearMessage();  // it was about the state before
  show_place();
}

void KernelWindow::show_report(std::int32_t row) {
  reports_table_->selectRow(row);
  report_text_->setPlainText(QString::fromStdString(reports_.report(row).text));
  reports_dock_->show();
  reports_dock_->raise();
}

void KernelWindow::show_marks() {
  std::vector<std::uint64_t> marks;
  for (const KernelReport& report : state_.reports) marks.push_back(report.step);
  slider_->set_marks(marks, theme_->warning);
}

void KernelWindow::show_place() {
  const KernelInstruction* at = nullptr;
  if (state_.shown >= 0) {
    const auto number = static_cast<std::size_t>(state_.groups[static_cast<std::size_t>(state_.shown)].instruction);
    at = &code_.instructions[number];
  }
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i] == nullptr) continue;
    const bool is_ptx = i + 1 == views_.size();
    const auto line_in = [&](const KernelInstruction& instruction) {
      if (is_ptx) return instruction.ptx_line;
      return instruction.source == static_cast<std::int32_t>(i) ? instruction.line : 0;
    };
    std::set<std::int32_t> others;
    for (const KernelGroup& group : state_.groups) {
      others.insert(line_in(code_.instructions[static_cast<std::size_t>(group.instruction)]));
    }
    const std::int32_t line = at == nullptr ? 0 : line_in(*at);
    views_[i]->set_related({});
    views_[i]->set_place(line, others);
    if (line > 0 && !is_ptx) sources_->setCurrentWidget(views_[i]);
  }
  QStringList parts;
  if (!state_.arrived.empty()) parts << QString::fromStdString(state_.arrived);
  if (state_.next >= 0) {
    const KernelGroup& next = state_.groups[static_cast<std::size_t>(state_.next)];
    parts << tr("next: CTA %1 warp %2, %3: %4")
                 .arg(QString::fromStdString(next.cta_name), QString::number(next.warp),
                      place_of(code_, next.instruction),
                      QString::fromStdString(code_.instructions[static_cast<std::size_t>(next.instruction)].text));
  } else if (state_.status == KernelStatus::running) {
    parts << tr("no warp can run: Run shows why");
  }
  if (!state_.last) parts << tr("the launch was not executed to its end: its length and later reports are not known");
  status_->set_sentence(parts.join(QStringLiteral("  ·  ")));
}

// The lines of the PTX that belong to a line of the source, or the reverse.
void KernelWindow::show_related(int view, int line) {
  const bool from_ptx = view + 1 == std::ssize(views_);
  std::vector<std::set<std::int32_t>> related(views_.size());
  for (const KernelInstruction& instruction : code_.instructions) {
    const bool belongs =
        from_ptx ? instruction.ptx_line == line : instruction.source == view && instruction.line == line;
    if (!belongs) continue;
    related.back().insert(instruction.ptx_line);
    if (instruction.source >= 0) related[static_cast<std::size_t>(instruction.source)].insert(instruction.line);
  }
  for (std::size_t i = 0; i < views_.size(); ++i) {
    if (views_[i] != nullptr) views_[i]->set_related(related[i]);
  }
}

void KernelWindow::update_actions() {
  const bool at_end = state_.status != KernelStatus::running;
  const bool moves = busy();  // the next movement starts at another state
  for (const auto& [move, action] : moves_) {
    const bool is_back = move == KernelMove::start || move == KernelMove::back || move == KernelMove::back_line;
    action->setEnabled(run_ != nullptr && (moves || (is_back ? state_.step > 0 : !at_end)));
  }
}

}  // namespace kvscope::viz
