// A window needs a display: without one Qt ends the program with a core dump, and a person gets one line here. A
// picture needs none, and must not depend on the one that is there.
#pragma once

namespace kvscope::apps {

// Before QApplication is made. InputError: neither DISPLAY nor WAYLAND_DISPLAY is set, and no platform without either
// was asked for in QT_QPA_PLATFORM. From then on, a display that does not answer ends the program with a line like that
// one and kExitBadInput, in place of Qt's abort.
void need_a_display();

// Before QGuiApplication is made: the platform without a screen, and none of the settings that would change a picture,
// whatever the environment says. What Qt has to remark about the desktop it does not find is not said.
void need_no_display();

}  // namespace kvscope::apps
