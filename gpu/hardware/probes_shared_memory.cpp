// Where shared memory begins, and how much of it a kernel may have without opting in.
#include <fmt/format.h>

#include "gpu/hardware/probe.h"
#include "gpu/kernels/probes/params.h"

namespace kvscope::gpu {
namespace {

struct BaseSeen {
  Outcome outcome;
  std::vector<std::uint32_t> numbers;
};

BaseSeen ask_base(ProbeDevice& whom, const char* kernel, const char* entry, std::int64_t threads,
                  std::int64_t dynamic) {
  const DeviceArray numbers = whom.device.filled("seen", 16, std::byte{0});
  const ProbeSharedBaseParams params{.seen = numbers.as<std::uint32_t>()};
  BaseSeen seen;
  seen.outcome = whom.device.launch(
      {.kernel = kernel, .entry = entry, .block = {threads, 1, 1}, .dynamic_shared = dynamic}, bytes_of(params));
  if (seen.outcome.faults.empty()) seen.numbers = numbers.download_as<std::uint32_t>();
  return seen;
}

ProbePart base(const char* name, const char* entry) {
  return {name, [entry](ProbeDevice& whom) {
            const std::string expected = "dynamic memory begins at a multiple of 1024";
            const BaseSeen seen = ask_base(whom, "probes", entry, 1, 2048);
            if (!seen.outcome.faults.empty())
              return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
            const std::uint32_t at = seen.numbers[0];
            return answer(
                at % 1024 == 0 ? expected : fmt::format("dynamic memory begins {} bytes behind one", at % 1024),
                expected, {fmt::format("dynamic at 0x{:x}, static at 0x{:x}", at, seen.numbers[1])});
          }};
}

Answer large_static(ProbeDevice& whom) {
  constexpr std::uint64_t kWords = kProbeLargeStatic / 4;
  const auto sum = static_cast<std::uint32_t>(kWords * (kWords - 1) / 2);
  const std::string expected = "runs with 102400 bytes";  // more than the 48 KiB that the programming guide allows
  BaseSeen seen;
  try {
    seen = ask_base(whom, "probe_static_shared", "probe_static_shared", kProbeThreads, 0);
  } catch (const std::exception& error) {  // rejected before it ran: this is also an answer
    return answer("is not launched", expected, {error.what()});
  }
  if (!seen.outcome.faults.empty())
    return answer(how_it_stopped(whom, seen.outcome), expected, first_fault(seen.outcome));
  return answer(seen.numbers[2] == sum ? fmt::format("runs with {} bytes", kProbeLargeStatic)
                                       : "runs, but its words are not what was written",
                expected, {fmt::format("begins at 0x{:x}", seen.numbers[1])});
}

}  // namespace

std::vector<Probe> probes_of_shared_memory() {
  return {
      {"H16",
       "Where does dynamic shared memory with an alignment of 1024 bytes begin?",
       "the address as the kernel sees it",
       {base("no static arrays", "probe_shared_base"), base("beside 1000 static bytes", "probe_shared_base_static")}},
      {"H17",
       "Does a kernel with 100 KB of static shared memory run?",
       "100 KB written and summed",
       {{"100 KB", large_static}}},
  };
}

}  // namespace kvscope::gpu
