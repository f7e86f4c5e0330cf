#include "gpu/driver/user_call.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace kvscope::driver {
namespace {

// The symbol table of an ELF file, which stays mapped: .symtab, because wrappers are not exported.
struct SymbolTable {
  std::span<const Elf64_Sym> symbols;
  std::string_view names;
};

SymbolTable read_symbols(const char* path) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);  // a relative path, after chdir()
  struct stat status = {};
  if (file < 0 || fstat(file, &status) != 0 || status.st_size < static_cast<off_t>(sizeof(Elf64_Ehdr))) {
    if (file >= 0) close(file);
    return {};
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  void* const mapped = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file, 0);
  close(file);
  if (mapped == MAP_FAILED) return {};
  const auto* const bytes = static_cast<const std::byte*>(mapped);
  const auto holds = [size](std::uint64_t at, std::uint64_t length) { return at <= size && length <= size - at; };
  const auto& header = *reinterpret_cast<const Elf64_Ehdr*>(bytes);
  const std::uint64_t sections = header.e_shnum;
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
      header.e_shoff % alignof(Elf64_Shdr) != 0 || !holds(header.e_shoff, sections * sizeof(Elf64_Shdr))) {
    return {};
  }
  const std::span table(reinterpret_cast<const Elf64_Shdr*>(bytes + header.e_shoff), sections);
  for (const Elf64_Shdr& section : table) {
    if (section.sh_type != SHT_SYMTAB || section.sh_link >= sections) continue;
    const Elf64_Shdr& names = table[section.sh_link];
    if (section.sh_offset % alignof(Elf64_Sym) != 0 || !holds(section.sh_offset, section.sh_size) ||
        !holds(names.sh_offset, names.sh_size))
      return {};
    return {{reinterpret_cast<const Elf64_Sym*>(bytes + section.sh_offset), section.sh_size / sizeof(Elf64_Sym)},
            {reinterpret_cast<const char*>(bytes + names.sh_offset), names.sh_size}};
  }
  return {};
}

// The function that contains an address; no name if none is known.
struct HostFunction {
  const void* start = nullptr;
  std::string name;
};

HostFunction function_at(const void* address) {
  static auto& tables = *new std::map<std::string, SymbolTable>;  // never destroyed: programs call while they end
  Dl_info info = {};
  if (dladdr(address, &info) == 0 || info.dli_fname == nullptr) return {};
  const auto [found, is_new] = tables.try_emplace(info.dli_fname);
  if (is_new) found->second = read_symbols(info.dli_fname);
  const SymbolTable& table = found->second;
  const std::uintptr_t value = place_in_file(address, info);
  for (const Elf64_Sym& symbol : table.symbols) {
    const bool here = value - symbol.st_value < symbol.st_size && symbol.st_name < table.names.size();
    if (!here || ELF64_ST_TYPE(symbol.st_info) != STT_FUNC) continue;
    const std::string_view name = table.names.substr(symbol.st_name);
    return {static_cast<const std::byte*>(address) - (value - symbol.st_value),
            std::string(name.substr(0, name.find('\0')))};
  }
  return {};
}

// The first identifier of a C++ name, also of a function or a lambda in it: "_ZL14cudaMallocHostPPvmj" ->
// "cudaMallocHost". The name itself if it is none of C++.
std::string identifier_of(std::string_view name) {
  if (!name.starts_with("_Z")) return std::string(name);
  const std::size_t digits = name.find_first_of("0123456789");
  std::size_t length = 0, at = digits;
  for (; at < name.size() && name[at] >= '0' && name[at] <= '9'; ++at)
    length = std::min<std::size_t>(10 * length + static_cast<std::size_t>(name[at] - '0'), name.size());
  return std::string(name.substr(std::min(at, name.size()), length));
}

bool is_wrapper(const HostFunction& function, const IsKernel& is_kernel) {
  // Templates and overloads have the names of functions of the runtime; these have none.
  constexpr std::array<std::string_view, 4> kOthers{"cudaLaunchKernelEx", "cudaOccupancyMaxPotentialBlockSize",
                                                    "cudaOccupancyMaxPotentialBlockSizeVariableSMem",
                                                    "cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags"};
  const std::string name = identifier_of(function.name);
  if (name.find("__device_stub_") != name.npos || name == "__cudaLaunchKernel_helper") return true;
  if (name.starts_with("cuda") &&
      (std::ranges::find(kOthers, name) != kOthers.end() || dlsym(RTLD_DEFAULT, name.c_str()) != nullptr))
    return true;
  return !name.empty() && is_kernel(function.start);
}

// Whether code at an address is a wrapper's. Addresses in the program stay few.
bool is_in_wrapper(const void* address, const IsKernel& is_kernel) {
  static auto& known = *new std::map<const void*, bool>;
  const auto found = known.find(address);
  if (found != known.end()) return found->second;
  return known[address] = is_wrapper(function_at(address), is_kernel);
}

// Of a return address: it may be behind the end of a function that does not return.
const void* call_before(const void* returns_to) {
  return static_cast<const std::byte*>(returns_to) - 1;
}

struct Walk {
  const void* returns_to;
  const IsKernel& is_kernel;
  bool reached = false;  // the frame of returns_to
  const void* found = nullptr;
};

_Unwind_Reason_Code visit(_Unwind_Context* context, void* data) {
  Walk& walk = *static_cast<Walk*>(data);
  const auto* const address = reinterpret_cast<const void*>(_Unwind_GetIP(context));
  walk.reached = walk.reached || address == walk.returns_to;
  if (!walk.reached || is_in_wrapper(call_before(address), walk.is_kernel)) return _URC_NO_REASON;
  walk.found = call_before(address);
  return _URC_END_OF_STACK;
}

}  // namespace

std::uintptr_t place_in_file(const void* address, const Dl_info& file) {
  const bool absolute = static_cast<const Elf64_Ehdr*>(file.dli_fbase)->e_type == ET_EXEC;
  return reinterpret_cast<std::uintptr_t>(address) - (absolute ? 0 : reinterpret_cast<std::uintptr_t>(file.dli_fbase));
}

const void* user_call(const void* returns_to, const IsKernel& is_kernel) {
  const void* const call = call_before(returns_to);
  if (!is_in_wrapper(call, is_kernel)) return call;
  Walk walk{.returns_to = returns_to, .is_kernel = is_kernel};
  _Unwind_Backtrace(&visit, &walk);
  return walk.found == nullptr ? call : walk.found;
}

}  // namespace kvscope::driver
