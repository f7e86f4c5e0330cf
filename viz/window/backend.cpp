#include "viz/window/backend.h"

#include "core/base/errors.h"

namespace kvscope::viz {
namespace {

[[noreturn]] void no_kernels(const std::string& path) {
  throw InputError(path, "", "this program has no virtual GPU");
}

}  // namespace

KernelFile Backend::kernel_file(const std::string& path) {
  no_kernels(path);
}

std::string Backend::kernel_command(const KernelLaunch& launch) {
  no_kernels(launch.path);
}

std::unique_ptr<KernelRun> Backend::start_kernel(const KernelLaunch& launch, const std::function<bool()>&) {
  no_kernels(launch.path);
}

}  // namespace kvscope::viz
