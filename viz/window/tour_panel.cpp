#include "viz/window/tour_panel.h"

#include <QtCore/QUrl>
#include <QtWidgets/QTextBrowser>
#include <QtWidgets/QVBoxLayout>

#include "viz/window/shortcuts.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {
namespace {

// The first key of an action, as a key cap. A period or a comma alone is taken for the end of a sentence.
QString tour_key(Do id) {
  const QKeySequence keys = keys_of(entry(id)).front();
  const QString cap = keys.toString(QKeySequence::NativeText).toHtmlEscaped();
  const QString html = QStringLiteral("<span class='key'>&nbsp;%1&nbsp;</span>").arg(cap);
  if (keys == QKeySequence(Qt::Key_Period)) return TourPanel::tr("%1 (period)").arg(html);
  if (keys == QKeySequence(Qt::Key_Comma)) return TourPanel::tr("%1 (comma)").arg(html);
  return html;
}

// The instructions of a task.
QString tour_words(TourTask task) {
  switch (task) {
    case TourTask::step:
      return TourPanel::tr("Press %1 until the tool bar shows step %2.")
          .arg(tour_key(Do::step), QString::number(Tour::kForwardTo.value));
    case TourTask::step_back:
      return TourPanel::tr("Press %1.").arg(tour_key(Do::step_back));
    case TourTask::seek:
      return TourPanel::tr("Click step %1 in the <i>Timeline</i>, or drag the bar at the top to it.")
          .arg(QString::number(Tour::kSeekTo.value));
    case TourTask::select_token:
      return TourPanel::
          tr("Click the last token of sequence %1: the last filled cell of its row in <i>Sequences</i>. If the cells "
             "are small, zoom with the mouse wheel.")
              .arg(QString::number(Tour::kSequence.value));
    case TourTask::find_block:
      return TourPanel::
          tr("Which block holds this token? Click it in <i>Block pool</i>, or click the name <i>block</i> in <i>Why "
             "this address</i> (%1).")
              .arg(tour_key(Do::show_why));
    case TourTask::shared_block:
      return TourPanel::tr("In <i>Block pool</i>, click a hatched block. Several sequences hold it.");
    case TourTask::find:
      return TourPanel::tr("Press %1, type <b>%2:%3</b> for token %3 of sequence %2, and press Enter.")
          .arg(tour_key(Do::find), QString::number(Tour::kFoundSequence.value),
               QString::number(Tour::kFoundToken.value));
    case TourTask::tile:
      return TourPanel::tr("Press %1 to close the field, then %2 to follow this token into a kernel.")
          .arg(tour_key(Do::clear_selection), tour_key(Do::view_tile));
    case TourTask::land:
      return TourPanel::
          tr("Press %1: no copy has been issued. Then press %2 until all bytes are in shared memory, or %3 to play.")
              .arg(tour_key(Do::to_start), tour_key(Do::step), tour_key(Do::play));
    case TourTask::select_register:
      return TourPanel::tr("Click a cell in <i>Registers</i>.");
    case TourTask::run_to_event:
      return TourPanel::
          tr("Press %1 to show all panels. Press %2, type <b>request_finished</b> and press Enter. Then press %3 to "
             "run to the next event of this kind.")
              .arg(tour_key(Do::view_overview), tour_key(Do::add_breakpoint), tour_key(Do::run_to_breakpoint));
    case TourTask::change:
      return TourPanel::
          tr("Press %1. In <i>cache</i>, double-click the value of <i>page_size</i>, type <b>32</b> and press Enter.")
              .arg(tour_key(Do::show_scenario));
    case TourTask::compare:
      return TourPanel::tr("Press %1 to show both runs.").arg(tour_key(Do::beside));
    case TourTask::end:
      break;
  }
  return TourPanel::tr(
             "%1 closes the file and shows the gallery and the labs. To step a kernel on the virtual GPU, open its PTX "
             "(%2). %3 lists all keys; %4 finds an action by its name.")
      .arg(tour_key(Do::close), tour_key(Do::open), tour_key(Do::help), tour_key(Do::commands));
}

// The explanation of the picture after the task.
QString tour_result(TourTask task) {
  switch (task) {
    case TourTask::step:
      return TourPanel::tr(
          "In each step the engine computes some tokens; the legend of <i>Sequences</i> has their mark.");
    case TourTask::step_back:
      return TourPanel::tr("This is the picture that you saw before: the viewer steps backward as exactly as forward.");
    case TourTask::seek:
      return TourPanel::tr(
          "Five sequences run. Their first four pages are hatched, because all five hold the same four blocks.");
    case TourTask::select_token:
      return TourPanel::tr(
          "All panels highlight where the token is: its page, its block, its slot and its entry of the lookup table. "
          "<i>Why this address</i> computes its byte, link by link.");
    case TourTask::find_block:
      return TourPanel::tr("The dark part of the block holds tokens; the pale part is free.");
    case TourTask::shared_block:
      return TourPanel::tr(
          "The number in its corner counts the sequences that hold it. The page of each of them is highlighted.");
    case TourTask::find:
      return TourPanel::tr("The field finds blocks, pages, steps, events and bytes, too.");
    case TourTask::tile:
      return TourPanel::tr(
          "A tile is the part of K or V that a kernel loads at once. From left to right: pages, rows of the pool, "
          "copies, shared memory, registers.");
    case TourTask::land:
      return TourPanel::tr("All bytes are in shared memory. A kernel that reads them earlier has a race.");
    case TourTask::select_register:
      return TourPanel::tr(
          "The line at the bottom of the window names its token and dims. The other panels highlight where they came "
          "from.");
    case TourTask::run_to_event:
      return TourPanel::tr("The header states what happened. %1 lists all events of the step.")
          .arg(tour_key(Do::show_events));
    case TourTask::change:
      return TourPanel::tr(
          "The table below the fields compares both runs: fewer tokens are found in the cache, because only whole "
          "pages are shared.");
    case TourTask::compare:
      return TourPanel::tr(
                 "The changed run is at the left, the run of the file at the right, both at the same step. %1 goes to "
                 "the next step in which they differ, %2 undoes the change.")
          .arg(tour_key(Do::next_difference), tour_key(Do::undo));
    case TourTask::end:
      break;
  }
  return {};
}

QString tour_link(const char* id, const QString& words) {
  return QStringLiteral("<a href=\"tour:%1\">%2</a>").arg(QString::fromLatin1(id), words.toHtmlEscaped());
}

}  // namespace

