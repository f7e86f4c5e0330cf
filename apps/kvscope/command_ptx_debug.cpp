// kvscope ptx debug FILE: steps a kernel forward and backward, by commands on standard input.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "apps/common/cli.h"
#include "apps/common/faults.h"
#include "apps/common/help_page.h"
#include "apps/kvscope/ptx_commands.h"
#include "apps/kvscope/ptx_launch.h"
#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "core/base/report.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/debug/controlled_run.h"
#include "gpu/virtual/debug/state_text.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/warp/residents.h"

namespace kvscope::apps {
namespace {

constexpr std::int64_t kMostBytes = 4096;  // of one watchpoint, and of one x

// The answer to `help`, and a section of --help.
const std::vector<std::string> kHelp = {
    "run             continue to the next breakpoint, watchpoint or report, or to the end",
    "step [N]        execute one warp instruction, or N, of whichever warp is next",
    "warp            continue to the next instruction of the same warp",
    "line            continue to the next source line of the same warp",
    "over            the same, without stopping in functions that the line calls",
    "barrier         continue until a barrier or a phase of an mbarrier completes",
    "event           continue to the next effect that other threads can observe, such as a store",
    "report          continue to the next report",
    "back [N]        go back by one warp instruction, or N",
    "backline        go back to the previous source line of the same warp",
    "goto STEP       go to any step, forward or backward",
    "break FILE:LINE                     set a breakpoint",
    "break FILE:LINE if %REGISTER OP N   stop there only if a lane's register is == != < <= > or >= a number",
    "watch shared ADDRESS BYTES [CTA]    stop when an instruction or a copy changes these bytes",
    "watch global ADDRESS BYTES          the same for global memory",
    "delete NUMBER                       remove a breakpoint or watchpoint",
    "where                               print the next instruction of each warp of the CTA",
    "print %REGISTER, registers          print one register of the next warp, or all",
    "x shared ADDRESS BYTES              print bytes of shared memory and their last writers",
    "x global ADDRESS BYTES              print bytes of global memory",
    "barriers, copies, reports           print the barriers in use, the copies in flight, the reports so far",
    "pick CTA WARP                       print registers and shared memory of this warp, until the next movement",
    "help, quit"};

std::optional<std::uint64_t> number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  return whole_number<std::uint64_t>(text, hex ? 16 : 10);
}

// A fault of one command; the session continues.
class CommandFault : public InputError {
 public:
  explicit CommandFault(std::string message) : InputError("debug", "", std::move(message)) {}
};

class Session {
 public:
  explicit Session(ptx::ControlledRun& run) : run_(run) {}

  // Returns false for `quit`.
  bool obey(const std::string& line) {
    std::istringstream words(line);
    std::vector<std::string> w;
    for (std::string word; words >> word;) w.push_back(word);
    if (w.empty()) return true;
    const std::string& verb = w[0];
    if (verb == "quit" || verb == "q") return false;
    if (verb == "help" || verb == "h") {
      for (const std::string& text : kHelp) std::cout << text << '\n';
    } else if (!goes(verb, w) && !stops(verb, w) && !looks(verb, w)) {
      throw CommandFault(fmt::format("there is no command '{}': help lists them", verb));
    }
    return true;
  }

  void show_place() {
    if (run_.ended()) {
      std::cout << fmt::format("step {}  the launch has ended{}\n", run_.step(),
                               run_.launch().status == ptx::LaunchStatus::finished ? "" : " by an error");
      return;
    }
    const ptx::Position at = run_.position();
    if (at.cta < 0) {
      std::cout << fmt::format("step {}  no warp can run: enter run to see why\n", run_.step());
      return;
    }
    std::cout << fmt::format("step {}  cta {} warp {} lanes {:08x}  {}\n    {}\n", run_.step(), at.cta, at.warp,
                             at.lanes, run_.launch().program->source_text(at.pc),
                             ptx::instruction_text(*run_.launch().program, at.pc));
  }

 private:
  static std::uint64_t count(const std::vector<std::string>& w, std::size_t i, std::uint64_t otherwise) {
    if (w.size() <= i) return otherwise;
    const auto value = number(w[i]);
    if (!value) throw CommandFault(fmt::format("'{}' is not a number", w[i]));
    return *value;
  }

  void went(const ptx::Stop& stop) {
    picked_.reset();
    switch (stop.reason) {
      case ptx::StopReason::step:
        break;
      case ptx::StopReason::breakpoint:
      case ptx::StopReason::watchpoint:
        std::cout << "stopped at " << stop.what << '\n';
        break;
      case ptx::StopReason::report:
        std::cout << "stopped at a report\n";
        break;
      case ptx::StopReason::barrier:
        std::cout << "completed: " << stop.what << '\n';
        break;
      default:
        std::cout << ptx::name(stop.reason) << '\n';
    }
    const std::vector<ptx::Report> reports = run_.reports();
    for (; told_ < reports.size(); ++told_) std::cout << ptx::to_text(reports[told_]) << '\n';
    told_ = reports.size();
    show_place();
  }

