#include "gpu/driver/ptx_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fstream>
#include <map>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/base/errors.h"
#include "gpu/driver/engine.h"
#include "gpu/driver/runtime.h"
#include "gpu/virtual/machine/launch_checks.h"

namespace kvscope::driver {
namespace {

constexpr std::uint64_t kMostBehind = std::uint64_t{256} << 20;  // [bytes] copied behind a mapping's highest pointer
constexpr std::size_t kCompared = 4096;                          // [bytes] compared at once

struct HostMapping {
  std::uint64_t begin = 0, end = 0;
  bool writable = false;
};

// The readable mappings of this process, ascending.
std::vector<HostMapping> host_mappings() {
  std::vector<HostMapping> out;
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    HostMapping m;
    char access[5] = "";
    if (std::sscanf(line.c_str(), "%" SCNx64 "-%" SCNx64 " %4s", &m.begin, &m.end, access) != 3 || access[0] != 'r')
      continue;
    m.writable = access[1] == 'w';
    out.push_back(m);
  }
  return out;
}

const HostMapping* mapping_of(const std::vector<HostMapping>& mappings, std::uint64_t address) {
  const auto behind = std::upper_bound(mappings.begin(), mappings.end(), address,
                                       [](std::uint64_t a, const HostMapping& m) { return a < m.begin; });
  if (behind == mappings.begin() || address >= std::prev(behind)->end) return nullptr;
  return &*std::prev(behind);
}

// Host memory that the kernel works on.
struct Piece {
  std::uint64_t begin = 0, end = 0;  // of the host
  bool writable = false;
  std::string name;              // "argument 0"
  std::uint64_t device = 0;      // address of the copy
  std::vector<std::byte> bytes;  // before the launch
};

// Writes what the kernel changed, and nothing else: other threads may use the rest of the mapping.
void copy_back(const Piece& piece, const std::vector<std::byte>& after) {
  auto* const host = reinterpret_cast<std::byte*>(piece.begin);
  for (std::size_t at = 0; at < after.size(); at += kCompared) {
    const std::size_t count = std::min(kCompared, after.size() - at);
    if (std::memcmp(after.data() + at, piece.bytes.data() + at, count) == 0) continue;
    if (!piece.writable) throw InputError("ptx_run", piece.name, "the kernel wrote memory that the host cannot write");
    for (std::size_t i = at; i < at + count; ++i) {
      if (after[i] != piece.bytes[i]) host[i] = after[i];
    }
  }
}

class HostLaunch {
 public:
  HostLaunch(const char* source, std::vector<std::uint64_t> values)
      : engine_(options()), module_(engine_.load(source, "ptx_run.ptx")), values_(std::move(values)) {
    const ptx::Module& text = *module_.program->module;
    const auto is_kernel = [](const ptx::Function& f) { return f.entry && f.defined; };
    const auto kernel = std::find_if(text.functions.begin(), text.functions.end(), is_kernel);
    if (kernel == text.functions.end()) throw InputError("ptx_run", "source", "it has no kernel");
    function_ = &*kernel;
    if (values_.size() != function_->parameters.size())
      throw InputError("ptx_run", "n_args",
                       fmt::format("{}: kernel {} has {} parameters", values_.size(), function_->name,
                                   function_->parameters.size()));
  }

  int run(ptx::LaunchConfig config) {
    place_pieces();
    config.kernel = function_->name;
    config.params = params();
    config.options.shared_opt_in = ptx::most_shared(engine_.options().target);
    const ptx::LaunchResult result = engine_.launch(module_, std::move(config));
    std::fwrite(result.printed.data(), 1, result.printed.size(), stdout);
    std::fflush(stdout);
    for (const ptx::Report& report : result.reports) std::fputs((to_text(report) + "\n\n").c_str(), stderr);
    for (const auto& [mapping, piece] : pieces_)
      copy_back(piece, engine_.memory().read(piece.device, std::ssize(piece.bytes)));
    return result.status == ptx::LaunchStatus::finished ? 0 : 1;
  }

 private:
  static EngineOptions options() {
    EngineOptions out = options_from_environment().engine;
    out.global_init = false;  // the host's memory always has values
    return out;
  }
  [[nodiscard]] const ptx::Variable& parameter(std::size_t i) const {
    return module_.program->module->variables[static_cast<std::size_t>(function_->parameters[i])];
  }

  // One for each mapping that has a pointer.
  void place_pieces() {
    const std::vector<HostMapping> mappings = host_mappings();
    for (std::size_t i = 0; i < values_.size(); ++i) {
      const HostMapping* const m = parameter(i).bytes == 8 ? mapping_of(mappings, values_[i]) : nullptr;
      if (m == nullptr) continue;
      Piece& piece = pieces_[m->begin];
      if (piece.end == 0 || values_[i] < piece.begin) {
        piece.begin = values_[i];
        piece.name = fmt::format("argument {}", i);
      }
      piece.writable = m->writable;
      piece.end = std::max(piece.end, std::min(m->end, values_[i] + kMostBehind));
    }
    for (auto& [mapping, piece] : pieces_) {
      const auto* const host = reinterpret_cast<const std::byte*>(piece.begin);
      piece.bytes.assign(host, host + (piece.end - piece.begin));
      piece.device = engine_.memory().allocate(std::ssize(piece.bytes), piece.name);
      engine_.memory().write(piece.device, piece.bytes);
    }
  }

  [[nodiscard]] std::vector<std::byte> params() const {
    std::vector<std::byte> out(static_cast<std::size_t>(function_->parameter_bytes));
    for (std::size_t i = 0; i < values_.size(); ++i) {
      std::uint64_t value = values_[i];
      for (const auto& [mapping, piece] : pieces_) {
        if (parameter(i).bytes == 8 && value >= piece.begin && value < piece.end) {
          value = piece.device + (value - piece.begin);
          break;
        }
      }
      if (parameter(i).bytes > 8)
        throw InputError("ptx_run", fmt::format("argument {}", i),
                         fmt::format("the parameter has {} bytes: at most 8", parameter(i).bytes));
      std::memcpy(out.data() + parameter(i).parameter_offset, &value, static_cast<std::size_t>(parameter(i).bytes));
    }
    return out;
  }

  Engine engine_;
  const ptx::LoadedModule& module_;
  std::vector<std::uint64_t> values_;
  const ptx::Function* function_ = nullptr;
  std::map<std::uint64_t, Piece> pieces_;  // by the mapping's begin
};

}  // namespace
}  // namespace kvscope::driver

extern "C" __attribute__((visibility("default"))) int ptx_run(const char* source, int n_args, void* args[], int block_x,
                                                              int block_y, int block_z, int grid_x, int grid_y,
                                                              int grid_z, int dynamic_shared) {
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  try {
    if (source == nullptr || n_args < 0 || (n_args > 0 && args == nullptr))
      throw kvscope::InputError("ptx_run", "", "the source or the array of arguments is missing");
    std::vector<std::uint64_t> values;
    for (int i = 0; i < n_args; ++i) values.push_back(reinterpret_cast<std::uint64_t>(args[i]));
    kvscope::ptx::LaunchConfig config;
    config.block = {block_x, block_y, block_z};
    config.grid = {grid_x, grid_y, grid_z};
    config.dynamic_shared = dynamic_shared;
    return kvscope::driver::HostLaunch(source, std::move(values)).run(std::move(config));
  } catch (const std::exception& error) {
    std::fputs(fmt::format("kvscope: {}\n", error.what()).c_str(), stderr);
    return -1;
  }
}
