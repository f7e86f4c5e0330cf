#include "apps/labs/traffic.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <vector>

#include "apps/labs/report_text.h"
#include "gpu/virtual/machine/memory/device_memory.h"
#include "gpu/virtual/machine/program/program.h"
#include "gpu/virtual/machine/state.h"

namespace kvscope::labs {
namespace {

constexpr std::uint64_t kTrafficSector = 32;  // [bytes]

// 0 without line information of the student's file.
std::int64_t line_in_submission(std::string_view source) {
  const bool known = source.find(".cu:") != std::string_view::npos || source.find(".py:") != std::string_view::npos;
  return known ? std::max(0, student_line(source)) : 0;
}

std::string reason_of(const LineTraffic& line) {
  if (line.several * 10 > line.sectors) {
    return "lanes access different rows: adjacent lanes must access adjacent elements";
  }
  if (line.gaps * 10 > line.sectors) return "there are gaps between the elements of adjacent lanes";
  if (line.same * 2 > line.runs) return "several lanes copy the same element: each lane copies elements of its own";
  if (line.alone * 2 > line.runs)
    return "one lane of the warp works alone: 32 lanes share a sector when they work at once";
  return "the same bytes are accessed more than once";
}

}  // namespace

void Traffic::access(const ptx::Exec& exec, const ptx::Op& /*op*/, const ptx::WarpAccess& access) {
  if (access.space != ptx::Space::global && access.space != ptx::Space::generic) return;
  if (access.lanes == 0) return;
  const auto first_lane = static_cast<std::size_t>(std::countr_zero(access.lanes));
  const std::uint64_t place = access.addresses[first_lane] / ptx::DeviceMemory::kSpacing;
  LineTraffic& line = lines_[{place, line_in_submission(exec.program().source_text(exec.lane_group.pc))}];
  std::set<std::uint64_t> rows, addresses, sectors;
  const auto bytes = static_cast<std::uint64_t>(access.bytes);
  for (std::size_t lane = 0; lane < ptx::kLanes; ++lane) {
    if ((access.lanes >> lane & 1U) == 0) continue;
    const std::uint64_t address = access.addresses[lane];
    rows.insert(address % ptx::DeviceMemory::kSpacing / row_bytes_);
    addresses.insert(address);
    sectors.insert(address / kTrafficSector);
  }
  const auto touched = static_cast<std::int64_t>(sectors.size());
  const auto needed = static_cast<std::int64_t>((addresses.size() * bytes + kTrafficSector - 1) / kTrafficSector);
  const auto active = static_cast<std::size_t>(std::popcount(access.lanes));
  ++line.runs;
  line.sectors += touched;
  (rows.size() > 2 ? line.several : line.gaps) += touched - needed;
  line.alone += active == 1 ? 1 : 0;
  line.same += addresses.size() < active ? 1 : 0;
  if (touched - needed <= line.most_wasted) return;
  line.most_wasted = touched - needed;
  line.sample = {access.bytes, access.lanes, {}};
  std::ranges::copy(access.addresses, line.sample.addresses.begin());
}

std::int64_t Traffic::sectors(const KernelRun& run, std::size_t array) const {
  const std::uint64_t place = run.addresses[array] / ptx::DeviceMemory::kSpacing;
  std::int64_t sum = 0;
  for (const auto& each : lines_) sum += each.first.first == place ? each.second.sectors : 0;
  return sum;
}

std::optional<Traffic::Line> Traffic::worst_line(const KernelRun& run, std::size_t array) const {
  const std::uint64_t place = run.addresses[array] / ptx::DeviceMemory::kSpacing;
  std::optional<Line> worst;
  for (const auto& each : lines_) {
    if (each.first.first != place) continue;
    if (worst && worst->traffic.sectors >= each.second.sectors) continue;
    worst = Line{each.first.second, each.second, reason_of(each.second)};
  }
  return worst;
}

CasePicture picture_of_lanes(const std::string& array, const Traffic::Line& line) {
  const WarpSample& sample = line.traffic.sample;
  std::set<std::uint64_t> sectors, addresses;
  for (std::size_t lane = 0; lane < ptx::kLanes; ++lane) {
    if ((sample.lanes >> lane & 1U) == 0) continue;
    sectors.insert(sample.addresses[lane] / kTrafficSector);
    addresses.insert(sample.addresses[lane]);
  }
  PictureGrid grid{fmt::format("one instruction of line {}: the sector of {}, 32 bytes, that each lane accesses",
                               line.number, array),
                   {},
                   {}};
  for (int lane = 0; lane < 8; ++lane) grid.columns.push_back(fmt::format("+{}", lane));
  for (std::size_t lane = 0; lane < ptx::kLanes; ++lane) {
    if (lane % 8 == 0) grid.rows.push_back({fmt::format("lane {}", lane), {}});
    if ((sample.lanes >> lane & 1U) == 0) {
      grid.rows.back().cells.push_back({"-", CellMark::quiet});
      continue;
    }
    const std::uint64_t sector = sample.addresses[lane] / kTrafficSector;
    const auto used =
        std::ranges::count_if(addresses, [&](std::uint64_t a) { return a / kTrafficSector == sector; }) * sample.bytes;
    grid.rows.back().cells.push_back({fmt::format("{}", sector - *sectors.begin()),
                                      used < 32 ? CellMark::wrong : CellMark::plain,
                                      fmt::format("{} of 32 B", std::min<std::int64_t>(used, 32))});
  }
  return {{std::move(grid)}, {}, "a lane that does not take part"};
}

std::string compiler_of(const LabKernel& kernel) {
  if (kernel.triton) return "Triton";
  const std::string_view head = std::string_view(kernel.ptx).substr(0, 2000);
  if (head.find("LLVM NVPTX") != std::string_view::npos) return "clang";
  if (head.find("NVIDIA NVVM") == std::string_view::npos) return "an unknown compiler";
  constexpr std::string_view kRelease = "release ";
  const std::size_t at = head.find(kRelease);
  if (at == std::string_view::npos) return "nvcc or NVRTC";
  const std::string_view release = head.substr(at + kRelease.size());
  return fmt::format("nvcc or NVRTC {}", release.substr(0, release.find(',')));
}

}  // namespace kvscope::labs
