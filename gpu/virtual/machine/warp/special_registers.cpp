#include "gpu/virtual/machine/warp/special_registers.h"

#include <algorithm>
#include <cstring>

#include "gpu/virtual/machine/device_limits.h"

namespace kvscope::ptx {
namespace {

std::uint64_t axis(const std::array<std::int64_t, 3>& of, SpecialRegister special, SpecialRegister x) {
  return static_cast<std::uint64_t>(of[static_cast<std::size_t>(static_cast<int>(special) - static_cast<int>(x))]);
}

std::uint64_t lane_mask(SpecialRegister special, int lane) {
  const std::uint64_t own = std::uint64_t{1} << lane, below = own - 1;
  switch (special) {
    case SpecialRegister::lanemask_eq:
      return own;
    case SpecialRegister::lanemask_le:
      return own | below;
    case SpecialRegister::lanemask_lt:
      return below;
    case SpecialRegister::lanemask_ge:
      return kAllLanes & ~below;
    default:
      return kAllLanes & ~(own | below);
  }
}

std::uint64_t shared_size(const Launch& launch) {
  return static_cast<std::uint64_t>(launch.layout->dynamic_shared - static_cast<std::int64_t>(kSharedBase) +
                                    launch.config.dynamic_shared);
}

}  // namespace

std::array<std::int64_t, 3> thread_at(const std::array<std::int64_t, 3>& block, std::int64_t linear) {
  return {linear % block[0], linear / block[0] % block[1], linear / (block[0] * block[1])};
}

std::array<std::int64_t, 3> cluster_extents(const Launch& launch) {
  return cluster_extents(launch.config.cluster);
}

std::array<std::int64_t, 3> cluster_extents(const std::array<std::int64_t, 3>& c) {
  return {std::max<std::int64_t>(c[0], 1), std::max<std::int64_t>(c[1], 1), std::max<std::int64_t>(c[2], 1)};
}

std::uint64_t special_value(const Launch& launch, const Cta& cta, const Warp& warp, SpecialRegister special, int lane) {
  using S = SpecialRegister;
  const LaunchConfig& config = launch.config;
  const auto cluster = cluster_extents(launch);
  std::array<std::int64_t, 3> in_cluster{}, cluster_at{}, clusters{};
  for (std::size_t i = 0; i < 3; ++i) {
    in_cluster[i] = cta.at[i] % cluster[i];
    cluster_at[i] = cta.at[i] / cluster[i];
    clusters[i] = config.grid[i] / cluster[i];
  }
  if (special == kGridWorkspaceHigh) return launch.grid_workspace >> 32;
  if (special == kGridWorkspaceLow) return launch.grid_workspace & 0xffff'ffff;
  switch (special) {
    case S::tid_x:
    case S::tid_y:
    case S::tid_z:
      return axis(thread_at(config.block, std::int64_t{warp.index} * kLanes + lane), special, S::tid_x);
    case S::ntid_x:
    case S::ntid_y:
    case S::ntid_z:
      return axis(config.block, special, S::ntid_x);
    case S::ctaid_x:
    case S::ctaid_y:
    case S::ctaid_z:
      return axis(cta.at, special, S::ctaid_x);
    case S::nctaid_x:
    case S::nctaid_y:
    case S::nctaid_z:
      return axis(config.grid, special, S::nctaid_x);
    case S::laneid:
      return static_cast<std::uint64_t>(lane);
    case S::warpid:
      return static_cast<std::uint64_t>(warp.index);
    case S::nwarpid:
      return static_cast<std::uint64_t>(threads_of_multiprocessor(launch.program->options.target) / kLanes);
    case S::smid:
      return static_cast<std::uint64_t>(cta.index % kMultiprocessors);
    case S::nsmid:
      return kMultiprocessors;
    case S::gridid:
      return static_cast<std::uint64_t>(launch.number);
    case S::lanemask_eq:
    case S::lanemask_le:
    case S::lanemask_lt:
    case S::lanemask_ge:
    case S::lanemask_gt:
      return lane_mask(special, lane);
    case S::clock:
    case S::clock64:
      return static_cast<std::uint64_t>(cta.steps);
    case S::clock_hi:
      return static_cast<std::uint64_t>(cta.steps) >> 32;
    case S::globaltimer:
    case S::globaltimer_lo:
      return 1000 + launch.step;
    case S::globaltimer_hi:
      return (1000 + launch.step) >> 32;
    case S::dynamic_smem_size:
      return static_cast<std::uint64_t>(config.dynamic_shared);
    case S::total_smem_size:
      return shared_size(launch);
    case S::aggr_smem_size:
      return shared_size(launch) + static_cast<std::uint64_t>(kReservedShared);
    case S::reserved_smem_offset_end:
    case S::reserved_smem_offset_cap:
      return kReservedShared;
    case S::cluster_ctaid_x:
    case S::cluster_ctaid_y:
    case S::cluster_ctaid_z:
      return axis(in_cluster, special, S::cluster_ctaid_x);
    case S::cluster_nctaid_x:
    case S::cluster_nctaid_y:
    case S::cluster_nctaid_z:
      return axis(cluster, special, S::cluster_nctaid_x);
    case S::clusterid_x:
    case S::clusterid_y:
    case S::clusterid_z:
      return axis(cluster_at, special, S::clusterid_x);
    case S::nclusterid_x:
    case S::nclusterid_y:
    case S::nclusterid_z:
      return axis(clusters, special, S::nclusterid_x);
    case S::cluster_ctarank:
      return static_cast<std::uint64_t>(cta.cluster_rank);
    case S::cluster_nctarank:
      return static_cast<std::uint64_t>(cluster[0] * cluster[1] * cluster[2]);
    case S::is_explicit_cluster:
      return config.cluster[0] > 0 ? 1 : 0;
    default:  // %reserved_smem_offset_begin, _0, _1 and other %envreg
      return 0;
  }
}

void fill_special(const Launch& launch, const Cta& cta, const Warp& warp, const SpecialPlace& reg,
                  std::byte* registers) {
  LaneMask predicate = 0;
  for (int lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t value = special_value(launch, cta, warp, reg.special, lane);
    if (reg.bytes == 0) {
      predicate |= static_cast<LaneMask>(value & 1) << lane;
    } else {
      std::memcpy(registers + reg.reg + lane * reg.bytes, &value, reg.bytes);
    }
  }
  if (reg.bytes == 0) std::memcpy(registers + reg.reg, &predicate, sizeof predicate);
}

}  // namespace kvscope::ptx
