#include "apps/labs/nvrtc.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <string>
#include <vector>

#include "apps/labs/user_python.h"
#include "core/base/errors.h"
#include "core/base/file.h"

namespace kvscope::labs {
namespace fs = std::filesystem;
namespace {

constexpr std::int64_t kMaxSource = 16 * 1024 * 1024;  // [bytes]

// The functions of NVRTC that are called, as its documentation declares them ("NVRTC 13.0", chapter 3): an opaque
// program, results that are 0 for success.
struct NvrtcFunctions {
  using Program = void*;
  int (*create)(Program*, const char* source, const char* name, int headers, const char* const*, const char* const*);
  int (*compile)(Program, int options, const char* const*);
  int (*log_size)(Program, std::size_t*);
  int (*log)(Program, char*);
  int (*ptx_size)(Program, std::size_t*);
  int (*ptx)(Program, char*);
};

template <class Function>
void bind(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw InputError("NVRTC", name, "is missing: is this libnvrtc.so?");
}

// libnvrtc opens libnvrtc-builtins by name when it compiles. The dynamic linker searches that name in few folders, but
// returns a library that is loaded already.
void load_builtins(const fs::path& folder) {
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(folder, ignored)) {
    if (entry.path().filename().string().starts_with("libnvrtc-builtins.so.")) {
      static_cast<void>(dlopen(entry.path().c_str(), RTLD_NOW | RTLD_GLOBAL));
    }
  }
}

NvrtcFunctions load(const fs::path& path) {
  load_builtins(path.parent_path());
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw InputError(path.string(), "", fmt::format("cannot be loaded: {}", dlerror()));
  NvrtcFunctions functions{};
  bind(library, "nvrtcCreateProgram", functions.create);
  bind(library, "nvrtcCompileProgram", functions.compile);
  bind(library, "nvrtcGetProgramLogSize", functions.log_size);
  bind(library, "nvrtcGetProgramLog", functions.log);
  bind(library, "nvrtcGetPTXSize", functions.ptx_size);
  bind(library, "nvrtcGetPTX", functions.ptx);
  return functions;
}

// A text that NVRTC returns in two calls, its size with the final zero first.
std::string text_of(NvrtcFunctions::Program program, int (*size_of)(NvrtcFunctions::Program, std::size_t*),
                    int (*read)(NvrtcFunctions::Program, char*)) {
  std::size_t size = 0;
  if (size_of(program, &size) != 0 || size == 0) return {};
  std::string text(size, '\0');
  if (read(program, text.data()) != 0) return {};
  text.resize(size - 1);
  return text;
}

}  // namespace

std::optional<fs::path> find_nvrtc() {
  static const std::optional<fs::path> found = []() -> std::optional<fs::path> {
    const SandboxEnd end = run_user_python({}, nvrtc_finder());
    const std::string path = end.output.substr(0, end.output.find('\n'));
    std::error_code error;
    const fs::path library = fs::canonical(path, error);
    return end.fine() && !path.empty() && !error ? std::optional(library) : std::nullopt;
  }();
  return found;
}

int compile_with_nvrtc(const fs::path& library, const fs::path& source, const fs::path& out,
                       std::string_view architecture) {
  const NvrtcFunctions nvrtc = load(library);
  const std::string text = read_file(source, kMaxSource);
  NvrtcFunctions::Program program = nullptr;
  if (nvrtc.create(&program, text.c_str(), source.c_str(), 0, nullptr, nullptr) != 0) {
    throw InputError(library.string(), "", "cannot create a program");
  }
  std::string virtual_architecture(architecture);
  if (virtual_architecture.starts_with("sm_")) virtual_architecture.replace(0, 2, "compute");
  const std::array<std::string, 4> options{"--gpu-architecture=" + virtual_architecture, "--std=c++17",
                                           "--generate-line-info", "--include-path=" + source.parent_path().string()};
  std::vector<const char*> words;
  for (const std::string& option : options) words.push_back(option.c_str());
  const bool failed = nvrtc.compile(program, static_cast<int>(words.size()), words.data()) != 0;
  const std::string log = text_of(program, nvrtc.log_size, nvrtc.log);
  std::fputs(log.c_str(), stderr);
  if (failed) return 1;
  write_file_atomically(out, text_of(program, nvrtc.ptx_size, nvrtc.ptx));
  return 0;
}

}  // namespace kvscope::labs
