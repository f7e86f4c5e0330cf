// A fake virtual GPU for tests of the kernel window: a launch of two warps and 40 warp instructions, whose state is a
// function of its position. The name of a file selects its behavior.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "core/base/errors.h"
#include "viz/playback/kernel_run.h"

namespace kvscope::viz::testing_support {

inline constexpr std::uint64_t kFakeEnd = 40;  // the position at the end of the launch

// The positions that a movement goes forward; each movement has its own number.
inline std::int64_t fake_distance(KernelMove move) {
  switch (move) {
    case KernelMove::back:
      return -1;
    case KernelMove::back_line:
      return -3;
    case KernelMove::step:
      return 1;
    case KernelMove::warp:
      return 2;
    case KernelMove::line:
      return 3;
    case KernelMove::over:
      return 4;
    case KernelMove::barrier:
      return 5;
    case KernelMove::event:
      return 6;
    case KernelMove::report:
      return 7;
    case KernelMove::run:
      return 8;
    case KernelMove::write:
      return 9;
    default:
      return 0;
  }
}

inline std::uint64_t fake_position(std::uint64_t from, const KernelWish& wish) {
  switch (wish.move) {
    case KernelMove::start:
      return 0;
    case KernelMove::end:
      return kFakeEnd;
    case KernelMove::seek:
      return std::min(wish.step, kFakeEnd);
    default:
      return static_cast<std::uint64_t>(std::clamp<std::int64_t>(
          static_cast<std::int64_t>(from) + fake_distance(wish.move), 0, static_cast<std::int64_t>(kFakeEnd)));
  }
}

// Eight instructions: two each of the lines 3, 4 and 7 of scale.cu, one of a header that cannot be read, one without
// line information. They are at the lines 11 to 18 of the PTX.
inline KernelCode fake_code(const std::string& path) {
  KernelCode code;
  code.kernel = "scale";
  code.launch = "grid 1, block 64";
  KernelSource cuda{.path = "/source/scale.cu", .lines = {}, .lines_with_code = {3, 4, 7}};
  for (int n = 1; n <= 12; ++n) cuda.lines.push_back("  line " + std::to_string(n) + " of the source");
  KernelSource ptx{.path = path, .lines = {}, .lines_with_code = {11, 12, 13, 14, 15, 16, 17, 18}};
  for (int n = 1; n <= 24; ++n) ptx.lines.push_back("  .line " + std::to_string(n));
  code.sources = {cuda, {.path = "/source/missing.h", .lines = {}, .lines_with_code = {5}}, ptx};
  constexpr std::int32_t kLines[] = {3, 3, 4, 4, 7, 7, 5, 0};
  constexpr std::int32_t kSources[] = {0, 0, 0, 0, 0, 0, -1, -1};
  for (std::int32_t n = 0; n < 8; ++n) {
    code.instructions.push_back(
        {.text = "add.u32 %r" + std::to_string(n), .source = kSources[n], .line = kLines[n], .ptx_line = 11 + n});
  }
  return code;
}

// At each position both warps are at instruction position / 2 (mod 8), warp 1 one further. %r0 has the position and the
// warp, %r1 is constant. Shared memory: word w was written at position w by warp w % 2.
inline KernelState fake_state(std::uint64_t step, std::int32_t warp) {
  KernelState state;
  state.step = step;
  state.last = kFakeEnd;
  state.reports = {{.step = 9,
                    .title = "RACE_WR",
                    .message = "two warps write one word",
                    .text = "RACE_WR\n  the whole report",
                    .severity = "error",
                    .instruction = 4},
                   {.step = 21,
                    .title = "BANKS",
                    .message = "a conflict of 4",
                    .text = "BANKS\n  another report",
                    .severity = "warning",
                    .instruction = -1}};
  state.printed = "printed at " + std::to_string(step) + "\n";
  if (step == kFakeEnd) {
    state.status = KernelStatus::finished;
    state.arrived = "The launch has finished";
    return state;
  }
  for (std::int32_t w = 0; w < 2; ++w) {
    state.groups.push_back({.cta = 0,
                            .warp = w,
                            .cta_name = "(0,0,0)",
                            .lanes = "all lanes",
                            .state = w == 0 ? KernelGroup::State::next : KernelGroup::State::waits,
                            .instruction = static_cast<std::int32_t>((step / 2 + static_cast<std::uint64_t>(w)) % 8),
                            .waits_for = w == 0 ? "" : "barrier 0"});
  }
  state.next = 0;
  state.shown = warp == 1 ? 1 : 0;
  for (int r = 0; r < 2; ++r) {
    KernelRegister reg{.name = "%r" + std::to_string(r), .type = "u32", .values = {}, .bits = {}};
    for (std::size_t lane = 0; lane < kWarpLanes; ++lane) {
      const std::uint64_t value = r == 1 ? 7 : 1000 * static_cast<std::uint64_t>(state.shown) + step;
      reg.values[lane] = std::to_string(value);
      reg.bits[lane] = "bits " + reg.values[lane];
    }
    state.registers.push_back(reg);
  }
  state.barriers = "barrier 0: 1 of 2 warps\n";
  state.copies = "copy 0 in flight\n";
  state.shared.base = 0x400;
  state.shared.bytes.assign(256, 1);
  state.shared.writer.assign(256, -1);
  for (std::uint64_t w = 0; w < std::min<std::uint64_t>(step, 64); ++w) {
    for (std::uint64_t i = 0; i < 4; ++i) {
      state.shared.writer[w * 4 + i] = static_cast<std::int32_t>(state.shared.writers.size());
    }
    state.shared.writers.push_back({.text = "warp " + std::to_string(w % 2),
                                    .step = w,
                                    .instruction = 0,
                                    .warp = static_cast<std::int32_t>(w % 2)});
  }
  return state;
}

// What the windows have asked for, and switches of their runs. Set faults only while nothing runs.
class FakeKernels {
 public:
  std::atomic<bool> hold = false;  // starts and movements wait until it is false or they are cancelled
  std::atomic<int> starts_now = 0, moves_now = 0;
  std::string fault_of_move;  // a movement throws it

