// kvscope layout EXPR: prints the sizes of a layout expression and the offset of each coordinate. Its subcommands
// concern the cache layouts of engines (command_layout_detect.cpp).
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <iostream>
#include <memory>
#include <string>
#include <string_view>

#include "apps/common/cli.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/base/nearest_name.h"
#include "core/golden/layouts/layout_description.h"
#include "core/layout/layout_expr.h"

namespace kvscope::apps {
namespace {

using layout::Layout;

constexpr std::int64_t kTableCoordinates = 1024;      // a screen or two
constexpr std::int64_t kTableColumns = 64;            // the bf16 elements of a 128-byte row, the widest usual tile
constexpr std::int64_t kMostCoordinates = 1'000'000;  // of --all and of --json's offsets

struct LayoutOptions {
  std::string expression;
  bool json = false;
  bool all = false;
};

std::size_t width_of(const Layout& l) {
  std::int64_t widest = l.swizzle ? l.swizzle->size() : 0;  // a swizzled offset is below cosize + period
  widest += std::max<std::int64_t>(layout::cosize(l), 1);
  return std::to_string(widest - 1).size();
}

// Rank 2: rows are the first mode, columns the second, as CuTe prints a matrix.
std::string matrix(const Layout& l) {
  const std::int64_t rows = layout::size(l.shape.items[0]);
  const std::int64_t columns = layout::size(l.shape.items[1]);
  const std::size_t row_width = std::max<std::size_t>(std::to_string(rows - 1).size(), 3);
  const std::size_t width = std::max(width_of(l), std::to_string(columns - 1).size());
  std::string out = fmt::format("{:>{}} |", "r\\c", row_width);
  for (std::int64_t c = 0; c < columns; ++c) out += fmt::format(" {:>{}}", c, width);
  out += '\n' + std::string(row_width + 1, '-') + '+' +
         std::string(static_cast<std::size_t>(columns) * (width + 1), '-') + '\n';
  for (std::int64_t r = 0; r < rows; ++r) {
    out += fmt::format("{:>{}} |", r, row_width);
    for (std::int64_t c = 0; c < columns; ++c) out += fmt::format(" {:>{}}", layout::offset_of(l, r + c * rows), width);
    out += '\n';
  }
  return out;
}

// The nested coordinate of an integer one: the leftmost mode counts fastest.
std::string coordinate_text(const layout::IntTuple& shape, std::int64_t& rest) {
  if (shape.leaf) {
    const std::int64_t here = rest % shape.value;
    rest /= shape.value;
    return std::to_string(here);
  }
  std::string out = "(";
  for (const layout::IntTuple& item : shape.items) out += (out.size() > 1 ? "," : "") + coordinate_text(item, rest);
  return out + ")";
}

std::string listing(const Layout& l) {
  std::string out;
  for (std::int64_t i = 0; i < layout::size(l); ++i) {
    std::int64_t rest = i;
    out += fmt::format("{:>6}  {} -> {}\n", i, coordinate_text(l.shape, rest), layout::offset_of(l, i));
  }
  return out;
}

void print_text(const Layout& l, bool all) {
  const std::int64_t count = layout::size(l);
  std::cout << fmt::format(
      "layout     {}\nsize       {}\ncosize     {}\nrank       {}\ndepth      {}\ninjective  {}\n\n", layout::text(l),
      count, layout::cosize(l), layout::rank(l.shape), layout::depth(l.shape),
      layout::is_injective(l) ? "yes" : "no: two coordinates share an offset");
  if (count > kTableCoordinates && !all) {
    std::cout << fmt::format("{} coordinates, table left out: --all prints it\n", count);
  } else if (layout::rank(l.shape) == 2 && layout::size(l.shape.items[1]) <= kTableColumns) {
    std::cout << matrix(l);
  } else {
    std::cout << listing(l);
  }
}

void print_json(const Layout& l) {
  json::Value out;
  out.set("layout", layout::text(l));
  out.set("size", layout::size(l));
  out.set("cosize", layout::cosize(l));
  out.set("rank", layout::rank(l.shape));
  out.set("depth", layout::depth(l.shape));
  out.set("injective", layout::is_injective(l));
  json::Array offsets;  // of the integer coordinates 0, 1, ...
  for (std::int64_t i = 0; i < layout::size(l); ++i) offsets.emplace_back(layout::offset_of(l, i));
  out.set("offsets", std::move(offsets));
  std::cout << json::dump(out) << '\n';
}

// A word in the place of an expression: the name of an engine's layout, or a command that does not exist.
void check_expression(const std::string& text) {
  const auto is_of_word = [](unsigned char c) { return std::isalpha(c) != 0 || c == '_'; };
  if (!std::ranges::all_of(text, is_of_word)) return;
  if (golden::find_layout(text) != nullptr) {
    throw InputError("command line", "EXPR",
                     fmt::format("'{0}' is the layout of a cache: 'kvscope layout show {0}' prints it", text));
  }
  const std::array<std::string_view, 4> commands{"list", "show", "detect", "diff"};
  const std::string_view near = nearest_name(text, commands);
  throw InputError(
      "command line", "EXPR",
      fmt::format("'{}' is no layout expression such as '(8,4):(4,1)', and no command of 'kvscope layout'{}", text,
                  near.empty() ? fmt::format(": these are {}", fmt::join(commands, ", "))
                               : fmt::format(": did you mean \"{}\"?", near)));
}

int show_layout(const LayoutOptions& options) {
  check_expression(options.expression);
  const Layout l = layout::parse_layout(options.expression);
  if ((options.all || options.json) && layout::size(l) > kMostCoordinates) {
    throw InputError(
        "command line", "EXPR",
        fmt::format(
            "{} coordinates are more than the {} that are listed: leave out --all and --json, or ask for a tile of it",
            layout::size(l), kMostCoordinates));
  }
  if (options.json) {
    print_json(l);
  } else {
    print_text(l, options.all);
  }
  return 0;
}

}  // namespace

void add_layout(CLI::App& app, Action& chosen) {
  const auto options = std::make_shared<LayoutOptions>();
  CLI::App* command = app.add_subcommand(
      "layout", "Print the offset of every coordinate of a CuTe layout expression, or the cache layouts of engines");
  add_layout_files(*command, chosen);
  command->add_option("EXPR", options->expression,
                      "Layout SHAPE:STRIDE in CuTe's notation, such as '(8,4):(4,1)', or with a swizzle in front: "
                      "'Sw<3,4,3> o (8,64):(64,1)'");
  command->add_flag("--json", options->json, "Print JSON, including all offsets");
  command->add_flag("--all", options->all,
                    fmt::format("Print the table even if it has more than {} coordinates", kTableCoordinates));
  add_examples(*command, {"kvscope layout '(8,4):(4,1)'", "kvscope layout --json '((2,2),4):((1,8),2)'"});
  command->callback([command, options, &chosen] {
    if (!command->get_subcommands().empty()) return;
    if (command->count("EXPR") == 0) throw CLI::RequiredError("A subcommand");  // prints the help page
    chosen = [options] { return show_layout(*options); };
  });
}

}  // namespace kvscope::apps
