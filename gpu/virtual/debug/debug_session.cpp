#include "gpu/virtual/debug/debug_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <ostream>
#include <sstream>
#include <utility>

#include "core/base/nearest_name.h"
#include "core/base/numbers.h"
#include "core/base/report.h"
#include "gpu/virtual/debug/state_text.h"
#include "gpu/virtual/machine/memory/access.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/source_place.h"
#include "gpu/virtual/machine/warp/residents.h"
#include "gpu/virtual/text/kernel_names.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kMostBytes = 4096;  // of one watchpoint, and of one x
constexpr std::int32_t kListedAround = 5;  // lines of `list` before and after the next one

std::optional<std::uint64_t> number(std::string_view text) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  return whole_number<std::uint64_t>(text, hex ? 16 : 10);
}

std::vector<std::string> words_of(const std::string& line) {
  std::istringstream text(line);
  std::vector<std::string> words;
  for (std::string word; text >> word;) words.push_back(word);
  return words;
}

// The words that a command takes after its name; `break` takes a condition of any form and reports what is wrong in it.
void check_words(const std::vector<std::string>& w) {
  struct Taken {
    std::string_view commands;  // each between blanks
    std::size_t most;
  };
  static constexpr std::array kTaken = {
      Taken{" watch write ", 4}, Taken{" x ", 3}, Taken{" pick ", 2}, Taken{" step s back b goto g delete print p ", 1},
      Taken{
          " run r continue c warp w line n over o barrier event report backline list l where registers barriers copies "
          "reports help h quit q detach ",
          0}};
  for (const Taken& taken : kTaken) {
    if (taken.commands.find(" " + w[0] + " ") == std::string_view::npos || w.size() <= taken.most + 1) continue;
    throw CommandFault(fmt::format("'{}' is not used: {} takes {}", w[taken.most + 1], w[0],
                                   taken.most == 0   ? "no words"
                                   : taken.most == 1 ? "one word"
                                                     : fmt::format("{} words", taken.most)));
  }
}

std::uint64_t count(const std::vector<std::string>& w, std::size_t i, std::uint64_t otherwise) {
  if (w.size() <= i) return otherwise;
  const auto value = number(w[i]);
  if (!value) throw CommandFault(fmt::format("'{}' is not a number", w[i]));
  return *value;
}

BreakCondition condition_of(const std::vector<std::string>& w) {
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

bool holds(std::int64_t value, const BreakCondition& c) {
  if (c.op == "==") return value == c.number;
  if (c.op == "!=") return value != c.number;
  if (c.op == "<") return value < c.number;
  if (c.op == "<=") return value <= c.number;
  if (c.op == ">") return value > c.number;
  return value >= c.number;
}

Space space(const std::string& word) {
  if (word == "shared") return Space::shared;
  if (word == "global") return Space::global;
  throw CommandFault(fmt::format("'{}' is neither shared nor global", word));
}

// The file and the line that are shown for an instruction, in the source if the PTX has line information.
std::pair<std::string, std::int32_t> source_place(const Program& program, std::int32_t pc) {
  const std::int32_t shown = shown_frame(program, pc);
  if (shown < 0) return {std::string(program.module->file), placed_statement(program, pc).at.line};
  const Frame& frame = program.module->frames[static_cast<std::size_t>(shown)];
  return {std::string(program.module->file_of(frame)), frame.line};
}

// Of a stop at "breakpoint 3".
int breakpoint_number(const Stop& stop) {
  const auto value = number(std::string_view(stop.what).substr(stop.what.find(' ') + 1));
  return value ? static_cast<int>(*value) : 0;
}

// "scale.cu:12" -> {"scale.cu", 12}; no colon: none.
std::optional<std::pair<std::string, std::int32_t>> file_and_line(const std::string& where) {
  const std::size_t colon = where.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  const auto line = number(std::string_view(where).substr(colon + 1));
  if (!line || *line > INT32_MAX) return std::nullopt;
  return std::pair{where.substr(0, colon), static_cast<std::int32_t>(*line)};
}

// Where to set a breakpoint instead: the compiler writes no instruction for a blank line or a declaration.
std::string other_lines(const std::vector<std::int32_t>& lines, std::int32_t asked) {
  if (lines.empty()) return "was the file compiled with -lineinfo?";
  const auto after = std::ranges::upper_bound(lines, asked);
  std::vector<std::int32_t> near;
  if (after != lines.begin()) near.push_back(*(after - 1));
  if (after != lines.end()) near.push_back(*after);
  return fmt::format("the nearest {} with instructions {}", near.size() == 1 ? "line" : "lines",
                     near.size() == 1 ? fmt::format("is {}", near[0]) : fmt::format("are {} and {}", near[0], near[1]));
}

// "did you mean "step"? ", or nothing. The commands are those of the help, and two that it names by another word.
std::string meant(std::string_view verb) {
  std::vector<std::string_view> names{"continue", "detach"};
  for (const std::string_view line : debug_commands()) {
    std::string_view rest = line.substr(0, line.find("  "));  // "print %REGISTER, registers"
    while (!rest.empty()) {
      names.push_back(rest.substr(0, rest.find_first_of(" ,")));
      const std::size_t comma = rest.find(", ");
      rest = comma == std::string_view::npos ? std::string_view() : rest.substr(comma + 2);
    }
  }
  const std::string_view near = nearest_name(verb, names);
  return near.empty() ? "" : fmt::format("did you mean \"{}\"? ", near);
}

}  // namespace

