// kvscope lds schedule SCENARIO: prints the loop of copies, waits, barriers and reads, with a wave's copies in flight
// at each step. Then it runs the loop, complete or without one step, in several orders of waves and copies.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "apps/kvscope/lds_options.h"
#include "core/base/errors.h"
#include "core/cache/continuous_kv_cache.h"
#include "core/staging/lds/dram_to_lds.h"
#include "core/staging/lds/kv_buffer.h"
#include "core/staging/lds/lds_params.h"
#include "core/staging/lds/schedule.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostTiles = 8;
constexpr std::int64_t kRandomOrders = 8;

struct ScheduleCommand {
  std::string scenario;
  std::string loop = "prefill";
  std::string count = "newer";
  std::int64_t tiles = 3;
  std::int64_t wave = 0;
  std::vector<std::int64_t> masked;
  std::optional<std::int64_t> without;
  LdsOptions lds;
};

// The rows of one head for all tiles. Their values do not matter here: the model records which copy wrote each byte of
// LDS.
class Rows {
 public:
  Rows(const KVBufferConfig& config, std::int64_t tiles)
      : kv_{1, config.constants().cache_depth, false},
        pool_(static_cast<std::size_t>(tiles * config.constants().BN * config.constants().cache_depth *
                                       config.constants().element_bytes)),
        blocks_{pool_.data(),
                config.params().dtype,
                {1, tiles * config.constants().BN, 1, config.constants().cache_depth}} {}

  [[nodiscard]] ContinuousBatchingKVCache cache() const {
    return {kv_, {.blocks = blocks_, .cache_lengths = {lengths_.data(), {1}}, .lookup_table = {table_.data(), {1}}}};
  }

 private:
  KVCacheStaticParams kv_;
  std::vector<std::byte> pool_;
  std::vector<std::uint32_t> lengths_{0}, table_{0};
  AnyView<4> blocks_;
};

// The waves of a block, LDS with the stages of K followed by those of V, and rows to copy.
class Block {
 public:
  Block(const KVBufferConfig& k, const KVBufferConfig& v, std::int64_t tiles)
      : k_rows_(k, tiles),
        v_rows_(v, tiles),
        image_(k.constants().region_bytes + v.constants().region_bytes),
        pending_(image_, k.constants().waves) {
    waves_.pending = &pending_;
    for (WaveIdx wave{0}; wave.value < k.constants().waves; ++wave) {
      const TokIdx end{tiles * k.constants().BN};
      waves_.k.push_back(add(k, k_rows_, 0, end, wave));
      waves_.v_copy.push_back(add(v, v_rows_, k.constants().region_bytes, end, wave));
      waves_.v_read.push_back(waves_.v_copy.back());
    }
  }
  [[nodiscard]] const ScheduleWaves& waves() const { return waves_; }

 private:
  KVBuffer* add(const KVBufferConfig& config, const Rows& rows, std::int64_t base, TokIdx end, WaveIdx wave) {
    buffers_.push_back(
        std::make_unique<KVBuffer>(config, rows.cache(), SeqIdx{0}, HeadIdx{0}, LdsRegion{&pending_, base}, end, wave));
    return buffers_.back().get();
  }

  Rows k_rows_, v_rows_;
  SharedImage image_;
  PendingCopies pending_;
  std::vector<std::unique_ptr<KVBuffer>> buffers_;
  ScheduleWaves waves_;
};

// One possible order of copies and waves.
struct Order {
  std::string text;
  Landing landing = Landing::late;
  Choose choose;
};

