#include "gpu/driver/program_debugger.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <iostream>
#include <utility>

#include "core/base/errors.h"

namespace kvscope::driver {

ProgramDebugger::ProgramDebugger(int commands, std::vector<ptx::BreakPlace> breaks)
    : commands_(commands), person_(isatty(commands) != 0), breaks_(std::move(breaks)) {}

bool ProgramDebugger::read_line(std::string& line) const {
  line.clear();
  for (char c = 0;;) {
    const ssize_t got = ::read(commands_, &c, 1);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return !line.empty();
    if (c == '\n') return true;
    line += c;
  }
}

ptx::DebugSession::Answer ProgramDebugger::converse(ptx::DebugSession& session) {
  using Answer = ptx::DebugSession::Answer;
  if (person_ && !std::exchange(greeted_, true)) std::cerr << "help lists the commands\n";
  for (std::string line;;) {
    if (person_) std::cerr << "> " << std::flush;
    if (!read_line(line)) {
      if (person_) std::cerr << '\n';
      return Answer::quit;
    }
    try {
      if (const Answer answer = session.obey(line); answer != Answer::next) return answer;
    } catch (const ptx::CommandFault& fault) {
      std::cerr << fault.message() << '\n';
      if (!person_) faults_ = true;
    }
  }
}

ptx::LaunchResult ProgramDebugger::launch(ptx::Device& device, const ptx::LoadedModule& module,
                                          const ptx::LaunchConfig& config, ptx::Monitor* monitor,
                                          const std::function<void(const ptx::Report&)>& tell) {
  if (detached_) return device.launch(module, config, monitor);
  ptx::ControlledRun run(device, module, config, monitor);
  // All that were reached, although the user may have moved back from them.
  std::vector<ptx::Report> reached;
  ptx::DebugSession session(run, std::cerr, [&](const ptx::Report& report) {
    tell(report);
    const bool known = std::any_of(reached.begin(), reached.end(), [&](const ptx::Report& r) {
      return r.step == report.step && r.kind == report.kind && r.message == report.message;
    });
    if (!known) reached.push_back(report);
  });
  session.add_breaks(breaks_);
  if (session.run_to_first_stop()) {
    std::fflush(stdout);
    const ptx::DebugSession::Answer answer = converse(session);
    breaks_ = session.places();
    quits_ = answer == ptx::DebugSession::Answer::quit;
    detached_ = answer == ptx::DebugSession::Answer::detach;
  }
  if (!quits_) run.seek(~std::uint64_t{0});
  ptx::LaunchResult out;
  out.status = run.launch().status;
  out.ctas = run.launch().ctas_to_run();
  out.grid_ctas = run.launch().cta_count();
  out.steps = run.step();
  out.reports = quits_ ? std::move(reached) : run.launch().reports.all();
  out.repeated_reports = quits_ ? 0 : run.launch().reports.repeated();
  out.printed = run.launch().printed;
  return out;
}

}  // namespace kvscope::driver
