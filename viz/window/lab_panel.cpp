#include "viz/window/lab_panel.h"

#include <QtCore/QUrl>
#include <QtGui/QDesktopServices>
#include <QtGui/QImage>
#include <QtGui/QPainter>
#include <QtGui/QTextDocument>
#include <QtSvg/QSvgRenderer>
#include <QtWidgets/QScrollBar>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

constexpr int kLabMargin = 10, kNarrowestPicture = 160, kHighestPicture = 4096;  // [px]

QString html_of(const std::string& text) {
  return QString::fromStdString(text).toHtmlEscaped();
}

QString lab_points(double points) {
  return QString::number(points, 'g', 4);
}

// The picture at `width` logical pixels; null when the text is no SVG.
QImage image_of(const std::string& svg, int width, double ratio) {
  QSvgRenderer renderer(QByteArray::fromStdString(svg));
  const QSize size = renderer.defaultSize();
  if (!renderer.isValid() || size.isEmpty()) return {};
  const double height = static_cast<double>(width) * size.height() / size.width();
  if (height > kHighestPicture) return {};
  QImage image((QSizeF(width, height) * ratio).toSize(), QImage::Format_ARGB32_Premultiplied);
  image.setDevicePixelRatio(ratio);
  image.fill(Qt::white);
  QPainter painter(&image);
  renderer.render(&painter, QRectF(0, 0, width, height));
  return image;
}

}  // namespace

LabPanel::LabPanel(QWidget* parent) : QWidget(parent), browser_(new QTextBrowser) {
  setAccessibleName(tr("Lab"));
  browser_->setProperty("card", true);
  browser_->setAccessibleName(tr("The lab and its results"));
  browser_->setOpenLinks(false);
  browser_->document()->setDocumentMargin(kLabMargin);
  connect(browser_, &QTextBrowser::anchorClicked, this, &LabPanel::follow);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addWidget(browser_);
  show_page();
}

void LabPanel::show_lab(const LabEntry& lab) {
  lab_ = lab;
  result_.reset();
  show_page();
}

void LabPanel::show_result(const LabResult& result) {
  lab_ = result.lab;
  result_ = result;
  show_page();
}

void LabPanel::clear() {
  lab_.reset();
  result_.reset();
  show_page();
}

void LabPanel::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  browser_->setFont(ui_font(kBodySize * font_scale));
  show_page();
}

QString LabPanel::text() const {
  return browser_->toPlainText();
}

void LabPanel::resizeEvent(QResizeEvent* event) {
  QWidget::resizeEvent(event);
  if (result_) show_page();
}

void LabPanel::follow(const QUrl& link) {
  if (link.scheme() == QLatin1String("handout") && lab_) {
    QDesktopServices::openUrl(QUrl::fromLocalFile(QString::fromStdString(lab_->handout)));
  } else if (link.scheme() == QLatin1String("lab") && lab_) {
    Q_EMIT followed({lab_->title, lab_->place}, QString::fromStdString(lab_->scenario));
  } else if (link.scheme() == QLatin1String("test") && result_) {
    const qlonglong index = link.path().toLongLong();
    if (index < 0 || index >= std::ssize(result_->tests)) return;
    const LabTestResult& test = result_->tests[static_cast<std::size_t>(index)];
    Q_EMIT followed({test.name, test.place}, QString::fromStdString(lab_->scenario));
  }
}

QString LabPanel::head() const {
  QString html = QStringLiteral("<p><b>%1</b></p><p style='color:%2'>%3</p>")
                     .arg(tr("Lab %1: %2").arg(QString::number(lab_->number), html_of(lab_->title)),
                          theme_->text_quiet.name(), tr("%1 minutes").arg(QString::number(lab_->minutes)));
  if (!lab_->goal.empty()) html += QStringLiteral("<p>%1</p>").arg(tr("You learn %1").arg(html_of(lab_->goal)));
  html += QStringLiteral("<p><a href=\"handout:0\">%1</a>").arg(tr("Handout").toHtmlEscaped());
  if (!lab_->scenario.empty()) {
    html += QStringLiteral(" &nbsp; <a href=\"lab:0\">%1</a>").arg(tr("Show the lab's place").toHtmlEscaped());
  }
  return html + QStringLiteral("</p>");
}

QString LabPanel::test(std::size_t index) {
  const LabTestResult& test = result_->tests[index];
  const QString points = tr("%1 of %2").arg(lab_points(test.earned), lab_points(test.points));
  QString html =
      QStringLiteral("<p><b style='color:%1'>%2</b> %3 <span style='color:%4'>%5</span></p>")
          .arg((test.passed() ? theme_->text_accent : theme_->warning).name(), test.passed() ? tr("PASS") : tr("FAIL"),
               html_of(test.name), theme_->text_quiet.name(), points);
  if (test.passed()) return html;
  html += QStringLiteral("<p>%1</p>").arg(html_of(test.message));
  if (!test.text.empty()) {
    html += QStringLiteral("<p style='white-space:pre-wrap; font-family:monospace'>%1</p>").arg(html_of(test.text));
  }
  const int width = std::max(kNarrowestPicture, browser_->viewport()->width() - 2 * kLabMargin);
  const QImage image = test.picture.empty() ? QImage() : image_of(test.picture, width, browser_->devicePixelRatioF());
  if (!image.isNull()) {
    const QUrl name(QStringLiteral("picture:%1").arg(index));
    browser_->document()->addResource(QTextDocument::ImageResource, name, image);
    html += QStringLiteral("<p><img src='%1' width='%2'></p>").arg(name.toString(), QString::number(width));
  }
  if (!lab_->scenario.empty()) {
    html += QStringLiteral("<p><a href=\"test:%1\">%2</a></p>")
                .arg(QString::number(index), tr("Show what this test is about").toHtmlEscaped());
  }
  return html;
}

void LabPanel::show_page() {
  const int at = browser_->verticalScrollBar()->value();
  browser_->document()->setDefaultStyleSheet(
      QStringLiteral("a { color: %1; text-decoration: none; }").arg(theme_->accent.name()));
  if (!lab_) {
    browser_->setHtml(
        QStringLiteral("<p style='color:%1'>%2</p>")
            .arg(theme_->text_quiet.name(),
                 tr("Open a lab from the menu File, Labs, or a file of kvscope lab check --json.").toHtmlEscaped()));
    return;
  }
  QString html = head();
  for (const bool passed : {false, true}) {  // what is to be done comes first
    for (std::size_t i = 0; result_ && i < result_->tests.size(); ++i) {
      if (result_->tests[i].passed() == passed) html += test(i);
    }
  }
  browser_->setHtml(html);
  browser_->verticalScrollBar()->setValue(at);
}

}  // namespace kvscope::viz
