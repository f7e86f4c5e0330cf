#include "gpu/launch/virtual_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/tma/tensor_map_record.h"
#include "gpu/launch/device_error.h"
#include "gpu/launch/kernel_images.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/check/counters.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/machine/diagnosis/report.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/text/parser.h"

namespace kvscope::gpu {
namespace {

int target_of(const std::string& architecture) {
  if (architecture == "sm_90a") return 90;
  if (architecture == "sm_100a") return 100;
  throw DeviceError(fmt::format("the virtual GPU runs code for sm_90a and sm_100a, not for '{}'", architecture));
}

Costs costs_of(const ptx::Counters& counters) {
  const ptx::OpCounts total = counters.total();
  return {.instructions = total.runs,
          .wavefronts = total.wavefronts,
          .ideal_wavefronts = total.ideal_wavefronts,
          .sectors = total.sectors,
          .ideal_sectors = total.ideal_sectors,
          .tma_bytes = total.credited};
}

}  // namespace

VirtualGpu::VirtualGpu(VirtualGpuOptions options)
    : options_(std::move(options)),
      info_({.kind = "virtual", .name = "virtual GPU", .architecture = options_.architecture, .driver = {}}),
      device_(std::make_unique<ptx::Device>(
          ptx::ProgramOptions{.target = target_of(options_.architecture), .sum = options_.sum})),
      written_(std::make_unique<ptx::InitChecker>(ptx::InitOptions{.shared = false, .global = true})) {
  info_.memory_bytes = ptx::kDeviceBytes;
}

VirtualGpu::~VirtualGpu() = default;

std::uint64_t VirtualGpu::allocate(std::int64_t bytes, std::string_view name) {
  // New memory is uninitialized until it is written, so a kernel that reads its output before writing it is reported.
  return device_->memory().allocate(std::max<std::int64_t>(bytes, 1), name, false);
}

void VirtualGpu::release(std::uint64_t address) noexcept {
  try {
    device_->memory().free(address);
  } catch (const std::exception&) {  // already freed: nothing to release
  }
}

void VirtualGpu::write(std::uint64_t address, std::span<const std::byte> bytes) {
  if (!bytes.empty()) device_->memory().write(address, bytes);
}

void VirtualGpu::read(std::uint64_t address, std::span<std::byte> bytes) {
  if (bytes.empty()) return;
  const std::vector<std::byte> read = device_->memory().read(address, static_cast<std::int64_t>(bytes.size()));
  std::copy(read.begin(), read.end(), bytes.begin());
}

TensorMapSlot VirtualGpu::encode(const TensorMap& map) {
  const TensorMapRecord record =
      encode_tensor_map("a kernel's argument", map, options_.architecture == "sm_100a" ? TmaTarget::sm_100 : TmaTarget::sm_90);
  TensorMapSlot slot;
  static_assert(sizeof slot.bytes == sizeof record);
  std::memcpy(slot.bytes, record.data(), sizeof slot.bytes);
  return slot;
}

void VirtualGpu::use_ptx(const std::string& kernel, const std::string& text) {
  modules_[kernel] = &device_->load(ptx::parse_module(text, kernel + ".ptx"));
}

const ptx::LoadedModule& VirtualGpu::module_of(const std::string& kernel) {
  const auto found = modules_.find(kernel);
  if (found != modules_.end()) return *found->second;
  const KernelImage& image = kernel_image(kernel, options_.architecture);
  use_ptx(kernel, std::string(image.bytes));
  return *modules_.at(kernel);
}

Outcome VirtualGpu::launch(const KernelLaunch& launch, std::span<const std::byte> params) {
  const ptx::LoadedModule& module = module_of(launch.kernel);
  ptx::LaunchConfig config;
  config.kernel = launch.entry;
  config.grid = launch.grid;
  config.block = launch.block;
  config.dynamic_shared = launch.dynamic_shared;
  config.params.assign(params.begin(), params.end());
  config.options.policy = options_.policy;
  config.options.seed = options_.seed;
  config.options.limits.instructions = options_.most_instructions;
  config.options.shared_opt_in = ptx::most_shared(target_of(options_.architecture));

  ptx::Checks checks;
  checks.add(*written_);
  ptx::Counters counters(*module.program);
  if (options_.counters) checks.add(counters);
  ptx::Monitor* monitor = options_.checks ? checks.monitor() : options_.counters ? &counters : nullptr;

  ptx::LaunchResult result;
  try {
    result = device_->launch(module, config, monitor);
  } catch (const std::exception& error) {  // broken rules of a launch, or an unknown kernel
    throw DeviceError(fmt::format("kernel {}: {}", launch.entry, error.what()));
  }
  Outcome outcome;
  for (const ptx::Report& report : result.reports)
    if (report.severity != ptx::Severity::note) outcome.faults.push_back(to_text(report));
  if (result.status != ptx::LaunchStatus::finished && outcome.faults.empty())
    outcome.faults.push_back(fmt::format("kernel {} did not finish", launch.entry));
  if (options_.counters) outcome.costs = costs_of(counters);
  return outcome;
}

}  // namespace kvscope::gpu
