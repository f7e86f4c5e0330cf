#include "apps/kvscope-viewer/kernel_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "apps/kvscope-viewer/kernel_state.h"
#include "apps/launch/options.h"
#include "apps/launch/ptx_file.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/numbers.h"
#include "core/base/shell_words.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/debug/controlled_run.h"
#include "gpu/virtual/debug/state_text.h"
#include "gpu/virtual/machine/program/source_place.h"
#include "gpu/virtual/text/kernel_names.h"
#include "gpu/virtual/text/parameter_layout.h"

namespace kvscope::apps {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMostSourceBytes = std::int64_t{16} << 20;

std::string extents_of(const std::array<std::int32_t, 3>& extents) {
  if (extents[0] == 0) return {};
  const std::array<std::int64_t, 3> wide{extents[0], std::max(1, extents[1]), std::max(1, extents[2])};
  return wide[2] != 1   ? fmt::format("{},{},{}", wide[0], wide[1], wide[2])
         : wide[1] != 1 ? fmt::format("{},{}", wide[0], wide[1])
                        : std::to_string(wide[0]);
}

std::string type_of(const ptx::Variable& variable, const ptx::ParameterLayout* layout) {
  if (layout != nullptr && !layout->type_name.empty()) {
    return variable.extents.empty() ? layout->type_name
                                    : fmt::format("{}, {} bytes", layout->type_name, variable.bytes);
  }
  if (!variable.extents.empty()) return fmt::format("struct, {} bytes", variable.bytes);
  return std::string(name(variable.type));
}

viz::KernelEntry entry_of(const ptx::Module& module, std::int32_t function) {
  const ptx::Function& kernel = module.functions[static_cast<std::size_t>(function)];
  viz::KernelEntry out{.name = std::string(kernel.name),
                       .shown = ptx::short_name(module, function),
                       .parameters = {},
                       .block = extents_of(kernel.limits.required_threads)};
  const std::vector<ptx::ParameterLayout> layouts = ptx::layouts_from_debug_info(module, kernel);
  for (std::size_t i = 0; i < kernel.parameters.size(); ++i) {
    const ptx::Variable& variable = module.variables[static_cast<std::size_t>(kernel.parameters[i])];
    const ptx::ParameterLayout* layout = i < layouts.size() ? &layouts[i] : nullptr;
    // nvcc names a parameter without debug information by its number: <kernel>_param_0.
    const bool is_number = variable.name == fmt::format("{}_param_{}", kernel.name, i);
    const std::string name = layout != nullptr && !layout->name.empty() ? layout->name
                             : is_number                                ? std::string()
                                                                        : std::string(variable.name);
    out.parameters.push_back({name, type_of(variable, layout)});
  }
  return out;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    if (lines.back().ends_with('\r')) lines.back().pop_back();
    at = end + 1;
  }
  return lines;
}

// The text of a source file: where the compiler saw it, else beside the PTX. Empty: it is at neither place.
std::vector<std::string> source_lines(const std::string& path, const std::string& ptx) {
  const fs::path folder = fs::path(ptx).parent_path();
  for (const fs::path& place : {fs::path(path), folder / path, folder / fs::path(path).filename()}) {
    std::error_code ignored;
    if (!fs::is_regular_file(place, ignored)) continue;
    try {
      return lines_of(read_file(place.string(), kMostSourceBytes));
    } catch (const InputError&) {  // too large, or not readable for this user: as good as missing
      continue;
    }
  }
  return {};
}

class VirtualKernelRun final : public viz::KernelRun {
 public:
  VirtualKernelRun(const LaunchRequest& launch, const std::function<bool()>& keep_going)
      : prepared_(prepare(launch, true)),
        run_(*prepared_.device, *prepared_.module, prepared_.config, checks_.monitor()) {
    read_code(launch.path);
    run_.set_keep_going(keep_going);
    static_cast<void>(run_.seek(std::numeric_limits<std::uint64_t>::max()));
    keep_reports_and_end();
    run_.set_keep_going(nullptr);
    static_cast<void>(run_.seek(0));
  }

  [[nodiscard]] const viz::KernelCode& code() const override { return code_; }

  [[nodiscard]] viz::KernelState go(const viz::KernelWish& wish, const std::function<bool()>& keep_going) override {
    set_breakpoints(wish.breakpoints);
    run_.set_keep_going(keep_going);
    ptx::Stop stop = move(wish);
    run_.set_keep_going(nullptr);
    // A launch whose last instruction was executed ends only when the next one is looked for.
    static_cast<void>(run_.position());
    if (run_.ended() && stop.reason == ptx::StopReason::step) stop = run_.steps(0);
    keep_reports_and_end();
    viz::KernelState state = kernel_state(run_, reports_, {wish.cta, wish.warp, wish.lanes});
    state.arrived = words_of(stop);
    state.last = last_;
    if (stop.reason == ptx::StopReason::report) {
      const auto found = std::ranges::find(state.reports, state.step, [](const auto& r) { return r.step + 1; });
      if (found != state.reports.end()) state.report = static_cast<std::int32_t>(found - state.reports.begin());
    }
    return state;
  }