const std::vector<std::string>& debug_commands() {
  static const std::vector<std::string> kHelp = {
      "run             continue to the next breakpoint, watchpoint or report, or to the end",
      "step [N]        execute one warp instruction, or N, of whichever warp is next",
      "warp            continue to the next instruction of the same warp",
      "line            continue to the next source line of the same warp",
      "over            the same, without stopping in functions that the line calls",
      "barrier         continue until a barrier or a phase of an mbarrier completes",
      "event           continue to the next effect that other threads can observe, such as a store",
      "report          continue to the next report",
      "write shared ADDRESS BYTES [CTA]    continue until an instruction or a copy writes these bytes",
      "back [N]        go back by one warp instruction, or N",
      "backline        go back to the previous source line of the same warp",
      "goto STEP       go to any step, forward or backward",
      "break FILE:LINE                     set a breakpoint; break KERNEL stops where a kernel begins",
      "break FILE:LINE if %REGISTER OP N   stop only if a lane's register is == != < <= > >= a number",
      "watch shared ADDRESS BYTES [CTA]    stop when an instruction or a copy changes these bytes",
      "watch global ADDRESS BYTES          the same for global memory",
      "delete NUMBER                       remove a breakpoint or watchpoint",
      "list                                print the source around the next instruction",
      "where                               print the next instruction of each warp of the CTA",
      "print %REGISTER, registers          print one register of the next warp, or all",
      "x shared ADDRESS BYTES              print bytes of shared memory and their last writers",
      "x global ADDRESS BYTES              print bytes of global memory",
      "barriers, copies, reports           print the barriers in use, copies in flight, reports so far",
      "pick CTA WARP                       print registers and bytes of this warp until the next movement",
      "help, quit"};
  return kHelp;
}

BreakPlace read_break(const std::string& text) {
  const std::vector<std::string> words = words_of("break " + text);
  if (words.size() < 2) throw CommandFault("break needs a place: break scale.cu:12, or the name of a kernel");
  BreakPlace out{.where = words[1], .condition = std::nullopt};
  if (words.size() > 2) out.condition = condition_of(words);
  return out;
}

DebugSession::DebugSession(ControlledRun& run, std::ostream& out, std::function<void(const Report&)> tell)
    : run_(run), out_(out), tell_(std::move(tell)) {
  if (!tell_) tell_ = [this](const Report& report) { out_ << to_text(report) << '\n'; };
}

DebugSession::Answer DebugSession::obey(const std::string& line) {
  const Words words = words_of(line);
  if (words.empty()) return Answer::next;
  const std::string& verb = words[0];
  check_words(words);
  if (verb == "quit" || verb == "q") return Answer::quit;
  if (verb == "detach") return Answer::detach;
  ended_ = false;
  if (verb == "help" || verb == "h") {
    for (const std::string& command : debug_commands()) out_ << command << '\n';
  } else if (!goes(verb, words) && !stops(verb, words) && !looks(verb, words)) {
    throw CommandFault(fmt::format("there is no command '{}': {}help lists them", verb, meant(verb)));
  }
  return ended_ ? Answer::ended : Answer::next;
}

bool DebugSession::run_to_first_stop() {
  // A movement never stops where it begins, so the first instruction is compared here.
  if (!breaks_.empty()) {
    const std::int32_t first = run_.position().pc;
    for (const auto& [number, place] : breaks_) {
      const std::vector<std::int32_t> pcs = pcs_of(place.where);
      if (std::find(pcs.begin(), pcs.end(), first) == pcs.end()) continue;
      if (place.condition && !holds_here(*place.condition)) continue;
      went({StopReason::breakpoint, fmt::format("breakpoint {}", number), run_.position()});
      return true;
    }
  }
  const Stop stop = run_to_stop();
  if (stop.reason == StopReason::finished || stop.reason == StopReason::failed) return false;
  went(stop);
  return true;
}

