#include "viz/window/shortcuts.h"

#include <QtCore/QCoreApplication>
#include <QtGui/QScreen>
#include <QtWidgets/QDialogButtonBox>
#include <QtWidgets/QHeaderView>
#include <QtWidgets/QTreeWidget>
#include <QtWidgets/QVBoxLayout>

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

constexpr int kHelpHeight = 640;  // [px]

constexpr const char* kContext = "kvscope::viz::Actions";
#define SAY(text) QT_TRANSLATE_NOOP("kvscope::viz::Actions", text)

// The canvas uses the arrow keys, and the focused widget uses letters and digits, so few keys are without a modifier.
constexpr std::array<ActionEntry, kActions> kTable{{
    {Do::open, Group::file, SAY("&Open scenario or trace..."), "Ctrl+O",
     SAY("Open a scenario, a trace or a golden bundle"), Icon::open},
    {Do::open_candidate, Group::file, SAY("Open &bundle and candidate..."), "Ctrl+Shift+O",
     SAY("Compare a kernel's output with a golden bundle, or with the run that is open")},
    {Do::compare, Group::file, SAY("Co&mpare with..."), "Ctrl+D",
     SAY("Open another run of the scenario and show it beside this one")},
    {Do::reload, Group::file, SAY("&Reload"), "Ctrl+R", SAY("Open the same file again"), Icon::reload},
    {Do::save_trace, Group::file, SAY("&Save trace as..."), "Ctrl+S", SAY("Write the run's events to a trace file"),
     Icon::save},
    {Do::save_scenario, Group::file, SAY("Save s&cenario as..."), "Ctrl+Shift+S",
     SAY("Write the scenario with its changes to a file"), Icon::save},
    {Do::export_picture, Group::file, SAY("&Export picture..."), "Ctrl+E",
     SAY("Write the picture as PNG, SVG, PDF or TikZ, or an animation as GIF, WebM or MP4"), Icon::picture},
    {Do::close, Group::file, SAY("&Close"), "Ctrl+W", SAY("Close the file and show the start page")},
    {Do::quit, Group::file, SAY("&Quit"), "Ctrl+Q", SAY("Quit the program")},

    {Do::undo, Group::edit, SAY("&Undo"), "Ctrl+Z", SAY("Undo the last change of the scenario"), Icon::undo},
    {Do::redo, Group::edit, SAY("&Redo"), "Ctrl+Shift+Z Ctrl+Y", SAY("Redo the change of the scenario that was undone"),
     Icon::redo},

    {Do::play, Group::run, SAY("&Play"), "Space", SAY("Play and pause"), Icon::play},
    {Do::play_events, Group::run, SAY("Play e&vent by event"), "Shift+Space",
     SAY("Play and pause, one event at a time")},
    {Do::step, Group::run, SAY("&Step"), ". Ctrl+Right", SAY("To the end of the next step"), Icon::step},
    {Do::step_back, Group::run, SAY("Step &back"), ", Ctrl+Left", SAY("To the end of the previous step"),
     Icon::step_back},
    {Do::next_event, Group::run, SAY("Next &event"), "Shift+. Ctrl+Shift+Right", SAY("One event forward"), Icon::event},
    {Do::previous_event, Group::run, SAY("Pre&vious event"), "Shift+, Ctrl+Shift+Left", SAY("One event back"),
     Icon::event_back},
    {Do::to_start, Group::run, SAY("To the s&tart"), "Ctrl+Home", SAY("Before the first event"), Icon::start},
    {Do::to_end, Group::run, SAY("To the e&nd"), "Ctrl+End", SAY("After the last event"), Icon::end},
    {Do::run_to_breakpoint, Group::run, SAY("&Run to breakpoint"), "F5",
     SAY("Forward to the next breakpoint, or to the end"), Icon::run_to},
    {Do::run_back, Group::run, SAY("Run b&ack to breakpoint"), "Shift+F5",
     SAY("Back to the previous breakpoint, or to the start"), Icon::run_back},
    {Do::next_difference, Group::run, SAY("Next &difference"), "F8",
     SAY("Forward to the next step in which the compared run differs")},
    {Do::previous_difference, Group::run, SAY("Previous d&ifference"), "Shift+F8",
     SAY("Back to the previous step in which the compared run differs")},
    {Do::faster, Group::run, SAY("&Faster"), "]", SAY("Play twice as fast")},
    {Do::slower, Group::run, SAY("S&lower"), "[", SAY("Play half as fast")},
    {Do::motion_forward, Group::run, SAY("A &part of a step"), "Alt+.",
     SAY("Move what the step moves by a twelfth of its way")},
    {Do::motion_back, Group::run, SAY("A part of a step bac&k"), "Alt+,", SAY("The same backward")},
    {Do::add_breakpoint, Group::run, SAY("Add a break&point"), "Ctrl+B", SAY("Type a breakpoint")},

    {Do::find, Group::select, SAY("&Find..."), "Ctrl+F", SAY("Go to a block, token, sequence, step, event or byte"),
     Icon::find},
    {Do::go_back, Group::select, SAY("&Back"), "Alt+Left",
     SAY("Back to the selection, step and view before the last change"), Icon::back},
    {Do::go_forward, Group::select, SAY("F&orward"), "Alt+Right", SAY("Forward again, after going back"),
     Icon::forward},
    {Do::clear_selection, Group::select, SAY("&Let go"), "Esc",
     SAY("Close the bar with the focus; without one, clear the selection")},
    {Do::copy_explanation, Group::select, SAY("&Copy the explanation"), "Ctrl+Shift+C",
     SAY("Copy the explanation of the address as text"), Icon::copy},

    {Do::view_overview, Group::view, SAY("&Overview"), "Ctrl+1", SAY("All panels"), Icon::none, true},
    {Do::view_sequences, Group::view, SAY("&Sequences"), "Ctrl+2", SAY("The sequences alone"), Icon::none, true},
    {Do::view_pool, Group::view, SAY("Block &pool and table"), "Ctrl+3", SAY("Block pool and lookup table alone"),
     Icon::none, true},
    {Do::view_timeline, Group::view, SAY("&Timeline"), "Ctrl+4", SAY("The curves alone"), Icon::none, true},
    {Do::view_tile, Group::view, SAY("T&ile"), "Ctrl+5",
     SAY("The tile of the selected token, from the pool to registers; stepping moves through its events"), Icon::none,
     true},
    {Do::view_attention, Group::view, SAY("&Attention"), "Ctrl+6",
     SAY("The tiled flow of a query, and a candidate's errors against the golden; stepping adds tiles"), Icon::none,
     true},
    {Do::beside, Group::view, SAY("Compared run b&eside"), "Ctrl+Shift+D",
     SAY("The compared run beside this one, at the same step, with frames where they differ"), Icon::none, true},
    {Do::motion, Group::view, SAY("&Motion"), "Ctrl+M",
     SAY("Steps move blocks, chunks and registers to their places; off: pictures change at once"), Icon::none, true},
    {Do::zoom_in, Group::view, SAY("Zoom &in"),
     "Ctrl++ Ctrl+=", SAY("Larger, in the panel under the pointer, else in the one with the focus"), Icon::zoom_in},
    {Do::zoom_out, Group::view, SAY("Zoom o&ut"), "Ctrl+-",
     SAY("Smaller, in the panel under the pointer, else in the one with the focus"), Icon::zoom_out},
    {Do::zoom_fit, Group::view, SAY("&Fit"), "Ctrl+0", SAY("Show all content of every panel"), Icon::fit},
    {Do::show_why, Group::view, SAY("&Why this address"), "Alt+1", SAY("From a token to its byte, link by link"),
     Icon::none, true},
    {Do::show_events, Group::view, SAY("&Events"), "Alt+2", SAY("The events of this step"), Icon::none, true},
    {Do::show_sequences, Group::view, SAY("Se&quence table"), "Alt+3", SAY("The live sequences in numbers"), Icon::none,
     true},
    {Do::show_breakpoints, Group::view, SAY("&Breakpoints"), "Alt+4", SAY("Events at which playing stops"), Icon::none,
     true},
    {Do::show_notes, Group::view, SAY("&Notes"), "Alt+5", SAY("Description and sizes of the scenario"), Icon::none,
     true},
    {Do::show_scenario, Group::view, SAY("S&cenario"), "Alt+7", SAY("Change the scenario field by field"), Icon::none,
     true},
    {Do::show_lab, Group::view, SAY("&Lab"), "Alt+6", SAY("Goal and results of the lab that is open"), Icon::none,
     true},
    {Do::show_tour, Group::view, SAY("To&ur"), "Alt+8", SAY("The current task of the tour"), Icon::none, true},
    {Do::next_area, Group::view, SAY("Ne&xt part of the window"), "F6",
     SAY("Keyboard focus to the next bar, dock, or the picture")},
    {Do::previous_area, Group::view, SAY("Pre&vious part of the window"), "Shift+F6",
     SAY("Keyboard focus to the previous bar, dock, or the picture")},
    {Do::focus_picture, Group::view, SAY("The pict&ure"), "Alt+0", SAY("Keyboard focus to the picture")},
    {Do::theme_system, Group::view, SAY("&System"), "Ctrl+Alt+S", SAY("Same as the desktop"), Icon::none, true},
    {Do::theme_dark, Group::view, SAY("&Dark"), "Ctrl+Alt+D", SAY("Light on dark"), Icon::none, true},
    {Do::theme_light, Group::view, SAY("&Light"), "Ctrl+Alt+L", SAY("Dark on light"), Icon::none, true},
    {Do::theme_high_contrast, Group::view, SAY("&High contrast"), "Ctrl+Alt+H", SAY("White and strong colors on black"),
     Icon::none, true},
    {Do::font_larger, Group::view, SAY("&Larger text"), "Ctrl+Alt++ Ctrl+Alt+=", SAY("Larger text everywhere")},
    {Do::font_smaller, Group::view, SAY("&Smaller text"), "Ctrl+Alt+-", SAY("Smaller text everywhere")},
    {Do::font_normal, Group::view, SAY("&Normal text"), "Ctrl+Alt+0", SAY("Default text size")},
    {Do::present, Group::view, SAY("Pr&esentation"), "F11",
     SAY("The picture on the whole screen with a caption; Page Down and Page Up step, B blacks out, Esc leaves"),
     Icon::none, true},

    {Do::tour, Group::help, SAY("&Take the tour"), "Shift+F1", SAY("Learn the viewer in 13 tasks, which it checks")},
    {Do::commands, Group::help, SAY("&All actions by name..."), "Ctrl+Shift+P Ctrl+K",
     SAY("Type a part of an action's name and press Enter")},
    {Do::help, Group::help, SAY("&Keys and actions"), "F1", SAY("All actions and their keys")},
}};

