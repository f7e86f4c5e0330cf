#include "viz/view/kernel_shared_view.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtWidgets/QScrollBar>

#include "viz/view/cell_paint.h"
#include "viz/view/text.h"

namespace kvscope::viz {
namespace {

constexpr double kWordText = 10.5;  // [px] at font scale 1

QString hex_digits(std::uint64_t value, int digits) {
  return QString::number(value, 16).rightJustified(digits, QLatin1Char('0'));
}

// The last word may be cut off by the end.
std::int64_t bytes_of(const KernelShared& shared, std::int64_t word) {
  return std::min(kBankBytes, std::ssize(shared.bytes) - word * kBankBytes);
}

// The bytes of a word in memory order as a number.
std::uint32_t word_value(const KernelShared& shared, std::int64_t word) {
  std::uint32_t value = 0;
  for (std::int64_t i = 0; i < bytes_of(shared, word); ++i) {
    value |= static_cast<std::uint32_t>(shared.bytes[static_cast<std::size_t>(word * kBankBytes + i)]) << (8 * i);
  }
  return value;
}

QString hex_word(const KernelShared& shared, std::int64_t word) {
  return hex_digits(word_value(shared, word), static_cast<int>(2 * bytes_of(shared, word)));
}

const KernelWriter* last_writer(const KernelShared& shared, std::int64_t word) {
  const KernelWriter* last = nullptr;
  const auto from = static_cast<std::size_t>(word * kBankBytes);
  for (std::size_t i = from; i < std::min(from + kBankBytes, shared.writer.size()); ++i) {
    if (shared.writer[i] < 0) continue;
    const KernelWriter& writer = shared.writers[static_cast<std::size_t>(shared.writer[i])];
    if (last == nullptr || writer.step > last->step) last = &writer;
  }
  return last;
}

// "tile + 128"; empty: no variable is there.
QString variable_at(const KernelShared& shared, std::uint64_t address) {
  QString out;
  for (const auto& [start, name] : shared.variables) {
    if (start > address) break;
    out = QStringLiteral("%1 + %2").arg(QString::fromStdString(name), QString::number(address - start));
  }
  return out;
}

}  // namespace

QString word_sentence(const KernelShared& shared, std::int64_t word) {
  const std::uint64_t address = shared.base + static_cast<std::uint64_t>(word * kBankBytes);
  const std::uint32_t value = word_value(shared, word);
  QStringList parts{QStringLiteral("0x") + hex_digits(address, 5)};
  if (const QString variable = variable_at(shared, address); !variable.isEmpty()) parts << variable;
  parts << KernelSharedView::tr("bank %1").arg(address / kBankBytes % kBanks);
  const KernelWriter* const writer = last_writer(shared, word);
  if (writer == nullptr) {
    parts << KernelSharedView::tr("not written");
  } else {
    const std::int64_t bytes = bytes_of(shared, word);
    parts << (bytes < kBankBytes ? hex_word(shared, word)
                                 : QStringLiteral("%1 = %2 = %3f")
                                       .arg(hex_word(shared, word), QString::number(static_cast<std::int32_t>(value)),
                                            QString::number(static_cast<double>(std::bit_cast<float>(value)), 'g', 7)));
    parts << KernelSharedView::tr("written by %1 after step %2")
                 .arg(QString::fromStdString(writer->text), QString::number(writer->step));
  }
  return parts.join(QStringLiteral("  ·  "));
}

KernelSharedView::KernelSharedView(QWidget* parent) : QAbstractScrollArea(parent) {
  setAccessibleName(tr("Shared memory"));
  setFocusPolicy(Qt::StrongFocus);
  viewport()->setMouseTracking(true);
  setHorizontalScrollBarPolicy(Qt::ScrollBarAlwaysOff);
}

void KernelSharedView::set_shared(const KernelShared& shared, std::uint64_t step) {
  shared_ = shared;
  step_ = step;
  if (current_ >= layout_now().words) current_ = -1;
  setAccessibleDescription(current_ < 0 ? QString() : word_sentence(shared_, current_));
  fit_scroll();
  viewport()->update();
  tell();
}

void KernelSharedView::tell() {
  const auto under = pointer_ ? layout_now().word_at(*pointer_) : std::nullopt;
  const std::int64_t word = under.value_or(current_);
  if (word >= 0) return Q_EMIT told(word_sentence(shared_, word));
  Q_EMIT told(shared_.bytes.empty()
                  ? QString()
                  : tr("double click: to before a word's last write  ·  with Shift: to after its next write  ·  "
                       "color and pattern: the warp that wrote it last, as in Warps  ·  diagonal "
                       "lines: a copy  ·  outlined: by the last step"));
}

void KernelSharedView::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  font_scale_ = font_scale;
  fit_scroll();
  viewport()->update();
}