void DebugSession::show_place() {
  if (run_.ended()) {
    out_ << fmt::format("step {}  the launch has ended{}\n", run_.step(),
                        run_.launch().status == LaunchStatus::finished ? "" : " by an error");
    return;
  }
  const Position at = run_.position();
  if (at.cta < 0) {
    out_ << fmt::format("step {}  no warp can run: enter run to see why\n", run_.step());
    return;
  }
  out_ << fmt::format("step {}  cta {} warp {} lanes {:08x}  {}\n    {}\n", run_.step(), at.cta, at.warp, at.lanes,
                      run_.launch().program->source_text(at.pc), instruction_text(*run_.launch().program, at.pc));
}

void DebugSession::went(const Stop& stop) {
  picked_.reset();
  switch (stop.reason) {
    case StopReason::step:
      break;
    case StopReason::breakpoint:
    case StopReason::watchpoint:
      out_ << "stopped at " << stop.what << '\n';
      break;
    case StopReason::report:
      out_ << "stopped at a report\n";
      break;
    case StopReason::barrier:
      out_ << "completed: " << stop.what << '\n';
      break;
    case StopReason::write:
      out_ << "written: " << stop.what << '\n';
      break;
    default:
      out_ << name(stop.reason) << '\n';
  }
  const std::vector<Report> reports = run_.reports();
  for (; told_ < reports.size(); ++told_) tell_(reports[told_]);
  told_ = reports.size();
  show_place();
}

// --- breakpoints -----------------------------------------------------------------------------------------------------

// Whether the condition holds in a lane that is about to execute the breakpoint's instruction. A register that the
// function does not have stops too: the user has to see that.
bool DebugSession::holds_here(const BreakCondition& c) {
  const Position at = run_.position();
  const auto value = read_register(run_.launch(), at.cta, at.warp, at.lanes, c.reg);
  if (!value) return true;
  const bool is_signed = class_of(value->type) != TypeClass::unsigned_integer;
  const int unused = 64 - std::max(1, bits(value->type));
  for (int lane = 0; lane < kLanes; ++lane) {
    if ((at.lanes >> lane & 1) == 0) continue;
    const std::uint64_t shifted = value->bits[static_cast<std::size_t>(lane)] << unused;
    const std::int64_t in_lane = is_signed && value->type != Type::pred ? static_cast<std::int64_t>(shifted) >> unused
                                                                        : static_cast<std::int64_t>(shifted >> unused);
    if (holds(in_lane, c)) return true;
  }
  return false;
}

// To the next stop whose condition, if it has one, holds.
Stop DebugSession::run_to_stop() {
  for (;;) {
    Stop stop = run_.run();
    if (stop.reason != StopReason::breakpoint) return stop;
    const auto number = breaks_.find(breakpoint_number(stop));
    if (number == breaks_.end() || !number->second.condition || holds_here(*number->second.condition)) return stop;
  }
}

std::vector<std::int32_t> DebugSession::pcs_of(const std::string& where) const {
  if (const auto place = file_and_line(where)) return run_.pcs_of(place->first, place->second);
  const Program& program = *run_.launch().program;
  std::vector<std::int32_t> pcs;
  for (const std::int32_t f : find_kernels(*program.module, where)) {
    const FunctionCode& code = program.functions[static_cast<std::size_t>(f)];
    if (code.ops > 0) pcs.push_back(code.first_op);
  }
  return pcs;
}

void DebugSession::set_break(const std::string& text) {
  BreakPlace place = read_break(text);
  std::vector<std::int32_t> pcs = pcs_of(place.where);
  const auto source = file_and_line(place.where);
  if (pcs.empty() && source)
    throw CommandFault(fmt::format("no instruction is of {}: {}", place.where,
                                   other_lines(run_.lines_of(source->first), source->second)));
  if (pcs.empty())
    throw CommandFault(
        fmt::format("'{}' is neither FILE:LINE, such as scale.cu:12, nor a kernel of this file", place.where));
  const std::string instructions = counted(std::ssize(pcs), "instruction");
  const int breakpoint = run_.add_breakpoint(std::move(pcs));
  const auto& c = place.condition;
  const std::string only = c ? fmt::format(", if {} {} {}", c->reg, c->op, c->number) : std::string();
  out_ << fmt::format("breakpoint {} at {}, {}{}\n", breakpoint, place.where, instructions, only);
  breaks_[breakpoint] = std::move(place);
}

