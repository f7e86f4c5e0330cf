// One value of --arg as the bytes of a parameter or of a field of a struct, and the arrays placed on the device for it.
//
//   42  -1  0x10  1.5          a number that fits the type: .u32 takes -2147483648 to 4294967295
//   null                       the pointer 0
//   x.npy                      a pointer to a copy of the file's array
//   w.npz:name                 a pointer to a copy of one tensor of the file; also w.safetensors:name
//   f32[1000]                  a pointer to a new array, not initialized
//   @2  @2+64  @p.q+0x40       a pointer into an array placed before, plus bytes
//   map:k.json@2               a tensor map (kvscope tma check reads the same file) over the array of argument 2, whose
//                              first byte its base counts from; without @ base is the address
//   map:k.json@x.npy           the same over a new array, which only the map points to; also @w.npz:name, @f32[64,64]
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/dtype.h"
#include "core/golden/bundle/tensor.h"
#include "gpu/virtual/machine/device.h"

namespace kvscope::apps {

struct DeviceArray {
  std::vector<std::string> names;  // "2" of the third parameter, "0.q" of a field; then those of the source: "p.q"
  std::string word;
  std::uint64_t address = 0;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  std::int64_t bytes = 0;
};

// The array of that name; null: none.
[[nodiscard]] const DeviceArray* find_array(const std::vector<DeviceArray>& arrays, std::string_view name);
[[nodiscard]] std::string array_names(const std::vector<DeviceArray>& arrays);  // "arrays are 0, 2"

// The parameter, or field of a struct, that a value is for.
struct ArgumentSlot {
  std::vector<std::string> names;  // as in DeviceArray
  std::string of;                  // for messages: "parameter f_param_0 (.u64)"
  ptx::Type type = ptx::Type::none;
  std::int64_t bytes = 0;  // 0: there is no such parameter, which is another fault
};

// Converts words one after the other. InputError: one fault of the word.
class ArgumentPlacer {
 public:
  explicit ArgumentPlacer(ptx::Device& device) : device_(device) {}
  ptx::ParamValue value(const ArgumentSlot& slot, const std::string& word);
  [[nodiscard]] std::vector<DeviceArray>& arrays() { return arrays_; }

 private:
  static void check_pointer(const ArgumentSlot& slot, const std::string& word);
  ptx::ParamValue array(const ArgumentSlot& slot, const std::string& word, const golden::Tensor& tensor);
  static golden::Tensor tensor_of(const std::string& path, const std::string& name);
  [[nodiscard]] ptx::ParamValue pointer_into(const ArgumentSlot& slot, const std::string& word) const;
  [[nodiscard]] ptx::ParamValue map_of(const ArgumentSlot& slot, const std::string& word);
  [[nodiscard]] std::uint64_t array_of_map(const ArgumentSlot& slot, const std::string& word, const std::string& array);
  [[nodiscard]] static ptx::ParamValue number(const ArgumentSlot& slot, const std::string& word);

  ptx::Device& device_;
  std::vector<DeviceArray> arrays_;
};

}  // namespace kvscope::apps
