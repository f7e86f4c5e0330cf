#include "core/staging/lds/schedule.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/base/errors.h"

namespace kvscope {

namespace {

// The names of steps in the tables of a schedule.
class Steps {
 public:
  void issue(std::int64_t tile, KOrV operand, std::int64_t stage) {
    steps_.push_back({.kind = StepKind::issue, .tile = tile, .operand = operand, .stage = StageIdx{stage}, .note = {}});
  }
  void read(std::int64_t tile, KOrV operand, std::int64_t stage) {
    steps_.push_back({.kind = StepKind::read, .tile = tile, .operand = operand, .stage = StageIdx{stage}, .note = {}});
  }
  void wait_vm(std::int64_t tile, std::int64_t count) {
    steps_.push_back({.kind = StepKind::wait_vm, .tile = tile, .stage = {}, .count = count, .note = {}});
  }
  void wait_lgkm(std::int64_t tile) {
    steps_.push_back({.kind = StepKind::wait_lgkm, .tile = tile, .stage = {}, .note = {}});
  }
  void barrier(std::int64_t tile) {
    steps_.push_back({.kind = StepKind::barrier, .tile = tile, .stage = {}, .note = {}});
  }
  void compute(std::int64_t tile, std::string_view note) {
    steps_.push_back({.kind = StepKind::compute, .tile = tile, .stage = {}, .note = note});
  }
  [[nodiscard]] std::vector<ScheduleStep> take() { return std::move(steps_); }

