#include "gpu/virtual/machine/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "core/base/errors.h"
#include "gpu/virtual/machine/cta_sample.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/machine/launch_parts.h"
#include "gpu/virtual/machine/memory/windows.h"
#include "gpu/virtual/machine/program/detail/address_operand.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kMostConstants = 65536;  // [bytes] per module

// Device address of a module's variable, 0 if it has none.
std::uint64_t address_of(const std::vector<std::pair<std::int32_t, std::uint64_t>>& addresses, std::int32_t variable) {
  const auto at = std::lower_bound(addresses.begin(), addresses.end(), std::pair{variable, std::uint64_t{0}});
  return at != addresses.end() && at->first == variable ? at->second : 0;
}

std::uint64_t value_of(const InitItem& item, const LoadedModule& module) {
  const auto add = static_cast<std::uint64_t>(item.value);
  switch (item.kind) {
    case InitItem::Kind::bits:
      return add;
    case InitItem::Kind::variable:
    case InitItem::Kind::generic_variable:
      return address_of(module.addresses, item.index) + add;
    case InitItem::Kind::function:
      return code_address(item.index) + add;
  }
  return 0;
}

void initialize(const Variable& v, const LoadedModule& module, std::uint64_t address, DeviceMemory& memory) {
  const std::size_t size = std::max<std::size_t>(static_cast<std::size_t>(bits(v.type)) / 8, 1);
  std::vector<std::byte> bytes(static_cast<std::size_t>(v.bytes));
  for (std::size_t i = 0; i < v.init.size() && (i + 1) * size <= bytes.size(); ++i) {
    std::uint64_t value = value_of(v.init[i], module);
    if (v.init[i].byte_mask != 0) value >>= 8 * std::countr_zero(static_cast<unsigned>(v.init[i].byte_mask));
    std::memcpy(bytes.data() + i * size, &value, std::min<std::size_t>(size, sizeof value));
  }
  memory.write(address, bytes);
}

// Fills in addresses of variables in the initial registers of an activation; local ones from 0, shared ones of rank 0.
void fill_addresses(const Launch& launch, const FunctionCode& code, RegisterBuffer& registers) {
  for (const AddressPlace& reg : code.addresses) {
    std::uint64_t base = address_of(launch.module_addresses, reg.variable);
    if (reg.space == Space::local) {
      base = static_cast<std::uint64_t>(launch.program->placements[static_cast<std::size_t>(reg.variable)]);
    } else if (reg.space == Space::shared) {
      for (const auto& [variable, offset] : launch.layout->shared) {
        if (variable == reg.variable) base = static_cast<std::uint64_t>(offset);
      }
    }
    base += static_cast<std::uint64_t>(reg.offset);
    const std::uint64_t low_and_high[2] = {base, 0};  // an operand of 128 bits holds the address and zeros
    for (int lane = 0; lane < kLanes; ++lane) {
      std::memcpy(registers.data() + reg.reg + lane * reg.bytes, low_and_high, reg.bytes);
    }
  }
}

std::shared_ptr<const std::vector<RegisterBuffer>> initial_registers(const Launch& launch) {
  const Program& program = *launch.program;
  auto out = std::make_shared<std::vector<RegisterBuffer>>(program.functions.size());
  for (std::size_t f = 0; f < program.functions.size(); ++f) {
    if (!launch.layout->reaches[f]) continue;
    const FunctionCode& code = program.functions[f];
    (*out)[f].assign(code.initial.begin(), code.initial.end());
    fill_addresses(launch, code, (*out)[f]);
  }
  return out;
}

// Whether the kernel, or a function that it can reach, reads the address of the grid's workspace: a barrier of the grid.
bool reads_grid_workspace(const Launch& launch) {
  const Program& program = *launch.program;
  for (std::size_t f = 0; f < program.functions.size(); ++f) {
    if (!launch.layout->reaches[f]) continue;
    for (const SpecialPlace& place : program.functions[f].specials) {
      if (place.special == kGridWorkspaceHigh || place.special == kGridWorkspaceLow) return true;
    }
  }
  return false;
}

}  // namespace

bool LaunchResult::clean() const {
  return status == LaunchStatus::finished &&
         std::none_of(reports.begin(), reports.end(), [](const Report& r) { return r.severity != Severity::note; });
}

