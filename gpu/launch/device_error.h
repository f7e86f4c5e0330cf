// A call that a device rejected, with the device's error message.
#pragma once

#include <stdexcept>

namespace kvscope::gpu {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace kvscope::gpu
