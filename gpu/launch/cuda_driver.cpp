#include "gpu/launch/cuda_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <map>
#include <memory>

#include "gpu/launch/device_error.h"

namespace kvscope::gpu::cuda {

std::string Driver::words(Status status) const {
  const char* name = nullptr;
  const char* text = nullptr;
  if (error_name(status, &name) != 0 || name == nullptr) name = "unknown error";
  if (error_text(status, &text) != 0 || text == nullptr) text = "the driver has no words for it";
  return fmt::format("{} ({}): {}", name, status, text);
}

void Driver::check(Status status, const std::string& call) const {
  if (status != 0) throw DeviceError(fmt::format("{}: {}", call, words(status)));
}

const Driver& driver(const std::string& library) {
  static std::map<std::string, std::unique_ptr<Driver>> loaded;
  if (const auto found = loaded.find(library); found != loaded.end()) return *found->second;

  void* handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw DeviceError(
        fmt::format("no CUDA driver on this machine ({}): install NVIDIA's driver, or leave --device cuda "
                    "out to run on the virtual GPU",
                    dlerror()));
  auto made = std::make_unique<Driver>();
  std::string missing;
#define KVSCOPE_CUDA_FIND(name, symbol, parameters)                           \
  made->name = reinterpret_cast<decltype(made->name)>(dlsym(handle, symbol)); \
  if (made->name == nullptr) missing += missing.empty() ? symbol : ", " symbol;
  KVSCOPE_CUDA_FUNCTIONS(KVSCOPE_CUDA_FIND)
#undef KVSCOPE_CUDA_FIND
  if (!missing.empty())
    throw DeviceError(
        fmt::format("{} has no {}: its driver is older than CUDA 12.0, which these kernels need", library, missing));
  return *loaded.emplace(library, std::move(made)).first->second;
}

}  // namespace kvscope::gpu::cuda
