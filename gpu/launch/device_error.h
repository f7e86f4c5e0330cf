// What a device refuses: the call, and the device's own words.
#pragma once

#include <stdexcept>

namespace kvscope::gpu {

class DeviceError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace kvscope::gpu
