// Times of kernels on a GPU. Each time is compared with a measurement of the same run: a copy on the device for memory
// bandwidth, a large bf16 product for tensor core throughput. A slower GPU therefore does not fail, and a busy GPU is
// detected.
//
//   CudaGpu device;
//   BenchReport report = run_benchmarks(device);      times, medians, ratios, verdicts
//   VirtualGpu counted;
//   BenchReport costs = count_benchmarks(counted);    no times: the memory traffic of the same kernels on small shapes
//
// A time is the median over repetitions. Each repetition is measured between two events, around consecutive launches
// over at least three copies of the data. A copy larger than the L2 cache precedes it, so that no data of earlier
// launches is cached, and the host enqueues ahead of the GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "gpu/launch/cuda_gpu.h"
#include "gpu/launch/device.h"
#include "gpu/launch/virtual_gpu.h"

namespace kvscope::gpu {

struct BenchOptions {
  std::string kernel{};  // the rows of one kernel and the rows they are compared with; empty: all
  int repetitions = 15;  // the median is reported
  int caches = 3;        // copies of the data that launches use in rotation, at least 3
  bool small = false;    // shapes small enough for a CPU; times of these have no meaning for a GPU
  std::function<void(std::int64_t done, std::int64_t all)> progress{};
};

struct BenchTime {
  double median_ms = 0, fastest_ms = 0, slowest_ms = 0;  // of a launch, or of consecutive launches of one row
  int repetitions = 0;
};

struct BenchRow {
  std::string name;        // "paged_decode_bf16_page16": unique
  std::string kernel;      // folder of gpu/kernels; "copy": the device's copy
  std::string shape;       // "batch 8, 32/8 heads of 128, 4096 tokens, page 16: 134 MB"
  std::int64_t bytes = 0;  // that must be read and written, each once
  double flops = 0;        // of attention and products: two per multiply-add; 0: the row measures bytes

  std::optional<BenchTime> time{};  // hardware
  double rate = 0;                  // bytes or flops per second
  std::string against;              // the row that it is compared with; empty: it is a reference row
  // Rate / rate of that row; for "times as fast" rows: time of that row / time of this one.
  std::optional<double> ratio{};
  std::optional<double> target{};  // minimum ratio; none: for information only
  std::string unit = "rate";       // the unit of ratio: "rate" or "time"

  std::optional<Costs> costs{};               // virtual GPU
  std::vector<std::string> faults{};          // of a kernel that did not run, with the device's message
  [[nodiscard]] bool passed() const;          // it ran, and met its target if it has a target and a ratio
  [[nodiscard]] std::string verdict() const;  // "met", "missed", "failed", "measure", "no target", "counted"
};

struct BenchReport {
  DeviceInfo device;
  std::vector<BenchRow> rows;
  bool small = false;
  [[nodiscard]] bool passed() const;
  [[nodiscard]] const BenchRow* row(const std::string& name) const;  // null: no row has that name
};

// Names of the kernels that have benchmark rows.
[[nodiscard]] std::vector<std::string> benchmarked_kernels();

// Throws InputError with the list of those kernels if options.kernel has no row. A launch that the device rejects is a
// fault of its row. A fault inside a kernel destroys the driver's context, so all later rows fail as well.
[[nodiscard]] BenchReport run_benchmarks(CudaGpu& device, const BenchOptions& options = {});
[[nodiscard]] BenchReport count_benchmarks(VirtualGpu& device, const BenchOptions& options = {});

[[nodiscard]] std::string text_report(const BenchReport& report);
[[nodiscard]] json::Value json_report(const BenchReport& report);
[[nodiscard]] std::string markdown_report(const BenchReport& report);

}  // namespace kvscope::gpu
