#include "apps/labs/wave_picture.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace kvscope::labs {
namespace {

constexpr std::size_t kWaveStepsShown = 24;

// The copies that a wave issued last into one stage of K or V.
struct StagePart {
  std::int64_t tile = 0, first = 0, end = 0;  // numbers of the wave's copies
};

struct StageParts {
  // [k, v][stage][wave]
  std::array<std::array<std::vector<std::optional<StagePart>>, kLdsStages>, 2> parts;
  std::vector<std::int64_t> issued;  // [wave] copies
};

// Copies that a step issues belong to one wave, or to all at a barrier, which issues none.
StageParts parts_after(const WaveBlock& block, const WaveFault& fault) {
  StageParts state;
  const auto waves = static_cast<std::size_t>(block.waves());
  state.issued.resize(waves);
  for (auto& operand : state.parts) {
    for (auto& stage : operand) stage.resize(waves);
  }
  for (const WaveStep& step : fault.steps) {
    if (step.wave < 0 || step.op.kind != WaveOpKind::issue) continue;
    const auto wave = static_cast<std::size_t>(step.wave);
    const std::int64_t first = state.issued[wave];
    state.issued[wave] += step.op.count;
    state.parts[step.op.of_v ? 1 : 0][static_cast<std::size_t>(step.op.stage)][wave] = {step.op.tile, first,
                                                                                        state.issued[wave]};
  }
  return state;
}

PictureGrid steps_grid(const WaveBlock& block, const WaveFault& fault) {
  PictureGrid grid{"the interleaving, time runs downward; statements without effect on copies are left out", {}, {}};
  for (std::int64_t w = 0; w < block.waves(); ++w) grid.columns.push_back(fmt::format("wave {}", w));
  const std::size_t first = fault.steps.size() > kWaveStepsShown ? fault.steps.size() - kWaveStepsShown : 0;
  for (std::size_t i = first; i < fault.steps.size(); ++i) {
    const WaveStep& step = fault.steps[i];
    PictureRow row{fmt::format("step {}", i + 1), {}};
    for (std::int64_t w = 0; w < block.waves(); ++w) {
      PictureCell cell{"", CellMark::quiet};
      if (step.wave < 0 || step.wave == w) {
        cell = {to_text(step.op), step.wave < 0 ? CellMark::used : CellMark::plain,
                fmt::format("line {}", step.op.line)};
        if (i + 1 == fault.steps.size() && step.wave == w) cell.mark = CellMark::wrong;
      }
      row.cells.push_back(std::move(cell));
    }
    grid.rows.push_back(std::move(row));
  }
  return grid;
}

PictureGrid stages_grid(const WaveBlock& block, const WaveFault& fault) {
  const StageParts state = parts_after(block, fault);
  const WaveStep& last = fault.steps.back();
  PictureGrid grid{"the stages after the last step: the tile whose copies each wave issued last into its part", {}, {}};
  for (std::int64_t w = 0; w < block.waves(); ++w) grid.columns.push_back(fmt::format("part of wave {}", w));
  for (std::size_t operand = 0; operand < 2; ++operand) {
    for (std::size_t stage = 0; stage < kLdsStages; ++stage) {
      const bool read = last.op.kind == WaveOpKind::read && last.op.of_v == (operand == 1) &&
                        last.op.stage == static_cast<std::int64_t>(stage);
      PictureRow row{fmt::format("{} stage {}{}", operand == 0 ? "K" : "V", stage, read ? ", read" : ""), {}};
      for (std::size_t w = 0; w < state.issued.size(); ++w) {
        const std::optional<StagePart>& part = state.parts[operand][stage][w];
        const std::int64_t landed = state.issued[w] - (w < last.in_flight.size() ? last.in_flight[w] : 0);
        const bool in_flight = part && part->end > landed;
        PictureCell cell{part ? fmt::format("tile {}", part->tile) : "empty", CellMark::plain};
        if (part)
          cell.note = in_flight ? fmt::format("{} in flight", part->end - std::max(landed, part->first)) : "landed";
        if (read && (!part || in_flight || part->tile != last.op.tile)) cell.mark = CellMark::wrong;
        row.cells.push_back(std::move(cell));
      }
      grid.rows.push_back(std::move(row));
    }
  }
  return grid;
}

}  // namespace

CasePicture wave_picture(const WaveBlock& block, const WaveFault& fault) {
  if (fault.steps.empty()) return {};
  return {{steps_grid(block, fault), stages_grid(block, fault)}, "a barrier that all waves pass"};
}

}  // namespace kvscope::labs
