// A tensor map in a kernel's parameters: 128 opaque bytes, written by the device's encoder.
#pragma once

namespace kvscope::gpu {

struct alignas(128) TensorMapSlot {
  unsigned char bytes[128];
};

}  // namespace kvscope::gpu