  // A breakpoint's condition. Registers are signed numbers, except those declared .u8 to .u64 and predicates.
  struct Condition {
    std::string reg;
    std::string op;
    std::int64_t number = 0;
  };

  static Condition condition_of(const std::vector<std::string>& w) {
    static const std::vector<std::string> kOps = {"==", "!=", "<", "<=", ">", ">="};
    if (w.size() != 6 || w[2] != "if" || !w[3].starts_with('%'))
      throw CommandFault("a condition is a register, a comparison and a number: break scale.cu:12 if %r1 == 7");
    if (std::find(kOps.begin(), kOps.end(), w[4]) == kOps.end())
      throw CommandFault(fmt::format("'{}' is no comparison: == != < <= > >=", w[4]));
    const bool negative = w[5].starts_with('-');
    const auto value = number(std::string_view(w[5]).substr(negative ? 1 : 0));
    if (!value || *value > INT64_MAX) throw CommandFault(fmt::format("'{}' is not a number", w[5]));
    return {w[3], w[4], negative ? -static_cast<std::int64_t>(*value) : static_cast<std::int64_t>(*value)};
  }

  static bool holds(std::int64_t value, const Condition& c) {
    if (c.op == "==") return value == c.number;
    if (c.op == "!=") return value != c.number;
    if (c.op == "<") return value < c.number;
    if (c.op == "<=") return value <= c.number;
    if (c.op == ">") return value > c.number;
    return value >= c.number;
  }

  // Whether the condition holds in a lane that is about to execute the breakpoint's instruction. A register that the
  // function does not have stops too: the user has to see that.
  bool holds_here(const Condition& c) {
    const ptx::Position at = run_.position();
    const auto value = ptx::read_register(run_.launch(), at.cta, at.warp, at.lanes, c.reg);
    if (!value) return true;
    const bool is_signed = ptx::class_of(value->type) != ptx::TypeClass::unsigned_integer;
    const int unused = 64 - std::max(1, ptx::bits(value->type));
    for (int lane = 0; lane < ptx::kLanes; ++lane) {
      if ((at.lanes >> lane & 1) == 0) continue;
      const std::uint64_t bits = value->bits[static_cast<std::size_t>(lane)] << unused;
      const std::int64_t in_lane = is_signed && value->type != ptx::Type::pred
                                       ? static_cast<std::int64_t>(bits) >> unused
                                       : static_cast<std::int64_t>(bits >> unused);
      if (holds(in_lane, c)) return true;
    }
    return false;
  }

  // To the next stop whose condition, if it has one, holds.
  ptx::Stop run_to_stop() {
    for (;;) {
      ptx::Stop stop = run_.run();
      if (stop.reason != ptx::StopReason::breakpoint) return stop;
      const auto condition = conditions_.find(stop.what);
      if (condition == conditions_.end() || holds_here(condition->second)) return stop;
    }
  }

  // The call depth of the lane group that runs next; -1: none does.
  int depth_here() {
    const ptx::Position at = run_.position();
    const ptx::Cta* const cta = at.cta < 0 ? nullptr : ptx::find_cta(run_.launch(), at.cta);
    if (cta == nullptr) return -1;
    for (const ptx::LaneGroup& group : cta->warps[static_cast<std::size_t>(at.warp)].lane_groups) {
      if ((group.lanes & at.lanes) != 0) return group.depth;
    }
    return -1;
  }

  ptx::Stop step_over() {
    const int depth = depth_here();
    ptx::Stop stop = run_.line();
    while (stop.reason == ptx::StopReason::line && depth_here() > depth) stop = run_.line();
    return stop;
  }

  bool goes(const std::string& verb, const std::vector<std::string>& w) {
    if (verb == "run" || verb == "r" || verb == "continue" || verb == "c") {
      went(run_to_stop());
    } else if (verb == "step" || verb == "s") {
      went(run_.steps(count(w, 1, 1)));
    } else if (verb == "warp" || verb == "w") {
      went(run_.warp_step());
    } else if (verb == "line" || verb == "n") {
      went(run_.line());
    } else if (verb == "over" || verb == "o") {
      went(step_over());
    } else if (verb == "barrier") {
      went(run_.to(ptx::StopReason::barrier));
    } else if (verb == "event") {
      went(run_.to(ptx::StopReason::event));
    } else if (verb == "report") {
      went(run_.to(ptx::StopReason::report));
    } else if (verb == "goto" || verb == "g") {
      if (w.size() < 2) throw CommandFault("goto needs a step: goto 120");
      went(run_.seek(count(w, 1, 0)));
    } else if (verb == "back" || verb == "b") {
      went(run_.back(count(w, 1, 1)));
    } else if (verb == "backline") {
      went(run_.back_line());
    } else {
      return false;
    }
    return true;
  }

