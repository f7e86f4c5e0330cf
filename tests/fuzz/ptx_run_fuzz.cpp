// Any bytes as PTX: parsed, decoded, prepared and run. Nothing may crash, hang or grow without bound; every fault is an
// InputError, a GeometryError of the launch, or a report.
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/base/errors.h"
#include "gpu/virtual/check/checks.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parser.h"

namespace {

using namespace kvscope;

constexpr std::int64_t kMostInstructions = 2000;
constexpr std::int64_t kMostDeviceBytes = 1 << 20;

void run(const ptx::LoadedModule& module, ptx::Device& device, const ptx::Function& kernel) {
  ptx::LaunchConfig config;
  config.kernel = std::string(kernel.name);
  config.grid = {2, 1, 1};
  config.block = {40, 1, 1};
  config.dynamic_shared = 256;
  config.params.resize(static_cast<std::size_t>(kernel.parameter_bytes));
  config.options.limits.instructions = kMostInstructions;
  ptx::Checks checks;
  try {
    const ptx::LaunchResult result = device.launch(module, config, checks.monitor());
    for (const ptx::Report& report : result.reports) static_cast<void>(ptx::to_text(report));
  } catch (const GeometryError&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    ptx::Device device({}, kMostDeviceBytes);
    const ptx::LoadedModule& module =
        device.load(ptx::parse_module(std::string(reinterpret_cast<const char*>(data), size), "fuzz.ptx"));
    for (const ptx::Function& f : module.program->module->functions) {
      if (f.entry && f.defined) run(module, device, f);
    }
  } catch (const InputError&) {
  } catch (const OverflowError&) {  // more than the available device memory
  }
  return 0;
}
