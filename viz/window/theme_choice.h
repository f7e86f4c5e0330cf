// The choice of the theme, and its effect on Qt's widgets: palette, fonts, a short style sheet. `system` follows the
// lightness of the desktop's palette, also when it changes while the program runs.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include <QtCore/QString>
#include <QtGui/QPalette>

#include "viz/view/theme.h"

namespace kvscope::viz {

enum class ThemeSetting : std::uint8_t { system, dark, light, high_contrast };
[[nodiscard]] QString name(ThemeSetting setting);  // "system", as stored in settings files
[[nodiscard]] std::optional<ThemeSetting> find_theme_setting(const QString& name);

inline constexpr double kSmallestFont = 0.7, kLargestFont = 2.5, kFontStep = 1.1;  // font scale
inline constexpr double kBodySize = 13;                                            // [px] of words at font scale 1

// For `system`: high contrast if the desktop's text and background are black and white; otherwise dark if its text is
// lighter than its background.
[[nodiscard]] ThemeKind theme_kind(ThemeSetting setting, const QPalette& desktop);

// The desktop's palette, without the changes of apply_look(). It sets the application's palette twice, so call it only
// when the theme is chosen or the desktop's palette changed.
[[nodiscard]] QPalette desktop_palette();

[[nodiscard]] QPalette widget_palette(const Theme& theme);
[[nodiscard]] QString style_sheet(const Theme& theme, double font_scale);

// Sets palette and font of the whole application; the style is Qt's "Fusion" on every desktop.
void apply_look(const Theme& theme, double font_scale);

}  // namespace kvscope::viz
