// How fast the kernels are on a GPU, each beside something measured in the same run: a copy on the device says what its
// memory gives, a large product of bf16 what its tensor cores give, so a slower GPU does not fail and a busy one shows.
//
//   CudaGpu device;
//   BenchReport report = run_benchmarks(device);      times, medians, ratios, verdicts
//   VirtualGpu counted;
//   BenchReport costs = count_benchmarks(counted);    no time at all: what the same kernels move, on small shapes
//
// A time is the median over repetitions, each between two events around several launches that follow one another over at
// least three copies of the data, behind a copy that is larger than the second-level cache: nothing is found there
// from the launch before, and the host is ahead of the GPU.
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
  std::string kernel{};  // one kernel's rows and what they are measured against; empty: all
  int repetitions = 15;  // of which the median counts
  int caches = 3;        // copies of the data that launches take in turn, at least 3
  bool small = false;    // shapes that a CPU runs; times of these say nothing about a GPU
  std::function<void(std::int64_t done, std::int64_t all)> progress{};
};

struct BenchTime {
  double median_ms = 0, fastest_ms = 0, slowest_ms = 0;  // of a launch, or of the launches that belong together
  int repetitions = 0;
};

struct BenchRow {
  std::string name;        // "paged_decode_bf16_page16": unique
  std::string kernel;      // folder of gpu/kernels; "copy": the device's own
  std::string shape;       // "batch 8, 32/8 heads of 128, 4096 tokens, page 16: 134 MB"
  std::int64_t bytes = 0;  // that have to be read and written, each once
  double flops = 0;        // of attention and products: two a multiply-add; 0: the row is about bytes

  std::optional<BenchTime> time{};  // hardware
  double rate = 0;                  // bytes or flops a second
  std::string against;              // row that it is measured against; empty: it is the measure itself
  std::optional<double> ratio{};    // rate over that row's; of "times as fast" rows: that row's time over this one's
  std::optional<double> target{};   // least ratio; none: for information
  std::string unit = "rate";        // what ratio is of: "rate" or "time"

  std::optional<Costs> costs{};               // virtual GPU
  std::vector<std::string> faults{};          // a kernel that did not run, as the device says it
  [[nodiscard]] bool passed() const;          // ran, and met its target where there are both a target and a ratio
  [[nodiscard]] std::string verdict() const;  // "met", "missed", "failed", "measure", "no target", "counted"
};

struct BenchReport {
  DeviceInfo device;
  std::vector<BenchRow> rows;
  bool small = false;
  [[nodiscard]] bool passed() const;
  [[nodiscard]] const BenchRow* row(const std::string& name) const;  // null: none of that name
};

// Names of the kernels that have rows.
[[nodiscard]] std::vector<std::string> benchmarked_kernels();

// InputError naming those kernels when options.kernel has no row. What a device refuses is a fault of its row; after a
// fault of a kernel the driver's context is gone, so the rows behind it say so too.
[[nodiscard]] BenchReport run_benchmarks(CudaGpu& device, const BenchOptions& options = {});
[[nodiscard]] BenchReport count_benchmarks(VirtualGpu& device, const BenchOptions& options = {});

[[nodiscard]] std::string text_report(const BenchReport& report);
[[nodiscard]] json::Value json_report(const BenchReport& report);
[[nodiscard]] std::string markdown_report(const BenchReport& report);

}  // namespace kvscope::gpu
