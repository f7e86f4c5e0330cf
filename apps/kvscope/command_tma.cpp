// kvscope tma check | copy | gather4 MAP: checks a tensor map against every rule, or prints the bytes that a copy
// writes to shared memory. kvscope tma engines SCENARIO: lists the engines whose kernels could load its K and V by TMA.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstddef>
#include <iostream>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/common/scenario_input.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/golden/bundle/npy.h"
#include "core/smem/shared_image.h"
#include "core/staging/tma/eligibility.h"
#include "core/tma/box_copy.h"
#include "core/tma/box_plan.h"
#include "core/tma/gather4.h"
#include "core/tma/global_memory.h"
#include "core/tma/tensor_map_json.h"
#include "core/tma/tensor_map_rules.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostShown = 64;           // chunks of a box
constexpr std::int64_t kMostShared = 1 << 20;     // [bytes] more than any block has
constexpr std::int64_t kMostFileBytes = 1 << 20;  // [bytes] of a map

std::string slow_first(std::span<const std::uint64_t> fast_first) {
  return fmt::format("[{}]", fmt::join(std::vector(fast_first.rbegin(), fast_first.rend()), ", "));
}

std::string map_text(const TensorMapFile& file) {
  const TensorMap& map = file.map;
  const auto rank = static_cast<std::size_t>(map.rank);
  std::vector<std::uint64_t> box(map.box.begin(), map.box.begin() + map.rank);
  const std::string strides =
      rank > 1 ? fmt::format("strides {} B, ", slow_first(std::span(map.strides).first(rank - 1))) : "";
  return fmt::format("{} {}, {}box {}, {}, on {}", name(map.data_type), slow_first(std::span(map.dims).first(rank)),
                     strides, slow_first(box), name(map.swizzle), name(file.target));
}

TensorMapFile read_map(const std::string& path) {
  return parse_tensor_map(read_file(path, kMostFileBytes), path);
}

// The box of a legal map; for a map that only hardware supports, why it is not supported here.
std::string box_text(const TensorMapFile& file) {
  const BoxSwitches switches{.target = file.target};
  try {
    require_box_copyable(file.map, BoxDirection::load, switches);
  } catch (const UnsupportedError& error) {
    return fmt::format("box        none: {}\n", error.what());
  }
  const BoxShape shape = box_shape(file.map, switches);
  const std::string rows = shape.rows == 1 ? fmt::format("1 row of {} B", shape.inner)
                                           : fmt::format("{} rows of {} B, {} B apart in shared memory", shape.rows,
                                                         shape.inner, shape.pitch);
  return fmt::format("box        {}: reserve {} B, expect {} B\n", rows, shape.window_bytes, shape.tx_bytes);
}

struct TmaCheckCommand {
  std::string path;
};

int check_map(const TmaCheckCommand& command) {
  const TensorMapFile file = read_map(command.path);
  const TensorMapReport report = check_tensor_map(file.map, file.target);
  std::cout << fmt::format("map        {}\n", map_text(file));
  for (const BrokenMapRule& broken : report.broken) {
    std::cout << fmt::format("broken     {} {}: {}\n", name(broken.rule), broken.where, broken.message);
  }
  for (const Fault& note : report.notes) std::cout << fmt::format("note       {}: {}\n", note.where, note.message);
  if (!report.broken.empty()) {
    std::cout << fmt::format("rejected   {} broken rule{}\n", report.broken.size(),
                             report.broken.size() > 1 ? "s" : "");
    return kExitCheckFailed;
  }
  std::cout << box_text(file) << "accepted   every rule holds\n";
  return kExitFine;
}

struct CopyCommand {
  std::string path;
  std::string data;
  std::string out;
  std::optional<std::vector<std::int32_t>> at;
  std::optional<std::int64_t> dst;
  std::optional<std::int64_t> byte;
  bool all = false;
};

