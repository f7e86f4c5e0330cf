// kvscope fragment list | table NAME: the lane and register of each element of a tile, for each supported instruction.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <string>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "core/fragment/fragment_catalog.h"
#include "core/fragment/fragment_table.h"

namespace kvscope::apps {
namespace {

int list_fragments() {
  for (const CatalogedFragment& entry : fragment_catalog()) {
    const FragmentMap map = entry.make();
    const FragmentInfo& info = map.info();
    std::cout << fmt::format("{:<22} {:>3} x {:<3} {:>3} lanes x {:>3} elements   {}\n", entry.name, info.rows,
                             info.columns, info.lanes, info.elements, info.name);
  }
  return kExitFine;
}

struct FragmentTableCommand {
  std::string name;
  TableWindow window;
  bool markdown = false;
};

int show_table(const FragmentTableCommand& command) {
  const FragmentMap map = cataloged_fragment("command line", command.name);
  const FragmentInfo& info = map.info();
  const std::string table =
      fragment_table(map, command.markdown ? TableForm::markdown : TableForm::text, command.window);
  if (!command.markdown) {
    std::cout << fmt::format("{} rows ({}) x {} columns ({}), {} lanes, {} elements a lane\n\n", info.rows,
                             info.row_name, info.columns, info.column_name, info.lanes, info.elements);
  }
  std::cout << table;
  return kExitFine;
}

}  // namespace

void add_fragment(CLI::App& app, Action& chosen) {
  CLI::App* fragment =
      app.add_subcommand("fragment", "Show which lane and register holds each element of a matrix instruction's tile");
  fragment->require_subcommand(1);
  CLI::App* list = fragment->add_subcommand("list", "List the fragments and their sizes");
  add_examples(*list, {"kvscope fragment list"});
  list->callback([&chosen] { chosen = list_fragments; });
  const auto command = std::make_shared<FragmentTableCommand>();
  CLI::App* table =
      fragment->add_subcommand("table", "Print a fragment as a table of T<lane>.<register>, one per element");
  table->add_option("NAME", command->name, "Name of a fragment, as 'kvscope fragment list' prints it")->required();
  table->add_option("--first-row", command->window.first_row, "First row to print")->capture_default_str();
  table->add_option("--rows", command->window.rows, "Number of rows to print; -1: all that follow")
      ->check(at_least(-1))
      ->capture_default_str();
  table->add_option("--first-column", command->window.first_column, "First column to print")->capture_default_str();
  table->add_option("--columns", command->window.columns, "Number of columns to print; -1: all that follow")
      ->check(at_least(-1))
      ->capture_default_str();
  table->add_flag("--markdown", command->markdown, "Print a Markdown table");
  add_examples(*table, {"kvscope fragment table mma.m16n8k16.c",
                        "kvscope fragment table wgmma.m64n64.d --first-row 15 --rows 3 --columns 9"});
  table->callback([command, &chosen] { chosen = [command] { return show_table(*command); }; });
  add_examples(*fragment, {"kvscope fragment table mma.m16n8k16.c"});
}

}  // namespace kvscope::apps
