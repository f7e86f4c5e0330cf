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

#include "viz/model/attention_model.h"
#include "viz/playback/cursor.h"
#include "viz/playback/find.h"
#include "viz/playback/player.h"
#include "viz/playback/recorded_tiles.h"
#include "viz/playback/selection.h"
#include "viz/playback/tile.h"
#include "viz/playback/tile_request.h"
#include "viz/playback/tile_state.h"

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
  [[nodiscard]] bool at_breakpoint() const;  // whether the last event before the position matches a breakpoint
  [[nodiscard]] bool playing() const { return doing_ != Doing::standing; }  // also while searching for a breakpoint
  [[nodiscard]] double speed() const { return player_.speed(); }

  // --- the run that this one is compared with: document_compared.cpp ---
  // While it is shown beside this run, at the counterpart() of the position; else anywhere. Null: none.
  [[nodiscard]] const Cursor* compared() const { return compared_ ? &*compared_ : nullptr; }
  [[nodiscard]] std::shared_ptr<const Run> compared_run() const {
    return compared_ ? compared_->shared_run() : nullptr;
  }
  [[nodiscard]] bool beside() const { return beside_; }
  // Whether objects that both runs have can be marked where they differ: shown beside, and are_comparable().
  [[nodiscard]] bool marks_differences() const;
  [[nodiscard]] const Lit& compared_pinned_lit() const { return compared_pinned_lit_; }
  [[nodiscard]] const Lit& compared_hovered_lit() const { return compared_hovered_lit_; }

  // What View::attention shows.
  [[nodiscard]] AttentionModel& attention() const { return *attention_; }

  // --- the tile of View::tile ---
  [[nodiscard]] const Tile* tile() const { return tile_.get(); }  // null: none
  [[nodiscard]] std::shared_ptr<const Tile> shared_tile() const { return tile_; }
  [[nodiscard]] const TileState& tile_now() const { return tile_now_; }        // precondition: tile()
  [[nodiscard]] const QString& tile_instead() const { return tile_instead_; }  // without a tile: why
  // What is known of the tile's origin: of the one shown, or of the one that could not be staged; null: nothing.
  [[nodiscard]] const TileSource* tile_source() const;
  // Of tile_layouts(tile), shown beside the tile's own; none: the panel chooses.
  [[nodiscard]] std::optional<std::size_t> tile_layout() const { return tile_layout_; }
  [[nodiscard]] const TileRequest& tile_request() const { return tile_request_; }
  // Tiles that the trace holds; which of them is shown, nothing: the one of the request.
  [[nodiscard]] const std::vector<RecordedTile>& recorded() const { return recorded_; }
  [[nodiscard]] std::optional<std::size_t> recorded_tile() const { return recorded_tile_; }
  [[nodiscard]] bool tile_playing() const { return tile_timer_.isActive(); }
  // Where the tile's cache is: after the last write of its step, before sequences of the step end. Null unless the tile
  // view is shown.
  [[nodiscard]] const Cursor* staged() const { return staged_ ? &*staged_ : nullptr; }
  // The state that the view shows: staged()'s, or the cursor's.
  [[nodiscard]] const State& shown_state() const { return staged_ ? staged_->state() : cursor_.state(); }

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
  void toggle_playing_events();  // one event at a time, at the speed of steps
  void set_speed(double steps_per_second);

  void pin(const Selection& selection);  // a step: also moves the position to it
  void hover(const Selection& selection);
  void set_breakpoints(std::vector<Breakpoint> breakpoints);
  void set_compared(std::shared_ptr<const kvscope::viz::Run> run);  // null: none
  void show_beside(bool beside);                                    // without a run to compare with: not
  // Moves to the end of the next step in which the two runs differ (step_differs()), or says that there is none. A
  // long search is in slices, as the one for a breakpoint.
  void next_difference();
  void previous_difference();
  // While it follows, the tile is the one of the pinned token (page, block, sequence) at the cursor's step, and is
  // asked for again when one of them changes: tile_wanted() is emitted. The request's layer, head, K or V and path stay
  // as they were chosen.
  void follow_tile(bool follow);
  void choose_layout(std::size_t layout);        // of tile_layouts(); until another tile is shown
  void choose_tile(const TileRequest& request);  // its step is the cursor's
  // The same, and `event` of its events have happened when it is shown; without a tile, of the one that is shown next.
  void choose_tile_at(const kvscope::viz::TileRequest& request, std::optional<std::int64_t> event);
  // One of recorded(), which is then shown whatever is selected; -1: the one of the request again.
  void choose_recorded_tile(std::int64_t index);
  void show_tile(std::shared_ptr<const Tile> tile);
  void show_no_tile(const QString& why, const TileSource& source = {});
  // The answer to source_wanted(): kept if the recorded tile of that request is still shown.
  void show_source(const kvscope::viz::TileRequest& request, const kvscope::viz::TileSource& source);
  // Each stops the tile's playing first. A step is an action: an instruction with all that it brings, or a wait.
  void tile_step();
  void tile_step_back();
  void tile_event();
  void tile_event_back();
  void tile_to_start();
  void tile_to_end();
  void seek_tile(std::int64_t event);  // clamped to the tile
  void toggle_tile_playing();          // action by action at the speed of the run; from the end: from the start
  void toggle_tile_playing_events();   // event by event

  // Moves to a target of find.h. For a byte offset, which needs the simulator, byte_wanted() is emitted.
  void go_to(const Target& target);

 Q_SIGNALS:
  void position_changed();
  void pinned_changed();
  void hovered_changed();
  void compared_changed();  // another run, none, or whether it is shown beside this one
  void breakpoints_changed();
  void playing_changed();
  void speed_changed();
  // "breakpoint 1: block_evicted at event 57, step 4", "end of the run", "no such event after this"
  void stopped(const QString& reason);
  void failed(const QStringList& faults);  // reading the trace failed
  void byte_wanted(qint64 offset);
  void tile_wanted(const kvscope::viz::TileRequest& request);
  void source_wanted(const kvscope::viz::TileRequest& request);  // of a recorded tile
  void tile_changed();                                           // another tile, none, or another event of it
  void tile_playing_changed();

 private:
  enum class Doing : std::uint8_t { standing, playing, searching };
  // The target of a run to a breakpoint or to a kind of event.
  struct Search {
    std::vector<Breakpoint> breakpoints;
    bool back = false;
    std::optional<Position> origin;  // position if nothing is found; nullopt: the run's end (backwards: its start)
    std::optional<std::int64_t> row = std::nullopt;  // of a search for a difference: the row to look at next
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
  void search_difference();
  void follow_compared();
  void relight_compared();
  [[nodiscard]] QString words_of(std::size_t index) const;
  void light_last_event();
  // The position right after the first event in (from, to] that matches a breakpoint, and the breakpoint's index.
  struct Stop {
    Position position;
    std::size_t breakpoint = 0;
  };
  [[nodiscard]] std::optional<Stop> stop_between(Position from, Position to) const;

  [[nodiscard]] static QStringList lines_of(const std::exception& error);
  void restage();
  void ask_for_tile();
  void stand_at(std::int64_t event);
  void tile_tick();

  Cursor cursor_;
  QString path_;
  Selection pinned_, hovered_;
  Lit pinned_lit_, hovered_lit_;
  std::vector<Breakpoint> breakpoints_;
  std::optional<Cursor> compared_;
  bool beside_ = false;
  Lit compared_pinned_lit_, compared_hovered_lit_;
  Player player_;
  Doing doing_ = Doing::standing;
  bool by_event_ = false, tile_by_event_ = false;  // what playing moves by
  Search search_;
  QTimer timer_;
  QElapsedTimer clock_;
  std::shared_ptr<const Tile> tile_;
  TileState tile_now_;
  QString tile_instead_;
  TileSource no_tile_source_;  // without a tile
  std::optional<std::size_t> tile_layout_;
  TileRequest tile_request_;
  std::optional<TileRequest> tile_asked_;  // the last that tile_wanted() named
  std::optional<Cursor> staged_;
  std::optional<std::int64_t> next_event_;  // of the tile that is shown next
  bool tile_follows_ = false;
  bool tile_named_ = false;    // choose_tile_at(): a recorded tile does not replace it
  bool tiles_sought_ = false;  // recorded_ is filled when the tile view is first shown
  std::vector<RecordedTile> recorded_;
  std::optional<std::size_t> recorded_tile_;
  QTimer tile_timer_;
  AttentionModel* attention_;  // a child
};

}  // namespace kvscope::viz