TmaCoord coordinates(const CopyCommand& command, const TensorMapFile& file) {
  if (!command.at) {
    if (file.at) return *file.at;
    throw InputError("command line", "--at",
                     "is required, because the map has no copy.at: give the coordinates of the box, fastest dimension "
                     "first: --at 0,17");
  }
  if (command.at->size() != static_cast<std::size_t>(file.map.rank)) {
    throw InputError("command line", "--at",
                     fmt::format("has {} numbers, the map has {} dimensions", command.at->size(), file.map.rank));
  }
  TmaCoord at;
  at.rank = file.map.rank;
  std::ranges::copy(*command.at, at.at.begin());
  return at;
}

void show_chunks(const std::vector<BoxChunk>& chunks, bool all) {
  std::cout << "\n  row  column        global   shared\n";
  const auto shown = all ? std::ssize(chunks) : std::min<std::int64_t>(std::ssize(chunks), kMostShown);
  for (std::int64_t i = 0; i < shown; ++i) {
    const BoxChunk& chunk = chunks[static_cast<std::size_t>(i)];
    std::cout << fmt::format("{:>5} {:>7} {:>13} {:>8}\n", chunk.row, chunk.column,
                             chunk.filled() ? "filled" : fmt::format("0x{:x}", chunk.global), chunk.shared);
  }
  if (shown < std::ssize(chunks)) {
    std::cout << fmt::format("{} of {} chunks of 16 B shown: --all prints the rest\n", shown, chunks.size());
  }
}

// The way back: from a byte of shared memory to the element of the tile and of the tensor.
void show_byte(const TensorMap& map, const TmaCoord& at, std::int64_t dst, std::int64_t byte,
               const BoxSwitches& switches) {
  const auto rank = static_cast<std::size_t>(map.rank);
  std::cout << fmt::format("byte       {}: ", byte);
  if (const auto found = box_element_at(map, at, dst, byte, switches)) {
    std::cout << fmt::format("byte {} of tile element ({}), tensor position ({}), {}\n", found->byte,
                             fmt::join(std::span(found->tile).first(rank), ", "),
                             fmt::join(std::span(found->position).first(rank), ", "),
                             found->global ? fmt::format("global 0x{:x}", *found->global) : "outside: filled");
  } else {
    std::cout << "no element: outside the window, or padding behind a row shorter than the swizzle\n";
  }
}

int copy_box(const CopyCommand& command) {
  const TensorMapFile file = read_map(command.path);
  check_tensor_map(file.map, file.target).throw_if_broken(command.path);
  const TmaCoord at = coordinates(command, file);
  const std::int64_t dst = command.dst.value_or(file.dst);
  check_index("--dst", dst, kMostShared, "byte addresses of shared memory");
  if (command.byte) check_index("--byte", *command.byte, kMostShared, "byte addresses of shared memory");
  const BoxSwitches switches{.target = file.target};
  require_box_copyable(file.map, BoxDirection::load, switches);
  golden::Tensor data = golden::read_npy(command.data);
  GlobalMemory memory;
  memory.add(command.data, file.map.base, data.bytes);
  SharedImage image(dst + box_shape(file.map, switches).window_bytes);
  const BoxLoad load = load_box(file.map, at, memory, image, dst, CopyIdx{0}, switches);
  if (!command.out.empty()) {
    const std::span<const std::byte> window = image.read(dst, load.window_bytes);
    golden::write_npy(command.out, {DType::u8, {load.window_bytes}, {window.begin(), window.end()}});
  }
  std::cout << fmt::format(
      "map        {}\ncopy       box at ({}) to shared address {}\n"
      "barrier    {} B expected, {} B of them filled\nwindow     {} B\n",
      map_text(file), fmt::join(std::span(at.at).first(static_cast<std::size_t>(at.rank)), ", "), dst, load.tx_bytes,
      load.filled_bytes, load.window_bytes);
  if (!command.out.empty()) {
    std::cout << fmt::format("written    {}: {} bytes from shared address {} on, 0xcd in bytes that no copy wrote\n",
                             command.out, load.window_bytes, dst);
  }
  if (command.byte) {
    show_byte(file.map, at, dst, *command.byte, switches);
  } else {
    show_chunks(box_chunks(file.map, at, dst, switches), command.all);
  }
  return kExitFine;
}

