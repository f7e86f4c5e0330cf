// The parameters of a kernel from the words of --arg. A word without a name is the next parameter; the others name
// one, by its number or, if the file has debug information, by its name in the source:
//
//   --arg x.npy --arg 2.5                     parameters 0 and 1
//   --arg n=64                                the parameter that the source calls n
//   --arg p.out='f32[64]' --arg 0.scale=2     fields of a struct
//   --arg @params.json                        a struct from a file: its fields, bytes at offsets, or all its bytes
//
// ptx_values.h lists the forms of a value. The fields of a struct are known from debug information, or from a file
// given for that parameter: a C header or a layout as JSON.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "apps/launch/values.h"
#include "gpu/virtual/machine/device.h"
#include "gpu/virtual/text/parameter_layout.h"

namespace kvscope::apps {

struct KernelArguments {
  std::vector<std::byte> params;  // the kernel's parameter block
  std::vector<DeviceArray> arrays;
  std::vector<std::string> unset;  // one for each such struct: "parameter 0: 3 of 7 fields set, the others are 0: ..."
  std::vector<std::string> notes;  // ptx::element_notes()
};

// `structs`: "0=params.h", "p=params.h:Params", "2=layout.json". InputError with every fault, each named by "--arg N"
// or "--struct N", N its number among those words from 0.
[[nodiscard]] KernelArguments place_arguments(ptx::Device& device, const ptx::LoadedModule& module,
                                              const std::string& kernel, const std::vector<std::string>& words,
                                              const std::vector<std::string>& structs);

// Writes the current content of the array to a .npy file.
void save_array(ptx::Device& device, const DeviceArray& array, const std::string& path);

}  // namespace kvscope::apps
