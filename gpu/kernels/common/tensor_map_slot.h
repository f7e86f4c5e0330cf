// A tensor map in a kernel's parameters: 128 opaque bytes that the device's encoder has written.
#pragma once

namespace kvscope::gpu {

struct alignas(128) TensorMapSlot {
  unsigned char bytes[128];
};

}  // namespace kvscope::gpu
