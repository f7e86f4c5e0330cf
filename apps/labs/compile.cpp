#include "apps/labs/compile.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <utility>

#include "apps/labs/compile_cache.h"
#include "apps/labs/compile_job.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kCompiler = "/usr/bin/g++";

// "/lab/src/rows.cpp:3: ..." -> "rows.cpp:3: ...", and the same for the folders outside, which --trust shows.
std::string shortened(std::string messages, const std::vector<std::string>& folders) {
  for (const std::string& folder : folders) {
    for (std::size_t at = messages.find(folder + "/"); at != std::string::npos; at = messages.find(folder + "/", at)) {
      messages.erase(at, folder.size() + 1);
    }
  }
  return messages;
}

// What the compiler left under that name; only a regular file counts.
std::string read_product(const fs::path& path) {
  std::error_code ignored;
  const bool is_file = fs::symlink_status(path, ignored).type() == fs::file_type::regular;
  return is_file ? read_file(path, kMaxProduct) : std::string();
}

// The signal that ended a process of the compiler, by what the driver writes about it; 0: none did. g++ writes "fatal
// error: CPU time limit exceeded signal terminated program cc1plus", or "ld terminated with signal 9 [Killed]"; nvcc
// writes "'cicc' died due to signal 9".
int signal_in(const std::string& messages) {
  constexpr std::pair<std::string_view, int> kSigns[] = {{"CPU time limit exceeded", SIGXCPU},
                                                         {"died due to signal 24", SIGXCPU},
                                                         {"Killed signal terminated program", SIGKILL},
                                                         {"terminated with signal 9", SIGKILL},
                                                         {"died due to signal 9", SIGKILL}};
  for (const auto& [sign, signal] : kSigns) {
    if (messages.find(sign) != std::string::npos) return signal;
  }
  return 0;
}

}  // namespace

SandboxLimits compiler_limits(const LabLimits& lab) {
  SandboxLimits limits;
  limits.cpu_seconds = lab.compile_seconds;
  limits.wall_seconds = 1.5 * static_cast<double>(lab.compile_seconds);
  limits.memory_bytes = std::int64_t{2} << 30;
  limits.file_bytes = kMaxProduct;
  limits.output_bytes = 64 * 1024;
  limits.processes = true;
  return limits;
}

Compiled run_compiler(const GradeOptions& options, SandboxJob job, const fs::path& product,
                      const std::vector<std::string>& folders) {
  const CompileCache cache(options.cache);
  const std::string key =
      options.cache.empty() ? std::string() : CompileCache::key(job, options.sandbox == SandboxKind::trusted);
  if (auto known = cache.find(key)) return *std::move(known);
  SandboxEnd end = run_in_sandbox(options.sandbox, job);
  Compiled result;
  result.messages = shortened(end.errors, folders);
  if (end.fine()) result.product = read_product(product);
  result.ok = !result.product.empty();
  if (end.exit_code != 0) end.signal = signal_in(end.errors);
  if (!end.fine() && (end.exit_code == 0 || end.signal != 0 || end.out_of_memory || result.messages.empty())) {
    // First: reports show the first lines.
    result.messages =
        fmt::format("the compiler was stopped: {}\n", end_text(end, job.limits, {.time = "--max-compile-time"})) +
        result.messages;
  }
  cache.keep(key, result);
  return result;
}

void copy_headers(const Lab& lab, const fs::path& to) {
  fs::create_directory(to);
  for (const auto& entry : fs::directory_iterator(lab.starter())) {
    if (entry.path().extension() == ".h") fs::copy_file(entry.path(), to / entry.path().filename());
  }
}

namespace {

// The object file of the lab's harness.cpp. A class has one harness: it is compiled once per process, without any
// file of a student.
const std::string& harness_object(const Grader& grader) {
  static std::map<fs::path, std::string> objects;
  const fs::path source = grader.lab().folder / "harness.cpp";
  std::string& object = objects[source];
  if (!object.empty()) return object;
  const TemporaryFolder folder;
  const fs::path sources = folder / "src", out = folder / "out";
  copy_headers(grader.lab(), sources);
  fs::create_directory(out);
  SandboxJob job;
  job.limits = compiler_limits(grader.options().limits);
  job.command = {std::string(kCompiler),
                 "-std=c++20",
                 "-O1",
                 fmt::format("-I{}", kSources),
                 fmt::format("-I{}", kHarness),
                 "-c",
                 "-o",
                 fmt::format("{}/main.o", kOut),
                 std::string(kMain)};
  job.mounts = {{sources, std::string(kSources)},
                {grader.options().course / "harness", std::string(kHarness)},
                {source, std::string(kMain)},
                {out, std::string(kOut), true}};
  const Compiled compiled = run_compiler(grader.options(), job, out / "main.o", {});
  if (!compiled.ok) throw InputError(source.string(), "", "does not compile: " + compile_failure(compiled, 3));
  object = compiled.product;
  return object;
}

}  // namespace

Compiled compile_cpp(const Grader& grader, const Submission& submission) {
  if (std::error_code ignored; !fs::exists(kCompiler, ignored)) {
    throw InputError(
        grader.lab().id(), "",
        fmt::format("needs the compiler {}: install the package g++ (Debian, Ubuntu) or gcc-c++ (Fedora)", kCompiler));
  }
  const TemporaryFolder folder;
  const fs::path sources = folder / "src", out = folder / "out", object = folder / "main.o";
  copy_headers(grader.lab(), sources);
  fs::create_directory(out);
  write_file_atomically(object, harness_object(grader));
  SandboxJob job;
  job.limits = compiler_limits(grader.options().limits);
  job.command = {std::string(kCompiler),
                 "-std=c++20",
                 "-O1",
                 "-Wall",
                 "-fmax-errors=5",
                 "-fdiagnostics-color=never",
                 "-fno-diagnostics-show-caret",
                 fmt::format("-I{}", kSources),
                 "-o",
                 fmt::format("{}/program", kOut),
                 std::string(kObject)};
  for (const SubmittedFile& file : submission.files) {
    write_file_atomically(sources / file.name, file.text);
    if (file.name.ends_with(".cpp")) job.command.push_back(fmt::format("{}/{}", kSources, file.name));
  }
  job.mounts = {{sources, std::string(kSources)}, {object, std::string(kObject)}, {out, std::string(kOut), true}};
  return run_compiler(grader.options(), job, out / "program", {std::string(kSources), sources.string(), "/lab"});
}

std::string compile_failure(const Compiled& compiled, int lines) {
  std::size_t end = 0;
  for (int line = 0; line < lines && end < compiled.messages.size(); ++line) {
    const std::size_t next = compiled.messages.find('\n', end);
    end = next == std::string::npos ? compiled.messages.size() : next + 1;
  }
  return compiled.messages.substr(0, end);
}

}  // namespace kvscope::labs