QString title_of(TourTask task) {
  switch (task) {
    case TourTask::step:
      return TourPanel::tr("Go forward");
    case TourTask::step_back:
      return TourPanel::tr("Go back");
    case TourTask::seek:
      return TourPanel::tr("Go to a step");
    case TourTask::select_token:
      return TourPanel::tr("Select a token");
    case TourTask::find_block:
      return TourPanel::tr("Find its block");
    case TourTask::shared_block:
      return TourPanel::tr("Select a shared block");
    case TourTask::find:
      return TourPanel::tr("Find a token");
    case TourTask::tile:
      return TourPanel::tr("Show its tile");
    case TourTask::land:
      return TourPanel::tr("Load the tile");
    case TourTask::select_register:
      return TourPanel::tr("Select a register");
    case TourTask::run_to_event:
      return TourPanel::tr("Run to an event");
    case TourTask::change:
      return TourPanel::tr("Change the scenario");
    case TourTask::compare:
      return TourPanel::tr("Compare two runs");
    case TourTask::end:
      break;
  }
  return TourPanel::tr("The tour is complete");
}

TourPanel::TourPanel(const Tour& tour, QWidget* parent) : QWidget(parent), tour_(tour), browser_(new QTextBrowser) {
  setAccessibleName(tr("Tour"));
  browser_->setProperty("card", true);
  browser_->setAccessibleName(tr("The task of the tour"));
  browser_->setOpenLinks(false);
  browser_->document()->setDocumentMargin(10);
  connect(browser_, &QTextBrowser::anchorClicked, this, &TourPanel::follow);
  connect(&tour, &Tour::changed, this, &TourPanel::show_page);
  auto* column = new QVBoxLayout(this);
  column->setContentsMargins(8, 2, 8, 8);
  column->addWidget(browser_);
  show_page();
}

