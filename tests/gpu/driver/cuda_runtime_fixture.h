// A program of the CUDA runtime: registers the kernels of fat_program.h with a new runtime, and has short forms of the calls that
// most tests make.
#pragma once

#include <gmock/gmock.h>

#include <array>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "gpu/driver/runtime.h"
#include "tests/gpu/driver/cuda_functions.h"
#include "tests/gpu/driver/fat_program.h"

namespace kvscope::driver_tests {

// Addresses that stand for host functions and variables, as nvcc's stubs pass them.
inline char scale_function, reverse_function, use_function, table_variable;

class CudaRuntime : public testing::Test {
 protected:
  void SetUp() override { start({}); }
  // A new runtime, which has the kernels.
  void start(driver::RuntimeOptions options) {
    options.prints = false;
    driver::replace_runtime(std::move(options));
    std::string ptx(kPtx);
    ptx.replace(ptx.find("sm_90a"), 6, "sm_" + std::to_string(driver::runtime().options().engine.target) + "a");
    container_ = fat_container({{.payload = ptx}});
    wrapper_.container = container_.data();
    binary_ = __cudaRegisterFatBinary(&wrapper_);
    __cudaRegisterFunction(binary_, &scale_function, nullptr, "scale", -1, nullptr, nullptr, nullptr, nullptr, nullptr);
    __cudaRegisterFunction(binary_, &reverse_function, nullptr, "reverse", -1, nullptr, nullptr, nullptr, nullptr,
                           nullptr);
    __cudaRegisterFatBinaryEnd(binary_);
    std::iota(input_.begin(), input_.end(), 1.0F);
    static_cast<void>(cudaGetLastError());
  }

  int launch(const void* function, std::vector<void*> arguments, unsigned block = 64, void* stream = nullptr,
             unsigned grid = 1) {
    return cudaLaunchKernel(function, {grid, 1, 1}, {block, 1, 1}, arguments.data(), 0, stream);
  }
  int scale(void* y, void* x, unsigned n = 64, unsigned block = 64, void* stream = nullptr, unsigned grid = 1) {
    return launch(&scale_function, {&y, &x, &n}, block, stream, grid);
  }
  void* device_copy() {
    void* out = nullptr;
    EXPECT_EQ(cudaMalloc(&out, sizeof input_), 0);
    EXPECT_EQ(cudaMemcpy(out, input_.data(), sizeof input_, 1), 0);
    return out;
  }
  std::vector<std::string> kinds() {
    std::vector<std::string> out;
    for (const auto& report : driver::runtime().reports().all()) out.push_back(report.kind);
    return out;
  }
  std::string last_text() { return driver::runtime().reports().all().back().text; }

  std::string container_;
  FatWrapper wrapper_;
  void** binary_ = nullptr;
  std::array<float, 64> input_{}, output_{};
};

}  // namespace kvscope::driver_tests
