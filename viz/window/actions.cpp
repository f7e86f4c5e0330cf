#include "viz/window/actions.h"

#include <QtWidgets/QWidget>

namespace kvscope::viz {

namespace {

QString tip_with_key(const ActionEntry& of) {
  return QStringLiteral("%1 (%2)").arg(tip_of(of), keys_of(of).front().toString(QKeySequence::NativeText));
}

}  // namespace

Actions::Actions(QWidget* window) : QObject(window) {
  for (const ActionEntry& e : action_table()) {
    auto* action = new QAction(text_of(e), this);
    action->setShortcuts(keys_of(e));
    action->setCheckable(e.checkable);
    action->setStatusTip(tip_of(e));
    action->setToolTip(tip_with_key(e));
    action->setObjectName(plain_text_of(e));
    window->addAction(action);
    actions_[static_cast<std::size_t>(e.id)] = action;
  }
}

void Actions::set_theme(const Theme& theme) {
  theme_ = &theme;
  for (const ActionEntry& e : action_table()) {
    const Icon which = e.id == Do::play && playing_ ? Icon::pause : e.icon;
    (*this)[e.id]->setIcon(icon(which, theme));
  }
}

void Actions::set_playing(bool playing) {
  playing_ = playing;
  (*this)[Do::play]->setText(playing ? tr("&Pause") : text_of(entry(Do::play)));
  if (theme_ != nullptr) (*this)[Do::play]->setIcon(icon(playing ? Icon::pause : Icon::play, *theme_));
}

void Actions::set_open(bool open) {
  for (const ActionEntry& e : action_table()) {
    const bool of_run = e.group == Group::run && e.id != Do::faster && e.id != Do::slower;
    const bool of_file = e.id == Do::reload || e.id == Do::compare || e.id == Do::save_trace ||
                         e.id == Do::export_picture || e.id == Do::close || e.id == Do::find ||
                         e.id == Do::copy_explanation || e.id == Do::zoom_in || e.id == Do::zoom_out ||
                         e.id == Do::zoom_fit || (e.id >= Do::show_why && e.id <= Do::show_scenario);
    if (of_run || of_file) (*this)[e.id]->setEnabled(open);
  }
}

void Actions::set_reason(Do id, const QString& why_not) {
  QAction& action = *(*this)[id];
  const ActionEntry& of = entry(id);
  action.setEnabled(why_not.isEmpty());
  action.setStatusTip(why_not.isEmpty() ? tip_of(of) : QStringLiteral("%1: %2").arg(tip_of(of), why_not));
  action.setToolTip(why_not.isEmpty() ? tip_with_key(of) : tip_with_key(of) + QLatin1Char('\n') + why_not);
}

}  // namespace kvscope::viz
