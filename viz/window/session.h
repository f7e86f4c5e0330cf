// What the window was like, in a settings file of its own: written within a second of each change, read at the next
// start. A lock beside it says who writes: a second window that runs at the same time reads and leaves it alone.
//
// The file says "clean" only after end(): a crash, a kill or a power cut leaves it unclean, and the next start offers
// to restore what was open.
#pragma once

#include <memory>
#include <optional>

#include <QtCore/QByteArray>
#include <QtCore/QLockFile>
#include <QtCore/QString>
#include <QtCore/QStringList>

#include "viz/geometry/board.h"
#include "viz/playback/breakpoint.h"
#include "viz/playback/selection.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {

// How the window looks: taken up at every start.
struct SessionLook {
  ThemeSetting theme = ThemeSetting::system;
  double font_scale = 1;
  double speed = 4;  // [steps/s]
  QByteArray geometry, docks;
  friend bool operator==(const SessionLook&, const SessionLook&) = default;
};

// What was open: restored when it is asked for.
struct SessionPlace {
  QString path;  // empty: nothing
  Position position;
  View view = View::overview;
  Selection pinned;
  std::vector<Breakpoint> breakpoints;
  friend bool operator==(const SessionPlace&, const SessionPlace&) = default;
};

class Session {
 public:
  // `folder` is made if it is missing. The file there is <folder>/viewer.ini; the list of recent files stands in it
  // too.
  explicit Session(const QString& folder);
  ~Session();  // without end(): as a crash

  [[nodiscard]] const QString& settings_file() const { return file_; }
  [[nodiscard]] bool ours() const { return ours_; }  // no other window writes it
  // The last window that wrote it did not call end().
  [[nodiscard]] bool ended_badly() const { return ended_badly_; }
  [[nodiscard]] const SessionLook& look() const { return look_; }     // as read at the start, or as kept last
  [[nodiscard]] const SessionPlace& place() const { return place_; }  // likewise

  void keep(const SessionLook& look, const SessionPlace& place);
  void end();

 private:
  void read();
  QString file_;
  QLockFile lock_;
  bool ours_ = false, ended_badly_ = false;
  SessionLook look_;
  SessionPlace place_;
};

}  // namespace kvscope::viz
