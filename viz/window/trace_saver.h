// Writes all events and meta keys of a run to a trace file. Opening that file gives the same run, for a run from a
// trace as well as for a simulated one.
#pragma once

#include <memory>

#include <QtCore/QString>

#include "viz/window/job.h"

namespace kvscope::viz {

// Runs on a Job's thread. Throws the exceptions of trace::TraceWriter, and Cancelled; the target is then unchanged.
void save_trace(const Run& run, const QString& path, const Job::Tell& tell);

}  // namespace kvscope::viz
