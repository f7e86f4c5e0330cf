#include "apps/labs/triton.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <system_error>

#include "apps/labs/compile_job.h"
#include "apps/labs/kernel_run.h"
#include "apps/labs/user_python.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/json.h"
#include "core/base/pending_folder.h"
#include "core/base/report.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kPackages = "/lab/packages", kTritonPackage = "/lab/packages/triton";
constexpr std::size_t kMaxFacts = 1024;                        // [bytes] of the first line
constexpr std::int64_t kMostShared = 227 * 1024;               // [bytes] of a CTA on sm_90a
constexpr std::int64_t kTritonMemory = std::int64_t{4} << 30;  // [bytes]

// A member of the facts: a whole number from 0 to 2^53, as JSON programs agree on it.
std::optional<std::int64_t> fact(const json::Value& facts, std::string_view key) {
  const json::Value* const member = facts.find(key);
  const std::int64_t* const number = member == nullptr ? nullptr : member->as_i64();
  return number == nullptr || *number < 0 ? std::nullopt : std::optional(*number);
}

std::string fault_of_facts(const json::Value& facts, const TritonTask& task, std::int64_t& shared) {
  const json::Value* const name = facts.find("name");
  if (name == nullptr || name->as_string() == nullptr) return "the compiled kernel has no name";
  if (*name->as_string() != task.kernel) return fmt::format("the compiled kernel is not named '{}'", task.kernel);
  for (const char* const key : {"num_warps", "num_ctas", "shared", "scratch"}) {
    if (!fact(facts, key)) return fmt::format("the compiled kernel has no number '{}'", key);
  }
  if (fact(facts, "num_warps") != task.warps) {
    return fmt::format("the kernel is compiled for {}, and the launch has {} warps: remove warp specialization",
                       counted(*fact(facts, "num_warps"), "warp"), task.warps);
  }
  if (fact(facts, "num_ctas") != 1) {
    return fmt::format("the kernel is compiled for clusters of {} CTAs, and the launch has none",
                       *fact(facts, "num_ctas"));
  }
  if (fact(facts, "scratch") != 0) {
    return fmt::format(
        "the kernel needs {} bytes of global scratch memory, and the launch has none: do not make tensor "
        "descriptors in the kernel",
        *fact(facts, "scratch"));
  }
  shared = *fact(facts, "shared");
  if (shared > kMostShared) {
    return fmt::format("the kernel needs {} bytes of shared memory, more than {}: take smaller blocks", shared,
                       kMostShared);
  }
  return {};
}

// A folder or file that every job sees anyway, under its own path.
bool is_of_system(const fs::path& path) {
  const std::string text = path.string();
  return text.starts_with("/usr/lib/") || text.starts_with("/usr/bin/") || text.starts_with("/usr/lib64/");
}

TritonPlace ask(const fs::path& named) {
  const SandboxEnd end = run_user_python(named, triton_finder());
  if (!end.fine() && !named.empty()) {
    throw InputError(
        "command line", "--python",
        fmt::format("'{}' cannot be run as Python: {}", named.string(), end.errors.substr(0, end.errors.find('\n'))));
  }
  TritonPlace place;
  std::string_view rest = end.output;
  for (fs::path* const path : {&place.python, &place.library, &place.shared, &place.package, &place.facts}) {
    const std::size_t line = std::min(rest.find('\n'), rest.size());
    *path = rest.substr(0, line);
    rest.remove_prefix(std::min(line + 1, rest.size()));
  }
  const bool absolute = place.python.is_absolute() && place.library.is_absolute() && place.package.is_absolute();
  return end.fine() && absolute ? place : TritonPlace();
}

