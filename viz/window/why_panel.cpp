#include "viz/window/why_panel.h"

#include <QtCore/QSignalBlocker>
#include <QtCore/QUrl>
#include <QtGui/QClipboard>
#include <QtGui/QFontMetricsF>
#include <QtGui/QGuiApplication>
#include <QtGui/QTextCursor>
#include <QtWidgets/QComboBox>
#include <QtWidgets/QHBoxLayout>
#include <QtWidgets/QLabel>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QSpinBox>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

constexpr double kMonoSize = 12;       // [px] at font scale 1
constexpr std::size_t kFirstLink = 3;  // spans: the subject, the end of its line, an empty line

bool same(const std::optional<trace::Question>& a, const trace::Question& b) {
  return a && a->seq == b.seq && a->token == b.token && a->layer == b.layer && a->head == b.head && a->dim == b.dim &&
         a->kv == b.kv && a->step == b.step;
}

// Adds a label and its field: short enough for four of them in a dock.
template <class Field>
Field* add_field(QHBoxLayout& row, const QString& label, const QString& accessible, Field* field) {
  auto* name = new QLabel(label);
  name->setProperty("quiet", true);
  name->setBuddy(field);
  field->setAccessibleName(accessible);
  field->setToolTip(accessible);
  row.addWidget(name);
  row.addWidget(field);
  return field;
}

}  // namespace

WhyPanel::WhyPanel(Asker& asker, QWidget* parent) : QWidget(parent), asker_(asker) {
  build();
  debounce_.setSingleShot(true);
  debounce_.setInterval(kDebounce);
  connect(&debounce_, &QTimer::timeout, this, &WhyPanel::ask);
  patience_.setSingleShot(true);
  patience_.setInterval(kPatience);
  connect(&patience_, &QTimer::timeout, working_, &QWidget::show);
  connect(&asker_, &Asker::explained, this, &WhyPanel::show_explanation);
  connect(&asker_, &Asker::not_explained, this, &WhyPanel::show_faults);
  set_document(nullptr, nullptr);
}

void WhyPanel::build() {
  setAccessibleName(tr("Why this address"));
  auto* fields = new QHBoxLayout;
  fields->setSpacing(5);
  layer_ = add_field(*fields, tr("layer"), tr("Layer"), new QSpinBox);
  head_ = add_field(*fields, tr("head"), tr("KV head"), new QSpinBox);
  dim_ = add_field(*fields, tr("dim"), tr("Element of the head"), new QSpinBox);
  kv_ = new QComboBox;
  kv_->addItems({tr("K"), tr("V")});
  kv_->setAccessibleName(tr("K or V"));
  kv_->setToolTip(tr("K or V"));
  fields->addWidget(kv_);
  fields->addStretch(1);
  for (QSpinBox* box : {layer_, head_, dim_}) {
    box->setKeyboardTracking(false);
    connect(box, &QSpinBox::valueChanged, this, &WhyPanel::ask_later);
  }
  connect(kv_, &QComboBox::currentIndexChanged, this, &WhyPanel::ask_later);

  browser_ = new QTextBrowser;
  browser_->setProperty("card", true);
  browser_->setOpenLinks(false);
  browser_->setUndoRedoEnabled(false);
  browser_->setAccessibleName(tr("Explanation"));
  browser_->document()->setDocumentMargin(10);
  connect(browser_, &QTextBrowser::anchorClicked, this, &WhyPanel::follow);
  working_ = new QLabel(tr("computing"));
  working_->setProperty("quiet", true);
  working_->hide();

  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addLayout(fields);
  column->addWidget(browser_, 1);
  column->addWidget(working_);
}

void WhyPanel::set_document(Document* document, std::shared_ptr<const Facts> facts) {
  if (document_) document_->disconnect(this);
  document_ = document;
  facts_ = std::move(facts);
  asked_.reset();
  named_.reset();
  asker_.forget();
  const WhyLimits limits = facts_ ? why_limits(*facts_) : WhyLimits{};
  const auto limit = [](QSpinBox* box, std::int64_t end) {
    const QSignalBlocker quiet(box);
    box->setRange(0, static_cast<int>(end) - 1);
    box->setEnabled(end > 1);
  };
  limit(layer_, limits.layers);
  limit(head_, limits.heads);
  limit(dim_, limits.dims);
  kv_->setEnabled(limits.has_v);
  if (!limits.has_v) kv_->setCurrentIndex(0);
  if (document_) {
    connect(document_, &Document::position_changed, this, &WhyPanel::ask_later);
    connect(document_, &Document::pinned_changed, this, &WhyPanel::follow_tile);
    connect(document_, &Document::tile_changed, this, &WhyPanel::follow_tile);
    connect(document_, &Document::hovered_changed, this, &WhyPanel::ask_later);
  }
  ask();
}

