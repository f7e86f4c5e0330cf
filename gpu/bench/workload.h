// What is measured, ready on a device: memory, launches and what they have to move. Bench rotates the copies; nothing here
// knows of time.
//
//   for (const WorkloadRow& row : workload_rows()) {
//     Workload work = row.make(device, {.small = true, .copies = 3});
//     for (const Launch& launch : work.turns[0]) device.launch(launch.launch, launch.params);
//   }
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/launch/device.h"

namespace kvscope::gpu {

struct WorkloadSize {
  bool small = false;
  int copies = 3;
};

struct Launch {
  KernelLaunch launch;
  std::vector<std::byte> params;
};

struct Workload {
  std::string shape;
  std::int64_t bytes = 0;                      // that have to be read and written, each once
  double flops = 0;                            // two a multiply-add; 0: the row is about bytes
  std::vector<std::vector<Launch>> turns;      // [copies] launches that follow one another on one copy
  std::vector<DeviceArray> arrays;             // what the parameters point into
  std::vector<std::shared_ptr<void>> holders;  // likewise
};

struct WorkloadRow {
  std::string name;
  std::string kernel;
  std::string against;             // row that it is measured against; empty: a measure itself
  std::optional<double> target{};  // least ratio
  bool by_time = false;            // the ratio is of times, not of rates
  std::function<Workload(Device&, const WorkloadSize&)> make;
};

// All rows that are launches of kernels; each stands behind the one that it is measured against. The copy is the device's
// own and is not here.
[[nodiscard]] const std::vector<WorkloadRow>& workload_rows();

// C [m, n] = A [m, k] B [n, k]^T; a, b and c are addresses of bf16.
[[nodiscard]] Launch product_call(Device& device, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::int64_t m,
                                  std::int64_t n, std::int64_t k);

}  // namespace kvscope::gpu
