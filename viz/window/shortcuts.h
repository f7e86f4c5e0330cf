// The table of all actions of the window: id, text, keys, tool tip, icon. Menus, tool bar, the help dialog and the
// tests are generated from it.
#pragma once

#include <array>
#include <cstdint>
#include <span>

#include <QtCore/QList>
#include <QtCore/QString>
#include <QtGui/QKeySequence>
#include <QtWidgets/QDialog>

#include "viz/view/theme.h"
#include "viz/window/icons.h"

class QAction;

namespace kvscope::viz {

enum class Do : std::uint8_t {
  open,
  open_candidate,
  compare,
  reload,
  save_trace,
  save_scenario,
  export_picture,
  close,
  quit,
  undo,
  redo,
  play,
  play_events,
  step,
  step_back,
  next_event,
  previous_event,
  to_start,
  to_end,
  run_to_breakpoint,
  run_back,
  next_difference,
  previous_difference,
  faster,
  slower,
  motion_forward,
  motion_back,
  add_breakpoint,
  find,
  go_back,
  go_forward,
  clear_selection,
  copy_explanation,
  view_overview,
  view_sequences,
  view_pool,
  view_timeline,
  view_tile,
  view_attention,
  beside,
  motion,
  zoom_in,
  zoom_out,
  zoom_fit,
  show_why,
  show_events,
  show_sequences,
  show_breakpoints,
  show_notes,
  show_scenario,
  show_lab,
  show_tour,
  next_area,
  previous_area,
  focus_picture,
  theme_system,
  theme_dark,
  theme_light,
  theme_high_contrast,
  font_larger,
  font_smaller,
  font_normal,
  present,
  tour,
  commands,
  help,
};
inline constexpr std::size_t kActions = static_cast<std::size_t>(Do::help) + 1;

enum class Group : std::uint8_t { file, edit, run, select, view, help };
inline constexpr std::array kGroups{Group::file, Group::edit, Group::run, Group::select, Group::view, Group::help};
[[nodiscard]] QString group_title(Group group);

struct ActionEntry {
  Do id;
  Group group;
  const char* text;  // of the menu, with its mnemonic; to be translated
  const char* keys;  // portable text, several separated by blanks; the first one is shown
  const char* tip;   // a sentence; to be translated
  Icon icon = Icon::none;
  bool checkable = false;
};
[[nodiscard]] std::span<const ActionEntry, kActions> action_table();  // in the order of Do

[[nodiscard]] const ActionEntry& entry(Do id);
[[nodiscard]] QString text_of(const ActionEntry& entry);        // translated
[[nodiscard]] QString plain_text_of(const ActionEntry& entry);  // without mnemonic and dots
[[nodiscard]] QString tip_of(const ActionEntry& entry);
[[nodiscard]] QList<QKeySequence> keys_of(const ActionEntry& entry);

[[nodiscard]] QString translated(const char* text);

// A dialog that is not modal and lists the table, group by group.
class ShortcutsDialog final : public QDialog {
  Q_OBJECT
 public:
  explicit ShortcutsDialog(QWidget* parent = nullptr);
};

}  // namespace kvscope::viz
