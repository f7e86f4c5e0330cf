#include "viz/window/theme_choice.h"

#include <array>

#include <QtCore/QEvent>
#include <QtWidgets/QApplication>
#include <QtWidgets/QStyle>
#include <QtWidgets/QToolTip>
#include <QtWidgets/QWidget>

namespace kvscope::viz {
namespace {

constexpr std::array kSettings{ThemeSetting::system, ThemeSetting::dark, ThemeSetting::light,
                               ThemeSetting::high_contrast};

// Contrast of text on windows from which a desktop counts as one of high contrast: black and white. Qt 6.4 does not
// report the desktop's own setting; usual desktops have at most 19, and desktops of high contrast 21.
constexpr double kHighContrast = 20.5;

}  // namespace

QString name(ThemeSetting setting) {
  switch (setting) {
    case ThemeSetting::dark:
      return QStringLiteral("dark");
    case ThemeSetting::light:
      return QStringLiteral("light");
    case ThemeSetting::high_contrast:
      return QStringLiteral("high-contrast");
    default:
      return QStringLiteral("system");
  }
}

std::optional<ThemeSetting> find_theme_setting(const QString& wanted) {
  for (const ThemeSetting setting : kSettings) {
    if (name(setting) == wanted) return setting;
  }
  return std::nullopt;
}

ThemeKind theme_kind(ThemeSetting setting, const QPalette& desktop) {
  switch (setting) {
    case ThemeSetting::dark:
      return ThemeKind::dark;
    case ThemeSetting::light:
      return ThemeKind::light;
    case ThemeSetting::high_contrast:
      return ThemeKind::high_contrast;
    case ThemeSetting::system:
      break;
  }
  if (contrast(desktop.color(QPalette::WindowText), desktop.color(QPalette::Window)) >= kHighContrast) {
    return ThemeKind::high_contrast;
  }
  const bool dark = desktop.color(QPalette::WindowText).lightness() > desktop.color(QPalette::Window).lightness();
  return dark ? ThemeKind::dark : ThemeKind::light;
}

QPalette desktop_palette() {
  const QPalette ours = QApplication::palette();
  QApplication::setPalette(QPalette());
  const QPalette theirs = QApplication::palette();
  QApplication::setPalette(ours);
  return theirs;
}

QPalette widget_palette(const Theme& theme) {
  QPalette palette(theme.text, theme.card, theme.card_border, theme.surface, theme.cell_line, theme.text, theme.text,
                   theme.card, theme.surface);
  // A field needs contrast to the dark surface around it; on white its outline is enough.
  if (theme.on_dark()) palette.setColor(QPalette::Base, theme.cell_free);
  palette.setColor(QPalette::Button, theme.cell_free);
  palette.setColor(QPalette::ButtonText, theme.text);
  palette.setColor(QPalette::AlternateBase, theme.cell_free);
  palette.setColor(QPalette::ToolTipBase, theme.card);
  palette.setColor(QPalette::ToolTipText, theme.text);
  palette.setColor(QPalette::PlaceholderText, theme.text_quiet);
  palette.setColor(QPalette::Highlight, theme.accent);
  palette.setColor(QPalette::HighlightedText, theme.ink_on(theme.accent));
  palette.setColor(QPalette::Link, theme.accent);
  palette.setColor(QPalette::LinkVisited, theme.accent);
  for (const QPalette::ColorRole role : {QPalette::WindowText, QPalette::Text, QPalette::ButtonText}) {
    palette.setColor(QPalette::Disabled, role, theme.text_quiet);
  }
  palette.setColor(QPalette::Disabled, QPalette::Highlight, theme.cell_line);
  palette.setColor(QPalette::Disabled, QPalette::HighlightedText, theme.text);
  return palette;
}

QString style_sheet(const Theme& theme, double font_scale) {
  const auto px = [&](double size) { return QString::number(qRound(size * font_scale)); };
  QString sheet = QStringLiteral(R"(
    QMainWindow, QMainWindow > QWidget { background: @surface; }
    QMainWindow::separator { background: @surface; width: 6px; height: 6px; }
    QMainWindow::separator:hover { background: @border; }
    QMenuBar { background: @surface; padding: 2px 8px; }
    QMenuBar::item { padding: 4px 10px; border-radius: 5px; background: transparent; }
    QMenuBar::item:selected { background: @free; }
    QToolBar { background: @surface; border: 0; spacing: 2px; padding: 2px 12px 6px 12px; }
    QToolBar::separator { background: @border; width: 1px; margin: 6px 6px; }
    QToolButton { border: 1px solid transparent; border-radius: 6px; padding: 4px; background: transparent; }
    QToolButton:hover { background: @free; }
    QToolButton:pressed, QToolButton:checked { background: @line; }
    QToolButton:focus { border-color: @accent; }
    QToolButton[popupMode="2"] { padding-right: 16px; }
    QPushButton { border: 1px solid @line; border-radius: 6px; padding: 4px 14px; background: @free; }
    QPushButton:hover { border-color: @quiet; }
    QPushButton:pressed { background: @line; }
    QPushButton:focus { border-color: @accent; }
    QSlider::groove:horizontal { height: 4px; border-radius: 2px; background: @line; }
    QSlider::sub-page:horizontal { border-radius: 2px; background: @quiet; }
    QSlider::handle:horizontal { width: 12px; margin: -4px 0; border-radius: 6px; background: @text; }
    QSlider::handle:horizontal:focus { background: @accent; }
    QProgressBar { border: 0; border-radius: 4px; background: @line; max-height: 8px; }
    QProgressBar::chunk { border-radius: 4px; background: @accent; }
    QTabBar { background: @surface; }
    QTabBar::tab { background: transparent; color: @quiet; padding: 6px 12px; border: 0;
                   border-bottom: 2px solid transparent; }
    QTabBar::tab:selected { color: @text; border-bottom-color: @accent; }
    QTabBar::tab:hover { color: @text; }
    QAbstractScrollArea[card="true"] { background: @card; border: 1px solid @border; border-radius: 8px; }
    QAbstractScrollArea[card="true"]:focus { border-color: @accent; }
    QAbstractItemView[card="true"] { padding: 2px; selection-background-color: @line; selection-color: @text; }
    QAbstractItemView[choices="true"] { activate-on-singleclick: 1; background: transparent; }
    QListWidget::item { padding: 6px 8px; border: 0; }
    QTreeView::item { padding: 3px 10px 3px 2px; }
    QFrame[drop="true"] { border: 2px dashed @line; border-radius: 10px; }
    QHeaderView { background: transparent; border: 0; }
    QHeaderView::section { background: @card; color: @quiet; border: 0; border-bottom: 1px solid @border;
                           padding: 5px 16px 5px 8px; }
    QTableView { gridline-color: transparent; }
    QStatusBar { background: @surface; color: @quiet; }
    QStatusBar::item { border: 0; }
    QStatusBar QLabel { color: @quiet; padding: 2px 10px; }
    QLabel[quiet="true"] { color: @quiet; }
    QLabel[title="true"] { font-size: @title px; font-weight: 600; }
    QLabel[fault="true"] { color: @warning; }
    QFrame[bar="true"] { background: @card; border: 1px solid @border; border-radius: 8px; }
    QFrame[bar="warning"] { background: @card; border: 1px solid @warning; border-radius: 8px; }
    QFrame[bar="true"] QPlainTextEdit, QFrame[bar="warning"] QPlainTextEdit { background: transparent; border: 0; }
    QScrollBar { background: transparent; border: 0; }
    QScrollBar:vertical { width: 12px; }
    QScrollBar:horizontal { height: 12px; }
    QScrollBar::handle { background: @line; border-radius: 3px; margin: 3px; }
    QScrollBar::handle:vertical { min-height: 36px; }
    QScrollBar::handle:horizontal { min-width: 36px; }
    QScrollBar::handle:hover { background: @quiet; }
    QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
    QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
    QToolTip { background: @card; color: @text; border: 1px solid @border; padding: 4px; }
  )");
  const std::array<std::pair<const char*, QString>, 10> values{{{"@surface", theme.surface.name()},
                                                                {"@border", theme.card_border.name()},
                                                                {"@card", theme.card.name()},
                                                                {"@free", theme.cell_free.name()},
                                                                {"@line", theme.cell_line.name()},
                                                                {"@accent", theme.accent.name()},
                                                                {"@quiet", theme.text_quiet.name()},
                                                                {"@title ", px(17)},
                                                                {"@text", theme.text.name()},
                                                                {"@warning", theme.warning.name()}}};
  for (const auto& [key, value] : values) sheet.replace(QLatin1String(key), value);
  return sheet;
}

void apply_look(const Theme& theme, double font_scale) {
  if (QApplication::style()->name() != QLatin1String("fusion")) QApplication::setStyle(QStringLiteral("fusion"));
  QApplication::setFont(ui_font(kBodySize * font_scale));
  // Qt notifies windows only after the next events, and widgets with a style sheet not at all: these would keep the
  // font they were created with, initially the desktop's.
  for (QWidget* widget : QApplication::allWidgets()) {
    QEvent changed(QEvent::ApplicationFontChange);
    QApplication::sendEvent(widget, &changed);
  }
  QApplication::setPalette(widget_palette(theme));
  QToolTip::setPalette(widget_palette(theme));
  QToolTip::setFont(ui_font(kBodySize * font_scale));
}

}  // namespace kvscope::viz
