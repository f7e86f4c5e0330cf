// A program of the CUDA runtime as nvcc would write it, made without the toolkit: device code by hand, registered before main,
// linked with libcudart. The argument selects what it does wrong; `none`: nothing. Used by tests/apps/cuda_test.py.
#include <cstdio>
#include <string>

#include "tests/gpu/driver/cuda_functions.h"
#include "tests/gpu/driver/fat_program.h"

namespace {

using kvscope::driver_tests::FatWrapper;

void scale_function() {}
void product_function() {}

struct Registration {
  Registration() {
    wrapper.container = container.data();
    binary = __cudaRegisterFatBinary(&wrapper);
    __cudaRegisterFunction(binary, reinterpret_cast<const char*>(&scale_function), nullptr, "scale", -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(binary, reinterpret_cast<const char*>(&product_function), nullptr, "product", -1, nullptr,
                           nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFatBinaryEnd(binary);
  }
  std::string container = kvscope::driver_tests::fat_container({{.payload = std::string(kvscope::driver_tests::kPtx)}});
  FatWrapper wrapper;
  void** binary = nullptr;
} registration;

}  // namespace

int main(int count, char** arguments) {
  const std::string what = count > 1 ? arguments[1] : "none";
  float host[64];
  for (int i = 0; i < 64; ++i) host[i] = static_cast<float>(i);
  void *x = nullptr, *y = nullptr;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&y, sizeof host);
  if (what != "uninitialized") cudaMemcpy(x, host, sizeof host, 1);
  void* from = what == "host_pointer" ? static_cast<void*>(host) : x;
  unsigned n = 64;
  const unsigned ctas = what == "grid" ? 4 : 1;  // all but the first have nothing to do
  void* launch_arguments[] = {&y, &from, &n};
  cudaLaunchKernel(reinterpret_cast<const void*>(&scale_function), {ctas, 1, 1}, {64, 1, 1}, launch_arguments, 0,
                   nullptr);
  if (what == "uninitialized") {
    cudaLaunchKernel(reinterpret_cast<const void*>(&scale_function), {1, 1, 1}, {32, 1, 1}, launch_arguments, 0,
                     nullptr);
    if (std::getchar() != EOF) std::puts("standard input is not empty");
  }
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  if (what == "sum") {
    void* product_arguments[] = {&y};
    cudaLaunchKernel(reinterpret_cast<const void*>(&product_function), {1, 1, 1}, {32, 1, 1}, product_arguments, 0,
                     nullptr);
    cudaMemcpy(host, y, sizeof host, 2);
    std::printf("product = %a\n", static_cast<double>(host[0]));
  }
  if (what == "device_pointer") host[0] = static_cast<volatile float*>(y)[0];
  cudaMemcpy(host, y, sizeof host, 2);
  std::printf("y[3] = %g\n", static_cast<double>(host[3]));
  cudaFree(x);
  if (what == "double_free") cudaFree(x);
  if (what != "leak") cudaFree(y);
  return what == "code" ? 5 : 0;
}