struct GatherCommand {
  std::string path;
  std::string data;
  std::string out;
  std::vector<std::int32_t> rows;
  std::int32_t column = 0;
  std::int64_t dst = 0;
  bool by_loads = false;
  bool all = false;
};

int gather_rows(const GatherCommand& command) {
  const TensorMapFile file = read_map(command.path);
  check_tensor_map(file.map, file.target).throw_if_broken(command.path);
  if (command.rows.size() != 4) {
    throw InputError("command line", "--rows", fmt::format("has {} numbers, a gather takes 4", command.rows.size()));
  }
  check_index("--dst", command.dst, kMostShared, "byte addresses of shared memory");
  const BoxSwitches switches{.target = file.target};
  if (file.target < TmaTarget::sm_100 && !command.by_loads) {
    throw UnsupportedError(
        fmt::format("{} has no gather4 instruction: use --by-loads, or a map with target sm_100", name(file.target)));
  }
  const TmaCoord at{command.column, command.rows[0], command.rows[1], command.rows[2], command.rows[3]};
  const std::vector<BoxChunk> chunks = gather4_chunks(file.map, at, command.dst, switches);
  golden::Tensor data = golden::read_npy(command.data);
  GlobalMemory memory;
  memory.add(command.data, file.map.base, data.bytes);
  const std::int64_t window = 4 * box_shape(file.map, switches).window_bytes;
  SharedImage image(command.dst + window);
  std::int64_t expected = 0, filled = 0;
  const auto add = [&](const BoxLoad& load) {
    expected += load.tx_bytes;
    filled += load.filled_bytes;
  };
  if (command.by_loads) {
    for (const BoxLoad& load : gather4_by_loads(file.map, at, memory, image, command.dst, CopyIdx{0}, switches)) {
      add(load);
    }
  } else {
    add(gather4(file.map, at, memory, image, command.dst, CopyIdx{0}, switches));
  }
  if (!command.out.empty()) {
    const std::span<const std::byte> bytes = image.read(command.dst, window);
    golden::write_npy(command.out, {DType::u8, {window}, {bytes.begin(), bytes.end()}});
  }
  std::cout << fmt::format(
      "map        {}\ngather     rows {} from column {} to shared address {}, by {}\n"
      "barrier    {} B expected, {} B of them filled\nwindow     {} B\n",
      map_text(file), fmt::join(command.rows, ", "), command.column, command.dst,
      command.by_loads ? "four loads" : "one instruction", expected, filled, window);
  if (!command.out.empty()) {
    std::cout << fmt::format("written    {}: {} bytes from shared address {} on, 0xcd in bytes that no copy wrote\n",
                             command.out, window, command.dst);
  }
  show_chunks(chunks, command.all);
  return kExitFine;
}

struct EnginesCommand {
  std::string scenario;
  std::int64_t query_tokens = 1;
};

int show_engines(const EnginesCommand& command) {
  const ScenarioInput input = read_scenario(command.scenario, std::nullopt);
  for (const EngineVerdict& verdict : tma_eligibility(input.scenario, command.query_tokens)) {
    std::cout << to_text(verdict) << '\n';
  }
  return kExitFine;
}

}  // namespace

