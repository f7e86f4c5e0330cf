#include "policy.h"

Decision decide(const Step& step) {
  Decision decision;
  std::int64_t free = step.free_blocks;
  std::int64_t needed = 0;
  for (const Running& running : step.running) needed += running.needs_block;

  std::size_t kept = step.running.size();
  while (needed > free) {
    const Running& last = step.running[--kept];
    decision.preempt.push_back(last.request);
    free += last.blocks;
    needed -= last.needs_block;
  }
  if (!decision.preempt.empty()) return decision;
  free -= needed;

  // The watermark: one block for each running request, the admitted one included, since each may need one next step.
  auto batch = static_cast<std::int64_t>(step.running.size());
  for (const Waiting& waiting : step.waiting) {
    const std::int64_t watermark = batch == 0 ? 0 : batch + 1;
    if (batch == step.max_batch || free < waiting.blocks + watermark) break;
    decision.admit.push_back(waiting.request);
    free -= waiting.blocks;
    ++batch;
  }
  return decision;
}