 private:
  void read_code(const std::string& path) {
    const ptx::Program& program = *prepared_.module->program;
    const ptx::Module& module = *program.module;
    code_.kernel = ptx::short_name(module, module.find_function(prepared_.config.kernel));
    code_.launch =
        fmt::format("grid {}, block {}", extents_text(prepared_.config.grid), extents_text(prepared_.config.block));
    std::map<std::string, std::int32_t> numbers;
    const auto source_of = [&](const std::string& file) {
      const auto [place, is_new] = numbers.try_emplace(file, static_cast<std::int32_t>(code_.sources.size()));
      if (is_new) code_.sources.push_back({file, source_lines(file, path), run_.lines_of(file)});
      return place->second;
    };
    for (std::int32_t pc = 0; pc < static_cast<std::int32_t>(program.ops.size()); ++pc) {
      const ptx::Statement& statement = program.statement(pc);
      viz::KernelInstruction& out = code_.instructions.emplace_back();
      out.text = ptx::instruction_text(program, pc);
      out.ptx_line = statement.at.line;
      // The innermost place that is shown and whose file can be read here.
      for (std::int32_t f = ptx::shown_frame(program, pc); f >= 0 && out.source < 0;) {
        const ptx::Frame& frame = module.frames[static_cast<std::size_t>(f)];
        f = frame.outer;
        if (frame.line <= 0 || module.file_of(frame).empty()) continue;
        const std::int32_t source = source_of(std::string(module.file_of(frame)));
        const auto lines = std::ssize(code_.sources[static_cast<std::size_t>(source)].lines);
        if (frame.line <= lines) out.source = source, out.line = frame.line;
      }
    }
    std::vector<std::int32_t> with_code;
    for (const viz::KernelInstruction& instruction : code_.instructions) with_code.push_back(instruction.ptx_line);
    std::ranges::sort(with_code);
    with_code.erase(std::unique(with_code.begin(), with_code.end()), with_code.end());
    code_.sources.push_back({path, {module.lines.begin(), module.lines.end()}, std::move(with_code)});
  }

  void set_breakpoints(const std::vector<viz::KernelBreakpoint>& wanted) {
    if (wanted == breakpoints_) return;
    for (const auto& [number, place] : numbers_) run_.remove(number);
    numbers_.clear();
    breakpoints_ = wanted;
    for (const viz::KernelBreakpoint& place : wanted) {
      std::vector<std::int32_t> pcs = pcs_of(place);
      if (!pcs.empty()) numbers_[run_.add_breakpoint(std::move(pcs))] = place;
    }
  }

  [[nodiscard]] std::vector<std::int32_t> pcs_of(const viz::KernelBreakpoint& place) const {
    if (place.source < 0 || place.source >= std::ssize(code_.sources)) return {};
    if (place.source + 1 != std::ssize(code_.sources)) {
      return run_.pcs_of(code_.sources[static_cast<std::size_t>(place.source)].path, place.line);
    }
    std::vector<std::int32_t> pcs;
    for (std::size_t pc = 0; pc < code_.instructions.size(); ++pc) {
      if (code_.instructions[pc].ptx_line == place.line) pcs.push_back(static_cast<std::int32_t>(pc));
    }
    return pcs;
  }

  ptx::Stop move(const viz::KernelWish& wish) {
    using viz::KernelMove;
    switch (wish.move) {
      case KernelMove::stay:
        return {};
      case KernelMove::start:
        return run_.seek(0);
      case KernelMove::end:
        return run_.seek(std::numeric_limits<std::uint64_t>::max());
      case KernelMove::seek:
        return run_.seek(wish.step);
      case KernelMove::back:
        return run_.back(1);
      case KernelMove::step:
        return run_.steps(1);
      case KernelMove::back_line:
        return run_.back_line();
      case KernelMove::line:
        return run_.line();
      case KernelMove::over:
        return run_.over();
      case KernelMove::warp:
        return run_.warp_step();
      case KernelMove::barrier:
        return run_.to(ptx::StopReason::barrier);
      case KernelMove::event:
        return run_.to(ptx::StopReason::event);
      case KernelMove::write:
        return run_.to_write({ptx::Space::shared, wish.word.cta, wish.word.address, wish.word.bytes});
      case KernelMove::report:
        return run_.to(ptx::StopReason::report);
      case KernelMove::run:
        return run_.run();
    }
    return {};
  }

