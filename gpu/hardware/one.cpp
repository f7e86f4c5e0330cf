#include "gpu/hardware/one.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>

#include "core/base/errors.h"
#include "gpu/bench/bench.h"
#include "gpu/hardware/instruction_results.h"
#include "gpu/hardware/probe.h"
#include "gpu/launch/cuda_gpu.h"
#include "gpu/launch/device_error.h"
#include "gpu/launch/virtual_gpu.h"
#include "gpu/verify/report.h"

namespace kvscope::gpu {
namespace {

constexpr const char* kProbed = "sm_90a";  // the architecture that the probes are compiled for

json::Value message(const char* key, json::Value value) {
  json::Value made;
  made.set(key, std::move(value));
  return made;
}

std::unique_ptr<Device> open(const WhichDevice& which, const std::string& architecture) {
  if (which.device == "virtual") return std::make_unique<VirtualGpu>(VirtualGpuOptions{.architecture = architecture});
  return std::make_unique<CudaGpu>(CudaGpuOptions{.library = which.driver});
}

void say_device(const WhichDevice& which, const Say& say) {
  std::unique_ptr<Device> device;
  try {
    device = open(which, "sm_90a");
  } catch (const DeviceError& error) {
    say(message("none", error.what()));
    return;
  }
  say(message("device", to_json(device->info())));
}

// False if a kernel has destroyed the context: every call then fails.
bool still_there(Device& device) {
  try {
    const std::array<std::byte, 4> bytes{};
    return device.upload("a sign of life", bytes).download().size() == bytes.size();
  } catch (const DeviceError&) {
    return false;
  }
}

void say_cases(const WhichDevice& which, const std::string& kernel, std::size_t from, const Say& say) {
  const std::vector<const Case*> cases = chosen_cases(which, kernel);
  std::unique_ptr<Device> device;
  for (std::size_t i = from; i < cases.size(); ++i) {
    say(message("begin", static_cast<std::int64_t>(i)));
    if (device == nullptr || which.device == "virtual") device = open(which, cases[i]->architecture);
    if (device->info().architecture != cases[i]->architecture) {
      json::Value value;
      value.set("kernel", cases[i]->kernel);
      value.set("case", cases[i]->name);
      value.set("what", cases[i]->what);
      value.set("left_out", fmt::format("needs a GPU of {}", cases[i]->architecture));
      say(message("case", std::move(value)));
      continue;
    }
    const CaseResult result = run_case(*cases[i], *device);
    say(message("case", to_json(record_of(result))));
    if (!result.passed() && !still_there(*device)) {
      say(message("lost", true));
      return;
    }
  }
}

void say_answer(const WhichDevice& which, const ProbePart& part, const Say& say) {
  const std::unique_ptr<Device> device = open(which, kProbed);
  const bool is_virtual = which.device == "virtual";
  ProbeDevice whom{.device = *device,
                   .driver = is_virtual ? nullptr : &cuda::driver(which.driver),
                   .library = which.driver,
                   .random_blocks = which.random_blocks > 0 ? which.random_blocks
                                    : is_virtual            ? 32
                                                            : 100'000};
  const std::string& architecture = device->info().architecture;
  const Answer answer =
      architecture == kProbed
          ? ask(part, whom)
          : not_applicable(fmt::format("the probes are of {}, this GPU is {}", kProbed, architecture));
  json::Value value;
  value.set("measured", answer.measured);
  value.set("expected", answer.expected ? json::Value(*answer.expected) : json::Value());
  value.set("verdict", name(answer.verdict));
  value.set("details", json::strings(answer.details));
  say(message("answer", std::move(value)));
}

void say_bench(const WhichDevice& which, const Say& say) {
  if (which.device == "virtual")
    throw InputError("command line", "--bench", "the virtual GPU has no clock: there is nothing to time on it");
  CudaGpu device({.library = which.driver});
  const BenchReport report = run_benchmarks(
      device, {.kernel = which.kernel, .small = which.small, .progress = [&](std::int64_t done, std::int64_t) {
                 say(message("progress", done));
               }});
  json::Value value = message("bench", json_report(report));
  value.set("markdown", markdown_report(report));
  value.set("passed", report.passed());
  say(value);
}

void say_instructions(const WhichDevice& which, std::size_t part, const Say& say) {
  const std::unique_ptr<Device> device = open(which, kProbed);
  const std::vector<std::string> words = words_of_part(which, part);
  for (const InstructionResult& result : instruction_results(*device, words)) {
    json::Value value = to_json(result);
    value.set("line", to_text(result));
    say(message("instruction", std::move(value)));
  }
}

// "12" after the last '/' of "cases:lds_stage/12".
std::optional<std::size_t> number_behind(const std::string& text) {
  const std::size_t slash = text.rfind('/');
  if (slash == std::string::npos || slash + 1 == text.size() ||
      text.find_first_not_of("0123456789", slash + 1) != std::string::npos || text.size() - slash > 9)
    return std::nullopt;
  return std::stoul(text.substr(slash + 1));
}

}  // namespace

std::vector<const Case*> chosen_cases(const WhichDevice& which, const std::string& kernel) {
  std::vector<const Case*> cases;
  for (const Case* c : select_cases(kernel, ""))
    if (c->demo || !which.small) cases.push_back(c);
  return cases;
}

std::size_t instruction_parts() {
  return (measured_words().size() + kWordsOfAPart - 1) / kWordsOfAPart;
}

std::vector<std::string> words_of_part(const WhichDevice& which, std::size_t part) {
  const std::vector<std::string>& all = measured_words();
  std::vector<std::string> words;
  for (std::size_t i = part * kWordsOfAPart; i < std::min(all.size(), (part + 1) * kWordsOfAPart); ++i)
    if (!which.small || i % 16 == 0) words.push_back(all[i]);
  return words;
}

void do_one(const WhichDevice& which, const std::string& what, const Say& say) {
  if (what == "device") return say_device(which, say);
  if (what == "bench") return say_bench(which, say);
  const std::optional<std::size_t> number = number_behind(what);
  if (number && what.starts_with("instructions/") && *number < instruction_parts())
    return say_instructions(which, *number, say);
  const std::size_t colon = what.find(':');
  if (number && colon != std::string::npos) {
    const std::string kind = what.substr(0, colon), name = what.substr(colon + 1, what.rfind('/') - colon - 1);
    if (kind == "cases") {
      if (const std::size_t cases = chosen_cases(which, name).size(); *number >= cases) {
        throw InputError(
            "command line", "--one",
            fmt::format("'{}' is not a test: the cases of {} are numbered from 0 to {}", what, name, cases - 1));
      }
      return say_cases(which, name, *number, say);
    }
    for (const Probe& probe : all_probes())
      if (kind == "probe" && probe.id == name && *number < probe.parts.size())
        return say_answer(which, probe.parts[*number], say);
  }
  throw InputError(
      "command line", "--one",
      fmt::format("'{}' is not one of device, cases:KERNEL/N, probe:ID/PART, instructions/N, bench", what));
}

}  // namespace kvscope::gpu
