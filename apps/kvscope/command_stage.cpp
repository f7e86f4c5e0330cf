// kvscope stage SCENARIO --tile N --out image.npy: stages one tile of the focus step, for comparison with a
// kernel's dump of its shared memory and registers.
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/lds_options.h"
#include "core/base/errors.h"
#include "core/golden/bundle/npy.h"
#include "core/pipeline/run_scenario.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/staged_image.h"
#include "core/staging/staging_events.h"
#include "core/staging/tma/tma_staging.h"

namespace kvscope::apps {
namespace {

struct StageCommand {
  std::string scenario;
  std::optional<std::string> requests;
  std::optional<std::int64_t> step, seq, layer, head, tile;
  std::int64_t dim = 0;
  std::string kv = "k";
  std::string path = "tma";
  std::string out;
  std::string registers;
  LdsOptions lds;
};

// The focus with the command line's numbers in place of the scenario's.
Scenario focused(Scenario scenario, const StageCommand& command) {
  Focus& focus = scenario.focus;
  focus.step = command.step.value_or(focus.step);
  focus.sequence = command.seq.value_or(focus.sequence);
  focus.layer = command.layer.value_or(focus.layer);
  focus.head = command.head.value_or(focus.head);
  focus.tile = command.tile.value_or(focus.tile);
  check_index("--layer", focus.layer, scenario.model.layers, "layers of the scenario's model");
  check_index("--head", focus.head, scenario.model.kv_heads, "KV heads of the scenario's model");
  check_index("--dim", command.dim, scenario.model.head_size, "elements of a head");
  if (command.kv == "v" && scenario.model.is_mla) {
    throw UnsupportedError("an MLA cache stores K only, and V is the first elements of K: use --kv k");
  }
  return scenario;
}

std::int64_t poison_bytes(const SharedImage& image) {
  return std::ranges::count(image.writers(), static_cast<std::int32_t>(SharedImage::kNoCopy.value));
}

void write_bytes(const std::string& path, std::span<const std::byte> bytes, std::vector<std::int64_t> shape,
                 DType dtype) {
  golden::write_npy(path, {dtype, std::move(shape), {bytes.begin(), bytes.end()}});
}

std::string to_text(const StageCommand& command, const CacheState& state, const StagedTile& tile, std::int64_t BN,
                    const StagedImage& staged) {
  const bool tma = command.path == "tma";
  const SeqIdx seq = state.batch[static_cast<std::size_t>(tile.batch_row.value)];
  const std::int64_t tokens = std::min(BN, tile.tokens - tile.first_token.value);
  std::string text =
      fmt::format("tile       {} of sequence {}, tokens {} to {}, layer {}, KV head {}, step {}\n",
                  tile.kv == KOrV::k ? "K" : "V", seq.value, tile.first_token.value,
                  tile.first_token.value + tokens - 1, tile.layer.value, tile.head.value, state.step.value);
  text += fmt::format("staged     {}: {} bytes of shared memory, {} of them not written by any copy\n",
                      tma ? "by TMA" : "through LDS", staged.shared.size(), poison_bytes(staged.shared));
  if (staged.no_fragments.empty()) {
    const char* readers = tma ? staged.waves > 1 ? "warps" : "warp" : staged.waves > 1 ? "waves" : "wave";
    text +=
        fmt::format("registers  {} {} x {} lanes x {} 32-bit registers{}\n", staged.waves, readers, staged.lanes,
                    staged.registers, staged.steps > 1 ? fmt::format(", in {} consecutive k-steps", staged.steps) : "");
  } else {
    text += fmt::format("registers  none: {}\n", staged.no_fragments);
  }
  if (!command.out.empty()) {
    text += fmt::format("written    {}: shared memory as uint8, 0xcd in bytes that no copy wrote\n", command.out);
  }
  if (!command.registers.empty()) {
    text += fmt::format("written    {}: uint32 [{}waves, lanes, registers]\n", command.registers,
                        staged.steps > 1 ? "k-steps, " : "");
  }
  return text;
}

int run(const StageCommand& command) {
  const ScenarioInput input = read_scenario(command.scenario, command.requests);
  const Scenario scenario = with_lds_options(focused(input.scenario, command), command.lds);
  trace::Recorder off;
  const EngineRun engine = run_engine(scenario, input.requests, off);
  const FocusState focus = state_at(scenario, input.requests, focus_step(scenario, engine.report));
  if (const std::string why = golden_too_large(scenario, focus, {.max_multiply_adds = 1e300}); !why.empty()) {
    throw GeometryError(why);
  }
  LayerData data = layer_data(scenario, focus);
  const KOrV kv = command.kv == "k" ? KOrV::k : KOrV::v;
  const bool tma = command.path == "tma";
  const std::int64_t BN = tma ? scenario.tile.BN : lds_params(scenario, kv).BN;
  const StagedTile tile = focus_tile(scenario, focus.cache, kv, BN);
  const StagedImage staged =
      tma ? stage_by_tma(scenario, focus.cache, data.bytes(), tile, tma_depth_offset(scenario, DimIdx{command.dim}))
          : stage_through_lds(scenario, focus.cache, data.bytes(), tile);

  if (!command.registers.empty() && !staged.no_fragments.empty()) {
    throw UnsupportedError("--registers: " + staged.no_fragments);
  }
  if (!command.out.empty()) write_bytes(command.out, staged.shared.bytes(), {staged.shared.size()}, DType::u8);
  if (!command.registers.empty()) {
    std::vector<std::int64_t> shape{staged.waves, staged.lanes, staged.registers};
    if (staged.steps > 1) shape.insert(shape.begin(), staged.steps);
    write_bytes(command.registers, staged.register_bytes, std::move(shape), DType::u32);
  }
  std::cout << to_text(command, focus.cache, tile, BN, staged);
  return kExitFine;
}

}  // namespace

void add_stage(CLI::App& app, Action& chosen) {
  const auto command = std::make_shared<StageCommand>();
  CLI::App* stage =
      app.add_subcommand("stage", "Copy one tile of K or V into shared memory and registers, and write their bytes");
  stage->add_option("SCENARIO", command->scenario, "Scenario file (JSON)")->required();
  stage->add_option("--tile", command->tile, "Tile of the sequence, from 0 [default: the scenario's focus]")
      ->check(at_least(0));
  stage
      ->add_option("--seq", command->seq,
                   "Sequence: index of its request in order of arrival, from 0; -1: the longest of the step [default: "
                   "the scenario's focus]")
      ->check(at_least(-1));
  stage->add_option("--layer", command->layer, "Layer, from 0 [default: the scenario's focus]");
  stage->add_option("--head", command->head, "KV head, from 0 [default: the scenario's focus]");
  stage
      ->add_option("--dim", command->dim,
                   "With --path tma: an element of the head, to select the tile when a head takes several")
      ->capture_default_str();
  stage
      ->add_option("--step", command->step,
                   "Engine step, from 0; -1: the step with the most filled slots [default: the scenario's focus]")
      ->check(at_least(-1));
  stage->add_option("--kv", command->kv, "Tensor: K or V")
      ->check(CLI::IsMember(std::vector<std::string>{"k", "v"}))
      ->capture_default_str();
  stage->add_option("--path", command->path, "How the tile is staged: by TMA, or through LDS by waves")
      ->check(CLI::IsMember(std::vector<std::string>{"tma", "lds"}))
      ->capture_default_str();
  stage->add_option("--out", command->out, "Write shared memory to this file (.npy), one uint8 per byte")
      ->type_name("FILE")
      ->check(writes_file());
  stage
      ->add_option("--registers", command->registers,
                   "Write the registers to this file (.npy), uint32 [waves, lanes, registers]")
      ->type_name("FILE")
      ->check(writes_file());
  stage->add_option("--requests", command->requests, "Recorded requests (.csv, .jsonl) to replace the scenario's own")
      ->type_name("FILE");
  add_lds_options(*stage, command->lds);
  add_examples(*stage, {"kvscope stage apps/scenarios/mla.json --out shared.npy --registers registers.npy",
                        "kvscope stage apps/scenarios/mla.json --path lds"});
  stage->callback([command, &chosen] { chosen = [command] { return run(*command); }; });
}

}  // namespace kvscope::apps