  static ptx::Space space(const std::string& word) {
    if (word == "shared") return ptx::Space::shared;
    if (word == "global") return ptx::Space::global;
    throw CommandFault(fmt::format("'{}' is neither shared nor global", word));
  }

  bool stops(const std::string& verb, const std::vector<std::string>& w) {
    if (verb == "break") {
      const std::size_t colon = w.size() > 1 ? w[1].rfind(':') : std::string::npos;
      const auto line = colon == std::string::npos ? std::nullopt : number(std::string_view(w[1]).substr(colon + 1));
      if (!line) throw CommandFault("break needs a place: break scale.cu:12");
      std::vector<std::int32_t> pcs = run_.pcs_of(w[1].substr(0, colon), static_cast<std::int32_t>(*line));
      if (pcs.empty())
        throw CommandFault(fmt::format("no instruction is of {}: was the file compiled with -lineinfo?", w[1]));
      std::optional<Condition> condition;
      if (w.size() > 2) condition = condition_of(w);
      const std::string instructions = counted(std::ssize(pcs), "instruction");
      const int breakpoint = run_.add_breakpoint(std::move(pcs));
      const std::string only =
          condition ? fmt::format(", if {} {} {}", condition->reg, condition->op, condition->number) : std::string();
      if (condition) conditions_[fmt::format("breakpoint {}", breakpoint)] = *condition;
      std::cout << fmt::format("breakpoint {} at {}, {}{}\n", breakpoint, w[1], instructions, only);
    } else if (verb == "watch") {
      if (w.size() < 4) throw CommandFault("watch needs a space, an address and bytes: watch shared 0x400 4");
      const ptx::Position at = run_.position();
      const ptx::Watch watch{
          .space = space(w[1]),
          .cta = static_cast<std::int32_t>(count(w, 4, at.cta < 0 ? 0 : static_cast<std::uint64_t>(at.cta))),
          .address = count(w, 2, 0),
          .bytes = static_cast<std::int64_t>(count(w, 3, 4))};
      check_watch(watch);
      std::cout << fmt::format("watchpoint {}\n", run_.add_watch(watch));
    } else if (verb == "delete") {
      const std::uint64_t which = count(w, 1, 0);
      if (which > INT32_MAX || !run_.remove(static_cast<int>(which)))
        throw CommandFault("there is no breakpoint or watchpoint of that number");
      std::cout << fmt::format("removed {}\n", which);
    } else {
      return false;
    }
    return true;
  }

  // Shared memory is checked when the CTA is running; before that, its size is not known.
  void check_watch(const ptx::Watch& watch) const {
    if (watch.bytes < 1 || watch.bytes > kMostBytes) {
      throw CommandFault(fmt::format("{} bytes: watch 1 to {} bytes", watch.bytes, kMostBytes));
    }
    if (watch.space == ptx::Space::global && run_.memory().at(watch.address, watch.bytes) == nullptr) {
      throw CommandFault(fmt::format("no array has {} bytes at 0x{:x}: ptx run prints the address of each array",
                                     watch.bytes, watch.address));
    }
    const ptx::Cta* cta = watch.space == ptx::Space::shared ? ptx::find_cta(run_.launch(), watch.cta) : nullptr;
    if (cta != nullptr && ptx::shared_at(*cta, ptx::offset_of(watch.address), watch.bytes) == nullptr) {
      throw CommandFault(fmt::format("shared memory has no {} bytes at 0x{:x}: it ends at 0x{:x}", watch.bytes,
                                     watch.address, cta->shared.size()));
    }
  }

  // The warp whose registers are printed: the one selected with `pick`, else the next to run.
  ptx::Position looked_at() {
    if (picked_) return *picked_;
    const ptx::Position at = run_.position();
    if (at.cta < 0) throw CommandFault("no warp runs here: go back, or pick CTA WARP");
    return at;
  }