SandboxJob triton_job(const TritonPlace& place, const TritonTask& task, std::string_view file, const fs::path& empty) {
  json::Array parameters;
  for (const TritonParameter& each : task.parameters) {
    parameters.push_back(json::Array{each.name, each.type, each.divisor});
  }
  json::Value description;
  description.set("kernel", task.kernel);
  description.set("warps", task.warps);
  description.set("parameters", std::move(parameters));
  SandboxJob job;
  // The sandbox has no cache of the dynamic linker.
  if (!place.shared.empty()) {
    job.command = {"/usr/bin/env", fmt::format("LD_LIBRARY_PATH={}", place.shared.parent_path().string())};
  }
  job.command.insert(job.command.end(), {place.python.string(), "-I", "-S", "-B", std::string(kTool),
                                         std::string(kTritonPackage), fmt::format("{}/{}", kSources, file),
                                         json::dump(description, -1), fmt::format("{}/kernel", kOut)});
  // Python finds its standard library by its own path.
  std::vector<fs::path> own{place.python, place.library};
  if (!place.shared.empty()) own.push_back(place.shared);
  for (const fs::path& path : own) {
    if (!is_of_system(path)) job.mounts.push_back({path, path.string()});
  }
  // Other packages of that Python are not for submissions.
  std::error_code ignored;
  const fs::path packages = place.library / "site-packages";
  if (!is_of_system(place.library) && fs::is_directory(packages, ignored)) {
    job.mounts.push_back({empty, packages.string()});
  }
  job.mounts.push_back({place.package, std::string(kTritonPackage)});
  if (!place.facts.empty()) {
    job.mounts.push_back({place.facts, fmt::format("{}/{}", kPackages, place.facts.filename().string())});
  }
  return job;
}

}  // namespace

TritonKernel read_triton_product(std::string_view product, const TritonTask& task, std::int64_t most_ptx) {
  TritonKernel kernel;
  const std::size_t end = product.substr(0, kMaxFacts).find('\n');
  if (end == std::string_view::npos) {
    kernel.fault = "the compiled kernel does not begin with a line of its facts";
    return kernel;
  }
  try {
    const json::Value facts = json::parse(product.substr(0, end), "facts");
    kernel.fault = fault_of_facts(facts, task, kernel.shared);
  } catch (const InputError&) {
    kernel.fault = "the compiled kernel does not begin with a line of its facts";
  }
  product.remove_prefix(end + 1);
  if (kernel.fault.empty() && static_cast<std::int64_t>(product.size()) > most_ptx) {
    kernel.fault = fmt::format(
        "the compiled kernel has {} bytes of PTX, more than {}: take smaller blocks, and remove "
        "tl.static_range{}",
        product.size(), most_ptx, larger_limit("--max-ptx"));
  }
  if (kernel.fault.empty()) kernel.ptx = product;
  return kernel;
}

TritonPlace find_triton(const GradeOptions& options) {
  static std::map<fs::path, TritonPlace> places;
  const auto known = places.find(options.python);
  if (known != places.end()) return known->second;
  if (options.python.empty()) return places[{}] = ask({});
  return places[options.python] = ask(fs::absolute(options.python));
}

Compiled compile_triton(const Grader& grader, const SubmittedFile& file, const TritonTask& task) {
  const GradeOptions& options = grader.options();
  const TritonPlace place = find_triton(options);
  if (!place.found()) {
    const std::string python = options.python.empty() ? "python3" : options.python.string();
    return {false,
            fmt::format("{} has no package triton: install it with '{} -m pip install triton', name a Python that has "
                        "it with --python FILE, or submit {} in place of {}\n",
                        python, python, ptx_name_of(file.name), file.name),
            {}};
  }
  const TemporaryFolder folder;
  const fs::path sources = folder / "src", out = folder / "out", empty = folder / "empty", tool = folder / "tool.py";
  for (const fs::path& each : {sources, out, empty}) fs::create_directory(each);
  write_file_atomically(sources / file.name, file.text);
  write_file_atomically(tool, triton_compiler());
  SandboxJob job = triton_job(place, task, file.name, empty);
  job.limits = compiler_limits(options.limits);
  job.limits.processes = false;  // ptxas is not started
  job.limits.threads = true;     // Triton 3.4 runs each pass in a thread of its own
  job.limits.memory_bytes = kTritonMemory;
  job.mounts.push_back({tool, std::string(kTool)});
  job.mounts.push_back({sources, std::string(kSources)});
  job.mounts.push_back({out, std::string(kOut), true});
  return run_compiler(options, job, out / "kernel", {std::string(kSources), sources.string()});
}

}  // namespace kvscope::labs
