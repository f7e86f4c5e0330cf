// The state of the window in a settings file: written within a second of each change, read at the next start. A lock
// file beside it ensures a single writer: a second window that runs at the same time only reads it.
//
// The file is marked "clean" only by end(). After a crash, a kill or a power cut it is not marked, and the next start
// offers to restore the open document. It also offers the changes of a scenario that were not saved.
#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include <QtCore/QByteArray>
#include <QtCore/QLockFile>
#include <QtCore/QString>
#include <QtCore/QStringList>

#include "viz/geometry/board.h"
#include "viz/playback/attention.h"
#include "viz/playback/breakpoint.h"
#include "viz/playback/selection.h"
#include "viz/playback/tile_request.h"
#include "viz/window/theme_choice.h"

namespace kvscope::viz {

// The look of the window: restored at every start.
struct SessionLook {
  ThemeSetting theme = ThemeSetting::system;
  double font_scale = 1;
  double speed = 4;  // [steps/s]
  bool motion = true;
  QByteArray geometry, docks;
  friend bool operator==(const SessionLook&, const SessionLook&) = default;
};

// The open document: restored if the user accepts the offer.
struct SessionPlace {
  QString path;  // empty: no open document
  Position position;
  View view = View::overview;
  Selection pinned;
  std::optional<TileRequest> tile;            // of the tile view; nothing: no tile was shown
  std::optional<std::int64_t> recorded_tile;  // the number of a tile of the trace, shown in place of `tile`
  std::optional<std::int64_t> tile_event;     // how many events of the tile have happened
  std::optional<FlowRequest> flow;            // of the attention view, without its step; nothing: another view
  std::optional<std::int64_t> flow_tiles;     // tiles of the flow that have been added; nothing: all
  QString candidate;                          // file that is compared with the golden; empty: none
  QString compared;                           // file of the run that is shown beside; empty: none
  std::vector<Breakpoint> breakpoints;
  std::vector<std::pair<QString, QString>> changes;  // that are not saved: a scenario's file, and its changed text
  friend bool operator==(const SessionPlace&, const SessionPlace&) = default;
};

// The folder of the settings files, for `folder` empty: the system's for this program.
[[nodiscard]] QString settings_folder(const QString& folder = {});

class Session {
 public:
  // The look that the last window kept, for a window that has no session.
  [[nodiscard]] static SessionLook stored_look(const QString& folder);

  // `folder` is created if it is missing. The file is <folder>/viewer.ini, which also has the list of recent files.
  explicit Session(const QString& folder);
  ~Session();  // without end() it counts as a crash

  [[nodiscard]] const QString& settings_file() const { return file_; }
  [[nodiscard]] bool ours() const { return ours_; }  // whether this window may write the file
  // Whether the last window that wrote the file did not call end().
  [[nodiscard]] bool ended_badly() const { return ended_badly_; }
  [[nodiscard]] const SessionLook& look() const { return look_; }     // as read at the start, or of the last keep()
  [[nodiscard]] const SessionPlace& place() const { return place_; }  // the same

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
