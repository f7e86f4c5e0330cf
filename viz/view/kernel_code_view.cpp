#include "viz/view/kernel_code_view.h"

#include <algorithm>

#include <QtGui/QKeyEvent>
#include <QtGui/QMouseEvent>
#include <QtGui/QPainter>
#include <QtGui/QTextBlock>
#include <QtWidgets/QScrollBar>

namespace kvscope::viz {
namespace {

constexpr double kCodeText = 12.5;            // [px] at font scale 1
constexpr int kCodeMarks = 16, kCodeGap = 6;  // [px] the column of marks; between the numbers and the text
constexpr int kTabLetters = 4;
constexpr double kCodePlace = 0.30, kCodeRelated = 0.14;

// Without the characters at which Qt begins another paragraph or line, so that line numbers stay true.
QString one_line(const std::string& text) {
  constexpr char16_t kBreaks[] = {u'\r', QChar::LineSeparator, QChar::ParagraphSeparator, u'\xfdd0', u'\xfdd1'};
  QString line = QString::fromStdString(text);
  for (QChar& c : line) {
    if (std::ranges::find(kBreaks, c.unicode()) != std::end(kBreaks)) c = QLatin1Char(' ');
  }
  return line;
}

}  // namespace

class KernelCodeView::Margin final : public QWidget {
 public:
  explicit Margin(KernelCodeView& view) : QWidget(&view), view_(view) { setCursor(Qt::PointingHandCursor); }

 protected:
  void paintEvent(QPaintEvent* event) override { view_.paint_margin(*event); }

 private:
  KernelCodeView& view_;
};

KernelCodeView::KernelCodeView(QWidget* parent) : QPlainTextEdit(parent), margin_(new Margin(*this)) {
  setReadOnly(true);
  setLineWrapMode(QPlainTextEdit::NoWrap);
  setTextInteractionFlags(Qt::TextSelectableByMouse | Qt::TextSelectableByKeyboard);
  setUndoRedoEnabled(false);
  margin_->installEventFilter(this);
  connect(this, &QPlainTextEdit::blockCountChanged, this, &KernelCodeView::fit_margin);
  connect(this, &QPlainTextEdit::updateRequest, margin_, [this](const QRect& rect, int by) {
    by != 0 ? margin_->scroll(0, by) : margin_->update(0, rect.y(), margin_->width(), rect.height());
  });
  connect(this, &QPlainTextEdit::cursorPositionChanged, this, [this] { Q_EMIT line_chosen(current_line()); });
}

void KernelCodeView::set_source(const KernelSource& source) {
  QStringList lines;
  lines.reserve(static_cast<qsizetype>(source.lines.size()));
  for (const std::string& line : source.lines) lines.push_back(one_line(line));
  with_code_ = {source.lines_with_code.begin(), source.lines_with_code.end()};
  place_ = 0;
  others_.clear();
  related_.clear();
  const QSignalBlocker quiet(this);
  setPlainText(lines.join(QLatin1Char('\n')));
  fit_margin();
  show_lines();
}

void KernelCodeView::set_place(std::int32_t line, const std::set<std::int32_t>& others) {
  place_ = line;
  others_ = others;
  if (line > 0) {
    const QTextBlock block = document()->findBlockByNumber(line - 1);
    if (block.isValid()) {
      const QSignalBlocker quiet(this);  // the person did not choose it
      const int left = horizontalScrollBar()->value();
      setTextCursor(QTextCursor(block));
      ensureCursorVisible();
      const int lines_seen = std::max(1, viewport()->height() / std::max(1, fontMetrics().height()));
      const int first = firstVisibleBlock().blockNumber();
      // The lines around the place stay visible.
      if (line - 1 < first + 1 || line - 1 > first + lines_seen - 3) centerCursor();
      horizontalScrollBar()->setValue(left);
    }
  }
  show_lines();
}

void KernelCodeView::set_breakpoints(const std::set<std::int32_t>& lines) {
  breakpoints_ = lines;
  margin_->update();
}

void KernelCodeView::set_related(const std::set<std::int32_t>& lines) {
  related_ = lines;
  show_lines();
}

void KernelCodeView::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  setFont(mono_font(kCodeText * font_scale));
  setTabStopDistance(kTabLetters * QFontMetricsF(font()).horizontalAdvance(QLatin1Char(' ')));
  fit_margin();
  show_lines();
}