 private:
  std::vector<ScheduleStep> steps_;
};

}  // namespace

std::string to_text(const ScheduleStep& step) {
  const char operand = step.operand == KOrV::k ? 'K' : 'V';
  switch (step.kind) {
    case StepKind::issue:
      return fmt::format("tile {}: issue {} into stage {}", step.tile, operand, step.stage.value);
    case StepKind::wait_vm:
      return fmt::format("tile {}: wait vmcnt({})", step.tile, step.count);
    case StepKind::wait_lgkm:
      return fmt::format("tile {}: wait lgkmcnt(0)", step.tile);
    case StepKind::barrier:
      return fmt::format("tile {}: barrier", step.tile);
    case StepKind::read:
      return fmt::format("tile {}: read {} from stage {}", step.tile, operand, step.stage.value);
    case StepKind::compute:
      return fmt::format("tile {}: {}", step.tile, step.note);
  }
  return "invalid step";
}

std::vector<ScheduleStep> prefill_schedule(const PrefillPlan& plan) {
  std::vector<Fault> faults;
  if (plan.tiles < 0) faults.push_back({"tiles", fmt::format("{} is negative: give 0 or more", plan.tiles)});
  if (plan.k_count < 0) faults.push_back({"k_count", fmt::format("{} is negative: give 0 or more", plan.k_count)});
  if (plan.v_count < 0) faults.push_back({"v_count", fmt::format("{} is negative: give 0 or more", plan.v_count)});
  if (!plan.masked.empty() && static_cast<std::int64_t>(plan.masked.size()) != plan.tiles) {
    faults.push_back(
        {"masked", fmt::format("{} masks for {} tiles: give one a tile or none", plan.masked.size(), plan.tiles)});
  }
  if (!faults.empty()) throw GeometryError("prefill schedule", std::move(faults));

  Steps steps;
  if (plan.tiles > 0) {
    steps.issue(0, KOrV::k, 0);
    steps.issue(0, KOrV::v, 0);
  }
  for (std::int64_t i = 0; i < plan.tiles; ++i) {
    const std::int64_t stage = i % 2;
    const bool next = i + 1 < plan.tiles;
    const auto issue_next = [&] {
      if (!next) return;
      steps.issue(i + 1, KOrV::k, 1 - stage);
      steps.issue(i + 1, KOrV::v, 1 - stage);
    };
    steps.wait_vm(i, next ? plan.v_count : 0);
    steps.barrier(i);
    if (!plan.masked.empty() && plan.masked[static_cast<std::size_t>(i)]) {
      issue_next();
      steps.barrier(i);
      continue;
    }
    steps.read(i, KOrV::k, stage);
    steps.compute(i, "S = Q K^T");
    issue_next();
    steps.compute(i, "softmax");
    if (next) steps.wait_vm(i, plan.k_count + plan.v_count);
    steps.barrier(i);
    steps.read(i, KOrV::v, stage);
    steps.compute(i, "rescale, O += P V");
  }
  return steps.take();
}

std::vector<ScheduleStep> decode_schedule(const DecodePlan& plan) {
  if (plan.tiles < 0) throw GeometryError(fmt::format("decode schedule: {} tiles: give 0 or more", plan.tiles));
  Steps steps;
  const auto k_stage = [&](std::int64_t tile) { return plan.double_buffer_k ? tile % 2 : 0; };
  const auto issue = [&](std::int64_t tile) {
    steps.issue(tile, KOrV::k, k_stage(tile));
    if (plan.v == DecodeV::own_region) steps.issue(tile, KOrV::v, 0);
  };
  if (plan.tiles > 0) issue(0);
  for (std::int64_t i = 0; i < plan.tiles; ++i) {
    steps.wait_vm(i, 0);
    steps.wait_lgkm(i);
    steps.barrier(i);
    steps.read(i, KOrV::k, k_stage(i));
    steps.compute(i, "S = Q K^T");
    steps.compute(i, "softmax");
    steps.compute(i, "P to LDS");
    steps.wait_lgkm(i);
    steps.barrier(i);
    if (plan.v == DecodeV::shared_region) {
      steps.issue(i, KOrV::v, 0);
      steps.wait_vm(i, 0);
      steps.barrier(i);
    }
    steps.read(i, KOrV::v, plan.v == DecodeV::k_image ? k_stage(i) : 0);
    if (i + 1 < plan.tiles) {
      steps.wait_lgkm(i);
      steps.barrier(i);
      issue(i + 1);
    }
    steps.compute(i, "rescale");
    steps.compute(i, "O += P V");
    steps.wait_vm(i, 0);
    steps.wait_lgkm(i);
    steps.barrier(i);
  }
  return steps.take();
}

std::vector<Outstanding> outstanding(std::span<const ScheduleStep> steps, std::int64_t k_copies,
                                     std::int64_t v_copies) {
  std::vector<Outstanding> counts;
  std::int64_t now = 0;
  for (const ScheduleStep& step : steps) {
    const std::int64_t before = now;
    if (step.kind == StepKind::issue) now += step.operand == KOrV::k ? k_copies : v_copies;
    if (step.kind == StepKind::wait_vm) now = std::min(now, step.count);
    if (now > kMaxVmCount) {
      throw GeometryError(
          fmt::format("schedule: {} leaves {} copies outstanding, and the counter has 6 bits: copy "
                      "smaller tiles",
                      to_text(step), now));
    }
    counts.push_back({before, now});
  }
  return counts;
}

// --- executing a schedule --------------------------------------------------------------------------------------------

namespace {

class Machine {
 public:
  Machine(std::span<const ScheduleStep> steps, const ScheduleWaves& waves, Landing landing, const Choose& choose)
      : steps_(steps), waves_(waves), landing_(landing), choose_(choose), at_(waves.k.size(), 0) {}

  std::vector<ScheduleFault> run() {
    for (;;) {
      std::vector<std::size_t> ready, waiting;
      for (std::size_t w = 0; w < at_.size(); ++w) {
        if (at_[w] == steps_.size()) continue;
        (steps_[at_[w]].kind == StepKind::barrier ? waiting : ready).push_back(w);
      }
      if (ready.empty()) {
        // Every wave has the same steps, so all waves at a barrier are at the same one.
        for (const std::size_t w : waiting) ++at_[w];
        if (waiting.empty()) return std::move(faults_);
        continue;
      }
      if (landing_ == Landing::any) land_some();
      step(ready[static_cast<std::size_t>(choose_(static_cast<std::int64_t>(ready.size())))]);
    }
  }

