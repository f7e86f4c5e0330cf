#include <fmt/format.h>
#include <sys/mman.h>

#include <cstring>
#include <exception>
#include <utility>

#include "core/base/errors.h"
#include "gpu/driver/runtime.h"

namespace kvscope::driver {

Binary* Runtime::add_binary(const void* container) {
  auto binary = std::make_unique<Binary>();
  try {
    binary->entries = read_fat_binary(fat_binary_at(container));
  } catch (const InputError& error) {
    binary->fault = error.what();
  }
  Binary* const out = binary.get();
  binaries_.emplace(out, std::move(binary));
  return out;
}

void Runtime::remove_binary(Binary* binary) {
  // Its kernels stay: destructors of the program that run later may still refer to them.
  if (binary != nullptr) binary->managed.clear();
}

void Runtime::add_kernel(Binary* binary, const void* host, const char* name) {
  auto kernel = std::make_unique<Kernel>();
  kernel->binary = binary;
  kernel->name = name;
  handles_.insert(kernel.get());
  kernels_.insert_or_assign(host, std::move(kernel));
}

void Runtime::add_variable(Binary* binary, const void* host, const char* name, std::size_t size) {
  variables_.insert_or_assign(host, DeviceVariable{.binary = binary, .name = name, .size = size});
}

Status Runtime::load(Binary& binary) {
  if (binary.module != nullptr || binary.failure != kSuccess) return binary.failure;
  const int target = engine_->options().target;
  const FatEntry* const entry = choose_ptx(binary.entries, target);
  if (entry == nullptr) {
    const std::string has = binary.fault.empty() ? contents_text(binary.entries) : binary.fault;
    report_call(
        "NO_PTX", fmt::format("device code of {}", program_name()), 0,
        fmt::format("it has {}; the virtual GPU runs PTX for sm_{} or earlier: compile with kvscope nvcc, or with "
                    "-gencode arch=compute_{}a,code=compute_{}a",
                    has, target, target, target));
    return binary.failure = kNoKernelImage;
  }
  try {
    binary.module = &engine_->load(entry->text, program_name() + ".ptx");
  } catch (const std::exception& error) {
    report_call("INVALID_PTX", fmt::format("device code of {}", program_name()), 0, error.what());
    return binary.failure = kInvalidPtx;
  }
  // Managed variables: host memory at the device's address, and the program's pointer to it.
  for (auto& [pointer, variable] : binary.managed) {
    const std::int32_t index = binary.module->program->module->find_variable(variable);
    std::uint64_t address = 0;
    for (const auto& [i, at] : binary.module->addresses) {
      if (i == index) address = at;
    }
    if (address == 0) continue;
    const ptx::Allocation* const made = engine_->memory().find(address);
    void* const host = mmap(reinterpret_cast<void*>(address), made->size, PROT_READ | PROT_WRITE,
                            MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (host == MAP_FAILED) return binary.failure = kOutOfMemory;
    std::memcpy(host, made->bytes.data(), made->size);
    CallSite site = call;
    site.detail = "for variable " + variable;
    Block block{.kind = MemoryKind::variable,
                .address = address,
                .size = static_cast<std::size_t>(made->size),
                .host = nullptr,
                .flags = 0,
                .made = site,
                .freed = {}};
    share(blocks_.emplace(address, std::move(block)).first->second, static_cast<std::byte*>(host));
    *pointer = host;
  }
  return kSuccess;
}

Kernel* Runtime::find_kernel(const void* function) {
  if (const auto found = kernels_.find(function); found != kernels_.end()) return found->second.get();
  if (handles_.contains(function)) return const_cast<Kernel*>(static_cast<const Kernel*>(function));
  return nullptr;
}

Status Runtime::find_variable(const void* symbol, std::uint64_t& address, std::size_t& size) {
  const auto found = variables_.find(symbol);
  if (found == variables_.end()) return kInvalidSymbol;
  DeviceVariable& variable = found->second;
  if (const Status status = load(*variable.binary); status != kSuccess) return status;
  const ptx::LoadedModule& module = *variable.binary->module;
  const std::int32_t index = module.program->module->find_variable(variable.name);
  for (const auto& [i, at] : module.addresses) {
    if (i == index) return address = at, size = variable.size, kSuccess;
  }
  return kInvalidSymbol;
}

const ptx::Function* Runtime::function_of(const Kernel& kernel) const {
  if (kernel.binary->module == nullptr) return nullptr;
  const ptx::Module& module = *kernel.binary->module->program->module;
  const std::int32_t index = module.find_function(kernel.name);
  return index < 0 ? nullptr : &module.functions[static_cast<std::size_t>(index)];
}

}  // namespace kvscope::driver