std::int32_t KernelCodeView::current_line() const {
  return textCursor().blockNumber() + 1;
}

QRect KernelCodeView::margin_of(std::int32_t line) const {
  const QTextBlock block = document()->findBlockByNumber(line - 1);
  const QRectF at = blockBoundingGeometry(block).translated(contentOffset());
  return {0, qRound(at.top()), margin_->width(), qRound(at.height())};
}

void KernelCodeView::resizeEvent(QResizeEvent* event) {
  QPlainTextEdit::resizeEvent(event);
  fit_margin();
}

void KernelCodeView::keyPressEvent(QKeyEvent* event) {
  if (event->key() == Qt::Key_F9) return Q_EMIT breakpoint_wanted(current_line());
  QPlainTextEdit::keyPressEvent(event);
}

bool KernelCodeView::eventFilter(QObject* watched, QEvent* event) {
  if (watched == margin_ && event->type() == QEvent::MouseButtonPress) {
    const auto& press = *static_cast<QMouseEvent*>(event);
    const std::int32_t line = cursorForPosition({0, press.pos().y()}).blockNumber() + 1;
    if (press.button() == Qt::LeftButton && margin_of(line).contains(press.pos())) Q_EMIT breakpoint_wanted(line);
    return true;
  }
  return QPlainTextEdit::eventFilter(watched, event);
}

void KernelCodeView::fit_margin() {
  const int digits = static_cast<int>(QString::number(std::max(1, blockCount())).size());
  const int width = kCodeMarks + fontMetrics().horizontalAdvance(QLatin1Char('9')) * digits + 2 * kCodeGap;
  setViewportMargins(width, 0, 0, 0);
  const QRect inside = contentsRect();
  margin_->setGeometry(inside.left(), inside.top(), width, inside.height());
  margin_->update();
}

// The lines of the place and of related code, behind the text.
void KernelCodeView::show_lines() {
  QList<QTextEdit::ExtraSelection> shown;
  const auto add = [&](std::int32_t line, const QColor& color) {
    const QTextBlock block = document()->findBlockByNumber(line - 1);
    if (line <= 0 || !block.isValid()) return;
    QTextEdit::ExtraSelection selection;
    selection.format.setBackground(color);
    selection.format.setProperty(QTextFormat::FullWidthSelection, true);
    selection.cursor = QTextCursor(block);
    shown.push_back(selection);
  };
  for (const std::int32_t line : related_) {
    if (line != place_) add(line, with_alpha(theme_->hover, kCodeRelated));
  }
  add(place_, with_alpha(theme_->accent, kCodePlace));
  setExtraSelections(shown);
  margin_->update();
}

void KernelCodeView::paint_margin(QPaintEvent& event) {
  QPainter painter(margin_);
  painter.fillRect(event.rect(), theme_->card);
  painter.setRenderHint(QPainter::Antialiasing);
  painter.setFont(font());
  for (QTextBlock block = firstVisibleBlock(); block.isValid(); block = block.next()) {
    const std::int32_t line = block.blockNumber() + 1;
    const QRectF row = margin_of(line);
    if (row.top() > event.rect().bottom()) break;
    const double middle = row.center().y();
    painter.setPen(with_code_.contains(line) ? theme_->text : theme_->text_quiet);
    painter.drawText(row.adjusted(kCodeMarks, 0, -kCodeGap, 0), Qt::AlignRight | Qt::AlignVCenter,
                     QString::number(line));
    painter.setPen(Qt::NoPen);
    if (breakpoints_.contains(line)) {
      painter.setBrush(theme_->warning);
      painter.drawEllipse(QPointF(kCodeMarks / 2.0, middle), 5, 5);
    }
    if (line == place_) {
      painter.setBrush(theme_->accent);
      painter.drawPolygon(QPolygonF{{3.0, middle - 4}, {12.0, middle}, {3.0, middle + 4}});
    } else if (others_.contains(line)) {
      painter.setBrush(theme_->text_quiet);
      painter.drawEllipse(QPointF(kCodeMarks / 2.0, middle), 2.2, 2.2);
    }
  }
}

}  // namespace kvscope::viz
