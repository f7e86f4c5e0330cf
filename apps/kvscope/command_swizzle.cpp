// kvscope swizzle table | solve: prints where a swizzle stores the chunks of a tile, or finds the swizzles without bank
// conflicts.
#include <fmt/format.h>

#include <array>
#include <charconv>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/fragment/tile_reads.h"
#include "core/smem/access_patterns.h"
#include "core/smem/swizzle_solver.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kChunk = 16;           // [bytes]
constexpr std::int64_t kMostRows = 4096;      // of a table
constexpr std::int64_t kMostRowBytes = 1024;  // of a table

struct SwizzleTableCommand {
  std::string swizzle;
  std::int64_t rows = 8;
  std::int64_t row_bytes = 128;
  std::int64_t dst = 0;
};

// "(3,4,3)" or "3,4,3" on bytes, or the name of a TMA mode.
Swizzle parse_swizzle(const std::string& text) {
  if (text == "none") return {0, 4, 3};
  if (text == "32B") return {1, 4, 3};
  if (text == "64B") return {2, 4, 3};
  if (text == "128B") return {3, 4, 3};
  std::array<int, 3> numbers{};
  const char* at = text.data();
  const char* const end = text.data() + text.size();
  const bool brackets = !text.empty() && text.front() == '(' && text.back() == ')';
  if (brackets) ++at;
  const char* const last = brackets ? end - 1 : end;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const auto [stop, error] = std::from_chars(at, last, numbers[i]);
    const bool more = i + 1 < numbers.size();
    if (error != std::errc() || (more ? stop == last || *stop != ',' : stop != last)) {
      throw InputError(
          "command line", "SWIZZLE",
          fmt::format("'{}' is not a swizzle: use none, 32B, 64B, 128B, or bits,base,shift on bytes such as 3,4,3",
                      text));
    }
    at = stop + 1;
  }
  return {numbers[0], numbers[1], numbers[2]};
}

void require(bool holds, const char* option, std::string message) {
  if (!holds) throw InputError("command line", option, std::move(message));
}

int show_table(const SwizzleTableCommand& command) {
  const Swizzle swizzle = parse_swizzle(command.swizzle);
  require(command.rows >= 1 && command.rows <= kMostRows, "--rows",
          fmt::format("{} is outside [1, {}]", command.rows, kMostRows));
  require(command.row_bytes >= kChunk && command.row_bytes <= kMostRowBytes && command.row_bytes % kChunk == 0,
          "--row-bytes", fmt::format("{} is not a multiple of 16 in [16, {}]", command.row_bytes, kMostRowBytes));
  require(command.dst >= 0 && command.dst % kChunk == 0, "--dst",
          fmt::format("{} is not a multiple of 16, from 0 on", command.dst));
  const std::int64_t chunks = command.row_bytes / kChunk;
  std::cout << fmt::format(
      "Swizzle{} on byte addresses, with a period of {} B. Offset of chunk c (16 B) of row r from "
      "the tile's first byte, {}\n\n  r |",
      swizzle.text(), swizzle.size(), command.dst);
  for (std::int64_t c = 0; c < chunks; ++c) std::cout << fmt::format(" {:>6}", fmt::format("c{}", c));
  std::cout << "\n----+" << std::string(static_cast<std::size_t>(7 * chunks), '-') << '\n';
  for (std::int64_t r = 0; r < command.rows; ++r) {
    std::cout << fmt::format("{:>3} |", r);
    for (std::int64_t c = 0; c < chunks; ++c) {
      const std::int64_t address = command.dst + r * command.row_bytes + c * kChunk;
      std::cout << fmt::format(" {:>6}", swizzle(address) - command.dst);
    }
    std::cout << '\n';
  }
  return kExitFine;
}

struct SolveCommand {
  std::int64_t rows = 64;
  std::int64_t row_bytes = 128;
  std::string read = "ldmatrix";
  std::string target = "nvidia";
  int width = 4;
  SolverBounds bounds;
};

AccessPattern pattern_of(const SolveCommand& command, const TileRows& tile) {
  const SharedTarget target = command.target == "gfx942"   ? SharedTarget::gfx942
                              : command.target == "gfx950" ? SharedTarget::gfx950
                                                           : SharedTarget::nvidia;
  if (command.read == "ldmatrix") {
    require(target == SharedTarget::nvidia, "--target",
            "ldmatrix is an instruction of NVIDIA GPUs: use --target nvidia");
    return ldmatrix_reads(LdmatrixUse::k_as_b, 2, tile);
  }
  if (command.read == "mfma32") return mfma_k_reads(Mfma::bf16_32x32x16, target, tile);
  if (command.read == "mfma16") return mfma_k_reads(Mfma::bf16_16x16x32, target, tile);
  if (command.read == "row") return row_pattern(target, command.width, tile, command.row_bytes);
  return column_pattern(target, command.width, tile, command.row_bytes);
}