void DebugSession::add_breaks(const std::vector<BreakPlace>& places) {
  for (const BreakPlace& place : places) {
    std::vector<std::int32_t> pcs = pcs_of(place.where);
    if (pcs.empty()) {
      pending_.push_back(place);
    } else {
      breaks_[run_.add_breakpoint(std::move(pcs))] = place;
    }
  }
}

std::vector<BreakPlace> DebugSession::places() const {
  std::vector<BreakPlace> out;
  for (const auto& [number, place] : breaks_) out.push_back(place);
  out.insert(out.end(), pending_.begin(), pending_.end());
  return out;
}

bool DebugSession::stops(const std::string& verb, const Words& w) {
  if (verb == "break") {
    std::string place;
    for (std::size_t i = 1; i < w.size(); ++i) place += (i > 1 ? " " : "") + w[i];
    set_break(place);
  } else if (verb == "watch") {
    if (w.size() < 4) throw CommandFault("watch needs a space, an address and bytes: watch shared 0x400 4");
    out_ << fmt::format("watchpoint {}\n", run_.add_watch(bytes_named(w)));
  } else if (verb == "delete") {
    const std::uint64_t which = count(w, 1, 0);
    if (which > INT32_MAX || !run_.remove(static_cast<int>(which)))
      throw CommandFault("there is no breakpoint or watchpoint of that number");
    breaks_.erase(static_cast<int>(which));
    out_ << fmt::format("removed {}\n", which);
  } else {
    return false;
  }
  return true;
}

// Of `watch` and `write`: a space, an address, a number of bytes, and the CTA, by default that of the next instruction.
// Shared memory is checked when the CTA is running; before that, its size is not known.
Watch DebugSession::bytes_named(const Words& w) {
  const Position at = run_.position();
  const std::uint64_t number = count(w, 4, at.cta < 0 ? 0 : static_cast<std::uint64_t>(at.cta));
  if (const std::int64_t ctas = run_.launch().cta_count(); number >= static_cast<std::uint64_t>(ctas)) {
    throw CommandFault(fmt::format("there is no CTA {}: the launch has {}", number, counted(ctas, "CTA")));
  }
  const Watch watch{.space = space(w[1]),
                    .cta = static_cast<std::int32_t>(number),
                    .address = count(w, 2, 0),
                    .bytes = static_cast<std::int64_t>(count(w, 3, 4))};
  if (watch.bytes < 1 || watch.bytes > kMostBytes) {
    throw CommandFault(fmt::format("{} bytes: watch 1 to {} bytes", watch.bytes, kMostBytes));
  }
  if (watch.space == Space::global && !run_.memory().contains(watch.address, watch.bytes)) {
    throw CommandFault(fmt::format("no array has {} bytes at 0x{:x}: ptx run prints the address of each array",
                                   watch.bytes, watch.address));
  }
  const Cta* cta = watch.space == Space::shared ? find_cta(run_.launch(), watch.cta) : nullptr;
  if (cta != nullptr && shared_at(*cta, offset_of(watch.address), watch.bytes) == nullptr) {
    throw CommandFault(fmt::format("shared memory has no {} bytes at 0x{:x}: it ends at 0x{:x}", watch.bytes,
                                   watch.address, cta->shared.size()));
  }
  return watch;
}

// --- movements -------------------------------------------------------------------------------------------------------

