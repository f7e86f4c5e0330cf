// What is open: a run, where it stands, what is pinned and hovered, breakpoints, whether it plays. Every panel, table
// and dock listens to this one object; none of them talks to another.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QTimer>

#include "viz/playback/cursor.h"
#include "viz/playback/find.h"
#include "viz/playback/player.h"
#include "viz/playback/selection.h"

namespace kvscope::viz {

class Document final : public QObject {
  Q_OBJECT
 public:
  // Stands at the end of step 0 (or at the start of a run without steps): the first picture shows something.
  Document(std::shared_ptr<const Run> run, QString path, QObject* parent = nullptr);

  [[nodiscard]] const Run& run() const { return cursor_.run(); }
  [[nodiscard]] const Cursor& cursor() const { return cursor_; }
  [[nodiscard]] const QString& path() const { return path_; }  // as it was opened
  [[nodiscard]] const Selection& pinned() const { return pinned_; }
  [[nodiscard]] const Selection& hovered() const { return hovered_; }
  [[nodiscard]] const Lit& pinned_lit() const { return pinned_lit_; }
  [[nodiscard]] const Lit& hovered_lit() const { return hovered_lit_; }
  [[nodiscard]] const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
  [[nodiscard]] bool playing() const { return timer_.isActive(); }
  [[nodiscard]] double speed() const { return player_.speed(); }

 public Q_SLOTS:
  // Each stops playing first.
  void step();
  void step_back();
  void next_event();
  void previous_event();
  void to_start();
  void to_end();
  void seek(Position position);  // clamped to the run
  void seek_step(StepIdx step);  // to its end; clamped
  void run_to_breakpoint();      // to the end, where there is none
  void run_back_to_breakpoint();

  void play();  // until the end, a breakpoint or pause(); from the end: from the start
  void pause();
  void toggle_playing();
  void set_speed(double steps_per_second);

  void pin(const Selection& selection);  // a step: also seeks there
  void hover(const Selection& selection);
  void set_breakpoints(std::vector<Breakpoint> breakpoints);
  // Follows a target of find.h. Byte offsets need the simulator: byte_wanted() is emitted.
  void go_to(const Target& target);

 Q_SIGNALS:
  void position_changed();
  void pinned_changed();
  void hovered_changed();
  void breakpoints_changed();
  void playing_changed();
  void stopped(
      const QString&
          reason);  // "breakpoint 1: block_evicted at event 57, step 4", "end of the run", "no such event after this"
  void failed(const QStringList& faults);  // the trace turned out damaged while it was read
  void byte_wanted(qint64 offset);

 private:
  void moved(bool whether);
  void relight();

  Cursor cursor_;
  QString path_;
  Selection pinned_, hovered_;
  Lit pinned_lit_, hovered_lit_;
  std::vector<Breakpoint> breakpoints_;
  Player player_;
  QTimer timer_;
  QElapsedTimer clock_;
};

}  // namespace kvscope::viz