KernelBytesLayout KernelSharedView::layout_now() const {
  return kernel_bytes_layout(viewport()->width(), font_scale_, static_cast<std::int64_t>(shared_.bytes.size()),
                             shared_.base, verticalScrollBar()->value());
}

void KernelSharedView::fit_scroll() {
  const KernelBytesLayout at = layout_now();
  verticalScrollBar()->setRange(0, std::max(0, qRound(at.height()) - viewport()->height()));
  verticalScrollBar()->setPageStep(viewport()->height());
  verticalScrollBar()->setSingleStep(qRound(at.line));
}

const KernelWriter* KernelSharedView::writer_of(std::int64_t word) const {
  return last_writer(shared_, word);
}

// The looks of blocks and their owners: color and pattern of the warp, diagonal lines for a copy.
Look KernelSharedView::look_of(std::int64_t word) const {
  const KernelWriter* const writer = writer_of(word);
  if (writer == nullptr) return kFreeLook;
  return writer->warp < 0 ? kSharedLook : owner_look(writer->warp);
}

void KernelSharedView::paintEvent(QPaintEvent*) {
  QPainter painter(viewport());
  painter.fillRect(viewport()->rect(), theme_->card);
  const QFont small = mono_font(kWordText * font_scale_);
  const QFont words = ui_font(kWordText * 1.2 * font_scale_);
  if (shared_.bytes.empty()) {
    painter.setFont(words);
    painter.setPen(theme_->text_quiet);
    return painter.drawText(viewport()->rect().adjusted(12, 12, -12, -12), Qt::TextWordWrap,
                            tr("The CTA that is shown has no shared memory, has not started, or has ended."));
  }
  const KernelBytesLayout at = layout_now();
  const double up = cap_height(small) / 2;
  const bool has_room = at.cell >= text_width(small, QStringLiteral("00000000")) + 4;
  const auto [first, last] = at.visible(viewport()->height());
  painter.save();
  painter.setClipRect(QRectF(0, at.head, viewport()->width(), viewport()->height()));
  for (std::int64_t line = first; line < last; ++line) {
    const QRectF axis = at.address(line);
    const std::uint64_t start = shared_.base / kBankLineBytes * kBankLineBytes;
    draw_text(painter, small, theme_->text_quiet, {6, axis.center().y() + up},
              QStringLiteral("0x") + hex_digits(start + static_cast<std::uint64_t>(line * kBankLineBytes), 5));
    for (std::int64_t bank = 0; bank < kBanks; ++bank) {
      const std::int64_t word = line * kBanks + bank - at.first_bank;
      if (word < 0 || word >= at.words) continue;
      const QRectF cell = at.word(word).adjusted(0.5, 0.5, -0.5, -0.5);
      const Look look = look_of(word);
      paint_cell(painter, cell, look, 1, *theme_);
      const KernelWriter* const writer = writer_of(word);
      if (has_room && writer != nullptr) {
        draw_text(painter, small, look_ink(*theme_, look), {cell.left() + 2, cell.center().y() + up},
                  hex_word(shared_, word));
      }
      if (writer != nullptr && writer->step + 1 == step_) {
        painter.setPen(QPen(theme_->accent, 2));
        painter.drawRect(cell.adjusted(1, 1, -1, -1));
      }
      if (word == current_) {
        painter.setPen(QPen(theme_->text, 2));
        painter.drawRect(cell.adjusted(1, 1, -1, -1));
      }
    }
  }
  painter.restore();
  for (std::int64_t bank = 0; bank < kBanks; ++bank) {
    const QRectF box = at.bank(bank);
    const QString number = QString::number(bank);
    if (bank % 4 != 0 && box.width() < text_width(small, QStringLiteral("00 "))) continue;
    draw_text(painter, small, theme_->text_quiet,
              {box.center().x() - text_width(small, number) / 2, box.center().y() + up}, number);
  }
}