// The keys and mouse actions of the canvas, for the help dialog.
struct CanvasKey {
  const char* keys;  // to be translated, as is `what`
  const char* what;
};
constexpr std::array<CanvasKey, 11> kCanvasKeys{{
    {SAY("Tab, Shift+Tab"), SAY("From panel to panel")},
    {SAY("Arrows, Home, End"), SAY("From object to object in the panel")},
    {SAY("Enter"), SAY("Pin the object, or unpin it")},
    {SAY("+   -   0"), SAY("Zoom in and out, fit the panel")},
    {SAY("Click"), SAY("Pin the object; outside all objects: unpin")},
    {SAY("Drag"), SAY("Move a zoomed panel; in header and timeline: go to a step")},
    {SAY("Wheel"), SAY("Zoom at the pointer; with Shift: scroll")},
    {SAY("Double click on a title"), SAY("That panel alone, and back")},
    {SAY("Page Down, Page Up"), SAY("In a presentation: step, step back")},
    {SAY("B or ."), SAY("In a presentation: black screen, and back")},
    {SAY("Esc"), SAY("In a presentation: leave it")},
}};
#undef SAY

}  // namespace

QString translated(const char* text) {
  return QCoreApplication::translate(kContext, text);
}

QString group_title(Group group) {
  switch (group) {
    case Group::file:
      return QCoreApplication::translate(kContext, "&File");
    case Group::edit:
      return QCoreApplication::translate(kContext, "&Edit");
    case Group::run:
      return QCoreApplication::translate(kContext, "&Run");
    case Group::select:
      return QCoreApplication::translate(kContext, "&Select");
    case Group::view:
      return QCoreApplication::translate(kContext, "&View");
    default:
      return QCoreApplication::translate(kContext, "&Help");
  }
}

