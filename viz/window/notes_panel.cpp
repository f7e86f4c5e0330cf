#include "viz/window/notes_panel.h"

#include <QtCore/QRegularExpression>
#include <QtCore/QUrl>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/theme_choice.h"

namespace kvscope::viz {

QString with_step_links(const QString& text) {
  // "step 3", "Steps 6, 10 and 19": all numbers after the word that are joined by commas and "and".
  static const QRegularExpression kSteps(QStringLiteral(R"(\b[Ss]teps?\s+\d+(?:(?:,\s*|\s+and\s+|,\s+and\s+)\d+)*)"));
  static const QRegularExpression kNumber(QStringLiteral(R"((\d+))"));
  QString html;
  qsizetype done = 0;
  for (auto steps = kSteps.globalMatch(text); steps.hasNext();) {
    const QRegularExpressionMatch match = steps.next();
    html += text.mid(done, match.capturedStart() - done).toHtmlEscaped();
    QString words = match.captured();
    words.replace(kNumber, QStringLiteral(R"(<a href="step:\1">\1</a>)"));
    html += words;
    done = match.capturedEnd();
  }
  return html + text.mid(done).toHtmlEscaped();
}

QString notes_html(const std::vector<NotePart>& parts) {
  QString html;
  for (std::size_t n = 0; n < parts.size(); ++n) {
    const QString text = QString::fromStdString(parts[n].text);
    html += parts[n].link ? QStringLiteral(R"(<a href="note:%1">%2</a>)").arg(QString::number(n), text.toHtmlEscaped())
                          : with_step_links(text);
  }
  return html;
}

NotesPanel::NotesPanel(QWidget* parent) : QWidget(parent), browser_(new QTextBrowser) {
  setAccessibleName(tr("Notes"));
  browser_->setProperty("card", true);
  browser_->setAccessibleName(tr("Description of the run"));
  browser_->setOpenLinks(false);
  browser_->document()->setDocumentMargin(10);
  connect(browser_, &QTextBrowser::anchorClicked, this, &NotesPanel::follow);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addWidget(browser_);
}

void NotesPanel::follow(const QUrl& link) {
  if (!document_) return;
  const qlonglong number = link.path().toLongLong();
  if (link.scheme() == QLatin1String("step")) {
    document_->seek_step(StepIdx(number));
  } else if (link.scheme() == QLatin1String("note") && number < std::ssize(parts_)) {
    Q_EMIT followed(parts_[static_cast<std::size_t>(number)]);
  }
}

void NotesPanel::set_document(Document* document) {
  document_ = document;
  show_notes();
}

void NotesPanel::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  browser_->setFont(ui_font(kBodySize * font_scale));
  show_notes();
}

QString NotesPanel::text() const {
  return browser_->toPlainText();
}

QString NotesPanel::sizes(const Facts& facts) const {
  const auto counted = [](std::int64_t n, const QString& one, const QString& many) {
    return QStringLiteral("%1 %2").arg(QString::number(n), n == 1 ? one : many);
  };
  const QString tokens = counted(facts.page_size, tr("token"), tr("tokens"));
  QStringList lines{
      facts.cache == CacheKind::paged
          ? tr("%1 of %2").arg(counted(facts.blocks, tr("block"), tr("blocks")), tokens)
          : tr("%1 of up to %2").arg(counted(facts.blocks, tr("sequence"), tr("sequences")), tokens),
      QStringList{counted(facts.sequences, tr("sequence"), tr("sequences")),
                  counted(facts.rows - 1, tr("step"), tr("steps")), counted(facts.events, tr("event"), tr("events"))}
          .join(QStringLiteral(", "))};
  if (facts.scenario) {
    const ModelGeometry& model = facts.scenario->model;
    lines.push_back(tr("model %1: %2, %3 of %4")
                        .arg(QString::fromStdString(model.name), counted(model.layers, tr("layer"), tr("layers")),
                             counted(model.kv_heads, tr("KV head"), tr("KV heads")), QString::number(model.head_size)));
  }
  if (facts.detail != trace::Detail::full) lines.push_back(tr("recorded without blocks and tokens: detail \"steps\""));
  for (QString& line : lines) line = line.toHtmlEscaped();
  return lines.join(QStringLiteral("<br>"));
}

void NotesPanel::show_notes() {
  if (!document_) {
    browser_->setHtml(QStringLiteral("<p style='color:%1'>%2</p>")
                          .arg(theme_->text_quiet.name(), tr("Open a scenario or a trace.").toHtmlEscaped()));
    return;
  }
  const Facts& facts = document_->run().facts();
  browser_->document()->setDefaultStyleSheet(
      QStringLiteral("a { color: %1; text-decoration: none; }").arg(theme_->accent.name()));
  parts_ = parse_notes(facts.description);
  browser_->setHtml(QStringLiteral("<p><b>%1</b></p><p style='color:%2'>%3</p><p style='line-height:130%'>%4</p>")
                        .arg(QString::fromStdString(facts.name).toHtmlEscaped(), theme_->text_quiet.name(),
                             sizes(facts), notes_html(parts_)));
}

}  // namespace kvscope::viz
