// The commands of the debugger, such as `step 8`, applied to a controlled run. `kvscope ptx debug` and the debugger of
// `kvscope cuda` share them; each reads lines where its user writes them.
//
//   DebugSession session(run, std::cout);
//   session.obey("break scale.cu:12");
//   session.obey("continue");     prints the stop, the new reports and the next instruction
//
// Breakpoints are places, so that a program's next launch can have the same ones: pass places() to its session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <iosfwd>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "gpu/virtual/debug/controlled_run.h"

namespace kvscope::ptx {

// One line per command: the answer to `help`.
[[nodiscard]] const std::vector<std::string>& debug_commands();

// A fault of one command; the session continues. Its only fault has the message.
class CommandFault : public InputError {
 public:
  explicit CommandFault(std::string message) : InputError("debug", "", std::move(message)) {}
  [[nodiscard]] const std::string& message() const { return faults().front().message; }
};

// Stops there only if a lane's register compares so. Registers are signed numbers, except those declared .u8 to .u64
// and predicates.
struct BreakCondition {
  std::string reg;  // "%r1"
  std::string op;   // == != < <= > >=
  std::int64_t number = 0;
};

struct BreakPlace {
  std::string where;  // "scale.cu:12", or the name of a kernel
  std::optional<BreakCondition> condition;
};

// "scale.cu:12", "scale.cu:12 if %r1 == 7", "scale". Throws CommandFault.
[[nodiscard]] BreakPlace read_break(const std::string& text);

class DebugSession {
 public:
  // `tell` receives each report that a movement reaches; by default, its text is printed. `run` and `out` outlive this.
  DebugSession(ControlledRun& run, std::ostream& out, std::function<void(const Report&)> tell = nullptr);

  enum class Answer : std::uint8_t {
    next,    // read the next command
    ended,   // `continue` has reached the end of the launch without another stop
    detach,  // continue without the debugger
    quit,
  };
  // Executes one command. Throws CommandFault.
  Answer obey(const std::string& line);

  // The same as `continue`, silent if nothing stops the launch before its end. Returns whether something did.
  bool run_to_first_stop();
  void show_place();  // the next instruction with its source

  // Breakpoints at places that this launch's module does not have have no effect in this launch.
  void add_breaks(const std::vector<BreakPlace>& places);
  [[nodiscard]] std::vector<BreakPlace> places() const;

 private:
  using Words = std::vector<std::string>;
  bool goes(const std::string& verb, const Words& words);
  bool stops(const std::string& verb, const Words& words);
  bool looks(const std::string& verb, const Words& words);
  void went(const Stop& stop);
  Stop run_to_stop();
  Position looked_at();
  bool holds_here(const BreakCondition& condition);
  [[nodiscard]] std::vector<std::int32_t> pcs_of(const std::string& where) const;
  void set_break(const std::string& text);
  [[nodiscard]] Watch bytes_named(const Words& words);
  void list_source();

  ControlledRun& run_;
  std::ostream& out_;
  std::function<void(const Report&)> tell_;
  std::optional<Position> picked_;
  std::map<int, BreakPlace> breaks_;  // by number
  std::vector<BreakPlace> pending_;   // at places that this module does not have
  std::size_t told_ = 0;              // reports
  bool ended_ = false;
};

}  // namespace kvscope::ptx
