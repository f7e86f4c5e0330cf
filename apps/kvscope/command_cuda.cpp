// kvscope cuda PROGRAM [ARGUMENT...]: runs a program of the CUDA runtime on the virtual GPU, with checks.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <initializer_list>
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
#include "apps/kvscope/program_file.h"
#include "apps/kvscope/ptx_commands.h"
#include "apps/launch/options.h"
#include "apps/launch/policy.h"
#include "core/base/errors.h"
#include "core/base/numbers.h"
#include "gpu/driver/fat_binary.h"
#include "gpu/driver/program_reports.h"
#include "gpu/virtual/debug/debug_session.h"
#include "gpu/virtual/machine/cta_sample.h"

namespace kvscope::apps {
namespace {

namespace fs = std::filesystem;

struct CudaCommand {
  std::string policy = "late";
  std::vector<std::string> checks{"all"};
  int target = 90;
  std::string sum = "seq";
  std::int64_t most_instructions = 1'000'000'000;
  std::int64_t most_memory = std::int64_t{4} << 30;
  int max_reports = 20;
  std::string ctas;
  std::int64_t jobs = 1;
  bool no_leaks = false;
  bool debug = false;
  std::vector<std::string> breaks;
  std::string report, format;
  std::vector<std::string> program;
};

// Libraries of kernels in machine code, and the driver, by the beginning of their file names.
constexpr std::array<std::string_view, 13> kMachineCode{
    "libcublas", "libcudnn", "libcufft", "libcurand",    "libcusolver", "libcusparse", "libnccl",
    "libnvjpeg", "libnvrtc", "libnpp",   "libnvJitLink", "libcuda.so",  "libcufile"};

// The folder of libcudart.so.12 and .13: in the build tree, or beside the installed program.
fs::path library_folder() {
  const fs::path self = fs::read_symlink("/proc/self/exe").parent_path();
  const std::array<fs::path, 2> candidates{self / "../../lib/kvscope/cuda",
                                           self / ".." / KVSCOPE_LIBDIR / "kvscope/cuda"};
  for (const fs::path& folder : candidates) {
    if (fs::exists(folder / "libcudart.so.13")) return fs::canonical(folder);
  }
  throw InputError("kvscope cuda", "",
                   fmt::format("libcudart.so.13 of kvscope is not in {} and not in {}: install kvscope again",
                               candidates[0].lexically_normal().string(), candidates[1].lexically_normal().string()));
}

// As execvp does: a name without a slash is searched in PATH, where an empty folder is the current one. Throws
// InputError if there is no such file.
std::string find_program(const std::string& name) {
  std::error_code error;
  if (name.find('/') != std::string::npos) {
    if (fs::exists(name, error)) return name;
    throw InputError(name, "", error ? "cannot be read: " + system_message(error.value()) : "no such file");
  }
  const char* const path = std::getenv("PATH");
  std::string_view rest = path == nullptr ? "/bin:/usr/bin" : path;
  for (bool more = !name.empty(); more;) {
    const std::size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    const std::string file = fmt::format("{}/{}", folder.empty() ? "." : folder, name);
    if (::access(file.c_str(), X_OK) == 0 && fs::is_regular_file(file, error)) return file;
    more = colon != std::string_view::npos;
    if (more) rest.remove_prefix(colon + 1);
  }
  throw InputError(name, "", "not found in PATH: a program of this folder is written ./" + name);
}

// Files that are passed in the place of the program that is made of them.
void reject_sources(const std::string& path) {
  if (path.ends_with(".cu")) {
    const std::string program = fs::path(path).replace_extension().string();
    throw InputError(
        path, "",
        fmt::format("is CUDA source, not a program: compile it with `kvscope nvcc -o {} {}`, and run `kvscope "
                    "cuda {}`",
                    program, path, program));
  }
  if (path.ends_with(".ptx"))
    throw InputError(path, "",
                     fmt::format("is PTX, not a program: run a kernel of it with `kvscope ptx run {}`", path));
}

// Why the virtual GPU cannot run the device code of this file; "": it can, or there is none.
std::string device_code_fault(const ProgramFile& file, int target) {
  std::vector<driver::FatEntry> all;
  for (const auto& bytes : file.fat_binaries) {
    for (driver::FatEntry& entry : driver::read_fat_binary(bytes)) all.push_back(std::move(entry));
  }
  if (all.empty() || driver::choose_ptx(all, target) != nullptr) return {};
  return fmt::format(
      "its device code is {}: the virtual GPU runs PTX for sm_{} or earlier: compile again with kvscope nvcc, or with "
      "-gencode arch=compute_{}a,code=compute_{}a",
      driver::contents_text(all), target, target, target);
}

// Rejects by name what would otherwise crash. A file that is no ELF file, such as a script, is not checked: the
// programs that it starts run on the virtual GPU too.
void reject_unsupported(const std::string& path, const fs::path& libraries, int target) {
  const ProgramFile file = read_program(path);
  std::vector<Fault> faults;
  std::string runtime;
  for (const std::string& library : file.needed) {
    if (library.starts_with("libcudart.so")) runtime = library;
    for (const std::string_view prefix : kMachineCode) {
      if (library.starts_with(prefix))
        faults.push_back({library,
                          "its kernels are machine code or need the driver, which the virtual GPU cannot run: "
                          "replace the calls by kernels of the program"});
    }
  }
  if (!runtime.empty() && !fs::exists(libraries / runtime)) {
    faults.push_back({runtime, "kvscope has libcudart.so.12 and libcudart.so.13: compile with CUDA 12 or 13"});
  } else if (!runtime.empty()) {
    if (file.has_rpath)
      faults.push_back(
          {"RPATH", "the program finds libcudart by its RPATH: link with -Wl,--enable-new-dtags, or without -rpath"});
    const ProgramFile provided = read_program((libraries / runtime).string());
    std::vector<std::string> missing;
    for (const std::string& name : file.imported) {
      if ((name.starts_with("cuda") || name.starts_with("__cuda")) && !provided.exported.contains(name) &&
          !file.exported.contains(name))
        missing.push_back(name);
    }
    if (!missing.empty())
      faults.push_back({runtime, fmt::format("kvscope's library has no {}: it has the functions of CUDA 12.9 and 13.0",
                                             fmt::join(missing, ", "))});
  } else if (!file.fat_binaries.empty()) {
    faults.push_back(
        {"libcudart", "the program links the CUDA runtime statically: link again with nvcc -cudart shared"});
  }
  if (const std::string fault = device_code_fault(file, target); !fault.empty())
    faults.push_back({"device code", fault});
  if (!faults.empty()) throw InputError(path, std::move(faults));
  if (!file.unchecked.empty()) {
    std::cerr << fmt::format(
        "kvscope: note: {}: has no {} not checked before it runs: keep the section headers when you strip a program "
        "(strip keeps them, sstrip does not)\n",
        path, file.unchecked);
  }
}

// The debugger's commands come from standard input, at this file descriptor in the program's processes.
constexpr int kCommands = 100;

void set_environment(const CudaCommand& command, const fs::path& libraries) {
  const auto set = [](const char* name, const std::string& value) { ::setenv(name, value.c_str(), 1); };
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  set("LD_LIBRARY_PATH", path == nullptr ? libraries.string() : fmt::format("{}:{}", libraries.string(), path));
  set("KVSCOPE_CUDA_POLICY", command.policy);
  set("KVSCOPE_CUDA_CHECKS", fmt::format("{}", fmt::join(command.checks, ",")));
  set("KVSCOPE_CUDA_TARGET", std::to_string(command.target));
  set("KVSCOPE_CUDA_SUM", command.sum);
  set("KVSCOPE_CUDA_MAX_INSTRUCTIONS", std::to_string(command.most_instructions));
  set("KVSCOPE_CUDA_MAX_MEMORY", std::to_string(command.most_memory));
  set("KVSCOPE_CUDA_MAX_REPORTS", std::to_string(command.max_reports));
  set("KVSCOPE_CUDA_CTAS", command.ctas);
  set("KVSCOPE_CUDA_JOBS", std::to_string(command.jobs));
  set("KVSCOPE_CUDA_LEAKS", command.no_leaks ? "0" : "1");
  set("KVSCOPE_CUDA_REPORT", command.report.empty() ? "" : fs::absolute(command.report).string());
  set("KVSCOPE_CUDA_FORMAT", command.format);
  set("KVSCOPE_CUDA_DEBUG", command.debug ? std::to_string(kCommands) : "");
  set("KVSCOPE_CUDA_BREAKS", fmt::format("{}", fmt::join(command.breaks, "\n")));
}

std::vector<char*> arguments_of(std::vector<std::string>& words) {
  std::vector<char*> out;
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

// The program's own standard input is then empty: what it does not read, the debugger would. Async-signal-safe.
bool take_standard_input() {
  const int nothing = ::open("/dev/null", O_RDONLY);
  return nothing >= 0 && ::dup2(STDIN_FILENO, kCommands) == kCommands &&
         ::dup2(nothing, STDIN_FILENO) == STDIN_FILENO && ::close(nothing) == 0;
}

// In a separate process, so that --timeout ends it too. A program that a signal ends gives 128 + its number, as in a
// shell.
int run_program(const std::string& path, std::vector<std::string> words, bool debug) {
  std::cout.flush();
  const std::vector<char*> arguments = arguments_of(words);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child < 0) throw InputError(path, "", "it cannot be started: " + system_message(errno));
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(kExitBadInput);
    ::signal(SIGPIPE, SIG_DFL);
    if (!debug || take_standard_input()) ::execv(path.c_str(), arguments.data());
    const std::string fault = fmt::format("kvscope: {}: it cannot be started: {}\n", path, system_message(errno));
    static_cast<void>(!::write(STDERR_FILENO, fault.data(), fault.size()));
    ::_exit(kExitBadInput);
  }
  ::signal(SIGINT, SIG_IGN);  // the program decides
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

int run_cuda(const CudaCommand& command) {
  static_cast<void>(read_policy(command.policy));
  static_cast<void>(driver::report_format(command.format, command.report));
  for (const std::string& place : command.breaks) {
    try {
      static_cast<void>(ptx::read_break(place));
    } catch (const ptx::CommandFault& fault) {
      throw InputError("command line", "--break", fault.message());
    }
  }
  if (command.debug && ::fcntl(STDIN_FILENO, F_GETFD) < 0)
    throw InputError("command line", "--gdb", "standard input is closed: the debugger reads its commands there");
  if (command.program.empty())
    throw InputError("command line", "PROGRAM", "missing: kvscope cuda ./my_test and its arguments");
  const fs::path libraries = library_folder();
  const std::string path = find_program(command.program.front());
  reject_sources(path);
  reject_unsupported(path, libraries, command.target);
  set_environment(command, libraries);
  return run_program(path, command.program, command.debug);
}

struct NvccCommand {
  std::vector<std::string> arguments;
};

bool begins_with_any(const std::string& word, std::initializer_list<std::string_view> prefixes) {
  for (const std::string_view prefix : prefixes) {
    if (word.starts_with(prefix)) return true;
  }
  return false;
}

std::string find_nvcc() {
  const char* const home = std::getenv("CUDA_HOME");
  const std::array<std::string, 2> places{home == nullptr ? "" : fmt::format("{}/bin/nvcc", home),
                                          "/usr/local/cuda/bin/nvcc"};
  try {
    return find_program("nvcc");
  } catch (const InputError&) {
    for (const std::string& place : places) {
      if (!place.empty() && ::access(place.c_str(), X_OK) == 0) return place;
    }
    throw InputError("nvcc", "",
                     "not found in PATH, in CUDA_HOME/bin and in /usr/local/cuda/bin: install the CUDA toolkit");
  }
}

// What is added goes before the caller's arguments, each only if the caller has not chosen otherwise.
int run_nvcc(const NvccCommand& command) {
  bool line_info = false, runtime = false;
  for (const std::string& word : command.arguments) {
    line_info |=
        begins_with_any(word, {"-lineinfo", "--generate-line-info"}) || word == "-G" || word == "--device-debug";
    runtime |= begins_with_any(word, {"-cudart", "--cudart"});
    if (word == "-dc" || word == "--device-c" || word == "-rdc=true" || word == "--relocatable-device-code=true")
      throw InputError("command line", word,
                       "the linker turns relocatable device code into machine code, which the virtual GPU cannot run: "
                       "put a kernel and the functions that it calls into one file");
  }
  std::vector<std::string> words{"nvcc"};
  if (!runtime) words.insert(words.end(), {"-cudart", "shared"});
  if (!line_info) words.emplace_back("-lineinfo");
  words.insert(words.end(), {"-gencode", "arch=compute_90a,code=compute_90a"});
  words.insert(words.end(), command.arguments.begin(), command.arguments.end());
  const std::string nvcc = find_nvcc();
  std::cout.flush();
  ::execv(nvcc.c_str(), arguments_of(words).data());
  throw InputError(nvcc, "", "it cannot be started: " + system_message(errno));
}

}  // namespace

void add_cuda(CLI::App& app, Action& chosen) {
  auto command = std::make_shared<CudaCommand>();
  CLI::App* cuda = app.add_subcommand(
      "cuda", "Run a CUDA program on the virtual GPU, without a GPU; exit code 1 if there are findings");
  cuda->add_option("--policy", command->policy, kPolicyHelp)->capture_default_str();
  add_check_option(*cuda, command->checks);
  cuda->add_option("--target", command->target, "Architecture: 90 for sm_90a, 100 for sm_100a, 120 for sm_120a")
      ->check(CLI::IsMember({90, 100, 120}))
      ->capture_default_str();
  add_sum_option(*cuda, command->sum);
  add_limit_option(*cuda, "--max-instructions", command->most_instructions, "Stop a kernel after N warp instructions",
                   "N");
  add_limit_option(*cuda, "--max-memory", command->most_memory, "Device memory; the host's memory backs all of it",
                   "BYTES");
  cuda->add_option("--ctas", command->ctas, std::string(ptx::kCtasHelp) + ", in each launch")->type_name("LIST");
  add_jobs_option(*cuda, command->jobs);
  cuda->add_option("--max-reports", command->max_reports, "Print at most N different reports of a launch")
      ->check(CLI::Range(1, 10'000))
      ->capture_default_str();
  cuda->add_flag("--no-leaks", command->no_leaks, "Do not report memory that is not freed at the end");
  CLI::Option* debug = cuda->add_flag(
      "--gdb", command->debug,
      "Stop at the first report, and read commands of the debugger from standard input, which the program then finds "
      "empty");
  cuda->add_option("--break", command->breaks,
                   "Also stop at FILE:LINE, at FILE:LINE if %REGISTER OP N, or where a kernel begins; may be repeated")
      ->type_name("PLACE")
      ->allow_extra_args(false)
      ->needs(debug);
  CLI::Option* report = cuda->add_option("--report", command->report, "Also write the reports to this file at the end")
                            ->type_name("FILE")
                            ->check(writes_file());
  cuda->add_option("--format", command->format,
                   "Format of --report: text, json, junit or sarif [default: by the ending .json, .xml or .sarif]")
      ->check(CLI::IsMember({"text", "json", "junit", "sarif"}))
      ->needs(report);
  // Everything from the program's name on is the program's, options too.
  cuda->prefix_command();
  add_help_section(*cuda, "Program",
                   {"The first word that is no option, and everything after it: the program and its arguments"});
  std::vector<std::string> commands = ptx::debug_commands();
  commands.insert(commands.end() - 1, "detach          run the program to its end without the debugger");
  add_help_section(*cuda, "Commands of --gdb", commands);
  add_examples(
      *cuda, {"kvscope nvcc -o my_test my_test.cu", "kvscope cuda ./my_test --size 64",
              "kvscope cuda --report findings.sarif ./my_test", "kvscope cuda --gdb --break my_test.cu:12 ./my_test"});
  cuda->final_callback([command, cuda, &chosen] {
    const std::vector<std::string> words = cuda->remaining();
    // No program's name begins so: a mistyped option of kvscope cuda.
    if (!words.empty() && words.front().starts_with('-') && words.front() != "--")
      throw CLI::ExtrasError(cuda->get_name(), words);
    for (const std::string& word : words) command->program.push_back(word);
    chosen = [command] { return run_cuda(*command); };
  });
}

void add_nvcc(CLI::App& app, Action& chosen) {
  auto command = std::make_shared<NvccCommand>();
  CLI::App* nvcc =
      app.add_subcommand("nvcc", "Compile a program for kvscope cuda: nvcc with the options that it needs");
  nvcc->prefix_command();
  add_examples(*nvcc, {"kvscope nvcc -O2 -o my_test my_test.cu", "make NVCC='kvscope nvcc'"});
  nvcc->final_callback([command, nvcc, &chosen] {
    command->arguments = nvcc->remaining();
    chosen = [command] { return run_nvcc(*command); };
  });
}

}  // namespace kvscope::apps
