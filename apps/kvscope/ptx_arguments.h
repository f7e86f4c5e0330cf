// The forms of --arg, one per kernel parameter, and the arrays that they allocate on the device.
//
//   42  -1  0x10  1.5        a number that fits the parameter's type: .u32 takes -2147483648 to 4294967295
//   x.npy                    a pointer to a copy of the file's array
//   w.safetensors:name       a pointer to one tensor of the file
//   f32[1000]                a pointer to a new array, not initialized
//   map:k.json@2             a tensor map (kvscope tma check reads the same file) over the array of argument 2, whose
//                            first byte its base counts from; without @ base is the address
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/base/dtype.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::apps {

struct DeviceArray {
  int argument = -1;
  std::string word;
  std::uint64_t address = 0;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
};

struct KernelArguments {
  std::vector<std::byte> params;  // the kernel's parameter block
  std::vector<DeviceArray> arrays;
};

// InputError with every fault, each named by "--arg N".
[[nodiscard]] KernelArguments place_arguments(ptx::Device& device, const ptx::LoadedModule& module,
                                              const std::string& kernel, const std::vector<std::string>& words);

// Writes the current content of the array to a .npy file.
void save_array(ptx::Device& device, const DeviceArray& array, const std::string& path);

}  // namespace kvscope::apps
