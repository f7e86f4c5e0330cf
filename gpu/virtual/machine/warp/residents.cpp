#include "gpu/virtual/machine/warp/residents.h"

#include <algorithm>
#include <utility>

#include "core/base/checked.h"
#include "gpu/virtual/machine/barriers/detail/named_barriers.h"
#include "gpu/virtual/machine/detail/handlers.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/machine/warp/detail/calls.h"
#include "gpu/virtual/machine/warp/detail/lane_groups.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

std::int32_t linear_of(const std::array<std::int64_t, 3>& extents, const std::array<std::int64_t, 3>& at) {
  return static_cast<std::int32_t>(at[0] + extents[0] * (at[1] + extents[1] * at[2]));
}

void start(Launch& launch, const std::array<std::int64_t, 3>& at, std::int32_t rank) {
  const LaunchConfig& config = launch.config;
  Cta& cta = launch.ctas.emplace_back();
  cta.index = linear_of(config.grid, at);
  cta.at = at;
  cta.cluster_rank = rank;
  cta.state = CtaState::running;
  cta.shared.assign(static_cast<std::size_t>(launch.layout->dynamic_shared - static_cast<std::int64_t>(kSharedBase) +
                                             config.dynamic_shared),
                    std::byte{0xff});
  const std::int64_t threads = config.block[0] * config.block[1] * config.block[2];
  const auto warps = static_cast<std::size_t>(ceil_div(threads, kLanes));
  cta.warps.resize(warps);
  cta.turn = static_cast<std::int32_t>(warps) - 1;  // so that warp 0 is next
  cta.cluster_arrived.assign(warps, 0);
  cta.cluster_passed.assign(warps, 0);
  for (std::size_t w = 0; w < warps; ++w) {
    Warp& warp = cta.warps[w];
    warp.index = static_cast<std::int32_t>(w);
    const std::int64_t lanes = threads - static_cast<std::int64_t>(w) * kLanes;
    if (lanes < kLanes) warp.exited = kAllLanes << lanes;
    begin_kernel(launch, cta, warp);
  }
  if (launch.monitor != nullptr) launch.monitor->cta_begins(launch, cta);
}

std::int64_t local_bytes_in(const Cta& cta) {
  std::int64_t bytes = 0;
  for (const Warp& warp : cta.warps) {
    for (const std::vector<std::byte>& lane : warp.local) bytes += static_cast<std::int64_t>(lane.size());
    for (const Activation& a : warp.activations) bytes += a.param_room;
  }
  return bytes;
}

}  // namespace

std::int64_t Launch::ctas_to_run() const {
  if (sample.empty()) return cta_count();
  const auto extents = cluster_extents(*this);
  return std::ssize(sample) * extents[0] * extents[1] * extents[2];
}

std::int64_t cluster_of(const Launch& launch, const Cta& cta) {
  const auto extents = cluster_extents(launch);
  std::array<std::int64_t, 3> at{}, clusters{};
  for (std::size_t i = 0; i < 3; ++i) {
    at[i] = cta.at[i] / extents[i];
    clusters[i] = launch.config.grid[i] / extents[i];
  }
  return at[0] + clusters[0] * (at[1] + clusters[1] * at[2]);
}

std::int64_t next_cluster(const Launch& launch) {
  const auto extents = cluster_extents(launch);
  const std::int64_t turn = launch.next_cta / (extents[0] * extents[1] * extents[2]);
  return launch.sample.empty() ? turn : launch.sample[static_cast<std::size_t>(turn)];
}

bool start_next(Launch& launch) {
  const auto extents = cluster_extents(launch);
  const std::int64_t size = extents[0] * extents[1] * extents[2];
  if (launch.next_cta >= launch.ctas_to_run()) return false;
  const std::int64_t resident = static_cast<std::int64_t>(launch.ctas.size());
  const std::int64_t local = size * local_bytes_of_cta(launch.config, *launch.program, launch.function);
  const bool room = (resident + size <= launch.config.options.resident_limit || launch.config.options.cooperative) &&
                    local <= launch.config.options.limits.local_bytes - launch.local_bytes;
  if (!room && resident > 0) return false;
  const std::array<std::int64_t, 3> clusters{launch.config.grid[0] / extents[0], launch.config.grid[1] / extents[1],
                                             launch.config.grid[2] / extents[2]};
  const auto cluster = thread_at(clusters, next_cluster(launch));
  for (std::int64_t rank = 0; rank < size; ++rank) {
    std::array<std::int64_t, 3> at = thread_at(extents, rank);
    for (std::size_t i = 0; i < 3; ++i) at[i] += cluster[i] * extents[i];
    start(launch, at, static_cast<std::int32_t>(rank));
  }
  launch.next_cta += size;
  return true;
}

void end_cta(Launch& launch, Cta& cta) {
  cta.state = CtaState::done;
  ++launch.ended_ctas;
  check_ended(launch, cta);
  check_named_barriers_at_end(launch, cta);
  if (launch.monitor != nullptr) launch.monitor->cta_ends(launch, cta);
}

void drop_ended(Launch& launch) {
  // Most turns end without one. A grid of many CTAs takes time in proportion to them for each CTA that ends.
  if (std::none_of(launch.ctas.begin(), launch.ctas.end(), [](const Cta& c) { return c.state == CtaState::done; }))
    return;
  std::vector<std::int64_t> needed;  // clusters with a CTA that has not ended
  for (const Cta& cta : launch.ctas) {
    if (cta.state != CtaState::done) needed.push_back(cluster_of(launch, cta));
  }
  std::sort(needed.begin(), needed.end());
  std::erase_if(launch.ctas, [&](const Cta& cta) {
    const bool has_ended = !std::binary_search(needed.begin(), needed.end(), cluster_of(launch, cta));
    if (has_ended) launch.local_bytes -= local_bytes_in(cta);
    return has_ended;
  });
}

const Cta* find_cta(const Launch& launch, std::int32_t index) {
  const auto at =
      std::find_if(launch.ctas.begin(), launch.ctas.end(), [index](const Cta& c) { return c.index == index; });
  return at == launch.ctas.end() ? nullptr : &*at;
}

Cta* find_cta(Launch& launch, std::int32_t index) {
  return const_cast<Cta*>(find_cta(std::as_const(launch), index));
}

}  // namespace kvscope::ptx
