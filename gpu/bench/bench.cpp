#include "gpu/bench/bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <exception>
#include <set>
#include <utility>

#include "core/base/errors.h"
#include "gpu/bench/workload.h"

namespace kvscope::gpu {
namespace {

constexpr const char* kCopy = "copy";
constexpr std::int64_t kLargeCopy = std::int64_t{1} << 28;  // [bytes] five times the L2 cache of an H200
constexpr std::int64_t kSmallCopy = std::int64_t{1} << 16;

// The rows to run: those of the kernel, the rows they are compared with, and so on.
std::vector<const WorkloadRow*> chosen_rows(const BenchOptions& options) {
  const std::vector<WorkloadRow>& all = workload_rows();
  std::set<std::string> wanted;
  // A reference row precedes the rows that are compared with it.
  for (auto row = all.rbegin(); row != all.rend(); ++row) {
    if (options.kernel.empty() || row->kernel == options.kernel) wanted.insert(row->name);
    if (wanted.contains(row->name)) wanted.insert(row->against);
  }
  std::vector<const WorkloadRow*> chosen;
  for (const WorkloadRow& row : all)
    if (wanted.contains(row.name)) chosen.push_back(&row);
  if (chosen.empty() && options.kernel != kCopy)
    throw InputError(
        "command line", "--kernel",
        fmt::format("kernel '{}' has no benchmark: {}", options.kernel, fmt::join(benchmarked_kernels(), ", ")));
  return chosen;
}

BenchRow row_of(const WorkloadRow& from) {
  BenchRow row;
  row.name = from.name;
  row.kernel = from.kernel;
  row.against = from.against;
  row.target = from.target;
  row.unit = from.by_time ? "time" : "rate";
  return row;
}

// Runs `work`; an exception becomes a fault of the row.
template <class Work>
void guarded(BenchRow& row, const Work& work) {
  try {
    work();
  } catch (const std::exception& error) {
    row.faults.emplace_back(error.what());
  }
}

// The buffers of the copy. A copy also precedes every measurement: it evicts the L2 cache, and gives the host time to
// enqueue the launches.
struct Copy {
  Copy(CudaGpu& device, bool small)
      : bytes(small ? kSmallCopy : kLargeCopy),
        from(device.filled("copied", bytes, std::byte{0x3f})),
        to(device.filled("copy", bytes, std::byte{0})) {}
  std::int64_t bytes;
  DeviceArray from, to;
};

BenchTime time_of(CudaGpu& device, const Copy& copy, int repetitions, int count, const std::function<void()>& work) {
  std::vector<double> each;
  for (int i = 0; i < repetitions; ++i) {
    device.copy(copy.to.address(), copy.from.address(), copy.bytes);
    each.push_back(static_cast<double>(device.elapsed_ms(work)) / count);
  }
  std::sort(each.begin(), each.end());
  return {.median_ms = each[each.size() / 2],
          .fastest_ms = each.front(),
          .slowest_ms = each.back(),
          .repetitions = repetitions};
}

void set_rate(BenchRow& row) {
  if (row.time->median_ms <= 0) {
    row.faults.emplace_back("no time passed between two events: nothing ran, or it is too short for them");
    return;
  }
  row.rate = (row.flops > 0 ? row.flops : static_cast<double>(row.bytes)) / (row.time->median_ms / 1000);
}

void set_ratio(BenchRow& row, const BenchReport& report) {
  if (row.against.empty() || !row.faults.empty()) return;
  const BenchRow* other = report.row(row.against);
  if (other == nullptr || !other->faults.empty()) {
    row.faults.push_back(fmt::format("{} did not run, and this is measured against it", row.against));
    return;
  }
  row.ratio = row.unit == "time" ? other->time->median_ms / row.time->median_ms : row.rate / other->rate;
}

BenchRow measure_copy(CudaGpu& device, const BenchOptions& options, const Copy& copy, int rounds) {
  BenchRow row;
  row.name = row.kernel = kCopy;
  row.shape = fmt::format("{:.3g} MB on the device", static_cast<double>(copy.bytes) / 1e6);
  row.bytes = 2 * copy.bytes;  // bytes read and written
  guarded(row, [&] {
    std::vector<DeviceArray> targets;
    for (int i = 0; i < options.caches; ++i) targets.push_back(device.filled("copy", copy.bytes, std::byte{0}));
    row.time = time_of(device, copy, options.repetitions, rounds * options.caches, [&] {
      for (int round = 0; round < rounds; ++round)
        for (std::size_t i = 0; i < targets.size(); ++i)
          device.copy(targets[i].address(), i == 0 ? copy.from.address() : targets[i - 1].address(), copy.bytes);
    });
    set_rate(row);
  });
  return row;
}

BenchRow measure(CudaGpu& device, const BenchOptions& options, const Copy& copy, int rounds, const WorkloadRow& of) {
  BenchRow row = row_of(of);
  guarded(row, [&] {
    const Workload work = of.make(device, {.small = options.small, .copies = options.caches});
    row.shape = work.shape;
    row.bytes = work.bytes;
    row.flops = work.flops;
    for (const std::vector<Launch>& turn : work.turns)  // warm-up, the only launches that are waited for
      for (const Launch& launch : turn) {
        const Outcome outcome = device.launch(launch.launch, launch.params);
        row.faults.insert(row.faults.end(), outcome.faults.begin(), outcome.faults.end());
        if (!row.faults.empty()) return;
      }
    row.time = time_of(device, copy, options.repetitions, rounds * options.caches, [&] {
      for (int round = 0; round < rounds; ++round)
        for (const std::vector<Launch>& turn : work.turns)
          for (const Launch& launch : turn) device.enqueue(launch.launch, launch.params);
    });
    set_rate(row);
  });
  return row;
}

void check(const BenchOptions& options) {
  if (options.caches < 3)
    throw InputError(
        "command line", "--caches",
        fmt::format("{} copies of the data: at least 3, so that none is found in a cache", options.caches));
  if (options.repetitions < 1)
    throw InputError("command line", "--repetitions", fmt::format("{}: at least 1", options.repetitions));
}

}  // namespace

bool BenchRow::passed() const {
  return faults.empty() && !(target && ratio && *ratio < *target);
}

std::string BenchRow::verdict() const {
  if (!faults.empty()) return "failed";
  if (costs) return "counted";
  if (against.empty()) return "measure";
  if (!target) return "no target";
  return passed() ? "met" : "missed";
}

bool BenchReport::passed() const {
  return std::all_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.passed(); });
}

