// The open document: a run, the position in it, the pinned and the hovered object, the breakpoints, whether it plays.
// Every panel, table and dock observes this one object; they do not call each other.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include <QtCore/QElapsedTimer>
#include <QtCore/QObject>
#include <QtCore/QString>
#include <QtCore/QStringList>
#include <QtCore/QTimer>

#include "viz/playback/cursor.h"
#include "viz/playback/find.h"
#include "viz/playback/player.h"
#include "viz/playback/selection.h"

namespace kvscope::viz {

class Document final : public QObject {
  Q_OBJECT
 public:
  // Starts at the end of step 0, so that the first picture is not empty; at position 0 in a run without steps.
  Document(std::shared_ptr<const Run> run, QString path, QObject* parent = nullptr);

  [[nodiscard]] const Run& run() const { return cursor_.run(); }
  [[nodiscard]] const Cursor& cursor() const { return cursor_; }
  [[nodiscard]] const QString& path() const { return path_; }  // as given when it was opened
  [[nodiscard]] const Selection& pinned() const { return pinned_; }
  [[nodiscard]] const Selection& hovered() const { return hovered_; }
  [[nodiscard]] const Lit& pinned_lit() const { return pinned_lit_; }
  [[nodiscard]] const Lit& hovered_lit() const { return hovered_lit_; }
  [[nodiscard]] const std::vector<Breakpoint>& breakpoints() const { return breakpoints_; }
  [[nodiscard]] bool playing() const { return doing_ != Doing::standing; }  // also while searching for a breakpoint
  [[nodiscard]] double speed() const { return player_.speed(); }

 public Q_SLOTS:
  // Each of these stops playing first.
  void step();
  void step_back();
  void next_event();
  void previous_event();
  void to_start();
  void to_end();
  void seek(Position position);  // clamped to the run
  void seek_step(StepIdx step);  // to the end of the step; clamped to the run
  // Moves to the next matching event, or to the end of the run. A search that takes longer than kSlice continues in
  // slices and counts as playing: the window stays responsive, and pause() ends the search at the position reached.
  void run_to_breakpoint();
  void run_back_to_breakpoint();

  void play();  // until the end, a breakpoint or pause(); at the end of the run it restarts from the beginning
  void pause();
  void toggle_playing();
  void set_speed(double steps_per_second);

  void pin(const Selection& selection);  // a step: also moves the position to it
  void hover(const Selection& selection);
  void set_breakpoints(std::vector<Breakpoint> breakpoints);
  // Moves to a target of find.h. For a byte offset, which needs the simulator, byte_wanted() is emitted.
  void go_to(const Target& target);

 Q_SIGNALS:
  void position_changed();
  void pinned_changed();
  void hovered_changed();
  void breakpoints_changed();
  void playing_changed();
  void speed_changed();
  // "breakpoint 1: block_evicted at event 57, step 4", "end of the run", "no such event after this"
  void stopped(const QString& reason);
  void failed(const QStringList& faults);  // reading the trace failed
  void byte_wanted(qint64 offset);

 private:
  enum class Doing : std::uint8_t { standing, playing, searching };
  // The target of a run to a breakpoint or to a kind of event.
  struct Search {
    std::vector<Breakpoint> breakpoints;
    bool back = false;
    std::optional<Position> origin;  // position if nothing is found; nullopt: the run's end (backwards: its start)
  };
  static constexpr int kFrame = 16;       // [ms] between two pictures while playing
  static constexpr qint64 kSlice = 100;   // [ms] maximum work before the window handles events
  static constexpr qint64 kPlaying = 40;  // [ms] the same while playing

  // Calls `move`, which returns whether the cursor moved. A fault of the trace is reported and stops playing.
  template <class MoveFunction>
  void go(MoveFunction&& move);
  template <class Work>
  bool guarded(Work&& work);
  void become(Doing doing);
  void moved();
  void relight();
  void tick();
  void play_on();
  void search(Search search);
  void search_on();
  [[nodiscard]] QString words_of(std::size_t index) const;
  // The position right after the first event in (from, to] that matches a breakpoint, and the breakpoint's index.
  struct Stop {
    Position position;
    std::size_t breakpoint = 0;
  };
  [[nodiscard]] std::optional<Stop> stop_between(Position from, Position to) const;

  Cursor cursor_;
  QString path_;
  Selection pinned_, hovered_;
  Lit pinned_lit_, hovered_lit_;
  std::vector<Breakpoint> breakpoints_;
  Player player_;
  Doing doing_ = Doing::standing;
  Search search_;
  QTimer timer_;
  QElapsedTimer clock_;
};

}  // namespace kvscope::viz