void WhyPanel::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  font_scale_ = font_scale;
  paint_text();
}

void WhyPanel::set_part(const WhyPart& part) {
  layer_->setValue(static_cast<int>(part.layer.value));
  head_->setValue(static_cast<int>(part.head.value));
  dim_->setValue(static_cast<int>(part.dim.value));
  if (kv_->isEnabled()) kv_->setCurrentIndex(part.kv == KOrV::k ? 0 : 1);
}

WhyPart WhyPanel::part() const {
  return {LayerIdx(layer_->value()), HeadIdx(head_->value()), DimIdx(dim_->value()),
          kv_->currentIndex() == 0 ? KOrV::k : KOrV::v};
}

// The fields take the element that the selected object of the tile names; after that they may be changed. The tile may
// arrive later than the selection.
void WhyPanel::follow_tile() {
  const std::optional<WhyPart> named = why_part(*document_);
  if (named && named != named_) set_part(*named);
  named_ = named;
  ask_later();
}

// --- asking ----------------------------------------------------------------------------------------------------------

void WhyPanel::showEvent(QShowEvent* event) {
  QWidget::showEvent(event);
  ask_later();
}

void WhyPanel::ask_later() {
  // Not restarted: while the pointer keeps moving, there is still an answer every kDebounce.
  if (isVisible() && !debounce_.isActive()) debounce_.start();
}

void WhyPanel::ask() {
  if (!document_) return show_words(tr("Open a scenario or a trace."));
  const WhyQuestion wanted = why_question(*document_, part());
  if (!wanted.question) {
    asked_.reset();
    return show_words(wanted.instead);
  }
  if (same(asked_, *wanted.question)) return;
  asked_ = wanted.question;
  patience_.start();
  asker_.explain(facts_, document_->path(), *wanted.question);
}

// --- showing ---------------------------------------------------------------------------------------------------------

void WhyPanel::show_words(const QString& words) {
  showing_ = Showing::words;
  words_ = words;
  paint_text();
}

void WhyPanel::show_faults(const QStringList& faults) {
  if (!asked_) return;  // the question was withdrawn
  showing_ = Showing::faults;
  faults_ = faults;
  paint_text();
}

void WhyPanel::show_explanation(const trace::Question& question, const trace::Explanation& explanation) {
  if (!same(asked_, question)) return;
  showing_ = Showing::explanation;
  spans_ = why_spans(explanation, question);
  indent_ = why_indent(explanation);
  paint_text();
}

void WhyPanel::paint_text() {
  patience_.stop();
  working_->hide();
  QScrollBar* bar = browser_->verticalScrollBar();
  const int scrolled = bar->value();
  browser_->clear();
  QTextCursor cursor(browser_->document());
  QTextCharFormat plain;
  plain.setFont(showing_ == Showing::explanation ? mono_font(kMonoSize * font_scale_)
                                                 : ui_font(kBodySize * font_scale_));
  plain.setForeground(showing_ == Showing::faults  ? theme_->warning
                      : showing_ == Showing::words ? theme_->text_quiet
                                                   : theme_->text);
  if (showing_ != Showing::explanation) {
    cursor.insertText(showing_ == Showing::words ? words_ : faults_.join(QLatin1Char('\n')), plain);
    return;
  }
  QTextBlockFormat hanging;  // long lines continue under the formulas
  const double margin = static_cast<double>(indent_) * QFontMetricsF(plain.font()).horizontalAdvance(QLatin1Char('0'));
  hanging.setLeftMargin(margin);
  hanging.setTextIndent(-margin);
  for (std::size_t i = 0; i < spans_.size(); ++i) {
    using Style = WhySpan::Style;
    const WhySpan& span = spans_[i];
    QTextCharFormat format = plain;
    if (span.style == Style::subject || span.style == Style::name) format.setFontWeight(QFont::Bold);
    if (span.style == Style::formula || span.style == Style::remark) format.setForeground(theme_->text_quiet);
    if (span.style == Style::result) format.setForeground(theme_->text_accent);
    if (!span.leads_to.none()) {
      format.setAnchor(true);
      format.setAnchorHref(QStringLiteral("span:%1").arg(i));
    }
    if (i == kFirstLink) cursor.setBlockFormat(hanging);  // not for the subject above, which is a sentence
    cursor.insertText(QString::fromStdString(span.text), format);
  }
  bar->setValue(scrolled);
}

QString WhyPanel::text() const {
  return browser_->toPlainText();
}

void WhyPanel::copy() const {
  QGuiApplication::clipboard()->setText(text());
}

void WhyPanel::follow(const QUrl& link) {
  bool numbered = false;
  const std::size_t i = link.path().toULongLong(&numbered);
  if (document_ && numbered && i < spans_.size()) document_->pin(spans_[i].leads_to);
}

}  // namespace kvscope::viz
