// A golden bundle as a run of one step, so that the viewer shows its cache in the panels of every run: before the step
// each sequence has its cached tokens, in the step its queries' tokens are written.
//
// Blocks are those of the inputs' lookup table, else of the golden's block_table. Tables that no run can reach (a page
// without a block before one that has a block, a block that is different pages of two sequences) give a run without
// blocks: the panels then say that the trace has none.
#pragma once

#include <memory>
#include <string>

#include "apps/kvscope-viewer/attention_step.h"
#include "viz/playback/event_source.h"

namespace kvscope::apps {

[[nodiscard]] std::unique_ptr<viz::EventSource> golden_run(const AttentionStep& step);

}  // namespace kvscope::apps