bool DebugSession::goes(const std::string& verb, const Words& w) {
  if (verb == "run" || verb == "r" || verb == "continue" || verb == "c") {
    const Stop stop = run_to_stop();
    ended_ = stop.reason == StopReason::finished || stop.reason == StopReason::failed;
    went(stop);
  } else if (verb == "step" || verb == "s") {
    went(run_.steps(count(w, 1, 1)));
  } else if (verb == "warp" || verb == "w") {
    went(run_.warp_step());
  } else if (verb == "line" || verb == "n") {
    went(run_.line());
  } else if (verb == "over" || verb == "o") {
    went(run_.over());
  } else if (verb == "barrier") {
    went(run_.to(StopReason::barrier));
  } else if (verb == "event") {
    went(run_.to(StopReason::event));
  } else if (verb == "report") {
    went(run_.to(StopReason::report));
  } else if (verb == "write") {
    if (w.size() < 4 || w[1] != "shared")
      throw CommandFault("write needs shared, an address and bytes: write shared 0x400 4");
    went(run_.to_write(bytes_named(w)));
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

// --- state -----------------------------------------------------------------------------------------------------------

// The lines of the source around the next instruction; the path is the one that the compiler recorded.
void DebugSession::list_source() {
  const Position at = looked_at();
  if (at.pc < 0) throw CommandFault("list shows the next instruction's source: move first, because pick hides it");
  const auto [path, line] = source_place(*run_.launch().program, at.pc);
  const Module& module = *run_.launch().program->module;
  std::stringstream file;
  if (path == module.file && module.text != nullptr) {
    file << *module.text;
  } else if (std::ifstream source(path); !source || !(file << source.rdbuf())) {
    throw CommandFault(fmt::format("{}: cannot be opened here; the next line is {}", path, line));
  }
  out_ << path << '\n';
  std::string text;
  for (std::int32_t number = 1; std::getline(file, text) && number <= line + kListedAround; ++number) {
    if (number >= line - kListedAround) out_ << fmt::format("{} {:>5}  {}\n", number == line ? '>' : ' ', number, text);
  }
}

Position DebugSession::looked_at() {
  if (picked_) return *picked_;
  const Position at = run_.position();
  if (at.cta < 0) throw CommandFault("no warp runs here: go back, or pick CTA WARP");
  return at;
}

bool DebugSession::looks(const std::string& verb, const Words& w) {
  const Launch& launch = run_.launch();
  if (verb == "where") {
    const Position at = run_.position();
    out_ << where_text(run_.launch(), &at);
  } else if (verb == "list" || verb == "l") {
    list_source();
  } else if (verb == "pick") {
    const std::uint64_t cta = count(w, 1, 0), warp = count(w, 2, 0);
    const Cta* found = find_cta(launch, static_cast<std::int32_t>(cta));
    if (found == nullptr || warp >= found->warps.size()) {
      throw CommandFault(fmt::format("there is no warp {} of CTA {} now: where lists the warps", warp, cta));
    }
    picked_ = Position{.step = run_.step(),
                       .cta = static_cast<std::int32_t>(cta),
                       .warp = static_cast<std::int32_t>(warp),
                       .pc = -1,
                       .lanes = kAllLanes};
  } else if (verb == "print" || verb == "p") {
    if (w.size() < 2 || !w[1].starts_with('%')) throw CommandFault("print needs a register, with its %: print %r1");
    const Position at = looked_at();
    const auto value = read_register(launch, at.cta, at.warp, at.lanes, w[1]);
    if (!value)
      throw CommandFault(fmt::format("the function that runs here has no register '{}', or never uses it", w[1]));
    out_ << to_text(*value);
  } else if (verb == "registers") {
    const Position at = looked_at();
    const std::vector<RegisterValue> values = live_registers(launch, at.cta, at.warp, at.lanes);
    if (values.empty()) out_ << "no register has been written yet\n";
    for (const RegisterValue& value : values) out_ << to_text(value);
  } else if (verb == "barriers") {
    const std::string text = barriers_text(launch, looked_at().cta);
    out_ << (text.empty() ? "no barriers in use\n" : text);
  } else if (verb == "copies") {
    const std::string text = copies_text(launch, looked_at().cta);
    out_ << (text.empty() ? "no copies in flight\n" : text);
  } else if (verb == "reports") {
    const std::vector<Report> reports = run_.reports();
    if (reports.empty()) out_ << "no reports so far\n";
    for (const Report& report : reports) out_ << to_text(report) << '\n';
  } else if (verb == "x") {
    if (w.size() < 4) throw CommandFault("x needs a space, an address and bytes: x shared 0x400 64");
    const std::uint64_t bytes = count(w, 3, 16);
    if (bytes > static_cast<std::uint64_t>(kMostBytes))
      throw CommandFault(fmt::format("{} bytes: at most {} at a time", bytes, kMostBytes));
    const Space in = space(w[1]);
    out_ << bytes_text(launch, run_.memory(), in, in == Space::shared ? looked_at().cta : 0, count(w, 2, 0),
                       static_cast<std::int64_t>(bytes));
    if (in == Space::shared) {
      out_ << writers_text(run_.writers(), *launch.program, looked_at().cta, count(w, 2, 0),
                           static_cast<std::int64_t>(bytes));
    }
  } else {
    return false;
  }
  return true;
}

}  // namespace kvscope::ptx
