#include "core/smem/banks.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/base/errors.h"

namespace kvscope {
namespace {

constexpr int kWordBytes = 4;  // delivered by a bank per cycle

// Consecutive lanes, `lanes` per phase.
Phases consecutive(int count, int lanes) {
  Phases phases(static_cast<std::size_t>(count));
  int lane = 0;
  for (auto& phase : phases) {
    phase.resize(static_cast<std::size_t>(lanes));
    std::iota(phase.begin(), phase.end(), lane);
    lane += lanes;
  }
  return phases;
}

// Phases of the first 32 lanes, then the same of the last 32.
Phases and_the_upper_half(Phases phases) {
  const std::size_t half = phases.size();
  for (std::size_t i = 0; i < half; ++i) {
    auto upper = phases[i];
    for (int& lane : upper) lane += 32;
    phases.push_back(std::move(upper));
  }
  return phases;
}

BankProfile gfx942_profile(SharedOp op, int width) {
  if (width <= 4) return {"gfx942, 32-bit", 32, 64, consecutive(2, 32), 4};
  if (width == 8) return {"gfx942, 64-bit", 32, 64, consecutive(4, 16), 8};
  if (op == SharedOp::write) return {"gfx942, 128-bit write", 32, 64, consecutive(8, 8), 16};
  return {"gfx942, 128-bit read", 32, 64,
          and_the_upper_half({{0, 1, 2, 3, 20, 21, 22, 23},
                              {4, 5, 6, 7, 16, 17, 18, 19},
                              {8, 9, 10, 11, 28, 29, 30, 31},
                              {12, 13, 14, 15, 24, 25, 26, 27}}),
          16};
}

BankProfile gfx950_profile(SharedOp op, int width) {
  if (width <= 4) return {"gfx950, 32-bit", 64, 64, consecutive(1, 64), 4};
  if (width == 8) return {"gfx950, 64-bit", 64, 64, consecutive(2, 32), 8};
  if (op == SharedOp::write) return {"gfx950, 128-bit write", 64, 64, consecutive(4, 16), 16};
  const Phases lower = {{0, 1, 2, 3, 12, 13, 14, 15, 20, 21, 22, 23, 24, 25, 26, 27},
                        {4, 5, 6, 7, 8, 9, 10, 11, 16, 17, 18, 19, 28, 29, 30, 31}};
  const Phases both = and_the_upper_half(lower);
  return {"gfx950, 128-bit read", 64, 64, {both[0], both[2], both[1], both[3]}, 16};
}

BankProfile nvidia_profile(int width) {
  if (width <= 4) return {"nvidia, 32-bit", 32, 32, consecutive(1, 32), 4};
  if (width == 8) return {"nvidia, 64-bit", 32, 32, consecutive(2, 16), 8};
  return {"nvidia, 128-bit", 32, 32, consecutive(4, 8), 16};
}

BankProfile ldmatrix_profile(int width, int matrices) {
  std::vector<Fault> faults;
  if (width != 16) faults.push_back({"width", fmt::format("{} B: a row of a matrix is 16 B: use 16", width)});
  if (matrices != 1 && matrices != 2 && matrices != 4) {
    faults.push_back({"matrices", fmt::format("{} is not one of 1, 2, 4", matrices)});
  }
  if (!faults.empty()) throw GeometryError("bank profile of ldmatrix", std::move(faults));
  const std::string_view name = matrices == 1   ? "nvidia, ldmatrix.x1"
                                : matrices == 2 ? "nvidia, ldmatrix.x2"
                                                : "nvidia, ldmatrix.x4";
  return {name, 32, 32, consecutive(matrices, 8), 16};
}

struct Want {
  std::int64_t word = 0;  // address / 4
  int lane = 0;
};

BankConflict conflict_of(const std::vector<Want>& wants, int phase, int bank, int banks) {
  BankConflict conflict{phase, bank, {}, {}};
  for (const Want& want : wants) {
    if (want.word % banks != bank) continue;
    const auto found = std::find(conflict.words.begin(), conflict.words.end(), want.word * kWordBytes);
    const auto index = static_cast<std::size_t>(found - conflict.words.begin());
    if (found == conflict.words.end()) {
      conflict.words.push_back(want.word * kWordBytes);
      conflict.lanes.emplace_back();
    }
    conflict.lanes[index].push_back(want.lane);
  }
  return conflict;
}

std::vector<Fault> faults_of(const BankProfile& profile, const SharedAccess& access) {
  std::vector<Fault> faults;
  if (profile.banks < 1) faults.push_back({"banks", fmt::format("{} is below 1", profile.banks)});
  const int w = access.width;
  if (w != 1 && w != 2 && w != 4 && w != 8 && w != 16) {
    faults.push_back({"width", fmt::format("{} B is not one of 1, 2, 4, 8, 16", w)});
    return faults;
  }
  if (profile.width != 0 && std::max(w, kWordBytes) != profile.width) {
    faults.push_back(
        {"width", fmt::format("{} B a lane, but the phases are those of {} B: use bank_profile of width {}", w,
                              profile.width, w)});
  }
  if (access.addresses.size() != static_cast<std::size_t>(profile.lanes)) {
    faults.push_back(
        {"addresses", fmt::format("{} for {} lanes: give every lane one, or none to a lane that takes no part",
                                  access.addresses.size(), profile.lanes)});
  }
  for (std::size_t lane = 0; lane < access.addresses.size(); ++lane) {
    const auto& address = access.addresses[lane];
    if (address && *address < 0) {
      faults.push_back({fmt::format("lane {}", lane), fmt::format("address {} is below 0", *address)});
    } else if (address && *address % w != 0) {
      faults.push_back(
          {fmt::format("lane {}", lane), fmt::format("address {} is not a multiple of {} B", *address, w)});
    }
  }
  std::vector<int> served(static_cast<std::size_t>(std::max(profile.lanes, 0)));
  for (const auto& phase : profile.phases) {
    for (const int lane : phase) {
      if (lane < 0 || lane >= profile.lanes) {
        faults.push_back({"phases", fmt::format("lane {} is outside [0, {})", lane, profile.lanes)});
      } else if (served[static_cast<std::size_t>(lane)]++ == 1) {
        faults.push_back({"phases", fmt::format("lane {} is served twice", lane)});
      }
    }
  }
  return faults;
}

}  // namespace

BankProfile bank_profile(SharedTarget target, SharedOp op, int width, int matrices) {
  if (op == SharedOp::ldmatrix) {
    if (target != SharedTarget::nvidia) {
      throw UnsupportedError("ldmatrix is an instruction of NVIDIA: use a 128-bit read on gfx942 and gfx950");
    }
    return ldmatrix_profile(width, matrices);
  }
  if (width != 1 && width != 2 && width != 4 && width != 8 && width != 16) {
    throw GeometryError("bank profile", {{"width", fmt::format("{} B a lane is not one of 1, 2, 4, 8, 16", width)}});
  }
  switch (target) {
    case SharedTarget::gfx942:
      return gfx942_profile(op, width);
    case SharedTarget::gfx950:
      return gfx950_profile(op, width);
    case SharedTarget::nvidia:
      break;
  }
  return nvidia_profile(width);
}

int BankReport::cycles() const {
  return std::accumulate(degrees.begin(), degrees.end(), 0);
}

int BankReport::ideal() const {
  return static_cast<int>(std::count_if(degrees.begin(), degrees.end(), [](int degree) { return degree > 0; }));
}

BankReport bank_report(const BankProfile& profile, const SharedAccess& access) {
  if (auto faults = faults_of(profile, access); !faults.empty()) {
    throw GeometryError(fmt::format("access under '{}'", profile.name), std::move(faults));
  }
  BankReport report;
  std::vector<Want> wants;
  std::vector<std::int64_t> words;
  std::vector<int> degrees(static_cast<std::size_t>(profile.banks));
  for (std::size_t phase = 0; phase < profile.phases.size(); ++phase) {
    wants.clear();
    for (const int lane : profile.phases[phase]) {
      const auto& address = access.addresses[static_cast<std::size_t>(lane)];
      if (!address) continue;
      for (int i = 0; i < std::max(access.width / kWordBytes, 1); ++i)
        wants.push_back({*address / kWordBytes + i, lane});
    }
    words.clear();
    for (const Want& want : wants) words.push_back(want.word);
    std::sort(words.begin(), words.end());
    words.erase(std::unique(words.begin(), words.end()), words.end());
    std::fill(degrees.begin(), degrees.end(), 0);
    for (const std::int64_t word : words) ++degrees[static_cast<std::size_t>(word % profile.banks)];
    report.degrees.push_back(*std::max_element(degrees.begin(), degrees.end()));
    for (int bank = 0; bank < profile.banks; ++bank) {
      if (degrees[static_cast<std::size_t>(bank)] > 1) {
        report.conflicts.push_back(conflict_of(wants, static_cast<int>(phase), bank, profile.banks));
      }
    }
  }
  return report;
}

}  // namespace kvscope
