// A window needs a display. Without one, Qt would end the program with a core dump; these functions print one line
// instead. A picture needs no display and must not depend on the one that exists.
#pragma once

namespace kvscope::apps {

// Call before QApplication is constructed. Throws InputError if DISPLAY, WAYLAND_DISPLAY and QT_QPA_PLATFORM are all
// unset. After this call, a display that does not respond ends the program with a similar line and kExitBadInput,
// instead of Qt's abort.
void need_a_display();

// Call before QGuiApplication is constructed. Selects the offscreen platform and removes every environment setting that
// would change a picture. Qt's warnings about the missing desktop are suppressed.
void need_no_display();

}  // namespace kvscope::apps
