#include "apps/labs/scheduler_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace kvscope::labs {
namespace {

constexpr std::size_t kStepsShown = 12, kRequestsShown = 14;

PictureCell request_cell(const SchedulerStep::Place& place) {
  const std::string tokens = fmt::format("{} tokens", place.tokens);
  switch (place.status) {
    case RequestStatus::waiting:
      return {"waits", CellMark::quiet};
    case RequestStatus::preempted:
      return {"preempted"};
    case RequestStatus::running:
      return {fmt::format("{}", place.blocks), CellMark::used, tokens};
    case RequestStatus::finishing:
      return {fmt::format("{}", place.blocks), CellMark::used, "finishes"};
    case RequestStatus::not_arrived:
    case RequestStatus::finished:
      break;
  }
  return {"", CellMark::none};
}

bool alive(const SchedulerStep::Place& place) {
  return place.status != RequestStatus::not_arrived && place.status != RequestStatus::finished;
}

}  // namespace

CasePicture scheduler_picture(const SchedulerCase& trace, const SchedulerFault& fault,
                              std::span<const SchedulerStep> timeline) {
  if (timeline.empty()) return {};
  const std::size_t last = std::min(static_cast<std::size_t>(fault.step) + 1, timeline.size());
  const std::size_t first = last > kStepsShown ? last - kStepsShown : 0;
  const auto steps = timeline.subspan(first, last - first);

  std::vector<std::size_t> shown;
  for (std::size_t r = 0; r < trace.requests.size(); ++r) {
    const bool named = static_cast<std::int64_t>(r) == fault.request;
    const bool seen = std::ranges::any_of(steps, [r](const SchedulerStep& step) { return alive(step.requests[r]); });
    if (named || (seen && shown.size() < kRequestsShown - 1)) shown.push_back(r);
  }

  PictureGrid grid{fmt::format("blocks of the requests in each step, from a pool of {}", trace.blocks), {}, {}};
  for (std::size_t i = first; i < last; ++i) grid.columns.push_back(fmt::format("step {}", i));
  for (const std::size_t r : shown) {
    const SchedulerRequest& request = trace.requests[r];
    PictureRow row{fmt::format("request {}: {} + {} tokens", r, request.prompt, request.generate), {}};
    for (const SchedulerStep& step : steps) row.cells.push_back(request_cell(step.requests[r]));
    if (static_cast<std::int64_t>(r) == fault.request) row.cells.back().mark = CellMark::wrong;
    grid.rows.push_back(std::move(row));
  }
  PictureRow free{"free blocks", {}};
  for (const SchedulerStep& step : steps) {
    const bool missing = step.free_blocks < 0;
    free.cells.push_back(missing ? PictureCell{"0", CellMark::wrong, fmt::format("{} missing", -step.free_blocks)}
                                 : PictureCell{fmt::format("{}", step.free_blocks)});
  }
  if (fault.request < 0) free.cells.back().mark = CellMark::wrong;
  grid.rows.push_back(std::move(free));
  return {{std::move(grid)}, "runs: its blocks", "waits"};
}

}  // namespace kvscope::labs
