// Where the user's code calls the runtime. nvcc writes stubs that launch a kernel, and headers of CUDA have templates
// such as cudaMalloc<T>; unless the host compiler inlines them, the runtime is called by them:
//
//   main                              twice<<<1, 32>>>(y);          the user's call
//   twice(float*)                     the kernel's host function, written by nvcc
//   __device_stub__Z5twicePf          written by nvcc
//   __cudaLaunchKernel_helper         of crt/device_functions.h
//   cudaLaunchKernel                  of the runtime
#pragma once

#include <dlfcn.h>

#include <cstdint>
#include <functional>

namespace kvscope::driver {

// Whether a host function is that of a kernel.
using IsKernel = std::function<bool(const void* function)>;

// An address inside the user's call instruction; `returns_to`: the address to which the function of the runtime
// returns. Wrappers are known by their names, so in a stripped program it is in the function that calls the runtime.
// The same holds if the stack cannot be unwound. Not thread-safe: the caller holds the lock of the runtime.
[[nodiscard]] const void* user_call(const void* returns_to, const IsKernel& is_kernel);

// As addr2line takes it: the offset from where the file of an address is loaded, or the address itself in a program that
// is not position-independent. `file`: what dladdr says of the address.
[[nodiscard]] std::uintptr_t place_in_file(const void* address, const Dl_info& file);

}  // namespace kvscope::driver
