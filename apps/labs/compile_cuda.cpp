// CUDA to PTX: nvcc where it is installed, else NVRTC of NVIDIA's Python wheel, else clang. NVRTC is a library, so this
// program runs itself in the sandbox (`kvscope lab nvrtc`, nvrtc.h) to load it there. clang has no CUDA headers: the
// course's clang_cuda.h is in their place.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "apps/labs/compile.h"
#include "apps/labs/compile_job.h"
#include "apps/labs/nvrtc.h"
#include "core/base/errors.h"
#include "core/base/file.h"
#include "core/base/pending_folder.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kNvrtcFolder = "/lab/nvrtc", kProgram = "/lab/kvscope", kClang = "/usr/bin/clang++";
constexpr std::int64_t kCompilerMemory = std::int64_t{8} << 30;  // [bytes]

std::optional<fs::path> find_nvcc() {
  std::error_code ignored;
  for (const char* const folder : {"/usr/local/cuda", "/usr"}) {
    if (fs::is_regular_file(fs::path(folder) / "bin" / "nvcc", ignored)) return fs::canonical(folder, ignored);
  }
  return std::nullopt;
}

SandboxJob nvcc_job(const fs::path& toolkit, std::string_view architecture, std::string_view file) {
  SandboxJob job;
  job.command = {(toolkit / "bin" / "nvcc").string(),
                 "-ptx",
                 "-std=c++17",
                 "-lineinfo",
                 fmt::format("-arch={}", architecture),
                 "-o",
                 fmt::format("{}/kernel.ptx", kOut),
                 fmt::format("{}/{}", kSources, file)};
  if (toolkit != "/usr") job.mounts.push_back({toolkit, toolkit.string()});
  return job;
}

SandboxJob nvrtc_job(const fs::path& program, const fs::path& library, std::string_view architecture,
                     std::string_view file) {
  SandboxJob job;
  job.command = {std::string(kProgram),
                 "lab",
                 "nvrtc",
                 fmt::format("{}/{}", kNvrtcFolder, library.filename().string()),
                 fmt::format("{}/{}", kSources, file),
                 fmt::format("{}/kernel.ptx", kOut),
                 std::string(architecture)};
  job.mounts = {{program, std::string(kProgram)}, {library.parent_path(), std::string(kNvrtcFolder)}};
  return job;
}

// The architecture is one that clang 14 has. Instructions of later ones are inline assembly, which clang does not
// check, and the virtual GPU runs the module as one of sm_90a.
SandboxJob clang_job(const fs::path& course, std::string_view file) {
  SandboxJob job;
  job.command = {std::string(kClang),
                 "-x",
                 "cuda",
                 "--cuda-device-only",
                 "--cuda-gpu-arch=sm_86",
                 "-Xclang",
                 "-target-feature",
                 "-Xclang",
                 "+ptx75",
                 "-nocudainc",
                 "-nocudalib",
                 "-Wno-unknown-cuda-version",
                 "-fno-caret-diagnostics",
                 "-std=c++17",
                 "-O2",
                 "-gline-tables-only",
                 "-S",
                 "-include",
                 fmt::format("{}/clang_cuda.h", kHarness),
                 "-o",
                 fmt::format("{}/kernel.ptx", kOut),
                 fmt::format("{}/{}", kSources, file)};
  job.mounts = {{course / "harness", std::string(kHarness)}};
  return job;
}

// The library that --nvrtc names, else the one that nvrtc.h finds where there is no nvcc.
std::optional<fs::path> chosen_nvrtc(const GradeOptions& options, bool has_nvcc) {
  if (options.nvrtc.empty()) return has_nvcc || options.clang ? std::nullopt : find_nvrtc();
  std::error_code error;
  const fs::path library = fs::canonical(options.nvrtc, error);
  if (!error && fs::is_regular_file(library, error)) return library;
  throw InputError("command line", "--nvrtc", fmt::format("'{}' is not a file", options.nvrtc.string()));
}

}  // namespace

Compiled compile_cuda(const Grader& grader, const SubmittedFile& file, std::string_view architecture) {
  const GradeOptions& options = grader.options();
  const std::optional<fs::path> toolkit = find_nvcc();
  const std::optional<fs::path> nvrtc = chosen_nvrtc(options, toolkit.has_value());
  const bool runs_itself = nvrtc && !options.program.empty();
  std::error_code ignored;
  const bool has_clang = fs::is_regular_file(kClang, ignored);
  const bool by_clang = !runs_itself && has_clang && (options.clang || !toolkit);
  if (!runs_itself && !by_clang && (options.clang || !toolkit)) {
    return {
        false,
        fmt::format("no CUDA compiler was found: install nvcc, or NVRTC with 'pip install {}', or clang, or submit {} "
                    "in place of {}\n",
                    kNvrtcWheel, ptx_name_of(file.name), file.name),
        {}};
  }
  const TemporaryFolder folder;
  const fs::path sources = folder / "src", out = folder / "out";
  fs::create_directory(out);
  copy_headers(grader.lab(), sources);
  write_file_atomically(sources / file.name, file.text);
  SandboxJob job = runs_itself ? nvrtc_job(options.program, *nvrtc, architecture, file.name)
                   : by_clang  ? clang_job(options.course, file.name)
                               : nvcc_job(*toolkit, architecture, file.name);
  job.limits = compiler_limits(options.limits);
  job.limits.memory_bytes = kCompilerMemory;
  job.mounts.push_back({sources, std::string(kSources)});
  job.mounts.push_back({out, std::string(kOut), true});
  return run_compiler(options, job, out / "kernel.ptx", {std::string(kSources), sources.string()});
}

}  // namespace kvscope::labs