// "nvidia, 32-bit"; "nvidia" if the line already names the instruction.
std::string_view banks_text(const AccessPattern& pattern) {
  const std::string_view profile = pattern.profile.name;
  const std::size_t comma = profile.find(", ");
  const bool named = comma != std::string::npos && pattern.name.starts_with(profile.substr(comma + 2));
  return named ? profile.substr(0, comma) : profile;
}

int solve(const SolveCommand& command) {
  const TileRows tile{command.rows, command.row_bytes};
  const std::array patterns{pattern_of(command, tile)};
  const LayoutSolutions solutions = solve_layout(tile, patterns, command.bounds);
  std::cout << fmt::format("read by {}; banks of {}\n", patterns[0].name, banks_text(patterns[0]))
            << to_text(solutions);
  return solutions.is_free() || !solutions.swizzles.empty() || !solutions.paddings.empty() ? kExitFine
                                                                                           : kExitCheckFailed;
}

}  // namespace

void add_swizzle(CLI::App& app, Action& chosen) {
  CLI::App* swizzle = app.add_subcommand(
      "swizzle", "Print a shared-memory swizzle as a table, or find those that avoid bank conflicts");
  swizzle->require_subcommand(1);

  const auto table_command = std::make_shared<SwizzleTableCommand>();
  CLI::App* table = swizzle->add_subcommand("table", "Print where a swizzle stores each 16-byte chunk of a tile");
  table
      ->add_option("SWIZZLE", table_command->swizzle,
                   "A swizzle mode of TMA (none, 32B, 64B, 128B), or bits,base,shift on byte addresses such as 3,4,3")
      ->required();
  table->add_option("--rows", table_command->rows, fmt::format("Rows of the tile, 1 to {}", kMostRows))
      ->capture_default_str();
  table
      ->add_option("--row-bytes", table_command->row_bytes,
                   fmt::format("Bytes per row, a multiple of 16 up to {}", kMostRowBytes))
      ->type_name("BYTES")
      ->capture_default_str();
  table->add_option("--dst", table_command->dst, "Shared address of the tile's first byte, a multiple of 16")
      ->type_name("BYTE")
      ->capture_default_str();
  add_examples(*table, {"kvscope swizzle table 128B", "kvscope swizzle table 2,4,3 --row-bytes 64 --rows 16"});
  table->callback([table_command, &chosen] { chosen = [table_command] { return show_table(*table_command); }; });

  const auto solve_command = std::make_shared<SolveCommand>();
  CLI::App* solver = swizzle->add_subcommand(
      "solve", "Find the swizzles and paddings that make reads of a tile free of bank conflicts");
  solver->add_option("--rows", solve_command->rows, "Rows of the tile")->capture_default_str();
  solver->add_option("--row-bytes", solve_command->row_bytes, "Bytes per row")
      ->type_name("BYTES")
      ->capture_default_str();
  solver
      ->add_option(
          "--read", solve_command->read,
          "Read pattern: ldmatrix.x4 (NVIDIA), the K operand of an MFMA instruction (mfma32: 32x32x16, mfma16: "
          "16x16x32), or one row or column across the lanes")
      ->check(CLI::IsMember(std::vector<std::string>{"ldmatrix", "mfma32", "mfma16", "row", "column"}))
      ->capture_default_str();
  solver->add_option("--width", solve_command->width, "With --read row or column: bytes that a lane reads")
      ->type_name("BYTES")
      ->check(CLI::IsMember(std::vector<int>{1, 2, 4, 8, 16}))
      ->capture_default_str();
  solver->add_option("--target", solve_command->target, "GPU whose banks are modeled")
      ->check(CLI::IsMember(std::vector<std::string>{"nvidia", "gfx942", "gfx950"}))
      ->capture_default_str();
  solver
      ->add_option("--chunk", solve_command->bounds.chunk,
                   "Bytes that a swizzle keeps together; 16 for tiles that TMA or ldmatrix touch")
      ->type_name("BYTES")
      ->capture_default_str();
  solver->add_option("--max-padding", solve_command->bounds.max_padding, "Maximum padding per row to try")
      ->type_name("BYTES")
      ->capture_default_str();
  add_examples(*solver, {"kvscope swizzle solve --rows 64 --row-bytes 128",
                         "kvscope swizzle solve --read mfma32 --target gfx950 --row-bytes 64 --max-padding 16"});
  solver->callback([solve_command, &chosen] { chosen = [solve_command] { return solve(*solve_command); }; });
  add_examples(*swizzle, {"kvscope swizzle table 128B"});
}

}  // namespace kvscope::apps
