// Benchmark workloads, prepared on a device: memory, launches, and the bytes and operations they require. bench.h takes
// the times; this file does not measure.
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
  std::int64_t bytes = 0;                      // that must be read and written, each once
  double flops = 0;                            // two per multiply-add; 0: the row measures bytes
  std::vector<std::vector<Launch>> turns;      // [copies] consecutive launches on one copy of the data
  std::vector<DeviceArray> arrays;             // the targets of the pointers in the parameters
  std::vector<std::shared_ptr<void>> holders;  // as `arrays`
};

struct WorkloadRow {
  std::string name;
  std::string kernel;
  std::string against;             // the row that it is compared with; empty: it is a reference row
  std::optional<double> target{};  // minimum ratio
  bool by_time = false;            // the ratio compares times instead of rates
  std::function<Workload(Device&, const WorkloadSize&)> make;
};

// All rows that launch kernels; each follows the row that it is compared with. The device's copy is not included.
[[nodiscard]] const std::vector<WorkloadRow>& workload_rows();

// C [m, n] = A [m, k] B [n, k]^T; a, b and c are addresses of bf16.
[[nodiscard]] Launch product_call(Device& device, std::uint64_t a, std::uint64_t b, std::uint64_t c, std::int64_t m,
                                  std::int64_t n, std::int64_t k);

}  // namespace kvscope::gpu
