// kvscope lds table SCENARIO: prints the constants of KVBuffer for a scenario's cache, the copies of each lane into
// LDS, or the elements of each register.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/lds_options.h"
#include "core/base/errors.h"
#include "core/smem/shared_limits.h"
#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/kv_buffer_config.h"
#include "core/staging/lds/lds_layout.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/lds_swizzle.h"
#include "core/staging/lds/register_map.h"

namespace kvscope::apps {
namespace {

struct LdsTableCommand {
  std::string scenario;
  std::string what = "constants";
  std::string kv = "k";
  std::int64_t wave = 0;
  std::int64_t strip = 0;
  std::optional<std::int64_t> valid_rows;
  LdsOptions lds;
};

void row(const char* name, std::int64_t value, const char* meaning) {
  std::cout << fmt::format("{:<20} {:>8}   {}\n", name, value, meaning);
}

// The number of thread blocks that the LDS of an AMD compute unit can hold, or why it can hold none.
void show_lds_limits(std::int64_t bytes) {
  for (const SharedLimits& limits : all_shared_limits()) {
    if (limits.target == SharedTarget::nvidia) continue;
    const std::optional<Fault> fault = shared_fault(limits.arch, "K and V", bytes);
    row(fmt::format("blocks on {}", limits.name).c_str(), blocks_per_sm(limits.arch, bytes),
        fault ? fault->message.c_str() : "fit into the LDS of a compute unit");
  }
}

// `both_bytes`: LDS of every stage of K and V.
int show_constants(const KVBufferParams& params, std::int64_t both_bytes) {
  const KVBufferReport report = check(params);
  const KVBufferConstants c = constants_of(params);
  std::cout << fmt::format("KVBuffer ({}), {}, MMA {}, swizzle {}\n", params.transpose ? "K" : "V", name(params.dtype),
                           to_text(params.mma_shape), params.swizzle ? params.swizzle->text() : "none");
  if (params.swizzle && report.refusals.empty()) {
    std::cout << fmt::format("16-byte vectors of a row r, column c: {}\n",
                             swizzle_effect(*params.swizzle, c.row_bytes()));
  }
  std::cout << '\n';
  row("BN", c.BN, "keys of a tile");
  row("WN", c.WN, "keys of a wave's tile");
  row("BK", c.BK, "columns of a K strip, keys of a V strip");
  row("depth", c.depth, "columns of the register tile");
  row("smem_depth", c.smem_depth, "columns of a stage");
  row("bk_smem", c.bk_smem, "columns of an LDS block");
  row("num_threads", params.num_threads, "of the block");
  row("num_mmas", c.num_mmas, "MMAs across the keys (K) or the depth (V)");
  row("num_k_mmas2", c.num_k_mmas2, "MMA steps of a strip");
  row("num_k_tiles", c.num_k_tiles, "strips");
  row("input_frag_size", c.input_frag_size, "elements per lane and MMA");
  row("simd_width", c.simd_width, "elements of a 16-byte vector");
  row("num_repeats", c.num_repeats, "blocks of a stage's depth");
  row("smem_cols", c.smem_cols, "columns that a stage holds");
  row("smem_stage_size", c.smem_stage_size, "elements of a stage");
  row("stage bytes", c.stage_bytes, "LDS of a stage");
  row("K and V bytes", both_bytes, "LDS of all stages of K and V");
  show_lds_limits(both_bytes);
  row("mma_layout rows", c.mma_rows, "of a lane's register tile");
  row("mma_layout columns", c.mma_cols, "elements of each");
  row("vm_instrs_per_load", c.vm_instrs_per_load, "declared copies per wave per load");
  for (const BrokenBufferRule& broken : report.refusals) {
    std::cout << fmt::format("\nrejected    {}: {}: {}", name(broken.rule), broken.fault.where, broken.fault.message);
  }
  for (const BrokenBufferRule& odd : report.diagnostics) {
    std::cout << fmt::format("\nnote        {}: {}: {}", name(odd.rule), odd.fault.where, odd.fault.message);
  }
  if (!report.refusals.empty() || !report.diagnostics.empty()) std::cout << '\n';
  return report.refusals.empty() ? kExitFine : kExitCheckFailed;
}

int show_copies(const KVBufferConfig& config, WaveIdx wave, std::int64_t valid_rows) {
  const KVBufferConstants& c = config.constants();
  const DramTile tile{valid_rows, config.params().kv_num_heads * c.cache_depth, c.depth};
  std::cout << fmt::format(
      "copies of wave {} into stage 0: {} of {} keys valid, rows {} B apart in memory\n\n"
      "  t  m  lane    LDS byte   key   depth   tile byte\n",
      wave.value, valid_rows, c.BN, tile.row_stride * c.element_bytes);
  for (const CopyInstruction& instruction : copy_instructions(config, wave, StageIdx{0}, tile)) {
    for (std::size_t lane = 0; lane < instruction.lanes.size(); ++lane) {
      const CopyVector& vector = instruction.lanes[lane];
      std::cout << fmt::format("{:>3} {:>2} {:>5} {:>11} {:>5} {:>7} {:>11}{}\n", instruction.t, instruction.m, lane,
                               vector.lds_byte, vector.key.value, vector.depth.value, vector.dram_byte,
                               vector.zero ? "   zeros" : "");
    }
  }
  return kExitFine;
}

int show_registers(const KVBufferConfig& config, WaveIdx wave, StripIdx strip) {
  const KVBufferConstants& c = config.constants();
  const LdsLayout layout(config);
  std::cout << fmt::format(
      "register tile of wave {}, strip {}: first element of each fragment\n\n"
      "  k  i  row  lane   key   depth   LDS byte of it\n",
      wave.value, strip.value);
  for (std::int64_t k = 0; k < c.num_k_mmas2; ++k) {
    for (std::int64_t i = 0; i < c.num_mmas; ++i) {
      for (int lane = 0; lane < kWaveLanes; ++lane) {
        const auto element = register_element(config, wave, {strip, k, i, lane, 0});
        std::cout << fmt::format("{:>3} {:>2} {:>4} {:>5}", k, i, register_row(c, strip, k, i), lane);
        if (element) {
          std::cout << fmt::format(" {:>5} {:>7} {:>16}\n", element->key.value, element->depth.value,
                                   layout.byte(StageIdx{0}, element->key, element->depth));
        } else {
          std::cout << "  zero: past the last column of the head\n";
        }
      }
    }
  }
  return kExitFine;
}

int show_table(const LdsTableCommand& command) {
  const ScenarioInput input = read_scenario(command.scenario, std::nullopt);
  const Scenario scenario = with_lds_options(input.scenario, command.lds);
  const KVBufferParams params = lds_params(scenario, command.kv == "k" ? KOrV::k : KOrV::v);
  if (command.kv == "v" && params.depth < 1) {
    throw InputError("command line", "--kv",
                     "V has no columns in this tile, whose columns begin past the values of the latent cache: pass "
                     "--kv k");
  }
  if (command.what == "constants") {
    const KVBufferParams other = lds_params(scenario, command.kv == "k" ? KOrV::v : KOrV::k);
    // V has no columns past its values: the rope part of a latent cache is staged as K alone.
    const std::int64_t others = other.depth < 1 ? 0 : constants_of(other).region_bytes;
    return show_constants(params, constants_of(params).region_bytes + others);
  }
  const KVBufferConfig config(params);
  const KVBufferConstants& c = config.constants();
  check_index("--wave", command.wave, c.waves, "waves of the block");
  if (command.what == "registers") {
    check_index("--strip", command.strip, c.num_k_tiles, "strips of the tile");
    return show_registers(config, WaveIdx{command.wave}, StripIdx{command.strip});
  }
  const std::int64_t valid_rows = command.valid_rows.value_or(c.BN);
  check_index("--valid-rows", valid_rows, c.BN + 1, "keys of the tile");
  return show_copies(config, WaveIdx{command.wave}, valid_rows);
}

}  // namespace

void add_lds(CLI::App& app, Action& chosen) {
  CLI::App* lds =
      app.add_subcommand("lds", "Show how the waves of an AMD GPU stage K and V through LDS (shared memory)");
  lds->require_subcommand(1);
  const auto command = std::make_shared<LdsTableCommand>();
  CLI::App* table =
      lds->add_subcommand("table", "Print the constants, the copies or the registers of a scenario's KVBuffer");
  table->add_option("SCENARIO", command->scenario, "Scenario file (JSON)")->required();
  table
      ->add_option("--what", command->what,
                   "constants: sizes derived from the scenario; copy: which lane copies which 16 bytes; registers: "
                   "which lane reads which elements")
      ->check(CLI::IsMember(std::vector<std::string>{"constants", "copy", "registers"}))
      ->capture_default_str();
  table->add_option("--kv", command->kv, "Tensor: K or V")
      ->check(CLI::IsMember(std::vector<std::string>{"k", "v"}))
      ->capture_default_str();
  table->add_option("--wave", command->wave, "With --what copy or registers: wave of the block, from 0")
      ->capture_default_str();
  table->add_option("--strip", command->strip, "With --what registers: strip of BK columns, from 0")
      ->check(at_least(0))
      ->capture_default_str();
  table->add_option("--valid-rows", command->valid_rows,
                    "With --what copy: keys of the tile that exist; the others are zero-filled [default: all]");
  add_lds_options(*table, command->lds);
  add_examples(*table, {"kvscope lds table apps/scenarios/mla.json",
                        "kvscope lds table apps/scenarios/mla.json --what copy --wave 1 --valid-rows 20"});
  table->callback([command, &chosen] { chosen = [command] { return show_table(*command); }; });
  add_lds_schedule(*lds, chosen);
  add_examples(*lds, {"kvscope lds table apps/scenarios/mla.json"});
}

}  // namespace kvscope::apps