std::string LaunchResult::sample_text() const {
  return ctas == grid_ctas ? "" : fmt::format("sampled: {} of {} CTAs ran", ctas, grid_ctas);
}

std::string LaunchResult::jobs_text() const {
  if (jobs < 2) return "";
  return one_thread.empty() ? fmt::format("{} threads", threads) : fmt::format("one thread: {}", one_thread);
}

LaunchResult result_of(Launch& launch) {
  return {.status = launch.status,
          .steps = launch.step,
          .reports = launch.reports.all(),
          .repeated_reports = launch.reports.repeated(),
          .printed = std::move(launch.printed),
          .ctas = launch.ctas_to_run(),
          .grid_ctas = launch.cta_count(),
          .jobs = launch.config.options.jobs,
          .threads = launch.threads,
          .one_thread = launch.one_thread};
}

Device::Device(ProgramOptions options, std::int64_t most_bytes) : options_(options), memory_(most_bytes) {}

const LoadedModule& Device::load(Module module) {
  auto loaded = std::make_unique<LoadedModule>();
  loaded->program = make_program(std::move(module), options_);
  const Module& m = *loaded->program->module;
  std::int64_t constants = 0;
  for (const Variable& v : m.variables) constants += v.space == Space::constant ? v.bytes : 0;
  if (constants > kMostConstants) {
    throw InputError(m.file, "", fmt::format("{} bytes of .const variables: at most {}", constants, kMostConstants));
  }
  const auto is_placed = [](const Variable& v) {
    return (v.space == Space::global || v.space == Space::constant) && v.bytes > 0;
  };
  for (std::size_t i = 0; i < m.variables.size(); ++i) {
    const Variable& v = m.variables[i];
    if (!is_placed(v)) continue;
    const std::uint64_t address =
        v.space == Space::constant ? memory_.allocate_constant(v.bytes, v.name) : memory_.allocate(v.bytes, v.name);
    loaded->addresses.emplace_back(static_cast<std::int32_t>(i), address);
  }
  for (const auto& [i, address] : loaded->addresses) {
    initialize(m.variables[static_cast<std::size_t>(i)], *loaded, address, memory_);
  }
  modules_.push_back(std::move(loaded));
  return *modules_.back();
}

Launch Device::begin(const LoadedModule& module, const LaunchConfig& config, Monitor* monitor) {
  const Program& program = *module.program;
  std::vector<Fault> faults = launch_faults(program, config);
  if (!faults.empty()) throw GeometryError(fmt::format("launch of '{}'", config.kernel), std::move(faults));
  Launch launch;
  launch.program = module.program;
  launch.function = find_kernel(program, config.kernel);
  launch.config = config;
  const auto& required = program.module->functions[static_cast<std::size_t>(launch.function)].limits.cluster;
  if (launch.config.cluster[0] == 0 && required[0] > 0) launch.config.cluster = {required[0], required[1], required[2]};
  if (!config.options.ctas.empty())
    launch.sample = sample_ctas(config.options.ctas, config.grid, cluster_extents(launch.config.cluster)).clusters;
  launch.layout = &program.kernels.at(launch.function);
  launch.memory = &memory_;
  launch.monitor = monitor;
  launch.module_addresses = module.addresses;
  launch.number = ++launches_;
  launch.random = config.options.seed;
  launch.reports = Reports(config.options.max_reports, config.options.suppressions);
  launch.initial_registers = initial_registers(launch);
  launch.reads_grid_workspace = reads_grid_workspace(launch);
  if (config.options.cooperative && launch.reads_grid_workspace) launch.grid_workspace = new_grid_workspace();
  return launch;
}

std::uint64_t Device::new_grid_workspace() {
  if (grid_workspace_ == 0) grid_workspace_ = memory_.allocate(8, "grid workspace");
  const std::array<std::uint32_t, 2> size_and_barrier{8, 0};
  memory_.write(grid_workspace_, std::as_bytes(std::span(size_and_barrier)));
  return grid_workspace_;
}

LaunchResult Device::launch(const LoadedModule& module, const LaunchConfig& config, Monitor* monitor) {
  Launch launch = begin(module, config, monitor);
  run_parts(launch);
  while (launch.status == LaunchStatus::running) run(launch, ~std::uint64_t{0});
  return result_of(launch);
}

}  // namespace kvscope::ptx