  bool looks(const std::string& verb, const std::vector<std::string>& w) {
    const ptx::Launch& launch = run_.launch();
    if (verb == "where") {
      const ptx::Position at = run_.position();
      std::cout << ptx::where_text(run_.launch(), &at);
    } else if (verb == "pick") {
      const std::uint64_t cta = count(w, 1, 0), warp = count(w, 2, 0);
      const ptx::Cta* found = ptx::find_cta(launch, static_cast<std::int32_t>(cta));
      if (found == nullptr || warp >= found->warps.size()) {
        throw CommandFault(fmt::format("there is no warp {} of CTA {} now: where lists the warps", warp, cta));
      }
      picked_ = ptx::Position{.step = run_.step(),
                              .cta = static_cast<std::int32_t>(cta),
                              .warp = static_cast<std::int32_t>(warp),
                              .pc = -1,
                              .lanes = ptx::kAllLanes};
    } else if (verb == "print" || verb == "p") {
      if (w.size() < 2 || !w[1].starts_with('%')) throw CommandFault("print needs a register, with its %: print %r1");
      const ptx::Position at = looked_at();
      const auto value = ptx::read_register(launch, at.cta, at.warp, at.lanes, w[1]);
      if (!value)
        throw CommandFault(fmt::format("the function that runs here has no register '{}', or never uses it", w[1]));
      std::cout << ptx::to_text(*value);
    } else if (verb == "registers") {
      const ptx::Position at = looked_at();
      const std::vector<std::string> names = ptx::live_registers(launch, at.cta, at.warp, at.lanes);
      if (names.empty()) std::cout << "no register has been written yet\n";
      for (const std::string& name : names) {
        std::cout << ptx::to_text(*ptx::read_register(launch, at.cta, at.warp, at.lanes, name));
      }
    } else if (verb == "barriers") {
      const std::string text = ptx::barriers_text(launch, looked_at().cta);
      std::cout << (text.empty() ? "no barriers in use\n" : text);
    } else if (verb == "copies") {
      std::cout << ptx::copies_text(launch, looked_at().cta);
    } else if (verb == "reports") {
      const std::vector<ptx::Report> reports = run_.reports();
      if (reports.empty()) std::cout << "no reports so far\n";
      for (const ptx::Report& report : reports) std::cout << ptx::to_text(report) << '\n';
    } else if (verb == "x") {
      if (w.size() < 4) throw CommandFault("x needs a space, an address and bytes: x shared 0x400 64");
      const std::uint64_t bytes = count(w, 3, 16);
      if (bytes > static_cast<std::uint64_t>(kMostBytes))
        throw CommandFault(fmt::format("{} bytes: at most {} at a time", bytes, kMostBytes));
      const ptx::Space in = space(w[1]);
      std::cout << ptx::bytes_text(launch, run_.memory(), in, in == ptx::Space::shared ? looked_at().cta : 0,
                                   count(w, 2, 0), static_cast<std::int64_t>(bytes));
      if (in == ptx::Space::shared) {
        std::cout << ptx::writers_text(run_.writers(), *launch.program, looked_at().cta, count(w, 2, 0),
                                       static_cast<std::int64_t>(bytes));
      }
    } else {
      return false;
    }
    return true;
  }

  ptx::ControlledRun& run_;
  std::optional<ptx::Position> picked_;
  std::map<std::string, Condition> conditions_;  // by Stop::what
  std::size_t told_ = 0;                         // reports
};

int debug_kernel(const LaunchRequest& request) {
  const PreparedLaunch prepared = prepare(request, true);
  ptx::Checks checks;
  ptx::ControlledRun run(*prepared.device, *prepared.module, prepared.config, checks.monitor());
  Session session(run);
  const bool person = isatty(STDIN_FILENO) != 0;
  if (person) std::cout << "kernel " << prepared.config.kernel << ": help lists the commands\n";
  session.show_place();
  int code = kExitFine;
  for (std::string line;;) {
    if (person) std::cout << "> " << std::flush;
    errno = 0;
    if (!std::getline(std::cin, line)) break;
    try {
      if (!session.obey(line)) break;
    } catch (const CommandFault& fault) {
      std::cout << fault.faults().front().message << '\n';
      if (!person) code = kExitBadInput;
    }
  }
  // The end of the input and an error of the system look the same to a stream.
  if (std::ferror(stdin) != 0) {
    throw InputError("standard input", "", "cannot be read: " + system_message(errno));
  }
  return code;
}

}  // namespace

void add_ptx_debug(CLI::App& ptx, Action& chosen) {
  auto request = std::make_shared<LaunchRequest>();
  CLI::App* debug =
      ptx.add_subcommand("debug", "Step a kernel forward and backward, with commands from standard input");
  add_launch_options(*debug, *request);
  add_argument_help(*debug);
  add_help_section(*debug, "Commands on standard input", kHelp);
  add_examples(*debug, {"printf 'step 8\\nprint %%r4\\nback\\nwhere\\n' |",
                        "  kvscope ptx debug apps/examples/scale.ptx --block 64 --arg 'f32[64]' --arg 2.5"});
  debug->callback([&chosen, request] { chosen = [request] { return debug_kernel(*request); }; });
}

}  // namespace kvscope::apps
