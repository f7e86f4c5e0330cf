// The tour: tasks that a new user does in one scenario of the gallery. The tour observes the document. A task is done
// when the document shows its result, by mouse, key or menu. After a wrong try, remark() describes the selected object.
//
//   tour.start();                       task step
//   tour.look(document);                after every change of the document
//   tour.task(), tour.remark()          shown by the panel
#pragma once

#include <cstdint>
#include <vector>

#include <QtCore/QObject>
#include <QtCore/QString>

#include "viz/model/document.h"

namespace kvscope::viz {

enum class TourTask : std::uint8_t {
  step,             // go forward to step 3
  step_back,        // go back
  seek,             // go to step 6
  select_token,     // select the last token of sequence 3
  find_block,       // select the block that holds this token
  shared_block,     // select a block that several sequences hold
  find,             // select token 70 of sequence 0
  tile,             // show the tile of a token
  land,             // move through the tile until all its bytes are in shared memory
  select_register,  // select a register
  run_to_event,     // run to a breakpoint
  change,           // change page_size
  compare,          // show both runs side by side
  end,              // all tasks are done or were skipped
};
inline constexpr std::size_t kTourTasks = static_cast<std::size_t>(TourTask::end);

class Tour final : public QObject {
  Q_OBJECT
 public:
  static constexpr const char* kScenario = "first_light.json";  // file name, in the gallery
  static constexpr StepIdx kForwardTo{3}, kSeekTo{6};
  static constexpr SeqIdx kSequence{3}, kFoundSequence{0};
  static constexpr TokIdx kFoundToken{70};

  using QObject::QObject;

  [[nodiscard]] bool active() const { return active_; }  // started, and not ended
  [[nodiscard]] TourTask task() const { return static_cast<TourTask>(done_.size()); }
  // Tasks [0, task()): whether the user did the task; false: it was skipped.
  [[nodiscard]] const std::vector<bool>& done() const { return done_; }
  [[nodiscard]] const QString& remark() const { return remark_; }  // of the last try; empty: nothing to remark

  void start();  // at the first task
  void end();
  // Precondition (caller): the document is a run of kScenario, as it is in the file or changed.
  void look(const Document& document);
  void skip(const Document& document);  // the current task

 Q_SIGNALS:
  void changed();

 private:
  void next(bool done);
  void begin(const Document& document);
  [[nodiscard]] bool does(const Document& document);

  bool active_ = false;
  std::vector<bool> done_;
  QString remark_;
  // Of the document when the task began. Task step_back: from_ is the furthest position since then.
  Position from_{0};
  Selection before_;
  std::int64_t page_size_ = 0;    // [tokens]
  bool unfinished_tile_ = false;  // since the task began, the tile was shown before all its bytes had landed
};

}  // namespace kvscope::viz