std::span<const ActionEntry, kActions> action_table() {
  return kTable;
}

const ActionEntry& entry(Do id) {
  return kTable[static_cast<std::size_t>(id)];
}

QString text_of(const ActionEntry& entry) {
  return translated(entry.text);
}

QString plain_text_of(const ActionEntry& entry) {
  QString text = text_of(entry).remove(QLatin1Char('&'));
  if (text.endsWith(QLatin1String("..."))) text.chop(3);
  return text;
}

QString tip_of(const ActionEntry& entry) {
  return translated(entry.tip);
}

QList<QKeySequence> keys_of(const ActionEntry& entry) {
  QList<QKeySequence> keys;
  for (const QString& text : QString::fromLatin1(entry.keys).split(QLatin1Char(' ')))
    keys.push_back(QKeySequence::fromString(text, QKeySequence::PortableText));
  return keys;
}

// --- dialog ----------------------------------------------------------------------------------------------------------

ShortcutsDialog::ShortcutsDialog(QWidget* parent) : QDialog(parent) {
  setAttribute(Qt::WA_DeleteOnClose);  // a dialog that is opened later has the text size of that time
  setWindowTitle(tr("Keys and actions"));
  setAccessibleName(windowTitle());
  auto* list = new QTreeWidget(this);
  list->setProperty("card", true);
  list->setAccessibleName(tr("Actions"));
  list->setColumnCount(3);
  list->setHeaderLabels({tr("Action"), tr("Keys"), tr("What it does")});
  list->setRootIsDecorated(false);
  list->setSelectionMode(QAbstractItemView::SingleSelection);
  const auto add_group = [list](QString title) {
    auto* group = new QTreeWidgetItem(list, {title.remove(QLatin1Char('&'))});
    QFont bold = list->font();
    bold.setWeight(QFont::DemiBold);
    group->setFont(0, bold);
    group->setFirstColumnSpanned(true);
    return group;
  };
  for (const Group group : kGroups) {
    QTreeWidgetItem* title = add_group(group_title(group));
    for (const ActionEntry& e : kTable) {
      if (e.group != group) continue;
      QStringList keys;
      for (const QKeySequence& key : keys_of(e)) keys.push_back(key.toString(QKeySequence::NativeText));
      new QTreeWidgetItem(title, {plain_text_of(e), keys.join(QStringLiteral("   ")), tip_of(e)});
    }
  }
  QTreeWidgetItem* canvas = add_group(tr("In the picture"));
  for (const CanvasKey& key : kCanvasKeys)
    new QTreeWidgetItem(canvas, {QString(), translated(key.keys), translated(key.what)});
  list->expandAll();
  list->ensurePolished();
  int width = 80;  // [px] margins and the scroll bar
  for (const int column : {0, 1, 2}) {
    list->resizeColumnToContents(column);
    width += list->columnWidth(column);
  }

  auto* buttons = new QDialogButtonBox(QDialogButtonBox::Close, this);
  connect(buttons, &QDialogButtonBox::rejected, this, &QDialog::reject);
  auto* column = new QVBoxLayout(this);
  column->addWidget(list);
  column->addWidget(buttons);
  resize(QSize(width, kHelpHeight).boundedTo(screen()->availableSize()));
}

}  // namespace kvscope::viz
