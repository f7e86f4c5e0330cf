// What is open: a run, where it stands, what is pinned and hovered, breakpoints, whether it plays. Every panel, table
// and dock listens to this one object; none of them talks to another.
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
  [[nodiscard]] bool playing() const { return doing_ != Doing::standing; }  // or looking for a breakpoint
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
  // To the end, where there is none. A search that takes longer than kSlice goes on in slices and counts as playing:
  // the window stays usable, and pause() ends it where it has come to.
  void run_to_breakpoint();
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
  void speed_changed();
  // "breakpoint 1: block_evicted at event 57, step 4", "end of the run", "no such event after this"
  void stopped(const QString& reason);
  void failed(const QStringList& faults);  // the trace turned out damaged while it was read
  void byte_wanted(qint64 offset);

 private:
  enum class Doing : std::uint8_t { standing, playing, searching };
  // What a run to a breakpoint or to a kind of event looks for.
  struct Search {
    std::vector<Breakpoint> breakpoints;
    bool back = false;
    std::optional<Position> origin;  // where to stand when nothing is found; none: at the run's end or start
  };
  static constexpr int kFrame = 16;       // [ms] between two pictures while playing
  static constexpr qint64 kSlice = 100;   // [ms] of work before the window gets its turn
  static constexpr qint64 kPlaying = 40;  // [ms] the same while playing

  // Runs `move`, which returns whether the cursor moved; a fault of the trace is reported and stops playing.
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
  // The position right after the first event in (from, to] that a breakpoint matches, and which.
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
