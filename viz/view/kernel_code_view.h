// A file of a kernel's code: where the next instruction is, where other warps are, and breakpoints in the margin.
//
//   ●   3   *element *= factor;        a breakpoint
//   ▶   4   ...                        the next instruction
//   ·   7   ...                        other lanes are here
#pragma once

#include <cstdint>
#include <set>

#include <QtWidgets/QPlainTextEdit>

#include "viz/playback/kernel_run.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

class KernelCodeView final : public QPlainTextEdit {
  Q_OBJECT
 public:
  explicit KernelCodeView(QWidget* parent = nullptr);

  void set_source(const KernelSource& source);
  // Lines from 1; 0: the next instruction is in another file.
  void set_place(std::int32_t line, const std::set<std::int32_t>& others);
  void set_breakpoints(const std::set<std::int32_t>& lines);
  // Lines of the code that belongs to a line of another view.
  void set_related(const std::set<std::int32_t>& lines);
  void set_theme(const Theme& theme, double font_scale);

  [[nodiscard]] std::int32_t place() const { return place_; }
  [[nodiscard]] const std::set<std::int32_t>& related() const { return related_; }
  [[nodiscard]] std::int32_t current_line() const;         // of the text cursor
  [[nodiscard]] QRect margin_of(std::int32_t line) const;  // the margin beside it, in the margin's coordinates
  [[nodiscard]] QWidget& margin() const { return *margin_; }

 Q_SIGNALS:
  void breakpoint_wanted(int line);  // it is to be set or removed
  void line_chosen(int line);        // by the text cursor

 protected:
  void resizeEvent(QResizeEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  class Margin;
  void fit_margin();
  void show_lines();
  void paint_margin(QPaintEvent& event);

  QWidget* margin_;
  std::set<std::int32_t> with_code_, others_, breakpoints_, related_;
  std::int32_t place_ = 0;
  const Theme* theme_ = &theme(ThemeKind::dark);
};

}  // namespace kvscope::viz
