// The values of the timeline at a position. At the end of a step they are those of its step_ended. Inside a step they
// are counted in the state, so that the timeline shows the same numbers as the other panels at every position.
//
// Example: a pool of 24 blocks. Step 3 ends with 23 used blocks, 95.8 %. At the preemption inside the step, all 24 are
// used: the value there is 100 %.
#pragma once

#include <cstdint>

#include "viz/playback/cursor.h"
#include "viz/playback/timeline.h"

namespace kvscope::viz {

// All of them: precondition (caller): cursor.row() > 0.

// Inside a step the prefix hit rate is that of the steps before, because the looked-up tokens of a step are counted at
// its end. A trace of detail `steps` has no tokens and no blocks: there the fragmentation is that of the step before,
// too.
[[nodiscard]] double value_now(const Cursor& cursor, Series series);
// Marked events of the current step up to the position.
[[nodiscard]] std::int64_t count_now(const Cursor& cursor, Mark mark);
// Marked events from the start of the run up to the position.
[[nodiscard]] std::int64_t count_so_far(const Cursor& cursor, Mark mark);
[[nodiscard]] std::int64_t time_now(const Cursor& cursor);  // [us]

}  // namespace kvscope::viz
