#include "gpu/virtual/machine/launch_parts.h"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/interruption.h"
#include "gpu/virtual/machine/launch_checks.h"
#include "gpu/virtual/machine/program/cta_communication.h"
#include "gpu/virtual/machine/warp/scheduler.h"
#include "gpu/virtual/machine/warp/special_registers.h"

namespace kvscope::ptx {
namespace {

constexpr std::int64_t kPartsOfOne = 4;             // of a thread: CTAs take different times
constexpr std::int64_t kMostClusters = 1 << 24;     // parts list theirs
constexpr std::uint64_t kSlice = 10'000;            // warp instructions between two looks at `stop`
constexpr std::chrono::milliseconds kInterval(20);  // between two interruption points

struct Part {
  explicit Part(const Launch& whole)
      : bytes(whole.memory->allocations()), memory(*whole.memory, bytes), launch(whole) {}

  MemoryPart bytes;
  DeviceMemory memory;
  Launch launch;
  std::unique_ptr<Monitor> monitor;  // may hold references to `launch`
  bool failed = false;
};
using Parts = std::vector<std::unique_ptr<Part>>;

std::int64_t clusters_of(const Launch& launch) {
  const auto extents = cluster_extents(launch.config.cluster);
  return launch.ctas_to_run() / (extents[0] * extents[1] * extents[2]);
}

// Why the launch cannot be divided; "": it can.
std::string obstacle(const Launch& launch) {
  const LaunchOptions& options = launch.config.options;
  if (options.cooperative) return "it is cooperative";
  if (options.policy == Policy::seeded) return "its schedule depends on a seed";
  if (clusters_of(launch) < 2) return launch.config.cluster[0] > 0 ? "it has one cluster" : "it has one CTA";
  if (clusters_of(launch) > kMostClusters) return fmt::format("it has more than {} CTAs", kMostClusters);
  if (const std::string shares = cta_communication(*launch.program, launch.function).shares; !shares.empty())
    return fmt::format("its CTAs can see one another: {}", shares);
  const auto& instrs = launch.program->decoded.instrs;
  if (std::any_of(instrs.begin(), instrs.end(), [](const Instr& i) { return i.opcode == Opcode::discard; }))
    return "the module discards bytes";
  return "";
}

// The parts, without monitors: the clusters in order, as many in each part as in any other, or one less.
Parts divided(const Launch& launch) {
  const std::int64_t clusters = clusters_of(launch);
  const std::int64_t count = std::min(clusters, launch.config.options.jobs * kPartsOfOne);
  Parts parts;
  for (std::int64_t i = 0; i < count; ++i) {
    Part& part = *parts.emplace_back(std::make_unique<Part>(launch));
    part.launch.memory = &part.memory;
    part.launch.monitor = nullptr;
    part.launch.turn = {};
    part.launch.reports = Reports(1);  // one is enough: the part is then dropped
    part.launch.sample.clear();
    for (std::int64_t c = i * clusters / count; c < (i + 1) * clusters / count; ++c)
      part.launch.sample.push_back(launch.sample.empty() ? c : launch.sample[static_cast<std::size_t>(c)]);
  }
  return parts;
}

bool fork_monitors(const Launch& launch, Parts& parts) {
  if (launch.monitor == nullptr) return true;
  for (const auto& part : parts) {
    part->monitor = launch.monitor->fork(std::ssize(parts));
    if (part->monitor == nullptr) return false;
    part->launch.monitor = part->monitor.get();
  }
  return true;
}

void run_part(Part& part, std::atomic<bool>& stop) {
  try {
    Launch& launch = part.launch;
    while (launch.status == LaunchStatus::running && launch.reports.all().empty() && !stop) run(launch, kSlice);
    part.failed = launch.status != LaunchStatus::finished || !launch.reports.all().empty();
  } catch (const std::exception&) {
    part.failed = true;  // one thread throws it again, if the reason is not these copies
  }
  if (part.failed) stop = true;
}

// Runs all parts on `threads` threads, or until one of them fails. The host may start fewer threads than that, or none.
class Workers {
 public:
  Workers(Parts& parts, std::int64_t threads) : parts_(parts) {
    threads_.reserve(static_cast<std::size_t>(threads));
    try {
      for (std::int64_t t = 0; t < threads; ++t) threads_.emplace_back([this] { work(); });
    } catch (const std::system_error&) {  // a limit of the process or of the user
    }
  }
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() {
    stop_ = true;
    for (std::thread& thread : threads_) thread.join();
  }