void KernelSharedView::resizeEvent(QResizeEvent* event) {
  QAbstractScrollArea::resizeEvent(event);
  fit_scroll();
}

void KernelSharedView::mouseMoveEvent(QMouseEvent* event) {
  pointer_ = event->position();
  tell();
}

void KernelSharedView::mousePressEvent(QMouseEvent* event) {
  if (const auto word = layout_now().word_at(event->position())) set_current(*word);
}

void KernelSharedView::mouseDoubleClickEvent(QMouseEvent* event) {
  const auto word = layout_now().word_at(event->position());
  if (!word) return;
  event->modifiers().testFlag(Qt::ShiftModifier) ? want_next_write(*word) : want_write(*word);
}

bool KernelSharedView::viewportEvent(QEvent* event) {
  // leaveEvent() is not called when the pointer goes to the scroll bar.
  if (event->type() == QEvent::Leave) {
    pointer_.reset();
    tell();
  }
  return QAbstractScrollArea::viewportEvent(event);
}

void KernelSharedView::keyPressEvent(QKeyEvent* event) {
  const std::int64_t last = layout_now().words - 1;
  const auto by = [&](std::int64_t words) {
    set_current(current_ < 0 ? 0 : std::clamp(current_ + words, std::int64_t{0}, last));
  };
  const Qt::KeyboardModifiers modifiers = event->modifiers() & ~Qt::KeypadModifier;
  const bool enter = event->key() == Qt::Key_Return || event->key() == Qt::Key_Enter;
  if (enter && modifiers == Qt::ShiftModifier && current_ >= 0) return want_next_write(current_);
  if (last < 0 || modifiers != Qt::NoModifier) return QAbstractScrollArea::keyPressEvent(event);
  switch (event->key()) {
    case Qt::Key_Left:
      return by(-1);
    case Qt::Key_Right:
      return by(1);
    case Qt::Key_Up:
      return by(-kBanks);
    case Qt::Key_Down:
      return by(kBanks);
    case Qt::Key_Home:
      return set_current(0);
    case Qt::Key_End:
      return set_current(last);
    case Qt::Key_Return:
    case Qt::Key_Enter:
      if (current_ >= 0) want_write(current_);
      return;
    default:
      QAbstractScrollArea::keyPressEvent(event);
  }
}

void KernelSharedView::scrollContentsBy(int, int) {
  viewport()->update();
  tell();  // another word is under the pointer
}

void KernelSharedView::set_current(std::int64_t word) {
  current_ = word;
  pointer_.reset();
  setAccessibleDescription(word_sentence(shared_, word));
  tell();
  const KernelBytesLayout at = layout_now();
  const QRectF cell = at.word(word);
  QScrollBar* const bar = verticalScrollBar();
  if (cell.top() < at.head) bar->setValue(bar->value() - qRound(at.head - cell.top()));
  if (cell.bottom() > viewport()->height()) bar->setValue(bar->value() + qRound(cell.bottom() - viewport()->height()));
  viewport()->update();
}

void KernelSharedView::want_write(std::int64_t word) {
  if (const KernelWriter* const writer = writer_of(word)) Q_EMIT write_wanted(writer->step);
}

void KernelSharedView::want_next_write(std::int64_t word) {
  Q_EMIT next_write_wanted(shared_.base + static_cast<std::uint64_t>(word * kBankBytes),
                           static_cast<int>(bytes_of(shared_, word)));
}

}  // namespace kvscope::viz