  [[nodiscard]] std::vector<KernelWish> wishes() const {
    const std::scoped_lock lock(mutex_);
    return wishes_;
  }
  [[nodiscard]] std::vector<KernelLaunch> launches() const {
    const std::scoped_lock lock(mutex_);
    return launches_;
  }
  void forget() {
    const std::scoped_lock lock(mutex_);
    wishes_.clear();
    launches_.clear();
  }

  // faulty.ptx has a fault. two.ptx has two kernels, any other file only the first of them. The words of a file that
  // exists are further parameters, or the fault "faulty".
  [[nodiscard]] static KernelFile file(const std::string& path) {
    const std::string name = std::filesystem::path(path).stem().string();
    if (name == "faulty") throw InputError(path, {{"line 3", "unknown opcode"}, {"line 9", "no such register"}});
    KernelFile file{.path = path, .entries = {{"_Z5scalePff", "scale", {{"data", "f32*"}, {"factor", "f32"}}, ""}}};
    if (name == "two") file.entries.push_back({"_Z4copy6Params", "copy", {{"params", "Params, 24 bytes"}}, "128"});
    std::ifstream text(path);
    for (std::string word; text >> word;) {
      if (word == "faulty") throw InputError(path, "line 3", "unknown opcode");
      file.entries.front().parameters.push_back({word, "s32"});
    }
    return file;
  }

  [[nodiscard]] static std::string command(const KernelLaunch& launch) {
    if (launch.grid == "bad") throw InputError("launch", "--grid", "'bad' is no number");
    std::string out = "debug " + launch.path + " entry " + launch.entry + " grid " + launch.grid + " block " +
                      launch.block + " smem " + launch.shared;
    for (const std::string& argument : launch.arguments) out += " [" + argument + "]";
    for (const std::string& other : launch.others) out += " {" + other + "}";
    return out;
  }

  // A grid "bad" is a fault.
  [[nodiscard]] std::unique_ptr<KernelRun> start(const KernelLaunch& launch, const std::function<bool()>& keep_going) {
    const Inside inside(starts_now);
    {
      const std::scoped_lock lock(mutex_);
      launches_.push_back(launch);
    }
    const bool whole = wait(keep_going);
    if (launch.grid == "bad") throw InputError("launch", {{"--grid", "'bad' is no number"}, {"data", "is missing"}});
    return std::make_unique<Run>(*this, launch.path, whole);
  }

 private:
  struct Inside {
    std::atomic<int>& count;
    explicit Inside(std::atomic<int>& c) : count(c) { ++count; }
    ~Inside() { --count; }
  };

  class Run final : public KernelRun {
   public:
    Run(FakeKernels& kernels, const std::string& path, bool whole)
        : kernels_(kernels), code_(fake_code(path)), whole_(whole) {}
    [[nodiscard]] const KernelCode& code() const override { return code_; }
    [[nodiscard]] KernelState go(const KernelWish& wish, const std::function<bool()>& keep_going) override {
      const Inside inside(kernels_.moves_now);
      {
        const std::scoped_lock lock(kernels_.mutex_);
        kernels_.wishes_.push_back(wish);
      }
      if (!kernels_.fault_of_move.empty()) throw InputError("launch", "", kernels_.fault_of_move);
      const bool arrived = kernels_.wait(keep_going);
      if (arrived) step_ = fake_position(step_, wish);
      KernelState state = fake_state(step_, wish.warp);
      if (!arrived) state.arrived = "Interrupted";
      if (!whole_ && step_ < kFakeEnd) state.last.reset();
      return state;
    }

   private:
    FakeKernels& kernels_;
    KernelCode code_;
    bool whole_;
    std::uint64_t step_ = 0;
  };

  // Returns false if it was cancelled.
  [[nodiscard]] bool wait(const std::function<bool()>& keep_going) const {
    while (hold) {
      if (!keep_going()) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    return keep_going();
  }

  mutable std::mutex mutex_;
  std::vector<KernelWish> wishes_;
  std::vector<KernelLaunch> launches_;
};

}  // namespace kvscope::viz::testing_support