  [[nodiscard]] std::string words_of(const ptx::Stop& stop) const {
    switch (stop.reason) {
      case ptx::StopReason::step:
      case ptx::StopReason::line:
      case ptx::StopReason::event:
        return stop.what;
      case ptx::StopReason::breakpoint: {
        const auto number = whole_number<int>(std::string_view(stop.what).substr(stop.what.find(' ') + 1));
        const auto place = number ? numbers_.find(*number) : numbers_.end();
        if (place == numbers_.end()) return stop.what;
        const fs::path file = code_.sources[static_cast<std::size_t>(place->second.source)].path;
        return fmt::format("Breakpoint at {}:{}", file.filename().string(), place->second.line);
      }
      case ptx::StopReason::watchpoint:
        return stop.what;
      case ptx::StopReason::write:
        return "Written: " + stop.what;
      case ptx::StopReason::barrier:
        return "Completed: " + stop.what;
      case ptx::StopReason::report:
        return "Reported: " + stop.what;
      case ptx::StopReason::finished:
        return "The launch has finished";
      case ptx::StopReason::failed:
        return "The launch has ended by an error";
      case ptx::StopReason::beginning:
        return "This is the beginning of the launch";
      case ptx::StopReason::interrupted:
        return "Interrupted";
    }
    return {};
  }

  void keep_reports_and_end() {
    std::vector<ptx::Report> now = run_.reports();
    if (now.size() > reports_.size()) reports_ = std::move(now);
    if (run_.ended()) last_ = run_.step();
  }

  PreparedLaunch prepared_;
  ptx::Checks checks_;
  ptx::ControlledRun run_;
  viz::KernelCode code_;
  std::vector<ptx::Report> reports_;  // that any movement has reached
  std::optional<std::uint64_t> last_;
  std::vector<viz::KernelBreakpoint> breakpoints_;
  std::map<int, viz::KernelBreakpoint> numbers_;
};

}  // namespace

bool is_ptx(const std::string& path) {
  if (path.ends_with(".ptx")) return true;
  std::error_code ignored;
  if (!fs::is_regular_file(path, ignored)) return false;
  const std::string start = read_file_start(path, 4096);
  return start.starts_with(".version ") || start.find("\n.version ") != std::string::npos;
}

viz::KernelFile read_kernel_file(const std::string& path) {
  const ptx::Module module = read_ptx(path);
  viz::KernelFile out{.path = path, .entries = {}};
  for (std::size_t f = 0; f < module.functions.size(); ++f) {
    if (module.functions[f].entry && module.functions[f].defined) {
      out.entries.push_back(entry_of(module, static_cast<std::int32_t>(f)));
    }
  }
  if (out.entries.empty()) throw InputError(path, "", "has no kernel: it declares no .entry with a body");
  return out;
}

LaunchRequest request_of(const viz::KernelLaunch& launch) {
  std::vector<std::string> words;
  const auto option = [&](const char* name, const std::string& value) {
    if (value.empty()) return;
    words.emplace_back(name);
    words.push_back(value);
  };
  option("--entry", launch.entry);
  option("--grid", launch.grid);
  option("--block", launch.block);
  option("--cluster", launch.cluster);
  option("--smem", launch.shared);
  const auto& arguments = launch.arguments;
  // In order while no parameter is left out, which is how people write them.
  const bool in_order = std::ranges::none_of(
      arguments, [](const std::string& a) { return a.empty() || a.find('=') != std::string::npos; });
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    if (!arguments[i].empty())
      words.push_back(fmt::format("--arg={}{}", in_order ? "" : fmt::format("{}=", i), arguments[i]));
  }
  words.insert(words.end(), launch.others.begin(), launch.others.end());
  return read_launch(launch.path, words);
}

viz::KernelLaunch launch_of(const LaunchRequest& request) {
  viz::KernelLaunch out;
  out.path = request.path;
  out.entry = request.entry;
  out.grid = fmt::format("{}", fmt::join(request.grid, ","));
  if (!request.block.empty()) out.block = fmt::format("{}", fmt::join(request.block, ","));
  out.cluster = fmt::format("{}", fmt::join(request.cluster, ","));
  out.shared = std::to_string(request.shared);
  LaunchRequest rest = request;
  rest.entry.clear();
  rest.grid = LaunchRequest().grid;
  rest.block.clear();
  rest.cluster.clear();
  rest.shared = 0;
  rest.args.clear();
  std::size_t next = 0;
  const auto set = [&out](std::size_t at, const std::string& value) {
    if (out.arguments.size() <= at) out.arguments.resize(at + 1);
    out.arguments[at] = value;
  };
  for (const std::string& word : request.args) {
    const std::size_t equals = word.find('=');
    const auto number = whole_number<std::uint16_t>(std::string_view(word).substr(0, equals));
    if (equals == std::string::npos) {
      set(next++, word);
    } else if (number && (*number >= out.arguments.size() || out.arguments[*number].empty())) {
      set(*number, word.substr(equals + 1));
    } else {
      rest.args.push_back(word);  // by name, or a field of a struct
    }
  }
  out.others = to_words(rest);
  return out;
}

std::string command_of(const viz::KernelLaunch& launch) {
  std::vector<std::string> words{"kvscope", "ptx", "debug", launch.path};
  for (const std::string& word : to_words(request_of(launch))) words.push_back(word);
  return shell_line(words);
}

std::unique_ptr<viz::KernelRun> start_kernel(const LaunchRequest& launch, const std::function<bool()>& keep_going) {
  return std::make_unique<VirtualKernelRun>(launch, keep_going);
}

}  // namespace kvscope::apps