  [[nodiscard]] std::int64_t started() const { return std::ssize(threads_); }

  // Returns true if every part has finished without a report.
  bool wait() {
    std::unique_lock lock(mutex_);
    while (idle_ < std::ssize(threads_)) {
      ended_.wait_for(lock, kInterval);
      lock.unlock();
      interruption_point();
      lock.lock();
    }
    return !stop_;
  }

 private:
  void work() {
    for (std::size_t i = next_++; i < parts_.size() && !stop_; i = next_++) run_part(*parts_[i], stop_);
    const std::scoped_lock lock(mutex_);
    ++idle_;
    ended_.notify_all();
  }

  Parts& parts_;
  std::atomic<std::size_t> next_ = 0;
  std::atomic<bool> stop_ = false;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::int64_t idle_ = 0;
  std::vector<std::thread> threads_;
};

// What keeps the results of finished parts from being those of one thread; "": nothing.
std::string difference(const Launch& launch, const Parts& parts) {
  std::vector<const MemoryPart*> bytes;
  std::uint64_t steps = 0;
  std::size_t printed = 0;
  for (const auto& part : parts) {
    bytes.push_back(&part->bytes);
    steps += part->launch.step;
    printed += part->launch.printed.size();
  }
  if (const auto conflict = MemoryPart::first_conflict(bytes)) {
    const Allocation& a = launch.memory->allocations()[conflict->allocation];
    return fmt::format("two of its CTAs access '{}' + {}, and one of them writes", a.name, conflict->offset);
  }
  const LaunchLimits& limits = launch.config.options.limits;
  if (steps >= static_cast<std::uint64_t>(limits.instructions)) return "it reaches the limit of instructions";
  if (printed > static_cast<std::size_t>(limits.printed_bytes)) return "it reaches the limit of printed bytes";
  return "";
}

void take_over(Launch& launch, const Parts& parts) {
  for (const auto& part : parts) {
    launch.memory->commit(part->bytes);
    if (launch.monitor != nullptr) launch.monitor->join(*part->monitor);
    launch.step += part->launch.step;
    launch.events += part->launch.events;
    launch.printed += part->launch.printed;
  }
  launch.next_cta = launch.ended_ctas = launch.ctas_to_run();
  launch.status = LaunchStatus::finished;
  launch.turn.told_end = true;
  if (launch.monitor != nullptr) launch.monitor->launch_ends(launch);
}

}  // namespace

void run_parts(Launch& launch) {
  const std::int64_t jobs = launch.config.options.jobs;
  if (jobs < 2) return;
  launch.one_thread = obstacle(launch);
  if (!launch.one_thread.empty()) return;
  run(launch, 0);  // tells the monitors that the launch begins, before they are asked for parts
  Parts parts = divided(launch);
  if (!fork_monitors(launch, parts)) {
    launch.one_thread = "its events are recorded in the order of one thread";
    return;
  }
  std::int64_t threads = 0;
  bool finished = false;
  {
    Workers workers(parts, std::min(jobs, std::ssize(parts)));
    threads = workers.started();
    finished = threads > 0 && workers.wait();
  }
  if (threads == 0) {
    launch.one_thread = "the host starts no more threads";
    return;
  }
  launch.one_thread = finished ? difference(launch, parts) : "its CTAs make a report";
  if (!launch.one_thread.empty()) return;
  take_over(launch, parts);
  launch.threads = static_cast<std::int32_t>(threads);
}

}  // namespace kvscope::ptx
