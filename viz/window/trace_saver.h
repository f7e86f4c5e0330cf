// Writes what a run is made of to a trace file: every event, the meta keys it came with. Opened again it is the same
// run, whether it came from a trace or from a scenario that was just simulated.
#pragma once

#include <memory>

#include <QtCore/QString>

#include "viz/window/job.h"

namespace kvscope::viz {

// Runs on a Job's thread. Throws what trace::TraceWriter throws, and Cancelled; the target is then as it was before.
void save_trace(const Run& run, const QString& path, const Job::Tell& tell);

}  // namespace kvscope::viz
