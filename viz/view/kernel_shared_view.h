// The shared memory of a CTA, a word a cell over the 32 banks, in the color of the warp that wrote it last. What the
// last step wrote is outlined.
#pragma once

#include <cstdint>
#include <optional>

#include <QtWidgets/QAbstractScrollArea>

#include "viz/geometry/kernel_bytes_layout.h"
#include "viz/playback/kernel_run.h"
#include "viz/view/cell_paint.h"
#include "viz/view/theme.h"

namespace kvscope::viz {

// "0x00480  ·  tile + 128  ·  bank 0  ·  3f800000 = 1065353216 = 1f  ·  written by warp 0 ... after step 9".
// A word that the end cuts off has only its bytes.
[[nodiscard]] QString word_sentence(const KernelShared& shared, std::int64_t word);

class KernelSharedView final : public QAbstractScrollArea {
  Q_OBJECT
 public:
  explicit KernelSharedView(QWidget* parent = nullptr);

  void set_shared(const KernelShared& shared, std::uint64_t step);
  void set_theme(const Theme& theme, double font_scale);

  [[nodiscard]] KernelBytesLayout layout_now() const;
  [[nodiscard]] std::int64_t current_word() const { return current_; }  // -1: none

 Q_SIGNALS:
  void told(const QString& sentence);  // about the word under the pointer, else the current one, else the colors
  void write_wanted(qulonglong step);  // the position before the write of a word
  void next_write_wanted(qulonglong address, int bytes);  // of a word: the position after its next write

 protected:
  void paintEvent(QPaintEvent* event) override;
  void resizeEvent(QResizeEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseDoubleClickEvent(QMouseEvent* event) override;
  bool viewportEvent(QEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  void scrollContentsBy(int dx, int dy) override;

 private:
  void fit_scroll();
  void tell();
  void set_current(std::int64_t word);
  void want_write(std::int64_t word);
  void want_next_write(std::int64_t word);
  [[nodiscard]] Look look_of(std::int64_t word) const;
  // The word's last writer; null: not written.
  [[nodiscard]] const KernelWriter* writer_of(std::int64_t word) const;

  KernelShared shared_;
  std::uint64_t step_ = 0;
  std::int64_t current_ = -1;
  std::optional<QPointF> pointer_;  // where it was last moved to; nullopt: outside, or a key was pressed since
  const Theme* theme_ = &theme(ThemeKind::dark);
  double font_scale_ = 1;
};

}  // namespace kvscope::viz
