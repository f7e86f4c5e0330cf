// kvscope trace show FILE, kvscope trace diff A B: prints a recorded run, or the first difference of two runs.
#include <fmt/format.h>

#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/commands.h"
#include "core/base/errors.h"
#include "core/base/json.h"
#include "core/trace/diff.h"
#include "core/trace/trace_reader.h"

namespace kvscope::apps {
namespace {

struct ShowCommand {
  std::string file;
  std::optional<std::int64_t> step;
  std::optional<std::string> kind;
  std::optional<std::int64_t> seq;
  std::vector<std::int64_t> events;  // first and last, or nothing
  bool verify = false;
  bool json = false;
  trace::TraceLimits limits;
};

// Metadata and counts, without the events.
void print_summary(const trace::TraceReader& reader) {
  std::cout << fmt::format("trace      {}\nproducer   {}\ndetail     {}\nsteps      {}\nevents     {}\n", reader.path(),
                           reader.meta().contains("producer") ? reader.meta().at("producer") : "unknown",
                           trace::detail_name(reader.detail()), reader.rows() - 1, reader.events());
  for (std::size_t kind = 0; kind < trace::kKinds; ++kind) {
    if (reader.events_of_kind(kind) > 0) {
      std::cout << fmt::format("  {:<18} {:>10}\n", trace::kind_name(kind), reader.events_of_kind(kind));
    }
  }
}

json::Value to_json(std::int64_t number, const trace::Event& event) {
  json::Value value;
  value.set("event", number);
  value.set("kind", trace::kind_name(event.index()));
  for (const trace::NamedNumber& field : trace::named_fields(event)) value.set(field.name, field.value);
  return value;
}

// The sequence of an event; nullopt for events of no sequence, such as step_began.
std::optional<std::int64_t> sequence_of(const trace::Event& event) {
  for (const trace::NamedNumber& field : trace::named_fields(event)) {
    if (field.name == "seq") return field.value;
  }
  return std::nullopt;
}

// The summary, or the events of one step or of all, one line each.
int show(const ShowCommand& command) {
  trace::TraceReader reader(command.file, command.limits);
  std::optional<std::size_t> kind;
  if (command.kind) kind = trace::find_kind(*command.kind);
  if (command.verify) {
    reader.verify_all();
    std::cout << fmt::format("{}: all {} events match their checksums\n", reader.path(), reader.events());
    return kExitFine;
  }
  if (!command.step && !command.kind && !command.seq && command.events.empty() && !command.json) {
    print_summary(reader);
    return kExitFine;
  }
  const auto print = [&](std::int64_t number, const trace::Event& event) {
    if (kind && event.index() != *kind) return;
    if (command.seq && sequence_of(event) != command.seq) return;
    std::cout << (command.json ? json::dump(to_json(number, event), -1) + "\n"
                               : fmt::format("{:>8}  {}\n", number, trace::to_text(event)));
  };
  if (!command.events.empty()) {
    const std::int64_t first = command.events[0], last = command.events[1];
    check_index("--events: event", first, reader.events());
    check_index("--events: event", last, reader.events());
    if (last < first) {
      throw InputError("command line", "--events",
                       fmt::format("{} comes after {}: give the first one first", first, last));
    }
    std::int64_t number = first;
    for (const trace::Event& event : reader.events_in(first, last + 1)) print(number++, event);
    return kExitFine;
  }
  if (!command.step) {
    reader.for_each(print);
    return kExitFine;
  }
  const std::optional<std::int64_t> row = reader.find_step(StepIdx{*command.step});
  if (!row) {
    throw InputError("command line", "--step",
                     fmt::format("{} is not in the trace: it has {} steps, and -1 is what came before the first",
                                 *command.step, reader.rows() - 1));
  }
  std::int64_t number = reader.span(*row).first_event;
  for (const trace::Event& event : reader.events_of_row(*row)) print(number++, event);
  return kExitFine;
}

struct DiffCommand {
  std::string left, right;
  std::vector<std::string> kinds;
  std::vector<std::int64_t> tiles;  // of both, or of each
  trace::TraceLimits limits;
};

int diff(const DiffCommand& command) {
  trace::TraceReader left(command.left, command.limits);
  trace::TraceReader right(command.right, command.limits);
  trace::DiffOptions options;
  for (const std::string& kind : command.kinds) options.kinds.push_back(*trace::find_kind(kind));
  if (!command.tiles.empty()) {
    options.left_tile = command.tiles.front();
    options.right_tile = command.tiles.back();
  }
  const trace::TraceDiff result = trace::diff_traces(left, right, options);
  std::cout << trace::to_text(result, command.left, command.right);
  return result.same_events() ? kExitFine : kExitCheckFailed;
}

std::vector<std::string> kind_names() {
  std::vector<std::string> names;
  for (std::size_t kind = 0; kind < trace::kKinds; ++kind) names.emplace_back(trace::kind_name(kind));
  return names;
}

void add_limits(CLI::App& app, trace::TraceLimits& limits) {
  const auto add = [&app](const char* option, std::int64_t& limit, const char* text) {
    app.add_option(option, limit, text)->check(at_least(1))->capture_default_str();
  };
  add("--max-steps", limits.steps, "Reject a trace of more steps; a step takes 40 bytes of memory");
  add("--max-events", limits.events, "Reject a trace of more events");
  add("--max-step-events", limits.step_events, "Reject a trace with more events in one step, which is read as a whole");
  add("--max-text", limits.text_bytes, "Reject a trace with more bytes of metadata, such as its scenario");
}

}  // namespace

void add_trace(CLI::App& app, Action& chosen) {
  CLI::App* trace_app = app.add_subcommand("trace", "Print the events of a recorded run, or compare two runs");
  trace_app->require_subcommand(1);
  const std::string recorded = "kvscope run apps/scenarios/mla.json --out run --trace full";

  const auto command = std::make_shared<ShowCommand>();
  CLI::App* show_app = trace_app->add_subcommand("show", "Print a summary of a trace, or its events, one per line");
  show_app->add_option("FILE", command->file, "Trace file (.kvt)")->required();
  show_app->add_option("--step", command->step, "Print the events of this engine step; -1: before the first step");
  show_app->add_option("--kind", command->kind, "Print events of this kind only")
      ->type_name("KIND")
      ->check(CLI::IsMember(kind_names()));
  show_app->add_option("--seq", command->seq, "Print events of this sequence only")->check(at_least(0));
  show_app->add_option("--events", command->events, "Print the events numbered FIRST to LAST, such as --events 54 62")
      ->type_name("FIRST LAST")
      ->expected(2)
      ->excludes("--step");
  show_app->add_flag("--verify", command->verify, "Check every event against the checksums of the file")
      ->excludes("--step", "--kind", "--seq", "--events");
  show_app->add_flag("--json", command->json, "Print one JSON object per event");
  add_limits(*show_app, command->limits);
  add_examples(*show_app,
               {recorded, "kvscope trace show run/trace.kvt", "kvscope trace show run/trace.kvt --step 3 --seq 0"});
  show_app->callback([command, &chosen] { chosen = [command] { return show(*command); }; });

  const auto files = std::make_shared<DiffCommand>();
  CLI::App* diff_app =
      trace_app->add_subcommand("diff", "Print the first event at which two traces differ; exit code 1 if they differ");
  diff_app->add_option("A", files->left, "Trace file (.kvt)")->required();
  diff_app->add_option("B", files->right, "Trace file (.kvt)")->required();
  add_numbers<std::int64_t>(
      *diff_app, "--tile", files->tiles,
      "Compare one tile only: tile N of both traces, or tile N of A with tile M of B; the first is 0", {.most = 2})
      ->type_name("N[,M]");
  diff_app->add_option("--kinds", files->kinds, "Compare events of these kinds only, comma-separated")
      ->type_name("KIND,...")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->check(CLI::IsMember(kind_names()));
  add_limits(*diff_app, files->limits);
  add_examples(*diff_app,
               {recorded, "kvscope trace diff run/trace.kvt run/trace.kvt --kinds tokens_written,block_copied"});
  diff_app->callback([files, &chosen] { chosen = [files] { return diff(*files); }; });
  add_examples(*trace_app, {recorded, "kvscope trace show run/trace.kvt"});
}

}  // namespace kvscope::apps
