// Which theme is in force, and what it does to Qt's own widgets: palette, fonts, a short style sheet. `system` follows
// the lightness of the desktop's palette, also when it changes while the program runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <QtCore/QString>
#include <QtGui/QPalette>

#include "viz/view/theme.h"

namespace kvscope::viz {

enum class ThemeSetting : std::uint8_t { system, dark, light };
[[nodiscard]] QString name(ThemeSetting setting);  // "system", as settings files have it
[[nodiscard]] std::optional<ThemeSetting> find_theme_setting(const QString& name);

inline constexpr double kSmallestFont = 0.7, kLargestFont = 2.5, kFontStep = 1.1;  // font scale
inline constexpr double kBodySize = 13;                                            // [px] of words at font scale 1

// Dark exactly if the desktop writes light on dark.
[[nodiscard]] ThemeKind theme_kind(ThemeSetting setting, const QPalette& desktop);

// The palette the application would have had without us. Sets the application's palette twice: call it when the theme
// is chosen or the desktop says that its own has changed, not in between.
[[nodiscard]] QPalette desktop_palette();

[[nodiscard]] QPalette widget_palette(const Theme& theme);
[[nodiscard]] QString style_sheet(const Theme& theme, double font_scale);

// Palette and font of the whole application; the style is Qt's own "Fusion", the same on every desktop.
void apply_look(const Theme& theme, double font_scale);

}  // namespace kvscope::viz