 private:
  void land_some() {
    for (std::size_t w = 0; w < at_.size(); ++w) {
      if (choose_(2) == 1) waves_.pending->land_oldest(WaveIdx{static_cast<std::int64_t>(w)});
    }
  }

  void step(std::size_t w) {
    const std::size_t n = at_[w]++;
    const ScheduleStep& what = steps_[n];
    const WaveIdx wave{static_cast<std::int64_t>(w)};
    if (what.kind == StepKind::wait_vm) waves_.pending->wait(wave, what.count);
    if (what.kind == StepKind::issue) {
      (what.operand == KOrV::k ? waves_.k : waves_.v_copy)[w]->load_from_dram(what.stage);
      if (landing_ == Landing::early) waves_.pending->wait(wave, 0);
    }
    if (what.kind == StepKind::read) read(n, w);
  }

  void read(std::size_t n, std::size_t w) {
    const ScheduleStep& what = steps_[n];
    KVBuffer& buffer = *(what.operand == KOrV::k ? waves_.k : waves_.v_read)[w];
    const std::size_t before = waves_.pending->races().size();
    buffer.load_from_shared(what.stage);
    const std::vector<Race>& races = waves_.pending->races();
    for (std::size_t r = before; r < races.size(); ++r) fault(n, w, to_text(races[r]));

    // V that is never copied is read from K's image.
    const KOrV operand = waves_.v_copy.empty() ? KOrV::k : what.operand;
    const TokIdx start{what.tile * buffer.config().constants().BN};
    for (const CopyIdx source : buffer.last_sources()) {
      if (source == SharedImage::kNoCopy) {
        fault(n, w, "bytes that no copy has brought");
        continue;
      }
      const CopyOrigin& origin = waves_.pending->record(source).origin;
      if (origin.operand == operand && origin.tile_start == start) continue;
      fault(n, w,
            fmt::format("bytes of copy {}: {}, tile at token {}", source.value, origin.operand == KOrV::k ? "K" : "V",
                        origin.tile_start.value));
    }
  }

  void fault(std::size_t n, std::size_t w, const std::string& message) {
    faults_.push_back({n, WaveIdx{static_cast<std::int64_t>(w)},
                       fmt::format("step {} ({}), wave {}: {}", n, to_text(steps_[n]), w, message)});
  }

  std::span<const ScheduleStep> steps_;
  const ScheduleWaves& waves_;
  Landing landing_;
  const Choose& choose_;
  std::vector<std::size_t> at_;  // [wave] next step
  std::vector<ScheduleFault> faults_;
};

}  // namespace

std::vector<ScheduleFault> run_schedule(std::span<const ScheduleStep> steps, const ScheduleWaves& waves,
                                        Landing landing, const Choose& choose) {
  KVSCOPE_ASSERT(waves.pending != nullptr);
  const std::size_t count = waves.k.size();
  if (count == 0 || waves.v_read.size() != count || (!waves.v_copy.empty() && waves.v_copy.size() != count)) {
    throw GeometryError(
        fmt::format("schedule: {} waves of K, {} that copy V and {} that read it: give one of each a wave", count,
                    waves.v_copy.size(), waves.v_read.size()));
  }
  const bool copies_v = std::any_of(steps.begin(), steps.end(), [](const ScheduleStep& step) {
    return step.kind == StepKind::issue && step.operand == KOrV::v;
  });
  if (copies_v && waves.v_copy.empty()) throw GeometryError("schedule: it copies V, and no buffer does: give v_copy");
  return Machine(steps, waves, landing, choose).run();
}

}  // namespace kvscope
