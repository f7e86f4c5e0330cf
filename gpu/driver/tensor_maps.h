// The functions of the driver that programs look up with cudaGetDriverEntryPoint: encoders of tensor maps, error texts.
#pragma once

namespace kvscope::driver {

// "cuTensorMapEncodeTiled", "cuTensorMapReplaceAddress", "cuGetErrorName", "cuGetErrorString", "cuInit",
// "cuDriverGetVersion"; null for any other.
[[nodiscard]] void* driver_function(const char* symbol);

}  // namespace kvscope::driver
