// The step in which a policy of lab 05 breaks a rule, and the steps before it: a line for each request.
//
//                       step 3     step 4      step 5
//   request 0: 6 + 8    [ 3 ]      [ 3 ]       [ 3 ]         blocks that it holds, with its tokens below
//   request 1: 7 + 6    waits      [ 2 ]       [ preempted ] the decision of the message has CellMark::wrong
//   free blocks         [ 3 ]      [ 1 ]       [ 3 ]
#pragma once

#include <span>

#include "apps/labs/picture.h"
#include "apps/labs/scheduler_run.h"

namespace kvscope::labs {

// At most the last 12 steps up to the fault, and 14 requests: those that ran or waited in them, and the request of the
// fault. `timeline` is that of the run that has `fault`.
[[nodiscard]] CasePicture scheduler_picture(const SchedulerCase& trace, const SchedulerFault& fault,
                                            std::span<const SchedulerStep> timeline);

}  // namespace kvscope::labs
