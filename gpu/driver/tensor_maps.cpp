#include "gpu/driver/tensor_maps.h"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "core/tma/tensor_map.h"
#include "core/tma/tensor_map_record.h"
#include "gpu/driver/face.h"

namespace kvscope::driver {
namespace {

TmaTarget target_of(Runtime& r) {
  return r.engine().options().target == 90 ? TmaTarget::sm_90 : TmaTarget::sm_100;
}

Status write_map(Runtime& r, void* out, const TensorMap& map) {
  std::string fault;
  try {
    const TensorMapRecord record = encode_tensor_map("the program", map, target_of(r));
    std::memcpy(out, record.data(), record.size());
    return kSuccess;
  } catch (const GeometryError& error) {
    fault = error.what();
  } catch (const UnsupportedError& error) {
    fault = error.what();
  }
  r.report_call("TENSOR_MAP", "a tensor map", map.base, fault);
  return kInvalidValue;
}

int encode_tiled(void* out, int data_type, std::uint32_t rank, void* base, const std::uint64_t* dims,
                 const std::uint64_t* strides, const std::uint32_t* box, const std::uint32_t* element_strides,
                 int interleave, int swizzle, int l2, int fill) {
  return enter("cuTensorMapEncodeTiled", KVSCOPE_CALLER, [&](Runtime& r) {
    if (out == nullptr || dims == nullptr || box == nullptr || element_strides == nullptr || rank < 1 ||
        rank > kTmaMaxRank || strides == nullptr)
      return kInvalidValue;
    TensorMap map;
    map.data_type = static_cast<TmaDataType>(data_type);
    map.rank = static_cast<int>(rank);
    map.base = address_of(base);
    for (std::size_t i = 0; i < rank; ++i) {
      map.dims.at(i) = dims[i];
      map.box.at(i) = box[i];
      map.element_strides.at(i) = element_strides[i];
      if (i > 0) map.strides.at(i - 1) = strides[i - 1];
    }
    map.interleave = static_cast<TmaInterleave>(interleave);
    map.swizzle = static_cast<TmaSwizzle>(swizzle);
    map.l2 = static_cast<L2Promotion>(l2);
    map.fill = static_cast<OobFill>(fill);
    return write_map(r, out, map);
  });
}

int replace_address(void* map, void* base) {
  return enter("cuTensorMapReplaceAddress", KVSCOPE_CALLER, [&](Runtime& r) {
    if (map == nullptr) return kInvalidValue;
    try {
      TensorMap changed = decode_tensor_map("tensor map of the program", {static_cast<const std::byte*>(map), kTensorMapBytes});
      changed.base = address_of(base);
      return write_map(r, map, changed);
    } catch (const InputError& error) {
      r.report_call("TENSOR_MAP", "a tensor map", address_of(base), error.what());
      return kInvalidValue;
    }
  });
}

int error_name(int status, const char** out) {
  return *out = status_name(status), kSuccess;
}
int error_text(int status, const char** out) {
  return *out = status_text(status), kSuccess;
}
int init(unsigned) {
  return kSuccess;
}
int version(int* out) {
  return *out = runtime_version(), kSuccess;
}

}  // namespace

void* driver_function(const char* symbol) {
  const std::string_view wanted = symbol;
  if (wanted == "cuTensorMapEncodeTiled") return reinterpret_cast<void*>(&encode_tiled);
  if (wanted == "cuTensorMapReplaceAddress") return reinterpret_cast<void*>(&replace_address);
  if (wanted == "cuGetErrorName") return reinterpret_cast<void*>(&error_name);
  if (wanted == "cuGetErrorString") return reinterpret_cast<void*>(&error_text);
  if (wanted == "cuInit") return reinterpret_cast<void*>(&init);
  if (wanted == "cuDriverGetVersion") return reinterpret_cast<void*>(&version);
  return nullptr;
}

}  // namespace kvscope::driver