void add_tma(CLI::App& app, Action& chosen) {
  CLI::App* tma = app.add_subcommand("tma", "Check a tensor map, simulate a copy, list the engines that could use TMA");
  tma->require_subcommand(1);
  const std::string all = fmt::format("Print all 16-byte chunks, not only the first {}", kMostShown);

  const auto check_command = std::make_shared<TmaCheckCommand>();
  CLI::App* checker =
      tma->add_subcommand("check", "List the rules that a tensor map breaks, or its box if it breaks none");
  checker->add_option("MAP", check_command->path, "Tensor map (JSON)")->required();
  add_examples(*checker, {"kvscope tma check apps/examples/rows.json"});
  checker->callback([check_command, &chosen] { chosen = [check_command] { return check_map(*check_command); }; });

  const auto copy_command = std::make_shared<CopyCommand>();
  CLI::App* copier =
      tma->add_subcommand("copy", "Copy one box, and print the source and the destination of every 16 bytes");
  copier->add_option("MAP", copy_command->path, "Tensor map (JSON)")->required();
  copier
      ->add_option("--data", copy_command->data,
                   "Global memory from the map's base address on: the bytes of an array (.npy)")
      ->required()
      ->type_name("FILE");
  add_numbers<std::int32_t>(*copier, "--at", copy_command->at,
                            "Coordinates of the box, fastest dimension first, such as 0,17 [default: those in MAP]");
  copier->add_option("--dst", copy_command->dst, "Shared address of the first byte [default: the one in MAP]")
      ->type_name("BYTE");
  copier->add_option("--out", copy_command->out, "Write the copied bytes to this file (.npy)")
      ->type_name("FILE")
      ->check(writes_file());
  copier
      ->add_option("--byte", copy_command->byte, "Shared address: print the element at this byte instead of the chunks")
      ->type_name("BYTE");
  copier->add_flag("--all", copy_command->all, all);
  add_examples(*copier, {"kvscope stage apps/scenarios/mla.json --out bytes.npy    # any array of 2560 bytes or more",
                         "kvscope tma copy apps/examples/rows.json --data bytes.npy --at 0,16"});
  copier->callback([copy_command, &chosen] { chosen = [copy_command] { return copy_box(*copy_command); }; });

  const auto gather_command = std::make_shared<GatherCommand>();
  CLI::App* gatherer = tma->add_subcommand(
      "gather4", "Copy four rows in any order, and print the source and the destination of every 16 bytes");
  gatherer->add_option("MAP", gather_command->path, "Tensor map (JSON) of rank 2 with a box of one row")->required();
  gatherer
      ->add_option("--data", gather_command->data,
                   "Global memory from the map's base address on: the bytes of an array (.npy)")
      ->required()
      ->type_name("FILE");
  add_numbers<std::int32_t>(*gatherer, "--rows", gather_command->rows,
                            "The four rows, such as 5,-1,19,3; a row outside of the tensor is filled instead of copied")
      ->type_name("N,N,N,N")
      ->required();
  gatherer->add_option("--column", gather_command->column, "First element of each row that is copied")
      ->capture_default_str();
  gatherer->add_option("--dst", gather_command->dst, "Shared address of the first byte")
      ->type_name("BYTE")
      ->capture_default_str();
  gatherer->add_flag("--by-loads", gather_command->by_loads,
                     "Copy with four loads, as on sm_90, which has no gather4 instruction");
  gatherer->add_option("--out", gather_command->out, "Write the copied bytes to this file (.npy)")
      ->type_name("FILE")
      ->check(writes_file());
  gatherer->add_flag("--all", gather_command->all, all);
  add_examples(*gatherer, {"kvscope stage apps/scenarios/mla.json --out bytes.npy    # any array of 2560 bytes or more",
                           "kvscope tma gather4 apps/examples/one_row.json --data bytes.npy --rows 5,-1,19,3"});
  gatherer->callback([gather_command, &chosen] { chosen = [gather_command] { return gather_rows(*gather_command); }; });

  add_tma_barrier(*tma, chosen);

  const auto engines_command = std::make_shared<EnginesCommand>();
  CLI::App* engines =
      tma->add_subcommand("engines", "List the engines whose kernels could load a scenario's K and V by TMA, and why");
  engines->add_option("SCENARIO", engines_command->scenario, "Scenario file (JSON)")->required();
  engines
      ->add_option("--query-tokens", engines_command->query_tokens,
                   "Query tokens of a sequence per step; 1 is decoding, more is prefill")
      ->capture_default_str();
  add_examples(*engines, {"kvscope tma engines apps/scenarios/mla.json"});
  engines->callback(
      [engines_command, &chosen] { chosen = [engines_command] { return show_engines(*engines_command); }; });
  add_examples(*tma, {"kvscope tma check apps/examples/rows.json"});
}

}  // namespace kvscope::apps