void TourPanel::set_away(bool away) {
  if (away == away_) return;
  away_ = away;
  show_page();
}

void TourPanel::set_theme(const Theme& theme, double font_scale) {
  theme_ = &theme;
  browser_->setFont(ui_font(kBodySize * font_scale));
  show_page();
}

QString TourPanel::text() const {
  return browser_->toPlainText();
}

void TourPanel::follow(const QUrl& link) {
  const QString id = link.path();
  if (id == QLatin1String("start")) Q_EMIT started();
  if (id == QLatin1String("skip")) Q_EMIT skipped();
  if (id == QLatin1String("end")) Q_EMIT ended();
  if (id == QLatin1String("return")) Q_EMIT returned();
}

// The result of the task that was done last, then the task to do.
QString TourPanel::current() const {
  const std::vector<bool>& done = tour_.done();
  const auto paragraph = [](const QString& words) {
    return QStringLiteral("<p style='line-height:130%'>%1</p>").arg(words);
  };
  QString html;
  if (!done.empty() && done.back()) html += paragraph(tour_result(static_cast<TourTask>(done.size() - 1)));
  const bool over = tour_.task() == TourTask::end;
  const QString number = tr("Task %1 of %2").arg(QString::number(done.size() + 1), QString::number(kTourTasks));
  html += QStringLiteral("<p><b>%1</b>").arg(title_of(tour_.task()).toHtmlEscaped());
  if (!over) html += QStringLiteral(" &nbsp; <span class='quiet'>%1</span>").arg(number.toHtmlEscaped());
  html += QStringLiteral("</p>") + paragraph(tour_words(tour_.task()));
  if (!tour_.remark().isEmpty()) {
    html += QStringLiteral("<p class='remark'>%1</p>").arg(tour_.remark().toHtmlEscaped());
  }
  const QString links = over ? tour_link("start", tr("Start again"))
                             : tour_link("skip", tr("Skip this task")) + QStringLiteral(" &nbsp; ") +
                                   tour_link("end", tr("End the tour"));
  return html + QStringLiteral("<p>%1</p>").arg(links);
}

QString TourPanel::tasks_before() const {
  QStringList lines;
  for (std::size_t i = tour_.done().size(); i-- > 0;) {  // the last one first
    const QString title = title_of(static_cast<TourTask>(i));
    lines += (tour_.done()[i] ? tr("Done: %1") : tr("Skipped: %1")).arg(title).toHtmlEscaped();
  }
  return QStringLiteral("<p class='quiet'>%1</p>").arg(lines.join(QStringLiteral("<br>")));
}

void TourPanel::show_page() {
  browser_->document()->setDefaultStyleSheet(
      QStringLiteral("a { color: %1; text-decoration: none; } .key { background-color: %2; font-weight: 600; } "
                     ".quiet { color: %3; } .remark { color: %4; }")
          .arg(theme_->accent.name(), theme_->cell_free.name(), theme_->text_quiet.name(), theme_->warning.name()));
  if (!tour_.active()) {
    browser_->setHtml(QStringLiteral("<p>%1</p><p>%2</p>")
                          .arg(tr("The tour shows the viewer in %1 tasks, which take about ten minutes. You do them in "
                                  "the window; it observes what you do.")
                                   .arg(QString::number(kTourTasks)),
                               tour_link("start", tr("Start the tour"))));
  } else if (away_) {
    browser_->setHtml(QStringLiteral("<p>%1</p><p>%2 &nbsp; %3</p>")
                          .arg(tr("The tasks of the tour are about another scenario, \"First light\"."),
                               tour_link("return", tr("Open it again")), tour_link("end", tr("End the tour"))));
  } else {
    browser_->setHtml(current() + tasks_before());
  }
}

}  // namespace kvscope::viz
