// How a device reacts to invalid arguments of a copy. Most of these end the context: each part runs in a separate
// process.
#include <fmt/format.h>

#include <utility>

#include "core/base/fnv.h"
#include "gpu/hardware/probe_copy.h"

namespace kvscope::gpu {
namespace {

constexpr int kIllegalInstruction = 715, kMisalignedAddress = 716;

TensorMap rows_map(const ProbeTensor& tensor, TmaSwizzle swizzle) {
  return map_2d(TmaDataType::bf16, tensor.base(), {64, 20}, 128, {16, 8}, swizzle);
}

// One load into a window of 4096 bytes: the bytes it writes, or the error.
Answer load_at(ProbeDevice& whom, TmaSwizzle swizzle, ProbeBox box, std::optional<std::string> expected) {
  ProbeTensor tensor(whom.device, 20 * 128, source_byte);
  const CopyAsk ask{.load_map = rows_map(tensor, swizzle), .loads = {box}, .window_bytes = 4096};
  const CopySeen seen = copy_window(whom, ask);
  if (!seen.outcome.faults.empty())
    return answer(how_it_stopped(whom, seen.outcome), std::move(expected), first_fault(seen.outcome));
  std::int64_t touched = 0, first = -1;
  for (std::size_t i = 0; i < seen.window.size(); ++i) {
    if (seen.window[i] == std::byte{kProbePoison}) continue;
    if (touched++ == 0) first = static_cast<std::int64_t>(i);
  }
  return answer(fmt::format("loads: {} bytes from {} on", touched, first), std::move(expected),
                {fmt::format("checksum of the window {:016x}", fnv1a(seen.window))});
}

const char* words(TmaSwizzle swizzle) {
  return swizzle == TmaSwizzle::none ? "no swizzle" : "128B swizzle";
}

std::vector<ProbePart> columns() {
  std::vector<ProbePart> made;
  for (const TmaSwizzle swizzle : {TmaSwizzle::none, TmaSwizzle::b128})
    for (const std::int32_t column : {4, 1, -4})
      made.push_back(
          {fmt::format("c[0] = {}, {}", column, words(swizzle)), [=](ProbeDevice& whom) {
             return load_at(whom, swizzle, {column, 0, 0}, stopped_with(whom, kIllegalInstruction, "TMA_ARG"));
           }});
  return made;
}

// Loads require 128-byte alignment, also without a swizzle, for which no manual says so.
std::vector<ProbePart> places() {
  std::vector<ProbePart> made;
  for (const TmaSwizzle swizzle : {TmaSwizzle::none, TmaSwizzle::b128})
    for (const std::uint32_t at : {16U, 32U, 64U})
      made.push_back({fmt::format("place % 128 = {}, {}", at, words(swizzle)), [=](ProbeDevice& whom) {
                        return load_at(whom, swizzle, {0, 0, at}, stopped_with(whom, kMisalignedAddress, "TMA_ARG"));
                      }});
  return made;
}

// 1024 bytes land, 512 are expected: the phase completes at 512, and the rest counts toward the next phase's 512.
Answer under_expected(ProbeDevice& whom) {
  ProbeTensor tensor(whom.device, 20 * 128, source_byte);
  const DeviceArray numbers = whom.device.filled("seen", 16, std::byte{0});
  const ProbeUnderExpectedParams params{
      .map = whom.device.encode(map_2d(TmaDataType::bf16, tensor.base(), {64, 20}, 128, {64, 8}, TmaSwizzle::b128)),
      .first_bytes = 512,
      .second_bytes = 512,
      .window_bytes = 1024,
      .seen = numbers.as<std::uint32_t>()};
  const Outcome outcome = whom.device.launch({.kernel = "probes",
                                              .entry = "probe_under_expected",
                                              .block = {kProbeThreads, 1, 1},
                                              .dynamic_shared = 1024 + kProbeBarrierBytes},
                                             bytes_of(params));
  const std::string early = "the wait ends early, the next phase's bytes make up for it";
  std::vector<std::string> details = outcome.faults;
  if (!outcome.faults.empty()) return answer(how_it_stopped(whom, outcome), early, details);
  const auto seen = numbers.download_as<std::uint32_t>();
  details.push_back(
      fmt::format("bytes there when the first wait ended: {} of 1024; when the second did: {}", seen[1], seen[3]));
  return answer(seen[0] == 0   ? "the wait does not end"
                : seen[2] == 0 ? "the wait ends early, and the next never"
                               : early,
                early, details);
}

}  // namespace

std::vector<Probe> probes_of_faults() {
  return {
      {"H5", "What happens to a load that begins inside 16 bytes of a row?", "bf16, columns 4, 1 and -4", columns()},
      {"H6", "What does a load to an address that is not a multiple of 128 do?", "16, 32 and 64 bytes behind one",
       places()},
      {"H18",
       "What does a barrier do when fewer bytes are expected than arrive?",
       "512 expected, 1024 come, then 512 more expected",
       {{"half", under_expected}}},
  };
}

}  // namespace kvscope::gpu