// Copies land as late or as early as allowed, with the first or the last wave ahead; then random orders with fixed
// seeds.
std::vector<Order> orders() {
  const Choose first = [](std::int64_t) { return std::int64_t{0}; };
  const Choose last = [](std::int64_t n) { return n - 1; };
  std::vector<Order> list{{"copies land late, the first wave is ahead", Landing::late, first},
                          {"copies land late, the last wave is ahead", Landing::late, last},
                          {"copies land at once, the first wave is ahead", Landing::early, first},
                          {"copies land at once, the last wave is ahead", Landing::early, last}};
  for (std::uint32_t seed = 1; seed <= kRandomOrders; ++seed) {
    const auto random = std::make_shared<std::mt19937>(seed);
    list.push_back({fmt::format("random order {}", seed), Landing::any,
                    [random](std::int64_t n) { return static_cast<std::int64_t>((*random)()) % n; }});
  }
  return list;
}

KVBufferConfig config_of(const ScheduleCommand& command, const Scenario& scenario, KOrV kv) {
  KVBufferParams params = lds_params(scenario, kv);
  params.kv_num_heads = 1;         // the distance of rows does not affect the schedule
  params.reg_chunk_depth.reset();  // the loops read a whole tile per step; registers are not modeled
  params.reg_chunk_keys.reset();
  params.vm_rule = command.count == "seed" ? VmCountRule::seed : VmCountRule::newer;
  return KVBufferConfig(params);
}

std::vector<ScheduleStep> steps_of(const ScheduleCommand& command, const KVBufferConstants& k,
                                   const KVBufferConstants& v) {
  if (command.loop == "decode") return decode_schedule({.tiles = command.tiles, .double_buffer_k = k.BN <= 64});
  PrefillPlan plan{.tiles = command.tiles,
                   .masked = std::vector<bool>(static_cast<std::size_t>(command.tiles)),
                   .k_count = k.vm_instrs_per_load,
                   .v_count = v.vm_instrs_per_load};
  for (const std::int64_t tile : command.masked) {
    check_index("--masked", tile, command.tiles, "tiles of the loop");
    plan.masked[static_cast<std::size_t>(tile)] = true;
  }
  return prefill_schedule(plan);
}

void show_steps(const std::vector<ScheduleStep>& steps, const std::vector<Outstanding>& counts,
                const std::optional<std::int64_t>& without) {
  std::cout << " step  tile  what                         in flight\n";
  std::size_t kept = 0;  // index into `counts`, which has no entry for the omitted step
  for (std::size_t n = 0; n < steps.size(); ++n) {
    const std::string text = to_text(steps[n]);  // "tile 2: issue V into stage 0"
    std::string line = fmt::format("{:>5} {:>5}  {:<28}", n, steps[n].tile, text.substr(text.find(": ") + 2));
    if (without && *without == static_cast<std::int64_t>(n)) {
      line += " left out";
    } else {
      const auto [before, after] = counts[kept++];
      line += before == after ? fmt::format(" {:>2}", before) : fmt::format(" {:>2} -> {}", before, after);
    }
    std::cout << line << '\n';
  }
}

// "step 4 (tile 0: read K from stage 0): wave 0 reads byte ..." for a fault; steps are
// numbered as in the printed table, which includes the omitted one.
std::string fault_text(const ScheduleFault& fault, const std::optional<std::int64_t>& without) {
  const auto among_left = static_cast<std::int64_t>(fault.step);
  const std::int64_t step = among_left + (without && among_left >= *without ? 1 : 0);
  const std::string wave = fmt::format(", wave {}: ", fault.wave.value);
  std::string text = fault.message.substr(fault.message.find(" ("));
  if (const std::size_t at = text.find(wave + "wave"); at != std::string::npos) text.replace(at, wave.size(), ": ");
  return fmt::format("step {}{}", step, text);
}