const BenchRow* BenchReport::row(const std::string& name) const {
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const BenchRow& row) { return row.name == name; });
  return found == rows.end() ? nullptr : &*found;
}

std::vector<std::string> benchmarked_kernels() {
  std::vector<std::string> names{kCopy};
  for (const WorkloadRow& row : workload_rows())
    if (std::find(names.begin(), names.end(), row.kernel) == names.end()) names.push_back(row.kernel);
  return names;
}

BenchReport run_benchmarks(CudaGpu& device, const BenchOptions& options) {
  check(options);
  const std::vector<const WorkloadRow*> rows = chosen_rows(options);
  const auto all = static_cast<std::int64_t>(rows.size()) + 1;
  const auto show = [&](std::int64_t done) {
    if (options.progress) options.progress(done, all);
  };
  BenchReport report;
  report.device = device.info();
  report.small = options.small;
  const int rounds = options.small ? 1 : 4;  // passes over all copies, between two events
  show(0);
  std::optional<Copy> copy_data;
  BenchRow refused;
  refused.name = refused.kernel = kCopy;
  guarded(refused, [&] { copy_data.emplace(device, options.small); });
  if (!copy_data) {
    report.rows.push_back(std::move(refused));
    return report;
  }
  const Copy& copy = *copy_data;
  report.rows.push_back(measure_copy(device, options, copy, rounds));
  for (const WorkloadRow* row : rows) {
    show(static_cast<std::int64_t>(report.rows.size()));
    report.rows.push_back(measure(device, options, copy, rounds, *row));
    set_ratio(report.rows.back(), report);
  }
  return report;
}

BenchReport count_benchmarks(VirtualGpu& device, const BenchOptions& options) {
  BenchReport report;
  report.device = device.info();
  report.small = true;
  const std::vector<const WorkloadRow*> rows = chosen_rows(options);
  if (rows.empty())
    throw InputError("command line", "--kernel", "the copy is a device's own, and the virtual GPU has no clock for it");
  for (const WorkloadRow* of : rows) {
    if (options.progress)
      options.progress(static_cast<std::int64_t>(report.rows.size()), static_cast<std::int64_t>(rows.size()));
    BenchRow row = row_of(*of);
    guarded(row, [&] {
      const Workload work = of->make(device, {.small = true, .copies = 1});
      row.shape = work.shape;
      row.bytes = work.bytes;
      row.flops = work.flops;
      row.costs.emplace();
      for (const Launch& launch : work.turns.front()) {
        const Outcome outcome = device.launch(launch.launch, launch.params);
        row.faults.insert(row.faults.end(), outcome.faults.begin(), outcome.faults.end());
        if (outcome.costs) *row.costs += *outcome.costs;
      }
    });
    report.rows.push_back(std::move(row));
  }
  return report;
}

}  // namespace kvscope::gpu