int show_schedule(const ScheduleCommand& command) {
  const ScenarioInput input = read_scenario(command.scenario, std::nullopt);
  if (command.tiles < 1 || command.tiles > kMostTiles) {
    throw InputError("command line", "--tiles", fmt::format("{} is outside [1, {}]", command.tiles, kMostTiles));
  }
  if (!command.masked.empty() && command.loop == "decode") {
    throw InputError("command line", "--masked", "the decode loop passes over no tile: leave it out");
  }
  const Scenario scenario = with_lds_options(input.scenario, command.lds);
  if (!scenario.lds.full_kv) {
    throw UnsupportedError("the loops load whole tiles, and without full_kv a stage holds one block: use full_kv");
  }
  const KVBufferConfig k = config_of(command, scenario, KOrV::k), v = config_of(command, scenario, KOrV::v);
  check_index("--wave", command.wave, k.constants().waves, "waves of the block");
  const std::vector<ScheduleStep> all = steps_of(command, k.constants(), v.constants());
  std::vector<ScheduleStep> steps = all;
  if (command.without) {
    check_index("--without", *command.without, std::ssize(steps), "steps of the loop");
    steps.erase(steps.begin() + *command.without);
  }

  const WaveIdx wave{command.wave};
  const std::int64_t k_copies = copies_per_load(k, wave), v_copies = copies_per_load(v, wave);
  std::cout << fmt::format(
      "{} loop over {} tile{} by {} waves. Wave {} issues {} copies per load of K and {} per load of V; its waits "
      "assume {} and "
      "{}\n\n",
      command.loop, command.tiles, command.tiles > 1 ? "s" : "", k.constants().waves, wave.value, k_copies, v_copies,
      k.constants().vm_instrs_per_load, v.constants().vm_instrs_per_load);
  show_steps(all, outstanding(steps, k_copies, v_copies), command.without);

  std::int64_t tried = 0, failed = 0;
  std::string first_failure;
  for (const Order& order : orders()) {
    const Block block(k, v, command.tiles);
    const std::vector<ScheduleFault> faults = run_schedule(steps, block.waves(), order.landing, order.choose);
    ++tried;
    if (faults.empty()) continue;
    if (failed++ == 0)
      first_failure = fmt::format("{}:\n           {}", order.text, fault_text(faults[0], command.without));
  }
  if (failed == 0) {
    std::cout << fmt::format("\nchecked    {} orders of waves and copies: every read got its own tile\n", tried);
    return kExitFine;
  }
  std::cout << fmt::format("\nfails      in {} of {} orders of waves and copies; the first: {}\n", failed, tried,
                           first_failure);
  return kExitCheckFailed;
}

}  // namespace

void add_lds_schedule(CLI::App& lds, Action& chosen) {
  const auto command = std::make_shared<ScheduleCommand>();
  CLI::App* schedule = lds.add_subcommand(
      "schedule", "Print the loop of copies, waits, barriers and reads, and run it in several orders to find races");
  schedule->add_option("SCENARIO", command->scenario, "Scenario file (JSON)")->required();
  schedule->add_option("--loop", command->loop, "Loop of the prefill kernel or of the decode kernel")
      ->check(CLI::IsMember(std::vector<std::string>{"prefill", "decode"}))
      ->capture_default_str();
  schedule->add_option("--tiles", command->tiles, fmt::format("Tiles of the loop, 1 to {}", kMostTiles))
      ->capture_default_str();
  add_numbers<std::int64_t>(*schedule, "--masked", command->masked,
                            "With --loop prefill: comma-separated tiles that are fully masked, such as 1,2");
  schedule
      ->add_option(
          "--count", command->count,
          "How many copies a wait leaves in flight if the waves copy different numbers of sub-tiles. newer: 0, so a "
          "wait is for all copies; seed: the rule of an older source revision, the largest count of any wave, so that "
          "waves with fewer copies do not wait (a race)")
      ->check(CLI::IsMember(std::vector<std::string>{"newer", "seed"}))
      ->capture_default_str();
  schedule->add_option("--wave", command->wave, "Wave whose copies in flight are printed, from 0")
      ->capture_default_str();
  schedule->add_option("--without", command->without,
                       "Number of a step of the printed loop to leave out, to see which read then fails");
  add_lds_options(*schedule, command->lds);
  add_examples(*schedule, {"kvscope lds schedule apps/scenarios/mla.json --tiles 2"});
  schedule->callback([command, &chosen] { chosen = [command] { return show_schedule(*command); }; });
}

}  // namespace kvscope::apps
